//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

use std::cell::Cell;

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// What a moderator hid stands among those that may come back.
    HiddenComesBack,
    /// The lowest of the overflow comes back first.
    OverflowReversed,
    /// A queue takes one more than the limit.
    OneTooMany,
    /// A lower limit hides nothing until somebody posts.
    LimitForgotten,
    /// A body says that it holds a change that came after it.
    SeqAhead,
    /// What happened at a number is told again to who knows everything through
    /// it.
    ToldAgain,
    /// Reads do not wait for the sync of what they show.
    ReadAheadOfSync,
    /// An image is flushed before the log has synced what it holds.
    FlushAheadOfSync,
    /// The applied position is written apart from the rows.
    AppliedApart,
    /// A patched comment goes to the end of its body.
    PatchedAtEnd,
    /// A retried post is another comment once its video has been at rest.
    RetryForgotten,
    /// An erase leaves the rows of what is not shown.
    ErasedInPart,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::HiddenComesBack,
        Self::OverflowReversed,
        Self::OneTooMany,
        Self::LimitForgotten,
        Self::SeqAhead,
        Self::ToldAgain,
        Self::ReadAheadOfSync,
        Self::FlushAheadOfSync,
        Self::AppliedApart,
        Self::PatchedAtEnd,
        Self::RetryForgotten,
        Self::ErasedInPart,
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
