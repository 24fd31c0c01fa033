//! Outcomes that wait for the log together: of one object's rows in a pack the
//! last stands for all before it.
//!
//! An outcome that grants a first of the day or raises a floor is never left
//! out; a delete, clear, switch, erase or restore closes the pack: nothing
//! after it stands for anything before it. What is kept keeps its order, so
//! `taken_ms` never falls.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};
use tideline_types::Millis;

use crate::outcome::PutKey;

/// One outcome that waits.
#[derive(Clone, Copy, Debug)]
struct Slot {
    at: usize,
    user_len: u16,
    value_len: u32,
    taken_ms: Millis,
    live: bool,
}

/// Outcomes of many users, in the order in which they were decided.
#[derive(Debug, Default)]
pub struct Pack {
    text: Vec<u8>,
    slots: Vec<Slot>,
    live_bytes: usize,
    live: usize,
    /// The slots that a later row may stand for.
    open: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Pack {
    /// An empty pack.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Outcomes that wait.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Bytes of keys and values that wait.
    pub fn bytes(&self) -> usize {
        self.live_bytes
    }

    /// Bytes that the pack holds in memory.
    pub fn held_bytes(&self) -> usize {
        self.text.capacity()
            + self.slots.capacity() * size_of::<Slot>()
            + self.open.capacity() * size_of::<u32>()
    }

    /// Adds an outcome, decided at `now`, in its encoded form. `user` is the
    /// record's key, as bytes of at most 1 KiB.
    pub fn push(&mut self, user: &[u8], outcome: &[u8], now: Millis) {
        let index = self.slots.len() as u32;
        match PutKey::of(outcome) {
            None => self.open.clear(),
            Some(key) => {
                let hash = hash_of(&self.hasher, user, &key);
                let Self { text, slots, open, hasher, .. } = self;
                let same = |&other: &u32| {
                    let (own_user, own_value) = record(text, &slots[other as usize]);
                    own_user == user && PutKey::of(own_value).is_some_and(|own| own == key)
                };
                if let Ok(entry) = open.find_entry(hash, same) {
                    if broken!(PlayLostInPack) {
                        return;
                    }
                    let (before, _) = entry.remove();
                    let slot = &mut slots[before as usize];
                    slot.live = false;
                    self.live -= 1;
                    self.live_bytes -= usize::from(slot.user_len) + slot.value_len as usize;
                }
                if key.may_be_coalesced {
                    open.insert_unique(hash, index, |&other| {
                        // Only slots before this one are in the table yet.
                        let (user, value) = record(text, &slots[other as usize]);
                        PutKey::of(value).map_or(0, |key| hash_of(hasher, user, &key))
                    });
                }
            }
        }
        let at = self.text.len();
        self.text.extend_from_slice(user);
        self.text.extend_from_slice(outcome);
        self.live += 1;
        self.live_bytes += user.len() + outcome.len();
        self.slots.push(Slot {
            at,
            user_len: user.len() as u16,
            value_len: outcome.len() as u32,
            taken_ms: now,
            live: true,
        });
    }

    /// Hands out what waits, in order, as (time, key, value), and empties the
    /// pack; its memory is kept for the next.
    pub fn seal(&mut self, mut push: impl FnMut(Millis, &[u8], &[u8])) {
        for slot in self.slots.iter().filter(|slot| slot.live) {
            let (user, value) = record(&self.text, slot);
            push(slot.taken_ms, user, value);
        }
        self.text.clear();
        self.slots.clear();
        self.open.clear();
        self.live = 0;
        self.live_bytes = 0;
    }
}

fn record<'a>(text: &'a [u8], slot: &Slot) -> (&'a [u8], &'a [u8]) {
    let user_end = slot.at + usize::from(slot.user_len);
    (&text[slot.at..user_end], &text[user_end..user_end + slot.value_len as usize])
}

fn hash_of(hasher: &DefaultHashBuilder, user: &[u8], key: &PutKey<'_>) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(user);
    hasher.write_u8(0xff);
    hasher.write(key.kind.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(key.id.raw());
    hasher.finish()
}
