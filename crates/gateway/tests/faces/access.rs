//! Who may, and how often.

use http::StatusCode;
use serde_json::json;
use tideline_gateway::Options;
use tideline_gateway::options::{AuthMode, RateOptions};

use crate::fixture::{Reply, Site, open, site, token_site};

async fn as_of(site: &Site, token: &str, method: &str, path: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    site.call_with(method, path, body, &[("authorization", &bearer)]).await
}

async fn token(site: &Site, admin: &str, scope: &str) -> String {
    let body = json!({"scopes": [scope], "note": "test"}).to_string();
    let made = as_of(site, admin, "POST", "/v1/tokens", &body).await.expect(201);
    made["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_may_everything_from_elsewhere() {
    for (mode, http, fine) in [
        (AuthMode::None, "127.0.0.1:0", true),
        (AuthMode::None, "[::1]:0", true),
        (AuthMode::None, "0.0.0.0:0", false),
        (AuthMode::Auto, "0.0.0.0:0", true),
    ] {
        let mut options = Options::default();
        options.auth.mode = mode;
        options.server.http = http.parse().unwrap();
        assert_eq!(open(options).is_ok(), fine, "{mode:?} {http}");
    }
    let mut options = Options::default();
    options.server.grpc = "0.0.0.0:0".parse().unwrap();
    let site = open(options).unwrap();
    site.get("/v1/users/u/history").await.problem(401);
    assert!(site.gateway.first_token().unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_may_what_it_says() {
    let (site, admin) = token_site();
    let alice = token(&site, &admin, "user:alice").await;
    let reader = token(&site, &admin, "read").await;
    let service = token(&site, &admin, "service").await;
    let mark = r#"{"kind":"video","id":"1"}"#;
    for (who, method, path, body, status) in [
        (&alice, "POST", "/v1/users/alice/history", mark, 200),
        (&alice, "GET", "/v1/users/me/history", "", 200),
        (&alice, "GET", "/v1/users/bob/history", "", 403),
        (&alice, "POST", "/v1/users/bob/history", mark, 403),
        (&alice, "POST", "/v1/history:batch", r#"{"marks":[]}"#, 403),
        (&alice, "POST", "/v1/users/alice/history:restore", "", 403),
        (&alice, "GET", "/v1/topics", "", 403),
        (&alice, "GET", "/v1/tokens", "", 403),
        (&alice, "DELETE", "/v1/users/alice", "", 204),
        (&reader, "GET", "/v1/users/alice/history", "", 200),
        (&reader, "POST", "/v1/users/alice/history", mark, 403),
        (&reader, "GET", "/v1/users/me/history", "", 401),
        (&reader, "GET", "/v1/topics", "", 200),
        (&service, "POST", "/v1/history:batch", r#"{"marks":[]}"#, 200),
        (&service, "PUT", "/v1/items/video/1", r#"{"title":"T"}"#, 204),
        (&service, "GET", "/v1/tokens", "", 403),
        (&admin, "GET", "/v1/tokens", "", 200),
    ] {
        let reply = as_of(&site, who, method, path, body).await;
        assert_eq!(reply.status.as_u16(), status, "{method} {path}");
    }
    let listed = as_of(&site, &admin, "GET", "/v1/tokens", "").await;
    let text = String::from_utf8(listed.bytes.clone()).unwrap();
    assert!(!text.contains("tl_"), "no text of a token is ever shown again");
    let id = alice.split('_').nth(1).unwrap();
    as_of(&site, &admin, "DELETE", &format!("/v1/tokens/{id}"), "").await.expect(204);
    as_of(&site, &alice, "GET", "/v1/users/me/history", "").await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_no_name_is_told_how() {
    let (site, _) = token_site();
    let reply = site.get("/v1/users/u/history").await;
    assert!(reply.problem(401).starts_with("unauthenticated: a bearer token"));
    assert_eq!(reply.header("www-authenticate"), "Bearer");
    for bad in ["Basic abc", "Bearer", "Bearer tl_0_0"] {
        let headers = [("authorization", bad)];
        site.call_with("GET", "/v1/users/u/history", "", &headers).await.problem(401);
    }
    for open in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(site.get(open).await.status, StatusCode::OK, "{open}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_stands_for_its_caller_once() {
    let (site, admin) = token_site();
    let alice = token(&site, &admin, "user:alice").await;
    let given = as_of(&site, &alice, "POST", "/v1/tickets", "").await.expect(201);
    let ticket = given["ticket"].as_str().unwrap();
    let path = format!("/v1/users/me/history?ticket={ticket}");
    site.post(&path, r#"{"kind":"video","id":"1"}"#).await.expect(200);
    site.get(&path).await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_limit_says_which_and_when_to_come_back() {
    let mut options = Options::default();
    let rates = RateOptions { user_per_second: 1, ..RateOptions::default() };
    options.limits.methods.insert("history_count".into(), rates);
    options.limits.burst_seconds = 2;
    let site = open(options).unwrap();
    for _ in 0..2 {
        site.get("/v1/users/u/history/count").await.expect(200);
    }
    let reply = site.get("/v1/users/u/history/count").await;
    assert!(reply.problem(429).starts_with("rate_limited: the limit of this method per user"));
    assert_eq!(reply.json()["limit"], "user");
    assert_eq!(reply.header("retry-after"), "1");
    site.get("/v1/users/other/history/count").await.expect(200);
    site.get("/v1/users/u/history").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_calls_at_once_are_told_to_come_back() {
    let mut options = Options::default();
    options.server.requests_max = 0;
    let site = open(options).unwrap();
    let reply = site.get("/v1/users/u/history").await;
    assert!(reply.problem(503).starts_with("overloaded: too many calls under way"));
    assert_eq!(reply.header("retry-after"), "1");
    site.get("/healthz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_of_welcome_pages_may_call() {
    let site = site();
    let headers = [
        ("origin", "http://localhost:3000"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x-client-now-ms"),
    ];
    let reply = site.call_with("OPTIONS", "/v1/users/u/history", "", &headers).await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert_eq!(reply.header("access-control-allow-origin"), "http://localhost:3000");
    assert!(reply.header("access-control-allow-methods").contains("POST"));
    assert!(reply.header("access-control-allow-headers").contains("x-client-now-ms"));
    assert_eq!(reply.header("access-control-max-age"), "7200");

    let headers = [("origin", "http://localhost:3000")];
    let reply = site.call_with("GET", "/v1/nothing", "", &headers).await;
    assert_eq!(reply.header("access-control-allow-origin"), "http://localhost:3000");
    assert!(reply.header("access-control-expose-headers").contains("x-day-flag"));
    let headers = [("origin", "https://evil.example")];
    let reply = site.call_with("GET", "/v1/users/u/history", "", &headers).await;
    assert_eq!(reply.header("access-control-allow-origin"), "");
    assert!(reply.header("vary").contains("origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_ends_is_given_up_at_the_deadline() {
    let mut options = Options::default();
    options.server.deadline_ms = 1;
    let site = open(options).unwrap();
    let never = tokio_stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let request = http::Request::post("/v1/users/u/history");
    let reply = site.send(request.body(axum::body::Body::from_stream(never)).unwrap()).await;
    assert!(reply.problem(504).starts_with("deadline_exceeded: "));
}
