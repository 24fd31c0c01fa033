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

mod values;

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_record::codec::BadBytes;
use tideline_store::{Commit, Op, TableName};

use crate::comment::{Index, Rank, State};
use crate::id::CommentId;
use crate::top::Order;

pub use values::{Facts, Settings, decode_content, decode_index, encode_content, encode_index};
pub(crate) use values::{put_index, put_settings, take_index, take_settings};

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

/// What is hidden for another reason than room, behind a comment or from the
/// first: `from <= key < to`.
pub fn hidden_range(after: Option<CommentId>) -> (Bytes, Bytes) {
    let from = match after {
        Some(id) => [&placed(HIDDEN, id)[..], &[0]].concat(),
        None => vec![HIDDEN],
    };
    (from.into(), vec![HIDDEN + 1].into())
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

#[cfg(test)]
pub(crate) mod tests;
