//! How a partition comes to know what it knew: videos from rows, outcomes from
//! the log, and a fresh start after a write that did not happen.
//!
//! Outcomes found in the log wait beside their video until it is loaded; those
//! at or below what the rows have applied are skipped then. So a start reads
//! the log's tail and no rows at all.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tideline_store::StoreError;
use tideline_types::{Millis, Seq};

use super::{
    Call, Dirty, Effect, Hot, OVERLAY_BYTES, Owner, SECOND_CHANCES, State, Status, Waiting,
};
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
        Outcome::decode(&value).map_err(|error| damaged(&error))?;
        let video = std::str::from_utf8(key).map_err(|error| damaged(&error))?;
        let bytes = value.len() + OVERLAY_BYTES;
        self.hot_bytes += bytes;
        if !self.videos.contains_key(video) {
            let waiting = Waiting::default();
            self.hot_bytes += waiting.bytes() + video.len();
            self.videos.insert(video.into(), State::Waiting(Box::new(waiting)));
        }
        if let Some(State::Waiting(waiting)) = self.videos.get_mut(video) {
            waiting.overlay_bytes += bytes;
            waiting.overlay.push((seq, value));
        }
        Ok(())
    }

    /// The replay is over: calls are taken from now on.
    pub(crate) fn recovered(&mut self) {
        let first = |(name, state): (&Arc<str>, &State<W>)| match state {
            State::Waiting(waiting) => Some((waiting.overlay.first()?.0, Arc::clone(name))),
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
        let first = waiting.overlay.first().map(|(seq, _)| *seq);
        match folded {
            Ok((video_in_memory, rest)) => {
                self.wake(video, video_in_memory, rest, parked, first);
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
            (None, Some(first)) => super::tier::leave(&mut self.unrested, first),
            (_, None) => {}
        }
        self.forget(&name);
        hot.counted = hot.bytes();
        self.hot_bytes += hot.counted;
        self.videos.insert(name, State::Hot(Some(Box::new(hot))));
    }
}

/// A video's rows with the log's outcomes above them; and what of these is not
/// at rest.
fn fold<W>(
    cold: ColdVideo,
    waiting: &Waiting<W>,
    rules: &Rules,
) -> Result<(Video, Option<Rest>), StoreError> {
    let (mut video, applied) = cold::load(&cold, &rules.options)?;
    let mut rest = Rest::default();
    let mut any = false;
    for (seq, value) in &waiting.overlay {
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
    let any = any || !rest.users.is_empty();
    Ok((video, any.then_some(rest)))
}
