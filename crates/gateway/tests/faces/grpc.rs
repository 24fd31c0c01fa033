//! Both faces on real sockets of this machine.

use std::net::SocketAddr;

use tideline_gateway::Options;
use tideline_gateway::options::AuthMode;
use tideline_wire::history_v1 as v1;
use tideline_wire::history_v1::history_service_client::HistoryServiceClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::fixture::{Site, open};

pub(crate) struct Server {
    pub(crate) site: Site,
    http: SocketAddr,
    pub(crate) grpc: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<bool>,
}

pub(crate) async fn serve(mut options: Options) -> Server {
    options.server.http = "127.0.0.1:0".parse().unwrap();
    options.server.grpc = "127.0.0.1:0".parse().unwrap();
    let site = open(options).unwrap();
    let bound = site.gateway.bind().await.unwrap();
    let (http, grpc) = (bound.http(), bound.grpc());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(bound.serve(async {
        let _ = stopped.await;
    }));
    Server { site, http, grpc, stop, served }
}

impl Server {
    async fn client(&self) -> HistoryServiceClient<Channel> {
        HistoryServiceClient::connect(format!("http://{}", self.grpc)).await.unwrap()
    }

    pub(crate) async fn end(self) {
        let _ = self.stop.send(());
        assert!(self.served.await.unwrap(), "all calls ended in time");
    }
}

fn mark(user: &str, id: &str) -> v1::Mark {
    v1::Mark {
        user: user.into(),
        kind: "video".into(),
        id: id.into(),
        position_ms: Some(50),
        duration_ms: Some(100),
        ..v1::Mark::default()
    }
}

fn batch(marks: Vec<v1::Mark>) -> v1::RecordRequest {
    v1::RecordRequest { marks, ..v1::RecordRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_history_goes_over_grpc_too() {
    let server = serve(Options::default()).await;
    let mut client = server.client().await;
    let marks = vec![
        mark("a", "1"),
        mark("b", "1"),
        mark("", "1"),
        v1::Mark { kind: "x".into(), ..mark("a", "2") },
    ];
    let wrote = client.record_batch(batch(marks)).await.unwrap().into_inner();
    assert_eq!((wrote.accepted, wrote.rejected.len(), wrote.first_today.len()), (2, 2, 2));
    assert_eq!((wrote.rejected[0].index, &*wrote.rejected[0].detail), (2, "user: is required"));
    assert_eq!(wrote.rejected[1].code, "unknown_kind");

    let user = |name: &str| v1::UserRequest { user: name.into() };
    let one = v1::RecordRequest { user: "a".into(), ..batch(vec![mark("", "3")]) };
    let wrote = client.record(one.clone()).await.unwrap().into_inner();
    assert_eq!(wrote.accepted, 1);
    assert!(wrote.day_flag.ends_with(".video"));
    client.merge(one).await.unwrap();
    let ask = v1::ListRequest { user: "a".into(), limit: 1, ..v1::ListRequest::default() };
    let page = client.list(ask.clone()).await.unwrap().into_inner();
    assert_eq!((page.items[0].id.as_str(), page.items[0].percent), ("3", Some(50)));
    let next = v1::ListRequest { cursor: page.next_cursor, ..ask.clone() };
    let page = client.list(next).await.unwrap().into_inner();
    assert_eq!((page.items[0].id.as_str(), page.next_cursor.as_str()), ("1", ""));
    let page = client.list(v1::ListRequest { page: 1, ..ask }).await.unwrap().into_inner();
    assert_eq!(page.total, Some(2));

    let count = v1::CountRequest { user: "a".into(), ..v1::CountRequest::default() };
    assert_eq!(client.count(count.clone()).await.unwrap().into_inner().count, 2);
    assert_eq!(client.days(count).await.unwrap().into_inner().days[0].count, 2);
    let key = |id: &str| v1::Key { kind: "video".into(), id: id.into(), part: None };
    let get = v1::GetRequest { user: "a".into(), key: Some(key("1")) };
    assert!(client.get(get).await.unwrap().into_inner().found);
    let keys = vec![key("9"), key("1")];
    let get = v1::BatchGetRequest { user: "a".into(), keys: keys.clone() };
    let got = client.batch_get(get).await.unwrap().into_inner().items;
    assert_eq!((got[0].found, got[1].found), (false, true));
    let delete = v1::DeleteRequest { user: "a".into(), keys };
    assert_eq!(client.delete(delete).await.unwrap().into_inner().deleted, 1);

    let off = v1::SetSettingsRequest { user: "a".into(), recording: false };
    assert!(!client.set_settings(off).await.unwrap().into_inner().recording);
    assert!(!client.get_settings(user("a")).await.unwrap().into_inner().recording);
    let mut lines = client.export(user("a")).await.unwrap().into_inner();
    let mut restore = Vec::new();
    while let Some(line) = lines.message().await.unwrap() {
        restore.push(v1::RestoreRequest { user: "c".into(), json: line.json });
    }
    let report = client.restore(tokio_stream::iter(restore)).await.unwrap().into_inner();
    assert_eq!(report.accepted, 1);
    let clear = v1::ClearRequest { user: "c".into(), ..v1::ClearRequest::default() };
    assert_eq!(client.clear(clear.clone()).await.unwrap_err().code(), Code::InvalidArgument);
    let clear = v1::ClearRequest { all: true, ..clear };
    assert_eq!(client.clear(clear).await.unwrap().into_inner().deleted, 1);
    client.erase(user("a")).await.unwrap();
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_answers_in_order_and_outlives_a_refused_request() {
    let server = serve(Options::default()).await;
    let mut client = server.client().await;
    let requests: Vec<_> = (0..100)
        .map(|n: u64| v1::RecordRequest {
            id: n,
            user: if n == 50 { "x".repeat(129) } else { "u".into() },
            ..batch(vec![mark("", &n.to_string())])
        })
        .collect();
    let mut answers =
        client.record_stream(tokio_stream::iter(requests)).await.unwrap().into_inner();
    let mut next = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        assert_eq!(answer.id, next);
        match &answer.refused {
            None => assert_eq!(answer.accepted, 1),
            Some(refused) => assert_eq!((next, refused.code.as_str()), (50, "invalid_argument")),
        }
        next += 1;
    }
    assert_eq!(next, 100);
    let count = server.site.get("/v1/users/u/history/count").await.expect(200);
    assert_eq!(count["count"], 99);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_carry_the_stable_code() {
    let server = serve(Options::default()).await;
    let mut client = server.client().await;
    let ask =
        v1::ListRequest { user: "u".into(), kinds: vec!["opera".into()], ..Default::default() };
    let status = client.list(ask).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.metadata().get("tideline-code").unwrap(), "unknown_kind");
    let many = batch(vec![mark("u", "1"); 10_001]);
    let status = client.record_batch(many).await.unwrap_err();
    assert_eq!(status.metadata().get("tideline-code").unwrap(), "payload_too_large");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_names_the_caller() {
    let mut options = Options::default();
    options.auth.mode = AuthMode::Token;
    let server = serve(options).await;
    let admin = server.site.gateway.first_token().unwrap().unwrap();
    let mut client = server.client().await;
    let ask = v1::ListRequest { user: "u".into(), ..v1::ListRequest::default() };
    assert_eq!(client.list(ask.clone()).await.unwrap_err().code(), Code::Unauthenticated);
    let mut request = Request::new(ask);
    let bearer = format!("Bearer {admin}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    client.list(request).await.unwrap();
    let stream = client.record_stream(tokio_stream::iter([batch(vec![])])).await;
    assert_eq!(stream.unwrap_err().code(), Code::Unauthenticated);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_are_there() {
    let server = serve(Options::default()).await;
    let channel =
        Channel::from_shared(format!("http://{}", server.grpc)).unwrap().connect().await.unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let ask = tonic_health::pb::HealthCheckRequest {
        service: "tideline.history.v1.HistoryService".into(),
    };
    assert_eq!(health.check(ask).await.unwrap().into_inner().status, 1);
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_request::MessageRequest,
    };
    let mut reflection = ServerReflectionClient::new(channel);
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers =
        reflection.server_reflection_info(tokio_stream::iter([ask])).await.unwrap().into_inner();
    let answer = format!("{:?}", answers.message().await.unwrap());
    assert!(answer.contains("tideline.history.v1.HistoryService"), "{answer}");
    server.end().await;
}

/// Waits until one call is under way.
async fn until_under_way(server: &Server) {
    let one = "tideline_calls_under_way 1";
    while !String::from_utf8(server.site.get("/metrics").await.bytes).unwrap().contains(one) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_lets_calls_end_and_takes_no_new_connection() {
    let server = serve(Options::default()).await;
    let http = server.http;
    let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
    let body = r#"{"kind":"video","id":"1"}"#;
    let head = format!(
        "POST /v1/users/u/history HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The request is half sent when the server is asked to stop.
    until_under_way(&server).await;
    let _ = server.stop.send(());
    while server.site.get("/readyz").await.status != 503 {
        tokio::task::yield_now().await;
    }
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(server.served.await.unwrap());
    assert!(tokio::net::TcpStream::connect(http).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_streams_and_long_polls_once_their_marks_are_answered() {
    let server = serve(Options::default()).await;
    server.site.call("PUT", "/v1/topics/t", r#"{"partitions":1}"#).await.expect(201);
    let mut client = server.client().await;
    let (send, requests) = tokio::sync::mpsc::channel(4);
    let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
    send.send(batch(vec![mark("u", "1")])).await.unwrap();
    let mut answers = client.record_stream(requests).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().accepted, 1);

    let mut poll = tokio::net::TcpStream::connect(server.http).await.unwrap();
    let path = "/v1/topics/t/records?wait_ms=60000";
    poll.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    until_under_way(&server).await;
    server.end().await;
    let mut answer = String::new();
    poll.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("stopping"), "{answer}");
    assert!(answers.message().await.unwrap().is_none());
    drop(send);
}
