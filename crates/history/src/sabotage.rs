//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

tideline_types::broken_rules! {
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
