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

/// A name. A short one lies in the slot itself: to find a user reads one place
/// of memory less.
#[derive(Debug)]
enum Name {
    Short(u8, [u8; SHORT_BYTES]),
    Long(Box<[u8]>),
}

const SHORT_BYTES: usize = 22;

impl Name {
    fn new(name: &str) -> Self {
        let mut short = [0; SHORT_BYTES];
        match short.get_mut(..name.len()) {
            Some(start) => {
                start.copy_from_slice(name.as_bytes());
                Self::Short(name.len() as u8, short)
            }
            None => Self::Long(name.as_bytes().into()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(bytes) => bytes,
        }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("a name was made of a text")
    }
}

/// Users by number and by name.
#[derive(Debug)]
pub(super) struct Slots<S> {
    slots: Vec<Option<(Name, S)>>,
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
        let same =
            |at: &u32| self.name_at(*at).is_some_and(|own| own.as_bytes() == name.as_bytes());
        self.index.find(hash, same).map(|at| SlotId(*at))
    }

    /// Puts a user in; there must be none of that name.
    pub(super) fn insert(&mut self, name: &str, state: S) -> SlotId {
        let entry = Some((Name::new(name), state));
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
            hasher.hash_one(slot.expect("the index names slots that are taken").0.as_str())
        };
        self.index.insert_unique(hasher.hash_one(name), at, rehash);
        SlotId(at)
    }

    /// Takes a user out; answers also what they took, as [`Self::bytes_of`].
    pub(super) fn remove(&mut self, id: SlotId) -> Option<(usize, S)> {
        let (name, state) = self.slots.get_mut(id.0 as usize)?.take()?;
        let hash = self.hasher.hash_one(name.as_str());
        if let Ok(found) = self.index.find_entry(hash, |at| *at == id.0) {
            found.remove();
        }
        self.free.push(id.0);
        Some((Self::bytes_of(name.as_str()), state))
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
        Some((name.as_str(), state))
    }

    pub(super) fn name(&self, id: SlotId) -> Option<&str> {
        self.name_at(id.0).map(Name::as_str)
    }

    /// Every name, in the order of numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().flatten().map(|(name, _)| name.as_str())
    }

    /// Bytes that a user of this name takes in the slab and the index, with
    /// the name.
    pub(super) fn bytes_of(name: &str) -> usize {
        let apart = if name.len() > SHORT_BYTES { name.len().next_multiple_of(16) } else { 0 };
        // The index is between seven eighths and seven sixteenths full, at five
        // bytes a place.
        size_of::<Option<(Name, S)>>() + 8 + apart
    }

    fn name_at(&self, at: u32) -> Option<&Name> {
        Some(&self.slots.get(at as usize)?.as_ref()?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_user_until_it_is_removed() {
        let mut slots = Slots::new();
        let name = |n: usize| "u".repeat(n);
        let ids: Vec<SlotId> = (0..100).map(|n| slots.insert(&name(n), n)).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(slots.find(&name(n)), Some(*id));
            assert_eq!((slots.name(*id), slots.get(*id)), (Some(&*name(n)), Some(&n)));
        }
        assert_eq!(slots.remove(ids[7]), Some((Slots::<usize>::bytes_of(&name(7)), 7)));
        assert_eq!((slots.find(&name(7)), slots.get(ids[7]), slots.len()), (None, None, 99));
        assert_eq!(slots.insert("other", 1), ids[7]);
        assert_eq!(slots.name(ids[7]), Some("other"));
    }
}
