//! The owner as its driver sees it.

use std::sync::Arc;

use tideline_queue::view;
use tideline_store::{Place, StoreError};
use tideline_types::{Millis, Seq};

use super::{Effect, Owner};

impl<W: Send + 'static> view::Owner for Owner<W> {
    type Effect = Effect<W>;
    type Landing = (Arc<str>, u32);

    fn successor(&self) -> Self {
        self.successor()
    }

    fn synced_through(&self) -> Seq {
        self.synced_through()
    }

    fn place(&self) -> Option<Place> {
        self.place()
    }

    fn is_at_rest(&self) -> bool {
        self.is_at_rest()
    }

    fn is_settled(&self) -> bool {
        self.is_settled()
    }

    fn drain(&mut self) {
        self.drain();
    }

    fn tick(&mut self, now: Millis, ticks: u64, effects: &mut Vec<Effect<W>>) {
        self.tick(now, ticks, effects);
    }

    fn synced(&mut self, through: Seq, effects: &mut Vec<Effect<W>>) {
        self.synced(through, effects);
    }

    fn dropped(&mut self, from: Seq, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        self.dropped(from, error, effects);
    }

    fn failed(&mut self, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        self.failed(error, effects);
    }

    fn flushed(&mut self, (video, generation): Self::Landing, done: Result<(), StoreError>) {
        self.flushed(&video, generation, done);
    }
}
