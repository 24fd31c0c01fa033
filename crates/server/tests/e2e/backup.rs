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
fn a_place_in_a_source_that_went_on_is_no_place_in_what_was_restored() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let record = |server: &Server, id: &str| {
        let mark = json!({ "kind": "video", "id": id, "position_ms": 1000 });
        assert_eq!(server.call("POST", "/v1/users/ann/history", Some(mark)).0, 200);
    };
    let partition = |server: &Server| {
        let of = |n: u16| format!("/v1/topics/history/records?partition={n}");
        let held = |n: &u16| server.get(&of(*n)).to_string().contains("ann");
        (0..64).find(held).map(of).expect("ann's outcomes are in a partition")
    };
    // The place of the last record, in the form that a reader keeps.
    let last = |server: &Server, of: &str| {
        let lines = server.get(of).as_str().expect("lines").to_owned();
        let line = lines.lines().rfind(|line| line.contains("\"seq\"")).expect("a record");
        let record: Value = serde_json::from_str(line).expect("JSON");
        format!("{}-{}-{}", record["incarnation"], record["epoch"], record["seq"]).replace('"', "")
    };
    let server = Server::start(&dir.path().join("data"), &[]);
    record(&server, "before");
    let of = partition(&server);
    let common = last(&server, &of);
    let backup = path("backup");
    server.ok(&["backup", &backup]);
    // The source goes on, in the epoch after its next start.
    server.kill();
    let server = Server::start(&dir.path().join("data"), &[]);
    record(&server, "in the source");
    let rest = format!("{of}&from=after:{common}");
    let of_source = last(&server, &rest);
    drop(server);

    for copy in ["one", "another"] {
        ok(&["restore", &backup, "--data", &path(copy)]);
    }
    let restored = ["one", "another"].map(|copy| {
        let server = Server::start(&dir.path().join(copy), &[]);
        record(&server, "in the copy");
        let of_copy = last(&server, &rest);
        assert_ne!(of_source, of_copy);
        let (status, told) = server.call("GET", &format!("{of}&from=after:{of_source}"), None);
        assert_eq!((status, &told["code"]), (409, &json!("diverged")), "{told}");
        let shown = server.get(&rest).to_string();
        assert!(shown.contains("in the copy") && !shown.contains("before"), "{shown}");
        of_copy
    });
    assert_ne!(restored[0], restored[1]);
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
