//! The housekeeper: looks now and then what is due, and does it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::driver::TICK;
use super::{Driver, View};

/// What the housekeeper does.
pub struct Duty {
    /// How often.
    pub every: Duration,
    /// What. Ends early, with the rest to be done again, once calls are
    /// refused.
    pub run: Box<dyn FnMut() + Send>,
}

impl<V: View> Driver<V> {
    /// Starts the housekeeper, which does each duty when its time has come,
    /// until calls are refused: it ends before the loaders do, for whom it may
    /// wait. To be called once.
    pub fn keep_house(self: &Arc<Self>, duties: Vec<Duty>) {
        let driver = Arc::clone(self);
        let start = self.clock.ticks();
        let mut duties: Vec<(u64, Duty)> = duties.into_iter().map(|duty| (start, duty)).collect();
        let housekeeper = Self::thread("keep", move || {
            while !driver.is_closed() {
                std::thread::sleep(TICK);
                let ticks = driver.clock.ticks();
                for (last, duty) in &mut duties {
                    if ticks.saturating_sub(*last) >= duty.every.as_millis() as u64 {
                        *last = ticks;
                        (duty.run)();
                    }
                }
            }
        });
        *self.housekeeper.lock().expect("held for a moment") = Some(housekeeper);
    }

    /// Does what rewrites files, for the housekeeper: a stop waits for it no
    /// longer than for anything else, since it can be cut off anywhere, as by a
    /// kill.
    pub fn rewriting<T>(&self, rewrite: impl FnOnce() -> T) -> T {
        self.rewriting.store(true, Ordering::Release);
        let done = rewrite();
        self.rewriting.store(false, Ordering::Release);
        done
    }

    /// Waits for the housekeeper; leaves it behind if files are still being
    /// rewritten when the clock shows `end`.
    pub(super) fn end_housekeeping(&self, end: u64) {
        let housekeeper = self.housekeeper.lock().expect("held for a moment").take();
        let Some(housekeeper) = housekeeper else { return };
        while !housekeeper.is_finished() {
            if self.rewriting.load(Ordering::Acquire) && self.clock.ticks() >= end {
                tracing::warn!(
                    view = V::NAME,
                    "files of erased users are rewritten after the next start"
                );
                return;
            }
            std::thread::sleep(TICK / 4);
        }
        if housekeeper.join().is_err() {
            tracing::error!(view = V::NAME, "the housekeeper ended in a panic");
        }
    }
}
