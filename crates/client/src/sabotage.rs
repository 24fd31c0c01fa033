//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

tideline_types::broken_rules! {
    /// A fill that misses what was pushed before it began is taken.
    StaleFill,
    /// A deletion leaves no mark while a fill is under way.
    TombstoneDropped,
}
