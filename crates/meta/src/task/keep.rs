//! The housekeeper: brings subtrees to rest, and removes what is over.

use std::time::Duration;

use tideline_store::{Place, StoreError};
use tideline_types::PartitionId;

use super::{Driver, TOPIC};
use crate::ask::{Answer, Ask};
use crate::cold;
use crate::owner::RestWhen;
use crate::path::Path;

impl Driver {
    /// What is due; everything of a partition for which the log has no space.
    pub(super) fn keep(&self) {
        let bytes = self.options.rest_bytes;
        let age_ms = self.options.rest_after.as_millis() as u64;
        for at in 0..usize::from(self.view.partitions()) {
            let mut when = RestWhen { bytes, age_ms };
            self.view.step(at, |partition, _| {
                when = partition.refusal().map_or(when, |_| RestWhen::NOW);
            });
            self.rest(at, when, u64::MAX);
        }
    }

    /// Everything, until the clock shows `end`.
    pub(super) fn rest_all(&self, end: u64) {
        for at in 0..usize::from(self.view.partitions()) {
            self.rest(at, RestWhen::NOW, end);
        }
    }

    fn rest(&self, at: usize, when: RestWhen, end: u64) {
        let due = self.view.look(at, |owner| owner.due(when, self.view.ticks()));
        let mut due = due.iter().take_while(|_| self.view.ticks() < end);
        let rested = due.try_for_each(|root| self.bring_to_rest(at, root));
        if let Err(error) = rested.and_then(|()| self.remove_what_is_over(at)) {
            tracing::error!(partition = at, %error, "metadata cannot be brought to rest; again soon");
        }
    }

    fn bring_to_rest(&self, at: usize, root: &Path) -> Result<(), StoreError> {
        let Answer::Image(image) = self.ask_blocking(root, Ask::Image) else {
            // The log has failed, the subtree is gone, or too much waits.
            self.view.step(at, |partition, _| {
                if let Some(at) = partition.owner.position(root) {
                    partition.owner.rested(root, at.incarnation, false, 0);
                }
            });
            return Ok(());
        };
        let table = self.view.table();
        let written = cold::write(&**table, PartitionId(at as u16), root, &image);
        let written = written.and_then(|()| table.sync());
        let (life, ticks) = (image.tree.incarnation(), self.view.ticks());
        self.view.step(at, |partition, _| {
            partition.owner.rested(root, life, written.is_ok(), ticks);
        });
        written
    }

    /// Rows of lives that are over go once nothing above the durable place
    /// speaks of them.
    fn remove_what_is_over(&self, at: usize) -> Result<(), StoreError> {
        let (id, table) = (PartitionId(at as u16), self.view.table());
        let over = |place| {
            let mut over = Vec::new();
            self.view.step(at, |partition, _| over = partition.owner.over(place));
            over
        };
        let place = Place::read(&**table, TOPIC, id)?.seq;
        if self.view.look(at, |owner| owner.is_over(place)) {
            // What is read may not be durable yet.
            table.sync()?;
            over(place).into_iter().try_for_each(|life| cold::remove(&**table, id, life))?;
        }
        Ok(())
    }
}

/// How often subtrees that are due are looked for.
pub(super) const EVERY: Duration = Duration::from_secs(1);
