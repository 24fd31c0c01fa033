//! `tideline.queue.v1.QueueService`: topics, written and read.

use std::sync::Arc;
use std::time::Duration;

use tideline_queue::{Records, Sent, TopicInfo, TopicKind};
use tideline_record::OnError;
use tideline_record::batch::Stamp;
use tideline_store::ReadLimits;
use tideline_types::limits::BATCH_MARKS_MAX;
use tideline_types::{PartitionId, Position, TopicName};
use tideline_wire::Code;
use tideline_wire::queue_v1::queue_service_server::QueueService;
use tideline_wire::{common_v1, queue_v1 as v1};
use tonic::{Request, Streaming};

use super::follow;
use super::pipelined::{Pipelined, pipelined};
use super::service::{Answer, Lines};
use crate::Gateway;
use crate::auth::Caller;
use crate::op::Op;
use crate::problem::Problem;
use crate::topics::{NewTopic, Source};

/// The longest that a fetch may ask to wait.
const WAIT_MAX_MS: u32 = 60_000;

/// The service.
pub(crate) struct Topics {
    pub(super) gateway: Gateway,
}

/// A call of one message.
macro_rules! plain {
    ($self:ident, $request:ident, $op:expr, $run:expr) => {{
        let (metadata, _, message) = $request.into_parts();
        let gateway = &$self.gateway;
        let run = async |caller: Arc<Caller>| {
            gateway.admit($op, &caller, None)?;
            $run(gateway, message).await
        };
        gateway.grpc($op, &metadata, run).await
    }};
}

pub(super) use plain;

#[tonic::async_trait]
impl QueueService for Topics {
    async fn list_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Answer<v1::ListTopicsResponse> {
        plain!(self, request, Op::Topics, async |gateway: &Gateway, _| {
            let topics = gateway.inner.queue.topics().iter().map(topic_of).collect();
            Ok(v1::ListTopicsResponse { topics })
        })
    }

    async fn get_topic(&self, request: Request<v1::GetTopicRequest>) -> Answer<v1::Topic> {
        plain!(self, request, Op::Topics, async |gateway: &Gateway, asked: v1::GetTopicRequest| {
            let found = gateway.inner.queue.topic(&name(&asked.topic)?);
            found.as_ref().map(topic_of).ok_or_else(no_topic)
        })
    }

    async fn create_topic(&self, request: Request<v1::CreateTopicRequest>) -> Answer<v1::Topic> {
        plain!(self, request, Op::ChangeTopic, create)
    }

    async fn delete_topic(
        &self,
        request: Request<v1::DeleteTopicRequest>,
    ) -> Answer<v1::DeleteTopicResponse> {
        plain!(self, request, Op::ChangeTopic, delete)
    }

    async fn produce(&self, request: Request<v1::ProduceRequest>) -> Answer<v1::ProduceResponse> {
        plain!(self, request, Op::Produce, async |gateway: &Gateway, asked| {
            let positions = send(gateway, asked).await?.synced().await?;
            Ok(produced(&positions))
        })
    }

    type ProduceStreamStream = Lines<v1::ProduceResponse>;

    async fn produce_stream(
        &self,
        request: Request<Streaming<v1::ProduceRequest>>,
    ) -> Answer<Self::ProduceStreamStream> {
        pipelined::<Produce>(&self.gateway, request).await
    }

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Answer<v1::FetchResponse> {
        let wait = request.get_ref().wait_ms;
        let (metadata, _, asked) = request.into_parts();
        let gateway = &self.gateway;
        let run = async |caller: Arc<Caller>| {
            gateway.admit(Op::Fetch, &caller, None)?;
            if wait > WAIT_MAX_MS {
                return Err(Problem::invalid(format!("wait_ms: at most {WAIT_MAX_MS}")));
            }
            follow::fetch(gateway, asked).await
        };
        let wait = Duration::from_millis(wait.min(WAIT_MAX_MS).into());
        gateway.grpc_waiting(Op::Fetch, &metadata, wait, run).await
    }

    type SubscribeStream = Lines<v1::SubscribeResponse>;

    async fn subscribe(
        &self,
        request: Request<Streaming<v1::SubscribeRequest>>,
    ) -> Answer<Self::SubscribeStream> {
        let (metadata, _, requests) = request.into_parts();
        let gateway = &self.gateway;
        let run = async |caller: Arc<Caller>| {
            gateway.admit(Op::Follow, &caller, None)?;
            follow::subscribe(gateway, &caller, requests).await
        };
        gateway.grpc(Op::Follow, &metadata, run).await
    }
}

async fn create(gateway: &Gateway, asked: v1::CreateTopicRequest) -> Result<v1::Topic, Problem> {
    let partitions = u16::try_from(asked.partitions)
        .map_err(|_| Problem::invalid("partitions: must be 1 to 1024"))?;
    let on_error = if asked.halt_on_error { OnError::Halt } else { OnError::Skip };
    let operator = if asked.operator.is_empty() { "{}".into() } else { asked.operator };
    let new = NewTopic {
        name: name(&asked.topic)?,
        partitions: (partitions > 0).then_some(partitions),
        retention_hours: (asked.retention_hours > 0).then_some(asked.retention_hours),
        source: (!asked.source.is_empty()).then_some(Source {
            topic: asked.source,
            operator,
            on_error,
        }),
    };
    Ok(topic_of(&gateway.make_topic(new).await?))
}

async fn delete(
    gateway: &Gateway,
    asked: v1::DeleteTopicRequest,
) -> Result<v1::DeleteTopicResponse, Problem> {
    gateway.remove_topic(name(&asked.topic)?).await?;
    Ok(v1::DeleteTopicResponse {})
}

/// Appends the records of one message.
async fn send(gateway: &Gateway, asked: v1::ProduceRequest) -> Result<Sent, Problem> {
    let topic = name(&asked.topic)?;
    if asked.records.len() > BATCH_MARKS_MAX {
        let detail = format!("records: at most {BATCH_MARKS_MAX} in one call");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    let partition = asked.partition.map(partition_of).transpose()?;
    let records: Records = asked.records.into_iter().map(|r| (r.key, r.value)).collect();
    let queue = &gateway.inner.queue;
    let Some(v1::Stamp { producer, epoch, number }) = asked.stamp else {
        return Ok(queue.send(&topic, partition, records).await?);
    };
    let partition =
        partition.ok_or_else(|| Problem::invalid("partition: is required with a stamp"))?;
    let stamp = Stamp { producer, epoch, number };
    Ok(queue.send_once(&topic, partition, stamp, records).await?)
}

/// Records of each message, appended in order.
#[derive(Clone, Copy)]
struct Produce;

impl Pipelined for Produce {
    type Request = v1::ProduceRequest;
    type Begun = Sent;
    type Response = v1::ProduceResponse;
    const OP: Op = Op::Produce;

    async fn begin(gateway: &Gateway, asked: v1::ProduceRequest) -> Result<Sent, Problem> {
        send(gateway, asked).await
    }

    async fn end(sent: Sent) -> Result<v1::ProduceResponse, Problem> {
        Ok(produced(&sent.synced().await?))
    }

    fn refused(error: common_v1::Error) -> v1::ProduceResponse {
        v1::ProduceResponse { positions: Vec::new(), error: Some(error) }
    }
}

fn produced(positions: &[Position]) -> v1::ProduceResponse {
    let positions = positions.iter().copied().map(Into::into).collect();
    v1::ProduceResponse { positions, error: None }
}

pub(super) fn name(text: &str) -> Result<TopicName, Problem> {
    TopicName::new(text).map_err(|bad| Problem::invalid(format!("topic: {}", bad.0)))
}

pub(super) fn partition_of(number: u32) -> Result<PartitionId, Problem> {
    let number = u16::try_from(number).map_err(|_| Problem::invalid("partition: too large"))?;
    Ok(PartitionId(number))
}

pub(super) fn limits_of(bytes_max: u32) -> Result<ReadLimits, Problem> {
    match bytes_max as usize {
        0 => Ok(ReadLimits { records_max: usize::MAX, bytes_max: 1 << 20 }),
        bytes_max if bytes_max <= 4 << 20 => Ok(ReadLimits { records_max: usize::MAX, bytes_max }),
        _ => Err(Problem::invalid("bytes_max: at most 4 MiB")),
    }
}

fn no_topic() -> Problem {
    Problem::new(Code::NotFound, "topic: there is no such topic")
}

fn topic_of(topic: &TopicInfo) -> v1::Topic {
    let partitions = topic.bounds.iter().map(|bounds| v1::Partition {
        epoch: bounds.epoch.0,
        start: bounds.start.0,
        synced: bounds.synced.0,
    });
    v1::Topic {
        name: topic.name.as_str().into(),
        incarnation: topic.incarnation.0,
        source: match &topic.kind {
            TopicKind::Source => String::new(),
            TopicKind::Derived { source, .. } => source.as_str().into(),
        },
        operator: match &topic.kind {
            TopicKind::Derived { operator: Some(text), .. } => text.clone(),
            _ => String::new(),
        },
        read_only: topic.read_only,
        retention_ms: topic.retention.as_millis() as u64,
        partitions: partitions.collect(),
    }
}
