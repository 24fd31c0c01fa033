//! Reads: cold users, and the log above a partition's place.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tideline_store::{ReadLimits, StoreError, Table};
use tideline_types::PartitionId;

use super::{Driver, Waiter};
use crate::cold::{self, ColdUser};
use crate::owner::{Owner, SlotId};
use crate::recovery;

/// A user whose cold rows are wanted.
pub(super) struct Wanted {
    pub(super) slot: SlotId,
    pub(super) generation: u32,
    pub(super) user: Box<str>,
}

/// Users of one partition whose rows are wanted.
pub(super) struct Order {
    pub(super) at: usize,
    pub(super) wanted: Vec<Wanted>,
}

impl Driver {
    /// Reads users as they are asked for, until the driver stops.
    pub(super) fn run_loader(self: &Arc<Self>, orders: &Mutex<mpsc::Receiver<Vec<Order>>>) {
        while !self.stop.load(Ordering::Acquire) {
            let mut taken = Vec::new();
            {
                let orders = orders.lock().expect("nothing panics while it is held");
                taken.extend(orders.recv_timeout(WAIT).into_iter().flatten());
                while taken.len() < ORDERS_AT_A_TIME
                    && !self.stop.load(Ordering::Acquire)
                    && let Ok(more) = orders.try_recv()
                {
                    taken.extend(more);
                }
            }
            for order in taken {
                self.load(order);
            }
        }
    }

    /// Reads each user's rows and gives them to the owner in one step.
    fn load(self: &Arc<Self>, Order { at, wanted }: Order) {
        let read = wanted.into_iter().map(|Wanted { slot, generation, user }| {
            let rows = self.read(&user);
            if let Err(error) = &rows {
                tracing::error!(partition = at, %error, "cannot read a user's rows");
            }
            (slot, generation, rows)
        });
        let read: Vec<_> = read.collect();
        let now = self.now();
        self.step(at, |owner, effects| {
            for (slot, generation, rows) in read {
                owner.loaded(now, slot, generation, rows, effects);
            }
        });
    }

    /// The user's cold rows. An engine that panics on damaged bytes has named
    /// them badly, and takes neither the loader nor its other users with it.
    fn read(&self, user: &str) -> Result<ColdUser, StoreError> {
        let hash = self.rules.user_hash(user);
        let read = AssertUnwindSafe(|| cold::read(&*self.table, user, &hash));
        std::panic::catch_unwind(read).unwrap_or_else(|_| {
            let (file, what) = ("tables/history".into(), "the engine gave up".into());
            Err(StoreError::Damaged { file, offset: 0, what })
        })
    }

    /// Makes the owner anew from the table and the log by `recover`, and lets
    /// it take calls. The one it replaces refuses everybody meanwhile.
    pub(super) fn recover(
        self: &Arc<Self>,
        partition: PartitionId,
        recover: Recover,
    ) -> Result<(), StoreError> {
        let at = usize::from(partition.0);
        let mut owner = self.lock(at).owner.successor();
        let mut read = |from| {
            let batches = self.queue.read(&self.topic, partition, from, READ);
            batches.map_err(|error| super::log_error(&error))
        };
        recover(&mut owner, &*self.table, &mut read)?;
        self.lock(at).owner = owner;
        Ok(())
    }

    /// As `recover`, on the blocking pool, until it succeeds or the server stops.
    pub(super) fn recover_later(self: &Arc<Self>, partition: PartitionId) {
        let driver = Arc::clone(self);
        self.runtime.spawn_blocking(move || {
            while !driver.is_closed() {
                match driver.recover(partition, recovery::recover) {
                    Ok(()) => return,
                    Err(error) => tracing::error!(%partition, %error, "cannot recover; again soon"),
                }
                std::thread::sleep(RECOVER_AGAIN);
            }
        });
    }
}

/// One of the ways to make an owner anew.
type Recover =
    fn(&mut Owner<Waiter>, &dyn Table, &mut recovery::Read<'_>) -> Result<(), StoreError>;

/// How long a loader waits for work before it looks whether it must stop.
const WAIT: Duration = Duration::from_millis(50);
/// A loader that has so many orders takes no more.
const ORDERS_AT_A_TIME: usize = 16;
const READ: ReadLimits = ReadLimits { records_max: 65_536, bytes_max: 4 << 20 };
const RECOVER_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);
