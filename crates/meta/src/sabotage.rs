//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

use std::cell::Cell;

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Compaction takes deletes for nothing that an observer must see.
    CompactionSkipsDelete,
    /// A session ends and one of its nodes stays.
    EphemeralOutlives,
    /// An owner does not look whether the log has another epoch.
    EpochUnchecked,
    /// A write that was retried is done twice.
    RetryDoneTwice,
    /// A snapshot is put to rest before the log has synced what it holds.
    RestAheadOfSync,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::CompactionSkipsDelete,
        Self::EphemeralOutlives,
        Self::EpochUnchecked,
        Self::RetryDoneTwice,
        Self::RestAheadOfSync,
    ];
}

thread_local! {
    static NOW: Cell<Option<Broken>> = const { Cell::new(None) };
}

/// Breaks this rule, and no other, for this thread from now on.
pub fn set(broken: Option<Broken>) {
    NOW.set(broken);
}

/// Whether this rule is broken.
pub(crate) fn is(broken: Broken) -> bool {
    NOW.get() == Some(broken)
}
