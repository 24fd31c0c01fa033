//! The live connection, over real sockets.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use prost::Message as _;
use serde_json::{Value, json};
use tideline_gateway::Options;
use tideline_gateway::options::AuthMode;
use tideline_wire::{history_v1, live_v1};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::fixture::{Site, open};

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// A site on real sockets, until it is told to stop.
struct Served {
    site: Site,
    http: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<bool>,
}

async fn serve(mode: AuthMode) -> Served {
    let mut options = Options::default();
    options.auth.mode = mode;
    serve_with(options).await
}

async fn serve_with(mut options: Options) -> Served {
    options.server.http = "127.0.0.1:0".parse().unwrap();
    options.server.grpc = "127.0.0.1:0".parse().unwrap();
    let site = open(options).unwrap();
    let bound = site.gateway.bind().await.unwrap();
    let (http, (stop, stopped)) = (bound.http(), oneshot::channel());
    let served = tokio::spawn(bound.serve(async {
        let _ = stopped.await;
    }));
    Served { site, http, stop, served }
}

impl Served {
    async fn connect(&self, protocol: Option<&str>, query: &str) -> Result<Socket, Error> {
        let url = format!("ws://{}/v1/live{query}", self.http);
        let mut request = url.into_client_request().unwrap();
        if let Some(protocol) = protocol {
            let name = "sec-websocket-protocol";
            request.headers_mut().insert(name, protocol.parse().unwrap());
        }
        let (socket, answer) = connect_async(request).await?;
        let chosen = answer.headers().get("sec-websocket-protocol");
        assert_eq!(chosen.map(|name| name.to_str().unwrap()), protocol);
        Ok(socket)
    }
}

async fn next(socket: &mut Socket) -> Message {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Ping(_) => {}
            message => return message,
        }
    }
}

async fn say(socket: &mut Socket, frame: Value) -> Value {
    socket.send(Message::text(frame.to_string())).await.unwrap();
    serde_json::from_str(next(socket).await.to_text().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_are_acknowledged_and_stand_in_the_list() {
    let served = serve(AuthMode::Token).await;
    let admin = served.site.gateway.first_token().unwrap().unwrap();
    let bearer = format!("Bearer {admin}");
    let headers = [("authorization", bearer.as_str())];
    let body = json!({"scopes": ["user:ann"], "note": "test"}).to_string();
    let made = served.site.call_with("POST", "/v1/tokens", &body, &headers).await.expect(201);
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str())];
    let ticket = served.site.call_with("POST", "/v1/tickets", "", &headers).await.expect(201);
    let query = format!("?ticket={}", ticket["ticket"].as_str().unwrap());

    let mut socket = served.connect(Some("tideline.v1.json"), &query).await.unwrap();
    let marks =
        json!([{"kind": "video", "id": "7", "position_ms": 5}, {"kind": "none", "id": "1"}]);
    let ack = say(&mut socket, json!({"type": "progress", "id": 3, "marks": marks})).await;
    assert_eq!((&ack["type"], &ack["id"], &ack["accepted"]), (&json!("ack"), &json!(3), &json!(1)));
    assert_eq!(ack["rejected"][0]["code"], "unknown_kind");
    assert_eq!(ack["first_today"], json!(["video"]));
    let list = served.site.call_with("GET", "/v1/users/me/history", "", &headers).await.expect(200);
    assert_eq!(list["items"][0]["position_ms"], 5);

    let other = json!([{"kind": "video", "id": "7", "user": "bob"}]);
    let ack = say(&mut socket, json!({"type": "progress", "marks": other})).await;
    assert_eq!(ack["rejected"][0]["detail"], "user: is not the user of the request");
    assert!(served.connect(None, &query).await.is_err(), "a ticket is good once");
    assert!(served.connect(None, "").await.is_err(), "nobody is let in without a name");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_frame_is_told_and_the_connection_stays() {
    let served = serve(AuthMode::None).await;
    let mut socket = served.connect(None, "").await.unwrap();
    for (frame, id, detail) in [
        (
            json!({"type": "fly", "id": 1}),
            json!(null),
            "type: must be progress, join, leave or say",
        ),
        (json!({"type": "progress", "id": 2, "marks": [], "ack": "so"}), json!(2), "ack: must be"),
        (json!({"type": "join", "id": 3, "room": "attic"}), json!(3), "room: there is no room"),
    ] {
        let answer = say(&mut socket, frame).await;
        assert_eq!((&answer["type"], &answer["id"]), (&json!("error"), &id));
        assert!(answer["detail"].as_str().unwrap().starts_with(detail), "{answer}");
    }
    let marks = json!([{"kind": "video", "id": "1", "user": "cy"}]);
    let ack = say(&mut socket, json!({"type": "progress", "marks": marks})).await;
    assert_eq!(ack["first_today"], json!([{"user": "cy", "kind": "video"}]));
    let huge = "x".repeat(tideline_types::limits::LIVE_FRAME_BYTES_MAX + 1);
    // The server may cut while this is still being sent.
    let _ = socket.send(Message::text(huge)).await;
    while let Some(Ok(message)) = socket.next().await {
        assert!(matches!(message, Message::Close(_) | Message::Ping(_)), "{message:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_frames_say_the_same_and_answers_keep_their_order() {
    let served = serve(AuthMode::None).await;
    let mut socket = served.connect(Some("tideline.v1.pb"), "").await.unwrap();
    for id in 1..=40 {
        let mark = history_v1::Mark {
            kind: "video".into(),
            id: id.to_string(),
            ..history_v1::Mark::default()
        };
        let batch = history_v1::RecordRequest {
            user: "ann".into(),
            marks: vec![mark],
            id,
            ..history_v1::RecordRequest::default()
        };
        let up = live_v1::Up { say: Some(live_v1::up::Say::Progress(batch)) };
        socket.send(Message::binary(up.encode_to_vec())).await.unwrap();
    }
    for id in 1..=40 {
        let down = live_v1::Down::decode(next(&mut socket).await.into_data()).unwrap();
        let Some(live_v1::down::What::Ack(ack)) = down.what else { panic!("{down:?}") };
        assert_eq!((ack.id, ack.accepted), (id, 1));
    }
    let count = served.site.get("/v1/users/ann/history/count").await.expect(200);
    assert_eq!(count["count"], 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_closes_the_connection_and_says_why() {
    let served = serve(AuthMode::None).await;
    let mut socket = served.connect(None, "").await.unwrap();
    say(&mut socket, json!({"type": "progress", "marks": []})).await;
    served.stop.send(()).unwrap();
    let Message::Close(Some(close)) = next(&mut socket).await else { panic!("no reason") };
    assert_eq!(u16::from(close.code), 1001);
    assert!(served.served.await.unwrap(), "nothing had to be cut");
}

async fn post(served: &Served, text: &str, progress_ms: u32) -> Value {
    let body = json!({"text": text, "progress_ms": progress_ms}).to_string();
    served.site.post("/v1/videos/v/danmaku", &body).await.expect(201)
}

/// Every comment that a room tells until one says `last`, with its segment.
async fn heard(socket: &mut Socket, last: &str) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    while all.last().is_none_or(|(text, _)| text != last) {
        let frame: Value = serde_json::from_str(next(socket).await.to_text().unwrap()).unwrap();
        assert_eq!((&frame["type"], &frame["room"]), (&json!("danmaku"), &json!("video:v")));
        for item in frame["items"].as_array().unwrap() {
            let text = item["comment"]["text"].as_str().unwrap_or("gone").to_owned();
            all.push((text, item["segment"].as_u64().unwrap()));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_tells_what_was_missed_and_what_comes_and_nothing_twice() {
    let served = serve(AuthMode::None).await;
    let loaded = post(&served, "loaded", 1).await["seq"].as_u64().unwrap();
    post(&served, "missed", 2).await;
    let mut late = served.connect(None, "").await.unwrap();
    let join = json!({"type": "join", "room": "video:v", "from_seq": loaded});
    late.send(Message::text(join.to_string())).await.unwrap();
    assert_eq!(heard(&mut late, "missed").await, [("missed".to_owned(), 1)]);
    let mut fresh = served.connect(None, "").await.unwrap();
    let joined = say(&mut fresh, json!({"type": "join", "room": "video:v"})).await;
    assert_eq!(joined["items"], json!([]), "only what comes from now");
    assert_eq!(joined["viewers"], 2);
    for n in 0..30 {
        post(&served, &format!("c{n}"), n * 30_000).await;
    }
    let want: Vec<_> = (0..30).map(|n| (format!("c{n}"), n * 30_000 / 360_000 + 1)).collect();
    assert_eq!(heard(&mut late, "c29").await, want);
    assert_eq!(heard(&mut fresh, "c29").await, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_alone_is_told_at_once_however_long_a_room_gathers() {
    let mut options = Options::default();
    options.danmaku.batch_ms = 3_600_000;
    let served = serve_with(options).await;
    let mut socket = served.connect(None, "").await.unwrap();
    say(&mut socket, json!({"type": "join", "room": "video:v"})).await;
    post(&served, "alone", 5).await;
    assert_eq!(heard(&mut socket, "alone").await, [("alone".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_live_connection_too_many_is_told_to_come_back() {
    let mut options = Options::default();
    options.server.connections_max = 1;
    let served = serve_with(options).await;
    let mut first = served.connect(None, "").await.unwrap();
    say(&mut first, json!({"type": "progress", "marks": []})).await;
    match served.connect(None, "").await {
        Err(Error::Http(answer)) => {
            assert_eq!(answer.status().as_u16(), 503);
            assert!(answer.headers().contains_key("retry-after"));
        }
        other => panic!("{other:?}"),
    }
    say(&mut first, json!({"type": "progress", "marks": []})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_is_said_over_the_connection_and_taken_back_in_the_room() {
    let served = serve(AuthMode::None).await;
    let mut socket = served.connect(None, "").await.unwrap();
    let comment = json!({"text": "hi", "progress_ms": 5});
    let said = json!({"type": "say", "id": 4, "room": "video:v", "comment": comment});
    let said = say(&mut socket, said).await;
    assert_eq!(
        (&said["type"], &said["id"], &said["comment"]["text"]),
        (&json!("said"), &json!(4), &json!("hi"))
    );
    let from = said["seq"].as_u64().unwrap();
    say(&mut socket, json!({"type": "join", "room": "video:v", "from_seq": from})).await;
    let path = format!("/v1/videos/v/danmaku/{}", said["comment"]["id"].as_str().unwrap());
    served.site.call("DELETE", &path, "").await.expect(204);
    let frame: Value = serde_json::from_str(next(&mut socket).await.to_text().unwrap()).unwrap();
    assert_eq!(frame["items"][0]["gone"], said["comment"]["id"]);
    // A number that never was: what is held cannot be trusted.
    let mut other = served.connect(None, "").await.unwrap();
    let told =
        say(&mut other, json!({"type": "join", "room": "video:v", "from_seq": 99_999})).await;
    assert_eq!(told["type"], "lagged");
    let full = json!({"type": "say", "id": 5, "room": "attic", "comment": comment});
    assert_eq!(say(&mut other, full).await["code"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_is_refused_names_its_room() {
    let served = serve(AuthMode::None).await;
    let mut socket = served.connect(None, "").await.unwrap();
    let refused = say(&mut socket, json!({"type": "join", "room": "attic"})).await;
    assert_eq!((&refused["code"], &refused["room"]), (&json!("not_found"), &json!("attic")));
    for n in 0..16 {
        let joined = say(&mut socket, json!({"type": "join", "room": format!("video:{n}")})).await;
        assert_eq!(joined["type"], "danmaku");
    }
    let refused = say(&mut socket, json!({"type": "join", "room": "video:16"})).await;
    assert_eq!((&refused["code"], &refused["room"]), (&json!("conflict"), &json!("video:16")));

    let mut socket = served.connect(Some("tideline.v1.pb"), "").await.unwrap();
    let join = live_v1::Join { room: "attic".into(), from_seq: None };
    let up = live_v1::Up { say: Some(live_v1::up::Say::Join(join)) };
    socket.send(Message::binary(up.encode_to_vec())).await.unwrap();
    let down = live_v1::Down::decode(next(&mut socket).await.into_data()).unwrap();
    let Some(live_v1::down::What::Error(error)) = down.what else { panic!("{down:?}") };
    assert_eq!((&*error.code, &*error.room), ("not_found", "attic"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_behind_the_end_is_pushed_into_the_last_segment() {
    let served = serve(AuthMode::None).await;
    let settings = json!({"duration_ms": 360_000}).to_string();
    served.site.call("PUT", "/v1/videos/v/danmaku/settings", &settings).await.expect(200);
    let mut socket = served.connect(None, "").await.unwrap();
    say(&mut socket, json!({"type": "join", "room": "video:v"})).await;
    post(&served, "at the end", 360_000).await;
    assert_eq!(heard(&mut socket, "at the end").await, [("at the end".to_owned(), 1)]);
    let segment = served.site.get("/v1/videos/v/danmaku/segments/1").await.expect(200);
    assert!(segment.to_string().contains("at the end"), "{segment}");
}

/// Status, headers but for those of the connection, and body.
type Told = (u16, Vec<(String, String)>, Vec<u8>);

/// What a GET over a socket of its own is answered.
async fn get(http: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Told {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut request = format!("GET {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap()[9..12].parse().unwrap();
    let pairs = lines.map(|line| line.split_once(": ").unwrap());
    (status, told(pairs), answer[end + 4..].to_vec())
}

fn told<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let of_the_connection = ["connection", "content-length", "date", "x-request-id"];
    let kept = headers.filter(|(name, _)| !of_the_connection.contains(name));
    let mut all: Vec<_> = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_over_a_socket_is_answered_as_the_router_answers_it() {
    let served = serve(AuthMode::None).await;
    for n in 0..40 {
        post(&served, &format!("comment number {n}"), n).await;
    }
    let segments = "/v1/videos/v/danmaku/segments";
    let etag = served.site.get(&format!("{segments}/1.pb")).await.header("etag").to_owned();
    let page = ("origin", "http://localhost:3000");
    for (path, headers) in [
        ("/1.pb", vec![("accept-encoding", "gzip"), page]),
        ("/1.json", vec![]),
        ("/1", vec![("accept", "application/xml"), ("accept-encoding", "deflate")]),
        ("/1.pb", vec![("if-none-match", &*etag), page]),
        ("/1.smart", vec![]),
        ("/2.pb", vec![page]),
        ("/x.pb", vec![]),
        ("/1.pb?what=1", vec![]),
        ("/1.doc", vec![("x-request-id", "mine")]),
    ] {
        let path = format!("{segments}{path}");
        // What is made by the first one is held for the second.
        served.site.call_with("GET", &path, "", &headers).await;
        let (status, heard, bytes) = get(served.http, &path, &headers).await;
        let by_router = served.site.call_with("GET", &path, "", &headers).await;
        let pairs = by_router.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap()));
        assert_eq!((status, heard), (by_router.status.as_u16(), told(pairs)), "{path}");
        assert_eq!(bytes, by_router.bytes, "{path}");
    }
}
