//! A process that keeps a tier of the operations: its rows and its place follow
//! the topic, with no log of their own.
//!
//! One that is told that records are gone takes a snapshot of another, page by
//! page while that one goes on; or, where there is none, of the archive.

use std::sync::Arc;

use tideline_client::{Filled, From};
use tideline_store::Table;
use tideline_store::mem::MemTable;
use tideline_tier::{GetError, Has, Options, Start, Tier, Whole};
use tideline_types::{PartitionId, Position, Seq};

use super::line::Follower;
use super::oracle::{Oracle, PARTITIONS, State, name, origin};
use super::sabotage::{self, Broken};
use crate::rng::Rng;

/// Entries in a page of a snapshot.
const PAGE: usize = 2;

/// A snapshot on its way.
struct Loading {
    last: Option<Vec<u8>>,
    /// Where the other stood when the last page was read.
    at: Position,
}

/// One process with a table of its own.
pub(super) struct Store {
    table: Arc<MemTable>,
    tier: Tier,
    pub(super) followers: Vec<Follower>,
    loading: Vec<Option<Loading>>,
}

impl Store {
    pub(super) fn new() -> Self {
        let table = Arc::new(MemTable::new());
        let partitions = || 0..usize::from(PARTITIONS);
        let follower = |partition| Follower::new("ops", partition, From::After(origin()));
        Self {
            tier: open(&table),
            table,
            followers: partitions().map(follower).collect(),
            loading: partitions().map(|_| None).collect(),
        }
    }

    /// What a key has, and what is applied; nothing while a snapshot is on its
    /// way.
    pub(super) fn read(&self, key: &[u8]) -> Option<(Option<Filled>, Seq)> {
        match self.tier.get(key) {
            Ok((has, position)) => Some((has.map(filled), position.seq)),
            Err(GetError::NotWhole(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Takes what comes next: out of the line, or of a snapshot.
    pub(super) fn take(&mut self, partition: usize, other: &Self, oracle: &Oracle) {
        if let Some(loading) = self.loading[partition].take() {
            return self.load(partition, loading, other, oracle);
        }
        if self.followers[partition].stopped().is_some() {
            return self.begin_snapshot(partition, other, oracle);
        }
        let Some(frame) = self.followers[partition].take(oracle) else { return };
        self.tier.apply(&frame).expect("ranges that join are applied");
        self.check(partition, oracle);
    }

    fn begin_snapshot(&mut self, partition: usize, other: &Self, oracle: &Oracle) {
        let id = PartitionId(partition as u16);
        let Ok((at, _)) = other.tier.page(id, None, 1) else {
            return self.take_archive(partition, oracle);
        };
        if sabotage::is(Broken::SnapshotSkipped) {
            self.tier.wipe(id, at).unwrap();
            return self.loaded(partition, at, at, oracle);
        }
        // Where the other has been left behind as well, it helps nobody.
        if at == Position::default() || at.seq <= self.followers[partition].stands() {
            return self.take_archive(partition, oracle);
        }
        self.tier.wipe(id, at).unwrap();
        self.load(partition, Loading { last: None, at }, other, oracle);
    }

    fn load(&mut self, partition: usize, loading: Loading, other: &Self, oracle: &Oracle) {
        let id = PartitionId(partition as u16);
        // One that is not whole any more is waited for no longer.
        let Ok((at, page)) = other.tier.page(id, loading.last.as_deref(), PAGE) else {
            return self.take_archive(partition, oracle);
        };
        let begin = self.tier.standing()[partition].applied;
        if at.seq < loading.at.seq {
            // It has started again meanwhile, and lost what was not synced.
            return self.take_archive(partition, oracle);
        }
        let last = page.last().map(|entry| entry.key.to_vec());
        let full = page.len() == PAGE;
        self.tier.load(id, page).unwrap();
        match full {
            true => self.loading[partition] = Some(Loading { last, at }),
            false => self.loaded(partition, begin, at, oracle),
        }
    }

    /// As a copy of the whole has it.
    fn take_archive(&mut self, partition: usize, oracle: &Oracle) {
        let (id, end) = (PartitionId(partition as u16), oracle.end(partition));
        let at = oracle.place(partition, end);
        self.tier.wipe(id, at).unwrap();
        let entries = oracle.state(partition, end).into_iter().map(|(key, filled)| {
            let has = match filled {
                Filled::Counter(n) => Has::Counter(n),
                Filled::Bytes(bytes) => Has::Value(bytes.into()),
            };
            Whole { key: key.into(), has, at: end }
        });
        self.tier.load(id, entries.collect()).unwrap();
        self.loaded(partition, at, at, oracle);
    }

    /// All pages are there; what changed while they were read comes by the tail.
    fn loaded(&mut self, partition: usize, begin: Position, at: Position, oracle: &Oracle) {
        self.tier.loaded(PartitionId(partition as u16), at.seq).unwrap();
        self.followers[partition].go_on(From::After(begin));
        self.check(partition, oracle);
    }

    /// What is committed is on its disk.
    pub(super) fn sync(&self) {
        self.table.sync().unwrap();
    }

    /// Its machine loses power, and starts again.
    pub(super) fn restart(&mut self, oracle: &Oracle, faults: &mut Rng) {
        let kept = self.table.crash(|_, _, unsynced| faults.below(unsynced as u64 + 1) as usize);
        self.table = Arc::new(kept);
        self.tier = open(&self.table);
        for partition in 0..usize::from(PARTITIONS) {
            self.loading[partition] = None;
            let begin = match self.tier.start(PartitionId(partition as u16)) {
                Start::Fresh => origin(),
                Start::After(position) => position,
                Start::Snapshot => {
                    self.take_archive(partition, oracle);
                    continue;
                }
            };
            self.followers[partition].go_on(From::After(begin));
            self.check(partition, oracle);
        }
    }

    /// Its rows are what the topic says at its place.
    fn check(&self, partition: usize, oracle: &Oracle) {
        let Ok((at, page)) = self.tier.page(PartitionId(partition as u16), None, 100) else {
            return;
        };
        let of = |entry: Whole| (entry.key.to_vec(), filled(entry.has));
        let is: State = page.into_iter().map(of).collect();
        assert_eq!(is, oracle.state(partition, at.seq), "a store that has applied {at}");
    }
}

fn open(table: &Arc<MemTable>) -> Tier {
    let options = Options::default();
    Tier::open(table.clone(), name("ops"), PARTITIONS, &options).expect("memory reads")
}

fn filled(has: Has) -> Filled {
    match has {
        Has::Counter(n) => Filled::Counter(n),
        Has::Value(bytes) => Filled::Bytes(bytes.to_vec()),
    }
}
