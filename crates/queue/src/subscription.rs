//! Following a partition: range frames, read when they are asked for.
//!
//! Frames join without a gap or a double: each begins where the one before it
//! ended. A subscription holds no log and no records; one that falls behind
//! what is kept is told `Truncated`.

use bytes::Bytes;
use tideline_record::frame::Frame;
use tideline_store::ReadLimits;
use tideline_types::{
    Epoch, Incarnation, PartitionId, Position, Seq, SeqRange, StreamId, TopicName,
};
use tokio::sync::watch;

use crate::{FetchError, From, Queue};

/// A range of numbers and the batches in it.
#[derive(Clone, Debug)]
pub struct RangeFrame {
    /// What is covered. The first batch may begin before the range, when the
    /// subscription began in the middle of it.
    pub range: SeqRange,
    /// Which life of the topic.
    pub incarnation: Incarnation,
    /// Who wrote every record of the range.
    pub epoch: Epoch,
    /// Encoded batches as they were written (derived: as they are computed).
    pub batches: Vec<Bytes>,
}

impl RangeFrame {
    /// The frame as it goes to other machines.
    pub fn encode(&self, partition: PartitionId) -> Frame {
        let stream = StreamId { incarnation: self.incarnation, partition };
        Frame::new(stream, self.epoch, self.range, &self.batches)
    }
}

/// A reader's place in a partition.
pub struct Subscription {
    queue: Queue,
    topic: TopicName,
    partition: PartitionId,
    limits: ReadLimits,
    place: Place,
}

enum Place {
    Asked(From),
    At { next: Seq, incarnation: Incarnation, synced: watch::Receiver<Seq> },
}

impl Queue {
    /// Follows a partition from a place on. Frames hold up to 1 MiB.
    pub fn subscribe(&self, topic: &TopicName, partition: PartitionId, from: From) -> Subscription {
        let limits = ReadLimits { records_max: usize::MAX, bytes_max: 1 << 20 };
        self.subscribe_with(topic, partition, from, limits)
    }

    /// The same with frames of another size.
    pub fn subscribe_with(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        from: From,
        limits: ReadLimits,
    ) -> Subscription {
        Subscription {
            queue: self.clone(),
            topic: topic.clone(),
            partition,
            limits,
            place: Place::Asked(from),
        }
    }
}

impl Subscription {
    /// Where it stands: after the last record that it has covered. `None` before
    /// the first call of [`Subscription::next`] has found its place.
    pub fn stands(&self) -> Option<Position> {
        let Place::At { next, incarnation, .. } = &self.place else { return None };
        let stream = StreamId { incarnation: *incarnation, partition: self.partition };
        let (seq, epoch) = (next.prev(), self.queue.inner.epoch_before(stream, *next));
        Some(Position { incarnation: *incarnation, epoch, seq })
    }

    /// The next frame; waits for it. Dropping the future loses nothing. After
    /// an error the place is the same as before.
    pub async fn next(&mut self) -> Result<RangeFrame, FetchError> {
        if let Place::Asked(from) = self.place {
            let info = self.queue.topic(&self.topic);
            let info = info.ok_or_else(|| FetchError::NoTopic(self.topic.clone()))?;
            let synced = self.queue.watch(&self.topic, self.partition)?;
            let next = self.queue.begin(&self.topic, self.partition, from).await?;
            self.place = Place::At { next, incarnation: info.incarnation, synced };
        }
        let Place::At { next, incarnation, synced } = &mut self.place else {
            unreachable!("the place was just found")
        };
        loop {
            synced.mark_unchanged();
            let chunk = self
                .queue
                .chunk(&self.topic, self.partition, *incarnation, *next, self.limits)
                .await?;
            if let Some(chunk) = chunk {
                *next = chunk.range.through.next();
                return Ok(RangeFrame {
                    range: chunk.range,
                    incarnation: *incarnation,
                    epoch: chunk.epoch,
                    batches: chunk.batches,
                });
            }
            if synced.changed().await.is_err() {
                return Err(FetchError::NoTopic(self.topic.clone()));
            }
        }
    }
}
