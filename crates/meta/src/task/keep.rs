//! Brings subtrees to rest, moves places, frees the log behind them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tideline_store::{Place, StoreError};
use tideline_types::{PartitionId, Seq};

use super::{Driver, TOPIC};
use crate::ask::{Answer, Ask};
use crate::cold;
use crate::owner::RestWhen;
use crate::path::Path;

impl Driver {
    pub(super) fn run_keeper(self: &Arc<Self>) {
        let bytes = self.options.rest_bytes;
        let age_ms = self.options.rest_after.as_millis() as u64;
        let mut kept = vec![Seq::ZERO; self.partitions.len()];
        let mut last = self.clock.ticks();
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(WAIT);
            self.start_lost_again();
            if self.clock.ticks().saturating_sub(last) >= EVERY_MS {
                self.keep(RestWhen { bytes, age_ms }, &mut kept);
                last = self.clock.ticks();
            }
        }
        self.keep(RestWhen { bytes: 0, age_ms: 0 }, &mut kept);
    }

    /// What is due, one subtree after the other, then the places.
    fn keep(self: &Arc<Self>, when: RestWhen, kept: &mut [Seq]) {
        for (at, kept) in kept.iter_mut().enumerate() {
            let due = self.lock(at).owner.due(when, self.clock.ticks());
            let moved = due.iter().try_for_each(|root| self.bring_to_rest(at, root));
            let moved = moved.and_then(|()| self.table.sync());
            if let Err(error) = moved.and_then(|()| self.keep_place(at, kept)) {
                tracing::error!(partition = at, %error, "metadata cannot be brought to rest; again soon");
            }
        }
    }

    fn bring_to_rest(self: &Arc<Self>, at: usize, root: &Path) -> Result<(), StoreError> {
        // Refused: the partition's log has failed, or the subtree is gone.
        let Answer::Image(image) = self.ask_blocking(root, Ask::Image) else { return Ok(()) };
        let written = cold::write(&*self.table, PartitionId(at as u16), root, &image);
        let written = written.and_then(|()| self.table.sync());
        let (life, ticks) = (image.tree.incarnation(), self.clock.ticks());
        self.lock(at).owner.rested(root, life, written.is_ok(), ticks);
        written
    }

    /// The log is freed behind a place only once the place itself is durable,
    /// and rows of lives that are over go only then, too.
    fn keep_place(&self, at: usize, kept: &mut Seq) -> Result<(), StoreError> {
        let (seq, epoch) = {
            let partition = self.lock(at);
            (partition.owner.place(), partition.owner.epoch())
        };
        let id = PartitionId(at as u16);
        if *kept != seq {
            let place = Place { epoch, seq, ..Place::default() };
            self.table.commit(&[place.keep(TOPIC, id)])?;
            self.table.sync()?;
            *kept = seq;
            // The topic exists for as long as its owner does.
            _ = self.queue.trim_allowed(&self.topic, id, seq);
        }
        let over = self.lock(at).owner.over(seq);
        over.into_iter().try_for_each(|life| cold::remove(&*self.table, id, life))
    }

    /// Partitions for which there was no space begin anew from what is
    /// durable.
    fn start_lost_again(self: &Arc<Self>) {
        for at in 0..self.partitions.len() {
            if !self.lock(at).lost {
                continue;
            }
            if let Err(error) = self.start_again(at) {
                tracing::error!(partition = at, %error, "a partition of metadata does not start again");
            }
        }
    }
}

/// How often subtrees that are due are looked for.
const EVERY_MS: u64 = 1_000;
/// How long the keeper sleeps.
const WAIT: Duration = Duration::from_millis(50);
