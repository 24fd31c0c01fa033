//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

use std::cell::Cell;

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// An image is flushed before the log has synced what it holds.
    FlushAheadOfSync,
    /// A delete does not stand once its user has been at rest.
    DroppedBlock,
    /// On a tie the earlier arrival wins.
    TieReversed,
    /// In a pack the first outcome of a row stands for those after it.
    PlayLostInPack,
    /// The applied position is written apart from the rows.
    AppliedApart,
    /// A first of the day is granted for each mark.
    FirstTwice,
    /// What fell over a cap may come back.
    FloorForgotten,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::FlushAheadOfSync,
        Self::DroppedBlock,
        Self::TieReversed,
        Self::PlayLostInPack,
        Self::AppliedApart,
        Self::FirstTwice,
        Self::FloorForgotten,
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
