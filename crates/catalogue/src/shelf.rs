//! Items in memory: bounded, each for a time, never older than a put.
//!
//! A reader that found an item says how many puts there were before it looked
//! ([`Shelf::looking`]). If there was one since, what it found may be what the
//! put replaced, and is not kept. A put counts once before it commits and once
//! after, and then takes its keys off the shelf:
//!
//! ```text
//! reader   looking ---- looks ---- keep: insert, count again
//! put           count -- commit -- count -- take off
//! ```
//!
//! Whichever way these fall, an insert of the old item is followed by the
//! removal of one of the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::Item;

/// What is known of a key: an item, or that there is none.
pub(crate) type Known = Option<Arc<Item>>;

#[derive(Clone)]
struct Kept {
    known: Known,
    /// In ms of the clock that never falls.
    until: u64,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Box<[u8]>, Kept> for Weigh {
    fn weight(&self, key: &Box<[u8]>, kept: &Kept) -> u64 {
        const ENTRY_BYTES: usize = 96;
        let item = kept.known.as_deref().map_or(0, |item| {
            let texts = [&item.title, &item.cover, &item.url, &item.group, &item.work, &item.owner];
            let heap: usize = texts.into_iter().flatten().map(String::capacity).sum();
            size_of::<Item>() + heap
        });
        (ENTRY_BYTES + key.len() + item) as u64
    }
}

/// The cache.
pub(crate) struct Shelf {
    cache: Cache<Box<[u8]>, Kept, Weigh>,
    puts: AtomicU64,
}

/// When a reader began to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looking(u64);

impl Shelf {
    /// Holds about `bytes`, keys and all.
    pub(crate) fn new(bytes: u64) -> Self {
        const ITEM_BYTES_USUAL: u64 = 512;
        let items = (bytes / ITEM_BYTES_USUAL).max(16) as usize;
        Self { cache: Cache::with_weighter(items, bytes.max(1), Weigh), puts: AtomicU64::new(0) }
    }

    pub(crate) fn get(&self, key: &[u8], now: u64) -> Option<Known> {
        self.cache.get(key).filter(|kept| now < kept.until).map(|kept| kept.known)
    }

    pub(crate) fn looking(&self) -> Looking {
        Looking(self.puts.load(Ordering::SeqCst))
    }

    pub(crate) fn keep(&self, since: Looking, key: &[u8], known: Known, until: u64) {
        if self.puts.load(Ordering::SeqCst) != since.0 {
            return;
        }
        self.cache.insert(key.into(), Kept { known, until });
        if self.puts.load(Ordering::SeqCst) != since.0 {
            self.cache.remove(key);
        }
    }

    /// To be called before a put commits.
    pub(crate) fn put_begins(&self) {
        self.puts.fetch_add(1, Ordering::SeqCst);
    }

    /// To be called after a put of `keys` committed, or failed.
    pub(crate) fn put_ended<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        self.puts.fetch_add(1, Ordering::SeqCst);
        for key in keys {
            self.cache.remove(key);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(title: &str) -> Known {
        Some(Arc::new(Item { title: Some(title.into()), ..Item::default() }))
    }

    #[test]
    fn what_was_looked_up_before_or_during_a_put_is_not_kept_after_it() {
        let shelf = Shelf::new(1 << 20);
        let before = shelf.looking();
        shelf.put_begins();
        let during = shelf.looking();
        shelf.put_ended([&b"k"[..]].into_iter());
        for looking in [before, during] {
            shelf.keep(looking, b"k", item("old"), 9);
            assert_eq!(shelf.get(b"k", 0), None);
        }
        shelf.keep(shelf.looking(), b"k", item("new"), 9);
        assert_eq!(shelf.get(b"k", 0), Some(item("new")));
    }

    #[test]
    fn a_put_takes_its_keys_off_and_leaves_the_others() {
        let shelf = Shelf::new(1 << 20);
        shelf.keep(shelf.looking(), b"a", None, 9);
        shelf.keep(shelf.looking(), b"b", None, 9);
        shelf.put_begins();
        shelf.put_ended([&b"a"[..]].into_iter());
        assert_eq!((shelf.get(b"a", 0), shelf.get(b"b", 0)), (None, Some(None)));
    }

    #[test]
    fn an_item_is_kept_for_its_time_and_the_whole_within_its_bytes() {
        let shelf = Shelf::new(64 << 10);
        shelf.keep(shelf.looking(), b"k", None, 5);
        assert_eq!((shelf.get(b"k", 4), shelf.get(b"k", 5)), (Some(None), None));
        for n in 0..2_000u32 {
            shelf.keep(shelf.looking(), &n.to_le_bytes(), item(&"t".repeat(200)), 9);
        }
        assert!(shelf.bytes() <= 64 << 10, "{}", shelf.bytes());
    }
}
