//! Hosts that derive the same topics from the same records: one of them is killed
//! while it writes and is read, another takes its folder over, and what is derived
//! is the same byte for byte.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;
use tideline_client::{Follower, From, Next, Options, Source};
use tideline_types::{PartitionId, Position, Seq, TopicName};
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::queue_service_client::QueueServiceClient;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::program::{Server, ok, run};

const PARTITIONS: u16 = 2;
const BATCH: u64 = 20;
/// Records that end a line of a digest.
const EVERY: &str = "70";
const THIRD: &str = r#"{"filter":"value.n % 3 == 0","key":"value.k","counter":{"add":"value.n"}}"#;
const CHAIN: &str = r#"{"filter":"value.add % 2 == 0","set":"value.add * 10"}"#;
/// What is derived, and from what.
const TOPICS: [&str; 3] = ["cut", "third", "chain"];

/// Where the one who writes finds the topic.
type Address = watch::Receiver<String>;

/// Writes numbered batches to a partition until told to stop, each until it is
/// acknowledged by whoever serves the topic then. How many there were.
async fn write(
    partition: u16,
    mut at: Address,
    acknowledged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> u64 {
    let connect = |url: String| {
        let endpoint = tonic::transport::Endpoint::from_shared(url).unwrap();
        QueueServiceClient::new(endpoint.connect_lazy())
    };
    let mut client = connect(at.borrow_and_update().clone());
    let mut batches = 0;
    while !stop.load(Ordering::SeqCst) {
        let first = batches * BATCH;
        let record = |n: u64| v1::Record {
            key: format!("key-{}", n % 7).into(),
            value: format!(r#"{{"n":{n},"k":"item-{}"}}"#, n % 11).into(),
        };
        let request = v1::ProduceRequest {
            topic: "chat".into(),
            partition: Some(partition.into()),
            records: (first..first + BATCH).map(record).collect(),
            stamp: Some(v1::Stamp { producer: 7, epoch: 1, number: first + 1 }),
        };
        while let Err(status) = client.produce(request.clone()).await {
            assert!(status.code() != tonic::Code::FailedPrecondition, "{status}");
            if at.has_changed().unwrap() {
                client = connect(at.borrow_and_update().clone());
            }
            tokio::task::yield_now().await;
        }
        batches += 1;
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    batches
}

/// What a reader has of a partition: batches as they came.
#[derive(Default)]
struct Copy {
    batches: Vec<u8>,
    records: usize,
    at: Option<Position>,
}

/// Goes on reading where the copy ends, through a number, or until told to stop.
async fn read(
    mut copy: Copy,
    url: String,
    topic: &'static str,
    partition: u16,
    through: Option<Seq>,
    mut stop: watch::Receiver<bool>,
    seen: Arc<AtomicU64>,
) -> Copy {
    let from = copy.at.map_or(From::Earliest, From::After);
    let name = TopicName::new(topic).unwrap();
    let source = Source::new(&url, None).unwrap();
    let partition = PartitionId(partition);
    let mut follower = Follower::new(source, name, partition, from, Options::default());
    while through.is_none_or(|end| copy.at.is_none_or(|at| at.seq < end)) {
        let next = tokio::select! {
            next = follower.next() => next.expect("it is not refused"),
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match next {
            Next::Range(frame) => {
                assert!(copy.at.is_none_or(|at| at.seq == frame.range().after), "a gap");
                frame.batch_bytes().for_each(|batch| copy.batches.extend_from_slice(&batch));
                copy.records += frame.records().count();
                seen.fetch_add(frame.records().count() as u64, Ordering::SeqCst);
                copy.at = Some(frame.through());
            }
            Next::Head { .. } => {}
            Next::Stopped(why) => panic!("{topic}: {why}"),
        }
    }
    copy
}

/// A reader of every partition of every topic.
fn read_all(
    runtime: &tokio::runtime::Runtime,
    copies: Vec<Copy>,
    server: &Server,
    through: Option<&[Seq]>,
    stop: &watch::Receiver<bool>,
    seen: &[Arc<AtomicU64>],
) -> Vec<JoinHandle<Copy>> {
    let places = TOPICS.iter().flat_map(|topic| (0..PARTITIONS).map(move |p| (*topic, p)));
    let readers = copies.into_iter().zip(places).zip(seen).map(|((copy, (topic, p)), seen)| {
        let through = through.map(|all| all[usize::from(p)]);
        let (url, stop, seen) = (server.grpc.clone(), stop.clone(), seen.clone());
        runtime.spawn(read(copy, url, topic, p, through, stop, seen))
    });
    readers.collect()
}

fn none() -> Vec<Copy> {
    (0..TOPICS.len() * usize::from(PARTITIONS)).map(|_| Copy::default()).collect()
}

/// Its lines, without the heading; of one partition up to a number, if said.
fn digest(server: &Server, args: &[&str]) -> Vec<String> {
    let args = [&["topic", "digest"], args, &["--every", EVERY, "--grpc", &server.grpc]].concat();
    ok(&args).lines().skip(1).map(str::to_owned).collect()
}

/// Those of ranges that had ended, and will not be longer.
fn whole(lines: &[String]) -> BTreeSet<&String> {
    let every: u64 = EVERY.parse().unwrap();
    let ends = |line: &str| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
    lines.iter().filter(|line| ends(line) % every == 0).collect()
}

/// The last number of each partition that is synced.
fn ends(server: &Server) -> Vec<Seq> {
    let about = server.get("/v1/topics/chat");
    let seq = |at: &Value| Seq(at["synced"].as_u64().unwrap());
    about["bounds"].as_array().unwrap().iter().map(seq).collect()
}

fn declare(server: &Server, topic: &str, source: &str, operator: &str) {
    server.ok(&["topic", "create", topic, "--source", source, "--operator", operator]);
}

fn wait_until(is: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is() {
        assert!(std::time::Instant::now() < end, "it does not come to be");
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
}

/// A copy of the host's folder, made while it is written.
fn restored(server: &Server, dir: &Path) -> Server {
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    server.ok(&["backup", &path("backup")]);
    ok(&["restore", &path("backup"), "--data", &path("copy")]);
    Server::start(&dir.join("copy"), &[])
}

#[test]
fn what_two_hosts_derive_is_byte_for_byte_the_same_also_when_one_is_killed_and_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let one = Server::start(&folder, &[]);
    one.ok(&["topic", "create", "chat", "--partitions", "2"]);
    declare(&one, "third", "chat", THIRD);
    declare(&one, "chain", "third", CHAIN);
    declare(&one, "cut", "chat", r#"{"filter":"value.n % 5 == 1","set":"value.n"}"#);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (moved, address) = watch::channel(one.grpc.clone());
    let (acknowledged, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let writers: Vec<_> = (0..PARTITIONS)
        .map(|p| runtime.spawn(write(p, address.clone(), acknowledged.clone(), stop.clone())))
        .collect();
    let written = |more: u64| {
        let until = acknowledged.load(Ordering::SeqCst) + more;
        wait_until(|| acknowledged.load(Ordering::SeqCst) >= until);
    };
    let (leave, left) = watch::channel(false);
    let seen: Vec<Arc<AtomicU64>> = none().iter().map(|_| Arc::default()).collect();
    let readers = read_all(&runtime, none(), &one, None, &left, &seen);
    written(20);
    // Another operator takes effect while it is written and read.
    declare(&one, "cut", "chat", r#"{"filter":"value.n % 4 == 1","set":"value.n + 1"}"#);
    written(20);

    // Two hosts at once, over the same records as far as the copy goes.
    let two = restored(&one, dir.path());
    for (partition, end) in ends(&two).iter().enumerate() {
        assert!(end.0 > 100, "the copy has some of it");
        let (partition, end) = (partition.to_string(), end.to_string());
        let part = ["--partition", &partition, "--through", &end];
        for topic in TOPICS {
            let lines = digest(&one, &[&[topic], &part[..]].concat());
            assert!(lines.len() > 1);
            assert_eq!(lines, digest(&two, &[&[topic], &part[..]].concat()), "{topic}");
        }
        // And one that derives by itself, from what the other holds.
        let here = digest(&one, &[&["chat", "--operator", THIRD], &part[..]].concat());
        assert_eq!(here, digest(&two, &[&["third"], &part[..]].concat()));
    }
    two.kill();

    // While one is there, no other has its folder; when it is killed, another takes it over.
    let text = folder.to_str().unwrap();
    let refused = run(&["serve", "--data", text, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    assert!(!refused.status.success());
    written(20);
    let said: Vec<_> = TOPICS.iter().map(|topic| digest(&one, &[topic])).collect();
    wait_until(|| seen.iter().all(|seen| seen.load(Ordering::SeqCst) > 3));
    one.kill();
    let three = Server::start(&folder, &[]);
    leave.send(true).unwrap();
    let copies: Vec<Copy> =
        readers.into_iter().map(|reader| runtime.block_on(reader).unwrap()).collect();
    moved.send(three.grpc.clone()).unwrap();
    written(20);
    stop.store(true, Ordering::SeqCst);
    let batches: Vec<u64> =
        writers.into_iter().map(|writer| runtime.block_on(writer).unwrap()).collect();

    // A producer's retries to whoever is there left each record once, in order.
    let through = ends(&three);
    let expected: Vec<Seq> = batches.iter().map(|count| Seq(count * BATCH)).collect();
    assert_eq!(through, expected);
    // What the first host said of ranges that had ended is what the next one says.
    for (topic, before) in TOPICS.iter().zip(&said) {
        let after = digest(&three, &[topic]);
        let (before, after) = (whole(before), whole(&after));
        assert!(before.len() > 2 && before.len() < after.len(), "{topic}: {before:?}");
        assert!(before.is_subset(&after), "{topic}: {before:?} {after:?}");
    }
    // Who went on reading at the next host has the bytes of one who reads it all there.
    let (_ours, stay) = watch::channel(false);
    let went_on = read_all(&runtime, copies, &three, Some(&through), &stay, &seen);
    let fresh = read_all(&runtime, none(), &three, Some(&through), &stay, &seen);
    for (reader, fresh) in went_on.into_iter().zip(fresh) {
        let (copy, fresh) =
            runtime.block_on(async { (reader.await.unwrap(), fresh.await.unwrap()) });
        assert_eq!((copy.records, copy.at), (fresh.records, fresh.at));
        assert!(copy.records > 10);
        assert!(copy.batches == fresh.batches, "other bytes");
    }
}
