//! Milliseconds since the Unix epoch.

use std::fmt;

/// Milliseconds in an hour.
pub const HOUR_MS: i64 = 3_600_000;
/// Milliseconds in a day of UTC.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// A moment, in milliseconds since the Unix epoch. May be negative only as an
/// intermediate result; no stored or answered time is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

impl Millis {
    /// This moment moved by `delta` ms, saturating at the ends.
    pub fn plus(self, delta: i64) -> Self {
        Self(self.0.saturating_add(delta))
    }

    /// Days of UTC since the epoch, rounded down.
    pub fn utc_day(self) -> i32 {
        self.0.div_euclid(DAY_MS) as i32
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
