//! The owners of two partitions on one machine, driven by hand.
//!
//! Nothing here waits or spawns: a sync, a load, a flush happen when the
//! scheduler says so, and the clock shows what it was set to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tideline_history::mark::{Ack, Mark, MarkSet, Path as Way};
use tideline_history::owner::{self, Answer, Effect, Flush, Op, Owner, SlotId};
use tideline_history::recovery;
use tideline_history::rules::Rules;
use tideline_history::{TOPIC, cold};
use tideline_record::batch::BatchRef;
use tideline_store::{Journal, ReadLimits, StoreError, Table};
use tideline_types::{Millis, partition_of};

use super::expect::{self, Expected};
use super::oracle::{Action, Comes, Oracle};
use crate::machine::{Machine, Told, stream};
use tideline_harness::model::{Model, ModelMark};

/// Partitions of the simulated topic.
pub(crate) const PARTITIONS: u16 = 2;
/// What a record of the log takes in memory besides its bytes, with its user.
const RECORD_BYTES: usize = 240;

/// A load that an owner asked for.
pub(crate) struct Load {
    partition: usize,
    slot: SlotId,
    generation: u32,
    user: Box<str>,
}

/// A call that waits for its user, as the oracle sees it.
enum Parked {
    Mark { waiter: u64, place: u32, mark: ModelMark },
    Change { waiter: u64, action: Action },
    Read { waiter: u64 },
}

/// Everything.
pub(crate) struct World {
    pub(crate) machine: Machine,
    rules: Arc<Rules>,
    options: owner::Options,
    owners: Vec<Owner<u64>>,
    oracles: Vec<Oracle>,
    pub(crate) loads: VecDeque<Load>,
    pub(crate) flushes: VecDeque<(usize, Flush)>,
    /// Committed, not yet synced.
    landing: Vec<(usize, SlotId, u32)>,
    /// Users being loaded, with what waits for them.
    parked: BTreeMap<String, VecDeque<Parked>>,
    expected: BTreeMap<u64, Expected>,
    next_waiter: u64,
}

impl World {
    pub(crate) fn new(rules: Arc<Rules>, options: owner::Options, fresh: &Model) -> Self {
        let mut world = Self {
            machine: Machine::new(PARTITIONS),
            rules,
            options,
            owners: Vec::new(),
            oracles: (0..PARTITIONS).map(|_| Oracle::new(fresh.clone())).collect(),
            loads: VecDeque::new(),
            flushes: VecDeque::new(),
            landing: Vec::new(),
            parked: BTreeMap::new(),
            expected: BTreeMap::new(),
            next_waiter: 0,
        };
        world.start().expect("an empty machine starts");
        world
    }

    /// Owners over the present disk and table, as the driver makes them. Who
    /// waited is never answered.
    pub(crate) fn start(&mut self) -> Result<(), StoreError> {
        self.owners.clear();
        self.loads.clear();
        self.flushes.clear();
        self.landing.clear();
        self.parked.clear();
        self.expected.clear();
        for at in 0..usize::from(PARTITIONS) {
            let (bounds, place) = self.machine.fence(TOPIC, at)?;
            self.oracles[at].ends_at(bounds.synced.0);
            self.owners.push(Owner::new(
                stream(at as u16),
                bounds.epoch,
                bounds.synced,
                place,
                Arc::clone(&self.rules),
                self.options.clone(),
            ));
            let one_read = self.recover(at, true)?;
            let held = self.owners[at].stats().hot_bytes;
            let bound = self.options.hot_bytes_max / 4 * 5 + one_read;
            assert!(held <= bound, "a start holds {held} bytes, {bound} are allowed");
        }
        Ok(())
    }

    /// A fresh owner from the table and the log, as the driver makes it.
    /// Answers what the largest read took.
    fn recover(&mut self, at: usize, first: bool) -> Result<usize, StoreError> {
        let mut largest = 0;
        let mut owner = self.owners[at].successor();
        let mut read = |from| {
            let batches = self.machine.read(at, from)?;
            let takes = |bytes: &bytes::Bytes| {
                let records = BatchRef::parse(bytes).map_or(0, |batch| batch.count() as usize);
                bytes.len() + records * RECORD_BYTES
            };
            largest = largest.max(batches.iter().map(takes).sum());
            Ok(batches)
        };
        match first {
            true => recovery::start(&mut owner, &*self.machine.table, &mut read)?,
            false => recovery::recover(&mut owner, &*self.machine.table, &mut read)?,
        }
        self.owners[at] = owner;
        Ok(largest)
    }

    /// Sends marks of one or several users of one partition.
    pub(crate) fn write(&mut self, marks: &[(String, ModelMark)]) {
        let mut parts: BTreeMap<usize, Vec<(String, ModelMark)>> = BTreeMap::new();
        for (user, mark) in marks {
            let mark = (user.clone(), mark.clone());
            parts.entry(self.partition_of(user)).or_default().push(mark);
        }
        for (at, marks) in parts {
            let waiter = self.waiter();
            let mut set = MarkSet::with_capacity(marks.len());
            for (user, mark) in &marks {
                set.push(&as_mark(user, mark, &self.rules));
            }
            let set = Arc::new(set);
            let places: Vec<u32> = (0..marks.len() as u32).collect();
            let shift = marks[0].1.shift;
            let mut effects = Vec::new();
            let now = self.machine.millis();
            self.owners[at].write(
                now,
                &set,
                &places,
                shift,
                Way::Live,
                Ack::Durable,
                waiter,
                &mut effects,
            );
            let calls = places.iter().zip(&marks).map(|(place, (user, mark))| {
                let mark = ModelMark { shift, ..mark.clone() };
                (user.clone(), Parked::Mark { waiter, place: *place, mark })
            });
            self.came_in(at, waiter, calls.collect(), effects);
        }
    }

    /// Deletes, clears, switches or erases.
    pub(crate) fn change(&mut self, user: &str, action: Action) {
        let op = as_op(&action, &self.rules);
        let waiter = self.waiter();
        self.ask(user, op, waiter, Parked::Change { waiter, action });
    }

    /// Reads, one of the ways there are.
    pub(crate) fn read(&mut self, user: &str, which: u64) {
        let waiter = self.waiter();
        let op = expect::read_op(which, &self.rules);
        self.ask(user, op, waiter, Parked::Read { waiter });
    }

    fn ask(&mut self, user: &str, op: Op, waiter: u64, call: Parked) {
        let at = self.partition_of(user);
        let op_as_read = op.clone();
        self.expected.entry(waiter).or_default().asked = Some((user.to_owned(), op_as_read));
        let mut effects = Vec::new();
        self.owners[at].ask(self.machine.millis(), user, op, waiter, &mut effects);
        self.came_in(at, waiter, vec![(user.to_owned(), call)], effects);
    }

    /// The oracle follows: calls of users who are in memory are decided now,
    /// others when the user is loaded; a call that was turned away, never.
    fn came_in(
        &mut self,
        at: usize,
        waiter: u64,
        calls: Vec<(String, Parked)>,
        effects: Vec<Effect<u64>>,
    ) {
        self.expected.entry(waiter).or_default();
        for effect in &effects {
            if let Effect::Load { user, .. } = effect {
                self.parked.entry(user.to_string()).or_default();
            }
        }
        let turned_away = effects.iter().any(|effect| {
            matches!(effect, Effect::Answer(who, Answer::Refused(refusal))
                if *who == waiter && !refusal_follows_decision(refusal))
        });
        if !turned_away {
            for (user, call) in calls {
                match self.parked.get_mut(&user) {
                    Some(queue) => queue.push_back(call),
                    None => self.decide(at, &user, call),
                }
            }
        }
        self.carry_out(at, effects);
    }

    fn decide(&mut self, at: usize, user: &str, call: Parked) {
        let now = self.owners[at].taken().0;
        let oracle = &mut self.oracles[at];
        match call {
            // Another user of the same write could not be read: it was refused.
            Parked::Mark { waiter, .. } if !self.expected.contains_key(&waiter) => {}
            Parked::Mark { waiter, place, mark } => {
                let comes = oracle.decide(user, now, Action::Mark(mark));
                let text = format!("decide {waiter}/{place} {user} at {now}: {comes:?}");
                let expected = self.expected.entry(waiter).or_default();
                expected.verdicts.insert(place, comes);
                expected.decisions = oracle.decisions();
                self.machine.note(text);
            }
            Parked::Change { waiter, action } => {
                let comes = oracle.decide(user, now, action);
                let expected = self.expected.entry(waiter).or_default();
                expected.comes = Some(comes);
                expected.decisions = oracle.decisions();
            }
            Parked::Read { waiter } => {
                let expected = self.expected.entry(waiter).or_default();
                expected.read = Some((Box::new(oracle.user(user).clone()), now));
            }
        }
    }

    /// Carries out effects, in order.
    fn carry_out(&mut self, at: usize, effects: Vec<Effect<u64>>) {
        for effect in effects {
            match effect {
                Effect::Append(batch) => {
                    let batch = batch.finish();
                    let last = BatchRef::parse(&batch).expect("just made").range().through;
                    self.oracles[at].appended(last.0);
                    self.machine.append(at, batch);
                }
                Effect::Load { slot, generation, user } => {
                    self.parked.entry(user.to_string()).or_default();
                    self.loads.push_back(Load { partition: at, slot, generation, user });
                }
                Effect::Flush(flush) => self.flushes.push_back((at, flush)),
                Effect::Answer(waiter, answer) => self.answered(at, waiter, &answer),
            }
        }
    }

    fn answered(&mut self, at: usize, waiter: u64, answer: &Answer) {
        let expected = self.expected.remove(&waiter).expect("each caller is answered once");
        self.machine.note(format!("answer {waiter} {answer:?}"));
        if let Answer::Refused(refusal) = answer {
            assert!(!matches!(refusal, owner::Refusal::Damaged(_)), "{refusal}");
            return;
        }
        expected.compare(answer, &self.rules);
        self.oracles[at].told(expected.decisions);
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
                    self.parked.retain(|user, _| partition_of_user(user) != at);
                    self.loads.retain(|load| load.partition != at);
                    self.carry_out(at, std::mem::take(&mut effects));
                    self.oracles[at].ends_at(from.prev().0);
                    self.recover(at, false).expect("the log was read a moment ago");
                }
            }
            self.carry_out(at, effects);
        }
    }

    /// Delivers one load; `fails` stands for a table that cannot be read now.
    pub(crate) fn load(&mut self, fails: bool) {
        let Some(Load { partition: at, slot, generation, user }) = self.loads.pop_front() else {
            return;
        };
        let hash = self.rules.user_hash(&user);
        let rows = match fails {
            true => Err(StoreError::Io { what: "read".into(), cause: "simulated".into() }),
            false => cold::read(&*self.machine.table, &user, &hash),
        };
        self.machine.note(format!("load {user} {fails}"));
        let mut effects = Vec::new();
        let now = self.machine.millis();
        self.owners[at].loaded(now, slot, generation, rows, &mut effects);
        let waiting = self.parked.remove(&*user).unwrap_or_default();
        if !fails {
            for call in waiting {
                self.decide(at, &user, call);
            }
        }
        // A load that this one led to parks its user again.
        self.carry_out(at, effects);
    }

    /// Commits the oldest flush.
    pub(crate) fn commit(&mut self, fails: bool) {
        let Some((at, flush)) = self.flushes.pop_front() else { return };
        self.machine.note(format!("commit {at} {:?} {fails}", flush.commits));
        if fails {
            let error = StoreError::NoSpace { what: "simulated".into() };
            self.owners[at].flushed(flush.slot, flush.generation, Err(error));
            return;
        }
        self.machine.table.commit(&flush.commits).expect("memory takes it");
        self.landing.push((at, flush.slot, flush.generation));
    }

    /// Syncs the table, keeps the places, and frees the log behind them.
    pub(crate) fn sync_table(&mut self, trim: bool) {
        self.machine.table.sync().expect("memory syncs");
        for (at, slot, generation) in std::mem::take(&mut self.landing) {
            self.owners[at].flushed(slot, generation, Ok(()));
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

    /// Calls that were never answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.expected.len()
    }

    /// The firsts of the day that the log holds, against those granted.
    pub(crate) fn check_firsts(&self) {
        for partition in 0..PARTITIONS {
            let stream = stream(partition);
            let bounds = self.machine.journal.bounds(stream).expect("the stream exists");
            let (mut found, mut from) = (Vec::new(), bounds.start);
            while from <= bounds.synced {
                let limits = ReadLimits { records_max: 1000, bytes_max: 1 << 20 };
                for bytes in
                    self.machine.journal.read(stream, from, limits).expect("synced records read")
                {
                    let batch = BatchRef::parse(&bytes).expect("whole batches");
                    for record in batch.records().filter(|record| record.seq >= from) {
                        found.extend(expect::first_of(&record));
                    }
                    from = batch.range().through.next();
                }
            }
            found.sort();
            let granted = self.oracles[usize::from(partition)].firsts();
            assert_eq!(found, granted, "firsts of the day in the log, and as granted");
        }
    }

    fn waiter(&mut self) -> u64 {
        self.next_waiter += 1;
        self.next_waiter
    }

    fn partition_of(&self, user: &str) -> usize {
        partition_of_user(user)
    }
}

fn partition_of_user(user: &str) -> usize {
    usize::from(partition_of(user.as_bytes(), PARTITIONS).0)
}

/// Whether the refusal is the outcome of a decision, not a call turned away.
fn refusal_follows_decision(refusal: &owner::Refusal) -> bool {
    matches!(refusal, owner::Refusal::TooMany(_) | owner::Refusal::Restore(_))
}

fn as_mark<'a>(user: &'a str, mark: &'a ModelMark, rules: &Rules) -> Mark<'a> {
    Mark {
        user,
        kind: rules.kinds.find(&mark.kind).expect("the workload names declared kinds"),
        id: &mark.id,
        part: mark.part.as_deref(),
        position_ms: mark.position.map(|ms| ms as u64),
        duration_ms: mark.duration.map(|ms| ms as u64),
        sent_ms: mark.sent.map(Millis),
        device: mark.device.as_deref(),
        group: mark.group.as_deref(),
        finished: mark.finished,
        event_id: mark.event_id.as_deref(),
    }
}

fn as_op(action: &Action, rules: &Rules) -> Op {
    use tideline_history::query::{ClearFilter, ObjectKey};
    let find = |kind: &str| rules.kinds.find(kind).expect("the workload names declared kinds");
    match action {
        Action::Delete(keys) => Op::Delete(
            keys.iter()
                .map(|(kind, id)| ObjectKey { kind: find(kind), id: id.as_str().into() })
                .collect(),
        ),
        Action::Clear(filter, finished) => Op::Clear(ClearFilter {
            kind: filter.kind.as_deref().map(find),
            id: filter.id.as_deref().map(Into::into),
            after_ms: filter.after.map(Millis),
            before_ms: filter.before.map(Millis),
            finished: *finished,
        }),
        Action::Switch(on) => Op::Switch(*on),
        Action::Erase => Op::Erase,
        Action::Mark(_) => unreachable!("marks are written"),
    }
}

/// Kept here so that the types of the oracle stay in one place.
pub(crate) type Verdicts = BTreeMap<u32, Comes>;
