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

#[tokio::test(flavor = "multi_thread")]
async fn the_site_has_filters_that_lists_from_elsewhere_go_into() {
    let (site, admin) = strict(Options::default(), tideline_danmaku::Options::default());
    let (ann, moderator) =
        (token(&site, &admin, "user:ann").await, token(&site, &admin, "moderator").await);
    let path = "/v1/danmaku/filters";
    as_of(&site, &ann, "GET", path, "").await.problem(403);
    as_of(&site, &ann, "PUT", path, "[]").await.problem(403);
    assert_eq!(as_of(&site, &moderator, "GET", path, "").await.expect(200), json!([]));
    let list = r#"[{"type":0,"filter":"spam"},{"type":1,"filter":"(?<!a)b"},{"type":9}]"#;
    let told = as_of(&site, &moderator, "PUT", path, list).await.problem(400);
    assert!(told.contains("filters: filter 1"), "{told}");
    let lenient = format!("{path}?lenient=true");
    let told = as_of(&site, &moderator, "PUT", &lenient, list).await.expect(200);
    assert_eq!((&told["kept"], &told["dropped"]), (&json!(1), &json!(2)));
    assert!(told["report"][0].as_str().unwrap().starts_with("filter 1: "), "{told}");
    let back = as_of(&site, &admin, "GET", path, "").await.expect(200);
    assert_eq!(back, json!([{"type": 0, "filter": "spam", "opened": true}]));
    let say = json!({"text": "SPAM", "progress_ms": 5}).to_string();
    as_of(&site, &ann, "POST", "/v1/videos/any/danmaku", &say).await.problem(403);
    as_of(&site, &admin, "POST", "/v1/videos/any/danmaku", &say).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_undoes_what_a_line_of_the_audit_tells() {
    let (site, admin) = strict(Options::default(), tideline_danmaku::Options::default());
    let (ann, bob) =
        (token(&site, &admin, "user:ann").await, token(&site, &admin, "user:bob").await);
    let item = r#"{"title":"T","owner":"ann"}"#;
    as_of(&site, &admin, "PUT", "/v1/items/video/v", item).await.expect(204);
    let say = json!({"text": "hm", "progress_ms": 5}).to_string();
    let posted = as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", &say).await.expect(201);
    let path = format!("/v1/videos/v/danmaku/{}", posted["id"].as_str().unwrap());
    let blocked = as_of(&site, &ann, "PATCH", &path, r#"{"state":"blocked"}"#).await.expect(200);
    let again = as_of(&site, &ann, "PATCH", &path, r#"{"state":"blocked"}"#).await.expect(200);
    assert_eq!(again["audit"], json!(null), "it was so already");
    let hidden = "/v1/videos/v/danmaku/hidden";
    as_of(&site, &bob, "GET", hidden, "").await.problem(403);
    let listed = as_of(&site, &ann, "GET", &format!("{hidden}?limit=1"), "").await.expect(200);
    assert_eq!(
        (&listed["items"][0]["reason"], &listed["next"]),
        (&json!("blocked"), &posted["id"])
    );
    let after = format!("{hidden}?after={}", posted["id"].as_str().unwrap());
    let rest = as_of(&site, &ann, "GET", &after, "").await.expect(200);
    assert_eq!(rest, json!({"items": [], "next": null}));
    as_of(&site, &admin, "PUT", "/v1/danmaku/filters", r#"[{"type":0,"filter":"x"}]"#)
        .await
        .expect(204);
    let mut places = Vec::new();
    for partition in 0..4 {
        let path = format!("/v1/topics/danmaku-audit/records?partition={partition}");
        let lines = as_of(&site, &admin, "GET", &path, "").await;
        for line in String::from_utf8(lines.bytes).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            if line["value"].is_string() || line["value"].is_object() {
                let value = match &line["value"] {
                    serde_json::Value::String(text) => serde_json::from_str(text).unwrap(),
                    value => value.clone(),
                };
                let place = ["partition", "incarnation", "epoch", "seq"];
                let place: serde_json::Map<_, _> =
                    place.iter().map(|n| ((*n).to_owned(), line[n].clone())).collect();
                places.push((value, json!(place).to_string()));
            }
        }
    }
    assert_eq!(places.len(), 2);
    let undo = "/v1/danmaku/audit:undo";
    for (value, place) in &places {
        as_of(&site, &bob, "POST", undo, place).await.problem(403);
        if value["site"] == true {
            assert_eq!(value["changes"][0]["filters"]["before"], json!(null));
            as_of(&site, &ann, "POST", undo, place).await.problem(403);
            as_of(&site, &admin, "POST", undo, place).await.expect(204);
        } else {
            assert_eq!((&value["video"], &value["actor"]), (&json!("v"), &json!("ann")));
            assert_eq!(blocked["audit"].to_string(), *place, "the answer tells the place");
            as_of(&site, &ann, "POST", undo, place).await.expect(204);
            as_of(&site, &ann, "POST", undo, place).await.problem(409);
        }
    }
    let shown = site.get("/v1/videos/v/danmaku").await.expect(200);
    assert_eq!(shown["items"][0]["text"], "hm");
    let none = as_of(&site, &admin, "GET", "/v1/danmaku/filters", "").await.expect(200);
    assert_eq!(none, json!([]));
    as_of(&site, &admin, "POST", undo, r#"{"partition":0}"#).await.problem(400);
    let gone = r#"{"partition":0,"incarnation":7777,"epoch":1,"seq":1}"#;
    as_of(&site, &admin, "POST", undo, gone).await.problem(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_adds_up_its_videos_once_they_are_at_rest() {
    let flush_after = std::time::Duration::from_millis(10);
    let comments = tideline_danmaku::Options { flush_after, ..Default::default() };
    let site = open_with(Options::default(), comments).unwrap();
    for video in ["v1", "v2"] {
        let item = r#"{"title":"T","work":"w"}"#;
        site.call("PUT", &format!("/v1/items/video/{video}"), item).await.expect(204);
    }
    let say = json!({"text": "hi", "progress_ms": 5}).to_string();
    for video in ["v1", "v1", "v2", "v3"] {
        site.post(&format!("/v1/videos/{video}/danmaku"), &say).await.expect(201);
    }
    let until = async |want: serde_json::Value| {
        let reached = async {
            while site.get("/v1/works/w/danmaku").await.expect(200) != want {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let limit = std::time::Duration::from_secs(60);
        if tokio::time::timeout(limit, reached).await.is_err() {
            assert_eq!(site.get("/v1/works/w/danmaku").await.expect(200), want);
        }
    };
    until(json!({"work": "w", "videos": 2, "total": 3, "shown": 3})).await;
    // The catalogue says another work, which the next comment tells.
    let item = r#"{"title":"T","work":"other"}"#;
    site.call("PUT", "/v1/items/video/v2", item).await.expect(204);
    site.post("/v1/videos/v2/danmaku", &say).await.expect(201);
    until(json!({"work": "w", "videos": 1, "total": 2, "shown": 2})).await;
    let other = site.get("/v1/works/other/danmaku").await.expect(200);
    assert!(other["videos"].as_u64().unwrap() <= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_of_many_viewers_come_by_lines_and_a_bad_line_stops_no_other() {
    use tideline_wire::danmaku::smart::read_frame;
    let (site, admin) = strict(Options::default(), tideline_danmaku::Options::default());
    let (ann, bob) =
        (token(&site, &admin, "user:ann").await, token(&site, &admin, "user:bob").await);
    let flags = r#"{ "default": 2, "flags": [["1",11]] }"#;
    let line = |user: &str| {
        format!("{{\"user\":\"{user}\",\"video\":\"v\",\"segment\":1,\"flags\":{flags}}}\n")
    };
    let lines = line("ann") + "{\"user\":\"x\"}\n\n" + &line("bob");
    let path = "/v1/danmaku/flags:batch";
    as_of(&site, &ann, "POST", path, &lines).await.problem(403);
    let told = as_of(&site, &admin, "POST", path, &lines).await.expect(200);
    assert_eq!((&told["taken"], &told["rejected"]), (&json!(2), &json!(1)));
    assert!(told["report"][0].as_str().unwrap().starts_with("line 2: missing field"), "{told}");
    for user in [&ann, &bob] {
        let smart = "/v1/videos/v/danmaku/segments/1.smart";
        let got = as_of(&site, user, "GET", smart, "").await;
        assert_eq!(read_frame(&got.bytes).unwrap().0, flags.as_bytes());
    }
}
