//! Moderation by an HTTP service: one that answers, and those that do not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::StatusCode;
use serde_json::{Value, json};
use tideline_gateway::Options;
use tideline_gateway::options::{HookOptions, OnFailure};

use crate::fixture::{Site, open_with};

/// How the service behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    /// Blocks what says "bad", leaves what says "hm" to a person.
    Sane,
    /// Says 500.
    Refuses,
    /// Says nothing, ever.
    Hangs,
    /// Says something else.
    Raves,
    /// Says one word for many comments.
    Mumbles,
}

struct Service {
    mood: Mutex<Mood>,
    asked: Mutex<Vec<Value>>,
    largest: AtomicUsize,
}

async fn answer(State(service): State<Arc<Service>>, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    let comments = body["comments"].as_array().unwrap().clone();
    service.largest.fetch_max(comments.len(), Ordering::Relaxed);
    service.asked.lock().unwrap().extend(comments.clone());
    let mood = *service.mood.lock().unwrap();
    match mood {
        Mood::Refuses => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Hangs => std::future::pending().await,
        Mood::Raves => "<html>".into_response(),
        Mood::Mumbles => json!({"verdicts": []}).to_string().into_response(),
        Mood::Sane => {
            let word = |comment: &Value| match comment["text"].as_str().unwrap() {
                "bad" => "block",
                "hm" => "wait",
                _ => "show",
            };
            let verdicts: Vec<&str> = comments.iter().map(word).collect();
            json!({ "verdicts": verdicts }).to_string().into_response()
        }
    }
}

/// The service and its address.
async fn service(mood: Mood) -> (Arc<Service>, String) {
    let service = Arc::new(Service {
        mood: Mutex::new(mood),
        asked: Mutex::default(),
        largest: AtomicUsize::new(0),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge", listener.local_addr().unwrap());
    let router = Router::new().route("/judge", post(answer)).with_state(service.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (service, url)
}

fn site_with(url: &str, on_failure: OnFailure) -> Site {
    let mut options = Options::default();
    options.danmaku.hook = Some(HookOptions {
        url: url.into(),
        deadline: Duration::from_millis(200),
        batch_max: 4,
        on_failure,
        look_every: Duration::from_millis(20),
        ..HookOptions::default()
    });
    let comments = tideline_danmaku::Options {
        look_first: true,
        flush_after: Duration::from_millis(10),
        ..Default::default()
    };
    open_with(options, comments).unwrap()
}

async fn post_text(site: &Site, text: &str) -> Value {
    let body = json!({"text": text, "progress_ms": 1, "client_id": text}).to_string();
    let posted = site.post("/v1/videos/v/danmaku", &body).await.expect(201);
    assert_eq!(posted["state"], "hidden");
    assert_eq!(posted["reason"], "waiting");
    posted
}

/// What became of a user's own comments: text and reason, or "shown".
async fn fates(site: &Site) -> Vec<(String, String)> {
    let own = site.get("/v1/users/anyone/danmaku?video=v").await.expect(200);
    let fate = |comment: &Value| {
        let text = |name: &str| comment[name].as_str().unwrap_or("shown").to_owned();
        (text("text"), text("reason"))
    };
    let mut all: Vec<_> = own["items"].as_array().unwrap().iter().map(fate).collect();
    all.sort();
    all
}

/// Waits until the comments have become this; the test's own time is the end.
async fn until(site: &Site, want: &[(&str, &str)]) {
    let want: Vec<(String, String)> =
        want.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
    let reached = async {
        while fates(site).await != want {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(60), reached).await.is_err() {
        assert_eq!(fates(site).await, want);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_shows_or_blocks_and_none_leaves_a_comment_to_a_person() {
    let (service, url) = service(Mood::Sane).await;
    let site = site_with(&url, OnFailure::Hold);
    for text in ["a", "b", "bad", "c", "d", "hm"] {
        post_text(&site, text).await;
    }
    until(
        &site,
        &[
            ("a", "shown"),
            ("b", "shown"),
            ("bad", "blocked"),
            ("c", "shown"),
            ("d", "shown"),
            ("hm", "waiting"),
        ],
    )
    .await;
    assert!(service.largest.load(Ordering::Relaxed) <= 4, "in batches");
    let asked = service.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|c| c["video"] == "v" && c["sender"].is_string()));
    assert!(!serde_json::to_string(&asked).unwrap().contains("anyone"), "no user leaves");
    // The person finds it, and shows it.
    let due = async {
        loop {
            let due = site.get("/v1/danmaku/review").await.expect(200);
            if let Some(item) = due["items"].get(0) {
                return item.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let due = tokio::time::timeout(Duration::from_secs(60), due).await.unwrap();
    assert_eq!(
        (&due["video"], &due["text"], &due["reason"]),
        (&json!("v"), &json!("hm"), &json!("waiting"))
    );
    let path = format!("/v1/videos/v/danmaku/{}", due["id"].as_str().unwrap());
    site.call("PATCH", &path, r#"{"state":"shown"}"#).await.expect(200);
    assert_eq!(site.get("/v1/danmaku/review").await.expect(200)["items"], json!([]));
    let metrics = String::from_utf8(site.get("/metrics").await.bytes).unwrap();
    let line = "tideline_danmaku_hook_comments_total{came=\"blocked\"} 1";
    assert!(metrics.lines().any(|l| l == line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_holds_comments_or_lets_them_pass_as_it_is_set() {
    for mood in [Mood::Refuses, Mood::Hangs, Mood::Raves, Mood::Mumbles] {
        let (held, url) = service(mood).await;
        let site = site_with(&url, OnFailure::Hold);
        post_text(&site, "a").await;
        let (passed, url) = service(mood).await;
        let other = site_with(&url, OnFailure::Pass);
        post_text(&other, "a").await;
        until(&other, &[("a", "shown")]).await;
        assert!(!passed.asked.lock().unwrap().is_empty(), "{mood:?}: it was asked");
        let reached = async {
            while held.asked.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap();
        assert_eq!(fates(&site).await, [("a".into(), "waiting".into())], "{mood:?}");
        // It comes to its senses, and what waited is asked about again.
        *held.mood.lock().unwrap() = Mood::Sane;
        until(&site, &[("a", "shown")]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_not_there_is_a_failure_like_any() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let other = site_with(&url, OnFailure::Pass);
    post_text(&other, "a").await;
    post_text(&other, "b").await;
    until(&other, &[("a", "shown"), ("b", "shown")]).await;
    let mut options = Options::default();
    options.danmaku.hook = Some(HookOptions { url: "ftp://x/".into(), ..HookOptions::default() });
    let refused = open_with(options, tideline_danmaku::Options::default()).err().unwrap();
    assert!(refused.to_string().starts_with("danmaku.hook.url: "), "{refused}");
}
