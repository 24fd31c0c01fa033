//! The time, as an argument that can be replaced.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tideline_types::Millis;

/// Law: `ticks` never falls and does not jump with the wall clock; `now` may
/// do both. Deadlines are measured in `ticks`, records are stamped with `now`.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Millis;
    /// Milliseconds since some fixed moment of this process.
    fn ticks(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// Ticks count from here.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Millis(since.map_or(0, |d| d.as_millis() as i64))
    }

    fn ticks(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

/// A clock that stands still until it is moved. For tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicI64,
    ticks: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Millis) -> Self {
        Self { now: AtomicI64::new(now.0), ticks: AtomicI64::new(0) }
    }

    /// Lets `ms` pass on both clocks.
    pub fn advance(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
        self.ticks.fetch_add(ms.max(0), Ordering::SeqCst);
    }

    /// Moves the wall clock alone, as an operator or NTP would.
    pub fn jump(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.now.load(Ordering::SeqCst))
    }

    fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::SeqCst) as u64
    }
}
