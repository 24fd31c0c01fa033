//! Between memory and rest: which users are written when, and which are let
//! go.
//!
//! An image of a user is taken only while no outcome stands in the open pack,
//! so it is the fold of everything below `next`; it is held until that is
//! synced. While an image flies, new changes gather for the next one.

use tideline_store::{Place, StoreError};
use tideline_types::Seq;

use super::{Dirty, Effect, Flight, Flush, Hot, Owner, SlotId, State, Status, WAITING_BYTES};
use crate::cold::{self, Image};

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
    pub fn flushed(&mut self, slot: SlotId, generation: u32, done: Result<(), StoreError>) {
        if generation != self.generation {
            return;
        }
        self.flights -= 1;
        let Some(State::Hot(hot)) = self.slots.get_mut(slot) else { return };
        let Some(dirty) = hot.dirty.as_mut() else { return };
        let Some(flight) = dirty.flight.take() else { return };
        match done {
            Ok(()) => {
                leave(&mut self.unrested, flight.from);
                if dirty.from.is_none() {
                    hot.dirty = None;
                    self.hot_bytes -= DIRTY_BYTES;
                }
            }
            Err(_) => {
                if let Some(later) = dirty.from.replace(flight.from) {
                    leave(&mut self.unrested, later);
                }
                dirty.touched.merge(&flight.touched);
                dirty.erased = dirty.erased.or(flight.erased);
                self.dirty.push_front((flight.from, slot));
            }
        }
        self.rested();
    }

    /// Takes images of dirty users who are due. Only while the pack is empty.
    pub(super) fn plan_flushes(&mut self, effects: &mut Vec<Effect<W>>) {
        debug_assert!(self.pack.is_empty());
        self.rested();
        let pressed = self.hot_bytes > self.options.hot_bytes_max / 4 * 3
            || self.lag.bytes() > self.options.lag_bytes_max / 2;
        let mut loads_left = LOADS_A_STEP;
        // At a stop nobody waits for the step to end.
        let images_a_step = if self.draining { usize::MAX } else { IMAGES_A_STEP };
        let flights_max = self.options.flights_max.min(self.flights.saturating_add(images_a_step));
        for _ in 0..self.dirty.len() {
            if self.flights >= flights_max {
                break;
            }
            let Some(&(from, slot)) = self.dirty.front() else { break };
            match self.due(from, slot, pressed) {
                Due::Outdated => _ = self.dirty.pop_front(),
                Due::Later => break,
                Due::InFlight => self.dirty.rotate_left(1),
                Due::NotLoaded if loads_left == 0 => break,
                Due::NotLoaded => {
                    loads_left -= 1;
                    self.dirty.pop_front();
                    self.load(slot, effects);
                }
                Due::Now => {
                    self.dirty.pop_front();
                    self.take_image(slot);
                }
            }
        }
        self.release_held(effects);
    }

    fn due(&self, from: Seq, slot: SlotId, pressed: bool) -> Due {
        match self.slots.get(slot) {
            Some(State::Waiting(waiting)) => {
                match waiting.overlay.first().is_some_and(|(first, _)| *first == from) {
                    true if waiting.loading => Due::Outdated,
                    true => Due::NotLoaded,
                    false => Due::Outdated,
                }
            }
            Some(State::Hot(Hot { dirty: Some(dirty), .. })) if dirty.from == Some(from) => {
                let age = self.ticks.saturating_sub(dirty.since_ticks);
                let now = pressed || self.draining || age >= self.options.flush_after_ms;
                match (now, &dirty.flight) {
                    (false, _) => Due::Later,
                    (true, Some(_)) => Due::InFlight,
                    (true, None) => Due::Now,
                }
            }
            _ => Due::Outdated,
        }
    }

    fn take_image(&mut self, slot: SlotId) {
        let through = self.next.prev();
        let Some((name, State::Hot(hot))) = self.slots.entry_mut(slot) else { return };
        let Some(dirty) = hot.dirty.as_deref_mut() else { return };
        let Some(from) = dirty.from.take() else { return };
        let touched = std::mem::take(&mut dirty.touched);
        let erased = std::mem::take(&mut dirty.erased);
        let image = Image {
            user: name,
            timeline: &hot.timeline,
            touched: &touched,
            erased,
            applied: (self.epoch, through),
        };
        let commits = cold::commits(&image, self.stream.partition, &self.rules, self.taken);
        dirty.flight = Some(Box::new(Flight { touched, from, erased }));
        self.flights += 1;
        self.held.push_back((through, Flush { slot, generation: self.generation, commits }));
    }

    /// Lets images go that are synced whole.
    pub(super) fn release_held(&mut self, effects: &mut Vec<Effect<W>>) {
        let early = broken!(FlushAheadOfSync);
        while self.held.front().is_some_and(|(through, _)| *through <= self.synced || early) {
            if let Some((_, flush)) = self.held.pop_front() {
                effects.push(Effect::Flush(flush));
            }
        }
    }

    /// Lets go of users at rest while memory is over its bound: a clock with
    /// second chances, at most a few steps a call.
    pub(super) fn evict(&mut self) {
        let mut steps = 256;
        while self.hot_bytes > self.options.hot_bytes_max && steps > 0 && self.slots.numbers() > 0 {
            steps -= 1;
            self.hand = (self.hand + 1) % self.slots.numbers();
            let slot = SlotId(self.hand);
            let Some(State::Hot(hot)) = self.slots.get_mut(slot) else { continue };
            if hot.dirty.is_some() {
                continue;
            }
            match hot.used {
                0 => self.forget(slot),
                _ => hot.used -= 1,
            }
        }
    }

    /// Lets go of one user.
    pub(super) fn forget(&mut self, slot: SlotId) {
        let Some((of_slot, state)) = self.slots.remove(slot) else { return };
        let held = match state {
            State::Hot(hot) => {
                hot.timeline.bytes() + DIRTY_BYTES * usize::from(hot.dirty.is_some())
            }
            State::Waiting(waiting) => waiting.bytes(),
        };
        self.hot_bytes -= held + of_slot;
    }
}

impl<W> super::Waiting<W> {
    /// Bytes that count against the budget, but for the name.
    pub(super) fn bytes(&self) -> usize {
        WAITING_BYTES + self.overlay_bytes
    }
}

/// Whether a dirty user is to be written.
enum Due {
    /// The entry does not speak of the user's present state.
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

/// One user less has something unrested at `from`.
pub(super) fn leave(unrested: &mut std::collections::BTreeMap<Seq, u32>, from: Seq) {
    if let Some(count) = unrested.get_mut(&from) {
        *count -= 1;
        if *count == 0 {
            unrested.remove(&from);
        }
    }
}

/// Users whom one step asks for, so that what the log held at a start comes to
/// rest without crowding callers out.
const LOADS_A_STEP: usize = 64;
/// Users whose images one step takes: callers wait for it to end. More are
/// taken by the next, some ms later.
const IMAGES_A_STEP: usize = 16;
/// What a user's unrested changes take, about.
pub(super) const DIRTY_BYTES: usize = size_of::<Dirty>() + 64;
