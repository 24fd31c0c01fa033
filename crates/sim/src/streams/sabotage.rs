//! Rules broken on purpose: those of who follows a topic, and of operators.
//!
//! A broken rule holds for the thread that set it. Rules of the queue and of
//! caches are broken in their own crates.

tideline_types::broken_rules! {
    /// An operator reads the clock.
    OperatorReadsClock,
    /// A follower does not look where a range begins.
    JoinUnchecked,
    /// Who is told that records are gone goes on without a snapshot.
    SnapshotSkipped,
}
