//! What the videos of a work have together.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | danmaku | `w` + work | video | version, comments, of these shown |
//!
//! Written with the image of the video: the last count that was told of it, so
//! some minutes late, and gone once the video is of another work.

use bytes::Bytes;
use tideline_record::codec::{Reader, put_varint};
use tideline_store::{Commit, Op, StoreError, Table, TableName};

use crate::cold;

/// Comments of a work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Videos with any.
    pub videos: u64,
    /// Comments of any state.
    pub total: u64,
    /// Shown to everybody.
    pub shown: u64,
}

/// The write that says what a video has for a work: so many comments, of which
/// so many are shown; or that it is of another work.
pub(crate) fn note(work: &str, video: &str, count: Option<(u64, u64)>) -> Commit {
    let sort_key = Bytes::copy_from_slice(video.as_bytes());
    let op = match count {
        None => Op::Delete { sort_key },
        Some((total, shown)) => {
            let mut value = vec![VERSION];
            put_varint(&mut value, total);
            put_varint(&mut value, shown);
            Op::Put { sort_key, value: value.into() }
        }
    };
    Commit { table: TableName::Danmaku, partition_key: key(work).into(), ops: vec![op] }
}

/// All that a work has. Blocks; reads a page at a time.
pub(crate) fn sum(table: &dyn Table, work: &str) -> Result<Sum, StoreError> {
    let (mut sum, mut from) = (Sum::default(), Bytes::new());
    loop {
        let rows = table.scan(TableName::Danmaku, &key(work), &from, None, false, PAGE_ROWS)?;
        for (video, value) in &rows {
            let (total, shown) =
                decode(video, value).ok_or_else(|| cold::damaged("a count of a work"))?;
            sum.videos += 1;
            sum.total += total;
            sum.shown += shown;
        }
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE_ROWS => from = [&last[..], &[0]].concat().into(),
            _ => return Ok(sum),
        }
    }
}

fn key(work: &str) -> Vec<u8> {
    [&[KEY], work.as_bytes()].concat()
}

pub(crate) fn decode(video: &[u8], value: &[u8]) -> Option<(u64, u64)> {
    std::str::from_utf8(video).ok()?;
    let mut reader = Reader::new(value.strip_prefix(&[VERSION])?);
    let counts = (reader.varint().ok()?, reader.varint().ok()?);
    reader.is_empty().then_some(counts)
}

/// What partition keys of these rows begin with.
pub(crate) const KEY: u8 = b'w';
const VERSION: u8 = 1;
const PAGE_ROWS: usize = 1_000;

#[cfg(test)]
mod tests {
    use tideline_store::mem::MemTable;

    use super::*;

    #[test]
    fn the_bytes_of_a_count_never_change() {
        let Op::Put { sort_key, value } = &note("w", "v", Some((300, 2))).ops[0] else { panic!() };
        assert_eq!((&sort_key[..], &value[..]), (&b"v"[..], &[1, 0xac, 2, 2][..]));
        assert_eq!(decode(sort_key, value), Some((300, 2)));
        assert_eq!((decode(b"v", &[1, 2]), decode(b"v", &[2, 1, 1])), (None, None));
        assert_eq!(decode(b"\xff", value), None);
    }

    #[test]
    fn a_work_adds_up_its_videos_over_pages_and_without_those_that_left() {
        let table = MemTable::new();
        for n in 0..2_500 {
            table.commit(&[note("w", &format!("v{n}"), Some((2, 1)))]).unwrap();
        }
        table.commit(&[note("w", "v7", None), note("w2", "x", Some((9, 9)))]).unwrap();
        let sum = sum(&table, "w").unwrap();
        assert_eq!(sum, Sum { videos: 2_499, total: 4_998, shown: 2_499 });
        assert_eq!(super::sum(&table, "none").unwrap(), Sum::default());
    }
}
