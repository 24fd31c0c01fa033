//! One machine: a disk, the log on it, a table, the owner of a partition, and
//! perhaps one that was taken over and does not know it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tideline_harness::linear;
use tideline_meta::ask::{Answer, Ask, Op, Refusal};
use tideline_meta::commit::{Quota, SessionId};
use tideline_meta::follower::{Event, Follower};
use tideline_meta::owner::{At, Effect, Owner};
use tideline_meta::snapshot::{self, For};
use tideline_meta::tail::Resync;
use tideline_meta::{Path, TOPIC, cold, recovery};
use tideline_record::batch::BatchRef;
use tideline_store::disk::{Crash, FaultyDisk};
use tideline_store::local::LocalJournal;
use tideline_store::mem::MemTable;
use tideline_store::{AppendError, Journal, Place, ReadError, ReadLimits, StoreError, Table};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Position, Seq, StreamId};

use super::oracle::Oracle;
use super::told::Told;
use crate::machine::{Ear, Told as Heard, open_journal};

/// The node whose history is kept: its values are numbers, each written once.
pub(super) const LINEAR: &str = "/linear";

const STREAM: StreamId = StreamId { incarnation: Incarnation(1), partition: PartitionId(0) };
const LIMITS: ReadLimits = ReadLimits { records_max: 50, bytes_max: 1 << 16 };

/// A call under way.
struct Call {
    root: Path,
    ask: Ask,
    /// What had been answered about the subtree when it was made.
    floor: Seq,
    time: u64,
    /// When it was made, on the clock of histories.
    start: u64,
}

/// An observer: its copy, what is on its way to it, and what it was told.
#[derive(Default)]
struct Observer {
    follower: Follower,
    coming: VecDeque<Event>,
    told: Told,
    /// It was cut off, and has had nothing since.
    is_back: bool,
}

/// How often observers were brought forward, and by what.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    /// By the commits after where they stood, after they had been cut off.
    pub(super) resumed: usize,
    /// By a snapshot in the place of what is no longer kept.
    pub(super) resynced: usize,
}

pub(super) struct World {
    pub(super) disk: FaultyDisk,
    pub(super) journal: LocalJournal,
    table: MemTable,
    owner: Owner<u64>,
    /// An owner that was taken over while it was stopped.
    sleeper: Option<Owner<u64>>,
    ear: Arc<Ear>,
    oracle: Oracle,
    observers: Vec<Observer>,
    /// Over so many subtrees observers are spread.
    observed: usize,
    pub(super) came: Came,
    calls: BTreeMap<u64, Call>,
    /// What clients saw of one node of each subtree, and a clock that counts
    /// what happens.
    histories: BTreeMap<Path, Vec<linear::Call>>,
    moment: u64,
    next_waiter: u64,
    now: i64,
    /// The monotone clock of this start, and of the world.
    ticks: u64,
    time: u64,
    pub(super) failed: bool,
    /// Starts, the first one included.
    pub(super) starts: u32,
    /// Sessions that clients were told of.
    pub(super) begun: Vec<(Path, SessionId)>,
    pub(super) trace: Vec<String>,
    shows: bool,
}

impl World {
    pub(super) fn roots() -> [Path; 2] {
        ["/r", "/s"].map(|root| Path::new(root).unwrap())
    }

    /// One with `observers`, of as many subtrees as `observed` says.
    pub(super) fn new(disk: FaultyDisk, observers: usize, observed: usize) -> Self {
        let journal = open_journal(&disk).unwrap();
        journal.create(&[STREAM]).unwrap();
        let ear = Arc::<Ear>::default();
        let bounds = journal.fence(STREAM, ear.clone()).unwrap();
        let mut world = Self {
            owner: Owner::new(STREAM, bounds.epoch, Seq::ZERO, Millis(0)),
            disk,
            journal,
            table: MemTable::new(),
            sleeper: None,
            ear,
            oracle: Oracle::default(),
            observers: (0..observers).map(|_| Observer::default()).collect(),
            observed,
            came: Came::default(),
            calls: BTreeMap::new(),
            histories: BTreeMap::new(),
            moment: 0,
            next_waiter: 0,
            now: 1_796_000_000_000,
            ticks: 0,
            time: 0,
            failed: false,
            starts: 1,
            begun: Vec::new(),
            trace: Vec::new(),
            shows: std::env::var_os("TIDELINE_SIM_SHOW").is_some(),
        };
        for (n, root) in Self::roots().iter().enumerate() {
            let incarnation = Incarnation(2 + n as u64);
            let open = Ask::Open { incarnation, quota: Quota { nodes_max: 12, bytes_max: 4_000 } };
            world.step(|owner, at, effects| owner.ask(at, root, open, u64::MAX, effects));
            world.turn();
        }
        world.turn();
        world
    }

    pub(super) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.shows {
            eprintln!("{:>5} {what}", self.trace.len());
        }
        self.trace.push(what);
    }

    fn at(&self) -> At {
        let epoch = self.journal.bounds(STREAM).unwrap().epoch;
        At { now: Millis(self.now), ticks: self.ticks, epoch }
    }

    fn step(&mut self, step: impl FnOnce(&mut Owner<u64>, At, &mut Vec<Effect<u64>>)) {
        let (at, mut effects) = (self.at(), Vec::new());
        step(&mut self.owner, at, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect<u64>>) {
        let mut refused = None;
        for effect in effects {
            match effect {
                Effect::Append(batch) => {
                    refused = refused.or(self.journal.append(STREAM, batch.finish()).err());
                }
                Effect::Answer(waiter, answer) => self.answered(waiter, answer),
                Effect::Opened(..) | Effect::Shut(..) | Effect::Changed(..) => {}
            }
        }
        match refused {
            None => {}
            Some(AppendError::Store(error)) => {
                let mut effects = Vec::new();
                self.owner.failed(&error, &mut effects);
                self.failed = true;
                self.carry_out(effects);
            }
            Some(error) => panic!("the owner's own log refuses: {error}"),
        }
    }

    /// A client calls.
    pub(super) fn ask(&mut self, root: &Path, ask: Ask) {
        let waiter = self.call(root, &ask);
        if let Ask::End(id) = ask {
            self.oracle.asked_to_end(root, id);
        }
        self.note(format!("{waiter} asks {root} {ask:?}"));
        self.step(|owner, at, effects| owner.ask(at, root, ask, waiter, effects));
    }

    fn call(&mut self, root: &Path, ask: &Ask) -> u64 {
        self.next_waiter += 1;
        let floor = self.oracle.answered(root);
        self.moment += 1;
        let (root, ask, time, start) = (root.clone(), ask.clone(), self.time, self.moment);
        let call = Call { root, ask, floor, time, start };
        self.calls.insert(self.next_waiter, call);
        self.next_waiter
    }

    /// A client reaches the owner that was taken over.
    pub(super) fn ask_sleeper(&mut self, root: &Path, ask: Ask) {
        let Some(mut sleeper) = self.sleeper.take() else { return };
        let waiter = self.call(root, &ask);
        self.note(format!("{waiter} asks the sleeper {root} {ask:?}"));
        let (at, mut effects) = (self.at(), Vec::new());
        sleeper.ask(at, root, ask, waiter, &mut effects);
        for effect in effects {
            match effect {
                Effect::Append(batch) => {
                    let refused = self.journal.append(STREAM, batch.finish());
                    assert!(refused.is_err(), "the log takes what a former owner wrote");
                }
                Effect::Answer(waiter, answer) => self.answered(waiter, answer),
                _ => {}
            }
        }
        self.sleeper = Some(sleeper);
    }

    fn answered(&mut self, waiter: u64, answer: Answer) {
        let Some(call) = self.calls.remove(&waiter) else { return };
        self.remember(&call, Some(&answer));
        let Call { root, ask, floor, time, .. } = call;
        self.note(format!("{waiter} is told {answer:?}"));
        match (ask, answer) {
            (Ask::Apply(txn), Answer::Written(written)) => {
                self.oracle.written(&root, txn.op, &written);
            }
            (Ask::End(_), Answer::Written(written)) => self.oracle.written(&root, None, &written),
            (Ask::Get(path), Answer::Node(node, at)) => {
                self.oracle.told(&root, at, floor);
                self.oracle.node(&root, &path, node.as_ref(), at);
            }
            (Ask::List { path, limit, .. }, Answer::Children(children, more, at)) => {
                self.oracle.told(&root, at, floor);
                let was = self.oracle.at(&root, at.seq).children(&path, None);
                let was: Vec<_> = was.map(|(path, node)| (path.clone(), node.clone())).collect();
                assert_eq!(children, was[..limit.min(was.len())]);
                assert_eq!(more, was.len() > limit);
            }
            (Ask::Sync, Answer::At(at)) => self.oracle.told(&root, at, floor),
            (Ask::Begin { op, .. }, Answer::Session(id, lease_ms)) => {
                let written = tideline_meta::Written { seq: Seq(id.0), created: Vec::new() };
                self.oracle.written(&root, op, &written);
                self.oracle.renewed(&root, id, time, lease_ms);
                self.begun.push((root, id));
            }
            (Ask::KeepAlive(id), Answer::Session(_, lease_ms)) => {
                self.oracle.renewed(&root, id, time, lease_ms);
            }
            (_, Answer::Refused(Refusal::Expired(id))) => self.oracle.expired(&root, id),
            (_, Answer::Refused(_)) => {}
            (ask, answer) => panic!("{ask:?} is answered by {answer:?}"),
        }
    }

    /// What a client saw of the node whose history is kept; nothing, if the
    /// machine stopped under it.
    fn remember(&mut self, call: &Call, answer: Option<&Answer>) {
        use linear::{Act, Came};
        let number = |value: &Bytes| value[..].try_into().map(u64::from_le_bytes).unwrap();
        let act = match &call.ask {
            Ask::Apply(txn) => match &txn.ops[..] {
                [Op::Create { path, value, .. }] if path.as_str() == LINEAR => {
                    Act::Create(number(value))
                }
                [Op::Set { path, value, .. }] if path.as_str() == LINEAR => Act::Set(number(value)),
                [Op::Delete { path, .. }] if path.as_str() == LINEAR => Act::Delete,
                _ => return,
            },
            Ask::Get(path) if path.as_str() == LINEAR => Act::Read,
            _ => return,
        };
        let came = match answer {
            Some(Answer::Written(_)) => Came::Done,
            Some(Answer::Node(node, _)) => {
                Came::Found(node.as_ref().map(|node| number(&node.value)))
            }
            Some(Answer::Refused(Refusal::Exists(_) | Refusal::NoNode(_))) => Came::Refused,
            None | Some(Answer::Refused(Refusal::Unknown(_))) => Came::Unknown,
            Some(_) => return,
        };
        self.moment += 1;
        let (start, end) = (call.start, self.moment);
        let of_root = self.histories.entry(call.root.clone()).or_default();
        of_root.push(linear::Call { start, end, act, came });
    }

    /// What waits is written and synced, and told.
    pub(super) fn turn(&mut self) {
        let turned = self.journal.turn();
        self.note(format!("turn {turned}"));
        self.hear();
    }

    pub(super) fn fill(&mut self) {
        let filled = self.journal.fill();
        self.note(format!("fill {filled:?}"));
        self.hear();
    }

    fn hear(&mut self) {
        loop {
            match self.ear.next().map(|(_, told)| told) {
                None => return,
                Some(Heard::Synced(through)) => {
                    self.follow_log(through);
                    self.step(|owner, _, effects| owner.synced(through, effects));
                }
                Some(Heard::Failed(error)) => {
                    self.failed = true;
                    self.step(|owner, _, effects| owner.failed(&error, effects));
                }
                Some(Heard::Dropped(_, error)) => {
                    self.step(|owner, _, effects| owner.dropped(&error, effects));
                    let epoch = self.owner.epoch();
                    self.recover(epoch).expect("the log was read a moment ago");
                }
            }
        }
    }

    /// The oracle reads what is durable.
    fn follow_log(&mut self, through: Seq) {
        while self.oracle.end < through {
            let batches = self.journal.read(STREAM, self.oracle.end.next(), LIMITS).unwrap();
            for bytes in &batches {
                for record in BatchRef::parse(bytes).unwrap().records() {
                    if record.seq > self.oracle.end {
                        let value = bytes.slice_ref(record.value);
                        self.oracle.entry(record.seq, record.key, &value, self.time);
                    }
                }
            }
        }
    }

    pub(super) fn pass(&mut self, ms: u64, jump: i64) {
        self.ticks += ms;
        self.time += ms;
        self.now += ms as i64 + jump;
        self.note(format!("time {}", self.now));
        self.step(|owner, at, effects| owner.tick(at, effects));
    }

    /// A subtree is brought to rest, as the keeper does it; perhaps power goes
    /// before the table has synced.
    pub(super) fn rest(&mut self, root: &Path, syncs: bool) {
        let (at, mut effects, waiter) = (self.at(), Vec::new(), u64::MAX);
        self.owner.resting(root);
        self.owner.ask(at, root, Ask::Image, waiter, &mut effects);
        let mut image = None;
        for effect in std::mem::take(&mut effects) {
            match effect {
                Effect::Answer(_, Answer::Image(found)) => image = Some(found),
                other => effects.push(other),
            }
        }
        self.carry_out(effects);
        // One that waits for a sync is not waited for here.
        let life = image.as_ref().map(|image| image.tree.incarnation());
        if let Some(image) = image {
            cold::write(&self.table, STREAM.partition, root, &image).unwrap();
            if syncs {
                self.table.sync().unwrap();
            }
        }
        let done = syncs && life.is_some();
        let held = self.owner.position(root).map(|at| at.incarnation);
        if let Some(life) = life.or(held) {
            self.owner.rested(root, life, done, self.ticks);
        }
        self.note(format!("rest {root} {done}"));
        if done {
            let (seq, epoch) = (self.owner.place(), self.owner.epoch());
            let place = Place { epoch, seq, ..Place::default() };
            self.table.commit(&[place.keep(TOPIC, STREAM.partition)]).unwrap();
            self.table.sync().unwrap();
            self.journal.trim(STREAM, seq).unwrap();
        }
    }

    pub(super) fn compact(&mut self, count: usize) {
        for root in Self::roots() {
            self.owner.compact(&root, count);
        }
        self.note(format!("compact {count}"));
    }

    /// Another owner takes over; this one sleeps on.
    pub(super) fn take_over(&mut self) {
        self.note("take over");
        let ear = Arc::<Ear>::default();
        match self.journal.fence(STREAM, ear.clone()) {
            Ok(bounds) => {
                self.ear = ear;
                self.follow_log(bounds.synced);
                let fresh = Owner::new(STREAM, bounds.epoch, bounds.synced, Millis(0));
                self.sleeper = Some(std::mem::replace(&mut self.owner, fresh));
                self.recover(bounds.epoch).expect("what is durable is read");
            }
            Err(_) => self.failed = true,
        }
    }

    /// The machine stops and starts again.
    pub(super) fn restart(&mut self, crash: &mut dyn Crash, keep: usize) {
        self.disk = self.disk.crash(crash);
        self.table = self.table.crash(|_, _, unsynced| keep.min(unsynced));
        for call in std::mem::take(&mut self.calls).into_values() {
            self.remember(&call, None);
        }
        (self.sleeper, self.failed, self.ticks) = (None, false, 0);
        self.starts += 1;
        (0..self.observers.len()).for_each(|who| self.disconnect(who));
        self.journal = open_journal(&self.disk).expect("a machine without a broken disk starts");
        self.ear = Arc::default();
        let bounds = self.journal.fence(STREAM, self.ear.clone()).expect("nobody else is there");
        assert!(bounds.synced >= self.oracle.end, "what was synced is gone");
        self.follow_log(bounds.synced);
        self.recover(bounds.epoch).expect("what is durable is read");
    }

    /// A fresh owner, as the driver makes it; it must know what the log says.
    fn recover(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        let bounds = self.journal.bounds(STREAM).unwrap();
        let mut owner = Owner::new(STREAM, epoch, bounds.synced, Millis(self.now));
        let mut read = |from| {
            self.journal.read(STREAM, from, LIMITS).map_err(|error| match error {
                ReadError::Store(error) => error,
                other => panic!("what is not at rest must be in the log: {other}"),
            })
        };
        recovery::recover(&mut owner, &self.table, bounds.start, &mut read)?;
        self.owner = owner;
        for root in Self::roots() {
            let tree = self.image(&root).map(|(tree, _)| tree);
            assert_eq!(tree.as_ref(), Some(self.oracle.now(&root)), "{root} after a start");
        }
        Ok(())
    }

    /// The subtree as the owner has it, if all of it is synced.
    fn image(&mut self, root: &Path) -> Option<(tideline_meta::tree::Tree, Epoch)> {
        let (at, mut effects) = (self.at(), Vec::new());
        self.owner.ask(at, root, Ask::Picture, u64::MAX, &mut effects);
        match effects.pop() {
            Some(Effect::Answer(_, Answer::Image(image))) => {
                Some((image.tree.clone(), image.epoch))
            }
            _ => None,
        }
    }

    /// Up to `count` things reach an observer.
    pub(super) fn observe(&mut self, who: usize, count: usize) {
        let root = Self::roots()[who % self.observed].clone();
        self.ask_for_more(who, &root);
        for _ in 0..count {
            let observer = &mut self.observers[who];
            let Some(event) = observer.coming.pop_front() else { return };
            let before = observer.follower.position();
            let taken = observer.follower.take(&event);
            let told = taken.unwrap_or_else(|broken| panic!("observer {who}: {broken}"));
            observer.told.take(told, observer.follower.tree(), who);
            match event {
                Event::Frame(_) => self.came.resumed += usize::from(observer.is_back),
                Event::Resync(Resync::Compacted { .. }) => self.came.resynced += 1,
                _ => {}
            }
            observer.is_back = false;
            let after = observer.follower.position();
            assert!(before <= after, "observer {who} went back");
            self.note(format!("observer {who} at {after:?}"));
            self.check_copy(who, &root);
        }
    }

    fn check_copy(&self, who: usize, root: &Path) {
        let Some(copy) = self.observers[who].follower.tree() else { return };
        let then = self.oracle.at(root, copy.seq());
        let same = copy.nodes().eq(then.nodes()) && copy.sessions().eq(then.sessions());
        assert!(same, "observer {who} at {}: {copy:?}, a replay: {then:?}", copy.seq());
    }

    /// What the server would send next, if nothing is on its way.
    fn ask_for_more(&mut self, who: usize, root: &Path) {
        let observer = &self.observers[who];
        if !observer.coming.is_empty() {
            return;
        }
        let from = observer.follower.position().unwrap_or_default();
        let coming = match self.owner.frame(root, from) {
            None | Some(Ok(None)) => Vec::new(),
            Some(Ok(Some(frame))) => vec![Event::Frame(frame)],
            Some(Err(why)) => self.snapshot(root, from, why),
        };
        self.observers[who].coming.extend(coming);
    }

    fn snapshot(&mut self, root: &Path, from: Position, why: Resync) -> Vec<Event> {
        let diverged = matches!(why, Resync::Diverged { .. });
        assert!(!diverged, "{root}: an observer at {from} saw what is not durable: {why}");
        let Some((tree, epoch)) = self.image(root) else { return Vec::new() };
        let chunks = snapshot::encode(&tree, epoch, For::Observer);
        let chunks = chunks.into_iter().map(|chunk: Bytes| Event::Chunk(chunk));
        [Event::Resync(why)].into_iter().chain(chunks).collect()
    }

    /// Its connection breaks, and what is on its way is lost.
    pub(super) fn disconnect(&mut self, who: usize) {
        let observer = &mut self.observers[who];
        observer.coming.clear();
        observer.follower.disconnected();
        observer.is_back = observer.follower.position().is_some();
    }

    /// Faults have stopped a while ago.
    pub(super) fn check_at_rest(&mut self) {
        assert!(self.calls.is_empty(), "{} calls are not answered", self.calls.len());
        for (root, calls) in &self.histories {
            assert!(linear::is_linearizable(calls), "{root}: not linearizable: {calls:?}");
        }
        for root in Self::roots() {
            let left = self.oracle.now(&root).sessions().count();
            assert_eq!(left, 0, "{root}: sessions that nobody renews go on");
        }
        for who in 0..self.observers.len() {
            self.observe(who, 100);
            self.observe(who, 100);
            let root = &Self::roots()[who % self.observed];
            let follower = &self.observers[who].follower;
            let end = self.oracle.now(root).seq();
            let at = follower.tree().map(|copy| copy.seq());
            assert_eq!(at, Some(end), "observer {who} does not get to the end");
        }
    }
}
