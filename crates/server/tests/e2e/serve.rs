//! Starting and stopping.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::program::{Server, tideline};

#[test]
fn the_three_commands_that_a_start_prints_work_as_printed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.current_dir(&root).arg("--data").arg(dir.path().join("data"));
    let server = Server::spawn(command);
    let start = server.banner.iter().position(|line| line.starts_with("Try")).expect("it invites");
    let commands: Vec<_> = server.banner[start + 1..]
        .iter()
        .map(|line| line.trim())
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(commands.len(), 3, "{:?}", server.banner);
    let shell = |command: &str| {
        let output =
            Command::new("sh").args(["-c", command]).current_dir(&root).output().expect("a shell");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {error}");
        String::from_utf8(output.stdout).expect("text")
    };
    let imported = shell(commands[0]);
    assert!(imported.contains("accepted") && imported.contains(" 0 rejected"), "{imported}");
    let listed = shell(commands[1]);
    assert!(listed.contains("\"items\":[{") && listed.contains("title"), "{listed}");
    // A tail goes on for ever; here it ends after a few records.
    assert!(commands[2].contains("topic tail history"), "{}", commands[2]);
    let tailed = shell(&format!("{} --limit 3", commands[2]));
    assert_eq!(tailed.lines().count(), 3);
    for line in tailed.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(record["seq"].is_number() || record["seq"].is_string(), "{line}");
    }
}

#[test]
fn a_folder_serves_one_server_at_a_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), &[]);
    let second = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data"])
        .arg(dir.path())
        .output()
        .expect("the program was built");
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"));
    drop(server);
}

#[test]
fn a_server_that_is_told_to_stop_stops_well_and_keeps_everything() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), &[]);
    let mark = json!({ "kind": "video", "id": "7", "position_ms": 1000, "duration_ms": 9000 });
    let (status, answer) = server.call("POST", "/v1/users/ann/history?ack=fast", Some(mark));
    assert_eq!((status, &answer["accepted"]), (200, &json!(1)), "{answer}");
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(dir.path(), &[]);
    let list = server.get("/v1/users/ann/history");
    assert_eq!(list["items"][0]["id"], "7");
}

#[test]
fn a_clear_holds_after_a_kill_against_marks_from_before_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), &[]);
    let marks = json!([{ "kind": "video", "id": "7" }, { "kind": "video", "id": "8" }]);
    let (status, answer) = server.call("POST", "/v1/users/ann/history", Some(marks));
    assert_eq!((status, &answer["accepted"]), (200, &json!(2)), "{answer}");
    let before = server.get("/v1/users/ann/history")["items"][0]["event_ms"].clone();
    let (status, answer) = server.call("DELETE", "/v1/users/ann/history?all=true", None);
    assert_eq!((status, &answer["deleted"]), (200, &json!(2)), "{answer}");
    server.kill();
    let server = Server::start(dir.path(), &[]);
    let nothing = json!({ "items": [], "next_cursor": null });
    assert_eq!(server.get("/v1/users/ann/history"), nothing);
    assert_eq!(server.get("/v1/users/ann/history/count"), json!({ "count": 0 }));
    let late = json!({ "kind": "video", "id": "7", "event_ms": before });
    let (status, answer) = server.call("POST", "/v1/users/ann/history", Some(late));
    assert_eq!((status, &answer["stale"]), (200, &json!(1)), "{answer}");
    assert_eq!(server.get("/v1/users/ann/history"), nothing);
}

#[test]
fn everybody_may_do_everything_on_loopback_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = tideline(&["serve", "--http", "0.0.0.0:0", "--set", "auth.mode=none", "--data"])
        .arg(dir.path())
        .stdin(Stdio::null())
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("loopback"));
}

#[test]
fn a_demo_has_something_to_look_at() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), &["--demo"]);
    let list = server.get("/v1/users/demo/history?limit=3&enrich=true");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3), "{list}");
    let clip = server.get("/v1/videos/tide/danmaku/view");
    assert_eq!((&clip["shown"], &clip["duration_ms"]), (&json!(48), &json!(60_000)), "{clip}");
    let (status, item) = server.call("GET", "/v1/items/video/tide", None);
    assert_eq!((status, &item["owner"]), (200, &json!("demo")), "{item}");
}
