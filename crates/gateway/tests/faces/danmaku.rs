//! Comments across a video, over HTTP, as callers and players see them.

use std::io::Read as _;

use serde_json::{Value, json};
use tideline_wire::danmaku_v1::Segment;

use crate::fixture::{Reply, Site, site, token_site};

async fn post(site: &Site, video: &str, text: &str, progress_ms: u32) -> Value {
    let body = json!({"text": text, "progress_ms": progress_ms}).to_string();
    site.post(&format!("/v1/videos/{video}/danmaku"), &body).await.expect(201)
}

pub(crate) async fn as_of(site: &Site, token: &str, method: &str, path: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    site.call_with(method, path, body, &[("authorization", &bearer)]).await
}

pub(crate) async fn token(site: &Site, admin: &str, scope: &str) -> String {
    let body = json!({"scopes": [scope], "note": "test"}).to_string();
    let made = as_of(site, admin, "POST", "/v1/tokens", &body).await.expect(201);
    made["token"].as_str().unwrap().to_owned()
}

fn texts(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["text"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_stands_in_every_form_of_its_segment() {
    use prost::Message as _;
    let site = site();
    let posted = post(&site, "v", "first <b>", 1_500).await;
    assert_eq!((&posted["state"], &posted["mode"]), (&json!("shown"), &json!("scroll")));
    assert!(posted["id"].is_string() && posted["seq"].as_u64().unwrap() > 0);
    post(&site, "v", "later", 400_000).await;

    let first = site.get("/v1/videos/v/danmaku/segments/1.json").await;
    assert_eq!(texts(&first.expect(200)), ["first <b>"]);
    assert_eq!(first.header("cache-control"), "public, max-age=5");
    assert!(
        first.header("x-tideline-seq").parse::<u64>().unwrap() >= posted["seq"].as_u64().unwrap()
    );
    let second = site.get("/v1/videos/v/danmaku/segments/2.json").await.expect(200);
    assert_eq!(texts(&second), ["later"]);
    let all = site.get("/v1/videos/v/danmaku").await.expect(200);
    assert_eq!(texts(&all), ["first <b>", "later"]);

    let pb = site.get("/v1/videos/v/danmaku/segments/1.pb").await;
    assert_eq!(pb.header("content-type"), "application/x-protobuf");
    let segment = Segment::decode(&pb.bytes[..]).unwrap();
    assert_eq!(segment.elements[0].id.to_string(), posted["id"].as_str().unwrap());
    let xml = site.get("/v1/videos/v/danmaku/segments/1.xml").await;
    let text = String::from_utf8(xml.bytes).unwrap();
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?><i"), "{text}");
    assert!(
        text.contains("<d p=\"1.50000,1,25,16777215,") && text.contains(">first &lt;b&gt;</d>")
    );
    let ass = site.get("/v1/videos/v/danmaku/segments/1.ass").await;
    assert!(String::from_utf8(ass.bytes).unwrap().contains("Dialogue: "));
    let path = "/v1/videos/v/danmaku/segments/1";
    let by_accept = site.call_with("GET", path, "", &[("accept", "application/x-protobuf")]).await;
    assert_eq!(by_accept.bytes, pb.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_held_is_answered_304_until_it_changes() {
    let site = site();
    post(&site, "v", "one", 0).await;
    let path = "/v1/videos/v/danmaku/segments/1.json";
    let first = site.get(path).await;
    let held = [("if-none-match", first.header("etag"))];
    let again = site.call_with("GET", path, "", &held).await;
    assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0));
    assert_eq!(again.header("x-cache"), "HIT-1");

    let other = post(&site, "v", "elsewhere", 400_000).await;
    let again = site.call_with("GET", path, "", &held).await;
    assert_eq!(again.status.as_u16(), 304, "another segment's comment changes nothing");
    let seq = again.header("x-tideline-seq").parse::<u64>().unwrap();
    assert!(seq >= other["seq"].as_u64().unwrap(), "what the body covers advances");

    post(&site, "v", "two", 10).await;
    let changed = site.call_with("GET", path, "", &held).await;
    assert_eq!(texts(&changed.expect(200)), ["one", "two"]);
    assert_ne!(changed.header("etag"), first.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_player_loads_is_made_once_for_each_change() {
    let site = site();
    post(&site, "v", "one", 0).await;
    for path in
        ["/players/dplayer/v3/?id=v", "/players/artplayer/v.json", "/players/artplayer/v.xml"]
    {
        let made = site.get(path).await;
        assert_eq!(made.header("x-cache"), "MISS", "{path}");
        post(&site, "w", "elsewhere", 0).await;
        let held = [("if-none-match", made.header("etag"))];
        let again = site.call_with("GET", path, "", &held).await;
        assert_eq!((again.status.as_u16(), again.header("x-cache")), (304, "HIT-1"), "{path}");
        assert_eq!(again.header("cache-control"), "no-cache");
        post(&site, "v", path, 10).await;
        let changed = site.call_with("GET", path, "", &held).await;
        assert!(changed.bytes.len() > made.bytes.len(), "{path}");
    }
    let two = site.get("/players/dplayer/v3/?id=v&max=2").await.expect(200);
    assert_eq!(two["data"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_encoding_has_a_tag_of_its_own_and_unpacks_to_the_same() {
    let site = site();
    for n in 0..50 {
        post(&site, "v", &format!("comment number {n}"), n).await;
    }
    let path = "/v1/videos/v/danmaku/segments/1.xml";
    let plain = site.get(path).await;
    let gzip = site.call_with("GET", path, "", &[("accept-encoding", "gzip")]).await;
    let zstd = site.call_with("GET", path, "", &[("accept-encoding", "gzip, zstd")]).await;
    let brotli = site.call_with("GET", path, "", &[("accept-encoding", "gzip, br")]).await;
    let all = [(&plain, ""), (&gzip, "gzip"), (&zstd, "zstd"), (&brotli, "br")];
    let mut tags = all.map(|(reply, name)| {
        assert_eq!(reply.header("content-encoding"), name);
        reply.header("etag")
    });
    tags.sort_unstable();
    assert!(tags.windows(2).all(|pair| pair[0] != pair[1]), "{tags:?}");
    assert_eq!(zstd::stream::decode_all(&zstd.bytes[..]).unwrap(), plain.bytes);
    let other = site.call_with("GET", path, "", &[("accept-encoding", "deflate, *")]).await;
    assert_eq!((other.header("etag"), &other.bytes), (plain.header("etag"), &plain.bytes));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&gzip.bytes[..]).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.bytes);
    text.clear();
    brotli::Decompressor::new(&brotli.bytes[..], 4096).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_comes_in_pieces_and_is_the_same_however_it_is_packed() {
    let site = site();
    let mut lines = String::new();
    for n in 0..2_500 {
        lines += &format!("{{\"id\":\"{n}\",\"progress_ms\":{n},\"text\":\"comment {n}\"}}\n");
    }
    let path = "/v1/videos/v/danmaku:import?format=ndjson";
    assert_eq!(site.post(path, &lines).await.expect(200)["taken"], 2_500);
    for ending in ["json", "xml", "ass"] {
        let path = format!("/v1/videos/v/danmaku.{ending}");
        let plain = site.get(&path).await;
        let text = String::from_utf8(plain.bytes.clone()).unwrap();
        assert_eq!(text.matches("comment ").count(), 2_500, "{ending}");
        if ending != "ass" {
            let one = site.get(&format!("/v1/videos/v/danmaku/segments/1.{ending}")).await;
            assert_eq!(plain.bytes, one.bytes, "one segment is the whole");
        }
        let gzip = site.call_with("GET", &path, "", &[("accept-encoding", "gzip")]).await;
        let brotli = site.call_with("GET", &path, "", &[("accept-encoding", "br")]).await;
        assert_eq!(gzip.header("content-encoding"), "gzip");
        assert_eq!(brotli.header("content-encoding"), "br");
        assert!(gzip.bytes.len() * 3 < plain.bytes.len());
        let (mut from_gzip, mut from_brotli) = (Vec::new(), Vec::new());
        flate2::read::GzDecoder::new(&gzip.bytes[..]).read_to_end(&mut from_gzip).unwrap();
        brotli::Decompressor::new(&brotli.bytes[..], 4096).read_to_end(&mut from_brotli).unwrap();
        assert!(from_gzip == plain.bytes && from_brotli == plain.bytes, "{ending}");
        assert_ne!(gzip.header("etag"), plain.header("etag"));
        for (encoding, reply) in [("", &plain), ("gzip", &gzip), ("br", &brotli)] {
            let held = [("if-none-match", reply.header("etag")), ("accept-encoding", encoding)];
            let again = site.call_with("GET", &path, "", &held).await;
            assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0), "{ending}");
        }
    }
    let path = "/v1/videos/v/danmaku.json";
    let before = site.get(path).await;
    let id = before.json()["items"][7]["id"].as_str().unwrap().to_owned();
    site.post(&format!("/v1/videos/v/danmaku/{id}/like"), "").await.expect(204);
    let held = [("if-none-match", before.header("etag"))];
    let after = site.call_with("GET", path, "", &held).await;
    assert_eq!(after.expect(200)["items"][7]["likes"], 1);
    let empty = site.get("/v1/videos/none/danmaku.json").await.expect(200);
    assert_eq!(empty, json!({"items": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_over_its_limit_is_told_by_field_and_limit() {
    let site = site();
    let script = |bytes: usize| {
        let text = "x".repeat(bytes);
        json!({"text": text, "progress_ms": 0, "mode": "script"}).to_string()
    };
    site.post("/v1/videos/v/danmaku", &script(1_000_000)).await.expect(201);
    let told = site.post("/v1/videos/v/danmaku", &script(1_000_001)).await.problem(400);
    assert_eq!(
        told,
        "invalid_argument: text: the text has 1000001 bytes, at most 1000000 are allowed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_is_empty_inside_the_video_and_none_outside() {
    let site = site();
    let settings = json!({"duration_ms": 800_000}).to_string();
    site.call("PUT", "/v1/videos/v/danmaku/settings", &settings).await.expect(200);
    for (n, status) in [("1", 200), ("3", 200), ("4", 404), ("0", 400), ("x", 400)] {
        let reply = site.get(&format!("/v1/videos/v/danmaku/segments/{n}.json")).await;
        assert_eq!(reply.status.as_u16(), status, "{n}");
    }
    let empty = site.get("/v1/videos/v/danmaku/segments/2.pb").await;
    assert_eq!((empty.status.as_u16(), empty.bytes.len()), (200, 0));
    site.get("/v1/videos/v/danmaku/segments/1.exe").await.problem(404);
    let whole = json!({"duration_ms": 720_000}).to_string();
    site.call("PUT", "/v1/videos/w/danmaku/settings", &whole).await.expect(200);
    post(&site, "w", "at the very end", 720_000).await;
    let last = site.get("/v1/videos/w/danmaku/segments/2.json").await.expect(200);
    assert_eq!(texts(&last), ["at the very end"]);
    let beyond = json!({"text": "x", "progress_ms": 800_001}).to_string();
    let told = site.post("/v1/videos/v/danmaku", &beyond).await.problem(400);
    assert!(told.starts_with("invalid_argument: progress_ms: "), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_holds_and_what_ranks_below_is_hidden_with_its_reason() {
    let site = site();
    let settings = json!({"duration_ms": 30_000, "limit": 100}).to_string();
    site.call("PUT", "/v1/videos/v/danmaku/settings", &settings).await.expect(200);
    let first = post(&site, "v", "the first", 0).await;
    for n in 1..=100 {
        post(&site, "v", &format!("c{n}"), n).await;
    }
    let view = site.get("/v1/videos/v/danmaku/view").await.expect(200);
    assert_eq!(
        (&view["counted"], &view["overflow"], &view["limit"]),
        (&json!(100), &json!(1), &json!(100))
    );
    let path = format!("/v1/videos/v/danmaku/{}", first["id"].as_str().unwrap());
    let told = site.call("PATCH", &path, r#"{"rank":"protected"}"#).await;
    assert_eq!(told.status.as_u16(), 200, "{:?}", String::from_utf8_lossy(&told.bytes));
    assert_eq!(told.json()["state"], "shown");
    let view = site.get("/v1/videos/v/danmaku/view").await.expect(200);
    assert_eq!(view["counted"], 100, "something else made room");
    site.call("PATCH", &path, r#"{"rank":"high"}"#).await.problem(400);
    let own = site.get("/v1/users/anyone/danmaku?video=v&limit=100").await.expect(200);
    let hidden: Vec<_> =
        own["items"].as_array().unwrap().iter().filter(|c| c["state"] == "hidden").collect();
    assert!(hidden.iter().all(|c| c["reason"] == "overflow"), "{hidden:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_what_is_told_by_the_catalogue_and_the_token() {
    let (site, admin) = token_site();
    let (ann, bob) =
        (token(&site, &admin, "user:ann").await, token(&site, &admin, "user:bob").await);
    let moderator = token(&site, &admin, "moderator").await;
    let item = r#"{"title":"T","owner":"ann","duration_ms":60000}"#;
    as_of(&site, &admin, "PUT", "/v1/items/video/v", item).await.expect(204);
    let hi = r#"{"text":"hi","progress_ms":5,"client_id":"c1"}"#;
    site.post("/v1/videos/v/danmaku", hi).await.problem(401);
    let posted = as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", hi).await.expect(201);
    let again = as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", hi).await.expect(201);
    assert_eq!(posted["id"], again["id"], "a retried post is one comment");
    assert_eq!(
        posted["sender"].as_str().unwrap().len().min(8),
        posted["sender"].as_str().unwrap().len()
    );
    assert_eq!(texts(&site.get("/v1/videos/v/danmaku").await.expect(200)), ["hi"], "all may read");

    let path = format!("/v1/videos/v/danmaku/{}", posted["id"].as_str().unwrap());
    as_of(&site, &bob, "PATCH", &path, r#"{"rank":"protected"}"#).await.problem(403);
    as_of(&site, &ann, "PATCH", &path, r#"{"rank":"protected"}"#).await.expect(200);
    as_of(&site, &moderator, "PATCH", &path, r#"{"state":"hidden"}"#).await.expect(200);
    assert_eq!(texts(&site.get("/v1/videos/v/danmaku").await.expect(200)), [""; 0]);
    as_of(&site, &ann, "PATCH", &path, r#"{"state":"shown"}"#).await.expect(200);
    let bas = r#"{"text":"def text a {}","progress_ms":5,"mode":"bas"}"#;
    as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", bas).await.problem(400);
    as_of(&site, &ann, "POST", "/v1/videos/v/danmaku", bas).await.expect(201);
    let pack = site.get("/v1/videos/v/danmaku/special/1.pb").await;
    assert!(pack.status.is_success() && !pack.bytes.is_empty());
    assert_eq!(texts(&site.get("/v1/videos/v/danmaku").await.expect(200)), ["hi"]);

    for who in [&bob, &bob] {
        as_of(&site, who, "POST", &format!("{path}/like"), "").await.expect(204);
        as_of(&site, who, "POST", &format!("{path}/report"), r#"{"reason":2}"#).await.expect(204);
    }
    assert_eq!(site.get("/v1/videos/v/danmaku").await.expect(200)["items"][0]["likes"], 1);
    as_of(&site, &ann, "PUT", "/v1/videos/v/danmaku/settings", r#"{"closed":true}"#)
        .await
        .expect(200);
    let late = r#"{"text":"late","progress_ms":5}"#;
    as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", late).await.problem(403);
    as_of(&site, &ann, "POST", "/v1/videos/v/danmaku", late).await.expect(201);
    as_of(&site, &bob, "DELETE", &path, "").await.expect(204);
    assert_eq!(texts(&site.get("/v1/videos/v/danmaku").await.expect(200)), ["late"]);
    as_of(&site, &ann, "DELETE", "/v1/users/ann", "").await.expect(204);
    assert_eq!(
        texts(&site.get("/v1/videos/v/danmaku").await.expect(200)),
        [""; 0],
        "erased is gone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_the_owner_refuse_and_read_back() {
    let (site, admin) = token_site();
    let bob = token(&site, &admin, "user:bob").await;
    let list =
        r#"[{"type":1,"filter":"sp.iler","opened":true},{"type":0,"filter":"bad","opened":true}]"#;
    as_of(&site, &admin, "PUT", "/v1/videos/v/danmaku/filters", list).await.expect(204);
    let back = as_of(&site, &admin, "GET", "/v1/videos/v/danmaku/filters", "").await.expect(200);
    assert_eq!(back.as_array().unwrap().len(), 2);
    for (text, status) in [("a spoiler", 403), ("BAD", 403), ("fine", 201)] {
        let body = json!({"text": text, "progress_ms": 1}).to_string();
        let reply = as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", &body).await;
        assert_eq!(reply.status.as_u16(), status, "{text}");
    }
    let bad = r#"[{"type":1,"filter":"(","opened":true}]"#;
    let told = as_of(&site, &admin, "PUT", "/v1/videos/v/danmaku/filters", bad).await.problem(400);
    assert!(told.contains("filters: filter 0"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn players_load_and_send_as_they_are() {
    let site = site();
    post(&site, "v", "<img src=x onerror=alert(1)>", 1_000).await;
    let list = site.get("/players/dplayer/v3/?id=v&max=1000").await.expect(200);
    assert_eq!(list["code"], 0);
    let one = list["data"][0].as_array().unwrap();
    assert_eq!(
        (one[0].as_f64(), one[1].as_u64(), one[2].as_u64()),
        (Some(1.0), Some(0), Some(16_777_215))
    );
    assert!(!one[4].as_str().unwrap().contains('<'), "the player puts it into HTML");
    let sent =
        r#"{"token":"","id":"v","author":"x","time":2.5,"text":"hello","color":255,"type":1}"#;
    assert_eq!(site.post("/players/dplayer/v3/", sent).await.expect(200)["code"], 0);
    let invisible =
        r#"{"token":"","id":"v","author":"x","time":2.5,"text":" ","color":255,"type":1}"#;
    let told = site.post("/players/dplayer/v3/", invisible).await.expect(200);
    assert_eq!(told["code"], 3);
    assert!(told["msg"].as_str().unwrap().starts_with("text: "), "{told}");

    let art = site.get("/players/artplayer/v.json").await.expect(200);
    assert_eq!(art[0]["text"], "<img src=x onerror=alert(1)>");
    assert_eq!((&art[1]["mode"], &art[1]["time"]), (&json!(1), &json!(2.5)));
    let xml = site.get("/players/artplayer/v.xml").await;
    assert_eq!(String::from_utf8(xml.bytes).unwrap().matches("<d p=").count(), 2);
    site.get("/players/artplayer/v.png").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_taken_whole_and_once() {
    let site = site();
    let mut file = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><i><chatid>1</chatid>");
    for n in 0..120 {
        file +=
            &format!("<d p=\"{n}.5,1,25,16777215,1420018447,0,a6216d9,{}\">c{n}</d>", 9_000 + n);
    }
    file += "<d p=\"1,77,25,1,1,0,a,1\">no such mode</d></i>";
    site.call("PUT", "/v1/videos/v/danmaku/settings", r#"{"limit":100}"#).await.expect(200);
    let first = site.post("/v1/videos/v/danmaku:import?format=xml", &file).await.expect(200);
    assert_eq!(
        (&first["read"], &first["taken"], &first["dropped"]),
        (&json!(121), &json!(120), &json!(1))
    );
    let again = site.post("/v1/videos/v/danmaku:import", &file).await.expect(200);
    assert_eq!((&again["taken"], &again["duplicates"]), (&json!(0), &json!(120)));
    let view = site.get("/v1/videos/v/danmaku/view").await.expect(200);
    assert_eq!((&view["total"], &view["counted"]), (&json!(120), &json!(100)));
    assert_eq!(view["overflow"], 20);
    site.post("/v1/videos/v/danmaku:import?format=doc", &file).await.problem(400);
    site.post("/v1/videos/v/danmaku:import", "what is this").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewers_flags_stand_before_the_bytes_that_all_share() {
    use prost::Message as _;
    use tideline_wire::danmaku::smart::{Flags, read_frame};
    let (site, admin) = token_site();
    let (ann, bob) =
        (token(&site, &admin, "user:ann").await, token(&site, &admin, "user:bob").await);
    let say = |text: &str| json!({"text": text, "progress_ms": 5}).to_string();
    let mine = as_of(&site, &ann, "POST", "/v1/videos/v/danmaku", &say("mine")).await.expect(201);
    let dull =
        as_of(&site, &bob, "POST", "/v1/videos/v/danmaku", &say("so dull")).await.expect(201);
    let list = r#"[{"type":0,"filter":"dull","opened":true}]"#;
    as_of(&site, &ann, "PUT", "/v1/users/me/danmaku/filters", list).await.expect(204);
    let back = as_of(&site, &ann, "GET", "/v1/users/me/danmaku/filters", "").await.expect(200);
    assert_eq!(back[0]["filter"], "dull");
    as_of(&site, &bob, "GET", "/v1/users/ann/danmaku/filters", "").await.problem(403);

    let id = |posted: &Value| posted["id"].as_str().unwrap().parse::<i64>().unwrap();
    let path = "/v1/videos/v/danmaku/segments/1.smart";
    let got = as_of(&site, &ann, "GET", path, "").await;
    assert_eq!(got.header("cache-control"), "private, max-age=5");
    let (flags, xml) = read_frame(&got.bytes).unwrap();
    let flags = Flags::from_json(flags, 10).unwrap();
    assert_eq!((flags.default, flags.flags), (5, vec![(id(&mine), 11), (id(&dull), 0)]));
    let mut text = String::new();
    flate2::read::GzDecoder::new(xml).read_to_string(&mut text).unwrap();
    let shared = site.get("/v1/videos/v/danmaku/segments/1.xml").await;
    assert_eq!(text.as_bytes(), shared.bytes);
    let open = crate::fixture::site();
    open.post(
        "/v1/videos/v/danmaku",
        &json!({"text": "mine", "progress_ms": 5, "user": "ann"}).to_string(),
    )
    .await
    .expect(201);
    let own = open.get(&format!("{path}?user=ann")).await;
    let own = Flags::from_json(read_frame(&own.bytes).unwrap().0, 10).unwrap();
    assert_eq!(own.flags[0].1, 11, "where nobody is asked for a name, by the name that is said");
    let nobody = site.get(path).await;
    let flags = Flags::from_json(read_frame(&nobody.bytes).unwrap().0, 10).unwrap();
    assert_eq!((flags.default, flags.flags), (5, vec![]));

    let scores = r#"{ "default": 3, "flags": [["1",11]] }"#;
    let put = "/v1/users/ann/danmaku/flags?video=v&segment=1";
    as_of(&site, &admin, "PUT", put, scores).await.expect(204);
    let got = as_of(&site, &ann, "GET", path, "").await;
    assert_eq!(read_frame(&got.bytes).unwrap().0, scores.as_bytes(), "byte for byte as they came");
    let named = format!("{path}?user=ann");
    let got = as_of(&site, &admin, "GET", &named, "").await;
    assert_eq!(read_frame(&got.bytes).unwrap().0, scores.as_bytes(), "who may read ann's");
    as_of(&site, &bob, "GET", &named, "").await.problem(403);
    site.get(&named).await.problem(401);
    let bearer = format!("Bearer {ann}");
    let accepted = [("authorization", &*bearer), ("accept", "application/x-protobuf")];
    let one = site.call_with("GET", path, "", &accepted).await;
    let one = Segment::decode(&one.bytes[..]).unwrap();
    let flags = one.flags.unwrap();
    assert_eq!((flags.default_flag, flags.flags[0].id, flags.flags[0].flag), (3, 1, 11));
    assert_eq!(one.elements.len(), 2);
    as_of(&site, &admin, "PUT", put, r#"{"default":12}"#).await.problem(400);
    as_of(&site, &admin, "PUT", "/v1/users/ann/danmaku/flags?video=v", scores).await.problem(400);
}
