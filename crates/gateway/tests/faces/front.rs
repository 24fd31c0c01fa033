//! What goes past the router, over real sockets: it answers as the router does.

use std::net::SocketAddr;

use serde_json::json;
use tideline_gateway::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::fixture::{Reply, now, open};

/// Headers that differ from answer to answer, or belong to the connection.
const PASSING: [&str; 5] =
    ["date", "connection", "content-length", "transfer-encoding", "x-tideline-seq"];

/// One request over a connection of its own.
async fn over_socket(http: SocketAddr, method: &str, path: &str, body: &str, more: &str) -> Reply {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-request-id: r\r\n\
         content-length: {length}\r\n{more}\r\n"
    );
    let mut stream = TcpStream::connect(http).await.unwrap();
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = http::HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let name = http::HeaderName::try_from(name).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let mut bytes = answer[end + 4..].to_vec();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        bytes = unchunked(&bytes);
    }
    Reply { status, headers, bytes }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return all;
        }
        all.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 2 + length + 2..];
    }
}

fn lasting(reply: &Reply) -> Vec<String> {
    let mut lines: Vec<String> = (reply.headers.iter())
        .filter(|(name, _)| !PASSING.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_past_the_router_is_answered_as_by_the_router() {
    let mut options = Options::default();
    options.server.http = "127.0.0.1:0".parse().unwrap();
    options.server.grpc = "127.0.0.1:0".parse().unwrap();
    options.danmaku.sender_per_minute = 0;
    let site = open(options).unwrap();
    let bound = site.gateway.bind().await.unwrap();
    let (http, (stop, stopped)) = (bound.http(), oneshot::channel::<()>());
    let served = tokio::spawn(bound.serve(async {
        let _ = stopped.await;
    }));

    // A list that is worth compressing, and a segment that lies in a file.
    for n in 0..40 {
        let mark =
            json!({"kind": "video", "id": format!("v{n}"), "position_ms": n, "event_ms": now()});
        site.post("/v1/users/ann/history", &mark.to_string()).await.expect(200);
    }
    for n in 0..400 {
        let body = json!({"text": format!("{n} {}", "x".repeat(90)), "progress_ms": n}).to_string();
        site.post("/v1/videos/v/danmaku", &body).await.expect(201);
    }
    let segment = "/v1/videos/v/danmaku/segments/1.json";
    for _ in 0..20 {
        over_socket(http, "GET", segment, "", "").await.expect(200);
    }
    let large = over_socket(http, "GET", segment, "", "").await;
    assert!(large.bytes.len() > 32 << 10, "{} bytes", large.bytes.len());
    let held = format!("if-none-match: {}\r\n", large.header("etag"));

    let old = json!({"kind": "video", "id": "v1", "position_ms": 1, "event_ms": 5}).to_string();
    let bad = format!("[{}]", vec![r#"{"kind":"none","id":"x"}"#; 60].join(","));
    let gzip = "accept-encoding: gzip\r\n";
    let page = "origin: http://localhost:3000\r\naccept-encoding: gzip\r\n";
    let none = "accept-encoding: identity;q=0\r\n";
    let (history, empty) = ("/v1/users/ann/history", "");
    let video = "/v1/videos/v/danmaku/segments";
    for (method, path, body, more) in [
        ("POST", history, &*old, ""),
        ("POST", history, &old, page),
        ("POST", history, &bad, gzip),
        ("POST", history, &bad, none),
        ("POST", history, "{", ""),
        ("POST", "/v1/users/ann/history?ack=never", &old, ""),
        ("POST", "/v1/users/%C3%A4/history", &old, ""),
        ("POST", "/v1/users//history", &old, ""),
        ("GET", history, empty, ""),
        ("GET", history, empty, gzip),
        ("GET", history, empty, page),
        ("GET", "/v1/users/ann/history?limit=3", empty, none),
        ("GET", "/v1/users/ann/history?limit=x", empty, ""),
        ("GET", segment, empty, ""),
        ("GET", segment, empty, gzip),
        ("GET", segment, empty, &held),
        ("GET", &format!("{video}/0.pb"), empty, ""),
        ("GET", &format!("{video}/1.pb"), empty, page),
        ("GET", &format!("{video}/1.none"), empty, ""),
    ] {
        let what = format!("{method} {path} {more}");
        let mut headers: Vec<(&str, &str)> =
            more.lines().map(|line| line.split_once(": ").unwrap()).collect();
        headers.push(("x-request-id", "r"));
        // Twice: the first of them may be the one that fills a form.
        site.call_with(method, path, body, &headers).await;
        let want = site.call_with(method, path, body, &headers).await;
        let got = over_socket(http, method, path, body, more).await;
        assert_eq!(got.status, want.status, "{what}");
        assert_eq!(lasting(&got), lasting(&want), "{what}");
        assert!(got.bytes == want.bytes, "{what}: the bodies differ");
    }
    stop.send(()).unwrap();
    assert!(served.await.unwrap());
}
