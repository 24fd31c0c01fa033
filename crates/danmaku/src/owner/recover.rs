//! How a partition comes to know what it knew: videos from rows, outcomes from
//! the log, and a fresh start after a write that did not happen.
//!
//! Outcomes found in the log wait beside their video until it is loaded; those
//! at or below what the rows have applied are skipped then. So a start reads
//! the log's tail and no rows at all, unless the tail is more than an owner lets
//! come about: then what was read so far is brought to rest first.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tideline_queue::view::Lag;
use tideline_store::{Commit, StoreError};
use tideline_types::{Millis, Seq};

use super::tier::{image, leave};
use super::{Call, Dirty, Effect, Hot, Logged, Owner, SECOND_CHANCES, State, Status, Waiting};
use crate::ask::{Answer, Op, Refusal};
use crate::cold::{self, ColdVideo};
use crate::id::Mint;
use crate::outcome::Outcome;
use crate::reads::Reads;
use crate::rows::Rows;
use crate::rules::{Progress, Rules};
use crate::video::{Rest, Video};

impl<W> Owner<W> {
    /// Takes one outcome of the log into account, in order.
    pub(crate) fn replay(
        &mut self,
        seq: Seq,
        time: Millis,
        key: &[u8],
        value: Bytes,
    ) -> Result<(), StoreError> {
        debug_assert!(matches!(self.status, Status::Recovering));
        self.take(time);
        let damaged = |what: &dyn std::fmt::Display| StoreError::Damaged {
            file: format!("danmaku/{}", self.stream.partition).into(),
            offset: seq.0,
            what: format!("outcome: {what}"),
        };
        let outcome = Outcome::decode(&value).map_err(|error| damaged(&error))?;
        let elsewhere = Video::is_elsewhere(&outcome);
        let video = std::str::from_utf8(key).map_err(|error| damaged(&error))?;
        let bytes = value.len() + Lag::RECORD_BYTES;
        self.hot_bytes += bytes;
        if !self.videos.contains_key(video) {
            let waiting = Waiting::default();
            self.hot_bytes += waiting.bytes() + video.len();
            self.videos.insert(video.into(), State::Waiting(Box::new(waiting)));
        }
        if let Some(State::Waiting(waiting)) = self.videos.get_mut(video) {
            waiting.overlay_bytes += bytes;
            waiting.overlay.push(Logged { seq, value, elsewhere });
        }
        Ok(())
    }

    /// The log's batch up to `through` has been replayed.
    pub(crate) fn replayed(&mut self, through: Seq, records: usize, bytes: usize) {
        self.lag.logged(through, records, bytes);
    }

    /// Whether a replay holds more than an owner ever lets come in.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.hot_bytes > self.bounds.hot_bytes_max / 4 * 5
            || self.lag.bytes() > self.bounds.lag_bytes_max / 4 * 5
    }

    /// Every video of which the log told something.
    pub(crate) fn replayed_videos(&self) -> Vec<Arc<str>> {
        self.videos.keys().cloned().collect()
    }

    /// Takes a video of which the log told something out of memory; what is to
    /// be committed for that. `through` is the last number replayed.
    pub(crate) fn lay_to_rest(
        &mut self,
        video: &str,
        cold: ColdVideo,
        through: Seq,
    ) -> Result<Vec<Commit>, StoreError> {
        let Some(State::Waiting(waiting)) = self.videos.get(video) else {
            unreachable!("nothing is loaded during a replay")
        };
        let Folded { video: in_memory, applied, rest } = fold(cold, waiting, &self.rules)?;
        // Its rows may be ahead of what has been replayed.
        let facts = in_memory.facts(self.epoch, applied.max(through));
        let partition = self.stream.partition;
        let commits = rest.map(|rest| image(video, &facts, &rest, partition, self.taken));
        self.forget(video);
        Ok(commits.unwrap_or_default())
    }

    /// Every outcome up to `through` is in a durable row.
    pub(crate) fn laid_to_rest(&mut self, through: Seq) {
        self.lag.rested(through);
    }

    /// The replay is over: calls are taken from now on.
    pub(crate) fn recovered(&mut self) {
        let first = |(name, state): (&Arc<str>, &State<W>)| match state {
            State::Waiting(waiting) => Some((waiting.overlay.first()?.seq, Arc::clone(name))),
            State::Hot(_) => None,
        };
        let mut firsts: Vec<(Seq, Arc<str>)> = self.videos.iter().filter_map(first).collect();
        firsts.sort_unstable();
        for (from, _) in &firsts {
            *self.unrested.entry(*from).or_default() += 1;
        }
        self.dirty = firsts.into();
        self.mint = Mint::after(self.taken);
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
        self.pack.clear();
        self.pack_bytes = 0;
        self.held.clear();
        self.changed.clear();
        self.status = Status::Recovering;
    }

    /// The log took a fault: nothing is taken until the server starts again.
    pub fn failed(&mut self, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        self.refuse_all(&Refusal::ReadOnly(error.to_string()), effects);
        self.held.clear();
        self.changed.clear();
        self.status = Status::Failed(error.clone());
    }

    fn refuse_all(&mut self, refusal: &Refusal, effects: &mut Vec<Effect<W>>) {
        let mut refused: Vec<W> = Vec::new();
        refused.extend(self.waiters.drain(..).map(|(_, waiter, _)| waiter));
        refused.extend(self.open_waiters.drain(..).map(|(waiter, _)| waiter));
        for state in self.videos.values_mut() {
            match state {
                State::Waiting(waiting) => {
                    refused.extend(waiting.parked.drain(..).map(|(_, waiter)| waiter));
                }
                State::Hot(Some(hot)) => {
                    refused.extend(hot.calls.drain(..).map(|call| call.waiter));
                }
                State::Hot(None) => {}
            }
        }
        self.parked = 0;
        let refuse = |waiter| Effect::Answer(waiter, Answer::Refused(refusal.clone()));
        effects.extend(refused.into_iter().map(refuse));
    }

    /// Asks for the video's rows, once.
    pub(super) fn load(&mut self, video: &str, effects: &mut Vec<Effect<W>>) {
        let Some((name, _)) = self.videos.get_key_value(video) else { return };
        let name = Arc::clone(name);
        if let Some(State::Waiting(waiting)) = self.videos.get_mut(video)
            && !waiting.loading
        {
            waiting.loading = true;
            effects.push(Effect::Load { video: name, generation: self.generation });
        }
    }

    /// The video's rows are here, or cannot be read.
    pub fn loaded(
        &mut self,
        now: Millis,
        video: &str,
        generation: u32,
        cold: Result<ColdVideo, StoreError>,
        effects: &mut Vec<Effect<W>>,
    ) {
        if generation != self.generation || self.running().is_err() {
            return;
        }
        self.take(now);
        let Some(State::Waiting(waiting)) = self.videos.get_mut(video) else { return };
        let folded = cold.and_then(|cold| fold(cold, waiting, &self.rules));
        let parked = std::mem::take(&mut waiting.parked);
        let first = waiting.overlay.first().map(|logged| logged.seq);
        match folded {
            Ok(folded) => {
                self.wake(video, folded.video, folded.rest, parked, first);
                self.rested();
                self.run(video, effects);
            }
            Err(error) => {
                waiting.loading = false;
                self.parked -= parked.len();
                let refusal = Refusal::from(&error);
                let refuse = |(_, w)| Effect::Answer(w, Answer::Refused(refusal.clone()));
                effects.extend(parked.into_iter().map(refuse));
                match first {
                    // The flush that asked for the video has to ask again.
                    Some(first) => self.dirty.push_back((first, video.into())),
                    None => self.forget(video),
                }
            }
        }
        self.settle(effects);
    }

    /// Puts a loaded video in the place of the one that waited.
    fn wake(
        &mut self,
        name: &str,
        video: Video,
        rest: Option<Rest>,
        parked: VecDeque<(Op, W)>,
        first: Option<Seq>,
    ) {
        let call = |(op, waiter)| Call { op, waiter, progress: Progress::default(), answer: None };
        let mut hot = Hot {
            video,
            dirty: None,
            calls: parked.into_iter().map(call).collect(),
            reads: Reads::default(),
            reading: Vec::new(),
            landed: Rows::new(),
            used: SECOND_CHANCES,
            counting: false,
            counted: 0,
        };
        let Some((name, _)) = self.videos.get_key_value(name) else { return };
        let name = Arc::clone(name);
        match (rest, first) {
            (Some(rest), Some(first)) => {
                let since_ticks = self.ticks.saturating_sub(self.bounds.flush_after_ms);
                let dirty = Dirty { rest, from: Some(first), since_ticks, flight: None };
                hot.dirty = Some(Box::new(dirty));
                self.dirty.push_front((first, Arc::clone(&name)));
            }
            (None, Some(first)) => leave(&mut self.unrested, first),
            (_, None) => {}
        }
        self.forget(&name);
        hot.counted = hot.bytes();
        self.hot_bytes += hot.counted;
        self.videos.insert(name, State::Hot(Some(Box::new(hot))));
    }
}

/// A video's rows with the log's outcomes above them.
struct Folded {
    video: Video,
    /// The last outcome that the rows have applied.
    applied: Seq,
    /// What is not at rest.
    rest: Option<Rest>,
}

fn fold<W>(cold: ColdVideo, waiting: &Waiting<W>, rules: &Rules) -> Result<Folded, StoreError> {
    let (mut video, applied) = cold::load(&cold, &rules.options)?;
    let mut rest = Rest::default();
    let mut any = false;
    for Logged { seq, value, elsewhere } in &waiting.overlay {
        // An import may have left many that are at rest whole.
        if *seq <= applied && !elsewhere {
            continue;
        }
        let outcome = Outcome::decode(value).map_err(|error| cold::damaged(&error.to_string()))?;
        if *seq > applied {
            video.apply(*seq, &outcome, &rules.keys, &mut rest);
            any = true;
        } else {
            Video::apply_elsewhere(*seq, &outcome, &rules.keys, &mut rest);
        }
    }
    // What was logged was decided under the limit and scope of then.
    video.top_mut().reordered();
    let any = any || !rest.users.is_empty() || !rest.due.is_empty() || !rest.works.is_empty();
    Ok(Folded { video, applied, rest: any.then_some(rest) })
}
