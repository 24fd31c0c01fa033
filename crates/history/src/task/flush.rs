//! Brings images to rest, moves places, frees the log behind them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tideline_store::{Commit, StoreError};
use tideline_types::{PartitionId, Seq};

use super::Driver;
use crate::cold;
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
        let mut places = Places::new(self.partitions());
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
                self.bring_to_rest(round, &mut places);
            }
            let ticks = self.clock.ticks();
            if stopping || ticks.saturating_sub(last_places) >= PLACES_EVERY_MS {
                last_places = ticks;
                self.keep_places(&mut places);
            }
            if stopping {
                self.keep_places(&mut places);
                return;
            }
        }
    }

    fn bring_to_rest(self: &Arc<Self>, round: Vec<Image>, places: &mut Places) {
        let mut commits: Vec<Commit> = Vec::with_capacity(round.len());
        let mut landed = Vec::with_capacity(round.len());
        for Image { partition, flush } in round {
            places.touched.insert(partition);
            commits.extend(flush.commits);
            landed.push((partition, flush.slot, flush.generation));
        }
        let done = self.table.commit(&commits).and_then(|()| self.table.sync());
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

    /// Writes the places of partitions that moved. The log is freed behind a
    /// place only once the place itself is durable.
    fn keep_places(&self, places: &mut Places) {
        let moved = std::mem::take(&mut places.touched);
        let kept: Vec<(PartitionId, Seq, Commit)> = moved
            .into_iter()
            .filter_map(|partition| {
                let place = self.lock(usize::from(partition.0)).owner.place()?;
                Some((partition, place.seq, cold::keep_place(partition, &place)))
            })
            .filter(|(partition, seq, _)| places.kept[usize::from(partition.0)] != *seq)
            .collect();
        if kept.is_empty() {
            return;
        }
        let commits: Vec<Commit> = kept.iter().map(|(_, _, commit)| commit.clone()).collect();
        let done: Result<(), StoreError> =
            self.table.commit(&commits).and_then(|()| self.table.sync());
        for (partition, seq, _) in kept {
            match &done {
                Ok(()) => {
                    places.kept[usize::from(partition.0)] = seq;
                    // The topic exists for as long as its owner does.
                    _ = self.queue.trim_allowed(&self.topic, partition, seq);
                }
                Err(error) => {
                    tracing::error!(%error, %partition, "cannot keep the place");
                    places.touched.insert(partition);
                }
            }
        }
    }
}

/// Which places may have moved since they were last written.
struct Places {
    touched: BTreeSet<PartitionId>,
    kept: Vec<Seq>,
}

impl Places {
    fn new(partitions: u16) -> Self {
        Self { touched: BTreeSet::new(), kept: vec![Seq::ZERO; usize::from(partitions)] }
    }
}

/// How many users one sync covers at most.
const ROUND_IMAGES: usize = 4096;
/// How often places are written.
const PLACES_EVERY_MS: u64 = 2_000;
/// How long the flusher waits for an image before it looks around.
const WAIT: Duration = Duration::from_millis(50);
