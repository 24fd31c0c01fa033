//! What lies at rest of a video, and in which bytes.
//!
//! | sort key | value | what |
//! |---|---|---|
//! | `00` | facts | applied (epoch, seq), settings, counts by stretch |
//! | `01` | filters | the owner's list, as JSON |
//! | `02` | count | what a sender posted, under their own name alone |
//! | `03` | text | the work that the video belongs to |
//! | `10` stretch id | index | a comment that is shown and does not count |
//! | `20` stretch !rank !id | index | the queue of a stretch, best first: what is shown, then what is hidden as overflow |
//! | `30` stretch id | index | one hidden for another reason |
//! | `40` stretch id | content | what never changes about any of them |
//! | `50` stretch id | text | of a script or BAS comment: apart, for it may be long |
//! | `60` user id | fingerprint of `client_id`, or empty | who wrote it |
//! | `70` kind id user | a byte | that a user liked or reported it |
//!
//! All under the partition key `v` + video; a user is a keyed hash of 64 bits.
//! Under `u` + user there is an empty row `v` + video for each video that they
//! wrote on; the rest is theirs alone, see `personal`. Numbers in keys are big-endian, stretches two bytes, ids eight.
//!
//! So a video is opened by reading `10`, of each stretch in `20` as many as it
//! shows, and the contents of what is found; the next comment to return is the
//! row behind these. Neither depends on how many are hidden, and a comment that
//! comes or goes for want of room stays where it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tideline_store::codec::{BadBytes, Reader, put_signed, put_text, put_varint};
use tideline_store::{Commit, Op, TableName};
use tideline_types::limits::{COLOR_MAX, PROGRESS_MS_MAX, USER_BYTES_MAX};
use tideline_types::{Epoch, Millis, Seq, UserId};
use tideline_wire::danmaku::{Mode, Pool, Sender};

use crate::comment::{Content, Index, Rank, State, Writer};
use crate::id::{CommentId, stretch_of};
use crate::top::Order;

/// Changes of rows, by sort key; `None` removes.
pub type Rows = BTreeMap<Bytes, Option<Bytes>>;

/// The sort key of the facts.
pub const FACTS_KEY: &[u8] = &[0];
/// The sort key of the owner's filters.
pub const FILTERS_KEY: &[u8] = &[1];
/// The sort key of the work.
pub const WORK_KEY: &[u8] = &[3];
/// The sort key of what a sender posted.
pub const SENT_KEY: &[u8] = &[2];
const SHOWN: u8 = 0x10;
const QUEUE: u8 = 0x20;
const HIDDEN: u8 = 0x30;
const CONTENT: u8 = 0x40;
const TEXT: u8 = 0x50;
const OWN: u8 = 0x60;
const MARK: u8 = 0x70;
const VERSION: u8 = 1;

/// The partition key of a video.
pub fn video_key(video: &str) -> Vec<u8> {
    [b"v", video.as_bytes()].concat()
}

/// The partition key of a user.
pub fn user_key(user: u64) -> Vec<u8> {
    [&b"u"[..], &user.to_be_bytes()].concat()
}

/// The sort key that says of a user that they wrote on a video.
pub fn wrote_key(video: &str) -> Bytes {
    [WROTE, video.as_bytes()].concat().into()
}

/// The video that a sort key of [`wrote_key`] says.
pub fn wrote_on(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(WROTE)?).ok()
}

const WROTE: &[u8] = b"v";

/// The write that says of a user whether they wrote on a video.
pub(crate) fn note_user(user: u64, video: &str, has: bool) -> Commit {
    let sort_key = wrote_key(video);
    let op = match has {
        true => Op::Put { sort_key, value: Bytes::new() },
        false => Op::Delete { sort_key },
    };
    Commit { table: TableName::Danmaku, partition_key: user_key(user).into(), ops: vec![op] }
}

fn placed(kind: u8, id: CommentId) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(id.stretch().to_be_bytes());
    key.extend(id.bits().to_be_bytes());
    key
}

/// Where the index of a comment lies.
pub fn index_key(id: CommentId, index: &Index) -> Bytes {
    match index.state {
        State::Shown if !index.counts() => placed(SHOWN, id).into(),
        State::Shown | State::Overflow => queue_key((index.rank, id)),
        _ => placed(HIDDEN, id).into(),
    }
}

/// Where the index of a comment lies that is not shown: one of these.
pub fn hidden_keys(id: CommentId) -> [Bytes; 4] {
    let [a, b, c] = Rank::ALL.map(|rank| queue_key((rank, id)));
    [placed(HIDDEN, id).into(), a, b, c]
}

fn queue_key((rank, id): Order) -> Bytes {
    let mut key = vec![QUEUE];
    key.extend(id.stretch().to_be_bytes());
    key.push(!(rank as u8));
    key.extend((!id.bits()).to_be_bytes());
    key.into()
}

/// The order that a key of the queue says.
pub fn order_of(key: &[u8]) -> Result<Order, BadBytes> {
    let bad = BadBytes("not a key of the queue");
    let (&kind, rest) = key.split_first().ok_or(bad)?;
    let (_, rest) = rest.split_at_checked(2).ok_or(bad)?;
    let (&rank, id) = rest.split_first().ok_or(bad)?;
    let bits = !u64::from_be_bytes(id.try_into().map_err(|_| bad)?);
    let id = CommentId::from_bits(bits).ok_or(bad)?;
    let rank = *Rank::ALL.get(usize::from(!rank)).ok_or(bad)?;
    let order = (rank, id);
    if kind != QUEUE || queue_key(order) != key { Err(bad) } else { Ok(order) }
}

/// The queue of a stretch below an order, or from the best: `from <= key < to`.
pub fn queue_range(stretch: u16, below: Option<Order>) -> (Bytes, Bytes) {
    let (from, to) = stretch_range(QUEUE, stretch);
    let after = |order| Bytes::from([&queue_key(order)[..], &[0]].concat());
    (below.map_or(from, after), to)
}

/// What is shown and does not count: `from <= key < to`.
pub fn shown_range() -> (Bytes, Bytes) {
    (vec![SHOWN].into(), vec![SHOWN + 1].into())
}

/// The contents of a stretch: `from <= key < to`.
pub fn content_range(stretch: u16) -> (Bytes, Bytes) {
    stretch_range(CONTENT, stretch)
}

fn stretch_range(kind: u8, stretch: u16) -> (Bytes, Bytes) {
    let from = [&[kind][..], &stretch.to_be_bytes()].concat();
    let to = [&[kind][..], &(stretch + 1).to_be_bytes()].concat();
    (from.into(), to.into())
}

/// Where a content lies.
pub fn content_key(id: CommentId) -> Bytes {
    placed(CONTENT, id).into()
}

/// Where the text of a special comment lies.
pub fn text_key(id: CommentId) -> Bytes {
    placed(TEXT, id).into()
}

/// The id at the end of a key.
pub fn id_of(key: &[u8]) -> Result<CommentId, BadBytes> {
    let id = key.last_chunk().map(|id| u64::from_be_bytes(*id)).and_then(CommentId::from_bits);
    id.ok_or(BadBytes("a key without an id"))
}

/// The id in a key of an index row, of whatever kind.
pub fn id_in(key: &[u8]) -> Result<CommentId, BadBytes> {
    if key.first() == Some(&QUEUE) { Ok(order_of(key)?.1) } else { id_of(key) }
}

/// Where it says that a user wrote a comment.
pub fn own_key(user: u64, id: CommentId) -> Bytes {
    [&[OWN][..], &user.to_be_bytes(), &id.bits().to_be_bytes()].concat().into()
}

/// What a user wrote, below an id: `from <= key < to`.
pub fn own_range(user: u64, below: Option<CommentId>) -> (Bytes, Bytes) {
    let from = [&[OWN][..], &user.to_be_bytes()].concat();
    let end = below.map_or(u64::MAX, CommentId::bits).to_be_bytes();
    let to = [&from[..], &end].concat();
    (from.into(), to.into())
}

/// What a user may say of a comment, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// That they like it.
    Like,
    /// That it should not be there.
    Report,
}

/// Where it says that a user said something of a comment.
pub fn mark_key(kind: MarkKind, id: CommentId, user: u64) -> Bytes {
    let head = [MARK, kind as u8];
    [&head[..], &id.bits().to_be_bytes(), &user.to_be_bytes()].concat().into()
}

/// What an owner may set for a video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How long the video is, in ms; `None` if nobody knows.
    pub duration_ms: Option<u32>,
    /// The most comments shown; `None`: by the duration.
    pub limit: Option<u32>,
    /// Viewers may not post.
    pub closed: bool,
}

/// What a video needs besides its comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The epoch of the last outcome in the rows.
    pub epoch: Epoch,
    /// Its number.
    pub seq: Seq,
    /// What the owner set.
    pub settings: Settings,
    /// Comments of any state.
    pub total: u64,
    /// By stretch, those with any: how many of its queue are shown, and how
    /// many hidden.
    pub queue: Vec<(u16, u32, u64)>,
}

impl Facts {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_varint(&mut out, u64::from(self.epoch.0));
        put_varint(&mut out, self.seq.0);
        put_settings(&mut out, &self.settings);
        put_varint(&mut out, self.total);
        for (stretch, shown, hidden) in &self.queue {
            put_varint(&mut out, u64::from(*stretch));
            put_varint(&mut out, u64::from(*shown));
            put_varint(&mut out, *hidden);
        }
        out
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = versioned(bytes)?;
        let (epoch, seq) = (Epoch(reader.varint32()?), Seq(reader.varint()?));
        let settings = take_settings(&mut reader)?;
        let total = reader.varint()?;
        let mut queue: Vec<(u16, u32, u64)> = Vec::new();
        while !reader.is_empty() {
            let stretch = u16::try_from(reader.varint()?).ok();
            let stretch = stretch.filter(|at| *at <= stretch_of(PROGRESS_MS_MAX));
            let stretch = stretch.ok_or(BadBytes("a stretch is out of range"))?;
            let (shown, hidden) = (reader.varint32()?, reader.varint()?);
            let none = shown == 0 && hidden == 0;
            if none || queue.last().is_some_and(|(last, ..)| *last >= stretch) {
                return Err(BadBytes("counts of stretches are out of order"));
            }
            queue.push((stretch, shown, hidden));
        }
        Ok(Self { epoch, seq, settings, total, queue })
    }
}

fn versioned(bytes: &[u8]) -> Result<Reader<'_>, BadBytes> {
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        VERSION => Ok(reader),
        _ => Err(BadBytes("another version")),
    }
}

/// Adds settings.
pub(crate) fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    put_varint(out, settings.duration_ms.map_or(0, |ms| u64::from(ms) + 1));
    put_varint(out, settings.limit.map_or(0, |limit| u64::from(limit) + 1));
    out.push(u8::from(settings.closed));
}

/// Reads what [`put_settings`] writes.
pub(crate) fn take_settings(reader: &mut Reader<'_>) -> Result<Settings, BadBytes> {
    let mut optional = || Ok(reader.varint32()?.checked_sub(1));
    let (duration_ms, limit) = (optional()?, optional()?);
    let closed = flag(reader.u8()?)?;
    Ok(Settings { duration_ms, limit, closed })
}

pub(crate) fn flag(byte: u8) -> Result<bool, BadBytes> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(BadBytes("a flag is neither 0 nor 1")),
    }
}

/// Adds an index, without a version.
pub(crate) fn put_index(out: &mut Vec<u8>, index: &Index) {
    let pool = index.pool.number();
    out.push(
        index.state as u8 | pool << 3 | (index.rank as u8) << 5 | u8::from(index.reviewed) << 7,
    );
    out.push(index.mode.number());
    put_varint(out, u64::from(index.progress_ms));
    put_varint(out, u64::from(index.likes));
    put_varint(out, u64::from(index.reports));
}

/// Reads what [`put_index`] writes.
pub(crate) fn take_index(reader: &mut Reader<'_>) -> Result<Index, BadBytes> {
    let bits = reader.u8()?;
    let state = *State::ALL.get(usize::from(bits & 7)).ok_or(BadBytes("no such state"))?;
    let pool = Pool::from_number((bits >> 3 & 3).into()).ok_or(BadBytes("no such pool"))?;
    let rank = *Rank::ALL.get(usize::from(bits >> 5 & 3)).ok_or(BadBytes("no such rank"))?;
    let number = reader.u8()?;
    let mode = Mode::from_number(number.into()).filter(|mode| mode.number() == number);
    let mode = mode.ok_or(BadBytes("no such mode"))?;
    let progress_ms = reader.varint32()?;
    if progress_ms > PROGRESS_MS_MAX {
        return Err(BadBytes("a time is beyond every video"));
    }
    let (likes, reports) = (reader.varint32()?, reader.varint32()?);
    Ok(Index { state, rank, pool, mode, progress_ms, likes, reports, reviewed: bits >> 7 == 1 })
}

/// An index as it lies at rest.
pub fn encode_index(index: &Index) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_index(&mut out, index);
    out
}

/// Reads an index at rest.
pub fn decode_index(bytes: &[u8]) -> Result<Index, BadBytes> {
    let mut reader = versioned(bytes)?;
    let index = take_index(&mut reader)?;
    if reader.is_empty() { Ok(index) } else { Err(BadBytes("bytes after an index")) }
}

const HAS_CLIENT: u8 = 1 << 2;
const HAS_WEIGHT: u8 = 1 << 3;
const HAS_ATTR: u8 = 1 << 4;
const HAS_SIZE: u8 = 1 << 5;
const HAS_COLOR: u8 = 1 << 6;
const HAS_TIME: u8 = 1 << 7;

/// A content, at rest and in outcomes: everything usual is left out, the text
/// comes last. The time is counted from the one in the id.
pub fn encode_content(id: CommentId, content: &Content) -> Vec<u8> {
    let mut out = vec![VERSION, 0];
    match &content.writer {
        Writer::User(user) => put_text(&mut out, user.as_str()),
        Writer::Imported(sender) => {
            out[1] |= 1 + u8::from(sender.guest);
            out.extend(sender.hash.to_be_bytes());
        }
    }
    let mut some = |bit: u8, is: bool| {
        out[1] |= if is { bit } else { 0 };
        is
    };
    let since = content.sent_ms.0.wrapping_sub(id.time().0);
    let (has_client, has_weight) =
        (some(HAS_CLIENT, content.client.is_some()), some(HAS_WEIGHT, content.weight != 0));
    let (has_attr, has_size) =
        (some(HAS_ATTR, content.attr != 0), some(HAS_SIZE, content.size != 25));
    let (has_color, has_time) =
        (some(HAS_COLOR, content.color != COLOR_MAX), some(HAS_TIME, since != 0));
    if let Some(client) = content.client.filter(|_| has_client) {
        out.extend(client.to_be_bytes());
    }
    if has_weight {
        out.push(content.weight);
    }
    if has_attr {
        put_varint(&mut out, u64::from(content.attr));
    }
    if has_size {
        out.push(content.size);
    }
    if has_color {
        out.extend(&content.color.to_be_bytes()[1..]);
    }
    if has_time {
        put_signed(&mut out, since);
    }
    out.extend(content.text.as_bytes());
    out
}

/// Reads what [`encode_content`] writes.
pub fn decode_content(id: CommentId, bytes: &[u8]) -> Result<Content, BadBytes> {
    let mut reader = versioned(bytes)?;
    let bits = reader.u8()?;
    let writer = match bits & 3 {
        0 => {
            let user = UserId::new(reader.text(USER_BYTES_MAX)?);
            Writer::User(user.map_err(|_| BadBytes("a user has an impossible id"))?)
        }
        guest @ (1 | 2) => {
            let hash = reader.bytes(4)?.try_into().map_err(|_| BadBytes("cut short"))?;
            Writer::Imported(Sender { hash: u32::from_be_bytes(hash), guest: guest == 2 })
        }
        _ => return Err(BadBytes("no such writer")),
    };
    let has = |bit: u8| bits & bit != 0;
    let usual = BadBytes("something usual was not left out");
    let client = match has(HAS_CLIENT) {
        true => Some(reader.u64_le()?.swap_bytes()),
        false => None,
    };
    let weight = if has(HAS_WEIGHT) { reader.u8()? } else { 0 };
    let attr = if has(HAS_ATTR) { reader.varint32()? } else { 0 };
    let size = if has(HAS_SIZE) { reader.u8()? } else { 25 };
    let color = match has(HAS_COLOR) {
        true => reader.bytes(3)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
        false => COLOR_MAX,
    };
    let since = if has(HAS_TIME) { reader.signed()? } else { 0 };
    if has(HAS_WEIGHT) && weight == 0
        || has(HAS_ATTR) && attr == 0
        || has(HAS_SIZE) && size == 25
        || has(HAS_COLOR) && color == COLOR_MAX
        || has(HAS_TIME) && since == 0
    {
        return Err(usual);
    }
    let text = std::str::from_utf8(reader.left()).map_err(|_| BadBytes("a text is not UTF-8"))?;
    let sent_ms = Millis(id.time().0.wrapping_add(since));
    Ok(Content { color, size, sent_ms, writer, weight, attr, client, text: Arc::from(text) })
}

#[cfg(test)]
pub(crate) mod tests;
