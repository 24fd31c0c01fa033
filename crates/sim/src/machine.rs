//! What every simulated product stands on: a disk that fails, the log on it,
//! and what the log tells.
//!
//! Nothing here waits or spawns: the log writes and syncs when it is told to,
//! and what it tells is kept until somebody asks.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tideline_store::disk::{Crash, Fault, FaultyDisk, KeepAll, Kept, OpKind, Operation};
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::{StoreError, SyncWatcher};
use tideline_types::{Incarnation, PartitionId, Seq, StreamId};

use crate::rng::Rng;

const DIR: &str = "/log";

/// What the journal told, in order.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Synced(Seq),
    Failed(StoreError),
    Dropped(Seq, StoreError),
}

/// Keeps what the journal tells.
#[derive(Default)]
pub(crate) struct Ear {
    heard: Mutex<VecDeque<(PartitionId, Told)>>,
}

impl Ear {
    /// What was told first of what nobody has asked for.
    pub(crate) fn next(&self) -> Option<(PartitionId, Told)> {
        self.heard.lock().unwrap().pop_front()
    }

    fn hear(&self, stream: StreamId, told: Told) {
        self.heard.lock().unwrap().push_back((stream.partition, told));
    }
}

impl SyncWatcher for Ear {
    fn synced(&self, stream: StreamId, through: Seq) {
        self.hear(stream, Told::Synced(through));
    }

    fn failed(&self, stream: StreamId, error: &StoreError) {
        self.hear(stream, Told::Failed(error.clone()));
    }

    fn dropped(&self, stream: StreamId, from: Seq, error: &StoreError) {
        self.hear(stream, Told::Dropped(from, error.clone()));
    }
}

/// The log of a disk: small files, so that many are begun and freed.
pub(crate) fn open_journal(disk: &FaultyDisk) -> Result<LocalJournal, StoreError> {
    let options =
        JournalOptions { file_bytes: 4 << 10, threads: false, ..JournalOptions::default() };
    LocalJournal::open_on(Arc::new(disk.clone()), Path::new(DIR), options)
}

/// The stream of a partition of the simulated topic.
pub(crate) fn stream(partition: u16) -> StreamId {
    StreamId { incarnation: Incarnation(1), partition: PartitionId(partition) }
}

/// The disk is full, or fails once, until it is healed; answers how.
pub(crate) fn hurt(disk: &FaultyDisk, faults: &mut Rng) -> String {
    let (kind, fault) = match faults.below(6) {
        0..3 => {
            let used: u64 = disk.files().iter().map(|(_, bytes)| bytes.len() as u64).sum();
            disk.set_space(Some(used + faults.below(100)));
            return "full".into();
        }
        3 => (OpKind::Sync, Fault::SyncLost),
        4 => (OpKind::Write, Fault::Error(ErrorKind::Other)),
        _ => (OpKind::Write, Fault::Torn(faults.below(60) as usize, ErrorKind::Other)),
    };
    let mut left = 1;
    disk.set_faults(Some(Box::new(move |operation: &Operation<'_>| {
        (operation.kind == kind && left > 0).then(|| {
            left -= 1;
            fault
        })
    })));
    format!("fault {kind:?} {fault:?}")
}

/// The disk works again.
pub(crate) fn heal(disk: &FaultyDisk) {
    disk.set_space(None);
    disk.set_faults(None);
}

/// The same disk with one bit of the log flipped, and which.
pub(crate) fn flipped(disk: &FaultyDisk, faults: &mut Rng) -> (FaultyDisk, String) {
    let files = disk.files();
    let held: Vec<_> = files.iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let (path, bytes) = faults.pick(&held);
    let (offset, bit) = (faults.below(bytes.len() as u64), faults.below(8) as u8);
    let path: &Path = path;
    let disk = disk.crash(&mut KeepAll);
    assert!(disk.flip(path, offset, bit), "the file reaches that far");
    (disk, format!("flip {} {offset} {bit}", path.display()))
}

/// A power loss that keeps some of what was not synced, torn anywhere.
pub(crate) struct Power(pub(crate) Rng);

impl Crash for Power {
    fn write(&mut self, _: &Path, _: u64, len: usize) -> Kept {
        match self.0.below(5) {
            0 | 1 => Kept::All,
            2 => Kept::Nothing,
            3 => Kept::Prefix(self.0.below(len as u64 + 1) as usize),
            _ => Kept::Suffix(self.0.below(len as u64 + 1) as usize),
        }
    }

    fn entry(&mut self, _: &Path) -> bool {
        self.0.once_in(2)
    }
}
