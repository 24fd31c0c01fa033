//! A tier: what the keys of a topic of operations have, in rows that follow the
//! topic by its numbers, with no log of its own; and the topic of its hot keys.
//!
//! ```text
//!   ranges of a topic ──apply──▶ rows, and how far: one write
//!                                  │
//!            get ◀── applied place ┤
//!       snapshot ◀─────────────────┤
//!       hot keys ◀── the same ranges, of keys that are hot
//!          ▲
//!          └ which keys are asked for most, counted and logged
//! ```
//!
//! Always: an answer says of which place it is; what it was made of and that
//! place changed together. Ranges are applied where they join, and nowhere
//! else. Knows nothing of networks, and not where the topic lies.
//!
//! A key is held in the partition that it belongs to: a topic whose operator gives
//! records another key than their partition goes by cannot be looked up, and
//! such records are counted as skipped.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod fold;
#[doc(hidden)]
pub mod fuzz;
mod hot;
mod part;
mod ring;
mod rows;
#[cfg(feature = "sabotage")]
pub mod sabotage;
mod sketch;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tideline_record::frame::Frame;
use tideline_store::{StoreError, Table};
use tideline_types::{PartitionId, Position, Seq, TopicName, partition_of};
use tokio::sync::watch;

use part::Part;

pub use part::{ApplyError, HotNext};
pub use rows::Has;

/// How much a tier keeps beside its rows.
#[derive(Clone, Debug)]
pub struct Options {
    /// Hot keys of a partition, at most; up to 1,000. Default 100.
    pub hot_keys_max: usize,
    /// A key is hot only if it was asked for this often, lately. Default 4.
    pub hot_least: u64,
    /// Bytes of the newest changes of hot keys, for each partition. Default 4
    /// MiB.
    pub ring_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { hot_keys_max: 100, hot_least: 4, ring_bytes: 4 << 20 }
    }
}

/// A key with what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Which key.
    pub key: Bytes,
    /// What it has.
    pub has: Has,
    /// The number of the last change in it.
    pub at: Seq,
}

/// A hot key with what it has, if it has anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotEntry {
    /// Which key.
    pub key: Bytes,
    /// What it has; `None` for nothing.
    pub has: Option<Has>,
    /// The number of the last change in it; 0 if it has nothing.
    pub at: Seq,
}

/// Where a partition's following goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing was ever applied.
    Fresh,
    /// After what was applied.
    After(Position),
    /// A snapshot was not loaded to its end.
    Snapshot,
}

/// How a partition stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Everything up to here is in it.
    pub applied: Position,
    /// What the source last said that it has.
    pub head: Seq,
    /// Keys that are hot.
    pub hot_keys: usize,
    /// Records that are no operation on a key that is held here.
    pub skipped: u64,
    /// Whether it answers: no snapshot is on its way.
    pub whole: bool,
    /// Why it does not go on.
    pub stopped: Option<String>,
}

/// Why a tier does not answer.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// A snapshot is on its way.
    #[error("partition {0} is not whole yet")]
    NotWhole(PartitionId),
    /// There is no such partition.
    #[error("there is no partition {0}")]
    NoPartition(PartitionId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A tier of one topic. Cheap to clone; clones are the same tier. Its calls
/// block for as long as a row takes to be read or written.
#[derive(Clone)]
pub struct Tier {
    inner: Arc<Inner>,
}

struct Inner {
    topic: TopicName,
    parts: Vec<Lane>,
}

struct Lane {
    part: RwLock<Part>,
    /// How far it is; changes after each range.
    applied: watch::Sender<Seq>,
}

impl Tier {
    /// The tier of `topic` whose rows are in `table`. Blocks.
    ///
    /// # Errors
    /// What the store says; `Damaged` if a row does not read.
    pub fn open(
        table: Arc<dyn Table>,
        topic: TopicName,
        partitions: u16,
        options: &Options,
    ) -> Result<Self, StoreError> {
        let lane = |partition| {
            let key = rows::partition_key(&topic, partition);
            let part = Part::open(table.clone(), key, partition, partitions, options)?;
            let applied = watch::Sender::new(part.place.position.seq);
            Ok::<_, StoreError>(Lane { part: RwLock::new(part), applied })
        };
        let parts = (0..partitions).map(|p| lane(PartitionId(p))).collect::<Result<_, _>>()?;
        Ok(Self { inner: Arc::new(Inner { topic, parts }) })
    }

    /// What it follows.
    pub fn topic(&self) -> &TopicName {
        &self.inner.topic
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> u16 {
        self.inner.parts.len() as u16
    }

    /// Where a partition goes on.
    pub fn start(&self, partition: PartitionId) -> Start {
        let part = self.read(partition);
        match part.place.position {
            _ if part.place.loading => Start::Snapshot,
            position if position == Position::default() => Start::Fresh,
            position => Start::After(position),
        }
    }

    /// Applies a range that begins where its partition stands.
    ///
    /// # Errors
    /// If it does not join, or the store fails: then nothing is changed.
    pub fn apply(&self, frame: &Frame) -> Result<(), ApplyError> {
        let partition = frame.stream().partition;
        let mut part = self.write(partition);
        part.apply(frame)?;
        let applied = part.place.position.seq;
        drop(part);
        self.lane(partition).applied.send_replace(applied);
        Ok(())
    }

    /// The source said what it has.
    pub fn heard(&self, partition: PartitionId, head: Seq) {
        self.write(partition).head = head;
    }

    /// A partition does not go on, and why.
    pub fn stopped(&self, partition: PartitionId, why: String) {
        self.write(partition).stopped = Some(why);
    }

    /// Removes what a partition has, to begin at `position`: of a snapshot that
    /// is loaded next, or before the first record of a life.
    ///
    /// # Errors
    /// What the store says.
    pub fn wipe(&self, partition: PartitionId, position: Position) -> Result<(), StoreError> {
        self.write(partition).wipe(position)?;
        // Those who follow the hot keys are told that there is nothing for them.
        self.lane(partition).applied.send_replace(position.seq);
        Ok(())
    }

    /// Some entries of a snapshot.
    ///
    /// # Errors
    /// What the store says.
    pub fn load(&self, partition: PartitionId, entries: Vec<Whole>) -> Result<(), StoreError> {
        self.write(partition).load(entries)
    }

    /// The snapshot is there; with the ranges up to `whole_from`, it is whole.
    ///
    /// # Errors
    /// What the store says.
    pub fn loaded(&self, partition: PartitionId, whole_from: Seq) -> Result<(), StoreError> {
        self.write(partition).loaded(whole_from)
    }

    /// What a key has, and the place that this is of. Counts as asked for.
    ///
    /// # Errors
    /// If the partition is not whole, or the store fails.
    pub fn get(&self, key: &[u8]) -> Result<(Option<Has>, Position), GetError> {
        let partition = self.partition_of(key);
        self.touch(key, 1);
        let part = self.read(partition);
        if !part.is_whole() {
            return Err(GetError::NotWhole(partition));
        }
        let position = Position { epoch: part.epoch(), ..part.place.position };
        Ok((part.entry(key)?.map(|entry| entry.has), position))
    }

    /// A key was asked for so many times, here or in a copy.
    pub fn touch(&self, key: &[u8], times: u32) {
        self.write(self.partition_of(key)).sketch.add(key, times.into());
    }

    /// Looks which keys are hot, and lets them be so from the next range of
    /// their partition on; then halves what was counted if `cool`.
    pub fn look(&self, cool: bool) {
        for partition in 0..self.partitions() {
            let mut part = self.write(PartitionId(partition));
            part.look();
            if cool {
                part.sketch.halve();
            }
        }
    }

    /// What hot keys have, all of one place.
    ///
    /// # Errors
    /// If the partition is not there or not whole, or the store fails.
    pub fn hot_snapshot(
        &self,
        partition: PartitionId,
    ) -> Result<(Position, Vec<HotEntry>), GetError> {
        self.check(partition)?;
        let part = self.read(partition);
        if !part.is_whole() {
            return Err(GetError::NotWhole(partition));
        }
        Ok((part.place.position, part.hot_entries()?))
    }

    /// Entries after the key `last`, and the place of the partition at that
    /// moment: a snapshot is read page by page, while ranges are applied.
    ///
    /// # Errors
    /// If the partition is not there or not whole, or the store fails.
    pub fn page(
        &self,
        partition: PartitionId,
        last: Option<&[u8]>,
        limit: usize,
    ) -> Result<(Position, Vec<Whole>), GetError> {
        self.check(partition)?;
        let part = self.read(partition);
        if !part.is_whole() {
            return Err(GetError::NotWhole(partition));
        }
        let entries = part.page(last, limit)?;
        let entries = entries.into_iter().map(|(key, has, at)| Whole { key, has, at });
        Ok((part.place.position, entries.collect()))
    }

    /// What comes next for one who follows the hot keys.
    ///
    /// # Errors
    /// If there is no such partition.
    pub fn hot_next(&self, partition: PartitionId, stands: Position) -> Result<HotNext, GetError> {
        self.check(partition)?;
        Ok(self.read(partition).hot_next(stands))
    }

    /// Changes after each range of a partition.
    ///
    /// # Errors
    /// If there is no such partition.
    pub fn watch(&self, partition: PartitionId) -> Result<watch::Receiver<Seq>, GetError> {
        self.check(partition)?;
        Ok(self.lane(partition).applied.subscribe())
    }

    /// How each partition stands, by number.
    pub fn standing(&self) -> Vec<Standing> {
        let of = |lane: &Lane| {
            let part = lane.part.read().unwrap_or_else(PoisonError::into_inner);
            Standing {
                applied: part.place.position,
                head: part.head,
                hot_keys: part.hot_keys().len(),
                skipped: part.place.skipped,
                whole: part.is_whole(),
                stopped: part.stopped.clone(),
            }
        };
        self.inner.parts.iter().map(of).collect()
    }

    fn partition_of(&self, key: &[u8]) -> PartitionId {
        partition_of(key, self.partitions())
    }

    fn check(&self, partition: PartitionId) -> Result<(), GetError> {
        match self.inner.parts.get(usize::from(partition.0)) {
            Some(_) => Ok(()),
            None => Err(GetError::NoPartition(partition)),
        }
    }

    /// Of a partition that is there.
    fn lane(&self, partition: PartitionId) -> &Lane {
        &self.inner.parts[usize::from(partition.0)]
    }

    fn read(&self, partition: PartitionId) -> RwLockReadGuard<'_, Part> {
        self.lane(partition).part.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, partition: PartitionId) -> RwLockWriteGuard<'_, Part> {
        self.lane(partition).part.write().unwrap_or_else(PoisonError::into_inner)
    }
}
