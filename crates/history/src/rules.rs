//! What the owner decides: pure functions of a user's state, the input, `now`
//! and the rules of the kinds.
//!
//! Each decision that changes something appends exactly one outcome; the
//! caller logs it and applies the same bytes. Nothing here changes a timeline.

mod mark;
mod remove;
mod restore;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tideline_types::limits::{BLOCKS_PER_USER_MAX, PAUSES_PER_USER_MAX, RECORD_VALUE_BYTES_MAX};
use tideline_types::{DAY_MS, Millis};

use crate::kinds::{KindId, Kinds};

pub use restore::{RestoreError, RestoreReport};

/// The rules of this process: kinds, time zone, the key of fingerprints.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The declared kinds.
    pub kinds: Arc<Kinds>,
    /// The zone in which days begin.
    pub zone: TimeZone,
    /// Keys the fingerprints of retries and the hashes of erased users.
    pub key: [u8; 16],
}

/// A user has as many facts of a sort as may stand at a time. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// Deletes and clears.
    #[error("more than {BLOCKS_PER_USER_MAX} deletes would stand against one user")]
    Blocks,
    /// Recording intervals.
    #[error("recording was switched more than {PAUSES_PER_USER_MAX} times")]
    Pauses,
    /// The outcome would not fit in one record of the log.
    #[error("the change takes more than {RECORD_VALUE_BYTES_MAX} bytes; ask for less at once")]
    Bytes,
}

impl Rules {
    /// The keyed hash that stands for an erased user.
    pub fn user_hash(&self, user: &str) -> [u8; 16] {
        crate::retry::user_hash(&self.key, user)
    }

    /// The cap of a kind, if it has one.
    pub(crate) fn cap(&self, kind: KindId) -> Option<usize> {
        let cap = self.kinds.get(kind).max_records as usize;
        (cap > 0).then_some(cap)
    }

    /// The smallest cap of any kind: a user with fewer rows is under every cap.
    pub(crate) fn smallest_cap(&self) -> usize {
        let caps = self.kinds.iter().filter_map(|(kind, _)| self.cap(kind));
        caps.min().unwrap_or(usize::MAX)
    }

    /// Whether retention hides a row, or refuses a mark, of that time.
    pub(crate) fn is_expired(&self, kind: KindId, event_ms: Millis, now: Millis) -> bool {
        let retention = self.kinds.get(kind).retention_ms();
        retention.is_some_and(|retention| event_ms < now.plus(-retention))
    }

    /// The local day of a moment, in days since the Unix epoch.
    pub fn day_of(&self, at: Millis) -> i32 {
        let offset = self.zone.to_fixed_offset().unwrap_or_else(|_| {
            let at = Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::MAX);
            self.zone.to_offset(at)
        });
        at.plus(i64::from(offset.seconds()) * 1000).0.div_euclid(DAY_MS) as i32
    }
}

/// Whether a position lies in the end: the last max(5% of the duration, 1 s),
/// but at most half of the duration.
pub(crate) fn at_end(position_ms: Option<u64>, duration_ms: Option<u64>) -> bool {
    let (Some(position), Some(duration)) = (position_ms, duration_ms) else { return false };
    let end = (duration / 20).max(1000).min(duration / 2);
    position >= duration - end
}
