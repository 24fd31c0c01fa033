//! Comments of a video through the real program: a file in, reads, a kill, the
//! same reads.

use std::fmt::Write as _;

use serde_json::json;

use crate::program::{Server, run};

fn file(comments: u32) -> String {
    let mut text = String::from(r#"<?xml version="1.0" encoding="UTF-8"?><i><chatid>9</chatid>"#);
    for n in 0..comments {
        let (mode, pool) = if n % 50 == 0 { (5, 1) } else { (1, 0) };
        writeln!(
            text,
            r#"<d p="{}.{:03},{mode},25,{},1420018447,{pool},a6216d9,{}">comment {n} &amp; more</d>"#,
            n / 2,
            n % 1000,
            n * 10,
            1_000_000 + n
        )
        .expect("memory");
    }
    text + r#"<d p="x,1,25,0,1,0,a,1">no time</d></i>"#
}

#[test]
fn a_file_of_comments_is_taken_once_and_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, path) = (folder.path().join("data"), folder.path().join("c.xml"));
    std::fs::write(&path, file(1_200)).expect("written");
    let path = path.to_str().expect("text");
    let server = Server::start(&data, &["--set", "danmaku.limit=1500"]);
    let import = ["import", "danmaku", "--video", "v", "--json", path];
    let told: serde_json::Value = serde_json::from_str(&server.ok(&import)).expect("a line");
    assert_eq!((&told["format"], &told["read"]), (&json!("xml"), &json!(1_201)));
    assert_eq!((&told["taken"], &told["dropped"]), (&json!(1_200), &json!(1)));
    let again: serde_json::Value = serde_json::from_str(&server.ok(&import)).expect("a line");
    assert_eq!((&again["taken"], &again["duplicates"]), (&json!(0), &json!(1_200)));
    let strict = ["import", "danmaku", "--video", "v", "--strict", path];
    assert_eq!(run(&server.at(&strict)).status.code(), Some(1));

    let post = json!({"text": "mine", "progress_ms": 5});
    let (status, posted) = server.call("POST", "/v1/videos/v/danmaku", Some(post));
    assert_eq!((status, &posted["state"]), (201, &json!("shown")));
    let (view, all) = ("/v1/videos/v/danmaku/view", "/v1/videos/v/danmaku.json");
    let before = (server.get(view), server.get(all));
    assert_eq!((&before.0["total"], &before.0["shown"]), (&json!(1_201), &json!(1_201)));
    assert_eq!(before.1["items"].as_array().expect("a list").len(), 1_201);
    server.kill();
    let server = Server::start(&data, &["--set", "danmaku.limit=1500"]);
    let after = (server.get(view), server.get(all));
    assert_eq!(after.1, before.1);
    assert_eq!(
        (&after.0["total"], &after.0["counted"]),
        (&before.0["total"], &before.0["counted"])
    );
    for (format, kept, changed, dropped) in [
        ("json", 1_201, 0, 0),
        // What was posted here was not sent at a whole second.
        ("xml", 1_200, 1, 0),
        ("protobuf", 1_200, 1, 0),
    ] {
        let out = folder.path().join(format);
        let out = out.to_str().expect("text");
        let export = ["export", "danmaku", "--video", "v", "--format", format, "--out", out];
        let told = server.ok(&[&export[..], &["--json"]].concat());
        let told: serde_json::Value = serde_json::from_str(&told).expect("a line");
        let sum = told["kept"].as_u64().expect("a count") + told["changed"].as_u64().expect("one");
        assert_eq!((sum, &told["dropped"]), (kept + changed, &json!(dropped)), "{format}: {told}");
        let import = ["import", "danmaku", "--video", format, "--json", out];
        let told: serde_json::Value = serde_json::from_str(&server.ok(&import)).expect("a line");
        assert_eq!(told["taken"], 1_201, "{format}: {told}");
    }
    let out = folder.path().join("v.ass");
    let ass = ["export", "danmaku", "--video", "v", "--format", "ass", "--out"];
    let strict = [&ass[..], &[out.to_str().expect("text"), "--strict"]].concat();
    assert_eq!(run(&server.at(&strict)).status.code(), Some(1), "times are rounded");
    assert!(std::fs::read(&out).expect("written").starts_with("\u{feff}[Script Info]".as_bytes()));
    assert_eq!(run(&server.at(&["export", "danmaku"])).status.code(), Some(2));
    let (status, _) =
        server.call("POST", "/v1/videos/v/danmaku:import?format=doc", Some(json!([])));
    assert_eq!(status, 400);
    assert_eq!(server.stop(), Some(0));
    let checked = run(&["check", data.to_str().expect("text"), "--json"]);
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("a line");
    assert_eq!((&told["videos"], &told["comments"]), (&json!(4), &json!(4 * 1_201)));
}

#[test]
fn flags_of_many_viewers_are_imported_by_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, path) = (folder.path().join("data"), folder.path().join("flags.ndjson"));
    let server = Server::start(&data, &[]);
    let mut text = String::new();
    for n in 0..300 {
        let flags = json!({"default": 4, "flags": [[n.to_string(), 11]]});
        let line = json!({"user": format!("u{n}"), "video": "v", "segment": 1, "flags": flags});
        writeln!(text, "{line}").expect("memory");
    }
    text += "{\"user\":\"u\"}\n\n";
    std::fs::write(&path, text).expect("written");
    let import = ["import", "flags", "--json", path.to_str().expect("text")];
    let told: serde_json::Value = serde_json::from_str(&server.ok(&import)).expect("a line");
    assert_eq!((&told["taken"], &told["rejected"]), (&json!(300), &json!(1)));
    let strict = [&import[..], &["--strict"]].concat();
    let output = run(&server.at(&strict));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("flags.ndjson: line 301: missing"));
    assert_eq!(server.stop(), Some(0));
}
