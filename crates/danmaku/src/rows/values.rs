//! What the values of rows say: facts of a video, an index, a content.
//!
//! Always: what is read is what was written, and there is one way to write it.

use std::sync::Arc;

use tideline_record::codec::{BadBytes, Reader, put_signed, put_text, put_varint};
use tideline_types::limits::{COLOR_MAX, PROGRESS_MS_MAX, USER_BYTES_MAX};
use tideline_types::{Epoch, Millis, Seq, UserId};
use tideline_wire::danmaku::{Mode, Pool, Sender};

use crate::comment::{Content, Index, Rank, State, Writer};
use crate::id::{CommentId, stretch_of};

const VERSION: u8 = 1;

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

fn flag(byte: u8) -> Result<bool, BadBytes> {
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
