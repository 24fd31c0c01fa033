//! An outcome as bytes, and back.

use std::sync::Arc;

use tideline_record::codec::{BadBytes, Reader, put_text, put_varint};
use tideline_types::limits::{FIELD_BYTES_MAX, FILTERS_BYTES_MAX, USER_BYTES_MAX};
use tideline_types::{Millis, UserId};

use super::{Act, Change, Outcome};
use crate::comment::{Actor, Content, Role};
use crate::id::CommentId;
use crate::rows::{self, MarkKind};
use crate::sent::Sent;

impl Outcome {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.act as u8];
        put_varint(&mut out, self.taken.0.max(0) as u64);
        match &self.actor {
            None => out.push(0),
            Some(actor) => {
                out.push(actor.role as u8 + 1);
                put_text(&mut out, actor.user.as_str());
            }
        }
        self.changes.iter().for_each(|change| put_change(&mut out, change));
        out
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(BadBytes("another version"));
        }
        let act = *Act::ALL.get(usize::from(reader.u8()?)).ok_or(BadBytes("no such act"))?;
        let taken = i64::try_from(reader.varint()?).map_err(|_| BadBytes("a time is too late"))?;
        let actor = match reader.u8()?.checked_sub(1) {
            None => None,
            Some(role) => {
                let role = *Role::ALL.get(usize::from(role)).ok_or(BadBytes("no such role"))?;
                let user = UserId::new(reader.text(USER_BYTES_MAX)?);
                Some(Actor { user: user.map_err(|_| BadBytes("no such user"))?, role })
            }
        };
        let mut changes = Vec::new();
        while !reader.is_empty() {
            changes.push(take_change(&mut reader)?);
        }
        Ok(Self { taken: Millis(taken), act, actor, changes })
    }
}

const VERSION: u8 = 1;
const NEW: u8 = 1;
const INDEX: u8 = 2;
const INDEX_WITH_CONTENT: u8 = 3;
const MARK: u8 = 4;
const GONE: u8 = 5;
const SETTINGS: u8 = 6;
const FILTERS: u8 = 7;
const COUNT: u8 = 8;
const FORGOTTEN: u8 = 9;
const SENT: u8 = 10;
const OTHER_FILTERS: u8 = 11;
const COUNT_OF: u8 = 12;
const WORK: u8 = 13;

fn put_change(out: &mut Vec<u8>, change: &Change) {
    match change {
        Change::New { id, index, content } => {
            put_id(out, NEW, *id);
            rows::put_index(out, index);
            put_block(out, &rows::encode_content(*id, content));
        }
        Change::Index { id, before, after, content } => {
            put_id(out, if content.is_some() { INDEX_WITH_CONTENT } else { INDEX }, *id);
            rows::put_index(out, before);
            rows::put_index(out, after);
            if let Some(content) = content {
                put_block(out, &rows::encode_content(*id, content));
            }
        }
        Change::Mark { kind, id, user, reason } => {
            put_id(out, MARK, *id);
            out.extend([*kind as u8, *reason]);
            out.extend(user.to_le_bytes());
        }
        Change::Gone { id, before, user } => {
            put_id(out, GONE, *id);
            rows::put_index(out, before);
            out.extend(user.to_le_bytes());
        }
        Change::Forgotten { user } => {
            out.push(FORGOTTEN);
            out.extend(user.to_le_bytes());
        }
        Change::Settings { before, after } => {
            out.push(SETTINGS);
            rows::put_settings(out, before);
            rows::put_settings(out, after);
        }
        Change::Filters { before, after } => {
            out.push(if before.is_some() { OTHER_FILTERS } else { FILTERS });
            before.iter().for_each(|list| put_block(out, list.as_bytes()));
            put_block(out, after.as_bytes());
        }
        Change::Count { total, shown, work } => {
            out.push(if work.is_some() { COUNT_OF } else { COUNT });
            put_varint(out, *total);
            put_varint(out, *shown);
            work.iter().for_each(|work| put_text(out, work));
        }
        Change::Work { before, after } => {
            out.extend([WORK, u8::from(before.is_some()) | u8::from(after.is_some()) << 1]);
            [before, after].into_iter().flatten().for_each(|work| put_text(out, work));
        }
        Change::Sent(sent) => {
            out.push(SENT);
            put_block(out, &sent.encode());
        }
    }
}

fn put_id(out: &mut Vec<u8>, tag: u8, id: CommentId) {
    out.push(tag);
    out.extend(id.bits().to_le_bytes());
}

fn put_block(out: &mut Vec<u8>, block: &[u8]) {
    put_varint(out, block.len() as u64);
    out.extend(block);
}

fn take_change(reader: &mut Reader<'_>) -> Result<Change, BadBytes> {
    let tag = reader.u8()?;
    Ok(match tag {
        NEW => {
            let (id, index) = (take_id(reader)?, rows::take_index(reader)?);
            Change::New { id, index, content: take_content(reader, id)? }
        }
        INDEX | INDEX_WITH_CONTENT => {
            let id = take_id(reader)?;
            let (before, after) = (rows::take_index(reader)?, rows::take_index(reader)?);
            let content = match tag {
                INDEX => None,
                _ => Some(take_content(reader, id)?),
            };
            Change::Index { id, before, after, content }
        }
        MARK => {
            let id = take_id(reader)?;
            let kind = match reader.u8()? {
                0 => MarkKind::Like,
                1 => MarkKind::Report,
                _ => return Err(BadBytes("no such mark")),
            };
            let reason = reader.u8()?;
            Change::Mark { kind, id, user: reader.u64_le()?, reason }
        }
        GONE => {
            let (id, before) = (take_id(reader)?, rows::take_index(reader)?);
            Change::Gone { id, before, user: reader.u64_le()? }
        }
        SETTINGS => {
            let (before, after) = (rows::take_settings(reader)?, rows::take_settings(reader)?);
            Change::Settings { before, after }
        }
        FILTERS => Change::Filters { before: None, after: take_list(reader)? },
        OTHER_FILTERS => {
            Change::Filters { before: Some(take_list(reader)?), after: take_list(reader)? }
        }
        FORGOTTEN => Change::Forgotten { user: reader.u64_le()? },
        COUNT | COUNT_OF => {
            let (total, shown) = (reader.varint()?, reader.varint()?);
            Change::Count { total, shown, work: take_work(reader, tag == COUNT_OF)? }
        }
        WORK => {
            let bits = reader.u8()?;
            if bits > 3 {
                return Err(BadBytes("flags of works are out of range"));
            }
            let before = take_work(reader, bits & 1 == 1)?;
            Change::Work { before, after: take_work(reader, bits & 2 == 2)? }
        }
        SENT => Change::Sent(Sent::decode(take_block(reader)?)?),
        _ => return Err(BadBytes("no such change")),
    })
}

fn take_id(reader: &mut Reader<'_>) -> Result<CommentId, BadBytes> {
    CommentId::from_bits(reader.u64_le()?).ok_or(BadBytes("an id is negative"))
}

fn take_block<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], BadBytes> {
    let len = usize::try_from(reader.varint()?).map_err(|_| BadBytes("cut short"))?;
    reader.bytes(len)
}

fn take_list(reader: &mut Reader<'_>) -> Result<Arc<str>, BadBytes> {
    let list = take_block(reader)?;
    if list.len() > FILTERS_BYTES_MAX {
        return Err(BadBytes("a list of filters is too long"));
    }
    Ok(std::str::from_utf8(list).map_err(|_| BadBytes("a list is not UTF-8"))?.into())
}

/// A work, if it is there.
fn take_work(reader: &mut Reader<'_>, is: bool) -> Result<Option<Arc<str>>, BadBytes> {
    if is { Ok(Some(reader.text(FIELD_BYTES_MAX)?.into())) } else { Ok(None) }
}

fn take_content(reader: &mut Reader<'_>, id: CommentId) -> Result<Content, BadBytes> {
    rows::decode_content(id, take_block(reader)?)
}
