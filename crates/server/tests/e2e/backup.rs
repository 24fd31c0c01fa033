//! A copy of a running server, and a folder made from it.

use serde_json::{Value, json};

use crate::program::{Server, ok, run};

#[test]
fn a_backup_of_a_running_server_holds_what_was_acknowledged_before_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let record = |user: u32, id: u32| {
        let path = format!("/v1/users/u{user}/history");
        let mark = json!({ "kind": "video", "id": id.to_string(), "position_ms": 1000 });
        let (status, answer) = server.call("POST", &path, Some(mark));
        assert_eq!((status, &answer["accepted"]), (200, &json!(1)), "{answer}");
    };
    for user in 0..20 {
        record(user, 1);
    }
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let backup = path("backup");
    server.ok(&["backup", &backup]);
    record(0, 2);
    // A folder that holds something is not written into.
    assert_eq!(run(&server.at(&["backup", &backup])).status.code(), Some(1));
    drop(server);

    ok(&["check", &backup]);
    let restored = path("restored");
    ok(&["restore", &backup, "--data", &restored]);
    assert_eq!(run(&["restore", &backup, "--data", &restored]).status.code(), Some(1));
    let checked: Value = serde_json::from_str(&ok(&["check", &restored, "--json"])).expect("JSON");
    assert_eq!(checked["ok"], true, "{checked}");
    let server = Server::start(&dir.path().join("restored"), &[]);
    for user in 0..20 {
        let list = server.get(&format!("/v1/users/u{user}/history"));
        assert_eq!(list["items"][0]["id"], "1", "user {user}");
    }
    let mark = json!({ "kind": "video", "id": "3" });
    let (status, _) = server.call("POST", "/v1/users/u0/history", Some(mark));
    assert_eq!(status, 200, "and it goes on from there");
}

#[test]
fn a_check_needs_the_folder_for_itself_and_finds_a_flipped_bit() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    for id in 0..50 {
        let mark = json!({ "kind": "video", "id": id.to_string(), "device": "flip-me" });
        server.call("POST", "/v1/users/ann/history", Some(mark));
    }
    let text = data.to_str().expect("text");
    assert_eq!(run(&["check", text]).status.code(), Some(1), "it is in use");
    assert_eq!(server.stop(), Some(0));
    ok(&["check", text]);

    // Flip one bit in the middle of the largest file of the log.
    let mut files = Vec::new();
    let mut folders = vec![data.join("log")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let flipped = files.iter().find_map(|path| {
        let mut bytes = std::fs::read(path).expect("a file");
        let at = bytes.windows(7).position(|window| window == b"flip-me")?;
        bytes[at] ^= 1;
        std::fs::write(path, bytes).expect("a file");
        Some(path)
    });
    assert!(flipped.is_some(), "the log holds what was sent");
    let output = run(&["check", text]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}
