//! What a fuzzer feeds: each function takes any bytes and must not panic.

use crate::declared::Declared;
use crate::producers::Producers;
use crate::topic::Config;

/// A topic's row.
pub fn topic_row(bytes: &[u8]) {
    if let Some(config) = Config::decode(bytes) {
        assert_eq!(config.encode(), bytes);
    }
}

/// The row of a partition's producers.
pub fn producers_row(bytes: &[u8]) {
    // A row of an older version is written as one of the newest.
    if let Ok(all) = Producers::decode(bytes) {
        assert_eq!(Producers::decode(&all.0.encode(all.1, all.2)), Ok(all));
    }
}

/// The row of a declared topic.
pub fn derived_row(bytes: &[u8]) {
    // A text may be longer than it is written by another version of itself.
    if let Ok(declared) = Declared::decode(bytes) {
        assert_eq!(Declared::decode(&declared.encode()), Ok(declared));
    }
}
