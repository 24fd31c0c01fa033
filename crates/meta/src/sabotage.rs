//! Rules broken on purpose, to show that the simulator finds them.
//!
//! Exists only with the feature `sabotage`, which no shipped build has; a
//! broken rule holds for the thread that set it.

tideline_types::broken_rules! {
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
