//! The metadata tree as who runs the server sees it: what `tideline check` finds of its rows, what
//! `/metrics` says of it, and what each of its settings does.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tideline_meta::cold;
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_store::{Commit, Op, Table, TableName};
use tideline_types::{PartitionId, Seq};
use tideline_wire::meta_v1 as v1;

use crate::meta::client;
use crate::program::{Server, ok, run, tideline};

fn wait_until(is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "it does not come to be");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn start(data: &Path, settings: &[(&str, &str)]) -> Server {
    let mut command = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    command.arg("--data").arg(data).envs(settings.iter().copied());
    Server::spawn(command)
}

/// A gauge of the tree, from `/metrics`.
fn gauge(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").as_str().unwrap().to_owned();
    let name = format!("tideline_meta_{name} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

#[test]
fn a_check_reads_the_tree_at_rest_and_names_each_subtree_that_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (data, text) = (dir.path().join("data"), dir.path().join("data").display().to_string());
    let server = Server::start(&data, &[]);
    for root in ["/apps/feed", "/apps/shop", "/apps/news", "/apps/well"] {
        server.meta(&["subtree", "create", root]);
        server.meta(&["create", &format!("{root}/limit"), "100"]);
    }
    assert_eq!(server.stop(), Some(0));
    let sound = ok(&["check", &text]);
    // The top, three that the queue keeps, and these four.
    assert!(sound.contains("meta    8 subtrees,"), "{sound}");
    assert!(sound.contains(" is sound"), "{sound}");

    damage(&data);
    let found = run(&["check", &text]);
    assert_eq!(found.status.code(), Some(1));
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    let wrong: Vec<&str> = said.lines().filter(|line| line.starts_with("WRONG")).collect();
    assert_eq!(wrong.len(), 3, "{said}");
    for (root, what) in [
        ("/apps/feed", "checksum"),
        ("/apps/shop", "a snapshot without its chunks"),
        ("/apps/news", "is at rest at 1000000 of epoch"),
    ] {
        let named = |line: &&&str| line.contains(&format!("subtree {root} "));
        let line = wrong.iter().find(named).unwrap_or_else(|| panic!("{root}: {said}"));
        assert!(line.contains(what), "{line}");
    }
    assert!(said.contains("meta    6 subtrees,"), "the others are read: {said}");
}

/// One snapshot with a byte that is another, one that is gone, and one of a place that the log
/// never came to.
fn damage(data: &Path) {
    let table = LsmTable::open(&data.join("tables"), &LsmOptions::default()).unwrap();
    let mut rows = Vec::new();
    let mut keep = |row| {
        rows.push(row);
        true
    };
    table.walk(TableName::Meta, b"meta/lane/", &mut keep).unwrap();
    let life = |root: &str| {
        let names = |value: &[u8]| value.windows(root.len()).any(|part| part == root.as_bytes());
        let header = rows.iter().find(|row| row.sort_key[..] == [0] && names(&row.value));
        header.unwrap_or_else(|| panic!("{root} is not at rest")).partition_key.clone()
    };
    let chunk = |root: &str| {
        let life = life(root);
        let of = rows.iter().filter(|row| row.partition_key == life);
        of.into_iter().find(|row| row.sort_key[0] == 1).unwrap()
    };
    let commit = |partition_key: &Bytes, op: Op| {
        let (partition_key, ops) = (partition_key.clone(), vec![op]);
        table.commit(&[Commit { table: TableName::Meta, partition_key, ops }]).unwrap();
    };
    let feed = chunk("/apps/feed");
    let mut value = feed.value.to_vec();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    let put = Op::Put { sort_key: feed.sort_key.clone(), value: value.into() };
    commit(&feed.partition_key, put);
    let shop = chunk("/apps/shop");
    commit(&shop.partition_key, Op::Delete { sort_key: shop.sort_key.clone() });

    let mut moved = 0;
    for partition in (0..16).map(PartitionId) {
        // Those that are damaged are no longer read.
        for (root, mut image) in cold::load(&table, partition).unwrap_or_default() {
            if root.as_str() == "/apps/news" {
                image.log = Seq(1_000_000);
                cold::write(&table, partition, &root, &image).unwrap();
                moved += 1;
            }
        }
    }
    assert_eq!(moved, 1);
    table.sync().unwrap();
}

#[test]
fn metrics_say_what_the_tree_holds_and_who_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let (subtrees, nodes) = (gauge(&server, "subtrees"), gauge(&server, "nodes"));
    let bytes = gauge(&server, "bytes");
    assert_eq!(subtrees, 4, "the top, and what the queue keeps");
    assert_eq!((gauge(&server, "sessions"), gauge(&server, "observers")), (0, 0));

    server.meta(&["subtree", "create", "/a"]);
    server.meta(&["create", "/a/x", "value"]);
    server.meta(&["create", "/a/y", "value"]);
    assert_eq!(gauge(&server, "subtrees"), subtrees + 1);
    // Its declaration above, and two below its root.
    assert_eq!(gauge(&server, "nodes"), nodes + 3);
    assert!(gauge(&server, "bytes") > bytes + 10);
    assert!(gauge(&server, "rest_bytes") > 10, "it is in the log alone");

    let mut watch = tideline(&["meta", "--grpc", &server.grpc, "watch", "/a"]);
    let mut watch = watch.stdout(Stdio::null()).spawn().unwrap();
    wait_until(|| gauge(&server, "observers") == 1);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let mut tree = client(server.grpc.trim_start_matches("http://"));
    let (path, op_id) = ("/a".to_owned(), Bytes::new());
    let open = v1::OpenSessionRequest { path: path.clone(), lease_ms: 60_000, op_id };
    let session = runtime.block_on(tree.open_session(open)).unwrap().into_inner().session;
    assert_eq!(gauge(&server, "sessions"), 1);
    runtime.block_on(tree.close_session(v1::CloseSessionRequest { path, session })).unwrap();
    assert_eq!(gauge(&server, "sessions"), 0);
    watch.kill().unwrap();
    watch.wait().unwrap();
    wait_until(|| {
        // One that is gone is noticed when there is something to tell it.
        server.meta(&["set", "/a/x", "other"]);
        gauge(&server, "observers") == 0
    });
    server.meta(&["subtree", "rm", "/a"]);
    assert_eq!((gauge(&server, "subtrees"), gauge(&server, "nodes")), (subtrees, nodes));
}

#[test]
fn each_setting_of_the_tree_does_what_it_says() {
    let defaults = include_str!("../../../../config.default.toml");
    let defaults: toml::Table = toml::from_str(defaults).unwrap();
    let names: Vec<&String> = defaults["meta"].as_table().unwrap().keys().collect();
    assert_eq!(names, ["partitions", "rest_after_ms", "rest_bytes"], "another needs its test here");

    const PARTITIONS: &str = "TIDELINE__META__PARTITIONS";
    const REST_BYTES: &str = "TIDELINE__META__REST_BYTES";
    const REST_AFTER: &str = "TIDELINE__META__REST_AFTER_MS";
    const NEVER: &str = "1000000000";
    let dir = tempfile::tempdir().unwrap();
    let partitions = |server: &Server| server.get("/v1/topics/meta")["partitions"].clone();

    // So many logs; another number changes nothing once there is data.
    let server = start(dir.path(), &[(PARTITIONS, "3"), (REST_BYTES, "2000"), (REST_AFTER, NEVER)]);
    assert_eq!(partitions(&server), 3);
    // What has more bytes than that comes to rest, and what has fewer does not.
    server.meta(&["subtree", "create", "/small"]);
    server.meta(&["create", "/small/x", "1"]);
    server.meta(&["subtree", "create", "/large"]);
    server.meta(&["create", "/large/x", &"v".repeat(5_000)]);
    wait_until(|| gauge(&server, "rest_bytes") < 5_000);
    assert!(gauge(&server, "rest_bytes") > 0);
    server.kill();

    // What is older than that comes to rest, however few bytes it has.
    let server = start(dir.path(), &[(PARTITIONS, "5"), (REST_BYTES, NEVER), (REST_AFTER, "1")]);
    assert_eq!(partitions(&server), 3);
    server.meta(&["set", "/small/x", "2"]);
    wait_until(|| gauge(&server, "rest_bytes") == 0);
    server.kill();

    let mut none = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    none.arg("--data").arg(dir.path()).env(PARTITIONS, "0");
    let refused = none.output().unwrap();
    assert!(!refused.status.success());
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("meta.partitions"), "{why}");
}
