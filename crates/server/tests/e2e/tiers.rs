//! Processes that follow one another, and are killed.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use tideline_client::{Follower, From, Next, Options, Source};
use tideline_types::{PartitionId, Seq, TopicName};

use crate::program::{Server, ok, tideline};

#[test]
fn the_worked_example_holds_while_a_tier_and_a_reader_are_killed() {
    let args = ["--readers", "4", "--seconds", "8", "--rate", "300", "--kill"];
    let printed = ok(&[&["example", "streams"], &args[..]].concat());
    for reader in 0..4 {
        for topic in ["video-plays", "live-gifts"] {
            let line = printed.lines().find(|line| {
                let mut words = line.split_whitespace();
                words.next() == Some(&reader.to_string()) && words.next() == Some(topic)
            });
            let line = line.unwrap_or_else(|| panic!("reader {reader}, {topic}: {printed}"));
            let hot: u32 = line.split_whitespace().nth(3).expect("a column").parse().expect(line);
            assert!(hot > 0, "nothing is hot: {line}");
        }
    }
    let last = printed.lines().last().expect("a line");
    let good: u64 = last.split_whitespace().next().expect("a word").parse().expect(last);
    assert!(good > 100 && last.contains(" 0 alarms"), "{last}");
}

/// Two hosts compute a topic: the server, and the command by itself.
#[test]
fn a_digest_is_the_same_wherever_a_topic_is_computed_and_tells_operators_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let grpc = server.banner.iter().find_map(|line| line.trim().strip_prefix("gRPC"));
    let grpc = format!("http://{}", grpc.expect("it listens").trim());
    server.ok(&["topic", "create", "chat", "--partitions", "2"]);
    for key in ["ann", "bob", "cal", "dan"] {
        for n in 0..5 {
            let value = format!("{{\"n\":{n}}}");
            server.ok(&["topic", "produce", "chat", "--key", key, "--value", &value]);
        }
    }
    let operator = r#"{"filter":"value.n > 1","value":"value.n * 2"}"#;
    server.ok(&["topic", "create", "twice", "--source", "chat", "--operator", operator]);
    let digest = |args: &[&str]| {
        let all = [&["topic", "digest"], args, &["--every", "3", "--grpc", &grpc]].concat();
        ok(&all)
    };
    let there = digest(&["twice"]);
    assert!(there.lines().count() > 5, "{there}");
    assert_eq!(digest(&["chat", "--operator", operator]), there);
    assert_ne!(digest(&["chat"]), there);
    // Another one that is wrong from some number on is found in the lines from there on.
    let broken = operator.replace("* 2", "* 2 + (value.n > 3 ? 1 : 0)");
    let broken = digest(&["chat", "--operator", &broken]);
    let differ = there.lines().zip(broken.lines()).filter(|(a, b)| a != b).count();
    assert!(differ > 0 && differ < there.lines().count() - 1, "{differ} lines of {there}");
}

/// A follower in this process, and a server that is killed under it.
#[test]
fn a_follower_has_each_record_once_and_in_order_when_the_server_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let grpc = socket.local_addr().expect("it is bound").to_string();
    drop(socket);
    let start = || {
        let mut command = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", &grpc]);
        command.arg("--data").arg(dir.path().join("data"));
        Server::spawn(command)
    };
    let mut server = start();
    server.ok(&["topic", "create", "chat", "--partitions", "1"]);
    let (tell, told) = mpsc::channel();
    let url = format!("http://{grpc}");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        runtime.block_on(async {
            let source = Source::new(&url, None).expect("an address");
            let topic = TopicName::new("chat").expect("a name");
            // Small ranges and little credit: much is under way when it breaks.
            let options = Options {
                credit_bytes: 2_000,
                range_bytes: 500,
                retry_longest: Duration::from_millis(100),
                ..Options::default()
            };
            let first = PartitionId::default();
            let mut follower = Follower::new(source, topic, first, From::Earliest, options);
            loop {
                if let Next::Range(frame) = follower.next().await.expect("it is not refused") {
                    for record in frame.records() {
                        if tell.send((record.seq, record.value.to_vec())).is_err() {
                            return;
                        }
                    }
                }
            }
        });
    });
    let (mut written, mut seen) = (0, 0);
    for life in 0..4 {
        for _ in 0..10 {
            let records: Vec<_> = (0..20)
                .map(|n| json!({ "key": "k", "value": format!("{}", written + n) }))
                .collect();
            let body = json!({ "records": records });
            let (status, answer) = server.call("POST", "/v1/topics/chat/records", Some(body));
            assert_eq!(status, 200, "{answer}");
            written += 20;
        }
        // What was acknowledged before the kill is there after it; some of it is read
        // before, and some after.
        let until = if life == 3 { written } else { written - 100 };
        while seen < until {
            let (seq, value) = told.recv_timeout(Duration::from_secs(60)).expect("it goes on");
            assert_eq!(seq, Seq(seen + 1));
            assert_eq!(value, seen.to_string().into_bytes());
            seen += 1;
        }
        server.kill();
        server = start();
    }
    assert!(told.try_recv().is_err(), "a record too many");
}
