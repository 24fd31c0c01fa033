//! How a partition comes to know what it knew: users from cold rows, outcomes
//! from the log, and a fresh start after a write that did not happen.
//!
//! Outcomes found in the log wait beside their user until the user is loaded;
//! those at or below what the rows have applied are skipped then. So a start
//! reads the log's tail and no rows at all, unless the tail is more than an
//! owner lets come about: then what was read so far is brought to rest first.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tideline_queue::view::Lag;
use tideline_store::{Commit, StoreError};
use tideline_types::{Millis, Seq};

use super::tier::DIRTY_BYTES;
use super::{
    Answer, Dirty, Effect, Hot, Owner, Parked, Refusal, SECOND_CHANCES, SlotId, Slots, State,
    Status, Waiting,
};
use crate::cold::{self, ColdUser, Image, Loaded};
use crate::kinds::Kinds;
use crate::mark::Verdict;
use crate::outcome::OutcomeRef;
use crate::pack::Pack;

/// Erases found in the log, by the keyed hash of their user.
pub type Erases = BTreeMap<[u8; 16], (Seq, Bytes)>;

impl<W> Owner<W> {
    /// Takes one outcome of the log into account, in order. An erase names its
    /// user by hash alone and is collected in `erases`.
    pub(crate) fn replay(
        &mut self,
        seq: Seq,
        time: Millis,
        key: &[u8],
        value: Bytes,
        erases: &mut Erases,
    ) -> Result<(), StoreError> {
        debug_assert!(matches!(self.status, Status::Recovering));
        self.take(time);
        let outcome = OutcomeRef::decode(&value).map_err(|error| self.damaged(seq, &error))?;
        if let OutcomeRef::Erase { .. } = outcome {
            let hash = key.try_into().map_err(|_| self.damaged(seq, &"an erase without a hash"))?;
            erases.insert(hash, (seq, value));
            return Ok(());
        }
        let user = std::str::from_utf8(key).map_err(|error| self.damaged(seq, &error))?;
        self.remember(user, seq, value);
        Ok(())
    }

    /// After the replay: gives each erase to its user. Returns those whose
    /// users the log does not name; the caller finds them among the rows and
    /// calls [`Owner::remember_erase`].
    pub(crate) fn match_erases(&mut self, mut erases: Erases) -> Erases {
        let named: Vec<(SlotId, [u8; 16])> = self
            .slots()
            .filter_map(|slot| Some((slot, self.rules.user_hash(self.slots.name(slot)?))))
            .collect();
        for (slot, hash) in named {
            if let Some((seq, value)) = erases.remove(&hash) {
                self.remember_at(slot, seq, value);
            }
        }
        erases
    }

    /// An erase of a user whom only the rows name.
    pub(crate) fn remember_erase(&mut self, user: &str, seq: Seq, value: Bytes) {
        self.remember(user, seq, value);
    }

    /// The log's batch up to `through` has been replayed.
    pub(crate) fn replayed(&mut self, through: Seq, records: usize, bytes: usize) {
        self.lag.logged(through, records, bytes);
    }

    /// Whether a replay holds more than an owner ever lets come in.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.hot_bytes > self.options.hot_bytes_max / 4 * 5
            || self.lag.bytes() > self.options.lag_bytes_max / 4 * 5
    }

    /// Every number that a user may have.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SlotId> + use<W> {
        (0..self.slots.numbers()).map(SlotId)
    }

    /// The user of that number.
    pub(crate) fn user(&self, slot: SlotId) -> Option<&str> {
        self.slots.name(slot)
    }

    /// Takes a user of whom the log told something out of memory; what is to
    /// be committed for that. `through` is the last number replayed.
    pub(crate) fn lay_to_rest(
        &mut self,
        slot: SlotId,
        cold: ColdUser,
        through: Seq,
    ) -> Result<Vec<Commit>, StoreError> {
        let Some((user, State::Waiting(waiting))) = self.slots.entry_mut(slot) else {
            unreachable!("nobody is loaded during a replay")
        };
        let (Hot { timeline, dirty, .. }, applied) = fold(cold, waiting, &self.rules.kinds)?;
        let commits = dirty.map(|dirty| {
            let (touched, erased) = (&dirty.touched, dirty.erased);
            // The rows may be ahead of what has been replayed.
            let applied = (self.epoch, applied.max(through));
            let image = Image { user, timeline: &timeline, touched, erased, applied };
            cold::commits(&image, self.stream.partition, &self.rules, self.taken)
        });
        self.forget(slot);
        Ok(commits.unwrap_or_default())
    }

    /// Every outcome up to `through` is in a durable row.
    pub(crate) fn laid_to_rest(&mut self, through: Seq) {
        self.lag.rested(through);
    }

    /// The replay is over: calls are taken from now on.
    pub(crate) fn recovered(&mut self) {
        let mut firsts: Vec<(Seq, SlotId)> = (0..self.slots.numbers())
            .filter_map(|at| match self.slots.get(SlotId(at))? {
                State::Waiting(waiting) => Some((waiting.overlay.first()?.0, SlotId(at))),
                State::Hot(_) => None,
            })
            .collect();
        firsts.sort_unstable();
        for (from, _) in &firsts {
            *self.unrested.entry(*from).or_default() += 1;
        }
        self.dirty = firsts.into();
        self.status = Status::Running;
    }

    /// The log could not take the batches from `from` on, and they are
    /// nowhere: everybody who waits is refused, and what is in memory is void.
    /// The caller recovers an [`Owner::successor`].
    pub fn dropped(&mut self, from: Seq, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        assert_eq!(self.synced.next(), from, "what is dropped follows what is synced");
        self.refuse_all(&Refusal::from(error), effects);
        self.next = self.synced.next();
        self.sealed_after = self.synced;
        self.pack = Pack::default();
        self.held.clear();
        self.status = Status::Recovering;
    }

    /// The log took a fault: nothing is taken until the server starts again.
    pub fn failed(&mut self, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        self.refuse_all(&Refusal::ReadOnly(error.to_string()), effects);
        self.held.clear();
        self.status = Status::Failed(error.clone());
    }

    /// The user's cold rows are here, or cannot be read.
    pub fn loaded(
        &mut self,
        now: Millis,
        slot: SlotId,
        generation: u32,
        rows: Result<ColdUser, StoreError>,
        effects: &mut Vec<Effect<W>>,
    ) {
        if generation != self.generation || !matches!(self.status, Status::Running) {
            return;
        }
        let now = self.take(now);
        let Some(State::Waiting(waiting)) = self.slots.get_mut(slot) else { return };
        let folded = rows.and_then(|cold| fold(cold, waiting, &self.rules.kinds));
        let mut parked = std::mem::take(&mut waiting.parked);
        self.parked -= parked.len();
        match folded {
            Ok((hot, _)) => {
                self.wake(slot, hot);
                self.rested();
                self.serve(slot, now, parked, effects);
            }
            Err(error) => {
                waiting.loading = false;
                let first = waiting.overlay.first().map(|(seq, _)| *seq);
                let refusal = Refusal::from(&error);
                while let Some(parked) = parked.pop_front() {
                    self.refuse(parked, &refusal, effects);
                }
                match first {
                    // The flush that asked for the user has to ask again.
                    Some(first) => self.dirty.push_back((first, slot)),
                    None => self.forget(slot),
                }
            }
        }
        self.settle(effects);
    }

    /// Puts a loaded user in the place of the one who waited.
    fn wake(&mut self, slot: SlotId, mut hot: Hot) {
        let Some(State::Waiting(waiting)) = self.slots.get(slot) else { return };
        self.hot_bytes -= waiting.bytes();
        self.hot_bytes += hot.timeline.bytes();
        let first = waiting.overlay.first().map(|(seq, _)| *seq);
        match (&mut hot.dirty, first) {
            (Some(dirty), Some(first)) => {
                dirty.from = Some(first);
                dirty.since_ticks = self.ticks.saturating_sub(self.options.flush_after_ms);
                self.hot_bytes += DIRTY_BYTES;
                self.dirty.push_front((first, slot));
            }
            // Void rows are durably gone before the place passes their erase,
            // so an overlay without it finds none; they would wait for the
            // user's next change.
            (Some(_), None) => self.hot_bytes += DIRTY_BYTES,
            (None, Some(first)) => super::tier::leave(&mut self.unrested, first),
            (None, None) => {}
        }
        if let Some(state) = self.slots.get_mut(slot) {
            *state = State::Hot(hot);
        }
    }

    /// Serves what waited for the user, in order of arrival.
    fn serve(
        &mut self,
        slot: SlotId,
        now: Millis,
        parked: VecDeque<Parked<W>>,
        effects: &mut Vec<Effect<W>>,
    ) {
        for parked in parked {
            match parked {
                Parked::Call { op, waiter } => self.call(slot, op, now, waiter, effects),
                Parked::Mark { job, place } => {
                    let Some(held) = self.jobs.get(&job) else { continue };
                    let (marks, shift_ms, path) = (held.marks.clone(), held.shift_ms, held.path);
                    let verdict = self.decide(slot, &marks, place, shift_ms, now, path);
                    let verdict = verdict.expect("the user was just loaded");
                    self.note(job, place, verdict, effects);
                }
            }
        }
    }

    /// Writes a verdict down; the last one answers the job.
    fn note(&mut self, at: u64, place: u32, verdict: Verdict, effects: &mut Vec<Effect<W>>) {
        let Some(job) = self.jobs.get_mut(&at) else { return };
        job.verdicts.push((place, verdict));
        job.left -= 1;
        if job.left == 0
            && let Some(job) = self.jobs.remove(&at)
        {
            self.answer(job.waiter, Answer::Verdicts(job.verdicts), job.ack, effects);
        }
    }

    /// Refuses one parked mark's whole write, or one parked call. What the
    /// write has decided for other users stays decided and is logged: the
    /// caller may send it again.
    fn refuse(&mut self, parked: Parked<W>, refusal: &Refusal, effects: &mut Vec<Effect<W>>) {
        let waiter = match parked {
            Parked::Call { waiter, .. } => Some(waiter),
            Parked::Mark { job, .. } => self.jobs.remove(&job).map(|job| job.waiter),
        };
        if let Some(waiter) = waiter {
            effects.push(Effect::Answer(waiter, Answer::Refused(refusal.clone())));
        }
    }

    fn refuse_all(&mut self, refusal: &Refusal, effects: &mut Vec<Effect<W>>) {
        let mut refused: Vec<W> = Vec::new();
        refused.extend(self.waiters.drain(..).map(|(_, waiter, _)| waiter));
        refused.extend(self.open_waiters.drain(..).map(|(waiter, _)| waiter));
        for at in (0..self.slots.numbers()).map(SlotId) {
            if let Some(State::Waiting(waiting)) = self.slots.get_mut(at) {
                let parked = std::mem::take(&mut waiting.parked);
                refused.extend(parked.into_iter().filter_map(|parked| match parked {
                    Parked::Call { waiter, .. } => Some(waiter),
                    Parked::Mark { .. } => None,
                }));
            }
        }
        refused.extend(std::mem::take(&mut self.jobs).into_values().map(|job| job.waiter));
        self.parked = 0;
        let answers = refused.into_iter();
        effects.extend(answers.map(|w| Effect::Answer(w, Answer::Refused(refusal.clone()))));
    }

    fn remember(&mut self, user: &str, seq: Seq, value: Bytes) {
        let slot = self.slots.find(user).unwrap_or_else(|| {
            let empty = Waiting::default();
            self.hot_bytes += empty.bytes() + Slots::<State<W>>::bytes_of(user);
            self.slots.insert(user, State::Waiting(Box::new(empty)))
        });
        self.remember_at(slot, seq, value);
    }

    /// Adds an outcome to a user's overlay, at its place in order.
    fn remember_at(&mut self, slot: SlotId, seq: Seq, value: Bytes) {
        let Some(State::Waiting(waiting)) = self.slots.get_mut(slot) else {
            unreachable!("nobody is loaded during a replay")
        };
        let bytes = value.len() + Lag::RECORD_BYTES;
        let at = waiting.overlay.partition_point(|(there, _)| *there < seq);
        waiting.overlay.insert(at, (seq, value));
        waiting.overlay_bytes += bytes;
        self.hot_bytes += bytes;
    }

    fn damaged(&self, seq: Seq, what: &dyn std::fmt::Display) -> StoreError {
        StoreError::Damaged {
            file: format!("history/{}", self.stream.partition).into(),
            offset: seq.0,
            what: format!("outcome: {what}"),
        }
    }
}

/// A user's cold rows with the log's outcomes above them, and the last outcome
/// that the rows have applied. Rows that an erase
/// made void come to rest anew, and so does every erase of the overlay: it is
/// noted under another key, which may not have come through the same crash.
fn fold<W>(cold: ColdUser, waiting: &Waiting<W>, kinds: &Kinds) -> Result<(Hot, Seq), StoreError> {
    let Loaded { mut timeline, applied, void: mut touched } = cold::load(&cold, kinds)?;
    let mut any = !touched.is_empty();
    let mut erased = None;
    for (seq, value) in &waiting.overlay {
        let bad = |what: String| StoreError::Damaged { file: "history".into(), offset: 0, what };
        let outcome = OutcomeRef::decode(value).map_err(|error| bad(error.to_string()))?;
        let is_erase = matches!(outcome, OutcomeRef::Erase { .. });
        if is_erase {
            erased = Some(*seq);
        }
        if *seq > applied {
            timeline
                .apply(&outcome, kinds, &mut touched)
                .map_err(|error| bad(error.to_string()))?;
        }
        any |= is_erase || *seq > applied;
    }
    let dirty = any.then(|| Box::new(Dirty { touched, erased, ..Dirty::default() }));
    Ok((Hot { timeline, dirty, used: SECOND_CHANCES }, applied))
}
