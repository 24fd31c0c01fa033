//! Topics over HTTP.

use serde_json::{Value, json};

use crate::fixture::{Site, site};

/// The records and the last line of a fetch.
async fn fetch(site: &Site, path: &str) -> (Vec<Value>, Value) {
    let reply = site.get(path).await;
    assert_eq!(reply.header("content-type"), "application/x-ndjson", "{reply:?}");
    let text = String::from_utf8(reply.bytes).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.pop().unwrap();
    (lines, last["covered"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_produced_is_fetched_and_covered_says_where_to_go_on() {
    let site = site();
    let made = site.call("PUT", "/v1/topics/clicks", r#"{"partitions":2}"#).await.expect(201);
    assert_eq!((&made["partitions"], &made["kind"]), (&json!(2), &json!("source")));
    site.call("PUT", "/v1/topics/clicks", "").await.problem(409);
    let records = json!({"partition": 1, "records": [
        {"key": "k", "value": "é"}, {"value_base64": "/wA="}, {"value": "three"}]});
    let put = site.post("/v1/topics/clicks/records", &records.to_string()).await.expect(200);
    assert_eq!(put["positions"].as_array().unwrap().len(), 3);

    let path = "/v1/topics/clicks/records?partition=1";
    let (lines, covered) = fetch(&site, &format!("{path}&limit=2")).await;
    assert_eq!((&lines[0]["key"], &lines[0]["value"]), (&json!("k"), &json!("é")));
    assert_eq!((&lines[1]["seq"], &lines[1]["value_base64"]), (&json!(2), &json!("/wA=")));
    let mut from = covered["to"].as_str().unwrap().to_owned();
    let mut seen = lines.len();
    while seen < 3 {
        let (lines, covered) = fetch(&site, &format!("{path}&from={from}")).await;
        seen += lines.len();
        from = covered["to"].as_str().unwrap().to_owned();
    }
    let (none, end) = fetch(&site, &format!("{path}&from={from}&wait_ms=1")).await;
    assert!(none.is_empty());
    assert_eq!(end["to"], json!(from));
    let last = put["positions"][1].as_str().unwrap();
    let (after, _) = fetch(&site, &format!("{path}&from=after:{last}")).await;
    assert_eq!(after[0]["value"], "three");
    let strange = format!("{path}&from=99-1-1");
    assert!(site.get(&strange).await.problem(409).starts_with("diverged: "));
    site.call("DELETE", "/v1/topics/clicks", "").await.expect(204);
    site.get(path).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_ends_when_a_record_comes() {
    let site = std::sync::Arc::new(site());
    site.call("PUT", "/v1/topics/t", r#"{"partitions":1}"#).await.expect(201);
    let waiting = {
        let site = site.clone();
        tokio::spawn(async move { fetch(&site, "/v1/topics/t/records?wait_ms=60000").await })
    };
    let record = r#"{"records":[{"value":"x"}]}"#;
    site.post("/v1/topics/t/records", record).await.expect(200);
    let (lines, _) = waiting.await.unwrap();
    assert_eq!(lines[0]["value"], "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_and_firsts_are_shown_as_json() {
    let site = site();
    site.post("/v1/users/u/history", r#"{"kind":"video","id":"7","position_ms":5}"#)
        .await
        .expect(200);
    let (mut outcomes, mut firsts) = (Vec::new(), Vec::new());
    for partition in 0..4 {
        let of = |topic: &str| format!("/v1/topics/{topic}/records?partition={partition}");
        outcomes.extend(fetch(&site, &of("history")).await.0);
        firsts.extend(fetch(&site, &of("daily-first")).await.0);
    }
    assert_eq!(outcomes.len(), 1);
    let value = &outcomes[0]["value"];
    assert_eq!((&outcomes[0]["key"], &value["user"]), (&json!("u"), &json!("u")));
    assert_eq!((&value["kind"], &value["id"]), (&json!("video"), &json!("7")));
    assert_eq!(firsts.len(), 1);
    let first = &firsts[0]["value"];
    assert_eq!((&first["user"], &first["kind"]), (&json!("u"), &json!("video")));
    let topics = site.get("/v1/topics").await.expect(200);
    let names: Vec<_> =
        topics["topics"].as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    assert_eq!(
        names,
        ["daily-first", "danmaku", "danmaku-audit", "danmaku-flags", "danmaku-stats", "history"]
    );
}
