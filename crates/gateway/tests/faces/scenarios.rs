//! What users have run into elsewhere, as calls of the HTTP face. The rest of
//! these stories stand beside the rules, where no face is needed to tell them.

use serde_json::{Value, json};

use crate::fixture::{Site, now, site};

async fn ids(site: &Site, path: &str) -> Vec<String> {
    let page = site.get(path).await.expect(200);
    let rows = page["items"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

async fn write(site: &Site, body: &Value) -> Value {
    site.post("/v1/users/u/history", &body.to_string()).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_beyond_53_bits_come_back_exactly_sent_as_text_or_as_number() {
    let site = site();
    let t = now();
    for (id, ago) in
        [("\"112489730346240\"", 3), ("9223372036854775807", 2), ("9007199254740993", 1)]
    {
        let mark = format!("{{\"kind\":\"video\",\"id\":{id},\"event_ms\":{}}}", t - ago);
        assert_eq!(site.post("/v1/users/u/history", &mark).await.expect(200)["accepted"], 1);
    }
    let want = ["9007199254740993", "9223372036854775807", "112489730346240"];
    assert_eq!(ids(&site, "/v1/users/u/history").await, want);
    let point = site.get("/v1/users/u/progress/video/9007199254740993").await.expect(200);
    assert_eq!(point["id"], "9007199254740993");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_row_is_gone_from_list_and_point_until_it_is_watched_again() {
    let site = site();
    let t = now();
    write(&site, &json!({"kind": "video", "id": "a", "event_ms": t - 60_000})).await;
    site.call("DELETE", "/v1/users/u/history/video/a", "").await.expect(204);
    let late = json!({"kind": "video", "id": "a", "event_ms": t - 30_000});
    assert_eq!(write(&site, &late).await["stale"], 1);
    assert!(ids(&site, "/v1/users/u/history").await.is_empty());
    let point = "/v1/users/u/progress/video/a";
    assert_eq!(site.get(point).await.expect(200)["found"], false);
    for position in 0..20 {
        site.call("DELETE", "/v1/users/u/history/video/a", "").await.expect(204);
        let watch = json!({"kind": "video", "id": "a", "position_ms": position});
        assert_eq!(write(&site, &watch).await["accepted"], 1, "in the millisecond of the delete");
        assert_eq!(site.get(point).await.expect(200)["position_ms"], position);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_recording_is_off_no_path_stores_and_old_rows_stay() {
    let site = site();
    let t = now();
    write(&site, &json!({"kind": "video", "id": "old", "event_ms": t - 60_000})).await;
    let settings = "/v1/users/u/history/settings";
    site.call("PUT", settings, r#"{"recording":false}"#).await.expect(200);
    let mark = r#"{"user":"u","kind":"video","id":"b"}"#;
    let lines = [("content-type", "application/x-ndjson")];
    for (path, body, headers) in [
        ("/v1/users/u/history", mark.to_owned(), &[][..]),
        ("/v1/users/u/history?ack=fast", format!("[{mark}]"), &[]),
        ("/v1/users/u/history:merge", format!("[{mark}]"), &[]),
        ("/v1/history:batch", format!("{{\"marks\":[{mark}]}}"), &[]),
        ("/v1/history:batch", mark.to_owned(), &lines),
    ] {
        let told = site.call_with("POST", path, &body, headers).await.expect(200);
        assert_eq!((&told["accepted"], &told["paused"]), (&json!(0), &json!(1)), "{path}");
    }
    assert_eq!(ids(&site, "/v1/users/u/history").await, ["old"]);
    site.call("PUT", settings, r#"{"recording":true}"#).await.expect(200);
    assert_eq!(write(&site, &json!({"kind": "video", "id": "new"})).await["accepted"], 1);
    assert_eq!(ids(&site, "/v1/users/u/history").await, ["new", "old"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_marks_are_refused_one_by_one_by_name_and_their_neighbours_are_kept() {
    let site = site();
    let t = now();
    let long = "x".repeat(65);
    let marks = json!([
        {"kind": "video", "id": "a", "event_ms": 0},
        {"kind": "video", "id": "b", "event_ms": -5},
        {"kind": "video", "id": "c", "event_ms": t + 2 * 86_400_000},
        {"kind": "video", "id": "d", "event_ms": t + 600_000},
        {"kind": "video", "id": "e", "event_ms": t - 1000},
        {"kind": "video", "id": "f", "positon_ms": 1},
        {"kind": "opera", "id": "g"},
        {"kind": "video"},
        {"kind": "video", "id": long},
        {"kind": "video", "id": "h", "position_ms": "far"},
        {"kind": "video", "id": "i", "finished": 1},
    ]);
    let told = write(&site, &marks).await;
    assert_eq!(told["accepted"], 2);
    let refused: Vec<(u64, &str, &str)> = told["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let detail = one["detail"].as_str().unwrap();
            let field = detail.split(':').next().unwrap();
            (one["index"].as_u64().unwrap(), one["code"].as_str().unwrap(), field)
        })
        .collect();
    let bad = "invalid_argument";
    let want = [
        (0, bad, "event_ms"),
        (1, bad, "event_ms"),
        (2, bad, "event_ms"),
        (5, bad, "positon_ms"),
        (6, "unknown_kind", "kind"),
        (7, bad, "id"),
        (8, bad, "id"),
        (9, bad, "position_ms"),
        (10, bad, "finished"),
    ];
    assert_eq!(refused, want);
    // A small lead is taken as now: what comes after it is newer.
    assert_eq!(ids(&site, "/v1/users/u/history").await, ["d", "e"]);
    assert_eq!(write(&site, &json!({"kind": "video", "id": "f"})).await["accepted"], 1);
    assert_eq!(ids(&site, "/v1/users/u/history").await, ["f", "d", "e"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_points_answers_in_the_order_asked_and_says_what_is_not_there() {
    let site = site();
    let t = now();
    let mark = |id: &str, ago| json!({"kind": "video", "id": id, "event_ms": t - ago});
    write(&site, &json!([mark("a", 2), mark("b", 1)])).await;
    let keys = ["b", "zz", "a", "b"].map(|id| json!({"kind": "video", "id": id}));
    let asked = json!({"keys": keys}).to_string();
    let answer = site.post("/v1/users/u/progress:batchGet", &asked).await.expect(200);
    let told: Vec<_> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["id"].as_str().unwrap(), item["found"].as_bool().unwrap()))
        .collect();
    assert_eq!(told, [("b", true), ("zz", false), ("a", true), ("b", true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clear_without_a_filter_is_refused_and_removes_nothing() {
    let site = site();
    write(&site, &json!({"kind": "video", "id": "a"})).await;
    site.call("DELETE", "/v1/users/u/history", "").await.problem(400);
    assert_eq!(site.get("/v1/users/u/history/count").await.expect(200)["count"], 1);
    let all = site.call("DELETE", "/v1/users/u/history?all=true", "").await.expect(200);
    assert_eq!(all["deleted"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn days_are_counted_newest_first() {
    let site = site();
    let t = now();
    let two_days = 2 * 86_400_000;
    let marks = json!([
        {"kind": "video", "id": "a", "event_ms": t - 1},
        {"kind": "video", "id": "b", "event_ms": t - two_days - 1},
        {"kind": "article", "id": "c", "event_ms": t - two_days - 1}
    ]);
    write(&site, &marks).await;
    let days = site.get("/v1/users/u/history/days").await.expect(200);
    let counts: Vec<_> = days.as_array().unwrap().iter().map(|day| &day["count"]).collect();
    assert_eq!(counts, [1, 2]);
    assert!(days[0]["day"].as_str().unwrap() > days[1]["day"].as_str().unwrap());
}
