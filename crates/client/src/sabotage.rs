//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

use std::cell::Cell;

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A fill that misses what was pushed before it began is taken.
    StaleFill,
    /// A deletion leaves no mark while a fill is under way.
    TombstoneDropped,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::StaleFill, Self::TombstoneDropped];
}

thread_local! {
    static NOW: Cell<Option<Broken>> = const { Cell::new(None) };
}

/// Breaks this rule, and no other, for this thread from now on.
pub fn set(broken: Option<Broken>) {
    NOW.set(broken);
}

/// Whether this rule is broken. Tests of this crate break theirs by hand.
#[cfg(not(test))]
pub(crate) fn is(broken: Broken) -> bool {
    NOW.get() == Some(broken)
}
