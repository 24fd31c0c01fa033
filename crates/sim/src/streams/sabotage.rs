//! Rules broken on purpose: those of who follows a topic, and of operators.
//!
//! A broken rule holds for the thread that set it. Rules of the queue and of
//! caches are broken in their own crates.

use std::cell::Cell;

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// An operator reads the clock.
    OperatorReadsClock,
    /// A follower does not look where a range begins.
    JoinUnchecked,
    /// Who is told that records are gone goes on without a snapshot.
    SnapshotSkipped,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 3] =
        [Self::OperatorReadsClock, Self::JoinUnchecked, Self::SnapshotSkipped];
}

thread_local! {
    static NOW: Cell<Option<Broken>> = const { Cell::new(None) };
}

/// Breaks this rule, and no other, for this thread from now on.
pub fn set(broken: Option<Broken>) {
    NOW.set(broken);
}

/// Whether this rule is broken.
pub(super) fn is(broken: Broken) -> bool {
    NOW.get() == Some(broken)
}
