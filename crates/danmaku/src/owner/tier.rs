//! Between memory and rest: which videos are written when, and which are let
//! go.
//!
//! An image of a video is taken only while no outcome stands in the open pack,
//! so it is the fold of everything below `next`; it is held until that is
//! synced. While an image flies, new changes gather for the next one.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use tideline_store::{Commit, Op as RowOp, Place, StoreError, TableName};
use tideline_types::{Millis, PartitionId, Seq};

use super::{Dirty, Effect, Flight, Flush, Hot, Owner, State, Status, Waiting};
use crate::due;
use crate::erase::{self, Erasing};
use crate::outcome::Change;
use crate::rows::{self, Facts};
use crate::video::Rest;
use crate::works;

impl<W> Owner<W> {
    /// Everything at or below this is in a durable row. `None` while the owner
    /// does not know, because it is recovering or has failed.
    pub fn place(&self) -> Option<Place> {
        if !matches!(self.status, Status::Running) {
            return None;
        }
        let first = self.unrested.first_key_value().map(|(seq, _)| seq.prev());
        let seq = first.unwrap_or(self.synced).min(self.synced);
        Some(Place { epoch: self.epoch, seq, taken: self.taken })
    }

    /// Forgets what of the log is at rest now.
    pub(super) fn rested(&mut self) {
        if let Some(place) = self.place() {
            self.lag.rested(place.seq);
        }
    }

    /// A flush has come to an end: durable, or not done.
    pub fn flushed(&mut self, video: &str, generation: u32, done: Result<(), StoreError>) {
        if generation != self.generation {
            return;
        }
        self.flights -= 1;
        let Some((name, _)) = self.videos.get_key_value(video) else { return };
        let name = Arc::clone(name);
        let Some(State::Hot(Some(hot))) = self.videos.get_mut(video) else { return };
        let Some(dirty) = hot.dirty.as_mut() else { return };
        let Some(flight) = dirty.flight.take() else { return };
        match done {
            Ok(()) => {
                leave(&mut self.unrested, flight.from);
                if !hot.reading.is_empty() {
                    hot.landed.extend(flight.rest.rows);
                }
                if dirty.from.is_none() {
                    hot.dirty = None;
                }
            }
            Err(_) => {
                if let Some(later) = dirty.from.replace(flight.from) {
                    leave(&mut self.unrested, later);
                }
                let later = std::mem::replace(&mut dirty.rest, flight.rest);
                dirty.rest.merge(later);
                self.dirty.push_front((flight.from, name));
            }
        }
        self.hot_bytes = self.hot_bytes + hot.bytes() - hot.counted;
        hot.counted = hot.bytes();
        self.rested();
    }

    /// Takes images of dirty videos that are due. Only while the pack is empty.
    pub(super) fn plan_flushes(&mut self, effects: &mut Vec<Effect<W>>) {
        debug_assert!(self.pack.is_empty());
        self.rested();
        let pressed = self.hot_bytes > self.bounds.hot_bytes_max / 4 * 3
            || self.lag.bytes() > self.bounds.lag_bytes_max / 2;
        let mut loads_left = LOADS_A_STEP;
        for _ in 0..self.dirty.len() {
            if self.flights >= self.bounds.flights_max {
                break;
            }
            let Some((from, name)) = self.dirty.front().cloned() else { break };
            match self.due(from, &name, pressed) {
                Due::Outdated => _ = self.dirty.pop_front(),
                Due::Later => break,
                Due::InFlight => self.dirty.rotate_left(1),
                Due::NotLoaded if loads_left == 0 => break,
                Due::NotLoaded => {
                    loads_left -= 1;
                    self.dirty.pop_front();
                    self.load(&name, effects);
                }
                Due::Now => {
                    self.dirty.pop_front();
                    self.take_image(&name);
                }
            }
        }
        self.release_held(effects);
    }

    fn due(&self, from: Seq, name: &str, pressed: bool) -> Due {
        match self.videos.get(name) {
            Some(State::Waiting(waiting)) => {
                match waiting.overlay.first().is_some_and(|first| first.seq == from) {
                    true if waiting.loading => Due::Outdated,
                    true => Due::NotLoaded,
                    false => Due::Outdated,
                }
            }
            Some(State::Hot(Some(hot))) => match hot.dirty.as_deref() {
                Some(dirty) if dirty.from == Some(from) => {
                    let age = self.ticks.saturating_sub(dirty.since_ticks);
                    let now = pressed
                        || self.draining
                        || age >= self.bounds.flush_after_ms
                        || dirty.rest.bytes > self.bounds.flush_bytes;
                    match (now, &dirty.flight) {
                        (false, _) => Due::Later,
                        (true, Some(_)) => Due::InFlight,
                        (true, None) => Due::Now,
                    }
                }
                _ => Due::Outdated,
            },
            _ => Due::Outdated,
        }
    }

    fn take_image(&mut self, name: &Arc<str>) {
        let through = self.next.prev();
        let (epoch, generation) = (self.epoch, self.generation);
        let Some(State::Hot(Some(hot))) = self.videos.get_mut(name) else { return };
        let facts = hot.video.facts(epoch, through);
        let Some(dirty) = hot.dirty.as_deref_mut() else { return };
        let Some(from) = dirty.from.take() else { return };
        let rest = std::mem::take(&mut dirty.rest);
        let commits = image(name, &facts, &rest, self.stream.partition, self.taken);
        dirty.flight = Some(Flight { rest, from });
        self.flights += 1;
        self.held.push_back((through, Flush { video: Arc::clone(name), generation, commits }));
    }

    /// Lets images go that are synced whole.
    pub(super) fn release_held(&mut self, effects: &mut Vec<Effect<W>>) {
        let early = broken!(FlushAheadOfSync);
        while self.held.front().is_some_and(|(through, _)| early || *through <= self.synced) {
            if let Some((_, flush)) = self.held.pop_front() {
                effects.push(Effect::Flush(flush));
            }
        }
    }

    /// Lets go of videos at rest while memory is over its bound: a clock with
    /// second chances, at most a few steps a call.
    pub(super) fn evict(&mut self) {
        let mut steps = 64;
        while self.hot_bytes > self.bounds.hot_bytes_max && steps > 0 && !self.videos.is_empty() {
            steps -= 1;
            let after = (Bound::Excluded(&*self.hand), Bound::Unbounded);
            let next = self.videos.range_mut::<str, _>(after).next();
            let Some((name, state)) = next else {
                self.hand = Arc::from("");
                continue;
            };
            self.hand = Arc::clone(name);
            let State::Hot(Some(hot)) = state else { continue };
            if hot.dirty.is_some() || !hot.calls.is_empty() {
                continue;
            }
            match hot.used {
                0 => {
                    let name = Arc::clone(&self.hand);
                    self.forget(&name);
                }
                _ => hot.used -= 1,
            }
        }
    }

    /// Lets go of one video.
    pub(super) fn forget(&mut self, name: &str) {
        let held = match self.videos.remove(name) {
            Some(State::Hot(Some(hot))) => hot.counted,
            Some(State::Waiting(waiting)) => waiting.bytes() + name.len(),
            _ => 0,
        };
        self.hot_bytes -= held;
    }
}

impl<W> Waiting<W> {
    /// Bytes that count against the budget, but for the name.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.overlay_bytes
    }
}

impl<W> Hot<W> {
    /// Bytes that count against the budget.
    pub(super) fn bytes(&self) -> usize {
        let dirty = self.dirty.as_deref().map_or(0, |dirty| {
            let flight = dirty.flight.as_ref().map_or(0, |flight| flight.rest.bytes);
            size_of::<Dirty>() + dirty.rest.bytes + flight
        });
        size_of::<Self>() + self.video.bytes() + dirty
    }
}

/// The writes that bring a video to rest, in order.
pub(super) fn image(
    name: &str,
    facts: &Facts,
    rest: &Rest,
    partition: PartitionId,
    taken: Millis,
) -> Vec<Commit> {
    let erasing = |(user, through): (&u64, &Seq)| {
        let (user, through) = (*user, *through);
        erase::note(&Erasing { partition, user, through, taken })
    };
    let mut commits: Vec<Commit> = rest.erased.iter().map(erasing).collect();
    commits.extend(rest.users.iter().map(|(user, has)| rows::note_user(*user, name, *has)));
    commits.extend(rest.due.iter().map(|(id, due)| due::note(partition, name, *id, *due)));
    commits.extend(rest.works.iter().map(|(work, count)| works::note(work, name, *count)));
    let put = |key: Bytes, value: Bytes| RowOp::Put { sort_key: key, value };
    let mut ops: Vec<RowOp> = rest
        .rows
        .iter()
        .map(|(key, value)| match value {
            Some(value) => put(key.clone(), value.clone()),
            None => RowOp::Delete { sort_key: key.clone() },
        })
        .collect();
    let partition_key: Bytes = rows::video_key(name).into();
    let facts = put(rows::FACTS_KEY.into(), facts.encode().into());
    if broken!(AppliedApart) {
        let partition_key = partition_key.clone();
        commits.push(Commit { table: TableName::Danmaku, partition_key, ops: vec![facts] });
    } else {
        ops.push(facts);
    }
    commits.push(Commit { table: TableName::Danmaku, partition_key, ops });
    commits
}

/// Whether a change is one of how many there are.
pub(super) fn is_counted(change: &Change) -> bool {
    match change {
        Change::New { .. } | Change::Gone { .. } | Change::Work { .. } => true,
        Change::Index { before, after, .. } => before.state != after.state,
        _ => false,
    }
}

/// Whether a dirty video is to be written.
enum Due {
    /// The entry does not speak of the video's present state.
    Outdated,
    /// Not yet, nor anybody behind.
    Later,
    /// When the image that flies has landed.
    InFlight,
    /// Must be loaded first.
    NotLoaded,
    /// Now.
    Now,
}

/// One video less has something unrested at `from`.
pub(super) fn leave(unrested: &mut BTreeMap<Seq, u32>, from: Seq) {
    if let Some(count) = unrested.get_mut(&from) {
        *count -= 1;
        if *count == 0 {
            unrested.remove(&from);
        }
    }
}

/// Videos that one step asks for, so that what the log held at a start comes to
/// rest without crowding callers out.
const LOADS_A_STEP: usize = 16;
