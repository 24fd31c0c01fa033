//! Consumers whose places the server keeps.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tideline_client::{Checkpoints, Follower, From, Next, Options, Source};
use tideline_types::{PartitionId, Position, Seq, TopicName};

use crate::program::{Server, run, tideline};

/// What clients ask of a server, seen on the way.
struct Wire {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn to(server: &Server) -> Self {
        let to = server.base.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<u8>>>::default();
        let ear = asked.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&to).unwrap());
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                pass(client, server, Some(ear.clone()));
                pass(back, forth, None);
            }
        });
        Self { at, asked }
    }

    /// The places from which records were asked for.
    fn places(&self) -> Vec<String> {
        let asked = String::from_utf8_lossy(&self.asked.lock().unwrap()).into_owned();
        let from = |line: &str| Some(line.split_once("&from=")?.1.split_once('&')?.0.to_owned());
        asked.lines().filter_map(from).collect()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, ear: Option<Arc<Mutex<Vec<u8>>>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            if let Some(ear) = &ear {
                ear.lock().unwrap().extend(&bytes[..len]);
            }
            if to.write_all(&bytes[..len]).is_err() {
                return;
            }
        }
    });
}

fn follow(wire: &Wire) -> Child {
    let url = format!("http://{}", wire.at);
    let args = ["topic", "follow", "gold", "--checkpoint", "payer", "--server", &url];
    let mut command = tideline(&args);
    command.stdout(Stdio::piped()).spawn().expect("the program was built")
}

fn produce(server: &Server, keys: impl Iterator<Item = String>) {
    let records: Vec<Value> = keys.map(|key| json!({ "key": key, "value": "v" })).collect();
    let body = json!({ "records": records });
    let (status, answer) = server.call("POST", "/v1/topics/clicks/records", Some(body));
    assert_eq!(status, 200, "{answer}");
}

/// What is left to read for the consumer, by partition; `None` before it kept a
/// place in each.
fn lag(server: &Server) -> Option<u64> {
    let (status, kept) = server.call("GET", "/v1/topics/gold/checkpoints/payer", None);
    let kept = kept["partitions"].as_array().filter(|kept| status == 200 && kept.len() == 2)?;
    kept.iter().map(|place| place["lag"].as_u64()).sum()
}

fn wait_until(is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "it does not come to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_filter_of_one_in_a_million_moves_its_checkpoint_and_a_restart_reads_nothing_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(&dir.path().join("data"), &[]);
    server.ok(&["topic", "create", "clicks", "--partitions", "2"]);
    let operator = r#"{"filter":"key == 'gold'"}"#;
    server.ok(&["topic", "create", "gold", "--source", "clicks", "--operator", operator]);
    for round in 0..4 {
        produce(&server, (0..10_000).map(|n| format!("k{round}-{n}")));
    }
    let wire = Wire::to(&server);
    let mut follower = follow(&wire);
    wait_until(|| lag(&server) == Some(0));
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    let described = server.ok(&["topic", "describe", "gold"]);
    assert!(described.lines().any(|line| line.starts_with("payer ")), "{described}");

    // The server, too: what it keeps is durable.
    server.kill();
    server = Server::start(&dir.path().join("data"), &[]);
    assert_eq!(lag(&server), Some(0));
    let kept = server.get("/v1/topics/gold/checkpoints");
    let kept = kept["checkpoints"][0]["partitions"].as_array().unwrap().clone();
    let wire = Wire::to(&server);
    let mut follower = follow(&wire);
    produce(&server, ["gold".to_owned()].into_iter());
    let mut line = String::new();
    BufReader::new(follower.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["key"], "gold");
    wait_until(|| lag(&server) == Some(0));
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    let end = |place: &str| place.rsplit('-').next().unwrap().parse::<u64>().unwrap();
    let least = kept.iter().map(|place| end(place["next"].as_str().unwrap())).min().unwrap();
    let places = wire.places();
    assert!(places.len() >= 2 && least > 15_000, "{places:?}, {kept:?}");
    for place in places {
        assert!(end(&place) >= least, "{place} was read before");
    }
}

#[test]
fn a_consumer_that_is_behind_its_own_checkpoint_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.ok(&["topic", "create", "clicks", "--partitions", "1"]);
    produce(&server, (0..10).map(|n| n.to_string()));
    let records = server.ok(&["topic", "tail", "clicks", "--from", "earliest", "--no-follow"]);
    let first: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    let at = |seq: u64| format!("{}-{}-{seq}", first["incarnation"], first["epoch"]);
    let path = "/v1/topics/clicks/checkpoints/payer";
    let keep = |next: &str| {
        let body = json!({ "partitions": [{ "partition": 0, "next": next }] });
        server.call("PUT", path, Some(body)).0
    };
    assert_eq!(server.call("GET", path, None).0, 404);
    assert_eq!([keep(&at(4)), keep(&at(4)), keep(&at(9))], [204, 204, 204]);
    assert_eq!(keep(&at(8)), 409, "back");
    assert_eq!(keep(&at(12)), 400, "what comes after it is not there yet");
    assert_eq!(keep("999-1-3"), 409, "another life of the topic");
    assert_eq!(keep("9"), 400);
    let kept = server.get(path);
    assert_eq!(kept["partitions"][0], json!({ "partition": 0, "next": at(9), "lag": 2 }));
    assert_eq!(server.call("DELETE", path, None).0, 204);
    assert_eq!(server.call("GET", path, None).0, 404);
    assert_eq!(keep(&at(1)), 204, "it begins anew");
    let none = run(&server.at(&["topic", "follow", "clicks"]));
    assert_eq!(none.status.code(), Some(2), "into a file, or as a consumer");
}

/// A consumer in this process that has its place kept, and a server that is killed under it.
#[test]
fn a_consumer_of_the_client_library_goes_on_where_its_place_was_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &[]);
    server.ok(&["topic", "create", "clicks", "--partitions", "1"]);
    let none = r#"{"filter":"value.n < 0"}"#;
    server.ok(&["topic", "create", "none", "--source", "clicks", "--operator", none]);
    let produce = |server: &Server, n: u64| {
        let value = json!({ "n": n }).to_string();
        let body = json!({ "records": [{ "key": "k", "value": value }] });
        assert_eq!(server.call("POST", "/v1/topics/clicks/records", Some(body)).0, 200);
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let topic = TopicName::new("none").unwrap();
    let first = PartitionId::default();
    let mut stands: Option<Position> = None;
    for life in 1..=3_u64 {
        (0..10).for_each(|n| produce(&server, n));
        let source = Source::new(&server.grpc, None).unwrap();
        let places = Checkpoints::new(source.clone(), topic.clone(), "payer");
        let kept = runtime.block_on(places.kept()).unwrap();
        assert_eq!(kept.get(&first), stands.as_ref());
        // It goes on there, over records that are all left out.
        let from = kept.get(&first).map_or(From::Earliest, |at| From::After(*at));
        let mut follower = Follower::new(source, topic.clone(), first, from, Options::default());
        let mut at = stands;
        while at.is_none_or(|at| at.seq < Seq(10 * life)) {
            match runtime.block_on(follower.next()).unwrap() {
                Next::Range(frame) => {
                    assert_eq!(frame.range().after, at.map_or(Seq::ZERO, |at| at.seq));
                    assert_eq!(frame.records().count(), 0);
                    at = Some(frame.through());
                }
                Next::Head { .. } => {}
                Next::Stopped(why) => panic!("{why}"),
            }
        }
        let done = |at: Position| BTreeMap::from([(first, at)]);
        runtime.block_on(places.keep(&done(at.unwrap()))).unwrap();
        // One that is behind is refused, and moves nothing.
        let behind = Position { seq: Seq(1), ..at.unwrap() };
        let refused = runtime.block_on(places.keep(&done(behind))).unwrap_err();
        assert_eq!(refused.code, tonic::Code::FailedPrecondition, "{refused}");
        stands = at;
        server.kill();
        server = Server::start(dir.path(), &[]);
    }
    let source = Source::new(&server.grpc, None).unwrap();
    let places = Checkpoints::new(source, topic, "payer");
    runtime.block_on(places.forget()).unwrap();
    assert!(runtime.block_on(places.kept()).unwrap().is_empty());
}
