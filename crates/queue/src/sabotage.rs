//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

tideline_types::broken_rules! {
    /// A batch that is sent again is appended again.
    RetryTakenAgain,
}
