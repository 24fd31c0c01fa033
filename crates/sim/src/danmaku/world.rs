//! The owners of two partitions on one machine, driven by hand.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tideline_danmaku::ask::{Answer, Op, Refusal};
use tideline_danmaku::options::{Keys, Options};
use tideline_danmaku::owner::{Bounds, Effect, Flush, Owner};
use tideline_danmaku::rules::Rules;
use tideline_danmaku::{TOPIC, cold, recovery};
use tideline_record::batch::BatchRef;
use tideline_store::{StoreError, Table};
use tideline_types::{Seq, partition_of};

use super::oracle::{Asked, Oracle};
use super::plain::Setup;
use crate::machine::{Machine, Told, stream};

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
    pub(crate) machine: Machine,
    pub(crate) setup: Setup,
    bounds: Bounds,
    owners: Vec<Owner<u64>>,
    oracles: Vec<Oracle>,
    orders: VecDeque<ReadOrder>,
    flushes: VecDeque<(usize, Flush)>,
    /// Committed, not yet synced.
    landing: Vec<(usize, Arc<str>, u32)>,
    asked: BTreeMap<u64, Asked>,
    news: VecDeque<News>,
    next_waiter: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, bounds: Bounds) -> Self {
        let mut world = Self {
            machine: Machine::new(PARTITIONS),
            setup,
            bounds,
            owners: Vec::new(),
            oracles: (0..PARTITIONS).map(|_| Oracle::default()).collect(),
            orders: VecDeque::new(),
            flushes: VecDeque::new(),
            landing: Vec::new(),
            asked: BTreeMap::new(),
            news: VecDeque::new(),
            next_waiter: 0,
        };
        world.start().expect("an empty machine starts");
        world
    }

    /// Owners over the present disk and table, as the driver makes them. Who
    /// waited is never answered.
    pub(crate) fn start(&mut self) -> Result<(), StoreError> {
        self.owners.clear();
        self.orders.clear();
        self.flushes.clear();
        self.landing.clear();
        self.asked.clear();
        self.news.clear();
        let options = Options {
            limit: Some(self.setup.limit),
            limit_scope: self.setup.scope,
            report_threshold: self.setup.reports,
            ..Options::default()
        };
        let rules = Arc::new(Rules { options, keys: KEYS });
        for at in 0..usize::from(PARTITIONS) {
            let (bounds, place) = self.machine.fence(TOPIC, at)?;
            self.oracles[at].ends_at(bounds.synced.0);
            let (rules, limits) = (rules.clone(), self.bounds.clone());
            let (stream, epoch, synced) = (stream(at as u16), bounds.epoch, bounds.synced);
            self.owners.push(Owner::new(stream, epoch, synced, place, rules, limits));
            self.recover(at, true)?;
        }
        Ok(())
    }

    /// A fresh owner from the table and the log, as the driver makes it.
    fn recover(&mut self, at: usize, first: bool) -> Result<(), StoreError> {
        let mut owner = self.owners[at].successor();
        let mut read = |from| self.machine.read(at, from);
        match first {
            true => recovery::start(&mut owner, &*self.machine.table, &mut read)?,
            false => recovery::recover(&mut owner, &*self.machine.table, &mut read)?,
        }
        self.owners[at] = owner;
        Ok(())
    }

    /// Makes a call; its answer is news.
    pub(crate) fn ask(&mut self, video: &str, op: Op) -> u64 {
        self.next_waiter += 1;
        let (waiter, at) = (self.next_waiter, partition_of_video(video));
        self.machine.note(format!("ask {waiter} {video} {op:?}"));
        let from = self.oracles[at].told();
        self.asked.insert(waiter, Asked { video: video.into(), op: op.clone(), from });
        let mut effects = Vec::new();
        self.owners[at].ask(self.machine.millis(), video, op, waiter, &mut effects);
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
                    self.machine.append(at, batch);
                }
                Effect::Load { .. } | Effect::Read { .. } => {
                    self.orders.push_back(ReadOrder { partition: at, effect });
                }
                Effect::Flush(flush) => self.flushes.push_back((at, flush)),
                Effect::Changed(video, seq) => {
                    self.machine.note(format!("changed {video} {seq}"));
                    self.news.push_back(News::Changed(video));
                }
                Effect::Answer(waiter, answer) => {
                    let asked = self.asked.remove(&waiter).expect("each call is answered once");
                    self.machine.note(format!("answer {waiter} {answer:?}"));
                    self.oracles[at].check(&self.setup, &asked, &answer);
                    self.news.push_back(News::Answered(waiter, asked, answer));
                }
            }
        }
    }

    /// The journal writes and syncs what waits; owners hear of it.
    pub(crate) fn turn(&mut self) {
        self.machine.turn();
        while let Some((at, told)) = self.machine.next_told() {
            let mut effects = Vec::new();
            match told {
                Told::Synced(through) => self.owners[at].synced(through, &mut effects),
                Told::Failed(error) => self.owners[at].failed(&error, &mut effects),
                Told::Dropped(from, error) => {
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
        self.machine.note(format!("read {effect:?} {fails}"));
        let error = || StoreError::Io { what: "read".into(), cause: "simulated".into() };
        let (mut effects, now) = (Vec::new(), self.machine.millis());
        let owner = &mut self.owners[at];
        match effect {
            Effect::Load { video, generation } => {
                let rows =
                    if fails { Err(error()) } else { cold::read(&*self.machine.table, &video) };
                owner.loaded(now, &video, generation, rows, &mut effects);
            }
            Effect::Read { video, generation, reads } => {
                let found = || cold::read_rows(&*self.machine.table, &video, &reads);
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
        self.machine.note(format!("commit {at} {:?} {fails}", flush.commits));
        if fails {
            let error = StoreError::NoSpace { what: "simulated".into() };
            self.owners[at].flushed(&flush.video, flush.generation, Err(error));
            return true;
        }
        self.machine.table.commit(&flush.commits).expect("memory takes it");
        self.landing.push((at, flush.video, flush.generation));
        true
    }

    /// Syncs the table, keeps the places, and frees the log behind them.
    pub(crate) fn sync_table(&mut self, trim: bool) {
        self.machine.table.sync().expect("memory syncs");
        for (at, video, generation) in std::mem::take(&mut self.landing) {
            self.owners[at].flushed(&video, generation, Ok(()));
        }
        let places = (0..self.owners.len()).filter_map(|at| Some((at, self.owners[at].place()?)));
        let places: Vec<_> = places.collect();
        self.machine.keep_places(TOPIC, &places, trim);
    }

    /// Time passes for every owner.
    pub(crate) fn tick(&mut self) {
        for at in 0..self.owners.len() {
            let mut effects = Vec::new();
            self.owners[at].tick(self.machine.millis(), self.machine.ticks, &mut effects);
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
