//! The owner as its driver sees it.

use std::convert::Infallible;

use tideline_queue::view;
use tideline_store::{Place, StoreError};
use tideline_types::{Millis, Seq};

use super::{At, Effect, Owner};

impl<W: Send + 'static> view::Owner for Owner<W> {
    type Effect = Effect<W>;
    /// Whole subtrees are brought to rest by the housekeeper.
    type Landing = Infallible;

    fn successor(&self) -> Self {
        Self::new(self.stream, self.epoch, self.synced, self.last_time).with_start(self.start)
    }

    fn synced_through(&self) -> Seq {
        self.synced_through()
    }

    fn place(&self) -> Option<Place> {
        Some(Place { epoch: self.epoch, seq: self.place(), ..Place::default() })
    }

    fn is_at_rest(&self) -> bool {
        true
    }

    fn is_settled(&self) -> bool {
        self.failed.is_none() && self.lanes.values().all(|lane| lane.rest.dirty.is_none())
    }

    fn drain(&mut self) {}

    fn tick(&mut self, now: Millis, ticks: u64, effects: &mut Vec<Effect<W>>) {
        // What is logged under an epoch that is over, the log itself refuses.
        self.tick(At { now, ticks, epoch: self.epoch }, effects);
    }

    fn synced(&mut self, through: Seq, effects: &mut Vec<Effect<W>>) {
        self.synced(through, effects);
    }

    fn dropped(&mut self, _: Seq, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        self.dropped(error, effects);
    }

    fn failed(&mut self, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        self.failed(error, effects);
    }

    fn flushed(&mut self, landing: Infallible, _: Result<(), StoreError>) {
        match landing {}
    }
}
