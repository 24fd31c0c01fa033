//! One user at rest: the rows of one partition key in the table `history`.
//!
//! | sort key | value |
//! |---|---|
//! | `0` | facts: applied (epoch, seq), counts per (kind, day), deletes, pauses, floors, rewards |
//! | `1` | remembered retries of all rows |
//! | `2`, kind's name, `0`, day of UTC | the marks of that day, oldest first |
//!
//! Every value begins with its version. Kinds stand by name. Reading checks
//! everything; no bytes make it panic.

mod bits;
mod counts;
mod day;
#[cfg(test)]
mod tests;
mod tidy;

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_store::Op;
use tideline_types::limits::{FIELD_BYTES_MAX, KIND_BYTES_MAX, USER_BYTES_MAX};
use tideline_types::{Epoch, Millis, Seq};

use crate::codec::{BadBytes, Reader, put_text, put_varint};
use crate::facts::{Block, Facts, Floor, Pause, Rewards};
use crate::id::{IdBuf, PackedId};
use crate::kinds::{KindId, Kinds};
use crate::outcome::{BlockRef, OutcomeRef, Restore};
use crate::retry::Retries;
use crate::timeline::{Timeline, Touched};
pub use counts::DayCounts;
pub(crate) use tidy::is_untidy;

const VERSION: u8 = 1;
const FACTS: u8 = 0;
const RETRIES: u8 = 1;
const DAY: u8 = 2;

/// Bytes at rest that are not what they were meant to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRow {
    /// A row does not read.
    #[error("a row of a user's history does not read: {0}")]
    Bytes(#[from] BadBytes),
    /// A kind's name that was never declared.
    #[error("a row of a user's history names the kind {0:?}, which is unknown")]
    Kind(Box<str>),
}

/// How far the rows at rest have followed the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Applied {
    /// Of the last outcome applied.
    pub epoch: Epoch,
    /// Of the last outcome applied.
    pub seq: Seq,
}

/// A user id longer than an object's may be; its length follows.
const LONG: u8 = 14;
/// What stays of an erased user: a keyed hash of 16 bytes follows.
const ERASED: u8 = 15;

/// Whose rows a partition key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A user's.
    User(String),
    /// What stays of an erased user: a keyed hash.
    Erased([u8; 16]),
}

/// The partition key of a user: short, and never the beginning of another's.
pub fn partition_key(user: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(20);
    if user.len() > FIELD_BYTES_MAX {
        key.push(LONG);
        put_text(&mut key, user);
        return key;
    }
    IdBuf::pack(user).borrow().write(&mut key);
    if is_number(key[0]) {
        key[1..].reverse();
    }
    key
}

/// Numbers stand with their greatest byte first, so that neighbours in the
/// table share their beginnings.
fn is_number(form: u8) -> bool {
    form != PackedId::TEXT_FORM && form < PackedId::WIDE_FORM
}

/// The partition key of what stays of an erased user.
pub fn erased_key(hash: [u8; 16]) -> Vec<u8> {
    let mut key = vec![ERASED];
    key.extend_from_slice(&hash);
    key
}

/// Whose partition key it is.
pub fn owner_of(partition_key: &[u8]) -> Result<Owner, BadRow> {
    let mut reader = Reader::new(partition_key);
    let owner = match reader.u8()? {
        ERASED => {
            let hash = reader.bytes(16)?;
            Owner::Erased(hash.try_into().expect("sixteen bytes were taken"))
        }
        LONG => match reader.text(USER_BYTES_MAX)? {
            user if user.len() > FIELD_BYTES_MAX => Owner::User(user.to_owned()),
            _ => return Err(BadBytes("a user's key is not in its shortest form").into()),
        },
        form if is_number(form) => {
            let mut number = reader.bytes(usize::from(form))?.to_vec();
            number.reverse();
            Owner::User(PackedId::read_body(form, &mut Reader::new(&number))?.text().into())
        }
        form => Owner::User(PackedId::read_body(form, &mut reader)?.text().into()),
    };
    if !reader.is_empty() {
        return Err(BadBytes("bytes are left over").into());
    }
    Ok(owner)
}

/// The user of a partition key.
pub fn user_of(partition_key: &[u8]) -> Result<String, BadRow> {
    match owner_of(partition_key)? {
        Owner::User(user) => Ok(user),
        Owner::Erased(_) => Err(BadBytes("an erased user's key names no user").into()),
    }
}

/// The sort key of the facts row.
pub(crate) const FACTS_KEY: &[u8] = &[FACTS];

/// How many marks each day row holds, as a facts row says.
pub(crate) fn day_counts(facts: &[u8], kinds: &Kinds) -> Result<DayCounts, BadRow> {
    let mut found = Found::default();
    found.facts(&mut body(facts)?, kinds)?;
    Ok(found.counted.unwrap_or_default())
}

/// The sort key of a day row.
pub(crate) fn day_key(name: &str, day: i32) -> Bytes {
    let mut key = Vec::with_capacity(name.len() + 6);
    key.push(DAY);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key.extend_from_slice(&(day as u32 ^ 1 << 31).to_be_bytes());
    key.into()
}

/// The changes that bring a user's rows at rest up to `timeline`, of which
/// `touched` says what changed since the last time. `applied` is the place of
/// the last outcome in it; `now` decides which retries are still worth a byte.
pub fn plan(
    timeline: &Timeline,
    touched: &Touched,
    applied: Applied,
    kinds: &Kinds,
    now: Millis,
) -> Vec<Op> {
    let mut ops = Vec::with_capacity(touched.days().len() + 2);
    timeline.for_days(touched.days(), |kind, day, rows| {
        let sort_key = day_key(kinds.name(kind), day);
        ops.push(if rows.is_empty() {
            Op::Delete { sort_key }
        } else {
            Op::Put { sort_key, value: day::write(day, rows).into() }
        });
    });
    if touched.retries() {
        let sort_key = Bytes::from_static(&[RETRIES]);
        ops.push(match write_retries(timeline, kinds, now) {
            Some(value) => Op::Put { sort_key, value: value.into() },
            None => Op::Delete { sort_key },
        });
    }
    ops.push(Op::Put {
        sort_key: Bytes::from_static(&[FACTS]),
        value: write_facts(timeline, applied, kinds, now).into(),
    });
    ops
}

fn write_retries(timeline: &Timeline, kinds: &Kinds, now: Millis) -> Option<Vec<u8>> {
    let mut any = false;
    let mut value = vec![VERSION];
    put_varint(&mut value, now.0.max(0) as u64);
    for (kind, row) in timeline.all_kept() {
        let mut retries = row.retries;
        retries.retain(|retry| retry.taken_ms > now.plus(-tideline_types::limits::RETRY_WINDOW_MS));
        if retries.is_empty() {
            continue;
        }
        any = true;
        put_text(&mut value, kinds.name(kind));
        row.id.write(&mut value);
        value.push(retries.len() as u8);
        value.push(retries.made());
        retries.write(now.0, &mut value);
    }
    any.then_some(value)
}

fn write_facts(timeline: &Timeline, applied: Applied, kinds: &Kinds, now: Millis) -> Vec<u8> {
    // No zone is two days from UTC: an older day cannot come again.
    let first_day = now.utc_day().saturating_sub(2);
    let mut value = vec![VERSION];
    put_varint(&mut value, u64::from(applied.epoch.0));
    put_varint(&mut value, applied.seq.0);
    let counts = counts::write(&counts::of(timeline), kinds);
    put_varint(&mut value, counts.len() as u64);
    value.extend_from_slice(&counts);
    let facts = timeline.facts();
    let ids: Vec<Option<IdBuf>> =
        facts.blocks().map(|block| block.id.as_deref().map(IdBuf::pack)).collect();
    let floors: Vec<IdBuf> = facts.floors().iter().map(|floor| IdBuf::pack(&floor.id)).collect();
    let restore = Restore {
        taken_ms: Millis(1),
        deletes: facts
            .blocks()
            .take(if broken!(DroppedBlock) { 0 } else { usize::MAX })
            .zip(&ids)
            .map(|(block, id)| BlockRef {
                kind: block.kind.map(|kind| kinds.name(kind)),
                id: id.as_ref().map(IdBuf::borrow),
                after_ms: block.after_ms,
                before_ms: block.before_ms,
                until_ms: block.until_ms,
            })
            .collect(),
        pauses: facts.pauses().iter().map(|pause| (pause.from_ms, pause.to_ms)).collect(),
        off_since: facts.off_since(),
        floors: facts
            .floors()
            .iter()
            .zip(&floors)
            .map(|(floor, id)| (kinds.name(floor.kind), floor.event_ms, id.borrow()))
            .collect(),
        rewards: timeline
            .rewards()
            .iter()
            .filter(|reward| reward.day >= first_day)
            .map(|reward| (kinds.name(reward.kind), reward.day))
            .collect(),
        rows: Vec::new(),
    };
    OutcomeRef::Restore(restore).encode(&mut value);
    value
}

/// Reads a user from all rows of its partition key, in order. A day row may be
/// missing (it goes when its retention is over); one that does not hold as
/// many marks as the facts say is an error.
pub fn load(rows: &[(Bytes, Bytes)], kinds: &Kinds) -> Result<(Timeline, Applied), BadRow> {
    let found = Found::read(rows, kinds)?;
    if let Some(counted) = &found.counted
        && found.days.iter().any(|(day, count)| counted.get(day) != Some(count))
    {
        return Err(BadBytes("a day does not hold as many marks as were counted").into());
    }
    Ok((found.timeline, found.applied))
}

/// What stands among `rows`, as something that has to be written anew.
pub(crate) fn touched(rows: &[(Bytes, Bytes)], kinds: &Kinds) -> Result<Touched, BadRow> {
    let found = Found::read(rows, kinds)?;
    Ok(match rows {
        [] => Touched::default(),
        _ => Touched::all(found.days.into_keys()),
    })
}

/// The day rows that the facts count and that are not among `rows`, though no
/// retention explains it. For checks of a whole folder.
pub fn missing_days(
    rows: &[(Bytes, Bytes)],
    kinds: &Kinds,
    now: Millis,
) -> Result<Vec<(KindId, i32)>, BadRow> {
    let found = Found::read(rows, kinds)?;
    let stands = |&(kind, day): &(KindId, i32)| {
        let end = (i64::from(day) + 1).saturating_mul(tideline_types::DAY_MS);
        let retention = kinds.get(kind).retention_ms();
        retention.is_none_or(|retention| end.saturating_add(retention) >= now.0)
    };
    let counted = found.counted.unwrap_or_default();
    Ok(counted.into_keys().filter(|day| !found.days.contains_key(day)).filter(stands).collect())
}

/// Everything that a user's rows say.
#[derive(Default)]
struct Found {
    timeline: Timeline,
    applied: Applied,
    /// What the facts say of the days; `None` without a facts row.
    counted: Option<DayCounts>,
    /// What the days are.
    days: DayCounts,
}

impl Found {
    fn read(rows: &[(Bytes, Bytes)], kinds: &Kinds) -> Result<Self, BadRow> {
        let mut found = Self { days: BTreeMap::new(), ..Self::default() };
        let mut retries: Option<&[u8]> = None;
        for (sort_key, value) in rows {
            let mut key = Reader::new(sort_key);
            match key.u8()? {
                FACTS => found.facts(&mut body(value)?, kinds)?,
                RETRIES => retries = Some(value),
                DAY => found.day(&mut key, value, kinds)?,
                _ => return Err(BadBytes("unknown sort key").into()),
            }
        }
        if let Some(value) = retries {
            read_retries(&mut found.timeline, &mut body(value)?, kinds)?;
        }
        Ok(found)
    }

    fn facts(&mut self, value: &mut Reader<'_>, kinds: &Kinds) -> Result<(), BadRow> {
        self.applied = Applied { epoch: Epoch(value.varint32()?), seq: Seq(value.varint()?) };
        let counts = usize::try_from(value.varint()?).map_err(|_| BadBytes("cut short"))?;
        self.counted = Some(counts::read(value.bytes(counts)?, kinds)?);
        let outcome = OutcomeRef::decode(value.left()).map_err(|bad| bad.0)?;
        let OutcomeRef::Restore(restore) = outcome else {
            return Err(BadBytes("facts are not facts").into());
        };
        let mut facts = Facts::default();
        for block in &restore.deletes {
            facts.restore_block(Block {
                kind: block.kind.map(|name| known(name, kinds)).transpose()?,
                id: block.id.map(PackedId::text),
                after_ms: block.after_ms,
                before_ms: block.before_ms,
                until_ms: block.until_ms,
            });
        }
        for &(from_ms, to_ms) in &restore.pauses {
            facts.add_pause(Pause { from_ms, to_ms });
        }
        if let Some(since) = restore.off_since {
            facts.off_from(since);
        }
        for &(name, event_ms, id) in &restore.floors {
            facts.raise_floor(Floor { kind: known(name, kinds)?, event_ms, id: id.text() });
        }
        let mut rewards = Rewards::default();
        for &(name, day) in &restore.rewards {
            rewards.add(known(name, kinds)?, day);
        }
        self.timeline.load_facts(facts, rewards);
        Ok(())
    }

    fn day(&mut self, key: &mut Reader<'_>, value: &[u8], kinds: &Kinds) -> Result<(), BadRow> {
        let left = key.left();
        let end = memchr::memchr(0, left).ok_or(BadBytes("a day's key is cut short"))?;
        if end == 0 || end > KIND_BYTES_MAX || left.len() != end + 5 {
            return Err(BadBytes("a day's key has the wrong length").into());
        }
        let name =
            std::str::from_utf8(&left[..end]).map_err(|_| BadBytes("a kind is not UTF-8"))?;
        let kind = known(name, kinds)?;
        let raw: [u8; 4] = left[end + 1..].try_into().expect("the length was checked");
        let day = (u32::from_be_bytes(raw) ^ 1 << 31) as i32;
        let marks = day::read(day, value)?;
        self.days.insert((kind, day), marks.len() as u64);
        for mark in marks {
            if self.timeline.load_row(kind, &mark.borrow()) {
                return Err(BadBytes("an object has two rows").into());
            }
        }
        Ok(())
    }
}

/// What follows the version of a facts or retries row.
fn body(value: &[u8]) -> Result<Reader<'_>, BadBytes> {
    let mut value = Reader::new(value);
    match value.u8()? {
        VERSION => Ok(value),
        _ => Err(BadBytes("unknown version")),
    }
}

fn known(name: &str, kinds: &Kinds) -> Result<KindId, BadRow> {
    kinds.find(name).ok_or_else(|| BadRow::Kind(name.into()))
}

fn read_retries(
    timeline: &mut Timeline,
    value: &mut Reader<'_>,
    kinds: &Kinds,
) -> Result<(), BadRow> {
    let base = Millis(value.varint()? as i64);
    while !value.is_empty() {
        let kind = known(value.text(KIND_BYTES_MAX)?, kinds)?;
        let id = PackedId::read(value)?;
        let (count, made) = (usize::from(value.u8()?), value.u8()?);
        let retries = Retries::read(count, made, base.0, value)?;
        timeline.load_retries(kind, id, retries);
    }
    Ok(())
}
