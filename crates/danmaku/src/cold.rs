//! Reading a video from its rows.
//!
//! What is read to open a video grows with what it shows, not with what it
//! hides.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tideline_store::{StoreError, Table, TableName};
use tideline_types::Seq;
use tideline_types::limits::{SPECIALS_PER_VIDEO_MAX, SUBTITLES_PER_VIDEO_MAX};

use crate::comment::Comment;
use crate::id::CommentId;
use crate::options::Options;
use crate::reads::{Found, Read};
use crate::rows::{self, Facts};
use crate::sent::Sent;
use crate::video::Video;

/// What the table holds of a video, as far as it is opened with it.
#[derive(Clone, Debug, Default)]
pub struct ColdVideo {
    facts: Option<Facts>,
    filters: Option<Bytes>,
    work: Option<Bytes>,
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
    let work = table.get(TABLE, &key, rows::WORK_KEY)?;
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
    Ok(ColdVideo { facts: Some(facts), filters, work, shown, contents })
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
        Some(0x02) => Sent::decode(value).map(|_| ()),
        Some(0x10 | 0x20 | 0x30) => rows::decode_index(value).map(|_| ()),
        Some(0x40) => rows::id_of(key).and_then(|id| rows::decode_content(id, value)).map(|_| ()),
        _ => Ok(()),
    };
    checked.map_err(|error| damaged(error.0))
}

/// The video as its rows say, and the last outcome that they have applied.
pub(crate) fn load(cold: &ColdVideo, options: &Options) -> Result<(Video, Seq), StoreError> {
    let bad = |error: tideline_record::codec::BadBytes| damaged(error.0);
    let Some(facts) = &cold.facts else { return Ok((Video::new(options), Seq::ZERO)) };
    let text = |row: &Bytes| {
        let text = std::str::from_utf8(row).map_err(|_| damaged("a text is not UTF-8"))?;
        Ok::<Arc<str>, StoreError>(text.into())
    };
    let filters = cold.filters.as_ref().map(text).transpose()?;
    let work = cold.work.as_ref().map(text).transpose()?;
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
    Ok((Video::load(options, facts, filters, work, shown), seq))
}

pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::Damaged { file: "tables/danmaku".into(), offset: 0, what: what.into() }
}

/// Rows of what a video shows and does not count, at most.
const UNCOUNTED_MAX: usize = (SUBTITLES_PER_VIDEO_MAX + SPECIALS_PER_VIDEO_MAX) as usize + 1;
