//! `tideline.queue.v1.CheckpointService`: where consumers of a topic go on.

use std::sync::Arc;

use tideline_meta::kept::Places;
use tideline_types::{PartitionId, Position, TopicName};
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::checkpoint_service_server::CheckpointService;
use tonic::Request;

use super::queue::{name, partition_of, plain};
use super::service::Answer;
use crate::Gateway;
use crate::auth::Caller;
use crate::op::Op;
use crate::problem::Problem;

/// The service.
pub(crate) struct Checkpoints {
    pub(super) gateway: Gateway,
}

#[tonic::async_trait]
impl CheckpointService for Checkpoints {
    async fn get_checkpoints(
        &self,
        request: Request<v1::GetCheckpointsRequest>,
    ) -> Answer<v1::GetCheckpointsResponse> {
        plain!(self, request, Op::Topics, get)
    }

    async fn keep_checkpoint(
        &self,
        request: Request<v1::KeepCheckpointRequest>,
    ) -> Answer<v1::KeepCheckpointResponse> {
        plain!(self, request, Op::Checkpoint, keep)
    }

    async fn forget_checkpoint(
        &self,
        request: Request<v1::ForgetCheckpointRequest>,
    ) -> Answer<v1::ForgetCheckpointResponse> {
        plain!(self, request, Op::Checkpoint, forget)
    }
}

async fn get(
    gateway: &Gateway,
    asked: v1::GetCheckpointsRequest,
) -> Result<v1::GetCheckpointsResponse, Problem> {
    let consumer = Some(&asked.consumer).filter(|name| !name.is_empty());
    let consumer = consumer.map(|name| consumer_of(name)).transpose()?;
    let found = gateway.checkpoints(&name(&asked.topic)?, consumer.as_ref()).await?;
    let place = |(partition, next): (PartitionId, Position)| v1::CheckpointPlace {
        partition: partition.0.into(),
        next: Some(next.into()),
    };
    let checkpoints = found.into_iter().map(|found| v1::Checkpoint {
        consumer: found.consumer,
        places: found.places.into_iter().map(place).collect(),
    });
    Ok(v1::GetCheckpointsResponse { checkpoints: checkpoints.collect() })
}

async fn keep(
    gateway: &Gateway,
    asked: v1::KeepCheckpointRequest,
) -> Result<v1::KeepCheckpointResponse, Problem> {
    let topic = name(&asked.topic)?;
    let asked = asked.checkpoint.unwrap_or_default();
    let mut places = Places::new();
    for place in asked.places {
        let next = place.next.ok_or_else(|| Problem::invalid("places.next: is required"))?;
        let next = Position::from(next);
        places.insert(partition_of(place.partition)?, next);
    }
    gateway.keep_checkpoint(&topic, &consumer_of(&asked.consumer)?, &places).await?;
    Ok(v1::KeepCheckpointResponse {})
}

async fn forget(
    gateway: &Gateway,
    asked: v1::ForgetCheckpointRequest,
) -> Result<v1::ForgetCheckpointResponse, Problem> {
    let (topic, consumer) = (name(&asked.topic)?, consumer_of(&asked.consumer)?);
    gateway.meta()?.forget_checkpoint(&topic, &consumer).await?;
    Ok(v1::ForgetCheckpointResponse {})
}

fn consumer_of(text: &str) -> Result<TopicName, Problem> {
    TopicName::new(text).map_err(|bad| Problem::invalid(format!("consumer: {}", bad.0)))
}
