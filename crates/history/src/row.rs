//! One row, borrowed: what decisions, outcomes, hot blocks and day rows all
//! pass to each other. The kind stands beside it.

use tideline_types::Millis;
use tideline_types::limits::{FIELD_BYTES_MAX, LENGTH_MS_MAX};

use crate::codec::{BadBytes, Reader, put_signed, put_text, put_varint};
use crate::id::{IdBuf, PackedId};
use crate::kinds::KindId;
use crate::query::{Row, RowFacts};
use crate::retry::Retries;

/// A row of some kind, borrowed from wherever it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef<'a> {
    /// Which object.
    pub id: PackedId<'a>,
    /// The part last named.
    pub part: Option<&'a str>,
    /// The last position, of that part, in ms.
    pub position_ms: Option<u64>,
    /// The last duration, of that part, in ms; never 0.
    pub duration_ms: Option<u64>,
    /// When; greater than 0.
    pub event_ms: Millis,
    /// The device last named.
    pub device: Option<&'a str>,
    /// The group last named.
    pub group: Option<&'a str>,
    /// Whether the part was ever finished.
    pub finished: bool,
    /// Declared finished, with no position since.
    pub declared: bool,
    /// Since plays last went up, a mark was in the first half (or no play yet).
    pub began: bool,
    /// How often.
    pub plays: u32,
    /// The row's last change of part; 0 if there was none.
    pub part_since: Millis,
    /// Remembered retries, oldest first.
    pub retries: Retries<'a>,
}

const PART: u64 = 1;
const DEVICE: u64 = 1 << 1;
const GROUP: u64 = 1 << 2;
const POSITION: u64 = 1 << 3;
const DURATION: u64 = 1 << 4;
const FINISHED: u64 = 1 << 5;
const DECLARED: u64 = 1 << 6;
const BEGAN: u64 = 1 << 7;
const PART_SINCE: u64 = 1 << 8;
const RETRIES: u64 = 1 << 9;
const KNOWN: u64 = (1 << 10) - 1;

impl<'a> RowRef<'a> {
    /// Borrows `row`, whose packed id is `id`.
    pub fn of(row: &'a Row, id: &'a IdBuf) -> Self {
        Self {
            id: id.borrow(),
            part: row.part.as_deref(),
            position_ms: row.position_ms,
            duration_ms: row.duration_ms,
            event_ms: row.event_ms,
            device: row.device.as_deref(),
            group: row.group.as_deref(),
            finished: row.finished,
            declared: row.facts.declared,
            began: row.facts.began,
            plays: row.plays,
            part_since: row.facts.part_since,
            retries: Retries::of(&row.facts.retries),
        }
    }

    /// The row as an owned one of `kind`, with every fact.
    pub fn to_row(&self, kind: KindId) -> Row {
        let mut row = self.to_shown(kind);
        row.facts.retries = self.retries.iter().collect();
        row
    }

    /// The row as an owned one of `kind`, without the retries that no list
    /// shows.
    pub fn to_shown(&self, kind: KindId) -> Row {
        Row {
            kind,
            id: self.id.text(),
            part: self.part.map(Into::into),
            position_ms: self.position_ms,
            duration_ms: self.duration_ms,
            event_ms: self.event_ms,
            device: self.device.map(Into::into),
            group: self.group.map(Into::into),
            finished: self.finished,
            plays: self.plays,
            facts: RowFacts {
                declared: self.declared,
                began: self.began,
                part_since: self.part_since,
                retries: Vec::new(),
            },
        }
    }

    /// About how many bytes [`Self::write`] appends; not fewer.
    pub(crate) fn bytes_about(&self) -> usize {
        let texts = [self.part, self.device, self.group];
        let texts = texts.into_iter().flatten().map(|text| text.len() + 1).sum::<usize>();
        128 + texts + self.retries.len() * 20
    }

    /// Appends the row with every fact; times are told from `base`.
    pub(crate) fn write(&self, base: Millis, out: &mut Vec<u8>) {
        let has = |present: bool, bit: u64| if present { bit } else { 0 };
        let bits = has(self.part.is_some(), PART)
            | has(self.device.is_some(), DEVICE)
            | has(self.group.is_some(), GROUP)
            | has(self.position_ms.is_some(), POSITION)
            | has(self.duration_ms.is_some(), DURATION)
            | has(self.finished, FINISHED)
            | has(self.declared, DECLARED)
            | has(self.began, BEGAN)
            | has(self.part_since != Millis(0), PART_SINCE)
            | has(!self.retries.is_empty(), RETRIES);
        put_varint(out, bits);
        self.id.write(out);
        put_signed(out, self.event_ms.0.wrapping_sub(base.0));
        put_varint(out, u64::from(self.plays));
        for text in [self.part, self.device, self.group].into_iter().flatten() {
            put_text(out, text);
        }
        for number in [self.position_ms, self.duration_ms].into_iter().flatten() {
            put_varint(out, number);
        }
        if self.part_since != Millis(0) {
            put_signed(out, self.part_since.0.wrapping_sub(base.0));
        }
        if !self.retries.is_empty() {
            out.push(self.retries.len() as u8);
            out.push(self.retries.made());
            self.retries.write(base.0, out);
        }
    }

    /// Reads no more than the id of what [`Self::write`] wrote.
    pub(crate) fn read_id(reader: &mut Reader<'a>) -> Result<PackedId<'a>, BadBytes> {
        reader.varint()?;
        let form = reader.u8()?;
        PackedId::read_trusted(form, reader)
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(base: Millis, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let bits = reader.varint()?;
        if bits & !KNOWN != 0 {
            return Err(BadBytes("a row has unknown fields"));
        }
        let has = |bit: u64| bits & bit != 0;
        let id = PackedId::read(reader)?;
        let event_ms = read_time(base, reader)?;
        let plays = reader.varint32()?;
        let mut text = |bit| has(bit).then(|| reader.text(FIELD_BYTES_MAX)).transpose();
        let (part, device, group) = (text(PART)?, text(DEVICE)?, text(GROUP)?);
        let mut length = |bit| has(bit).then(|| reader.varint()).transpose();
        let (position_ms, duration_ms) = (length(POSITION)?, length(DURATION)?);
        let part_since = if has(PART_SINCE) { read_time(base, reader)? } else { Millis(0) };
        let retries = if has(RETRIES) {
            let (count, made) = (usize::from(reader.u8()?), reader.u8()?);
            if count == 0 {
                return Err(BadBytes("a row remembers no retry and says it does"));
            }
            Retries::read(count, made, base.0, reader)?
        } else {
            Retries::EMPTY
        };
        let row = Self {
            id,
            part,
            position_ms,
            duration_ms,
            event_ms,
            device,
            group,
            finished: has(FINISHED),
            declared: has(DECLARED),
            began: has(BEGAN),
            plays,
            part_since,
            retries,
        };
        row.check()?;
        Ok(row)
    }

    /// Whether every number is within its bounds.
    pub(crate) fn check(&self) -> Result<(), BadBytes> {
        let long = |number: Option<u64>| number.is_some_and(|ms| ms > LENGTH_MS_MAX);
        if long(self.position_ms) || long(self.duration_ms) || self.duration_ms == Some(0) {
            return Err(BadBytes("a row has an impossible position or duration"));
        }
        // Its day must be one that a row can have.
        if self.event_ms.0 > LENGTH_MS_MAX as i64 {
            return Err(BadBytes("a row's time is too far"));
        }
        Ok(())
    }
}

/// A time greater than 0, told from `base`.
pub(crate) fn read_time(base: Millis, reader: &mut Reader<'_>) -> Result<Millis, BadBytes> {
    let time = base.0.wrapping_add(reader.signed()?);
    if time > 0 { Ok(Millis(time)) } else { Err(BadBytes("a time is not after 0")) }
}
