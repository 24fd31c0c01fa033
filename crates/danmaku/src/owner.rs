//! One partition's owner: decides in order, logs outcomes, answers when they
//! are safe, and moves videos between memory and rest.
//!
//! Always: `synced < next`; a waiter is answered only when everything decided
//! before it has `seq <= synced`; an image of a video is flushed only when all of
//! it is synced; [`Owner::place`] is below every outcome that is not in a
//! durable row; the calls of one video are carried out one after the other.
//!
//! A state machine: inputs come with `now` (the wall clock) and `ticks` (a
//! clock that never jumps), effects go out. Whoever drives it carries effects
//! out in order. Knows nothing of threads, files or engines.
//!
//! ```text
//!  ask ─▶ decide ─▶ open pack ──seal──▶ Append ──▶ synced ─▶ Answer, Changed
//!           │                             │
//!  Load, Read ◀ rows not in memory     held images ─▶ Flush ─▶ flushed ─▶ place
//! ```

mod driven;
mod recover;
mod run;
mod state;
mod tier;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tideline_queue::view::Lag;
use tideline_record::batch::BatchBuilder;
use tideline_store::Place;
use tideline_types::{Epoch, Millis, Seq, StreamId};

pub use state::{Bounds, Effect, Flush, Stats};
use state::{Call, Dirty, Flight, Hot, Logged, Packed, State, Status, Waiting};

use crate::ask::{Answer, Op, Refusal};
use crate::id::Mint;
use crate::outcome::Outcome;
use crate::rules::{self, Progress, Rules};
use crate::video::Rest;

/// One partition of danmaku. `W` is what the driver answers through.
#[derive(Debug)]
pub struct Owner<W> {
    stream: StreamId,
    rules: Arc<Rules>,
    bounds: Bounds,
    status: Status,
    generation: u32,

    epoch: Epoch,
    next: Seq,
    synced: Seq,
    /// Before the batch that was sealed last.
    sealed_after: Seq,
    taken: Millis,
    ticks: u64,
    mint: Mint,

    videos: BTreeMap<Arc<str>, State<W>>,
    hot_bytes: usize,
    hand: Arc<str>,
    parked: usize,

    pack: Vec<Packed>,
    pack_bytes: usize,
    pack_since: u64,
    open_waiters: Vec<(W, Answer)>,
    waiters: VecDeque<(Seq, W, Answer)>,
    /// Videos that changed at a number that is not synced.
    changed: VecDeque<(Seq, Arc<str>)>,
    /// Videos of which a count is to be told, and since when.
    counting: VecDeque<(u64, Arc<str>)>,

    /// Dirty videos, the longest dirty first; entries may be outdated.
    dirty: VecDeque<(Seq, Arc<str>)>,
    /// How many videos have an outcome at this number or later that is not at
    /// rest.
    unrested: BTreeMap<Seq, u32>,
    lag: Lag,
    held: VecDeque<(Seq, Flush)>,
    flights: usize,
    draining: bool,
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
        bounds: Bounds,
    ) -> Self {
        Self {
            stream,
            rules,
            bounds,
            status: Status::Recovering,
            generation: 0,
            epoch,
            next: synced.next(),
            synced,
            sealed_after: synced,
            taken: place.taken,
            ticks: 0,
            mint: Mint::after(place.taken),
            videos: BTreeMap::new(),
            hot_bytes: 0,
            hand: Arc::from(""),
            parked: 0,
            pack: Vec::new(),
            pack_bytes: 0,
            pack_since: 0,
            open_waiters: Vec::new(),
            waiters: VecDeque::new(),
            changed: VecDeque::new(),
            counting: VecDeque::new(),
            dirty: VecDeque::new(),
            unrested: BTreeMap::new(),
            lag: Lag::default(),
            held: VecDeque::new(),
            flights: 0,
            draining: false,
        }
    }

    /// An owner of the same stream that knows nothing yet: to be recovered, and
    /// then put in the place of this one. What this one asked for is void.
    pub fn successor(&self) -> Self {
        let place = Place { epoch: self.epoch, seq: Seq::ZERO, taken: self.taken };
        let (rules, bounds) = (Arc::clone(&self.rules), self.bounds.clone());
        let fresh = Self::new(self.stream, self.epoch, self.synced, place, rules, bounds);
        Self { generation: self.generation + 1, ticks: self.ticks, ..fresh }
    }

    /// Whose outcomes.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// In which epoch it logs.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The last number that is safe.
    pub fn synced_through(&self) -> Seq {
        self.synced
    }

    /// Carries out one call about `video`, after those that came before it.
    pub fn ask(
        &mut self,
        now: Millis,
        video: &str,
        op: Op,
        waiter: W,
        effects: &mut Vec<Effect<W>>,
    ) {
        let hot = match self.videos.get(video) {
            Some(State::Hot(hot)) => hot.as_deref(),
            _ => None,
        };
        let from_memory = hot.is_some() && op.reads_memory();
        // A read of a video in memory costs none, however little is left.
        let admitted = if from_memory { self.running() } else { self.admit(!op.is_read()) };
        if let Err(refusal) = admitted {
            effects.push(Effect::Answer(waiter, Answer::Refused(refusal)));
            return;
        }
        self.take(now);
        if from_memory {
            self.answer_from_memory(video, &op, waiter, effects);
        } else {
            self.queue_call(video, op, waiter, effects);
        }
        self.settle(effects);
    }

    fn answer_from_memory(
        &mut self,
        video: &str,
        op: &Op,
        waiter: W,
        effects: &mut Vec<Effect<W>>,
    ) {
        let last = self.last();
        let Some(State::Hot(Some(hot))) = self.videos.get_mut(video) else { return };
        hot.used = SECOND_CHANCES;
        let answer = rules::read(&hot.video, op, last);
        if broken!(ReadAheadOfSync) {
            return effects.push(Effect::Answer(waiter, answer));
        }
        self.answer(waiter, answer, effects);
    }

    fn queue_call(&mut self, video: &str, op: Op, waiter: W, effects: &mut Vec<Effect<W>>) {
        self.parked += 1;
        match self.videos.get_mut(video) {
            Some(State::Hot(Some(hot))) => {
                let (progress, answer) = (Progress::default(), None);
                hot.calls.push_back(Call { op, waiter, progress, answer });
                if hot.reading.is_empty() {
                    self.run(video, effects);
                }
            }
            Some(State::Waiting(waiting)) => {
                waiting.parked.push_back((op, waiter));
                self.load(video, effects);
            }
            Some(State::Hot(None)) => unreachable!("a step puts back what it works on"),
            None => {
                let mut waiting = Waiting::default();
                waiting.parked.push_back((op, waiter));
                self.hot_bytes += waiting.bytes() + video.len();
                self.videos.insert(video.into(), State::Waiting(Box::new(waiting)));
                self.load(video, effects);
            }
        }
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
        let mut told = None;
        while self.changed.front().is_some_and(|(seq, _)| *seq <= self.synced) {
            if let Some((seq, video)) = self.changed.pop_front() {
                // A run of changes of one video is told once, with its last.
                match &mut told {
                    Some((last, of)) if *of == video => *last = seq,
                    _ => {
                        if let Some((seq, video)) = told.replace((seq, video)) {
                            effects.push(Effect::Changed(video, seq));
                        }
                    }
                }
            }
        }
        effects.extend(told.map(|(seq, video)| Effect::Changed(video, seq)));
        self.release_held(effects);
        self.settle(effects);
    }

    /// Time has passed: tell counts, write what is due.
    pub fn tick(&mut self, now: Millis, ticks: u64, effects: &mut Vec<Effect<W>>) {
        self.take(now);
        self.ticks = self.ticks.max(ticks);
        if self.running().is_ok() {
            self.tell_counts();
        }
        self.settle(effects);
        if self.pack.is_empty() && self.running().is_ok() {
            self.plan_flushes(effects);
        }
        self.evict();
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

    /// Videos of which something is not at rest.
    pub fn unrested_videos(&self) -> impl Iterator<Item = &Arc<str>> {
        self.videos.iter().filter_map(|(name, state)| match state {
            State::Hot(Some(hot)) if hot.dirty.is_none() => None,
            State::Waiting(waiting) if waiting.overlay.is_empty() => None,
            _ => Some(name),
        })
    }

    /// Figures.
    pub fn stats(&self) -> Stats {
        Stats {
            videos: self.videos.len(),
            hot_bytes: self.hot_bytes,
            dirty_videos: self.unrested.values().map(|n| *n as usize).sum(),
            lag: self.place().map_or(0, |place| self.synced.0 - place.seq.0),
            lag_bytes: self.lag.bytes(),
            parked: self.parked,
            waiting: self.waiters.len() + self.open_waiters.len(),
        }
    }

    /// Whether anything is taken at all.
    fn running(&self) -> Result<(), Refusal> {
        match &self.status {
            Status::Running => Ok(()),
            Status::Recovering => Err(Refusal::Overloaded("the partition is recovering")),
            Status::Failed(error) => Err(Refusal::ReadOnly(error.to_string())),
        }
    }

    /// Whether one more call may come in, which may be logged or not.
    fn admit(&mut self, logged: bool) -> Result<(), Refusal> {
        self.running()?;
        if logged && self.lag.bytes() > self.bounds.lag_bytes_max {
            self.rested();
            if self.lag.bytes() > self.bounds.lag_bytes_max {
                return Err(Refusal::Overloaded("too much is logged that is not yet at rest"));
            }
        }
        if self.parked >= self.bounds.parked_max {
            return Err(Refusal::Overloaded("too many calls wait for rows to be read"));
        }
        if self.hot_bytes > self.bounds.hot_bytes_max {
            self.evict();
            if self.hot_bytes > self.bounds.hot_bytes_max / 4 * 5 {
                return Err(Refusal::Overloaded("memory is full of changes not yet at rest"));
            }
        }
        if self.pack_bytes > self.bounds.pack_bytes_max * 4 {
            return Err(Refusal::Overloaded("the log does not keep up"));
        }
        Ok(())
    }

    /// The owner's time: follows `now`, never falls.
    fn take(&mut self, now: Millis) -> Millis {
        self.taken = self.taken.max(now);
        self.taken
    }

    /// The number of the last outcome, synced or not.
    fn last(&self) -> Seq {
        self.next.plus(self.pack.len() as u64).prev()
    }

    /// Answers now, or when all that was decided so far is synced.
    fn answer(&mut self, waiter: W, answer: Answer, effects: &mut Vec<Effect<W>>) {
        if !self.pack.is_empty() {
            self.open_waiters.push((waiter, answer));
        } else if self.synced < self.next.prev() {
            self.waiters.push_back((self.next.prev(), waiter, answer));
        } else {
            effects.push(Effect::Answer(waiter, answer));
        }
    }

    /// Adds an outcome to the pack and applies it to its video.
    fn log(
        &mut self,
        name: &Arc<str>,
        hot: &mut Hot<W>,
        outcome: &Outcome,
        effects: &mut Vec<Effect<W>>,
    ) {
        let bytes = outcome.encode();
        let record = bytes.len() + name.len() + RECORD_BYTES;
        if self.pack.len() + 1 >= PACK_RECORDS_MAX || self.pack_bytes + record > PACK_BYTES_MAX {
            self.seal(effects);
        }
        if self.pack.is_empty() {
            self.pack_since = self.ticks;
        }
        self.taken = self.taken.max(outcome.taken);
        let seq = self.last().next();
        let mut delta = Rest::default();
        hot.video.apply(seq, outcome, &self.rules.keys, &mut delta);
        hot.reads.forget(&delta.rows);
        let dirty = hot.dirty.get_or_insert_default();
        dirty.rest.merge(delta);
        if dirty.from.is_none() {
            dirty.from = Some(self.next);
            dirty.since_ticks = self.ticks;
            *self.unrested.entry(self.next).or_default() += 1;
            self.dirty.push_back((self.next, Arc::clone(name)));
        }
        if !hot.counting && outcome.changes.iter().any(tier::is_counted) {
            hot.counting = true;
            self.counting.push_back((self.ticks, Arc::clone(name)));
        }
        match self.changed.back_mut() {
            Some((last, video)) if video == name && *last >= self.next => *last = seq,
            _ => self.changed.push_back((seq, Arc::clone(name))),
        }
        self.pack_bytes += record;
        self.pack.push(Packed { taken: self.taken, video: Arc::clone(name), bytes });
    }

    /// Logs the open pack if it is time. While one batch is being synced a
    /// second one may wait for the next sync, and a third one gathers: this is
    /// the group commit.
    fn settle(&mut self, effects: &mut Vec<Effect<W>>) {
        if self.pack.is_empty() || self.running().is_err() {
            return;
        }
        let free = self.synced >= self.sealed_after;
        let old = self.ticks.saturating_sub(self.pack_since) >= PACK_AGE_MS;
        let wanted = !self.open_waiters.is_empty() || old || self.draining;
        if (free && wanted) || self.pack_bytes >= self.bounds.pack_bytes_max {
            self.seal(effects);
            self.plan_flushes(effects);
        }
    }

    fn seal(&mut self, effects: &mut Vec<Effect<W>>) {
        self.sealed_after = self.next.prev();
        let mut batch = BatchBuilder::new(self.stream, self.epoch, self.next);
        for Packed { taken, video, bytes } in self.pack.drain(..) {
            batch.push(taken, video.as_bytes(), &bytes);
        }
        self.pack_bytes = 0;
        self.next = self.next.plus(batch.len() as u64);
        let last = self.next.prev();
        let waiters = self.open_waiters.drain(..);
        self.waiters.extend(waiters.map(|(waiter, answer)| (last, waiter, answer)));
        if !batch.is_empty() {
            self.lag.logged(last, batch.len(), batch.bytes());
            effects.push(Effect::Append(batch));
        }
    }
}

/// How often the hand passes a video that was used before letting go.
const SECOND_CHANCES: u8 = 2;
/// What a record takes in a batch besides its value and its video, at most.
const RECORD_BYTES: usize = tideline_record::batch::RECORD_OVERHEAD_BYTES_MAX;
/// Outcomes of one pack, and their bytes: a batch of the log takes no more.
const PACK_RECORDS_MAX: usize = tideline_types::limits::BATCH_RECORDS_MAX;
const PACK_BYTES_MAX: usize = tideline_types::limits::BATCH_BYTES_MAX - (64 << 10);
/// How long outcomes that nobody waits for gather.
const PACK_AGE_MS: u64 = 200;

const _: () = assert!(
    tideline_types::limits::RECORD_VALUE_BYTES_MAX + (64 << 10)
        < tideline_types::limits::BATCH_BYTES_MAX
);
