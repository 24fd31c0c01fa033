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
    /// Of which partition.
    pub(super) at: usize,
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
                return;
            }
        }
    }

    fn bring_to_rest(self: &Arc<Self>, round: Vec<Image>) {
        let commits: Vec<Commit> =
            round.iter().flat_map(|image| image.flush.commits.iter().cloned()).collect();
        let done = self.table.commit(&commits).and_then(|()| self.table.sync());
        if let Err(error) = &done {
            tracing::error!(%error, "cannot write videos to the table; they stay in memory and in the log");
            std::thread::sleep(WAIT);
        }
        for Image { at, flush } in round {
            let done = done.clone();
            self.step(at, |owner, _| owner.flushed(&flush.video, flush.generation, done));
        }
    }

    /// Writes the places of partitions that moved. The log is freed behind a
    /// place only once the place itself is durable.
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

/// How many videos one sync covers at most.
const ROUND_IMAGES: usize = 256;
/// How often places are written.
const PLACES_EVERY_MS: u64 = 2_000;
/// How long the flusher waits for an image before it looks around.
const WAIT: Duration = Duration::from_millis(50);
