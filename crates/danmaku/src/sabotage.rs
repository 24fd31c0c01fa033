//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

tideline_types::broken_rules! {
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
