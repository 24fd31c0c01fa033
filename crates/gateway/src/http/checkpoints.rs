//! Where consumers of a topic go on, kept in the metadata tree for those that ask.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use tideline_meta::kept::Places;
use tideline_queue::TopicInfo;
use tideline_types::{PartitionId, Position, Seq, TopicName};
use tideline_wire::Code;

use super::door::{self, Call};
use crate::Gateway;
use crate::problem::Problem;
use crate::tree::Checkpoint;

#[derive(Serialize)]
struct Consumer {
    consumer: String,
    partitions: Vec<Place>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    partition: u16,
    next: String,
    /// Numbers that the consumer has yet to read. Not for callers to say.
    #[serde(skip_deserializing)]
    lag: u64,
}

#[derive(Serialize)]
struct Owner {
    owner: String,
    partition: u16,
    token: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    partitions: Vec<Place>,
}

pub(super) async fn list(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let topic = name(&call, "topic")?;
    let found = gateway.checkpoints(&topic, None).await?;
    let info = gateway.inner.queue.topic(&topic);
    let all: Vec<Consumer> = found.into_iter().map(|c| consumer_of(c, info.as_ref())).collect();
    let owners = gateway.meta()?.owners(&topic).await?;
    let owner = |(owner, partition, token): (String, PartitionId, Seq)| Owner {
        owner,
        partition: partition.0,
        token: token.0,
    };
    let owners: Vec<Owner> = owners.into_iter().map(owner).collect();
    json(&serde_json::json!({ "checkpoints": all, "owners": owners }))
}

pub(super) async fn get(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let topic = name(&call, "topic")?;
    let found = gateway.checkpoints(&topic, Some(&name(&call, "consumer")?)).await?;
    let none = || Problem::new(Code::NotFound, "this consumer has kept no place");
    let found = found.into_iter().next().ok_or_else(none)?;
    json(&consumer_of(found, gateway.inner.queue.topic(&topic).as_ref()))
}

pub(super) async fn keep(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (topic, consumer) = (name(&call, "topic")?, name(&call, "consumer")?);
    let body = call.body(&gateway).await?;
    let asked: Keep = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("body: {error}")))?;
    let mut places = Places::new();
    for place in asked.partitions {
        let next: Position = place.next.parse().map_err(|_| {
            Problem::invalid("partitions.next: must be a position (incarnation-epoch-seq)")
        })?;
        if places.insert(PartitionId(place.partition), next).is_some() {
            return Err(Problem::invalid("partitions: one is named twice"));
        }
    }
    gateway.keep_checkpoint(&topic, &consumer, &places).await?;
    Ok(door::nothing())
}

pub(super) async fn forget(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (topic, consumer) = (name(&call, "topic")?, name(&call, "consumer")?);
    gateway.meta()?.forget_checkpoint(&topic, &consumer).await?;
    Ok(door::nothing())
}

fn consumer_of(found: Checkpoint, topic: Option<&TopicInfo>) -> Consumer {
    let place = |(partition, next): (PartitionId, Position)| {
        let bounds = topic.and_then(|topic| topic.bounds.get(usize::from(partition.0)));
        let end = bounds.map_or(next.seq.0, |bounds| bounds.synced.next().0);
        let lag = end.saturating_sub(next.seq.0);
        Place { partition: partition.0, next: next.to_string(), lag }
    };
    Consumer { consumer: found.consumer, partitions: found.places.into_iter().map(place).collect() }
}

fn name(call: &Call, param: &str) -> Result<TopicName, Problem> {
    TopicName::new(call.param(param).unwrap_or_default())
        .map_err(|bad| Problem::invalid(format!("{param}: {}", bad.0)))
}

fn json(value: &impl Serialize) -> Result<Response, Problem> {
    let out = serde_json::to_vec(value);
    Ok(door::json(out.map_err(|error| Problem::new(Code::Internal, error.to_string()))?))
}
