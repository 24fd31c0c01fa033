//! A topic is derived from another, followed from a second process, and both
//! are killed.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::program::{Server, run, tideline};

const OPERATOR: &str =
    r#"{"kind":"video","filter":"value.finished","key":"value.id","counter":{"add":"1"}}"#;

fn watch(server: &Server, user: &str, id: &str, finished: bool) {
    let mark = json!({ "kind": "video", "id": id, "finished": finished });
    let (status, answer) = server.call("POST", &format!("/v1/users/{user}/history"), Some(mark));
    assert_eq!(status, 200, "{answer}");
}

/// The records of a topic, as (key, value), in an order that says nothing.
fn tail(server: &Server, topic: &str) -> Vec<(Value, Value)> {
    let lines = server.ok(&["topic", "tail", topic, "--from", "earliest", "--no-follow"]);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let mut all: Vec<_> = lines.map(|r| (r["key"].clone(), r["value"].clone())).collect();
    all.sort_by_key(|(key, _)| key.to_string());
    all
}

#[test]
fn a_derived_topic_is_the_same_after_both_are_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    watch(&server, "ann", "a", true);
    watch(&server, "ann", "b", false);
    let declare = |server: &Server, operator: &str| {
        server.ok(&["topic", "create", "ended", "--source", "history", "--operator", operator]);
    };
    declare(&server, OPERATOR);
    watch(&server, "bob", "c", true);
    let one = |id: &str, n: i64| (json!(id), json!(json!({ "add": n }).to_string()));
    assert_eq!(tail(&server, "ended"), [one("a", 1), one("c", 1)]);

    // Another operator counts from now on, and what was read stays.
    declare(&server, &OPERATOR.replace("\"1\"", "\"10\""));
    watch(&server, "cal", "d", true);
    let all = [one("a", 1), one("c", 1), one("d", 10)];
    assert_eq!(tail(&server, "ended"), all);
    server.kill();

    let server = Server::start(&data, &[]);
    assert_eq!(tail(&server, "ended"), all);
    let kept = server.meta(&["get", "/tideline/topics/ended", "--json"]);
    assert!(kept.contains("\"modified\":2"), "declared, and declared again: {kept}");
    let described = server.ok(&["topic", "describe", "ended"]);
    assert!(described.contains("derived from history"), "{described}");
    assert!(described.contains("\"filter\":\"value.finished\""), "{described}");
    server.ok(&["topic", "rm", "ended"]);
    assert_eq!(server.call("GET", "/v1/topics/ended", None).0, 404);
    server.kill();
    gone_for_good(&data);
}

fn gone_for_good(data: &Path) {
    let server = Server::start(data, &[]);
    assert_eq!(server.call("GET", "/v1/topics/ended", None).0, 404);
}

#[test]
fn what_declares_no_topic_says_why() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let why = |topic: &str, source: &str, operator: &str| {
        let create = ["topic", "create", topic, "--source", source, "--operator", operator];
        let output = run(&server.at(&create));
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(why("x", "nothing", "{}").contains("topic nothing cannot be derived from"));
    assert!(why("x", "history", "{").contains("--operator"));
    assert!(why("x", "history", r#"{"filter":"value."}"#).contains("operator: filter:"));
    assert!(why("history", "history", "{}").contains("cannot be derived from"));
    let (status, answer) =
        server.call("PUT", "/v1/topics/x", Some(json!({ "source": "history", "partitions": 3 })));
    assert_eq!(status, 400);
    assert_eq!(answer["detail"], "partitions, retention_hours: are those of the source");
}

/// Starts a follower of the derived topic.
fn follow(server: &Server, into: &Path) -> Child {
    let args = ["topic", "follow", "ended", "--into", into.to_str().expect("text")];
    let mut command = tideline(&server.at(&args));
    command.stderr(Stdio::null()).spawn().expect("the program was built")
}

/// Lines of the follower's file that are records.
fn records(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let is_record = |line: &&str| line.contains("\"seq\":") && line.ends_with('}');
    text.lines().filter(is_record).map(str::to_owned).collect()
}

#[test]
fn a_follower_has_each_record_once_whoever_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (data, file) = (dir.path().join("data"), dir.path().join("ended.ndjson"));
    let mut server = Server::start(&data, &[]);
    let create = ["topic", "create", "ended", "--source", "history", "--operator", OPERATOR];
    server.ok(&create);
    let mut follower = follow(&server, &file);
    let mut said = 0;
    for round in 0..6 {
        for _ in 0..20 {
            said += 1;
            watch(&server, &format!("u{}", said % 7), &format!("v{said}"), said % 3 != 0);
        }
        if round % 2 == 0 {
            // It has taken some of it, or is about to.
            let before = records(&file).len();
            wait_until(|| records(&file).len() > before.min(said / 2));
            follower.kill().expect("it runs");
            follower.wait().expect("it ends");
        } else {
            server.kill();
            server = Server::start(&data, &[]);
            follower.kill().expect("it runs");
            follower.wait().expect("it ends");
        }
        follower = follow(&server, &file);
    }
    let tail = ["topic", "tail", "ended", "--from", "earliest", "--no-follow"];
    let mut all: Vec<String> = server.ok(&tail).lines().map(str::to_owned).collect();
    assert_eq!(all.len(), said - said / 3);
    wait_until(|| records(&file).len() >= all.len());
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    let mut seen = records(&file);
    all.sort();
    seen.sort();
    assert_eq!(seen, all, "each once, as a reader sees them");
}

/// On one core one thread takes turns at everything: what waits for the tree
/// must wait on another.
#[test]
fn on_one_core_a_topic_is_derived_and_there_after_a_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data").display().to_string();
    let start = || {
        let program = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
        let mut command = std::process::Command::new("taskset");
        command.args(["-c", "0"]).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(["--data", &data]);
        Server::spawn(command)
    };
    let server = start();
    watch(&server, "ann", "a", true);
    server.ok(&["topic", "create", "ended", "--source", "history", "--operator", OPERATOR]);
    server.kill();
    let server = start();
    assert_eq!(tail(&server, "ended").len(), 1);
    server.kill();
}

fn wait_until(is: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is() {
        assert!(std::time::Instant::now() < end, "it does not come to be");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
