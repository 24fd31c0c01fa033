//! Reads: videos, rows that decisions ask for, and the log above a partition's
//! place.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tideline_store::{ReadLimits, StoreError};
use tideline_types::PartitionId;

use super::{Driver, log_error};
use crate::reads::Read;
use crate::{cold, recovery};

/// Rows that are wanted: what a video is opened with, or those of `reads`.
pub(super) struct Order {
    /// Of which partition.
    pub(super) at: usize,
    pub(super) video: Arc<str>,
    pub(super) generation: u32,
    pub(super) reads: Option<Vec<Read>>,
}

impl Driver {
    /// Reads as it is asked to, until the driver stops.
    pub(super) fn run_loader(self: &Arc<Self>, orders: &Mutex<mpsc::Receiver<Order>>) {
        while !self.stop.load(Ordering::Acquire) {
            let next = {
                let orders = orders.lock().expect("nothing panics while it is held");
                orders.recv_timeout(WAIT)
            };
            if let Ok(order) = next {
                self.carry_out(order);
            }
        }
    }

    fn carry_out(self: &Arc<Self>, Order { at, video, generation, reads }: Order) {
        match reads {
            None => {
                let rows = guarded(&video, || cold::read(&*self.table, &video));
                let now = self.clock.now();
                self.step(at, |owner, effects| {
                    owner.loaded(now, &video, generation, rows, effects);
                });
            }
            Some(reads) => {
                let found = guarded(&video, || cold::read_rows(&*self.table, &video, &reads));
                let now = self.clock.now();
                self.step(at, |owner, effects| {
                    owner.read(now, &video, generation, found, effects);
                });
            }
        }
    }

    /// Makes the owner anew from the table and the log, and lets it take calls.
    /// The one it replaces refuses everybody meanwhile.
    pub(super) fn recover(self: &Arc<Self>, partition: PartitionId) -> Result<(), StoreError> {
        let at = usize::from(partition.0);
        let mut owner = self.lock(at).owner.successor();
        let mut read = |from| {
            let batches = self.queue.read(&self.topic, partition, from, READ);
            batches.map_err(|error| log_error(&error))
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

/// An engine that panics on damaged bytes has named them badly, and takes
/// neither the loader nor other videos with it.
fn guarded<T>(video: &str, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let read = std::panic::catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(cold::damaged("the engine gave up")));
    if let Err(error) = &read {
        tracing::error!(video, %error, "cannot read a video's rows");
    }
    read
}

/// How long a loader waits for work before it looks whether it must stop.
const WAIT: Duration = Duration::from_millis(50);
const READ: ReadLimits = ReadLimits { records_max: 65_536, bytes_max: 4 << 20 };
const RECOVER_AGAIN: Duration = Duration::from_millis(200);
