//! What an operator may set.

use std::time::Duration;

/// Bounds and defaults of all topics.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Partitions of a topic that does not say, 1 to 1024. Default 64.
    pub partitions_default: u16,
    /// How long records are kept where a topic does not say. Default 72 hours.
    pub retention_default: Duration,
    /// Bytes of all topics from which on the oldest records go before their
    /// time. The journal has a bound of its own, which should lie above.
    /// Default 32 GiB.
    pub log_bytes_target: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            partitions_default: 64,
            retention_default: Duration::from_hours(72),
            log_bytes_target: 32 << 30,
        }
    }
}
