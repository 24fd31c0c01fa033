//! Where a consumer is done with a topic, kept by the server in its metadata tree: for one that has
//! nowhere to keep it beside what it has applied.
//!
//! A place that is kept apart from the data is no part of it: what was applied after the place was
//! kept last is handed on once more after a kill. A place never goes back, so of two processes that
//! call themselves the same consumer, the one that is behind is refused.

use std::collections::BTreeMap;

use tideline_types::{PartitionId, Position, TopicName};
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::checkpoint_service_client::CheckpointServiceClient;

use crate::follower::Refused;
use crate::source::Source;

/// The places of one consumer of a topic.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    source: Source,
    topic: TopicName,
    consumer: String,
}

impl Checkpoints {
    /// Those of `consumer`, which is 1 to 64 of a-z, 0-9, `.`, `_` and `-`.
    pub fn new(source: Source, topic: TopicName, consumer: &str) -> Self {
        Self { source, topic, consumer: consumer.to_owned() }
    }

    /// Up to where it is done with each partition: to go on at
    /// [`crate::From::After`] that. A partition for which it has kept none is not there.
    ///
    /// # Errors
    /// If the server refuses, or is away: [`Refused::is_final`] tells these apart.
    pub async fn kept(&self) -> Result<BTreeMap<PartitionId, Position>, Refused> {
        let (topic, consumer) = (self.topic.as_str().to_owned(), self.consumer.clone());
        let asked = self.source.request(v1::GetCheckpointsRequest { topic, consumer });
        let mut client = CheckpointServiceClient::new(self.source.channel());
        let found = client.get_checkpoints(asked).await.map_err(|status| Refused::of(&status))?;
        let places = found.into_inner().checkpoints.into_iter().flat_map(|found| found.places);
        let done = |place: v1::CheckpointPlace| {
            let next = Position::from(place.next?);
            let partition = u16::try_from(place.partition).ok()?;
            Some((PartitionId(partition), Position { seq: next.seq.prev(), ..next }))
        };
        Ok(places.filter_map(done).collect())
    }

    /// It is done with everything up to these places; others stay where they are. Durable on return.
    ///
    /// # Errors
    /// As [`Checkpoints::kept`]; `FailedPrecondition` if a place would go back, or is of another life
    /// of the topic than the present one.
    pub async fn keep(&self, done: &BTreeMap<PartitionId, Position>) -> Result<(), Refused> {
        let place = |(partition, done): (&PartitionId, &Position)| v1::CheckpointPlace {
            partition: partition.0.into(),
            next: Some(Position { seq: done.seq.next(), ..*done }.into()),
        };
        let places = done.iter().map(place).collect();
        let checkpoint = Some(v1::Checkpoint { consumer: self.consumer.clone(), places });
        let topic = self.topic.as_str().to_owned();
        let asked = self.source.request(v1::KeepCheckpointRequest { topic, checkpoint });
        let mut client = CheckpointServiceClient::new(self.source.channel());
        client.keep_checkpoint(asked).await.map(|_| ()).map_err(|status| Refused::of(&status))
    }

    /// Forgets them: it begins anew.
    ///
    /// # Errors
    /// As [`Checkpoints::kept`].
    pub async fn forget(&self) -> Result<(), Refused> {
        let (topic, consumer) = (self.topic.as_str().to_owned(), self.consumer.clone());
        let asked = self.source.request(v1::ForgetCheckpointRequest { topic, consumer });
        let mut client = CheckpointServiceClient::new(self.source.channel());
        client.forget_checkpoint(asked).await.map(|_| ()).map_err(|status| Refused::of(&status))
    }
}
