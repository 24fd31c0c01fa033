//! The topic of a tier's hot keys, followed as any other topic.
//!
//! Only `Subscribe` is answered. A reader that is further back than what is held
//! is told `Lagged`, and takes the snapshot of hot keys.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use tideline_tier::HotNext;
use tideline_types::{PartitionId, Position, Seq};
use tideline_wire::Code;
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::from::Place;
use tideline_wire::queue_v1::queue_service_server::QueueService;
use tideline_wire::queue_v1::stopped::Reason;
use tideline_wire::queue_v1::subscribe_request::Request as Asked;
use tideline_wire::queue_v1::subscribe_response::Response as Told;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};

use super::{Face, partition_of};
use crate::problem::Problem;

/// A reader hears something this often.
const HEAD_EVERY: Duration = Duration::from_secs(5);
/// Credit that may be gathered, in bytes.
const CREDIT_MAX: i64 = 1 << 30;

/// `tideline.queue.v1.QueueService`, of one topic.
pub(super) struct HotTopic {
    pub(super) face: Face,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn not_here<T>() -> Result<Response<T>, Status> {
    Err(Problem::new(Code::MethodNotAllowed, "a tier answers Subscribe alone").into())
}

#[tonic::async_trait]
impl QueueService for HotTopic {
    async fn list_topics(
        &self,
        _: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        not_here()
    }

    async fn get_topic(
        &self,
        _: Request<v1::GetTopicRequest>,
    ) -> Result<Response<v1::Topic>, Status> {
        not_here()
    }

    async fn create_topic(
        &self,
        _: Request<v1::CreateTopicRequest>,
    ) -> Result<Response<v1::Topic>, Status> {
        not_here()
    }

    async fn delete_topic(
        &self,
        _: Request<v1::DeleteTopicRequest>,
    ) -> Result<Response<v1::DeleteTopicResponse>, Status> {
        not_here()
    }

    async fn produce(
        &self,
        _: Request<v1::ProduceRequest>,
    ) -> Result<Response<v1::ProduceResponse>, Status> {
        not_here()
    }

    type ProduceStreamStream = Answers<v1::ProduceResponse>;

    async fn produce_stream(
        &self,
        _: Request<Streaming<v1::ProduceRequest>>,
    ) -> Result<Response<Self::ProduceStreamStream>, Status> {
        not_here()
    }

    async fn fetch(
        &self,
        _: Request<v1::FetchRequest>,
    ) -> Result<Response<v1::FetchResponse>, Status> {
        not_here()
    }

    type SubscribeStream = Answers<v1::SubscribeResponse>;

    async fn subscribe(
        &self,
        request: Request<Streaming<v1::SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        self.face.admit_call(request.metadata())?;
        let mut requests = request.into_inner();
        let first = requests.next().await.transpose()?.and_then(|first| first.request);
        let Some(Asked::Follow(follow)) = first else {
            return Err(Problem::invalid("follow: must be the first message").into());
        };
        if follow.topic.strip_suffix(".hot") != Some(self.face.tier.topic().as_str()) {
            return Err(Problem::new(Code::NotFound, "topic: there is no such topic").into());
        }
        let partition = partition_of(follow.partition)?;
        let applied = self.face.tier.watch(partition).map_err(Problem::from)?;
        let stands = match follow.from.and_then(|from| from.place) {
            Some(Place::After(p)) => Position::from(p),
            // The present place: what is hot there is in the snapshot.
            Some(Place::Latest(_)) => self.applied(partition)?,
            _ => return Err(Problem::invalid("from: after a place, or latest").into()),
        };
        let reader = Reader {
            face: self.face.clone(),
            partition,
            stands,
            applied,
            credit: i64::from(follow.credit),
            requests,
        };
        let told = stream::unfold(Some(reader), async |reader| {
            let mut reader = reader?;
            let told = match reader.next().await {
                Ok(told) => told?,
                Err(problem) => return Some((Err(problem.into()), None)),
            };
            let ended = matches!(told, Told::Stopped(_));
            let response = v1::SubscribeResponse { response: Some(told) };
            Some((Ok(response), (!ended).then_some(reader)))
        });
        Ok(Response::new(Box::pin(told)))
    }
}

impl HotTopic {
    fn applied(&self, partition: PartitionId) -> Result<Position, Problem> {
        let standing = self.face.tier.standing();
        let part = standing.get(usize::from(partition.0));
        let none = || Problem::new(Code::NotFound, "partition: there is no such partition");
        part.map(|part| part.applied).ok_or_else(none)
    }
}

/// One who follows.
struct Reader {
    face: Face,
    partition: PartitionId,
    stands: Position,
    applied: watch::Receiver<Seq>,
    credit: i64,
    requests: Streaming<v1::SubscribeRequest>,
}

impl Reader {
    /// What the reader is told next; `None` when there is an end.
    async fn next(&mut self) -> Result<Option<Told>, Problem> {
        loop {
            if self.credit > 0 {
                self.applied.mark_unchanged();
                let next = self.face.tier.hot_next(self.partition, self.stands);
                match next.map_err(Problem::from)? {
                    HotNext::Frame(bytes) => {
                        self.credit -= bytes.len() as i64;
                        let frame = tideline_record::frame::Frame::parse(bytes.clone());
                        let frame = frame.map_err(|_| Problem::internal())?;
                        self.stands = frame.through();
                        return Ok(Some(Told::Frame(bytes)));
                    }
                    HotNext::Wait => {}
                    HotNext::Lagged { next, oldest } => {
                        let lagged = v1::Lagged { next: next.0, oldest: oldest.0 };
                        return Ok(Some(stopped(Reason::Lagged(lagged))));
                    }
                    HotNext::Recreated { incarnation } => {
                        let recreated = v1::Recreated { incarnation: incarnation.0 };
                        return Ok(Some(stopped(Reason::Recreated(recreated))));
                    }
                    // A snapshot says what there is; nothing before it is of use.
                    HotNext::Diverged => {
                        let diverged = v1::Diverged { epoch: 0, seq: 0 };
                        return Ok(Some(stopped(Reason::Diverged(diverged))));
                    }
                }
            }
            let event = async {
                tokio::select! {
                    changed = self.applied.changed(), if self.credit > 0 => {
                        changed.map(|()| None).map_err(|_| stopping())
                    }
                    _ = self.face.stopping.wait_for(|stopping| *stopping) => {
                        Err(stopping())
                    }
                    more = self.requests.next() => Ok(Some(more)),
                }
            };
            match timeout(HEAD_EVERY, event).await {
                Err(_quiet) => return Ok(Some(self.head())),
                Ok(Err(problem)) => return Err(problem),
                Ok(Ok(None)) => {}
                Ok(Ok(Some(Some(Ok(more))))) => match more.request {
                    Some(Asked::Credit(bytes)) => {
                        self.credit = (self.credit + i64::from(bytes)).min(CREDIT_MAX);
                    }
                    _ => return Err(Problem::invalid("credit: is all that may follow")),
                },
                // The reader is gone.
                Ok(Ok(Some(_))) => return Ok(None),
            }
        }
    }

    fn head(&self) -> Told {
        let (at, synced) = (self.stands, *self.applied.borrow());
        Told::Head(v1::Head { epoch: at.epoch.0, synced: synced.0, stands: Some(at.into()) })
    }
}

fn stopping() -> Problem {
    Problem::overloaded("the tier is stopping", Duration::from_secs(1))
}

fn stopped(reason: Reason) -> Told {
    Told::Stopped(v1::Stopped { reason: Some(reason) })
}
