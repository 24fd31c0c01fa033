//! Reading a video from its rows, and a partition's place.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `danmaku/place` | partition | version, epoch, seq, owner's time |
//!
//! What is read to open a video grows with what it shows, not with what it
//! hides.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::limits::{SPECIALS_PER_VIDEO_MAX, SUBTITLES_PER_VIDEO_MAX};
use tideline_types::{Epoch, Millis, PartitionId, Seq};

use crate::comment::Comment;
use crate::id::CommentId;
use crate::options::Options;
use crate::owner::Place;
use crate::reads::{Found, Read};
use crate::rows::{self, Facts};
use crate::video::Video;

/// What the table holds of a video, as far as it is opened with it.
#[derive(Clone, Debug, Default)]
pub struct ColdVideo {
    facts: Option<Facts>,
    filters: Option<Bytes>,
    /// Index rows of what is shown.
    shown: Found,
    /// Contents by sort key: of these at least.
    contents: BTreeMap<Bytes, Bytes>,
}

const TABLE: TableName = TableName::Danmaku;

/// Reads what a video is opened with.
pub fn read(table: &dyn Table, video: &str) -> Result<ColdVideo, StoreError> {
    let key = rows::video_key(video);
    let Some(facts) = table.get(TABLE, &key, rows::FACTS_KEY)? else {
        return Ok(ColdVideo::default());
    };
    let facts = Facts::decode(&facts).map_err(|error| damaged(error.0))?;
    let filters = table.get(TABLE, &key, rows::FILTERS_KEY)?;
    let (from, to) = rows::shown_range();
    let mut shown = table.scan(TABLE, &key, &from, Some(&to), false, UNCOUNTED_MAX)?;
    for (stretch, count, _) in facts.queue.iter().filter(|(_, count, _)| *count > 0) {
        let (from, to) = rows::queue_range(*stretch, None);
        shown.extend(table.scan(TABLE, &key, &from, Some(&to), false, *count as usize)?);
    }
    let mut ids = Vec::with_capacity(shown.len());
    for (key, _) in &shown {
        ids.push(rows::id_in(key).map_err(|error| damaged(error.0))?);
    }
    ids.sort_unstable_by_key(|id| (id.stretch(), *id));
    let mut contents = BTreeMap::new();
    for stretch in ids.chunk_by(|a, b| a.stretch() == b.stretch()) {
        read_contents(table, &key, stretch, &mut contents)?;
    }
    Ok(ColdVideo { facts: Some(facts), filters, shown, contents })
}

/// The contents of one stretch. What is shown is mostly what is latest: that is
/// one scan from the end; the rest are looked up one by one.
fn read_contents(
    table: &dyn Table,
    key: &[u8],
    ids: &[CommentId],
    contents: &mut BTreeMap<Bytes, Bytes>,
) -> Result<(), StoreError> {
    let Some(first) = ids.first() else { return Ok(()) };
    let (from, to) = rows::content_range(first.stretch());
    let limit = ids.len() + ids.len() / 4 + 16;
    contents.extend(table.scan(TABLE, key, &from, Some(&to), true, limit)?);
    for id in ids {
        let content_key = rows::content_key(*id);
        if !contents.contains_key(&content_key)
            && let Some(content) = table.get(TABLE, key, &content_key)?
        {
            contents.insert(content_key, content);
        }
    }
    Ok(())
}

/// Reads rows that a decision asks for, in order.
pub fn read_rows(table: &dyn Table, video: &str, reads: &[Read]) -> Result<Vec<Found>, StoreError> {
    let partition = rows::video_key(video);
    let read = |read: &Read| match read {
        Read::Row(key) => {
            let value = table.get(TABLE, &partition, key)?;
            Ok(value.map(|value| (key.clone(), value)).into_iter().collect())
        }
        Read::Scan { from, to, reverse, limit } => {
            table.scan(TABLE, &partition, from, Some(to), *reverse, *limit)
        }
    };
    let found: Vec<Found> = reads.iter().map(read).collect::<Result<_, StoreError>>()?;
    found.iter().flatten().try_for_each(|(key, value)| check(key, value))?;
    Ok(found)
}

/// A row makes sense.
fn check(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let checked = match key.first() {
        Some(0x10 | 0x20 | 0x30) => rows::decode_index(value).map(|_| ()),
        Some(0x40) => rows::id_of(key).and_then(|id| rows::decode_content(id, value)).map(|_| ()),
        _ => Ok(()),
    };
    checked.map_err(|error| damaged(error.0))
}

/// The video as its rows say, and the last outcome that they have applied.
pub(crate) fn load(cold: &ColdVideo, options: &Options) -> Result<(Video, Seq), StoreError> {
    let bad = |error: tideline_store::codec::BadBytes| damaged(error.0);
    let Some(facts) = &cold.facts else { return Ok((Video::new(options), Seq::ZERO)) };
    let filters = cold.filters.as_ref().map(|json| {
        let json = std::str::from_utf8(json).map_err(|_| damaged("filters are not UTF-8"))?;
        Ok::<_, StoreError>(json.into())
    });
    let mut shown = Vec::with_capacity(cold.shown.len());
    for (key, value) in &cold.shown {
        let id = rows::id_in(key).map_err(bad)?;
        let index = rows::decode_index(value).map_err(bad)?;
        let content = cold.contents.get(&rows::content_key(id));
        let content = content.ok_or_else(|| damaged("a comment has no content"))?;
        let content = rows::decode_content(id, content).map_err(bad)?;
        if !index.is_shown() {
            return Err(damaged("a comment lies among the shown and is not"));
        }
        shown.push(Comment { id, index, content });
    }
    let seq = facts.seq;
    Ok((Video::load(options, facts, filters.transpose()?, shown), seq))
}

pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::Damaged { file: "tables/danmaku".into(), offset: 0, what: what.into() }
}

/// Rows of what a video shows and does not count, at most.
const UNCOUNTED_MAX: usize = (SUBTITLES_PER_VIDEO_MAX + SPECIALS_PER_VIDEO_MAX) as usize + 1;

/// The partition's place, as it was last written; the beginning if never.
pub fn place(table: &dyn Table, partition: PartitionId) -> Result<Place, StoreError> {
    let key = partition.0.to_be_bytes();
    let Some(value) = table.get(TableName::Meta, PLACE_KEY, &key)? else {
        return Ok(Place::default());
    };
    decode_place(&value).ok_or_else(|| StoreError::Damaged {
        file: "tables/meta".into(),
        offset: 0,
        what: format!("place of danmaku/{partition}"),
    })
}

/// The write that keeps `place`.
pub fn keep_place(partition: PartitionId, place: &Place) -> Commit {
    let mut value = vec![VERSION];
    value.extend_from_slice(&place.epoch.0.to_be_bytes());
    value.extend_from_slice(&place.seq.0.to_be_bytes());
    value.extend_from_slice(&place.taken.0.to_be_bytes());
    let sort_key = Bytes::copy_from_slice(&partition.0.to_be_bytes());
    let ops = vec![Op::Put { sort_key, value: value.into() }];
    Commit { table: TableName::Meta, partition_key: PLACE_KEY.into(), ops }
}

fn decode_place(value: &[u8]) -> Option<Place> {
    let (version, rest) = value.split_first()?;
    let rest: &[u8; 20] = rest.try_into().ok()?;
    let number = |at: usize| rest[at..at + 8].try_into().ok().map(u64::from_be_bytes);
    (*version == VERSION).then_some(Place {
        epoch: Epoch(u32::from_be_bytes(rest[..4].try_into().ok()?)),
        seq: Seq(number(4)?),
        taken: Millis(number(12)? as i64),
    })
}

const PLACE_KEY: &[u8] = b"danmaku/place";
const VERSION: u8 = 1;

/// Reads any bytes as a place; for fuzzing.
pub(crate) fn fuzz_place(bytes: &[u8]) {
    if let Some(place) = decode_place(bytes) {
        let ops = keep_place(PartitionId(0), &place).ops;
        assert!(matches!(&ops[..], [Op::Put { value, .. }] if value == bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_a_strange_one_is_refused() {
        let place = Place { epoch: Epoch(3), seq: Seq(9), taken: Millis(1_796_000_000_000) };
        let Op::Put { value, .. } = &keep_place(PartitionId(1), &place).ops[0] else { panic!() };
        let golden = [1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 162, 41, 241, 40, 0];
        assert_eq!(value[..], golden);
        assert_eq!(decode_place(value), Some(place));
        assert_eq!(decode_place(&value[1..]), None);
    }
}
