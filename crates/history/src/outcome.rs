//! What the log holds: the outcome of each decision, whole.
//!
//! An outcome says what becomes of the user's state without asking a clock or
//! a configuration: a row as it becomes, the floor that it raises, whether it
//! is the first of the day, which old facts are forgotten. Kinds stand by
//! name. The first byte is the format's version, the second says which
//! outcome it is.
//!
//! Decoding checks everything; no bytes make it panic.

mod json;

pub use json::day_text;
use tideline_types::Millis;
use tideline_types::limits::{BLOCKS_PER_USER_MAX, KIND_BYTES_MAX, KINDS_MAX, PAUSES_PER_USER_MAX};

use crate::codec::{BadBytes, Reader, put_signed, put_text, put_varint};
use crate::id::PackedId;
use crate::row::{RowRef, read_time};

const VERSION: u8 = 1;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const CLEAR: u8 = 3;
const SWITCH: u8 = 4;
const ERASE: u8 = 5;
const RESTORE: u8 = 6;

/// Bytes that are no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an outcome: {0}")]
pub struct BadOutcome(#[from] pub BadBytes);

/// One decision's outcome, borrowed from its bytes.
#[allow(clippy::large_enum_variant)] // the large one is nearly all of them, and short-lived
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeRef<'a> {
    /// A row as it becomes.
    Put(Put<'a>),
    /// Objects deleted, one by one.
    Delete(Delete<'a>),
    /// A clear by kind, id or range.
    Clear(Clear<'a>),
    /// Recording switched on or off.
    Switch(Switch<'a>),
    /// Everything about the user erased.
    Erase(Erase),
    /// Rows and facts of an export put back.
    Restore(Restore<'a>),
}

/// A row as it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put<'a> {
    /// When the owner decided.
    pub taken_ms: Millis,
    /// The name of the row's kind.
    pub kind: &'a str,
    /// The row, with every fact.
    pub row: RowRef<'a>,
    /// The local day of which this is the kind's first accepted mark.
    pub first_of: Option<i32>,
    /// Rows of the kind at or below this (time, id) fell off.
    pub floor: Option<(Millis, PackedId<'a>)>,
}

/// Old facts that no event can meet any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut<'a> {
    /// Deletes of a kind (`None`: of no single kind) from before a time go.
    pub blocks: Vec<(Option<&'a str>, Millis)>,
    /// Recording intervals that ended at or before this go.
    pub pauses: Option<Millis>,
}

/// Objects deleted, one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// When the owner decided; the deletes hold up to this.
    pub taken_ms: Millis,
    /// What is forgotten on this occasion.
    pub cut: Cut<'a>,
    /// (kind, id) of each.
    pub keys: Vec<(&'a str, PackedId<'a>)>,
}

/// A clear by kind, id or range; all conditions hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clear<'a> {
    /// When the owner decided; the clear holds up to this.
    pub taken_ms: Millis,
    /// What is forgotten on this occasion.
    pub cut: Cut<'a>,
    /// This kind alone.
    pub kind: Option<&'a str>,
    /// This id alone.
    pub id: Option<PackedId<'a>>,
    /// At or after.
    pub after_ms: Option<Millis>,
    /// Before.
    pub before_ms: Option<Millis>,
}

/// Recording switched on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch<'a> {
    /// When.
    pub taken_ms: Millis,
    /// What is forgotten on this occasion.
    pub cut: Cut<'a>,
    /// On, or off.
    pub on: bool,
}

/// Everything about the user erased; earlier events are blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erase {
    /// When.
    pub taken_ms: Millis,
    /// The local day of that moment: rewards of earlier days go too.
    pub day: i32,
}

/// Rows and facts of an export put back, or a part of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restore<'a> {
    /// When.
    pub taken_ms: Millis,
    /// Deletes and clears that stand again.
    pub deletes: Vec<BlockRef<'a>>,
    /// Recording intervals.
    pub pauses: Vec<(Millis, Millis)>,
    /// Recording is off since then.
    pub off_since: Option<Millis>,
    /// (kind, time, id).
    pub floors: Vec<(&'a str, Millis, PackedId<'a>)>,
    /// (kind, local day).
    pub rewards: Vec<(&'a str, i32)>,
    /// (kind, row as it becomes).
    pub rows: Vec<(&'a str, RowRef<'a>)>,
}

/// A delete or clear, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef<'a> {
    /// This kind alone.
    pub kind: Option<&'a str>,
    /// This id alone.
    pub id: Option<PackedId<'a>>,
    /// Events at or after.
    pub after_ms: Option<Millis>,
    /// Events before.
    pub before_ms: Option<Millis>,
    /// Events up to and including this.
    pub until_ms: Millis,
}

/// A record of topic `daily-first`, borrowed from the outcome it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstOfDay<'a> {
    /// Which kind.
    pub kind: &'a str,
    /// Which object.
    pub id: PackedId<'a>,
    /// Local days since the Unix epoch.
    pub day: i32,
    /// The mark's time.
    pub event_ms: Millis,
}

impl<'a> OutcomeRef<'a> {
    /// When the owner decided.
    pub fn taken_ms(&self) -> Millis {
        match self {
            Self::Put(put) => put.taken_ms,
            Self::Delete(delete) => delete.taken_ms,
            Self::Clear(clear) => clear.taken_ms,
            Self::Switch(switch) => switch.taken_ms,
            Self::Erase(erase) => erase.taken_ms,
            Self::Restore(restore) => restore.taken_ms,
        }
    }

    /// What goes to topic `daily-first`, if anything does.
    pub fn first_of_day(&self) -> Option<FirstOfDay<'a>> {
        let Self::Put(put) = self else { return None };
        let day = put.first_of?;
        Some(FirstOfDay { kind: put.kind, id: put.row.id, day, event_ms: put.row.event_ms })
    }

    /// Appends the bytes of this outcome.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Put(put) => put.encode(out),
            Self::Delete(delete) => delete.encode(out),
            Self::Clear(clear) => clear.encode(out),
            Self::Switch(switch) => switch.encode(out),
            Self::Erase(erase) => {
                head(ERASE, erase.taken_ms, out);
                put_signed(out, i64::from(erase.day));
            }
            Self::Restore(restore) => restore.encode(out),
        }
    }

    /// Reads an outcome that fills `bytes` to their end.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, BadOutcome> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(BadOutcome(BadBytes("unknown version")));
        }
        let which = reader.u8()?;
        let taken_ms = read_time(Millis(0), &mut reader)?;
        let outcome = match which {
            PUT => Self::Put(Put::decode(taken_ms, &mut reader)?),
            DELETE => Self::Delete(Delete::decode(taken_ms, &mut reader)?),
            CLEAR => Self::Clear(Clear::decode(taken_ms, &mut reader)?),
            SWITCH => Self::Switch(Switch {
                taken_ms,
                cut: Cut::decode(taken_ms, &mut reader)?,
                on: read_bool(&mut reader)?,
            }),
            ERASE => Self::Erase(Erase { taken_ms, day: read_day(&mut reader)? }),
            RESTORE => Self::Restore(Restore::decode(taken_ms, &mut reader)?),
            _ => return Err(BadOutcome(BadBytes("unknown outcome"))),
        };
        if !reader.is_empty() {
            return Err(BadOutcome(BadBytes("bytes are left over")));
        }
        Ok(outcome)
    }
}

fn head(which: u8, taken_ms: Millis, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, which]);
    put_signed(out, taken_ms.0);
}

fn read_bool(reader: &mut Reader<'_>) -> Result<bool, BadBytes> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(BadBytes("neither yes nor no")),
    }
}

fn read_day(reader: &mut Reader<'_>) -> Result<i32, BadBytes> {
    i32::try_from(reader.signed()?).map_err(|_| BadBytes("a day is out of range"))
}

/// A count of things that take at least a byte each, at most `max`.
fn read_count(reader: &mut Reader<'_>, max: usize) -> Result<usize, BadBytes> {
    let count = reader.varint()?;
    if count > max as u64 || count > reader.left().len() as u64 {
        return Err(BadBytes("an impossible count"));
    }
    Ok(count as usize)
}

/// Names of kinds, said once and then named by their place.
#[derive(Default)]
struct Names<'a>(Vec<&'a str>);

impl<'a> Names<'a> {
    fn note(&mut self, name: &'a str) {
        if let Err(at) = self.0.binary_search(&name) {
            self.0.insert(at, name);
        }
    }

    fn place(&self, name: &str) -> u8 {
        self.0.binary_search(&name).expect("every name was noted") as u8
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.0.len() as u8);
        self.0.iter().for_each(|name| put_text(out, name));
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let count = usize::from(reader.u8()?);
        if count > KINDS_MAX {
            return Err(BadBytes("too many kinds"));
        }
        let names: Result<_, _> = (0..count).map(|_| reader.text(KIND_BYTES_MAX)).collect();
        Ok(Self(names?))
    }

    fn read(&self, reader: &mut Reader<'a>) -> Result<&'a str, BadBytes> {
        let place = usize::from(reader.u8()?);
        self.0.get(place).copied().ok_or(BadBytes("a kind is not among the names"))
    }
}

const FIRST: u8 = 1;
const FLOOR: u8 = 2;

impl<'a> Put<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        head(PUT, self.taken_ms, out);
        let first = if self.first_of.is_some() { FIRST } else { 0 };
        let floor = if self.floor.is_some() { FLOOR } else { 0 };
        out.push(first | floor);
        put_text(out, self.kind);
        self.row.write(self.taken_ms, out);
        if let Some(day) = self.first_of {
            put_signed(out, i64::from(day));
        }
        if let Some((event_ms, id)) = self.floor {
            put_signed(out, event_ms.0.wrapping_sub(self.taken_ms.0));
            id.write(out);
        }
    }

    fn decode(taken_ms: Millis, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let bits = reader.u8()?;
        if bits & !(FIRST | FLOOR) != 0 {
            return Err(BadBytes("a put has unknown fields"));
        }
        let kind = reader.text(KIND_BYTES_MAX)?;
        let row = RowRef::read(taken_ms, reader)?;
        let first_of = (bits & FIRST != 0).then(|| read_day(reader)).transpose()?;
        let floor = if bits & FLOOR != 0 {
            Some((read_time(taken_ms, reader)?, PackedId::read(reader)?))
        } else {
            None
        };
        Ok(Self { taken_ms, kind, row, first_of, floor })
    }
}

impl<'a> Cut<'a> {
    fn encode(&self, base: Millis, out: &mut Vec<u8>) {
        out.push(self.blocks.len() as u8);
        for (kind, cut) in &self.blocks {
            put_text(out, kind.unwrap_or_default());
            put_signed(out, cut.0.wrapping_sub(base.0));
        }
        put_signed(out, self.pauses.map_or(0, |cut| cut.0));
    }

    fn decode(base: Millis, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let mut cut = Self::default();
        let count = usize::from(reader.u8()?);
        if count > KINDS_MAX + 1 {
            return Err(BadBytes("too many cuts"));
        }
        for _ in 0..count {
            let kind = if reader.left().first() == Some(&0) {
                reader.u8()?;
                None
            } else {
                Some(reader.text(KIND_BYTES_MAX)?)
            };
            cut.blocks.push((kind, Millis(base.0.wrapping_add(reader.signed()?))));
        }
        cut.pauses = Some(reader.signed()?).filter(|&cut| cut != 0).map(Millis);
        Ok(cut)
    }
}

impl<'a> Delete<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        head(DELETE, self.taken_ms, out);
        self.cut.encode(self.taken_ms, out);
        let mut names = Names::default();
        self.keys.iter().for_each(|(kind, _)| names.note(kind));
        names.encode(out);
        put_varint(out, self.keys.len() as u64);
        for (kind, id) in &self.keys {
            out.push(names.place(kind));
            id.write(out);
        }
    }

    fn decode(taken_ms: Millis, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let cut = Cut::decode(taken_ms, reader)?;
        let names = Names::decode(reader)?;
        let count = read_count(reader, BLOCKS_PER_USER_MAX)?;
        let keys: Result<_, BadBytes> =
            (0..count).map(|_| Ok((names.read(reader)?, PackedId::read(reader)?))).collect();
        Ok(Self { taken_ms, cut, keys: keys? })
    }
}

const KIND: u8 = 1;
const ID: u8 = 2;
const AFTER: u8 = 4;
const BEFORE: u8 = 8;

impl<'a> Clear<'a> {
    fn block(&self) -> BlockRef<'a> {
        BlockRef {
            kind: self.kind,
            id: self.id,
            after_ms: self.after_ms,
            before_ms: self.before_ms,
            until_ms: self.taken_ms,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        head(CLEAR, self.taken_ms, out);
        self.cut.encode(self.taken_ms, out);
        let mut names = Names::default();
        self.kind.iter().for_each(|kind| names.note(kind));
        names.encode(out);
        self.block().encode(self.taken_ms, &names, out);
    }

    fn decode(taken_ms: Millis, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let cut = Cut::decode(taken_ms, reader)?;
        let names = Names::decode(reader)?;
        let block = BlockRef::decode(taken_ms, &names, reader)?;
        if block.until_ms != taken_ms {
            return Err(BadBytes("a clear holds up to another time than its own"));
        }
        let BlockRef { kind, id, after_ms, before_ms, .. } = block;
        Ok(Self { taken_ms, cut, kind, id, after_ms, before_ms })
    }
}

impl<'a> BlockRef<'a> {
    fn encode(&self, base: Millis, names: &Names<'_>, out: &mut Vec<u8>) {
        let has = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            has(self.kind.is_some(), KIND)
                | has(self.id.is_some(), ID)
                | has(self.after_ms.is_some(), AFTER)
                | has(self.before_ms.is_some(), BEFORE),
        );
        if let Some(kind) = self.kind {
            out.push(names.place(kind));
        }
        if let Some(id) = self.id {
            id.write(out);
        }
        for time in [self.after_ms, self.before_ms, Some(self.until_ms)].into_iter().flatten() {
            put_signed(out, time.0.wrapping_sub(base.0));
        }
    }

    fn decode(base: Millis, names: &Names<'a>, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let bits = reader.u8()?;
        if bits & !(KIND | ID | AFTER | BEFORE) != 0 {
            return Err(BadBytes("a delete has unknown fields"));
        }
        let kind = (bits & KIND != 0).then(|| names.read(reader)).transpose()?;
        let id = (bits & ID != 0).then(|| PackedId::read(reader)).transpose()?;
        let mut time = |has: bool| -> Result<Option<Millis>, BadBytes> {
            if !has {
                return Ok(None);
            }
            Ok(Some(Millis(base.0.wrapping_add(reader.signed()?))))
        };
        let (after_ms, before_ms) = (time(bits & AFTER != 0)?, time(bits & BEFORE != 0)?);
        let until_ms = time(true)?.expect("asked for");
        Ok(Self { kind, id, after_ms, before_ms, until_ms })
    }
}

impl<'a> Switch<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        head(SWITCH, self.taken_ms, out);
        self.cut.encode(self.taken_ms, out);
        out.push(u8::from(self.on));
    }
}

impl<'a> Restore<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let base = self.taken_ms;
        head(RESTORE, base, out);
        let mut names = Names::default();
        self.deletes.iter().filter_map(|block| block.kind).for_each(|kind| names.note(kind));
        self.floors.iter().for_each(|floor| names.note(floor.0));
        self.rewards.iter().for_each(|reward| names.note(reward.0));
        self.rows.iter().for_each(|row| names.note(row.0));
        names.encode(out);
        put_varint(out, self.deletes.len() as u64);
        self.deletes.iter().for_each(|block| block.encode(base, &names, out));
        put_varint(out, self.pauses.len() as u64);
        for (from, to) in &self.pauses {
            put_signed(out, from.0.wrapping_sub(base.0));
            put_signed(out, to.0.wrapping_sub(from.0));
        }
        put_signed(out, self.off_since.map_or(0, |since| since.0));
        put_varint(out, self.floors.len() as u64);
        for (kind, event_ms, id) in &self.floors {
            out.push(names.place(kind));
            put_signed(out, event_ms.0.wrapping_sub(base.0));
            id.write(out);
        }
        put_varint(out, self.rewards.len() as u64);
        for (kind, day) in &self.rewards {
            out.push(names.place(kind));
            put_signed(out, i64::from(*day));
        }
        put_varint(out, self.rows.len() as u64);
        for (kind, row) in &self.rows {
            out.push(names.place(kind));
            row.write(base, out);
        }
    }

    fn decode(base: Millis, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let names = Names::decode(reader)?;
        let mut restore = Self { taken_ms: base, ..Self::default() };
        for _ in 0..read_count(reader, BLOCKS_PER_USER_MAX)? {
            restore.deletes.push(BlockRef::decode(base, &names, reader)?);
        }
        for _ in 0..read_count(reader, PAUSES_PER_USER_MAX)? {
            let from = base.0.wrapping_add(reader.signed()?);
            restore.pauses.push((Millis(from), Millis(from.wrapping_add(reader.signed()?))));
        }
        restore.off_since = Some(reader.signed()?).filter(|&since| since != 0).map(Millis);
        for _ in 0..read_count(reader, KINDS_MAX)? {
            let kind = names.read(reader)?;
            let event_ms = read_time(base, reader)?;
            restore.floors.push((kind, event_ms, PackedId::read(reader)?));
        }
        for _ in 0..read_count(reader, KINDS_MAX)? {
            restore.rewards.push((names.read(reader)?, read_day(reader)?));
        }
        for _ in 0..read_count(reader, usize::MAX)? {
            let kind = names.read(reader)?;
            restore.rows.push((kind, RowRef::read(base, reader)?));
        }
        Ok(restore)
    }
}

/// What a [`Put`] is about, read without the rest of it.
#[derive(Clone, Copy, Debug)]
pub struct PutKey<'a> {
    /// The kind's name.
    pub kind: &'a str,
    /// The object.
    pub id: PackedId<'a>,
    /// Whether a later row of the same object stands for this one too: it
    /// grants no first of the day and raises no floor.
    pub may_be_coalesced: bool,
}

impl PartialEq for PutKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.id == other.id
    }
}

impl<'a> PutKey<'a> {
    /// `None` where `bytes` are no put.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8().ok()? != VERSION || reader.u8().ok()? != PUT {
            return None;
        }
        reader.signed().ok()?;
        let may_be_coalesced = reader.u8().ok()? & (FIRST | FLOOR) == 0;
        let kind = reader.text(KIND_BYTES_MAX).ok()?;
        let id = RowRef::read_id(&mut reader).ok()?;
        Some(Self { kind, id, may_be_coalesced })
    }
}

#[cfg(test)]
mod tests;
