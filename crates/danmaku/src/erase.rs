//! Erased users whose bytes are still in files.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `danmaku/erasing` | partition, user, number | version, owner's time |
//!
//! An erase hides a user's comments at once, and their rows go with the next
//! flush. Their bytes leave in batches: records of the log become empty at
//! their positions, the table's files are rewritten, and only then is the note
//! forgotten. A record is emptied only once it is at rest: until then it may be
//! needed.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_queue::Queue;
use tideline_store::{Commit, Op, Place, StoreError, Table, TableName};
use tideline_types::{Millis, PartitionId, Seq, SeqRange, TopicName};

use crate::cold;
use crate::comment::Writer;
use crate::options::Keys;
use crate::outcome::{Change, Outcome};
use crate::task::TOPIC;

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

/// Empties the files if any erase is at least `age_ms` old and at rest. Blocks.
pub(crate) fn empty_files(
    table: &dyn Table,
    queue: &Queue,
    topic: &TopicName,
    keys: &Keys,
    now: Millis,
    age_ms: i64,
) -> Result<(), StoreError> {
    let pending = erasing(table)?;
    let oldest = pending.iter().map(|erase| erase.taken).min();
    if oldest.is_none_or(|taken| taken.plus(age_ms) > now) {
        return Ok(());
    }
    let mut done = Vec::new();
    for erasing in pending.chunk_by(|a, b| a.partition == b.partition) {
        let partition = erasing[0].partition;
        let rested = Place::read(table, TOPIC, partition)?.seq;
        let ready: Vec<Erasing> =
            erasing.iter().filter(|erase| erase.through <= rested).copied().collect();
        // In order: of two erases of one user the later stands.
        let until: BTreeMap<u64, Seq> = ready.iter().map(|e| (e.user, e.through)).collect();
        let Some(last) = until.values().max() else { continue };
        let range = SeqRange::new(Seq::ZERO, *last);
        let report = queue.erase(topic, partition, range, &mut |seq, _, value| {
            Outcome::decode(value).is_ok_and(|outcome| {
                let mut users = users_of(&outcome, keys);
                users.any(|user| until.get(&user).is_some_and(|through| seq <= *through))
            })
        });
        let report = report.map_err(|error| StoreError::Io {
            what: "empty records of danmaku".into(),
            cause: error.to_string(),
        })?;
        tracing::info!(%partition, erased = report.erased, seen = report.seen, "emptied records of erased users");
        done.extend(ready);
    }
    if done.is_empty() {
        return Ok(());
    }
    table.purge(TableName::Danmaku)?;
    let ops = done.iter().map(|erase| Op::Delete { sort_key: sort_key(erase) }).collect();
    table.commit(&[Commit { table: TableName::Meta, partition_key: KEY.into(), ops }])?;
    table.sync()
}

/// Users of whom an outcome says something, in their own words or by name.
fn users_of<'a>(outcome: &'a Outcome, keys: &'a Keys) -> impl Iterator<Item = u64> + 'a {
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
