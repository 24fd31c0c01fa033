//! What callers send wrong, and the errors that name it.

use crate::fixture::{open, site};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named() {
    let site = site();
    let long = "x".repeat(65);
    let long_id = format!("/v1/users/u/progress/video/{long}");
    let long_user = format!("/v1/users/{}/history", "x".repeat(129));
    for (method, path, body, status, problem) in [
        ("GET", "/v1/nothing", "", 404, "not_found: there is no such path"),
        ("GET", "/", "", 404, "not_found: "),
        ("PATCH", "/v1/users/u/history", "", 405, "method_not_allowed: PATCH"),
        ("POST", "/healthz", "", 405, "method_not_allowed: POST"),
        ("POST", "/v1/users/u/history", "", 400, "invalid_argument: body: is empty"),
        ("POST", "/v1/users/u/history", "{\"kind\":", 400, "invalid_argument: body: no JSON"),
        ("POST", "/v1/users/u/history", "[{]", 400, "invalid_argument: body: no JSON"),
        ("POST", "/v1/users/u/history", "7", 400, "invalid_argument: body: must be a mark"),
        (
            "POST",
            "/v1/users/u/history",
            "{\"kind\":\"video\",\"id\":\"a\",\"positon_ms\":1}",
            400,
            "invalid_argument: positon_ms: unknown field",
        ),
        (
            "POST",
            "/v1/users/u/history",
            "{\"kind\":\"opera\",\"id\":\"a\"}",
            400,
            "unknown_kind: kind: \"opera\" is not declared",
        ),
        (
            "POST",
            "/v1/users/u/history",
            "{\"kind\":\"video\"}",
            400,
            "invalid_argument: id: is required",
        ),
        (
            "POST",
            "/v1/users/u/history",
            "{\"kind\":\"video\",\"id\":\"a\",\"user\":\"v\"}",
            400,
            "invalid_argument: user: is not the user",
        ),
        (
            "POST",
            "/v1/users/u/history",
            "{\"kind\":\"video\",\"id\":\"a\",\"event_ms\":99999999999999}",
            400,
            "invalid_argument: event_ms: more than a day ahead",
        ),
        (
            "POST",
            "/v1/users/u/history?ack=maybe",
            "{}",
            400,
            "invalid_argument: ack: must be durable or fast",
        ),
        (
            "POST",
            "/v1/users/u/history?akc=fast",
            "{}",
            400,
            "invalid_argument: akc: unknown parameter",
        ),
        ("POST", "/v1/history:batch", "[]", 400, "invalid_argument: marks: must be an array"),
        (
            "GET",
            "/v1/users/u/history?limit=0",
            "",
            400,
            "invalid_argument: limit: must be 1 to 100",
        ),
        (
            "GET",
            "/v1/users/u/history?limit=101",
            "",
            400,
            "invalid_argument: limit: must be 1 to 100",
        ),
        (
            "GET",
            "/v1/users/u/history?limit=x",
            "",
            400,
            "invalid_argument: limit: must be an integer",
        ),
        (
            "GET",
            "/v1/users/u/history?limit=1&limit=2",
            "",
            400,
            "invalid_argument: limit: comes twice",
        ),
        ("GET", "/v1/users/u/history?page=0", "", 400, "invalid_argument: page: from 1"),
        (
            "GET",
            "/v1/users/u/history?page=18446744073709551615",
            "",
            400,
            "invalid_argument: page: too large",
        ),
        (
            "GET",
            "/v1/users/u/history?cursor=garbage",
            "",
            400,
            "invalid_argument: cursor: not a cursor",
        ),
        (
            "GET",
            "/v1/users/u/history?cursor=a&page=1",
            "",
            400,
            "invalid_argument: page: not together with cursor",
        ),
        ("GET", "/v1/users/u/history?kind=opera", "", 400, "unknown_kind: kind: \"opera\""),
        ("GET", "/v1/users/u/history?kind=", "", 400, "unknown_kind: kind: \"\""),
        (
            "GET",
            "/v1/users/u/history?unfinished=yes",
            "",
            400,
            "invalid_argument: unfinished: must be true or false",
        ),
        (
            "GET",
            "/v1/users/u/history?after_ms=soon",
            "",
            400,
            "invalid_argument: after_ms: must be milliseconds",
        ),
        (
            "GET",
            "/v1/users/u/history?colour=red",
            "",
            400,
            "invalid_argument: colour: unknown parameter",
        ),
        ("GET", "/v1/users/me/history", "", 401, "unauthenticated: users/me"),
        ("GET", "/v1/users/%FF/history", "", 400, "invalid_argument: path: is not UTF-8"),
        ("GET", "/v1/users/u/progress?kind=video", "", 400, "invalid_argument: id: is required"),
        ("GET", "/v1/users/u/progress/opera/1", "", 400, "unknown_kind: "),
        ("GET", &long_id, "", 400, "invalid_argument: id: must be 1 to 64 bytes"),
        ("GET", &long_user, "", 400, "invalid_argument: user must be 1 to 128 bytes"),
        (
            "POST",
            "/v1/users/u/progress:batchGet",
            "{\"keys\":[{\"kind\":\"video\"}]}",
            400,
            "invalid_argument: keys[0].id: is required",
        ),
        (
            "PUT",
            "/v1/users/u/history/settings",
            "{\"recording\":1}",
            400,
            "invalid_argument: recording: must be true or false",
        ),
        ("DELETE", "/v1/users/u/history?all=false", "", 400, "invalid_argument: all: "),
        ("POST", "/v1/users/u/history:restore", "{}", 400, "invalid_argument: body: line 1"),
        (
            "PUT",
            "/v1/items/video/1",
            "{\"titel\":\"x\"}",
            400,
            "invalid_argument: titel: unknown field",
        ),
        ("GET", "/v1/items/video/1", "", 404, "not_found: there is no such item"),
        ("GET", "/v1/topics/nope", "", 404, "not_found: "),
        ("GET", "/v1/topics/NOPE", "", 400, "invalid_argument: topic must be"),
        ("PUT", "/v1/topics/t", "{\"partitions\":0}", 400, "invalid_argument: partitions: "),
        ("DELETE", "/v1/topics/history", "", 403, "permission_denied: topic history is read-only"),
        (
            "POST",
            "/v1/topics/history/records",
            "{\"records\":[{\"value\":\"x\"}]}",
            403,
            "permission_denied: ",
        ),
        ("GET", "/v1/topics/history/records?from=yesterday", "", 400, "invalid_argument: from: "),
        ("GET", "/v1/topics/history/records?partition=4", "", 404, "not_found: "),
        ("GET", "/v1/topics/history/records?wait_ms=60001", "", 400, "invalid_argument: wait_ms: "),
        ("POST", "/v1/tokens", "{\"scopes\":[\"root\"]}", 400, "invalid_argument: scope \"root\""),
        ("DELETE", "/v1/tokens/nope", "", 404, "not_found: there is no such token"),
    ] {
        let reply = site.call(method, path, body).await;
        let said = reply.problem(status);
        assert!(
            said.starts_with(problem),
            "{method} {path} {body}\n  said {said}\n  not  {problem}"
        );
        assert!(!reply.header("x-request-id").is_empty());
    }
    assert_eq!(site.get("/v1/users/u/history/count").await.expect(200)["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_over_the_limit_and_a_body_over_the_limit_store_nothing() {
    let mut options = tideline_gateway::Options::default();
    options.server.body_bytes_max = 1 << 20;
    let site = open(options).unwrap();
    let marks = vec!["{\"kind\":\"video\",\"id\":1}"; 10_001].join(",");
    let problem = site.post("/v1/users/u/history", &format!("[{marks}]")).await.problem(413);
    assert_eq!(problem, "payload_too_large: marks: at most 10000 in one write");
    let problem = site.post("/v1/users/u/history", &" ".repeat((1 << 20) + 1)).await.problem(413);
    assert_eq!(problem, "payload_too_large: body: at most 1048576 bytes");
    assert_eq!(site.get("/v1/users/u/history/count").await.expect(200)["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_header_is_named() {
    let site = site();
    for bad in ["soon", "-5", "0", "1.5"] {
        let headers = [("x-client-now-ms", bad)];
        let reply = site.call_with("POST", "/v1/users/u/history", "[]", &headers).await;
        let problem = reply.problem(400);
        assert!(problem.starts_with("invalid_argument: x-client-now-ms:"), "{problem}");
    }
    let headers = [("content-encoding", "gzip")];
    let reply = site.call_with("POST", "/v1/users/u/history", "[]", &headers).await;
    assert!(reply.problem(400).contains("content-encoding"));
}
