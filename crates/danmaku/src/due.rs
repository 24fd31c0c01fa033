//! Comments that are due to be looked at, of all videos: what waits for its
//! first look, and what reports have hidden.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | danmaku | `d` + partition | video, ff, id | version, state |
//!
//! Written with the image of the video, so a comment stands here once that is
//! at rest, and no longer than its row says so. Says where to look, not what is
//! there.

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::PartitionId;

use crate::cold;
use crate::comment::State;
use crate::id::CommentId;

/// A comment that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Under which video.
    pub video: String,
    /// Which.
    pub id: CommentId,
    /// Why.
    pub state: State,
}

/// The write that says of a comment whether it is due.
pub(crate) fn note(
    partition: PartitionId,
    video: &str,
    id: CommentId,
    due: Option<State>,
) -> Commit {
    let sort_key = sort_key(video, id);
    let op = match due {
        Some(state) => Op::Put { sort_key, value: vec![VERSION, state as u8].into() },
        None => Op::Delete { sort_key },
    };
    Commit { table: TableName::Danmaku, partition_key: key(partition).into(), ops: vec![op] }
}

/// What is due of a partition behind a comment, or from the first; at most
/// `limit`. Blocks.
pub(crate) fn read(
    table: &dyn Table,
    partition: PartitionId,
    after: Option<(&str, CommentId)>,
    limit: usize,
) -> Result<Vec<Due>, StoreError> {
    let from = after.map(|(video, id)| [&sort_key(video, id)[..], &[0]].concat());
    let from = from.unwrap_or_default();
    let rows = table.scan(TableName::Danmaku, &key(partition), &from, None, false, limit)?;
    let read = |(key, value): &(Bytes, Bytes)| {
        decode(key, value).ok_or_else(|| cold::damaged("a note of what is due"))
    };
    rows.iter().map(read).collect()
}

fn key(partition: PartitionId) -> Vec<u8> {
    [&[KEY][..], &partition.0.to_be_bytes()].concat()
}

fn sort_key(video: &str, id: CommentId) -> Bytes {
    [video.as_bytes(), &[0xff], &id.bits().to_be_bytes()].concat().into()
}

pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<Due> {
    let (video, id) = key.split_last_chunk()?;
    let video = std::str::from_utf8(video.strip_suffix(&[0xff])?).ok()?;
    if video.is_empty() {
        return None;
    }
    let id = CommentId::from_bits(u64::from_be_bytes(*id))?;
    let &[VERSION, state] = value else { return None };
    let state = State::ALL.get(usize::from(state)).copied().filter(|state| state.is_due())?;
    Some(Due { video: video.to_owned(), id, state })
}

/// What partition keys of these rows begin with.
pub(crate) const KEY: u8 = b'd';
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use tideline_store::mem::MemTable;

    use super::*;

    fn id(bits: u64) -> CommentId {
        CommentId::from_bits(bits).unwrap()
    }

    #[test]
    fn the_bytes_of_a_note_never_change() {
        let Op::Put { sort_key, value } =
            &note(PartitionId(1), "v", id(2), Some(State::Waiting)).ops[0]
        else {
            panic!()
        };
        assert_eq!(sort_key[..], [b'v', 0xff, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(value[..], [1, 6]);
        let due = Due { video: "v".into(), id: id(2), state: State::Waiting };
        assert_eq!(decode(sort_key, value), Some(due));
        assert_eq!((decode(&sort_key[1..], value), decode(sort_key, &[1, 0])), (None, None));
        assert_eq!(decode(sort_key, &[2, 6]), None);
    }

    #[test]
    fn what_is_due_is_read_page_by_page_and_goes_when_it_is_done() {
        let table = MemTable::new();
        for (video, n) in [("a", 1), ("a", 2), ("b", 1)] {
            table.commit(&[note(PartitionId(3), video, id(n), Some(State::Reported))]).unwrap();
        }
        table.commit(&[note(PartitionId(3), "a", id(2), None)]).unwrap();
        let read = |after, limit| -> Vec<(String, CommentId)> {
            let due = read(&table, PartitionId(3), after, limit).unwrap();
            due.into_iter().map(|due| (due.video, due.id)).collect()
        };
        assert_eq!(read(None, 9), [("a".into(), id(1)), ("b".into(), id(1))]);
        assert_eq!(read(None, 1), [("a".into(), id(1))]);
        assert_eq!(read(Some(("a", id(1))), 9), [("b".into(), id(1))]);
        assert!(super::read(&table, PartitionId(4), None, 9).unwrap().is_empty());
    }
}
