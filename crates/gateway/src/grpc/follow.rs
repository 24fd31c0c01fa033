//! Reading topics over gRPC: ranges as the frames that readers may hand on, for
//! as long as the reader gives credit.
//!
//! A follower holds nothing here but its place and its credit: what it does not
//! take stays in the log, and holds up nobody. What cannot be read is an answer
//! that says what to do, and ends the stream.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tideline_queue::{FetchError, From, Queue, RangeFrame, Subscription};
use tideline_types::{Millis, PartitionId, TopicName};
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::from::Place;
use tideline_wire::queue_v1::stopped::Reason;
use tideline_wire::queue_v1::subscribe_request::Request as Asked;
use tideline_wire::queue_v1::subscribe_response::Response as Told;
use tokio::time::{Sleep, sleep};
use tonic::{Status, Streaming};

use super::queue::{limits_of, name, partition_of};
use super::service::Lines;
use crate::Gateway;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::readers::Entered;

/// With nothing to send, a follower is told how far the partition is this
/// often: one that hears nothing for longer has lost its connection.
const HEAD_EVERY: Duration = Duration::from_secs(5);
/// Credit that may be gathered, in bytes.
const CREDIT_MAX: i64 = 1 << 30;

/// One range from a place on.
pub(super) async fn fetch(
    gateway: &Gateway,
    asked: v1::FetchRequest,
) -> Result<v1::FetchResponse, Problem> {
    use v1::fetch_response::Answer;
    let (topic, partition) = (name(&asked.topic)?, partition_of(asked.partition)?);
    let (from, limits) = (from_of(asked.from)?, limits_of(asked.bytes_max)?);
    let queue = &gateway.inner.queue;
    let mut subscription = queue.subscribe_with(&topic, partition, from, limits);
    let wait = Duration::from_millis(asked.wait_ms.into());
    let came = tokio::select! {
        came = tokio::time::timeout(wait, subscription.next()) => came,
        () = gateway.stopping() => return Err(stopping()),
    };
    let answer = match came {
        Err(_nothing) => None,
        Ok(Ok(frame)) => Some(Answer::Frame(frame.encode(partition).bytes().clone())),
        Ok(Err(error)) => Some(Answer::Stopped(stopped(error)?)),
    };
    let next = subscription.stands().map(Into::into);
    Ok(v1::FetchResponse { answer, next })
}

/// Ranges from a place on, as they come.
pub(super) async fn subscribe(
    gateway: &Gateway,
    caller: &Caller,
    mut requests: Streaming<v1::SubscribeRequest>,
) -> Result<Lines<v1::SubscribeResponse>, Problem> {
    let first = requests.next().await.transpose().map_err(|_| Problem::internal())?;
    let Some(Asked::Follow(follow)) = first.and_then(|first| first.request) else {
        return Err(Problem::invalid("follow: must be the first message"));
    };
    let (topic, partition) = (name(&follow.topic)?, partition_of(follow.partition)?);
    let (from, limits) = (from_of(follow.from)?, limits_of(follow.bytes_max)?);
    let queue = gateway.inner.queue.clone();
    // What is wrong with the name is told at once, not on the stream.
    queue.bounds(&topic, partition)?;
    let now = gateway.inner.clock.now();
    let follower = Follower {
        entered: gateway.inner.readers.enter(&caller.name, &topic, partition, now),
        subscription: queue.subscribe_with(&topic, partition, from, limits),
        queue,
        topic,
        partition,
        credit: i64::from(follow.credit),
        requests: Some(requests),
        gateway: gateway.clone(),
        head: Box::pin(sleep(HEAD_EVERY)),
    };
    let told = stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        match follower.next().await {
            Ok(Some(told)) => {
                let ended = matches!(told, Told::Stopped(_));
                let response = v1::SubscribeResponse { response: Some(told) };
                Some((Ok(response), (!ended).then_some(follower)))
            }
            Ok(None) => None,
            Err(problem) => Some((Err(Status::from(problem)), None)),
        }
    });
    Ok(Box::pin(told))
}

/// One subscription over a connection.
struct Follower {
    gateway: Gateway,
    queue: Queue,
    topic: TopicName,
    partition: PartitionId,
    subscription: Subscription,
    entered: Entered,
    credit: i64,
    /// `None` once the reader has said all that it will.
    requests: Option<Streaming<v1::SubscribeRequest>>,
    head: Pin<Box<Sleep>>,
}

/// What came first.
enum Event {
    Frame(Result<RangeFrame, FetchError>),
    Credit(Option<Result<v1::SubscribeRequest, Status>>),
    Quiet,
    Stopping,
}

impl Follower {
    /// What the follower is told next; `None` when there is an end.
    async fn next(&mut self) -> Result<Option<Told>, Problem> {
        loop {
            if self.credit <= 0 && self.requests.is_none() {
                return Ok(None);
            }
            match self.event().await {
                Event::Frame(Ok(frame)) => {
                    let bytes = frame.encode(self.partition).bytes().clone();
                    self.credit -= bytes.len() as i64;
                    self.entered.stands(self.subscription.stands());
                    self.entered.handed(bytes.len());
                    self.head.as_mut().reset(tokio::time::Instant::now() + HEAD_EVERY);
                    return Ok(Some(Told::Frame(bytes)));
                }
                Event::Frame(Err(error)) => return stopped(error).map(|s| Some(Told::Stopped(s))),
                Event::Credit(None) => self.requests = None,
                // The connection is gone.
                Event::Credit(Some(Err(_))) => return Ok(None),
                Event::Credit(Some(Ok(more))) => match more.request {
                    Some(Asked::Credit(bytes)) => {
                        self.credit = (self.credit + i64::from(bytes)).min(CREDIT_MAX);
                    }
                    _ => return Err(Problem::invalid("credit: is all that may follow")),
                },
                Event::Quiet => {
                    self.head.as_mut().reset(tokio::time::Instant::now() + HEAD_EVERY);
                    return self.head().map(|head| Some(Told::Head(head)));
                }
                Event::Stopping => return Err(stopping()),
            }
        }
    }

    async fn event(&mut self) -> Event {
        let Self { subscription, requests, head, gateway, credit, .. } = self;
        let more = async {
            match requests {
                Some(requests) => requests.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            frame = subscription.next(), if *credit > 0 => Event::Frame(frame),
            more = more => Event::Credit(more),
            () = head => Event::Quiet,
            () = gateway.stopping() => Event::Stopping,
        }
    }

    fn head(&self) -> Result<v1::Head, Problem> {
        let bounds = self.queue.bounds(&self.topic, self.partition)?;
        let stands = self.subscription.stands();
        self.entered.stands(stands);
        Ok(v1::Head {
            epoch: bounds.epoch.0,
            synced: bounds.synced.0,
            stands: stands.map(Into::into),
        })
    }
}

/// What a reader can do something about; anything else is a problem.
fn stopped(error: FetchError) -> Result<v1::Stopped, Problem> {
    let reason = match error {
        FetchError::Truncated { start } => {
            Reason::Truncated(v1::Truncated { start: start.0, snapshot: String::new() })
        }
        FetchError::Diverged { epoch, seq } => {
            Reason::Diverged(v1::Diverged { epoch: epoch.0, seq: seq.0 })
        }
        FetchError::Recreated { incarnation } => {
            Reason::Recreated(v1::Recreated { incarnation: incarnation.0 })
        }
        FetchError::Halted { seq, why } => Reason::Halted(v1::Halted { seq: seq.0, reason: why }),
        other => return Err(other.into()),
    };
    Ok(v1::Stopped { reason: Some(reason) })
}

fn from_of(from: Option<v1::From>) -> Result<From, Problem> {
    match from.and_then(|from| from.place) {
        None | Some(Place::Earliest(_)) => Ok(From::Earliest),
        Some(Place::Latest(_)) => Ok(From::Latest),
        Some(Place::At(position)) => Ok(From::At(position.into())),
        Some(Place::After(position)) => Ok(From::After(position.into())),
        Some(Place::TimeMs(ms)) if ms >= 0 => Ok(From::Time(Millis(ms))),
        Some(Place::TimeMs(_)) => Err(Problem::invalid("from.time_ms: is before the epoch")),
    }
}

fn stopping() -> Problem {
    Problem::overloaded("the server is stopping", Duration::from_secs(5))
}
