//! A follower against a source that breaks, lies and falls silent, by a script.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tideline_client::{Follower, From, Next, Options, Source, Stopped};
use tideline_record::batch::BatchBuilder;
use tideline_record::frame::Frame;
use tideline_types::{
    Epoch, Incarnation, Millis, PartitionId, Position, Seq, SeqRange, StreamId, TopicName,
};
use tideline_wire::common_v1;
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::queue_service_server::{QueueService, QueueServiceServer};
use tideline_wire::queue_v1::subscribe_request::Request as Asked;
use tideline_wire::queue_v1::subscribe_response::Response as Told;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Request, Response, Status, Streaming};

/// What the source does with a subscription.
#[derive(Clone, Debug)]
enum Act {
    /// Sends so many ranges of the log, then ends the stream.
    Send(u64),
    /// Sends one with a flipped bit.
    Damaged,
    /// Leaves one out, or sends the one before once more.
    Jump(i64),
    /// Of another life.
    Other,
    /// Says nothing.
    Silent,
    /// Breaks with an error.
    Fail(Code),
    /// Says that nothing more comes.
    Stop(v1::stopped::Reason),
    /// Sends the rest, and heads after that.
    Rest,
}

/// Records of one range.
const RANGE: u64 = 3;
const LAST: u64 = 60;

fn range(incarnation: u64, after: u64) -> Bytes {
    let stream =
        StreamId { incarnation: Incarnation(incarnation), partition: PartitionId::default() };
    let through = (after + RANGE).min(LAST);
    let mut batch = BatchBuilder::new(stream, Epoch(2), Seq(after + 1));
    for n in after..through {
        batch.push(Millis(1), b"k", &n.to_be_bytes());
    }
    let range = SeqRange::new(Seq(after), Seq(through));
    Frame::new(stream, Epoch(2), range, &[batch.finish()]).bytes().clone()
}

#[derive(Clone, Default)]
struct Scripted {
    acts: Arc<Mutex<Vec<Act>>>,
    asked: Arc<Mutex<Vec<v1::From>>>,
    /// Credit that is left, at the lowest.
    lowest: Arc<AtomicI64>,
    sent: Arc<AtomicUsize>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Scripted {
    async fn play(
        self,
        act: Act,
        follow: v1::Follow,
        mut more: Streaming<v1::SubscribeRequest>,
        tell: mpsc::Sender<Result<v1::SubscribeResponse, Status>>,
    ) {
        let mut after = match follow.from.unwrap().place.unwrap() {
            v1::from::Place::After(at) => at.seq,
            _ => 0,
        };
        let mut credit = i64::from(follow.credit);
        let answer = |told| Ok(v1::SubscribeResponse { response: Some(told) });
        let one = |bytes: Bytes| tell.send(answer(Told::Frame(bytes)));
        let mut left = match act {
            Act::Send(n) => n,
            Act::Rest => u64::MAX,
            Act::Damaged => {
                let mut bytes = range(7, after).to_vec();
                *bytes.last_mut().unwrap() ^= 4;
                one(bytes.into()).await.unwrap();
                return;
            }
            Act::Jump(by) => {
                let from = after.checked_add_signed(by).unwrap_or(after + RANGE);
                one(range(7, from)).await.unwrap();
                return;
            }
            Act::Other => return one(range(8, after)).await.unwrap(),
            Act::Silent => {
                // Until the follower has had enough.
                while let Some(Ok(_)) = more.next().await {}
                return;
            }
            Act::Fail(code) => return tell.send(Err(Status::new(code, "scripted"))).await.unwrap(),
            Act::Stop(reason) => {
                let stopped = v1::Stopped { reason: Some(reason) };
                return tell.send(answer(Told::Stopped(stopped))).await.unwrap();
            }
        };
        while left > 0 && after < LAST {
            while credit <= 0 {
                match more.next().await {
                    Some(Ok(v1::SubscribeRequest { request: Some(Asked::Credit(bytes)) })) => {
                        credit += i64::from(bytes);
                    }
                    _ => return,
                }
            }
            let bytes = range(7, after);
            credit -= bytes.len() as i64;
            self.lowest.fetch_min(credit, Ordering::Relaxed);
            self.sent.fetch_add(bytes.len(), Ordering::Relaxed);
            if one(bytes).await.is_err() {
                return;
            }
            after += RANGE;
            left -= 1;
        }
        if left > RANGE {
            let stands = common_v1::Position { incarnation: 7, epoch: 2, seq: LAST };
            let head = v1::Head { epoch: 2, synced: LAST, stands: Some(stands) };
            let _ = tell.send(answer(Told::Head(head))).await;
            while let Some(Ok(_)) = more.next().await {}
        }
    }
}

#[tonic::async_trait]
impl QueueService for Scripted {
    async fn list_topics(
        &self,
        _: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn get_topic(
        &self,
        _: Request<v1::GetTopicRequest>,
    ) -> Result<Response<v1::Topic>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn create_topic(
        &self,
        _: Request<v1::CreateTopicRequest>,
    ) -> Result<Response<v1::Topic>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn delete_topic(
        &self,
        _: Request<v1::DeleteTopicRequest>,
    ) -> Result<Response<v1::DeleteTopicResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn produce(
        &self,
        _: Request<v1::ProduceRequest>,
    ) -> Result<Response<v1::ProduceResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    type ProduceStreamStream = Answers<v1::ProduceResponse>;
    async fn produce_stream(
        &self,
        _: Request<Streaming<v1::ProduceRequest>>,
    ) -> Result<Response<Self::ProduceStreamStream>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn fetch(
        &self,
        _: Request<v1::FetchRequest>,
    ) -> Result<Response<v1::FetchResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    type SubscribeStream = Answers<v1::SubscribeResponse>;
    async fn subscribe(
        &self,
        request: Request<Streaming<v1::SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let mut more = request.into_inner();
        let first = more.next().await.unwrap()?;
        let Some(Asked::Follow(follow)) = first.request else {
            return Err(Status::invalid_argument("follow"));
        };
        self.asked.lock().unwrap().push(follow.from.unwrap());
        let act = self.acts.lock().unwrap().pop().unwrap_or(Act::Rest);
        let (tell, told) = mpsc::channel(1);
        tokio::spawn(self.clone().play(act, follow, more, tell));
        Ok(Response::new(Box::pin(ReceiverStream::new(told))))
    }
}

/// A source with this script, first act first; ends when the sender is dropped.
async fn source(acts: &[Act]) -> (Scripted, Source, oneshot::Sender<()>) {
    let scripted = Scripted::default();
    *scripted.acts.lock().unwrap() = acts.iter().rev().cloned().collect();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (end, ended) = oneshot::channel();
    let service = QueueServiceServer::new(scripted.clone());
    tokio::spawn(
        tonic::transport::Server::builder().add_service(service).serve_with_incoming_shutdown(
            TcpListenerStream::new(listener),
            async {
                let _ = ended.await;
            },
        ),
    );
    (scripted, Source::new(&url, None).unwrap(), end)
}

fn follower(source: Source, credit_bytes: u32) -> Follower {
    let options = Options {
        credit_bytes,
        silence_max: Duration::from_millis(300),
        retry_first: Duration::from_millis(1),
        retry_longest: Duration::from_millis(4),
        ..Options::default()
    };
    let topic = TopicName::new("chat").unwrap();
    Follower::new(source, topic, PartitionId::default(), From::Earliest, options)
}

/// Follows to the head, and gives the numbers that came.
async fn to_the_head(follower: &mut Follower) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match follower.next().await {
            Ok(Next::Range(frame)) => seen.extend(frame.records().map(|record| record.seq.0)),
            Ok(Next::Head { synced }) if follower.stands().unwrap().seq == synced => return seen,
            Ok(Next::Head { .. }) => {}
            Ok(Next::Stopped(why)) => panic!("{why}"),
            Err(refused) => panic!("{refused}"),
        }
    }
}

#[tokio::test]
async fn whatever_a_source_does_there_is_no_gap_and_no_double() {
    let acts = [
        Act::Send(2),
        Act::Fail(Code::Unavailable),
        Act::Damaged,
        Act::Send(1),
        Act::Jump(3),
        Act::Jump(-3),
        Act::Other,
        Act::Silent,
        Act::Send(4),
        Act::Jump(-1),
        Act::Fail(Code::Internal),
    ];
    let (scripted, source, _end) = source(&acts).await;
    let mut follower = follower(source, 1 << 20);
    assert_eq!(to_the_head(&mut follower).await, (1..=LAST).collect::<Vec<_>>());
    assert!(follower.opened() > acts.len() as u64 - 2);
    // What it asks for after a break is where it stands.
    let asked = scripted.asked.lock().unwrap().clone();
    let after = |seq| v1::from::Place::After(common_v1::Position { incarnation: 7, epoch: 2, seq });
    assert_eq!(asked[0].place, Some(v1::from::Place::Earliest(true)));
    assert!(asked[1..3].iter().all(|from| from.place == Some(after(6))), "{asked:?}");
}

#[tokio::test]
async fn credit_is_given_as_ranges_are_taken_and_no_more() {
    let one = range(7, 0).len();
    let (scripted, source, _end) = source(&[]).await;
    let mut follower = follower(source, 3 * one as u32);
    let Next::Range(first) = follower.next().await.unwrap() else { panic!("no range") };
    // Two more are on the way, and not a fourth: nothing was given back yet.
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(scripted.sent.load(Ordering::Relaxed) <= 3 * one);
    let mut seen: Vec<_> = first.records().map(|record| record.seq.0).collect();
    seen.extend(to_the_head(&mut follower).await);
    assert_eq!(seen, (1..=LAST).collect::<Vec<_>>());
    assert!(scripted.lowest.load(Ordering::Relaxed) > -(one as i64));
}

#[tokio::test]
async fn a_stop_is_told_until_the_caller_goes_on_and_then_the_place_is_the_callers() {
    use v1::stopped::Reason;
    let acts = [
        Act::Send(1),
        Act::Stop(Reason::Truncated(v1::Truncated { start: 9, snapshot: "there".into() })),
        Act::Stop(Reason::Diverged(v1::Diverged { epoch: 1, seq: 2 })),
        Act::Stop(Reason::Recreated(v1::Recreated { incarnation: 9 })),
        Act::Stop(Reason::Lagged(v1::Lagged { next: 4, oldest: 6 })),
        Act::Stop(Reason::Halted(v1::Halted { seq: 4, reason: "no".into() })),
    ];
    let (scripted, source, _end) = source(&acts).await;
    let mut follower = follower(source, 1 << 20);
    assert!(matches!(follower.next().await, Ok(Next::Range(_))));
    let at = |seq| Position { incarnation: Incarnation(7), epoch: Epoch(2), seq: Seq(seq) };
    let common = Position { epoch: Epoch(1), ..at(2) };
    for why in [
        Stopped::Truncated { start: Seq(9), snapshot: "there".into() },
        Stopped::Diverged { common },
        Stopped::Recreated { incarnation: Incarnation(9) },
        Stopped::Lagged { next: Seq(4), oldest: Seq(6) },
        Stopped::Halted { seq: Seq(4), reason: "no".into() },
    ] {
        for _ in 0..2 {
            let Ok(Next::Stopped(told)) = follower.next().await else { panic!("went on") };
            assert_eq!(told, why);
        }
        assert_eq!(follower.stands(), Some(at(3)));
        follower.go_on(From::After(at(3)));
    }
    assert_eq!(to_the_head(&mut follower).await, (4..=LAST).collect::<Vec<_>>());
    assert_eq!(scripted.asked.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn a_refusal_is_an_error_and_the_next_call_asks_again() {
    let (_, source, _end) = source(&[Act::Fail(Code::NotFound)]).await;
    let mut follower = follower(source, 1 << 20);
    let refused = follower.next().await.unwrap_err();
    assert_eq!((refused.code, &*refused.detail), (Code::NotFound, "scripted"));
    assert_eq!(to_the_head(&mut follower).await.len(), LAST as usize);
}
