//! Erased users whose bytes are still in files.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `danmaku/erasing` | partition, user, number | version, owner's time |
//!
//! The note of an erase comes to rest with it, and stands until no file holds a
//! byte of the user's.

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::{Millis, PartitionId, Seq};

use crate::cold;
use crate::comment::Writer;
use crate::options::Keys;
use crate::outcome::{Change, Outcome};

/// An erase of which some file may still hold bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Erasing {
    /// Of which partition's log.
    pub partition: PartitionId,
    /// Who, as a keyed hash.
    pub user: u64,
    /// Records of the user at or below this are to become empty.
    pub through: Seq,
    /// When the erase came to rest.
    pub taken: Millis,
}

/// The write that notes an erase. Each has a note of its own: a user who is
/// erased again while files are being emptied is not forgotten with the first.
pub(crate) fn note(erasing: &Erasing) -> Commit {
    let value = [&[VERSION], erasing.taken.0.to_be_bytes().as_slice()].concat();
    let op = Op::Put { sort_key: sort_key(erasing), value: value.into() };
    Commit { table: TableName::Meta, partition_key: KEY.into(), ops: vec![op] }
}

/// Erases whose bytes may still be in files, by partition, user and number.
pub fn erasing(table: &dyn Table) -> Result<Vec<Erasing>, StoreError> {
    let rows = table.scan(TableName::Meta, KEY, &[], None, false, usize::MAX)?;
    let read = |(key, value): &(Bytes, Bytes)| {
        decode(key, value).ok_or_else(|| cold::damaged("note of an erase"))
    };
    rows.iter().map(read).collect()
}

/// The write that forgets notes of erases that are done.
pub(crate) fn forget(done: &[Erasing]) -> Commit {
    let ops = done.iter().map(|erase| Op::Delete { sort_key: sort_key(erase) }).collect();
    Commit { table: TableName::Meta, partition_key: KEY.into(), ops }
}

/// Users of whom an outcome says something, in their own words or by name.
pub(crate) fn users_of<'a>(outcome: &'a Outcome, keys: &'a Keys) -> impl Iterator<Item = u64> + 'a {
    let content = |change: &'a Change| match change {
        Change::New { content, .. } | Change::Index { content: Some(content), .. } => Some(content),
        _ => None,
    };
    let writer = move |change: &'a Change| match &content(change)?.writer {
        Writer::User(user) => Some(keys.user(user.as_str())),
        Writer::Imported(_) => None,
    };
    let actor = outcome.actor.as_ref().map(|actor| keys.user(actor.user.as_str()));
    outcome.changes.iter().filter_map(writer).chain(actor)
}

fn sort_key(erasing: &Erasing) -> Bytes {
    let partition = erasing.partition.0.to_be_bytes();
    let (user, through) = (erasing.user.to_be_bytes(), erasing.through.0.to_be_bytes());
    [&partition[..], &user, &through].concat().into()
}

fn decode(key: &[u8], value: &[u8]) -> Option<Erasing> {
    let (partition, rest) = key.split_first_chunk()?;
    let (user, through) = rest.split_first_chunk()?;
    let taken = value.strip_prefix(&[VERSION])?;
    Some(Erasing {
        partition: PartitionId(u16::from_be_bytes(*partition)),
        user: u64::from_be_bytes(*user),
        through: Seq(u64::from_be_bytes(through.try_into().ok()?)),
        taken: Millis(i64::from_be_bytes(taken.try_into().ok()?)),
    })
}

const KEY: &[u8] = b"danmaku/erasing";
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_note_never_change() {
        let erase =
            Erasing { partition: PartitionId(258), user: 7, through: Seq(3), taken: Millis(9) };
        let Op::Put { sort_key, value } = &note(&erase).ops[0] else { panic!() };
        assert_eq!(sort_key[..], [1, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(value[..], [1, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(decode(sort_key, value), Some(erase));
        assert_eq!((decode(&sort_key[1..], value), decode(sort_key, &value[1..])), (None, None));
    }

    #[test]
    fn an_outcome_speaks_of_its_actor_and_of_the_writers_it_brings_back() {
        let keys = Keys([7; 16]);
        let outcome = crate::outcome::sample();
        let users: Vec<u64> = users_of(&outcome, &keys).collect();
        assert_eq!(users, [keys.user("ann"); 2]);
    }
}
