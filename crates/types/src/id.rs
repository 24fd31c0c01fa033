//! Who and what: users, topics, partitions.

use std::fmt;

use crate::limits::{TOPIC_NAME_BYTES_MAX, USER_BYTES_MAX};
use crate::position::Incarnation;

/// A text that cannot be the id it was meant to be; says why, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadId(pub &'static str);

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadId {}

/// A user of the app: 1 to 128 bytes of UTF-8, compared as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(Box<str>);

impl UserId {
    /// Checks the length.
    pub fn new(text: &str) -> Result<Self, BadId> {
        Self::check(text)?;
        Ok(Self(text.into()))
    }

    /// Whether `text` may be a user id, without making one.
    pub fn check(text: &str) -> Result<(), BadId> {
        if text.is_empty() || text.len() > USER_BYTES_MAX {
            return Err(BadId("user must be 1 to 128 bytes"));
        }
        Ok(())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A topic's name: 1 to 64 bytes of `a-z`, `0-9`, `.`, `_`, `-`, starting
/// with a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Box<str>);

impl TopicName {
    /// Checks length and characters.
    pub fn new(text: &str) -> Result<Self, BadId> {
        let inner = |c: u8| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let first = text.as_bytes().first().copied();
        if text.len() > TOPIC_NAME_BYTES_MAX
            || !first.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            || !text.bytes().all(inner)
        {
            return Err(BadId(
                "topic must be 1 to 64 of a-z, 0-9, '.', '_', '-', starting with a letter or digit",
            ));
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One of a topic's partitions, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u16);

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a journal keeps apart: one partition of one life of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Which life of which topic.
    pub incarnation: Incarnation,
    /// Which of its partitions.
    pub partition: PartitionId,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.incarnation, self.partition)
    }
}

/// The partition that owns `key` among `partitions` (at least 1): FNV-1a of 64
/// bits, its halves folded, modulo. Part of the data format: a changed hash
/// would send a user to a partition that does not hold them.
pub fn partition_of(key: &[u8], partitions: u16) -> PartitionId {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for &byte in key {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let folded = hash ^ (hash >> 32);
    PartitionId((folded % u64::from(partitions.max(1))) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_of_a_key_never_changes() {
        assert_eq!(partition_of(b"", 64), PartitionId(1));
        for key in ["u1", "42", "alice"] {
            assert_eq!(partition_of(key.as_bytes(), 64), partition_of(key.as_bytes(), 64));
        }
    }

    #[test]
    fn names_are_held_to_their_alphabet_and_length() {
        for good in ["history", "a", "0.x_y-z"] {
            assert!(TopicName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "A", ".a", "a/b", "ü", &"a".repeat(65)] {
            assert!(TopicName::new(bad).is_err(), "{bad}");
        }
        assert!(UserId::new(&"u".repeat(128)).is_ok());
        assert!(UserId::new(&"u".repeat(129)).is_err() && UserId::new("").is_err());
    }
}
