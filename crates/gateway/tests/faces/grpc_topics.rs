//! Topics over gRPC: ranges that join, credit, and answers that say what to do.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tideline_gateway::Options;
use tideline_record::frame::Frame;
use tideline_wire::common_v1;
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::from::Place;
use tideline_wire::queue_v1::queue_service_client::QueueServiceClient;
use tideline_wire::queue_v1::stopped::Reason;
use tideline_wire::queue_v1::subscribe_request::Request as Asked;
use tideline_wire::queue_v1::subscribe_response::Response as Told;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::grpc::{Server, serve};

const TOPIC: &str = "chat";

type Client = QueueServiceClient<Channel>;

async fn with_topic() -> (Server, Client) {
    let server = serve(Options::default()).await;
    let client = Client::connect(format!("http://{}", server.grpc)).await.unwrap();
    let mut client = client.max_decoding_message_size(32 << 20);
    let asked = v1::CreateTopicRequest {
        topic: TOPIC.into(),
        partitions: 1,
        ..v1::CreateTopicRequest::default()
    };
    let topic = client.create_topic(asked).await.unwrap().into_inner();
    assert_eq!((topic.partitions.len(), topic.source.as_str()), (1, ""));
    (server, client)
}

fn say(values: &[&str], stamp: Option<v1::Stamp>) -> v1::ProduceRequest {
    let record =
        |v: &&str| v1::Record { key: Bytes::new(), value: Bytes::copy_from_slice(v.as_bytes()) };
    let records = values.iter().map(record).collect();
    v1::ProduceRequest { topic: TOPIC.into(), partition: Some(0), records, stamp }
}

fn from(place: Place) -> Option<v1::From> {
    Some(v1::From { place: Some(place) })
}

/// A subscription, and where credit is given.
async fn follow(
    client: &mut Client,
    place: Place,
    credit: u32,
) -> (mpsc::Sender<v1::SubscribeRequest>, Streaming<v1::SubscribeResponse>) {
    let (tell, asked) = mpsc::channel(8);
    let follow =
        v1::Follow { topic: TOPIC.into(), partition: 0, from: from(place), credit, bytes_max: 1 };
    tell.send(v1::SubscribeRequest { request: Some(Asked::Follow(follow)) }).await.unwrap();
    let frames = client.subscribe(ReceiverStream::new(asked)).await.unwrap().into_inner();
    (tell, frames)
}

async fn frame(frames: &mut Streaming<v1::SubscribeResponse>) -> Frame {
    match frames.next().await.unwrap().unwrap().response.unwrap() {
        Told::Frame(bytes) => Frame::parse(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn values(frame: &Frame) -> Vec<String> {
    frame.records().map(|r| String::from_utf8(r.value.to_vec()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_join_without_a_gap_and_a_follower_hears_what_comes() {
    let (server, mut client) = with_topic().await;
    for word in ["a", "b"] {
        client.produce(say(&[word], None)).await.unwrap();
    }
    let (_tell, mut frames) = follow(&mut client.clone(), Place::Earliest(true), 1 << 20).await;
    let mut covered = 0;
    for word in ["a", "b", "c"] {
        if word == "c" {
            client.produce(say(&[word], None)).await.unwrap();
        }
        let frame = frame(&mut frames).await;
        assert_eq!((frame.range().after.0, values(&frame)), (covered, vec![word.to_owned()]));
        covered = frame.range().through.0;
    }
    let readers = server.site.get("/v1/topics/chat/readers").await.json();
    let reader = &readers["readers"][0];
    assert_eq!((&reader["partition"], &reader["caller"]), (&json!(0), &json!("anyone")));
    assert_eq!((&reader["covered"], &reader["behind"]), (&json!(3), &json!(0)));
    let metrics = server.site.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
    assert!(metrics.contains("tideline_topic_readers 1"), "{metrics}");
    assert!(metrics.contains("tideline_topic_egress_bytes_total{topic=\"chat\"}"), "{metrics}");
    drop(frames);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_no_more_than_it_gave_credit_for() {
    let (server, mut client) = with_topic().await;
    for word in ["a", "b", "c"] {
        client.produce(say(&[word], None)).await.unwrap();
    }
    let (tell, mut frames) = follow(&mut client, Place::Earliest(true), 1).await;
    assert_eq!(values(&frame(&mut frames).await), ["a"]);
    let more = tokio::time::timeout(Duration::from_millis(50), frames.next()).await;
    assert!(more.is_err(), "{more:?}");
    let credit = v1::SubscribeRequest { request: Some(Asked::Credit(1 << 20)) };
    tell.send(credit).await.unwrap();
    assert_eq!(values(&frame(&mut frames).await), ["b"]);
    assert_eq!(values(&frame(&mut frames).await), ["c"]);
    drop((tell, frames));
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_batches_under_way_are_kept_and_answered_in_order_and_retries_once() {
    let (server, mut client) = with_topic().await;
    let stamp = |number| Some(v1::Stamp { producer: 7, epoch: 1, number });
    let mut requests: Vec<_> = (1..=200).map(|n| say(&[&n.to_string()], stamp(n))).collect();
    requests.push(say(&["200"], stamp(200)));
    requests.push(say(&["gap"], stamp(999)));
    requests.push(say(&["201"], stamp(201)));
    let answers = client.produce_stream(tokio_stream::iter(requests)).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(Result::unwrap).collect().await;
    let seqs: Vec<_> = answers.iter().map(|a| a.positions.first().map(|p| p.seq)).collect();
    let mut expected: Vec<_> = (1..=200).map(Some).collect();
    expected.extend([Some(200), None, Some(201)]);
    assert_eq!(seqs, expected);
    let refused = answers[201].error.clone().unwrap();
    assert_eq!(
        (refused.code.as_str(), &*refused.detail),
        ("conflict", "record 999 of the producer, 201 comes next")
    );
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_cannot_be_read_is_an_answer_that_says_what_to_do() {
    let (server, mut client) = with_topic().await;
    let wrote = client.produce(say(&["a"], None)).await.unwrap().into_inner();
    let first = wrote.positions[0];
    for (position, expected) in [
        (
            common_v1::Position { seq: 9, ..first },
            Reason::Diverged(v1::Diverged { epoch: first.epoch, seq: 1 }),
        ),
        (
            common_v1::Position { incarnation: 99, ..first },
            Reason::Recreated(v1::Recreated { incarnation: first.incarnation }),
        ),
    ] {
        let (_tell, mut frames) = follow(&mut client, Place::After(position), 1 << 20).await;
        let told = frames.next().await.unwrap().unwrap().response.unwrap();
        let stopped = v1::Stopped { reason: Some(expected) };
        assert_eq!(told, Told::Stopped(stopped.clone()));
        assert!(frames.next().await.is_none(), "the stream ends");
        let asked = v1::FetchRequest {
            topic: TOPIC.into(),
            from: from(Place::After(position)),
            ..v1::FetchRequest::default()
        };
        let answer = client.fetch(asked).await.unwrap().into_inner().answer;
        assert_eq!(answer, Some(v1::fetch_response::Answer::Stopped(stopped)));
    }
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_finds_nothing_says_where_to_go_on() {
    let (server, mut client) = with_topic().await;
    client.produce(say(&["a"], None)).await.unwrap();
    let mut place = Place::Earliest(true);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let asked = v1::FetchRequest {
            topic: TOPIC.into(),
            from: from(place),
            wait_ms: 10,
            ..v1::FetchRequest::default()
        };
        let came = client.fetch(asked).await.unwrap().into_inner();
        if let Some(v1::fetch_response::Answer::Frame(bytes)) = came.answer {
            seen.extend(values(&Frame::parse(bytes).unwrap()));
        }
        place = Place::After(came.next.unwrap());
    }
    assert_eq!(seen, ["a"]);
    client.produce(say(&["b"], None)).await.unwrap();
    let (_tell, mut frames) = follow(&mut client, place, 1 << 20).await;
    assert_eq!(values(&frame(&mut frames).await), ["b"]);
    drop(frames);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_names_its_field() {
    let (server, mut client) = with_topic().await;
    let said = async |request: v1::ProduceRequest| {
        client.clone().produce(request).await.unwrap_err().message().to_owned()
    };
    let bad = v1::ProduceRequest { topic: "no such/topic".into(), ..say(&["a"], None) };
    assert!(said(bad).await.starts_with("topic: "));
    let bad = v1::ProduceRequest { partition: Some(70_000), ..say(&["a"], None) };
    assert_eq!(said(bad).await, "partition: too large");
    let stamp = Some(v1::Stamp { producer: 1, epoch: 0, number: 1 });
    let bad = v1::ProduceRequest { partition: None, ..say(&["a"], stamp) };
    assert_eq!(said(bad).await, "partition: is required with a stamp");
    let asked = v1::FetchRequest { topic: TOPIC.into(), bytes_max: 5 << 20, ..Default::default() };
    assert_eq!(client.fetch(asked).await.unwrap_err().message(), "bytes_max: at most 4 MiB");
    let asked = v1::FetchRequest { topic: TOPIC.into(), wait_ms: 60_001, ..Default::default() };
    assert_eq!(client.fetch(asked).await.unwrap_err().message(), "wait_ms: at most 60000");
    server.end().await;
}
