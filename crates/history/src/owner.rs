//! One partition's owner: decides in order, logs outcomes, answers when they
//! are safe, and moves users between memory and rest.
//!
//! Always: `synced < next`; a waiter is answered only when everything decided
//! before it has `seq <= synced` (`Ack::Fast` alone excepted); an image of a
//! user is flushed only when all of it is synced; [`Owner::place`] is below
//! every outcome that is not in a durable row.
//!
//! A state machine: inputs come with `now` (the wall clock) and `ticks` (a
//! clock that never jumps), effects go out. Whoever drives it carries effects
//! out in order. Knows nothing of threads, files or engines.
//!
//! ```text
//!  write/ask ─▶ decide ─▶ open pack ──seal──▶ Append ──▶ synced ─▶ Answer
//!                 │                              │
//!            Load ◀ user not in memory      held images ─▶ Flush ─▶ flushed ─▶ place
//! ```

mod ask;
mod driven;
mod recover;
mod slots;
mod tier;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tideline_queue::view::Lag;
use tideline_record::batch::BatchBuilder;
use tideline_store::{Commit, Place, StoreError};
use tideline_types::{Epoch, Millis, Seq, StreamId};

pub use ask::{Answer, Op, Refusal};
pub use recover::Erases;
pub use slots::SlotId;

use crate::mark::{Ack, MarkSet, Path, Verdict};
use crate::outcome::OutcomeRef;
use crate::pack::Pack;
use crate::rules::Rules;
use crate::timeline::{Timeline, Touched};
use slots::Slots;

/// What bounds one partition.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of users in memory. Above it, users at rest are let go; above
    /// five quarters of it, writes are refused.
    pub hot_bytes_max: usize,
    /// Bytes of outcomes that are logged and not at rest, as a start would
    /// hold them. Above half of it, users come to rest early; above all of it,
    /// what would be logged is refused. Goes over by what was let in before:
    /// one call, marks that wait for their users, the open pack.
    pub lag_bytes_max: usize,
    /// How long a change may wait before it is written to cold rows, in ms.
    pub flush_after_ms: u64,
    /// Users on their way to cold rows at a time.
    pub flights_max: usize,
    /// Marks and calls that may wait for users being loaded.
    pub parked_max: usize,
    /// A pack of marks that nobody waits for is logged after this, in ms.
    pub fast_window_ms: u64,
    /// An open pack of this many bytes is logged at once.
    pub pack_bytes_max: usize,
}

/// What the driver must do, in order.
#[derive(Debug)]
pub enum Effect<W> {
    /// Append this batch to the partition's log.
    Append(BatchBuilder),
    /// Read the user's cold rows, then call [`Owner::loaded`].
    Load {
        /// To be given back, with `generation`.
        slot: SlotId,
        /// Tells an owner's life before a reset from the one after.
        generation: u32,
        /// Whose.
        user: Box<str>,
    },
    /// Commit, in order and after every earlier flush of this partition; make
    /// it durable, then call [`Owner::flushed`].
    Flush(Flush),
    /// Tell the caller.
    Answer(W, Answer),
}

/// A user's image on its way to rest.
#[derive(Debug)]
pub struct Flush {
    /// To be given back, with `generation`.
    pub slot: SlotId,
    /// Tells an owner's life before a reset from the one after.
    pub generation: u32,
    /// What to write, in order.
    pub commits: Vec<Commit>,
}

/// Figures of one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Users in memory.
    pub users: usize,
    /// Their bytes.
    pub hot_bytes: usize,
    /// Users with changes that are not at rest.
    pub dirty_users: usize,
    /// Outcomes that are synced and not at rest.
    pub lag: u64,
    /// Bytes that a start would read back into memory.
    pub lag_bytes: usize,
    /// Marks and calls that wait for a user to be loaded.
    pub parked: usize,
    /// Calls that wait for a sync.
    pub waiting: usize,
}

/// A user who is loaded.
#[derive(Debug)]
struct Hot {
    timeline: Timeline,
    dirty: Option<Box<Dirty>>,
    /// Second chances before the user may be let go.
    used: u8,
}

impl Hot {
    fn bytes(&self) -> usize {
        self.timeline.bytes()
    }

    /// See [`Timeline::peek`].
    fn peek(&self) -> u8 {
        self.timeline.peek() ^ self.dirty.as_ref().map_or(0, |dirty| dirty.touched.peek())
    }
}

/// What of a user is not at rest.
#[derive(Debug, Default)]
struct Dirty {
    touched: Touched,
    /// Below every outcome in `touched`; `None` while `touched` is empty.
    from: Option<Seq>,
    since_ticks: u64,
    /// The last erase that no flush has carried yet.
    erased: Option<Seq>,
    flight: Option<Box<Flight>>,
}

/// What is being written now; put back if that fails.
#[derive(Debug)]
struct Flight {
    touched: Touched,
    from: Seq,
    erased: Option<Seq>,
}

/// A user who is not loaded, with what waits for that.
#[derive(Debug)]
struct Waiting<W> {
    /// Outcomes found in the log at start, not yet known to be at rest.
    overlay: Vec<(Seq, Bytes)>,
    overlay_bytes: usize,
    parked: VecDeque<Parked<W>>,
    loading: bool,
}

#[derive(Debug)]
enum State<W> {
    Hot(Hot),
    Waiting(Box<Waiting<W>>),
}

#[derive(Debug)]
enum Parked<W> {
    Mark { job: u64, place: u32 },
    Call { op: Op, waiter: W },
}

/// A write of which some marks wait for their users.
#[derive(Debug)]
struct Job<W> {
    marks: Arc<MarkSet>,
    shift_ms: i64,
    path: Path,
    ack: Ack,
    waiter: W,
    verdicts: Vec<(u32, Verdict)>,
    left: usize,
}

#[derive(Debug)]
enum Status {
    Running,
    Recovering,
    Failed(StoreError),
}

/// One partition of history. `W` is what the driver answers through.
#[derive(Debug)]
pub struct Owner<W> {
    stream: StreamId,
    rules: Arc<Rules>,
    options: Options,
    status: Status,
    generation: u32,

    epoch: Epoch,
    next: Seq,
    synced: Seq,
    /// Before the batch that was sealed last.
    sealed_after: Seq,
    taken: Millis,
    ticks: u64,

    slots: Slots<State<W>>,
    hot_bytes: usize,
    hand: u32,
    jobs: BTreeMap<u64, Job<W>>,
    last_job: u64,
    parked: usize,

    pack: Pack,
    pack_since: u64,
    pack_is_waited_for: bool,
    open_waiters: Vec<(W, Answer)>,
    waiters: VecDeque<(Seq, W, Answer)>,

    /// Dirty users, the longest dirty first; entries may be outdated.
    dirty: VecDeque<(Seq, SlotId)>,
    /// How many users have an outcome at this number or later that is not at
    /// rest.
    unrested: BTreeMap<Seq, u32>,
    lag: Lag,
    held: VecDeque<(Seq, Flush)>,
    flights: usize,
    draining: bool,

    scratch: Vec<u8>,
}

impl<W> Owner<W> {
    /// An owner of `stream` in `epoch`, whose log holds synced outcomes up to
    /// `synced` and whose time is at least `place`'s. It takes calls once it
    /// has been through [`crate::recovery::recover`].
    pub fn new(
        stream: StreamId,
        epoch: Epoch,
        synced: Seq,
        place: Place,
        rules: Arc<Rules>,
        options: Options,
    ) -> Self {
        Self {
            stream,
            rules,
            options,
            status: Status::Recovering,
            generation: 0,
            epoch,
            next: synced.next(),
            synced,
            sealed_after: synced,
            taken: place.taken,
            ticks: 0,
            slots: Slots::new(),
            hot_bytes: 0,
            hand: 0,
            jobs: BTreeMap::new(),
            last_job: 0,
            parked: 0,
            pack: Pack::default(),
            pack_since: 0,
            pack_is_waited_for: false,
            open_waiters: Vec::new(),
            waiters: VecDeque::new(),
            dirty: VecDeque::new(),
            unrested: BTreeMap::new(),
            lag: Lag::default(),
            held: VecDeque::new(),
            flights: 0,
            draining: false,
            scratch: Vec::new(),
        }
    }

    /// An owner of the same stream that knows nothing yet: to be recovered, and
    /// then put in the place of this one. What this one asked for is void.
    pub fn successor(&self) -> Self {
        let place = Place { epoch: self.epoch, seq: Seq::ZERO, taken: self.taken };
        let (rules, options) = (Arc::clone(&self.rules), self.options.clone());
        let fresh = Self::new(self.stream, self.epoch, self.synced, place, rules, options);
        Self { generation: self.generation + 1, ticks: self.ticks, ..fresh }
    }

    /// Whose outcomes.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The epoch of this ownership.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Decides the marks at `places` of `marks`, in order. Marks of users who
    /// are not in memory wait for them; the answer comes when all are decided.
    #[expect(clippy::too_many_arguments, reason = "one input, as the caller has it")]
    pub fn write(
        &mut self,
        now: Millis,
        marks: &Arc<MarkSet>,
        places: &[u32],
        shift_ms: i64,
        path: Path,
        ack: Ack,
        waiter: W,
        effects: &mut Vec<Effect<W>>,
    ) {
        if let Err(refusal) = self.admit(places.len(), true) {
            effects.push(Effect::Answer(waiter, Answer::Refused(refusal)));
            return;
        }
        let now = self.take(now);
        let mut verdicts = Vec::with_capacity(places.len());
        let mut waiting: Vec<(SlotId, u32)> = Vec::new();
        // All users are found first, and a little of each is read: their memory
        // is fetched side by side, and not one after the other by decisions.
        let slots: Vec<SlotId> =
            places.iter().map(|&place| self.slot_of(marks.user(place as usize), effects)).collect();
        std::hint::black_box(slots.iter().fold(0, |all, slot| match self.slots.get(*slot) {
            Some(State::Hot(hot)) => all ^ hot.peek(),
            _ => all,
        }));
        for (&place, slot) in places.iter().zip(slots) {
            match self.decide(slot, marks, place, shift_ms, now, path) {
                Some(verdict) => verdicts.push((place, verdict)),
                None => waiting.push((slot, place)),
            }
        }
        if waiting.is_empty() {
            self.answer(waiter, Answer::Verdicts(verdicts), ack, effects);
        } else {
            let left = waiting.len();
            let marks = Arc::clone(marks);
            let job = Job { marks, shift_ms, path, ack, waiter, verdicts, left };
            self.park(job, &waiting);
        }
        self.settle(effects);
    }

    /// The last number that is safe.
    pub fn synced_through(&self) -> Seq {
        self.synced
    }

    /// The log is safe up to `through`.
    pub fn synced(&mut self, through: Seq, effects: &mut Vec<Effect<W>>) {
        assert!(through < self.next, "synced beyond what was appended");
        self.synced = self.synced.max(through);
        while self.waiters.front().is_some_and(|(seq, ..)| *seq <= self.synced) {
            if let Some((_, waiter, answer)) = self.waiters.pop_front() {
                effects.push(Effect::Answer(waiter, answer));
            }
        }
        self.release_held(effects);
        self.settle(effects);
    }

    /// Time has passed: log what nobody waits for, write what is due.
    pub fn tick(&mut self, now: Millis, ticks: u64, effects: &mut Vec<Effect<W>>) {
        self.take(now);
        self.ticks = self.ticks.max(ticks);
        self.rested();
        self.settle(effects);
        if self.pack.is_empty() && matches!(self.status, Status::Running) {
            self.plan_flushes(effects);
        }
        self.evict();
    }

    /// The owner's time: that of its latest decision, or later.
    pub fn taken(&self) -> Millis {
        self.taken
    }

    /// Whether anything of the user is in memory.
    pub fn knows(&self, user: &str) -> bool {
        self.slots.find(user).is_some()
    }

    /// Whether calls are taken at all.
    pub fn takes_calls(&self) -> bool {
        matches!(self.status, Status::Running)
    }

    /// Everything decided is in a durable row.
    pub fn is_at_rest(&self) -> bool {
        self.pack.is_empty() && self.unrested.is_empty() && self.synced.next() == self.next
    }

    /// As [`Owner::is_at_rest`], and calls are taken.
    pub fn is_settled(&self) -> bool {
        self.is_at_rest() && matches!(self.status, Status::Running)
    }

    /// From now on changes are flushed at once; for a stop.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Users in memory; some of them may have nothing.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.slots.names()
    }

    /// Figures.
    pub fn stats(&self) -> Stats {
        Stats {
            users: self.slots.len(),
            hot_bytes: self.hot_bytes,
            dirty_users: self.unrested.values().map(|n| *n as usize).sum(),
            lag: self.place().map_or(0, |place| self.synced.0 - place.seq.0),
            lag_bytes: self.lag.bytes(),
            parked: self.parked,
            waiting: self.waiters.len() + self.open_waiters.len(),
        }
    }

    /// The owner's time: follows `now`, never falls.
    fn take(&mut self, now: Millis) -> Millis {
        self.taken = self.taken.max(now);
        self.taken
    }

    /// The user's slot; a user who is not in memory is asked for.
    fn slot_of(&mut self, user: &str, effects: &mut Vec<Effect<W>>) -> SlotId {
        let slot = self.slots.find(user).unwrap_or_else(|| {
            self.hot_bytes += WAITING_BYTES + Slots::<State<W>>::bytes_of(user);
            self.slots.insert(user, State::Waiting(Box::default()))
        });
        self.load(slot, effects);
        slot
    }

    /// Asks for the user's cold rows, once.
    fn load(&mut self, slot: SlotId, effects: &mut Vec<Effect<W>>) {
        if let Some((name, State::Waiting(waiting))) = self.slots.entry_mut(slot)
            && !waiting.loading
        {
            waiting.loading = true;
            let generation = self.generation;
            effects.push(Effect::Load { slot, generation, user: name.into() });
        }
    }

    /// Decides one mark if its user is here and nothing waits before it.
    fn decide(
        &mut self,
        slot: SlotId,
        marks: &MarkSet,
        place: u32,
        shift_ms: i64,
        now: Millis,
        path: Path,
    ) -> Option<Verdict> {
        let Some(State::Hot(hot)) = self.slots.get_mut(slot) else { return None };
        hot.used = SECOND_CHANCES;
        let mark = marks.get(place as usize);
        self.scratch.clear();
        let timeline = &hot.timeline;
        let verdict = self.rules.mark(timeline, &mark, shift_ms, now, path, &mut self.scratch);
        if !self.scratch.is_empty() {
            self.log_scratch(slot, now);
        }
        Some(verdict)
    }

    /// Applies the outcome in `scratch` to the user and adds it to the pack.
    fn log_scratch(&mut self, slot: SlotId, now: Millis) {
        if self.pack.is_empty() {
            self.pack_since = self.ticks;
            self.pack_is_waited_for = false;
        }
        let Some((name, State::Hot(hot))) = self.slots.entry_mut(slot) else {
            unreachable!("outcomes are decided for users in memory")
        };
        let outcome = OutcomeRef::decode(&self.scratch).expect("the rules encode what they decide");
        let before = hot.bytes();
        let fresh = hot.dirty.is_none();
        let dirty = hot.dirty.get_or_insert_default();
        hot.timeline
            .apply(&outcome, &self.rules.kinds, &mut dirty.touched)
            .expect("the rules name kinds that exist");
        if matches!(outcome, OutcomeRef::Erase { .. }) {
            let hash = self.rules.user_hash(name);
            self.pack.push(&hash, &self.scratch, now);
            dirty.erased = Some(self.next.plus(self.pack.len() as u64).prev());
        } else {
            self.pack.push(name.as_bytes(), &self.scratch, now);
        }
        self.changed(slot, before, fresh);
    }

    /// Queues a user who has just changed for rest, and counts the bytes.
    fn changed(&mut self, slot: SlotId, bytes_before: usize, fresh: bool) {
        let Some(State::Hot(hot)) = self.slots.get_mut(slot) else { return };
        self.hot_bytes = self.hot_bytes + hot.bytes() - bytes_before;
        if fresh {
            self.hot_bytes += tier::DIRTY_BYTES;
        }
        let Some(dirty) = hot.dirty.as_deref_mut().filter(|dirty| dirty.from.is_none()) else {
            return;
        };
        dirty.from = Some(self.next);
        dirty.since_ticks = self.ticks;
        *self.unrested.entry(self.next).or_default() += 1;
        self.dirty.push_back((self.next, slot));
    }

    /// Drops what no read and no decision can tell any more; the user comes to
    /// rest without it.
    fn tidy(&mut self, slot: SlotId, now: Millis) {
        let Some(State::Hot(hot)) = self.slots.get_mut(slot) else { return };
        let before = hot.bytes();
        let fresh = hot.dirty.is_none();
        let dirty = hot.dirty.get_or_insert_default();
        hot.timeline.drop_expired(&self.rules, now, &mut dirty.touched);
        self.changed(slot, before, fresh);
    }

    /// Answers now, or when all that was decided so far is synced.
    fn answer(&mut self, waiter: W, answer: Answer, ack: Ack, effects: &mut Vec<Effect<W>>) {
        if ack == Ack::Durable && !self.pack.is_empty() {
            self.pack_is_waited_for = true;
            self.open_waiters.push((waiter, answer));
        } else if ack == Ack::Durable && self.synced < self.next.prev() {
            self.waiters.push_back((self.next.prev(), waiter, answer));
        } else {
            effects.push(Effect::Answer(waiter, answer));
        }
    }

    /// Logs the open pack if it is time. While one batch is being synced a
    /// second one may wait for the next sync, and a third one gathers: this is
    /// the group commit. (With the second gathering too, what comes in during
    /// a sync would miss the next one.)
    fn settle(&mut self, effects: &mut Vec<Effect<W>>) {
        if self.pack.is_empty() || !matches!(self.status, Status::Running) {
            return;
        }
        let free = self.synced >= self.sealed_after;
        let old = self.ticks.saturating_sub(self.pack_since) >= self.options.fast_window_ms;
        let wanted = self.pack_is_waited_for || old || self.draining;
        if (free && wanted) || self.pack.bytes() >= self.options.pack_bytes_max {
            self.seal(effects);
        }
    }

    fn seal(&mut self, effects: &mut Vec<Effect<W>>) {
        self.sealed_after = self.next.prev();
        let room = self.pack.bytes() + self.pack.len() * RECORD_OVERHEAD_BYTES;
        let mut batch = BatchBuilder::with_capacity(self.stream, self.epoch, self.next, room);
        self.pack.seal(|time, key, value| _ = batch.push(time, key, value));
        self.next = self.next.plus(batch.len() as u64);
        let last = self.next.prev();
        self.lag.logged(last, batch.len(), batch.bytes());
        let waiters = self.open_waiters.drain(..);
        self.waiters.extend(waiters.map(|(waiter, answer)| (last, waiter, answer)));
        effects.push(Effect::Append(batch));
        self.plan_flushes(effects);
    }

    /// Keeps `job` until the users of `waiting` are loaded.
    fn park(&mut self, job: Job<W>, waiting: &[(SlotId, u32)]) {
        self.last_job += 1;
        self.jobs.insert(self.last_job, job);
        self.parked += waiting.len();
        for &(slot, place) in waiting {
            if let Some(State::Waiting(user)) = self.slots.get_mut(slot) {
                user.parked.push_back(Parked::Mark { job: self.last_job, place });
            }
        }
    }
}

impl<W> Default for Waiting<W> {
    fn default() -> Self {
        Self { overlay: Vec::new(), overlay_bytes: 0, parked: VecDeque::new(), loading: false }
    }
}

/// How often the hand passes a user who was used before letting go.
const SECOND_CHANCES: u8 = 2;
/// What a batch adds to most records: lengths and a time.
const RECORD_OVERHEAD_BYTES: usize = 6;
/// What a user who is being loaded takes besides the name.
const WAITING_BYTES: usize = 128;
