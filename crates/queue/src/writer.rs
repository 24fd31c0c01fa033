//! Taking a partition over: the one way in for an owner that decides itself.

use std::sync::Arc;

use bytes::Bytes;
use tideline_record::batch::{BatchBuilder, Header};
use tideline_store::{AppendError, Journal, StoreError, SyncWatcher};
use tideline_types::{Epoch, Millis, PartitionId, Seq, SeqRange, StreamId, TopicName};

use crate::queue::Relay;
use crate::{OwnError, Queue};

/// The right to append to one partition, until another takes it over.
pub struct PartitionWriter {
    journal: Arc<dyn Journal>,
    stream: StreamId,
    epoch: Epoch,
    next: Seq,
    start: Seq,
    newest: Millis,
}

impl Queue {
    /// Takes a partition over: fences every former owner with a new epoch,
    /// durable on return. `watcher` hears what is synced from then on. Blocks.
    pub fn own(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        watcher: Arc<dyn SyncWatcher>,
    ) -> Result<PartitionWriter, OwnError> {
        if self.inner.derived().contains_key(topic) {
            return Err(OwnError::Derived(topic.clone()));
        }
        let place = self.inner.place(topic, partition).map_err(|error| match error {
            crate::FetchError::NoTopic(topic) => OwnError::NoTopic(topic),
            _ => OwnError::NoPartition(topic.clone(), partition),
        })?;
        let journal = self.inner.journal.clone();
        let stream = place.lane.stream;
        *place.lane.shared() = None;
        let relay = Relay { lane: place.lane.clone(), owner: watcher };
        let bounds = journal.fence(stream, Arc::new(relay))?;
        place.lane.synced.send_replace(bounds.synced);
        let newest = newest(&*journal, stream);
        Ok(PartitionWriter {
            journal,
            stream,
            epoch: bounds.epoch,
            next: bounds.next,
            start: bounds.start,
            newest,
        })
    }
}

/// The greatest time of a record of `stream`; 0 if it holds none.
pub(crate) fn newest(journal: &dyn Journal, stream: StreamId) -> Millis {
    journal.extents(stream).iter().map(|e| e.newest).max().unwrap_or_default()
}

impl PartitionWriter {
    /// The epoch of this ownership.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The epoch that the log has now: another one, once someone has taken the
    /// partition over. An owner whose epoch it is not answers nothing more.
    pub fn log_epoch(&self) -> Epoch {
        self.journal.bounds(self.stream).unwrap_or_default().epoch
    }

    /// The number that the next record gets.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// The first number that could be read when the partition was taken over.
    pub fn start(&self) -> Seq {
        self.start
    }

    /// Whose records.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The greatest time of a record when the partition was taken over: an
    /// owner whose times never fall starts no lower.
    pub fn newest(&self) -> Millis {
        self.newest
    }

    /// An empty batch that begins with the next number.
    pub fn builder(&self) -> BatchBuilder {
        BatchBuilder::new(self.stream, self.epoch, self.next)
    }

    /// Appends a batch of [`PartitionWriter::builder`]. Does not wait.
    pub fn append(&mut self, batch: BatchBuilder) -> Result<SeqRange, AppendError> {
        self.append_bytes(batch.finish())
    }

    /// The same for an encoded batch: a clone of the bytes can be tried again
    /// after [`AppendError::Full`].
    pub fn append_bytes(&mut self, batch: Bytes) -> Result<SeqRange, AppendError> {
        let header = Header::read(&batch).map_err(|error| StoreError::Io {
            what: format!("append to {}", self.stream),
            cause: error.to_string(),
        })?;
        self.journal.append(self.stream, batch)?;
        self.next = header.last().next();
        Ok(header.range())
    }

    /// The watcher was told that everything from `from` on was dropped:
    /// numbers continue there.
    pub fn rewind(&mut self, from: Seq) {
        assert!(from <= self.next, "a dropped batch was appended before");
        self.next = from;
    }
}
