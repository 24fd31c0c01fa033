//! Brings images to rest, moves places, frees the log behind them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tideline_store::{Commit, StoreError};
use tideline_types::{PartitionId, Seq};

use super::{Driver, TOPIC};
use crate::owner::Flush;

/// An image on its way.
pub(super) struct Image {
    pub(super) partition: PartitionId,
    pub(super) flush: Flush,
}

impl Driver {
    /// Commits images as they come, many under one sync, until the driver
    /// stops and no image is left.
    pub(super) fn run_flusher(self: &Arc<Self>, images: &mpsc::Receiver<Image>) {
        // The places that were last written; none yet.
        let mut kept = vec![Seq::ZERO; usize::from(self.partitions())];
        let mut last_places = 0;
        loop {
            let stopping = self.stop.load(Ordering::Acquire);
            let mut round: Vec<Image> = images.recv_timeout(WAIT).into_iter().collect();
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
                self.keep_places(&mut kept);
                return;
            }
        }
    }

    fn bring_to_rest(self: &Arc<Self>, round: Vec<Image>) {
        let mut commits: Vec<Commit> = Vec::with_capacity(round.len());
        let mut landed = Vec::with_capacity(round.len());
        for Image { partition, flush } in round {
            commits.extend(flush.commits);
            landed.push((partition, flush.slot, flush.generation));
        }
        // Few at a time: no read of the table begins while a commit is applied.
        let mut some = commits.chunks(COMMITS_AT_A_TIME);
        let done = some.try_for_each(|some| self.table.commit(some));
        let done = done.and_then(|()| self.table.sync());
        if let Err(error) = &done {
            tracing::error!(%error, "cannot write users to the table; they stay in memory and in the log");
            std::thread::sleep(WAIT);
        }
        for (partition, slot, generation) in landed {
            let done = done.clone();
            let at = usize::from(partition.0);
            self.step(at, |owner, _| owner.flushed(slot, generation, done));
        }
    }

    /// Writes the places of partitions that moved. A place moves with a flush,
    /// and also where users who were loaded turn out to be at rest, as after a
    /// recovery: so all are looked at. The log is freed behind a place only
    /// once the place itself is durable.
    fn keep_places(&self, kept: &mut [Seq]) {
        let moved: Vec<(PartitionId, Seq, Commit)> = (0..self.partitions())
            .filter_map(|at| {
                let place = self.lock(usize::from(at)).owner.place()?;
                let commit = place.keep(TOPIC, PartitionId(at));
                Some((PartitionId(at), place.seq, commit))
            })
            .filter(|(partition, seq, _)| kept[usize::from(partition.0)] != *seq)
            .collect();
        if moved.is_empty() {
            return;
        }
        let commits: Vec<Commit> = moved.iter().map(|(_, _, commit)| commit.clone()).collect();
        let done: Result<(), StoreError> =
            self.table.commit(&commits).and_then(|()| self.table.sync());
        for (partition, seq, _) in moved {
            match &done {
                Ok(()) => {
                    kept[usize::from(partition.0)] = seq;
                    // The topic exists for as long as its owner does.
                    _ = self.queue.trim_allowed(&self.topic, partition, seq);
                }
                Err(error) => tracing::error!(%error, %partition, "cannot keep the place"),
            }
        }
    }
}

/// How many users one sync covers at most.
const ROUND_IMAGES: usize = 4096;
/// Of these, how many are committed at a time.
const COMMITS_AT_A_TIME: usize = 64;
/// How often places are written.
const PLACES_EVERY_MS: u64 = 2_000;
/// How long the flusher waits for an image before it looks around.
const WAIT: Duration = Duration::from_millis(50);
