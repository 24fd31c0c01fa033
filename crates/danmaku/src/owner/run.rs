//! Calls of one video, one after the other, each as far as the rows that are
//! known let it come.

use std::sync::Arc;

use tideline_store::StoreError;
use tideline_types::Millis;

use super::{Effect, Hot, Owner, SECOND_CHANCES, State};
use crate::ask::{Answer, Refusal};
use crate::outcome::{Act, Change, Outcome};
use crate::reads::{self, Found, Read};
use crate::rows::Rows;
use crate::rules::{Decision, Desk, Settle};

/// How far a call has come.
enum Turn {
    /// To its answer.
    Done(Answer),
    /// To a row that is not known.
    Blocked,
}

impl<W> Owner<W> {
    /// Carries out what waits for `video`, which is loaded.
    pub(super) fn run(&mut self, video: &str, effects: &mut Vec<Effect<W>>) {
        let Some((name, State::Hot(slot))) = self.videos.get_key_value(video) else { return };
        debug_assert!(slot.is_some());
        let name = Arc::clone(name);
        let Some(mut hot) = self.lift(&name) else { return };
        hot.used = SECOND_CHANCES;
        while let Some(answer) = self.turn(&name, &mut hot, effects) {
            match answer {
                Turn::Done(answer) => {
                    let Some(call) = hot.calls.pop_front() else { break };
                    self.parked -= 1;
                    self.answer(call.waiter, answer, effects);
                }
                Turn::Blocked => {
                    self.read_rows(&name, &mut hot, effects);
                    if !hot.reading.is_empty() {
                        break;
                    }
                }
            }
        }
        if hot.calls.is_empty() {
            hot.reads.clear();
        }
        self.put_back(&name, hot);
    }

    /// Takes a video out for a step that works on it.
    fn lift(&mut self, name: &str) -> Option<Box<Hot<W>>> {
        match self.videos.get_mut(name) {
            Some(State::Hot(slot)) => slot.take(),
            _ => None,
        }
    }

    /// Puts a video back after a step, and counts its bytes anew.
    fn put_back(&mut self, name: &Arc<str>, mut hot: Box<Hot<W>>) {
        self.hot_bytes = self.hot_bytes + hot.bytes() - hot.counted;
        hot.counted = hot.bytes();
        if let Some(dirty) = hot.dirty.as_deref()
            && let Some(from) = dirty.from.filter(|_| dirty.rest.bytes > self.bounds.flush_bytes)
            && dirty.flight.is_none()
            && self.dirty.front().is_none_or(|first| (first.0, &first.1) != (from, name))
        {
            self.dirty.push_front((from, Arc::clone(name)));
        }
        if let Some(State::Hot(slot)) = self.videos.get_mut(name) {
            *slot = Some(hot);
        }
    }

    /// Brings the first call as far as it comes; `None` if there is none.
    fn turn(
        &mut self,
        name: &Arc<str>,
        hot: &mut Hot<W>,
        effects: &mut Vec<Effect<W>>,
    ) -> Option<Turn> {
        loop {
            let next = self.last().next();
            let mut desk = Desk {
                name,
                video: &mut hot.video,
                reads: &mut hot.reads,
                mint: &mut self.mint,
                now: self.taken,
                next,
            };
            // A read needs no queue at rest, but one within the limit, which
            // may have been another when the video was last in memory.
            let reads = hot.calls.front().is_none_or(|call| call.op.is_read());
            let settled = match reads && !desk.video.top().is_over() {
                true => Settle::Rest,
                false => self.rules.settle(&mut desk),
            };
            match settled {
                Settle::Log(outcome) => self.log(name, hot, &outcome, effects),
                Settle::Wait => return Some(Turn::Blocked),
                Settle::Damaged(what) => {
                    return Some(Turn::Done(Answer::Refused(Refusal::Damaged(what.into()))));
                }
                Settle::Rest => {
                    let call = hot.calls.front_mut()?;
                    if let Some(answer) = call.answer.take() {
                        return Some(Turn::Done(answer));
                    }
                    match self.rules.decide(&mut desk, &call.op, &mut call.progress) {
                        Decision::Wait => return Some(Turn::Blocked),
                        Decision::Again(outcome) => self.log(name, hot, &outcome, effects),
                        Decision::Done(answer, None) => return Some(Turn::Done(answer)),
                        Decision::Done(answer, Some(outcome)) => {
                            call.answer = Some(answer);
                            self.log(name, hot, &outcome, effects);
                        }
                    }
                }
            }
        }
    }

    /// Reads what the first call misses: changes that are not at rest first,
    /// then the table. What the calls behind it are going to miss is read with
    /// it.
    fn read_rows(&mut self, name: &Arc<str>, hot: &mut Hot<W>, effects: &mut Vec<Effect<W>>) {
        let mut wanted = hot.reads.take_wanted();
        if wanted.is_empty() {
            return;
        }
        self.ask_ahead(name, hot);
        wanted.extend(hot.reads.take_wanted());
        for read in wanted {
            let layers = hot.layers();
            match reads::merge(&read, &layers, None) {
                Some(found) => hot.reads.give(read, found),
                None => hot.reading.push(read),
            }
        }
        if hot.reading.is_empty() {
            return;
        }
        let layers = hot.layers();
        let reads = hot.reading.iter().map(|read| reads::enlarged(read, &layers)).collect();
        let (video, generation) = (Arc::clone(name), self.generation);
        effects.push(Effect::Read { video, generation, reads });
    }

    /// Lets calls that wait behind the first say what they will miss. Nothing
    /// that they decide is kept.
    fn ask_ahead(&mut self, name: &Arc<str>, hot: &mut Hot<W>) {
        let Hot { calls, video, reads, .. } = hot;
        let mut mint = self.mint;
        for call in calls.iter_mut().skip(1).take(AHEAD_CALLS) {
            let (now, next) = (self.taken, self.next);
            let mut desk = Desk { name, video, reads, mint: &mut mint, now, next };
            if call.op.is_foreseeable() {
                _ = self.rules.decide(&mut desk, &call.op, &mut Default::default());
            }
        }
    }

    /// Rows that were asked for, in that order, are here, or cannot be read.
    pub fn read(
        &mut self,
        now: Millis,
        video: &str,
        generation: u32,
        found: Result<Vec<Found>, StoreError>,
        effects: &mut Vec<Effect<W>>,
    ) {
        if generation != self.generation || self.running().is_err() {
            return;
        }
        self.take(now);
        let Some(mut hot) = self.lift(video) else { return };
        let reading = std::mem::take(&mut hot.reading);
        match found {
            Ok(found) => {
                for (read, found) in reading.into_iter().zip(found) {
                    let merged = reads::merge(&read, &hot.layers(), Some(found));
                    hot.reads.give(read, merged.unwrap_or_default());
                }
            }
            Err(error) => {
                hot.reads.clear();
                if let Some(call) = hot.calls.pop_front() {
                    self.parked -= 1;
                    let refused = Answer::Refused(Refusal::from(&error));
                    // What it had logged stays decided.
                    self.answer(call.waiter, call.answer.unwrap_or(refused), effects);
                }
            }
        }
        hot.landed.clear();
        if let Some(State::Hot(slot)) = self.videos.get_mut(video) {
            *slot = Some(hot);
        }
        self.run(video, effects);
        self.settle(effects);
    }

    /// Logs the counts of videos that changed a while ago.
    pub(super) fn tell_counts(&mut self) {
        while self.counting.front().is_some_and(|(since, _)| {
            self.draining || self.ticks.saturating_sub(*since) >= self.bounds.count_after_ms
        }) {
            let Some((_, name)) = self.counting.pop_front() else { return };
            let Some(mut hot) = self.lift(&name) else { continue };
            hot.counting = false;
            let (total, shown) = (hot.video.total(), hot.video.shown_count());
            let work = hot.video.work().cloned();
            let changes = vec![Change::Count { total, shown, work }];
            let count = Outcome { taken: self.taken, act: Act::Count, actor: None, changes };
            let mut effects = Vec::new();
            self.log(&name, &mut hot, &count, &mut effects);
            self.put_back(&name, hot);
            if !effects.is_empty() {
                unreachable!("a count does not fill a pack");
            }
        }
    }
}

impl<W> Hot<W> {
    /// Changes that the table may not have, the latest first.
    fn layers(&self) -> Vec<&Rows> {
        let mut layers = Vec::with_capacity(3);
        if let Some(dirty) = self.dirty.as_deref() {
            layers.push(&dirty.rest.rows);
            layers.extend(dirty.flight.as_ref().map(|flight| &flight.rest.rows));
        }
        layers.push(&self.landed);
        layers
    }
}

/// Calls that may say ahead what they will miss.
const AHEAD_CALLS: usize = 64;

const _: () = assert!(size_of::<Read>() < 128);
