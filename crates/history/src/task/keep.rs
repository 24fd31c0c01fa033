//! The housekeeper: looks now and then what is due, and does it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Driver, TICK};

impl Driver {
    /// Keeps house until calls are refused.
    pub(super) fn run_housekeeper(self: &Arc<Self>) {
        let mut tidied = self.clock.ticks();
        let mut looked = tidied;
        // Ends before the loaders do: it waits for users whom they read.
        while !self.is_closed() {
            std::thread::sleep(TICK);
            let ticks = self.clock.ticks();
            if ticks.saturating_sub(looked) >= ERASES_EVERY_MS {
                looked = ticks;
                self.erase_due();
            }
            if ticks.saturating_sub(tidied) >= TIDY_EVERY_MS {
                tidied = ticks;
                if let Err(error) = self.tidy() {
                    tracing::error!(%error, "cannot free what has run out; again in some hours");
                }
            }
        }
    }

    /// Waits for the housekeeper, who stops after the partition or the user at
    /// hand; leaves it behind if files are still being rewritten when the clock
    /// shows `end`. That can be cut off anywhere, as by a kill.
    pub(super) fn end_housekeeping(&self, end: u64) {
        let housekeeper = self.housekeeper.lock().expect("held for a moment").take();
        let Some(housekeeper) = housekeeper else { return };
        while !housekeeper.is_finished() {
            if self.erasing.load(Ordering::Acquire) && self.clock.ticks() >= end {
                tracing::warn!("files of erased users are rewritten after the next start");
                return;
            }
            std::thread::sleep(TICK / 4);
        }
        if housekeeper.join().is_err() {
            tracing::error!("the housekeeper of history ended in a panic");
        }
    }
}

/// How often the housekeeper looks for erases that are due.
const ERASES_EVERY_MS: u64 = 2_000;
/// How often the housekeeper frees what has run out.
const TIDY_EVERY_MS: u64 = 6 * 3_600_000;
