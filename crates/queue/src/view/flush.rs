//! Brings images to rest, moves places, frees the log behind them.

use std::sync::mpsc;
use std::time::Duration;

use tideline_store::{Commit, Place, StoreError};
use tideline_types::{PartitionId, Seq};

use super::{Driver, LandingOf, Owner as _, View};

/// An image on its way.
pub(super) struct Image<V: View> {
    /// Of which partition.
    pub(super) at: usize,
    /// What to write, in order.
    pub(super) commits: Vec<Commit>,
    /// To be given back.
    pub(super) landing: LandingOf<V>,
}

impl<V: View> Driver<V> {
    /// Commits images as they come, many under one sync, until the driver
    /// stops and no image is left.
    pub(super) fn run_flusher(&self, images: &mpsc::Receiver<Image<V>>) {
        // The places that were last written; none yet.
        let mut kept = vec![Seq::ZERO; usize::from(self.partitions())];
        let mut last_places = 0;
        loop {
            let stopping = self.is_stopped();
            let mut round: Vec<Image<V>> = images.recv_timeout(WAIT).into_iter().collect();
            while round.len() < ROUND_IMAGES
                && let Ok(image) = images.try_recv()
            {
                round.push(image);
            }
            if !round.is_empty() {
                self.bring_to_rest(round);
            }
            let ticks = self.clock.ticks();
            if stopping || ticks.saturating_sub(last_places) >= PLACES_EVERY_MS {
                last_places = ticks;
                self.keep_places(&mut kept);
            }
            if stopping {
                return;
            }
        }
    }

    fn bring_to_rest(&self, round: Vec<Image<V>>) {
        let mut commits: Vec<Commit> = Vec::with_capacity(round.len());
        let mut landed = Vec::with_capacity(round.len());
        for Image { at, commits: more, landing } in round {
            commits.extend(more);
            landed.push((at, landing));
        }
        // Few at a time: no read of the table begins while a commit is applied.
        let mut some = commits.chunks(COMMITS_AT_A_TIME);
        let done = some.try_for_each(|some| self.table.commit(some));
        let done = done.and_then(|()| self.table.sync());
        if let Err(error) = &done {
            let view = V::NAME;
            tracing::error!(view, %error, "cannot write to the table; it stays in memory and in the log");
            std::thread::sleep(WAIT);
        }
        for (at, landing) in landed {
            let done = done.clone();
            self.step(at, |partition, _| partition.owner.flushed(landing, done));
        }
    }

    /// Writes the places of partitions that moved. A place moves with a flush,
    /// and also where what was loaded turns out to be at rest, as after a
    /// recovery: so all are looked at. The log is freed behind a place only
    /// once the place itself is durable.
    fn keep_places(&self, kept: &mut [Seq]) {
        let places = self.look_at_all(V::Owner::place);
        let moved: Vec<(PartitionId, Place)> = (0..)
            .map(PartitionId)
            .zip(places)
            .filter_map(|(partition, place)| Some((partition, place?)))
            .filter(|(partition, place)| kept[usize::from(partition.0)] != place.seq)
            .collect();
        if moved.is_empty() {
            return;
        }
        let keep = |(partition, place): &(PartitionId, Place)| place.keep(V::NAME, *partition);
        let commits: Vec<Commit> = moved.iter().map(keep).collect();
        if let Err(error) = self.table.commit(&commits).and_then(|()| self.table.sync()) {
            let error: StoreError = error;
            tracing::error!(view = V::NAME, %error, "cannot keep places");
            return;
        }
        for (partition, place) in moved {
            kept[usize::from(partition.0)] = place.seq;
            // The topic exists for as long as its owner does.
            _ = self.queue.trim_allowed(&self.topic, partition, place.seq);
        }
    }
}

/// How many images one sync covers at most.
const ROUND_IMAGES: usize = 4096;
/// How many of their commits are applied at a time.
const COMMITS_AT_A_TIME: usize = 64;
/// How often places are written.
const PLACES_EVERY_MS: u64 = 2_000;
/// How long the flusher waits for an image before it looks around.
const WAIT: Duration = Duration::from_millis(50);
