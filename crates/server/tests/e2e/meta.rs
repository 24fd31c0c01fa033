//! The metadata tree of the real program: from the command line, and from
//! clients at once while it is killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tideline_harness::linear::{Act, Call, Came, is_linearizable};
use tideline_harness::rng::Rng;
use tideline_meta::follower::{Event, Follower};
use tideline_wire::meta_v1 as v1;
use tideline_wire::meta_v1::meta_service_client::MetaServiceClient;
use tonic::transport::{Channel, Endpoint};

use crate::program::{Server, ok, run, tideline};

/// An address that nobody listens on.
pub(crate) fn free_address() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("it is bound").to_string()
}

pub(crate) fn start(data: &Path, grpc: &str) -> Server {
    let mut command = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", grpc]);
    command.arg("--data").arg(data);
    Server::spawn(command)
}

#[test]
fn a_tree_is_made_changed_and_looked_at_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let grpc = free_address();
    let server = start(folder.path(), &grpc);
    let url = format!("http://{grpc}");
    let meta = |args: &[&str]| ok(&[&["meta", "--grpc", &url], args].concat());
    let fails = |args: &[&str]| {
        let output = run(&[&["meta", "--grpc", &url], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    meta(&["subtree", "create", "/apps/feed"]);
    meta(&["create", "/apps/feed/limit", "100"]);
    assert_eq!(meta(&["get", "/apps/feed/limit"]), "100");
    meta(&["set", "/apps/feed/limit", "200", "--if-modified", "1"]);
    let late = fails(&["set", "/apps/feed/limit", "300", "--if-modified", "1"]);
    assert!(late.contains("conflict") && late.contains("last written by 2"), "{late}");
    assert_eq!(meta(&["create", "/apps/feed/n", "--sequential"]), "/apps/feed/n0000000000\n");
    let above = fails(&["create", "/apps/x", "value"]);
    assert!(above.contains("above the subtrees"), "{above}");

    server.kill();
    let server = start(folder.path(), &grpc);
    assert_eq!(meta(&["get", "/apps/feed/limit"]), "200");
    let lines = meta(&["ls", "/apps/feed", "--json"]);
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&first["path"], &first["modified"]), (&"/apps/feed/limit".into(), &2.into()));
    let page = |path: &str| server.call("GET", &format!("/v1/meta/nodes?path={path}"), None);
    let (status, limit) = page("/apps/feed/limit");
    assert_eq!((status, &limit["node"]["value"]), (200, &"200".into()), "{limit}");
    let (_, feed) = page("/apps/feed");
    assert_eq!(
        (&feed["subtree"], &feed["children"][0]["bytes"]),
        (&"/apps/feed".into(), &3.into())
    );
    assert_eq!(page("/apps/feed/none").0, 404);
    assert_eq!(page("apps").1["code"], "invalid_argument");
    let (_, all) = server.call("GET", "/v1/meta/subtrees", None);
    assert!(all["subtrees"].as_array().unwrap().iter().any(|one| one["path"] == "/apps/feed"));
    meta(&["delete", "/apps/feed/n0000000000"]);
    let listed = meta(&["subtree", "ls"]);
    let feed = listed.lines().find(|line| line.starts_with("/apps/feed")).unwrap();
    let figures: Vec<&str> = feed.split_whitespace().collect();
    assert_eq!(figures[1..3], ["4", "1"], "seq and nodes: {feed}");
    meta(&["subtree", "rm", "/apps/feed"]);
    assert!(fails(&["get", "/apps/feed/limit"]).contains("does not exist"));
}

/// Requests for the stream of writes: each sees what those before it did.
fn chain(links: u64) -> Vec<v1::ApplyRequest> {
    let path = || "/apps/feed/chain".to_owned();
    let value = || bytes::Bytes::from_static(b"link");
    let one = |op| v1::ApplyRequest { ops: vec![v1::Op { op: Some(op) }], ..Default::default() };
    let create = v1::Create { path: path(), value: value(), ephemeral: false, sequential: false };
    let mut all = vec![one(v1::op::Op::Create(create))];
    // The commit's number before: one out of order would be refused.
    all.extend((1..=links).map(|seq| {
        one(v1::op::Op::Set(v1::Set { path: path(), value: value(), if_modified: Some(seq) }))
    }));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_one_stream_are_applied_in_its_order_and_one_refused_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let grpc = free_address();
    let server = start(folder.path(), &grpc);
    ok(&["meta", "--grpc", &format!("http://{grpc}"), "subtree", "create", "/apps/feed"]);
    let mut requests = chain(2_000);
    let mut again = requests[1_000].clone();
    again.op_id = bytes::Bytes::from_static(&[7; 16]);
    requests.insert(1_500, again);
    let answers = client(&grpc).apply_stream(tokio_stream::iter(requests)).await.unwrap();
    let answers = tokio_stream::StreamExt::collect::<Vec<_>>(answers.into_inner()).await;
    let mut seqs: Vec<_> = answers.into_iter().map(|answer| answer.unwrap()).collect();
    let refused = seqs.remove(1_500).error.unwrap();
    assert_eq!(refused.code, "conflict");
    assert!(refused.detail.contains("last written by"), "{}", refused.detail);
    let seqs: Vec<_> = seqs.iter().map(|answer| answer.seq).collect();
    assert_eq!(seqs, (1..=2_001).collect::<Vec<_>>());
    server.stop();
}

const KEYS: [&str; 3] = ["/t/a", "/t/b", "/t/c"];
const CLIENTS: u64 = 4;
const KILLS: u64 = 3;
/// Calls begun and answered, between two kills.
const BETWEEN_KILLS: u64 = 300;

pub(crate) fn client(grpc: &str) -> MetaServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{grpc}")).expect("an address");
    MetaServiceClient::new(endpoint.connect_lazy())
}

/// One call about one node, as the client sees it.
async fn call(tree: &mut MetaServiceClient<Channel>, path: &str, act: Act) -> Came {
    let path = path.to_owned();
    let bytes = |value: u64| bytes::Bytes::copy_from_slice(&value.to_le_bytes());
    let op = match act {
        Act::Create(value) => v1::op::Op::Create(v1::Create {
            path,
            value: bytes(value),
            ephemeral: false,
            sequential: false,
        }),
        Act::Set(value) => {
            v1::op::Op::Set(v1::Set { path, value: bytes(value), if_modified: None })
        }
        Act::Delete => v1::op::Op::Delete(v1::Delete { path, if_modified: None }),
        Act::Read => {
            return match tree.get(v1::GetRequest { path }).await {
                Ok(found) => Came::Found(found.into_inner().node.map(|node| {
                    u64::from_le_bytes(node.value[..].try_into().expect("a number was written"))
                })),
                Err(_) => Came::Unknown,
            };
        }
    };
    let request = v1::ApplyRequest {
        ops: vec![v1::Op { op: Some(op) }],
        session: 0,
        op_id: bytes::Bytes::new(),
    };
    match tree.apply(request).await {
        Ok(_) => Came::Done,
        Err(status) => match status.code() {
            tonic::Code::NotFound | tonic::Code::FailedPrecondition => Came::Refused,
            _ => Came::Unknown,
        },
    }
}

/// Calls until `stop` says so; what each key's calls came to.
async fn work(
    grpc: String,
    seed: u64,
    clock: Arc<AtomicU64>,
    stop: Arc<AtomicU64>,
) -> Vec<(usize, Call)> {
    let (mut tree, mut rng, mut calls) = (client(&grpc), Rng::new(seed), Vec::new());
    while stop.load(Ordering::SeqCst) == 0 {
        let key = rng.below(KEYS.len() as u64) as usize;
        let value = (seed << 32) + calls.len() as u64 + 1;
        let act = match rng.below(6) {
            0 => Act::Create(value),
            1 => Act::Set(value),
            2 => Act::Delete,
            _ => Act::Read,
        };
        let start = clock.fetch_add(1, Ordering::SeqCst);
        let came = call(&mut tree, KEYS[key], act).await;
        let end = clock.fetch_add(1, Ordering::SeqCst);
        if came == Came::Unknown {
            // Down: a few unknown calls are enough.
            tokio::time::sleep(Duration::from_millis(150)).await;
            if act == Act::Read {
                continue;
            }
        }
        calls.push((key, Call { start, end, act, came }));
    }
    calls
}

/// Follows the subtree over every kill, until it is at `through`.
async fn follow(grpc: String, through: tokio::sync::watch::Receiver<Option<u64>>) -> Follower {
    let (mut tree, mut follower) = (client(&grpc), Follower::default());
    loop {
        let after = follower.position().map(|at| at.into());
        let sent = tree.observe(v1::ObserveRequest { path: "/t".into(), after }).await;
        let mut events = match sent {
            Ok(events) => events.into_inner(),
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        loop {
            let at = follower.position().map(|at| at.seq.0);
            if at.is_some() && at == *through.borrow() {
                return follower;
            }
            let event = tokio::time::timeout(Duration::from_millis(300), events.message()).await;
            let event = match event {
                Err(_) => continue,
                Ok(Ok(Some(event))) => event.event,
                Ok(_) => break,
            };
            use v1::observe_response::Event as Sent;
            let event = match event.expect("it says something") {
                Sent::Resync(_) => continue,
                Sent::Chunk(bytes) => Event::Chunk(bytes),
                Sent::Frame(bytes) => Event::Frame(bytes),
            };
            follower.take(&event).expect("an observer is sent what fits");
        }
        follower.disconnected();
    }
}

#[test]
fn clients_at_once_see_one_tree_that_does_one_thing_at_a_time_also_when_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let grpc = free_address();
    let mut server = start(folder.path(), &grpc);
    ok(&["meta", "--grpc", &format!("http://{grpc}"), "subtree", "create", "/t"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let (clock, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (1..=CLIENTS)
        .map(|seed| runtime.spawn(work(grpc.clone(), seed, clock.clone(), stop.clone())))
        .collect();
    let (end, through) = tokio::sync::watch::channel(None);
    let observer = runtime.spawn(follow(grpc.clone(), through));
    let busy = |until: u64| {
        while clock.load(Ordering::SeqCst) < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for kill in 1..=KILLS {
        busy(kill * BETWEEN_KILLS);
        server.kill();
        server = start(folder.path(), &grpc);
    }
    busy((KILLS + 1) * BETWEEN_KILLS);
    stop.store(1, Ordering::SeqCst);
    let mut keys: BTreeMap<usize, Vec<Call>> = BTreeMap::new();
    for worker in workers {
        for (key, call) in runtime.block_on(worker).unwrap() {
            keys.entry(key).or_default().push(call);
        }
    }
    for (key, calls) in &keys {
        let known = calls.iter().filter(|call| call.came != Came::Unknown).count();
        assert!(known > 20, "{}: hardly anything was answered", KEYS[*key]);
        assert!(is_linearizable(calls), "{}: {calls:?}", KEYS[*key]);
    }
    let mut tree = client(&grpc);
    let at = runtime.block_on(tree.sync(v1::SyncRequest { path: "/t".into() })).unwrap();
    end.send_replace(Some(at.into_inner().at.expect("it is somewhere").seq));
    let follower = runtime.block_on(observer).unwrap();
    let list = v1::ListRequest { path: "/t".into(), ..v1::ListRequest::default() };
    let listed = runtime.block_on(tree.list(list)).unwrap().into_inner().children;
    let copy = follower.tree().expect("it is at the end");
    let held: Vec<(String, u64)> = copy
        .nodes()
        .filter(|(path, _)| !path.is_root())
        .map(|(path, node)| (format!("/t{}", path.as_str()), node.modified.0))
        .collect();
    let listed: Vec<(String, u64)> = listed
        .into_iter()
        .map(|child| (child.path, child.node.map_or(0, |node| node.modified)))
        .collect();
    assert_eq!(held, listed, "an observer over {KILLS} kills");
    drop(server);
}
