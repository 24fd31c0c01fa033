//! What an operator may set.

use std::time::Duration;

/// Of the metadata tree.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Partitions over which subtrees are spread; fixed once data exists.
    /// Default 16.
    pub partitions: u16,
    /// A subtree is brought to rest when so many bytes of it were logged
    /// since. Default 1 MiB.
    pub rest_bytes: u64,
    /// Or when so much time has passed. Default 5 minutes.
    pub rest_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { partitions: 16, rest_bytes: 1 << 20, rest_after: Duration::from_mins(5) }
    }
}
