//! Real files, imported: every read equals what a straightforward script
//! computes from the file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::{Server, run, tideline};

/// A ratings file of `users`, in the format of MovieLens: many rows of a user
/// share their instant, and one user has far more than the others.
fn ratings(users: u64) -> String {
    let mut text = String::from("userId,movieId,rating,timestamp\n");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for user in 1..=users {
        let rows = if user == 7 { 1_500 } else { 1 + next(60) };
        let mut second = 789_652_009 + next(600_000_000);
        let mut movie = 1 + next(9);
        for _ in 0..rows {
            writeln!(text, "{user},{movie},{}.{},{second}", next(5), next(2) * 5).expect("memory");
            movie += 1 + next(40);
            second += if next(3) == 0 { 1 + next(90_000) } else { 0 };
        }
    }
    text
}

/// Each user's (time, id), newest first: what the list must be.
fn expected(text: &str) -> BTreeMap<String, Vec<(i64, String)>> {
    let mut users: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        let seconds: i64 = cells[3].parse().expect("a number");
        users.entry(cells[0].into()).or_default().push((seconds * 1000, cells[1].into()));
    }
    for rows in users.values_mut() {
        rows.sort_by(|a, b| b.cmp(a));
    }
    users
}

fn rows(items: &Value) -> Vec<(i64, String)> {
    let items = items.as_array().expect("a list").iter();
    items
        .map(|item| {
            assert_eq!(item["kind"], "video");
            let id = item["id"].as_str().expect("an id").to_owned();
            (item["event_ms"].as_i64().expect("a time"), id)
        })
        .collect()
}

fn by_cursor(server: &Server, user: &str) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    let mut path = format!("/v1/users/{user}/history?limit=37");
    loop {
        let page = server.get(&path);
        all.extend(rows(&page["items"]));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/users/{user}/history?limit=37&cursor={cursor}"),
            None => return all,
        }
    }
}

fn by_page(server: &Server, user: &str, total: usize) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    for number in 1.. {
        let page = server.get(&format!("/v1/users/{user}/history?limit=100&page={number}"));
        assert_eq!(page["total"], total, "user {user}, page {number}");
        let items = rows(&page["items"]);
        if items.is_empty() {
            break;
        }
        all.extend(items);
    }
    all
}

fn compare(server: &Server, users: &BTreeMap<String, Vec<(i64, String)>>) {
    for (user, rows) in users {
        assert_eq!(&by_cursor(server, user), rows, "user {user} by cursor");
        assert_eq!(&by_page(server, user, rows.len()), rows, "user {user} by page");
        let count = server.get(&format!("/v1/users/{user}/history/count"));
        assert_eq!(count["count"], rows.len(), "user {user}");
        for (event_ms, id) in rows.iter().step_by(rows.len().div_ceil(20)) {
            let point = server.get(&format!("/v1/users/{user}/progress/video/{id}"));
            assert_eq!((&point["found"], &point["event_ms"]), (&json!(true), &json!(event_ms)));
        }
    }
    let nobody = server.get("/v1/users/nobody/history");
    assert_eq!(nobody["items"], json!([]));
}

const FOR_EVER: [&str; 4] =
    ["--set", "history.kinds.video.retention_days=0", "--set", "history.kinds.video.max_records=0"];

fn import(server: &Server, path: &Path) -> Value {
    let path = path.to_str().expect("text");
    let args = ["import", "history", "--format", "movielens", "--json", path];
    serde_json::from_str(&server.ok(&args)).expect("JSON")
}

/// The document of each user in an export, whose order of users means nothing.
fn by_user(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a file");
    let mut users: Vec<_> = text.split("{\"tideline_export\"").skip(1).map(str::to_owned).collect();
    users.sort();
    users
}

#[test]
fn an_imported_file_reads_back_whole_after_kill_a_second_import_and_an_export() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = ratings(40);
    let users = expected(&text);
    let file = dir.path().join("ratings.csv");
    std::fs::write(&file, &text).expect("a file");
    let lines = text.lines().count() - 1;

    let data = dir.path().join("data");
    let server = Server::start(&data, &FOR_EVER);
    let summary = import(&server, &file);
    assert_eq!(summary["total"]["accepted"], lines, "{summary}");
    assert_eq!(summary["total"]["sent"], lines, "{summary}");
    compare(&server, &users);

    server.kill();
    let server = Server::start(&data, &FOR_EVER);
    compare(&server, &users);

    let summary = import(&server, &file);
    assert_eq!(summary["total"]["sent"], lines, "{summary}");
    compare(&server, &users);

    let export = dir.path().join("all.ndjson");
    let export = export.to_str().expect("text");
    server.ok(&["export", "--all", "--out", export]);
    drop(server);

    let server = Server::start(&dir.path().join("empty"), &FOR_EVER);
    let restored: Value = serde_json::from_str(
        &server.ok(&["import", "history", "--format", "tideline", "--json", export]),
    )
    .expect("JSON");
    assert_eq!(restored["total"]["accepted"], lines, "{restored}");
    compare(&server, &users);
    let again = dir.path().join("again.ndjson");
    let again = again.to_str().expect("text");
    server.ok(&["export", "--all", "--out", again]);
    assert!(by_user(export) == by_user(again), "an export of a restored export is the same");
}

#[test]
fn a_bad_line_is_reported_with_its_number_and_its_neighbours_are_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let file = dir.path().join("marks.ndjson");
    let text = "{\"user\":\"ann\",\"kind\":\"video\",\"id\":1,\"title\":\"Ebb\"}\nnonsense\n\
                {\"user\":\"ann\",\"kind\":\"smell\",\"id\":2}\n\
                {\"user\":\"ann\",\"kind\":\"video\",\"id\":3}\n";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("text");
    let args = ["import", "history", "--format", "ndjson", "--json", file];
    let output = run(&server.at(&args));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.contains("marks.ndjson:2: "), "{error}");
    assert!(error.contains("marks.ndjson:3: refused, unknown_kind"), "{error}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let total = &summary["total"];
    assert_eq!(
        (&total["sent"], &total["accepted"], &total["rejected"], &total["bad_lines"]),
        (&json!(3), &json!(2), &json!(1), &json!(1)),
        "{summary}"
    );
    let mut strict = args.to_vec();
    strict.push("--strict");
    assert_eq!(run(&server.at(&strict)).status.code(), Some(1));
    let list = server.get("/v1/users/ann/history?enrich=true");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "{list}");
    assert!(list.to_string().contains("\"Ebb\""), "{list}");
}

#[test]
fn an_import_rewards_nobody() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let file = dir.path().join("marks.ndjson");
    std::fs::write(&file, "{\"user\":\"ann\",\"kind\":\"video\",\"id\":1}\n").expect("a file");
    server.ok(&["import", "history", "--format", "ndjson", file.to_str().expect("text")]);
    let tail = ["topic", "tail", "daily-first", "--from", "earliest", "--no-follow"];
    assert_eq!(server.ok(&tail), "");
    let mark = json!({ "kind": "video", "id": "2" });
    let (_, answer) = server.call("POST", "/v1/users/ann/history", Some(mark));
    assert_eq!(answer["first_today"], json!(["video"]));
    assert_eq!(server.ok(&tail).lines().count(), 1);
}

/// Marks of 40 users, one a line, in `rounds` times what is sent at a time.
fn many_marks(rounds: usize) -> String {
    let mut text = String::new();
    for n in 0..rounds * 8_000 {
        let (user, at) = (n % 40, 1_600_000_000_000_u64 + n as u64);
        writeln!(text, r#"{{"user":"u{user}","kind":"video","id":{n},"event_ms":{at}}}"#)
            .expect("memory");
    }
    text
}

#[test]
fn an_import_that_was_killed_goes_on_where_it_stopped_and_ends_as_if_it_had_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &FOR_EVER);
    // A file that is through before it could be killed is followed by a larger
    // one.
    for (attempt, rounds) in [4, 12, 36].into_iter().enumerate() {
        let file = dir.path().join(format!("marks-{attempt}.ndjson"));
        let text = many_marks(rounds);
        std::fs::write(&file, &text).expect("a file");
        let path = file.to_str().expect("text");
        let place = dir.path().join(format!("marks-{attempt}.ndjson.tideline-import"));
        let args = server.at(&["import", "history", "--format", "ndjson", "--json", path]);
        let mut child = tideline(&args).stdout(Stdio::null()).spawn().expect("the program");
        while !place.exists() && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("it is ours");
        if child.wait().expect("it ends").success() {
            continue;
        }
        let again = run(&args);
        let told = String::from_utf8_lossy(&again.stderr);
        assert!(again.status.success() && told.contains("going on from line "), "{told}");
        assert!(!told.contains("going on from line 1 "), "{told}");
        assert!(!place.exists());
        let summary: Value = serde_json::from_slice(&again.stdout).expect("JSON");
        let lines = text.lines().count();
        assert_eq!(summary["total"]["sent"], lines, "{summary}");
        assert_eq!(summary["total"]["rejected"], 0, "{summary}");
        for user in 0..40 {
            let count = server.get(&format!("/v1/users/u{user}/history/count"));
            assert_eq!(count["count"], lines / 40, "user {user}");
        }
        let expected: Vec<(i64, String)> = (0..lines)
            .rev()
            .filter(|n| n % 40 == 7)
            .map(|n| (1_600_000_000_000 + n as i64, n.to_string()))
            .collect();
        assert_eq!(by_cursor(&server, "u7"), expected);
        return;
    }
    panic!("no import was killed before it was through");
}
