//! One machine: a disk, the log on it, a table, and the owners of two
//! partitions, all driven by hand.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tideline_danmaku::ask::{Answer, Op, Refusal};
use tideline_danmaku::options::{Keys, Options};
use tideline_danmaku::owner::{Bounds, Effect, Flush, Owner};
use tideline_danmaku::rules::Rules;
use tideline_danmaku::{TOPIC, cold, recovery};
use tideline_store::batch::BatchRef;
use tideline_store::disk::FaultyDisk;
use tideline_store::local::LocalJournal;
use tideline_store::mem::MemTable;
use tideline_store::{AppendError, Journal, Place, ReadError, ReadLimits, StoreError, Table};
use tideline_types::{Millis, PartitionId, Seq, partition_of};

use super::oracle::{Asked, Oracle};
use super::plain::Setup;
use crate::machine::{Ear, Told, open_journal, stream};

/// Partitions of the simulated topic.
const PARTITIONS: u16 = 2;
/// The folder's key.
pub(crate) const KEYS: Keys = Keys([7; 16]);

/// What an owner asked to read.
struct ReadOrder {
    partition: usize,
    effect: Effect<u64>,
}

/// What happened that somebody beside the callers must know of.
#[derive(Debug)]
pub(crate) enum News {
    /// A call is answered.
    Answered(u64, Asked, Answer),
    /// A video changed.
    Changed(Arc<str>),
}

/// Everything.
pub(crate) struct World {
    pub(crate) disk: FaultyDisk,
    pub(crate) journal: LocalJournal,
    pub(crate) table: MemTable,
    pub(crate) now: i64,
    pub(crate) ticks: u64,
    pub(crate) setup: Setup,
    bounds: Bounds,
    ear: Arc<Ear>,
    owners: Vec<Owner<u64>>,
    oracles: Vec<Oracle>,
    orders: VecDeque<ReadOrder>,
    flushes: VecDeque<(usize, Flush)>,
    /// Committed, not yet synced.
    landing: Vec<(usize, Arc<str>, u32)>,
    asked: BTreeMap<u64, Asked>,
    news: VecDeque<News>,
    unsent: Vec<VecDeque<bytes::Bytes>>,
    next_waiter: u64,
    /// The log took a fault: the machine must be started again.
    pub(crate) failed: bool,
    pub(crate) trace: Vec<String>,
    /// Everything is printed as it happens.
    shows: bool,
}

impl World {
    pub(crate) fn new(setup: Setup, bounds: Bounds, start: i64) -> Self {
        let disk = FaultyDisk::new();
        let journal = open_journal(&disk).expect("an empty disk opens");
        let streams: Vec<_> = (0..PARTITIONS).map(stream).collect();
        journal.create(&streams).expect("an empty log takes streams");
        let mut world = Self {
            disk,
            journal,
            table: MemTable::new(),
            now: start,
            ticks: 0,
            setup,
            bounds,
            ear: Arc::default(),
            owners: Vec::new(),
            oracles: (0..PARTITIONS).map(|_| Oracle::default()).collect(),
            orders: VecDeque::new(),
            flushes: VecDeque::new(),
            landing: Vec::new(),
            asked: BTreeMap::new(),
            news: VecDeque::new(),
            unsent: Vec::new(),
            next_waiter: 0,
            failed: false,
            trace: Vec::new(),
            shows: std::env::var_os("TIDELINE_SIM_SHOW").is_some(),
        };
        world.start().expect("an empty machine starts");
        world
    }

    /// Notes what happens; the trace tells two runs apart.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.shows {
            eprintln!("{:>5} {what}", self.trace.len());
        }
        self.trace.push(what);
    }

    /// Owners over the present disk and table, as the driver makes them.
    fn start(&mut self) -> Result<(), StoreError> {
        self.owners.clear();
        self.unsent = (0..PARTITIONS).map(|_| VecDeque::new()).collect();
        self.ear = Arc::default();
        self.failed = false;
        let options = Options {
            limit: Some(self.setup.limit),
            limit_scope: self.setup.scope,
            report_threshold: self.setup.reports,
            ..Options::default()
        };
        let rules = Arc::new(Rules { options, keys: KEYS });
        for partition in 0..PARTITIONS {
            let fenced = self.journal.fence(stream(partition), self.ear.clone());
            let bounds = fenced.map_err(|error| match error {
                AppendError::Store(error) => error,
                other => panic!("cannot fence: {other}"),
            })?;
            self.oracles[usize::from(partition)].ends_at(bounds.synced.0);
            let place = Place::read(&self.table, TOPIC, PartitionId(partition))?;
            let (rules, limits) = (rules.clone(), self.bounds.clone());
            let (stream, epoch, synced) = (stream(partition), bounds.epoch, bounds.synced);
            self.owners.push(Owner::new(stream, epoch, synced, place, rules, limits));
            self.recover(usize::from(partition), true)?;
        }
        Ok(())
    }

    /// A fresh owner from the table and the log, as the driver makes it.
    fn recover(&mut self, at: usize, first: bool) -> Result<(), StoreError> {
        let mut owner = self.owners[at].successor();
        let mut read = |from| {
            let limits = ReadLimits { records_max: 3, bytes_max: 1 << 10 };
            self.journal.read(stream(at as u16), from, limits).map_err(|error| match error {
                ReadError::Store(error) => error,
                other => panic!("what is not at rest must be in the log: {other}"),
            })
        };
        match first {
            true => recovery::start(&mut owner, &self.table, &mut read)?,
            false => recovery::recover(&mut owner, &self.table, &mut read)?,
        }
        self.owners[at] = owner;
        Ok(())
    }

    /// The machine stops and starts again on what `disk` and `table` hold.
    pub(crate) fn restart(&mut self, disk: FaultyDisk, table: MemTable) -> Result<(), StoreError> {
        self.disk = disk;
        self.table = table;
        self.orders.clear();
        self.flushes.clear();
        self.landing.clear();
        self.asked.clear();
        self.news.clear();
        self.ticks = 0;
        self.journal = open_journal(&self.disk)?;
        self.start()
    }

    /// Makes a call; its answer is news.
    pub(crate) fn ask(&mut self, video: &str, op: Op) -> u64 {
        self.next_waiter += 1;
        let (waiter, at) = (self.next_waiter, partition_of_video(video));
        self.note(format!("ask {waiter} {video} {op:?}"));
        let from = self.oracles[at].told();
        self.asked.insert(waiter, Asked { video: video.into(), op: op.clone(), from });
        let mut effects = Vec::new();
        self.owners[at].ask(Millis(self.now), video, op, waiter, &mut effects);
        self.carry_out(at, effects);
        waiter
    }

    /// What happened first of what nobody has asked for.
    pub(crate) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// What must be so about a video.
    pub(crate) fn oracle(&self, video: &str) -> &Oracle {
        &self.oracles[partition_of_video(video)]
    }

    /// Carries out effects, in order.
    fn carry_out(&mut self, at: usize, effects: Vec<Effect<u64>>) {
        for effect in effects {
            match effect {
                Effect::Append(batch) => {
                    let batch = batch.finish();
                    let parsed = BatchRef::parse(&batch).expect("just made");
                    self.oracles[at].appended(&self.setup, &parsed);
                    self.unsent[at].push_back(batch);
                    self.send(at);
                }
                Effect::Load { .. } | Effect::Read { .. } => {
                    self.orders.push_back(ReadOrder { partition: at, effect });
                }
                Effect::Flush(flush) => self.flushes.push_back((at, flush)),
                Effect::Changed(video, seq) => {
                    self.note(format!("changed {video} {seq}"));
                    self.news.push_back(News::Changed(video));
                }
                Effect::Answer(waiter, answer) => {
                    let asked = self.asked.remove(&waiter).expect("each call is answered once");
                    self.note(format!("answer {waiter} {answer:?}"));
                    self.oracles[at].check(&self.setup, &asked, &answer);
                    self.news.push_back(News::Answered(waiter, asked, answer));
                }
            }
        }
    }

    fn send(&mut self, at: usize) {
        while let Some(batch) = self.unsent[at].front() {
            match self.journal.append(stream(at as u16), batch.clone()) {
                Ok(()) => _ = self.unsent[at].pop_front(),
                Err(AppendError::Full { .. } | AppendError::OutOfOrder { .. }) => return,
                Err(AppendError::Store(_)) => return self.failed = true,
                Err(error) => panic!("the log refuses: {error}"),
            }
        }
    }

    /// The journal writes and syncs what waits; owners hear of it.
    pub(crate) fn turn(&mut self) {
        (0..self.unsent.len()).for_each(|at| self.send(at));
        let turned = self.journal.turn();
        self.note(format!("turn {turned}"));
        while let Some((partition, told)) = self.ear.next() {
            let at = usize::from(partition.0);
            self.note(format!("told {partition} {told:?}"));
            let mut effects = Vec::new();
            match told {
                Told::Synced(through) => self.owners[at].synced(through, &mut effects),
                Told::Failed(error) => {
                    self.owners[at].failed(&error, &mut effects);
                    self.failed = true;
                }
                Told::Dropped(from, error) => {
                    self.unsent[at].clear();
                    self.owners[at].dropped(from, &error, &mut effects);
                    self.carry_out(at, std::mem::take(&mut effects));
                    self.oracles[at].ends_at(from.prev().0);
                    self.recover(at, false).expect("the log was read a moment ago");
                }
            }
            self.carry_out(at, effects);
        }
    }

    /// Reads rows that an owner asked for; `fails` stands for a table that
    /// cannot be read now. Answers whether there was anything to read.
    pub(crate) fn read(&mut self, fails: bool) -> bool {
        let Some(ReadOrder { partition: at, effect }) = self.orders.pop_front() else {
            return false;
        };
        self.note(format!("read {effect:?} {fails}"));
        let error = || StoreError::Io { what: "read".into(), cause: "simulated".into() };
        let (mut effects, now) = (Vec::new(), Millis(self.now));
        let owner = &mut self.owners[at];
        match effect {
            Effect::Load { video, generation } => {
                let rows = if fails { Err(error()) } else { cold::read(&self.table, &video) };
                owner.loaded(now, &video, generation, rows, &mut effects);
            }
            Effect::Read { video, generation, reads } => {
                let found = || cold::read_rows(&self.table, &video, &reads);
                let found = if fails { Err(error()) } else { found() };
                owner.read(now, &video, generation, found, &mut effects);
            }
            other => panic!("{other:?} reads nothing"),
        }
        self.carry_out(at, effects);
        true
    }

    /// Commits the oldest flush; answers whether there was one.
    pub(crate) fn commit(&mut self, fails: bool) -> bool {
        let Some((at, flush)) = self.flushes.pop_front() else { return false };
        self.note(format!("commit {at} {:?} {fails}", flush.commits));
        if fails {
            let error = StoreError::NoSpace { what: "simulated".into() };
            self.owners[at].flushed(&flush.video, flush.generation, Err(error));
            return true;
        }
        self.table.commit(&flush.commits).expect("memory takes it");
        self.landing.push((at, flush.video, flush.generation));
        true
    }

    /// Syncs the table, keeps the places, and frees the log behind them.
    pub(crate) fn sync_table(&mut self, trim: bool) {
        self.table.sync().expect("memory syncs");
        for (at, video, generation) in std::mem::take(&mut self.landing) {
            self.owners[at].flushed(&video, generation, Ok(()));
        }
        let places = (0..self.owners.len()).filter_map(|at| Some((at, self.owners[at].place()?)));
        let places: Vec<_> = places.collect();
        self.note(format!("places {places:?}"));
        for (at, place) in &places {
            let commit = place.keep(TOPIC, PartitionId(*at as u16));
            self.table.commit(&[commit]).expect("memory takes it");
        }
        self.table.sync().expect("memory syncs");
        if trim && !self.failed {
            for (at, place) in &places {
                if let Err(error) = self.journal.trim(stream(*at as u16), place.seq) {
                    self.note(format!("trim {error}"));
                }
            }
        }
    }

    /// Time passes for every owner.
    pub(crate) fn tick(&mut self) {
        for at in 0..self.owners.len() {
            let mut effects = Vec::new();
            self.owners[at].tick(Millis(self.now), self.ticks, &mut effects);
            self.carry_out(at, effects);
        }
    }

    /// Whether everything has come to rest.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.owners.iter().all(Owner::is_at_rest)
    }

    /// Owners bring everything to rest from now on.
    pub(crate) fn drain(&mut self) {
        self.owners.iter_mut().for_each(Owner::drain);
    }

    /// Calls that were not answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.asked.len()
    }

    /// What everything of a partition rests on, at most.
    pub(crate) fn last(&self, video: &str) -> Seq {
        Seq(self.oracle(video).last())
    }
}

/// Whether the call was turned away, whatever it asked for.
pub(crate) fn is_turned_away(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Refused(Refusal::Overloaded(_) | Refusal::ReadOnly(_) | Refusal::NoSpace(_))
    )
}

fn partition_of_video(video: &str) -> usize {
    usize::from(partition_of(video.as_bytes(), PARTITIONS).0)
}
