//! Topics over the memory engines: what a caller sees. One file runs over the
//! log on disk.

#![allow(clippy::unwrap_used)]

mod declared;
mod faults;
mod on_disk;
mod once;
mod places;
mod producing;
mod retaining;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tideline_queue::{Options, Queue, TopicSpec};
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{Clock, ManualClock, ReadLimits};
use tideline_types::{Millis, PartitionId, TopicName};

pub(crate) const NOW: i64 = 1_796_000_000_000;
pub(crate) const P0: PartitionId = PartitionId(0);
pub(crate) const ALL: ReadLimits = ReadLimits { records_max: 1_000, bytes_max: 1 << 20 };
pub(crate) const NO_WAIT: Duration = Duration::ZERO;
/// Longer than any test: what waits for it hangs if it is not woken.
pub(crate) const LONG: Duration = Duration::from_hours(1);

pub(crate) struct House {
    pub(crate) journal: Arc<MemJournal>,
    pub(crate) table: Arc<MemTable>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) queue: Queue,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(MemJournal::new()), Arc::default(), Options::default())
    }

    pub(crate) fn over(journal: Arc<MemJournal>, table: Arc<MemTable>, options: Options) -> Self {
        let clock = Arc::new(ManualClock::at(Millis(NOW)));
        let time: Arc<dyn Clock> = clock.clone();
        let queue = Queue::open(journal.clone(), table.clone(), time, options).unwrap();
        Self { journal, table, clock, queue }
    }

    /// The same folder after a restart.
    pub(crate) fn reopened(self) -> Self {
        Self::over(self.journal, self.table, Options::default())
    }

    pub(crate) fn topic(&self, text: &str, partitions: u16) -> TopicName {
        let mut spec = TopicSpec::new(name(text));
        spec.partitions = Some(partitions);
        self.queue.create_topic(spec).unwrap().name
    }

    pub(crate) async fn say(&self, topic: &TopicName, values: &[&str]) {
        let records = values.iter().map(|v| record(v)).collect();
        self.queue.produce(topic, Some(P0), records).await.unwrap();
    }
}

/// A record without a key.
pub(crate) fn record(value: &str) -> (Bytes, Bytes) {
    (Bytes::new(), Bytes::copy_from_slice(value.as_bytes()))
}

pub(crate) fn name(text: &str) -> TopicName {
    TopicName::new(text).unwrap()
}
