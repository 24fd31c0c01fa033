//! A user's history over HTTP.

use serde_json::json;

use crate::fixture::{now, site};

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_seen_by_every_read_once_it_is_acknowledged() {
    let site = site();
    let at = now() - 1000;
    let mark = json!({"kind": "video", "id": 112_489_730_346_240_u64, "part": "ep3", "position_ms": 61500,
        "duration_ms": 1_440_000, "event_ms": at, "device": "tv-1", "group": "s9"});
    let wrote = site.post("/v1/users/u/history", &mark.to_string()).await;
    let body = wrote.expect(200);
    assert_eq!((&body["accepted"], &body["first_today"]), (&json!(1), &json!(["video"])));
    assert_eq!(body["rejected"], json!([]));
    let flag = body["day_flag"].as_str().unwrap();
    assert!(flag.ends_with(".video") && wrote.header("x-day-flag") == flag);

    let list = site.get("/v1/users/u/history").await.expect(200);
    let want = json!({"kind": "video", "id": "112489730346240", "part": "ep3", "position_ms": 61500,
        "duration_ms": 1_440_000, "percent": 4, "event_ms": at, "device": "tv-1", "group": "s9",
        "finished": false, "plays": 0});
    assert_eq!(list, json!({"items": [want], "next_cursor": null}));
    let point = site.get("/v1/users/u/progress/video/112489730346240").await.expect(200);
    assert_eq!((&point["found"], &point["percent"]), (&json!(true), &json!(4)));
    let same = site.get("/v1/users/u/progress?kind=video&id=112489730346240&part=ep3").await;
    assert_eq!(same.expect(200), point);
    let other = site.get("/v1/users/u/progress/video/112489730346240?part=ep4").await.expect(200);
    let none = json!({"found": false, "kind": "video", "id": "112489730346240", "part": "ep4"});
    assert_eq!(other, none);
    assert_eq!(site.get("/v1/users/u/history/count").await.expect(200), json!({"count": 1}));
    let days = site.get("/v1/users/u/history/days").await.expect(200);
    assert_eq!(days[0]["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_counts_of_a_write_add_up_to_what_was_sent() {
    let site = site();
    let t = now();
    let marks = json!([
        {"kind": "video", "id": "a", "event_ms": t - 10},
        {"kind": "video", "id": "a", "event_ms": t - 20},
        {"kind": "opera", "id": "a"},
        {"kind": "video", "id": "b", "event_ms": t + 2 * 86_400_000},
        7,
        {"kind": "article", "id": "c", "event_ms": t - 100 * 86_400_000},
        {"kind": "live", "id": "d"}
    ]);
    let body = site.post("/v1/users/u/history", &marks.to_string()).await.expect(200);
    assert_eq!((&body["accepted"], &body["stale"]), (&json!(2), &json!(2)));
    let rejected: Vec<_> = body["rejected"].as_array().unwrap().iter().collect();
    let places: Vec<_> = rejected.iter().map(|r| r["index"].as_u64().unwrap()).collect();
    assert_eq!(places, [2, 3, 4]);
    assert_eq!(rejected[0]["code"], "unknown_kind");
    assert_eq!(rejected[1]["code"], "invalid_argument");
    assert!(rejected[1]["detail"].as_str().unwrap().starts_with("event_ms"));
    assert_eq!(body["first_today"], json!(["video", "live"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_tells_firsts_with_their_users_as_json_and_as_lines() {
    let site = site();
    let batch =
        r#"{"marks":[{"user":"a","kind":"video","id":"1"},{"user":7,"kind":"video","id":"1"}]}"#;
    let body = site.post("/v1/history:batch", batch).await.expect(200);
    let firsts = json!([{"user": "a", "kind": "video"}, {"user": "7", "kind": "video"}]);
    assert_eq!((&body["accepted"], &body["first_today"]), (&json!(2), &firsts));
    let lines =
        "{\"user\":\"a\",\"kind\":\"live\",\"id\":\"1\"}\n\n{\"kind\":\"live\",\"id\":\"2\"}\n";
    let kind = [("content-type", "application/x-ndjson")];
    let body = site.call_with("POST", "/v1/history:batch?ack=fast", lines, &kind).await.expect(200);
    assert_eq!(body["accepted"], 1);
    assert_eq!(body["rejected"][0]["index"], 1);
    assert_eq!(body["rejected"][0]["detail"], "user: is required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_pages_through_ties_and_is_bound_to_its_filters_and_user() {
    let site = site();
    let t = now() - 5000;
    let marks: Vec<_> =
        (0..25).map(|n| json!({"kind": "video", "id": format!("t{n}"), "event_ms": t})).collect();
    site.post("/v1/users/u/history", &json!(marks).to_string()).await.expect(200);
    let (mut seen, mut path) = (Vec::new(), "/v1/users/u/history?limit=10".to_owned());
    loop {
        let page = site.get(&path).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["id"].to_string()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/users/u/history?limit=10&cursor={cursor}");
    }
    assert_eq!(seen.len(), 25);
    let sorted = {
        let mut s = seen.clone();
        s.sort();
        s.reverse();
        s
    };
    assert_eq!(seen, sorted);
    for other in ["/v1/users/u/history?kind=video&cursor=", "/v1/users/v/history?cursor="] {
        let cursor = path.split("cursor=").nth(1).unwrap();
        let problem = site.get(&format!("{other}{cursor}")).await.problem(400);
        assert_eq!(problem, "invalid_argument: cursor: is of a list with other filters");
    }
    let page = site.get("/v1/users/u/history?limit=10&page=3").await.expect(200);
    assert_eq!((page["items"].as_array().unwrap().len(), &page["total"]), (5, &json!(25)));
    let past = site.get("/v1/users/u/history?limit=10&page=9").await.expect(200);
    assert_eq!((past["items"].as_array().unwrap().len(), &past["total"]), (0, &json!(25)));
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_filtered_by_repeating_or_by_commas() {
    let site = site();
    let marks = json!([{"kind": "video", "id": "a"}, {"kind": "live", "id": "b"}, {"kind": "article", "id": "c"}]);
    site.post("/v1/users/u/history", &marks.to_string()).await.expect(200);
    for query in ["kind=video&kind=live", "kind=video,live", "kind=live,video&kind=video"] {
        let count = site.get(&format!("/v1/users/u/history/count?{query}")).await.expect(200);
        assert_eq!(count["count"], 2, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_and_clears_answer_what_they_removed() {
    let site = site();
    let marks: Vec<_> = (0..5).map(|n| json!({"kind": "video", "id": format!("v{n}")})).collect();
    site.post("/v1/users/u/history", &json!(marks).to_string()).await.expect(200);
    site.call("DELETE", "/v1/users/u/history/video/v0", "").await.expect(204);
    site.call("DELETE", "/v1/users/u/history/video/v0", "").await.expect(204);
    let keys = r#"{"keys":[{"kind":"video","id":"v1"},{"kind":"video","id":"zz"}]}"#;
    assert_eq!(site.post("/v1/users/u/history:delete", keys).await.expect(200)["deleted"], 1);
    let id = site.call("DELETE", "/v1/users/u/history?kind=video&id=v2", "").await.expect(200);
    assert_eq!(id["deleted"], 1);
    let refused = site.call("DELETE", "/v1/users/u/history", "").await.problem(400);
    assert!(refused.starts_with("invalid_argument: all:"), "{refused}");
    let all = site.call("DELETE", "/v1/users/u/history?all=true", "").await.expect(200);
    assert_eq!(all["deleted"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn recording_is_switched_and_told() {
    let site = site();
    let path = "/v1/users/u/history/settings";
    assert_eq!(site.get(path).await.expect(200), json!({"recording": true}));
    site.call("PUT", path, r#"{"recording":false}"#).await.expect(200);
    assert_eq!(site.get(path).await.expect(200), json!({"recording": false}));
    let mark = r#"{"kind":"video","id":"a"}"#;
    let body = site.post("/v1/users/u/history", mark).await.expect(200);
    assert_eq!((&body["paused"], &body["first_today"]), (&json!(1), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_restored_after_an_erase() {
    let site = site();
    let t = now() - 9000;
    let mark =
        json!({"kind": "video", "id": "a\"\\é", "event_ms": t, "position_ms": 5, "event_id": "e"});
    site.post("/v1/users/u/history", &mark.to_string()).await.expect(200);
    let before = site.get("/v1/users/u/history").await.expect(200);
    let export = site.get("/v1/users/u/history/export").await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    site.call("DELETE", "/v1/users/u", "").await.expect(204);
    assert_eq!(site.get("/v1/users/u/history/count").await.expect(200)["count"], 0);
    let text = String::from_utf8(export.bytes).unwrap();
    let report = site.post("/v1/users/u/history:restore", &text).await.expect(200);
    assert_eq!(report, json!({"accepted": 1, "stale": 0}));
    assert_eq!(site.get("/v1/users/u/history").await.expect(200), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_clock_is_put_right_by_its_header() {
    let site = site();
    let device = now() - 3_600_000;
    let mark = json!({"kind": "video", "id": "x", "event_ms": device - 1000});
    let headers = [("x-client-now-ms", device.to_string())];
    let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    site.call_with("POST", "/v1/users/u/history", &mark.to_string(), &headers).await.expect(200);
    let after = now() - 60_000;
    let list = site.get(&format!("/v1/users/u/history?after_ms={after}")).await.expect(200);
    assert_eq!(list["items"][0]["id"], "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_never_set_is_put_right_before_its_times_are_judged() {
    let site = site();
    let send = |id: &str, event: i64, device: i64| {
        let mark =
            json!([{"kind": "video", "id": id, "event_ms": event, "event_id": "e"}]).to_string();
        let headers = [("x-client-now-ms", device.to_string())];
        let site = &site;
        async move {
            let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            site.call_with("POST", "/v1/users/u/history", &mark, &headers).await.expect(200)
        }
    };
    for (id, event) in [("a", 0), ("b", -60_000)] {
        assert_eq!(send(id, event, 5_000).await["accepted"], 1, "{event}");
        assert_eq!(send(id, event, 5_000).await["duplicate"], 1, "{event}");
    }
    // It stays out where the clock was fast, or nothing was said of it.
    for event in [0, -60_000, i64::MIN] {
        let refused = send("c", event, now() + 60_000).await;
        assert_eq!(refused["rejected"][0]["code"], "invalid_argument", "{event}");
        let mark = json!({"kind": "video", "id": "c", "event_ms": event}).to_string();
        let problem = site.post("/v1/users/u/history", &mark).await.problem(400);
        assert!(problem.starts_with("invalid_argument: event_ms: must be greater"), "{problem}");
    }
    assert_eq!(site.get("/v1/users/u/history/count").await.expect(200)["count"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_holds_any_id_in_percent_encoding() {
    let site = site();
    let mark = json!({"kind": "video", "id": "a/b c%é", "position_ms": 1});
    site.post("/v1/users/u%2F1/history", &mark.to_string()).await.expect(200);
    let point = site.get("/v1/users/u%2F1/progress/video/a%2Fb%20c%25%C3%A9").await.expect(200);
    assert_eq!((&point["found"], &point["id"]), (&json!(true), &json!("a/b c%é")));
    let batch = r#"{"keys":[{"kind":"video","id":"zz"},{"kind":"video","id":"a/b c%é"}]}"#;
    let items = site.post("/v1/users/u%2F1/progress:batchGet", batch).await.expect(200);
    assert_eq!(
        (&items["items"][0]["found"], &items["items"][1]["found"]),
        (&json!(false), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_kept_offline_bring_no_reward() {
    let site = site();
    let marks = json!([{"kind": "video", "id": "a", "event_ms": now() - 5000}]);
    let body = site.post("/v1/users/u/history:merge", &marks.to_string()).await.expect(200);
    assert_eq!((&body["accepted"], &body["first_today"]), (&json!(1), &json!([])));
    let live = site.post("/v1/users/u/history", r#"{"kind":"video","id":"b"}"#).await.expect(200);
    assert_eq!(live["first_today"], json!(["video"]));
}
