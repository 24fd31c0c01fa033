//! What every simulated product stands on: a disk that fails, the log on it, a
//! table, clocks, and what the log tells.
//!
//! Nothing here waits or spawns: the log writes and syncs when it is told to,
//! and what it tells is kept until somebody asks.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tideline_store::disk::{Crash, Fault, FaultyDisk, KeepAll, Kept, OpKind, Operation};
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::mem::MemTable;
use tideline_store::{
    AppendError, Bounds, Journal, Place, ReadError, ReadLimits, StoreError, SyncWatcher, Table,
};
use tideline_types::{Incarnation, Millis, PartitionId, Seq, StreamId};

use crate::rng::Rng;

const DIR: &str = "/log";
/// When every world begins.
pub(crate) const START: i64 = 1_796_000_000_000;

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

/// The machine, as the product on it sees it.
pub(crate) struct Machine {
    pub(crate) disk: FaultyDisk,
    pub(crate) journal: Arc<LocalJournal>,
    pub(crate) table: Arc<MemTable>,
    ear: Arc<Ear>,
    /// The wall clock, which jumps.
    pub(crate) now: i64,
    /// The monotone clock, which begins anew with each start.
    pub(crate) ticks: u64,
    /// Batches that the log has not taken yet, by partition.
    unsent: Vec<VecDeque<Bytes>>,
    /// The log took a fault: the machine must be started again.
    pub(crate) failed: bool,
    /// Starts, the first one included.
    pub(crate) starts: u32,
    trace: Vec<String>,
    /// Everything is printed as it happens.
    shows: bool,
}

impl Machine {
    /// An empty one, with the streams of so many partitions.
    pub(crate) fn new(partitions: u16) -> Self {
        let disk = FaultyDisk::new();
        let journal = open_journal(&disk).expect("an empty disk opens");
        let streams: Vec<StreamId> = (0..partitions).map(stream).collect();
        journal.create(&streams).expect("an empty log takes streams");
        Self {
            disk,
            journal: Arc::new(journal),
            table: Arc::default(),
            ear: Arc::default(),
            now: START,
            ticks: 0,
            unsent: (0..partitions).map(|_| VecDeque::new()).collect(),
            failed: false,
            starts: 1,
            trace: Vec::new(),
            shows: std::env::var_os("TIDELINE_SIM_SHOW").is_some(),
        }
    }

    /// Notes what happens; the trace tells two runs apart.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.shows {
            eprintln!("{:>5} {what}", self.trace.len());
        }
        self.trace.push(what);
    }

    /// How much was noted, and a hash of it.
    pub(crate) fn trace(&self) -> (usize, u64) {
        let mut hasher = DefaultHasher::new();
        self.trace.hash(&mut hasher);
        (self.trace.len(), hasher.finish())
    }

    /// Time as owners take it.
    pub(crate) fn millis(&self) -> Millis {
        Millis(self.now)
    }

    /// Both clocks move; the wall clock jumps besides.
    pub(crate) fn pass(&mut self, ms: u64, jump: i64) {
        self.ticks += ms;
        self.now += ms as i64 + jump;
        let now = self.now;
        self.note(format!("time {now}"));
    }

    /// The machine is off, and on again with what `disk` and `table` hold.
    pub(crate) fn restart(&mut self, disk: FaultyDisk, table: MemTable) -> Result<(), StoreError> {
        self.disk = disk;
        self.table = Arc::new(table);
        self.unsent.iter_mut().for_each(VecDeque::clear);
        self.ear = Arc::default();
        (self.ticks, self.failed) = (0, false);
        self.journal = Arc::new(open_journal(&self.disk)?);
        Ok(())
    }

    /// A new owner of a partition: what the log holds, and the place of `topic`
    /// that was kept.
    pub(crate) fn fence(&self, topic: &str, at: usize) -> Result<(Bounds, Place), StoreError> {
        let fenced = self.journal.fence(stream(at as u16), self.ear.clone());
        let bounds = fenced.map_err(|error| match error {
            AppendError::Store(error) => error,
            other => panic!("cannot fence: {other}"),
        })?;
        let place = Place::read(&*self.table, topic, PartitionId(at as u16))?;
        Ok((bounds, place))
    }

    /// What a start reads of the log: a little at a time.
    pub(crate) fn read(&self, partition: usize, from: Seq) -> Result<Vec<Bytes>, StoreError> {
        let limits = ReadLimits { records_max: 3, bytes_max: 1 << 10 };
        let read = self.journal.read(stream(partition as u16), from, limits);
        read.map_err(|error| match error {
            ReadError::Store(error) => error,
            other => panic!("what is not at rest must be in the log: {other}"),
        })
    }

    /// Appends a batch, now or when the log has room.
    pub(crate) fn append(&mut self, partition: usize, batch: Bytes) {
        self.unsent[partition].push_back(batch);
        self.send(partition);
    }

    fn send(&mut self, partition: usize) {
        while let Some(batch) = self.unsent[partition].front() {
            match self.journal.append(stream(partition as u16), batch.clone()) {
                Ok(()) => _ = self.unsent[partition].pop_front(),
                Err(AppendError::Full { .. } | AppendError::OutOfOrder { .. }) => return,
                Err(AppendError::Store(_)) => return self.failed = true,
                Err(error) => panic!("the log refuses: {error}"),
            }
        }
    }

    /// The journal writes and syncs what waits; what it says is to be asked for
    /// with [`Machine::next_told`].
    pub(crate) fn turn(&mut self) {
        (0..self.unsent.len()).for_each(|partition| self.send(partition));
        let turned = self.journal.turn();
        self.note(format!("turn {turned}"));
    }

    /// What the journal told first of what nobody has asked for.
    pub(crate) fn next_told(&mut self) -> Option<(usize, Told)> {
        let (partition, told) = self.ear.next()?;
        self.note(format!("told {partition} {told:?}"));
        let at = usize::from(partition.0);
        match told {
            Told::Synced(_) => {}
            Told::Failed(_) => self.failed = true,
            Told::Dropped(..) => self.unsent[at].clear(),
        }
        Some((at, told))
    }

    /// Keeps places of owners in the table, and perhaps frees the log behind
    /// them.
    pub(crate) fn keep_places(&mut self, topic: &str, places: &[(usize, Place)], trim: bool) {
        self.note(format!("places {places:?}"));
        for (at, place) in places {
            let commit = place.keep(topic, PartitionId(*at as u16));
            self.table.commit(&[commit]).expect("memory takes it");
        }
        self.table.sync().expect("memory syncs");
        if trim && !self.failed {
            for (at, place) in places {
                if let Err(error) = self.journal.trim(stream(*at as u16), place.seq) {
                    self.note(format!("trim {error}"));
                }
            }
        }
    }

    /// The disk is full, or fails once, until it is healed.
    pub(crate) fn hurt(&mut self, faults: &mut Rng) {
        let how = hurt(&self.disk, faults);
        self.note(how);
    }

    /// The log frees its journal into segments, or fails to.
    pub(crate) fn fill(&mut self) {
        let filled = self.journal.fill();
        self.note(format!("fill {filled:?}"));
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
