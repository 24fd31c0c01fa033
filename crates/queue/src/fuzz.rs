//! What a fuzzer feeds: each function takes any bytes and must not panic.

use crate::topic::Config;

/// A topic's row.
pub fn topic_row(bytes: &[u8]) {
    if let Some(config) = Config::decode(bytes) {
        assert_eq!(config.encode(), bytes);
    }
}
