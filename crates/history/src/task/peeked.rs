//! Remembers, roughly, who was asked for lately.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::DefaultHashBuilder;

/// Some thousand hashes, each in the one place it may have.
#[derive(Debug)]
pub(super) struct Peeked {
    hashes: Box<[AtomicU64]>,
    hasher: DefaultHashBuilder,
}

impl Default for Peeked {
    fn default() -> Self {
        let hashes = (0..1 << PLACES_BITS).map(|_| AtomicU64::new(0)).collect();
        Self { hashes, hasher: DefaultHashBuilder::default() }
    }
}

impl Peeked {
    /// Whether the user was seen lately; they are from now on.
    pub(super) fn seen(&self, user: &str) -> bool {
        let hash = self.hasher.hash_one(user);
        let place = &self.hashes[(hash >> (64 - PLACES_BITS)) as usize];
        place.swap(hash, Ordering::Relaxed) == hash
    }
}

/// 128 KiB.
const PLACES_BITS: u32 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_seen_from_the_second_time_on() {
        let peeked = Peeked::default();
        assert_eq!([peeked.seen("ann"), peeked.seen("ann")], [false, true]);
    }
}
