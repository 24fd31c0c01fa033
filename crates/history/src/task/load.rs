//! Reads: cold users, and the log above a partition's place.

use std::sync::Arc;

use tideline_store::{ReadLimits, StoreError};
use tideline_types::PartitionId;

use super::Driver;
use crate::cold;
use crate::owner::SlotId;
use crate::recovery;

/// A user whose cold rows are wanted.
pub(super) struct Wanted {
    pub(super) slot: SlotId,
    pub(super) generation: u32,
    pub(super) user: Box<str>,
}

impl Driver {
    /// Reads each user's rows and gives them to the owner. Blocks on the table.
    pub(super) fn load(self: &Arc<Self>, at: usize, wanted: Vec<Wanted>) {
        for Wanted { slot, generation, user } in wanted {
            let hash = self.rules.user_hash(&user);
            let rows = cold::read(&*self.table, &user, &hash);
            if let Err(error) = &rows {
                tracing::error!(partition = at, %error, "cannot read a user's rows");
            }
            let now = self.now();
            self.step(at, |owner, effects| owner.loaded(now, slot, generation, rows, effects));
        }
    }

    /// Makes the owner anew from the table and the log, and lets it take calls.
    /// The one it replaces refuses everybody meanwhile.
    pub(super) fn recover(self: &Arc<Self>, partition: PartitionId) -> Result<(), StoreError> {
        let at = usize::from(partition.0);
        let mut owner = self.lock(at).owner.successor();
        let mut read = |from| {
            let batches = self.queue.read(&self.topic, partition, from, READ);
            batches.map_err(|error| super::log_error(&error))
        };
        recovery::recover(&mut owner, &*self.table, &mut read)?;
        self.lock(at).owner = owner;
        Ok(())
    }

    /// As `recover`, on the blocking pool, until it succeeds or the server stops.
    pub(super) fn recover_later(self: &Arc<Self>, partition: PartitionId) {
        let driver = Arc::clone(self);
        self.runtime.spawn_blocking(move || {
            while !driver.is_closed() {
                match driver.recover(partition) {
                    Ok(()) => return,
                    Err(error) => tracing::error!(%partition, %error, "cannot recover; again soon"),
                }
                std::thread::sleep(RECOVER_AGAIN);
            }
        });
    }
}

const READ: ReadLimits = ReadLimits { records_max: 65_536, bytes_max: 4 << 20 };
const RECOVER_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);
