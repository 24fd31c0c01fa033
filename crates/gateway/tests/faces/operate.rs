//! For those who run the server.

use std::io::Read as _;

use http::StatusCode;
use serde_json::json;

use crate::fixture::site;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_called_is_counted() {
    let site = site();
    site.post("/v1/users/u/history", r#"[{"kind":"video","id":"1"},{"kind":"x","id":"1"}]"#).await;
    site.get("/v1/users/u/history?limit=0").await.problem(400);
    let text = String::from_utf8(site.get("/metrics").await.bytes).unwrap();
    for line in [
        "tideline_call_seconds_count{method=\"history_record\"} 1",
        "tideline_call_errors_total{method=\"history_list\",code=\"invalid_argument\"} 1",
        "tideline_marks_total 2",
        "tideline_marks_rejected_total 1",
        "tideline_history_users_hot 1",
        "tideline_ready 1",
        "tideline_calls_under_way 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert!(text.contains("tideline_view_lag_records{view=\"history\",partition=\"3\"}"));
    assert!(text.contains("\ntideline_history_lag_bytes "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_the_name_it_was_given() {
    let site = site();
    let given = [("x-request-id", "abc-1")];
    let reply = site.call_with("GET", "/healthz", "", &given).await;
    assert_eq!(reply.header("x-request-id"), "abc-1");
    let (one, two) = (site.get("/healthz").await, site.get("/healthz").await);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
    let long = "x".repeat(200);
    let reply = site.call_with("GET", "/healthz", "", &[("x-request-id", &long)]).await;
    assert_eq!(reply.header("x-request-id").len(), 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_the_document_is_answered_by_the_router() {
    let site = site();
    let document = site.get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"].as_str().unwrap().split('.').next(), Some("3"));
    let mut calls = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{user}", "u").replace("{kind}", "video");
        let path = path.replace("{id}", "1").replace("{topic}", "t");
        for method in methods.as_object().unwrap().keys() {
            let reply = site.call(&method.to_uppercase(), &path, "").await;
            let unknown = String::from_utf8_lossy(&reply.bytes).contains("no such path");
            assert!(!unknown && reply.status != StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            calls += 1;
        }
    }
    assert!(calls > 30, "{calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_compressed_and_short_ones_are_not() {
    let site = site();
    let marks: Vec<_> = (0..50).map(|n| json!({"kind": "video", "id": format!("v{n}")})).collect();
    site.post("/v1/users/u/history", &json!(marks).to_string()).await.expect(200);
    let gzip = [("accept-encoding", "gzip")];
    let long = site.call_with("GET", "/v1/users/u/history?limit=50", "", &gzip).await;
    assert_eq!(long.header("content-encoding"), "gzip");
    assert!(long.bytes.len() < 2000, "{}", long.bytes.len());
    let mut plain = Vec::new();
    (&long.bytes[..2]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, [0x1f, 0x8b]);
    let short = site.call_with("GET", "/v1/users/u/history?limit=1", "", &gzip).await;
    assert_eq!(short.header("content-encoding"), "");
    short.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_history_answers_that_the_server_is_stopping() {
    let site = site();
    let history = site.history.clone();
    tokio::task::spawn_blocking(move || history.close(std::time::Duration::from_secs(5)))
        .await
        .unwrap();
    let reply = site.get("/v1/users/u/history").await;
    assert!(reply.problem(503).contains("stopping"));
    assert!(!reply.header("retry-after").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_user_is_listed_a_line_each() {
    let site = site();
    for user in ["ann", "b\"n"] {
        let path = format!("/v1/users/{}/history", user.replace('"', "%22"));
        site.post(&path, r#"{"kind":"video","id":"1"}"#).await.expect(200);
    }
    let reply = site.get("/v1/users").await;
    assert_eq!(reply.status, 200);
    let text = String::from_utf8(reply.bytes).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [r#"{"user":"ann"}"#, r#"{"user":"b\"n"}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_goes_where_it_is_told_and_says_why_not() {
    let site = site();
    let ask = r#"{"into":"/b/1"}"#;
    site.post("/v1/backup", ask).await.expect(404);
    site.gateway.enable_backup(std::sync::Arc::new(|into| match into.ends_with("1") {
        true => Ok(()),
        false => Err("it is not empty".into()),
    }));
    let body = site.post("/v1/backup", ask).await.expect(200);
    assert_eq!(body["into"], "/b/1");
    let body = site.post("/v1/backup", r#"{"into":"/b/2"}"#).await.expect(409);
    assert!(body["detail"].as_str().unwrap().ends_with("it is not empty"), "{body}");
    site.post("/v1/backup", r#"{"into":"b/1"}"#).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_recorded_and_rewards_nobody() {
    let site = site();
    let batch = r#"{"marks":[{"user":"ann","kind":"video","id":"1"}]}"#;
    let body = site.post("/v1/history:batch?import=true", batch).await.expect(200);
    assert_eq!(
        (&body["accepted"], body["first_today"].as_array().map(Vec::len)),
        (&1.into(), Some(0))
    );
    let batch = r#"{"marks":[{"user":"ann","kind":"video","id":"2"}]}"#;
    let body = site.post("/v1/history:batch", batch).await.expect(200);
    assert_eq!(body["first_today"].as_array().map(Vec::len), Some(1), "{body}");
}
