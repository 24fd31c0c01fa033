//! Rules of comments over HTTP: who may post how much, what is filtered, what
//! can be undone.

use serde_json::json;
use tideline_gateway::Options;
use tideline_gateway::options::AuthMode;

use crate::danmaku::{as_of, token};
use crate::fixture::{Site, open_with};

/// A site that asks for tokens, and its first one.
fn strict(options: Options, comments: tideline_danmaku::Options) -> (Site, String) {
    let mut options = options;
    options.auth.mode = AuthMode::Token;
    let site = open_with(options, comments).unwrap();
    let token = site.gateway.first_token().unwrap().unwrap();
    (site, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_who_posts_too_much_is_told_when_to_come_back() {
    let mut options = Options::default();
    options.danmaku.sender_per_minute = 4;
    let comments = tideline_danmaku::Options { sender_per_day: 3, ..Default::default() };
    let (site, admin) = strict(options, comments);
    let (ann, bob) =
        (token(&site, &admin, "user:ann").await, token(&site, &admin, "user:bob").await);
    let item = r#"{"title":"T","owner":"bob"}"#;
    as_of(&site, &admin, "PUT", "/v1/items/video/v", item).await.expect(204);
    let say = |n: u32| json!({"text": format!("c{n}"), "progress_ms": 5}).to_string();
    let path = "/v1/videos/v/danmaku";
    for n in 0..3 {
        as_of(&site, &ann, "POST", path, &say(n)).await.expect(201);
    }
    let day = as_of(&site, &ann, "POST", path, &say(3)).await;
    assert!(day.problem(429).starts_with("rate_limited: a sender may post 3 comments"));
    assert_eq!(day.json()["limit"], "sender_day");
    assert!(day.header("retry-after").parse::<u64>().unwrap() > 86_000);
    let minute = as_of(&site, &ann, "POST", path, &say(4)).await;
    minute.problem(429);
    assert_eq!(minute.json()["limit"], "sender");
    assert!(minute.header("retry-after").parse::<u64>().unwrap() <= 15);
    for n in 0..6 {
        as_of(&site, &bob, "POST", path, &say(n)).await.expect(201);
    }
    let named = json!({"text": "for ann", "progress_ms": 5, "user": "ann"}).to_string();
    as_of(&site, &admin, "POST", path, &named).await.problem(429);
    let own = json!({"text": "a word of the house", "progress_ms": 5}).to_string();
    for _ in 0..6 {
        as_of(&site, &admin, "POST", path, &own).await.expect(201);
    }
}
