//! The users of one partition that are in memory: a slab with an index by
//! name.
//!
//! A slot's number stays the same for as long as its user is in memory, so
//! effects and queues name users by number. A number may be given to another
//! user later; who keeps one across that checks the name or the state.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A user's place in [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// Users by number and by name.
#[derive(Debug)]
pub(super) struct Slots<S> {
    slots: Vec<Option<(Box<str>, S)>>,
    free: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<S> Slots<S> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Users in memory.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Numbers ever given: every [`SlotId`] is below it.
    pub(super) fn numbers(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn find(&self, name: &str) -> Option<SlotId> {
        let hash = self.hasher.hash_one(name);
        let same = |at: &u32| self.name_at(*at) == Some(name);
        self.index.find(hash, same).map(|at| SlotId(*at))
    }

    /// Puts a user in; there must be none of that name.
    pub(super) fn insert(&mut self, name: &str, state: S) -> SlotId {
        let entry = Some((name.into(), state));
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = entry;
                at
            }
            None => {
                self.slots.push(entry);
                u32::try_from(self.slots.len() - 1).expect("users fit into memory")
            }
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        let rehash = |at: &u32| {
            let slot = slots[*at as usize].as_ref();
            hasher.hash_one(&*slot.expect("the index names slots that are taken").0)
        };
        self.index.insert_unique(hasher.hash_one(name), at, rehash);
        SlotId(at)
    }

    pub(super) fn remove(&mut self, id: SlotId) -> Option<(Box<str>, S)> {
        let entry = self.slots.get_mut(id.0 as usize)?.take()?;
        let hash = self.hasher.hash_one(&*entry.0);
        if let Ok(found) = self.index.find_entry(hash, |at| *at == id.0) {
            found.remove();
        }
        self.free.push(id.0);
        Some(entry)
    }

    pub(super) fn get(&self, id: SlotId) -> Option<&S> {
        Some(&self.slots.get(id.0 as usize)?.as_ref()?.1)
    }

    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut S> {
        Some(&mut self.slots.get_mut(id.0 as usize)?.as_mut()?.1)
    }

    /// The user's name and state.
    pub(super) fn entry_mut(&mut self, id: SlotId) -> Option<(&str, &mut S)> {
        let (name, state) = self.slots.get_mut(id.0 as usize)?.as_mut()?;
        Some((name, state))
    }

    pub(super) fn name(&self, id: SlotId) -> Option<&str> {
        self.name_at(id.0)
    }

    /// Every name, in the order of numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().flatten().map(|(name, _)| &**name)
    }

    /// Bytes that a user of this name takes in the slab and the index, with
    /// the name.
    pub(super) fn bytes_of(name: &str) -> usize {
        // The index is between seven eighths and seven sixteenths full, at five
        // bytes a place; a name is an allocation of its own.
        size_of::<Option<(Box<str>, S)>>() + 8 + name.len().next_multiple_of(16)
    }

    fn name_at(&self, at: u32) -> Option<&str> {
        Some(&*self.slots.get(at as usize)?.as_ref()?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_user_until_it_is_removed() {
        let mut slots = Slots::new();
        let ids: Vec<SlotId> = (0..100).map(|n| slots.insert(&format!("u{n}"), n)).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(slots.find(&format!("u{n}")), Some(*id));
            assert_eq!(slots.get(*id), Some(&n));
        }
        assert_eq!(slots.remove(ids[7]), Some(("u7".into(), 7)));
        assert_eq!((slots.find("u7"), slots.get(ids[7]), slots.len()), (None, None, 99));
        assert_eq!(slots.insert("other", 1), ids[7]);
        assert_eq!(slots.name(ids[7]), Some("other"));
    }
}
