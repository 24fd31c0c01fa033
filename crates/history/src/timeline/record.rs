//! One row in a block: as few bytes as it can be found and read back from.
//!
//! ```text
//! head, 8 bytes, least bit first:
//!   38 time, from the block's base    6 kind (63: a byte more follows)
//!    4 form of the id   1 part  1 device  1 group
//!    2 position: none, 3 bytes, varint
//!    2 duration: none, varint of s, 3 bytes of ms, varint of ms
//!    1 finished  1 declared  1 began   2 plays: 0, 1, 2, varint
//!    1 change of part   2 retries: none, one, one made, several
//! body: kind? id position? duration? plays? part? device? group?
//!       change-of-part? retries?
//! ```
//!
//! Lives in one process only: kinds stand by [`KindId`], and nothing of it is
//! ever stored.

use tideline_types::Millis;
use tideline_types::limits::{FIELD_BYTES_MAX, RETRIES_PER_ROW};

use crate::codec::{BadBytes, Out, Reader, put_signed, put_text, put_varint};
use crate::id::PackedId;
use crate::kinds::KindId;
use crate::retry::Retries;
use crate::row::RowRef;

/// Bits of a time.
const TIME_BITS: u32 = 38;
/// Times that fit in a block: from its base, this many ms.
pub(super) const SPAN_MS: i64 = 1 << TIME_BITS;
/// Bytes of the head.
pub(super) const HEAD_BYTES: usize = 8;
/// No record is longer.
pub(super) const RECORD_BYTES_MAX: usize = 512;
/// Kinds from this on take a byte more.
const FAR_KIND: u8 = 63;

const KIND_AT: u32 = TIME_BITS;
const FORM_AT: u32 = KIND_AT + 6;
const PART_AT: u32 = FORM_AT + 4;
const DEVICE_AT: u32 = PART_AT + 1;
const GROUP_AT: u32 = DEVICE_AT + 1;
const POSITION_AT: u32 = GROUP_AT + 1;
const DURATION_AT: u32 = POSITION_AT + 2;
const FINISHED_AT: u32 = DURATION_AT + 2;
const DECLARED_AT: u32 = FINISHED_AT + 1;
const BEGAN_AT: u32 = DECLARED_AT + 1;
const PLAYS_AT: u32 = BEGAN_AT + 1;
const SINCE_AT: u32 = PLAYS_AT + 2;
const RETRIES_AT: u32 = SINCE_AT + 1;
const _: () = assert!(RETRIES_AT + 2 <= 64);
const _: () = assert!(
    HEAD_BYTES + 1 + 20 + 5 + 10 + 4 * (FIELD_BYTES_MAX + 1) + RETRIES_PER_ROW * 20
        <= RECORD_BYTES_MAX
);

const SHORT: u64 = 1 << 24;

/// From where a block's times are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases {
    /// The earliest event time that fits.
    pub(super) event: i64,
    /// Near the times at which its retries were taken.
    pub(super) taken: i64,
}

/// A record that is being written.
pub(super) struct Scratch {
    bytes: [u8; RECORD_BYTES_MAX],
    len: usize,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self { bytes: [0; RECORD_BYTES_MAX], len: 0 }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Out for Scratch {
    fn put(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn put_all(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// Writes the record of a row whose time fits in the block.
pub(super) fn write(kind: KindId, row: &RowRef<'_>, bases: Bases, out: &mut Scratch) {
    out.len = HEAD_BYTES;
    let mut head = (row.event_ms.0 - bases.event) as u64;
    debug_assert!(head >> TIME_BITS == 0);
    head |= u64::from(kind.0.min(FAR_KIND)) << KIND_AT;
    if kind.0 >= FAR_KIND {
        out.put(kind.0);
    }
    head |= u64::from(row.id.form()) << FORM_AT;
    row.id.write_body(out);
    let mut flag = |is: bool, at: u32| head |= u64::from(is) << at;
    flag(row.part.is_some(), PART_AT);
    flag(row.device.is_some(), DEVICE_AT);
    flag(row.group.is_some(), GROUP_AT);
    flag(row.finished, FINISHED_AT);
    flag(row.declared, DECLARED_AT);
    flag(row.began, BEGAN_AT);
    flag(row.part_since != Millis(0), SINCE_AT);
    if let Some(position) = row.position_ms {
        head |= put_length(position, 1, out) << POSITION_AT;
    }
    if let Some(duration) = row.duration_ms {
        head |= match duration % 1000 {
            0 => {
                put_varint(out, duration / 1000);
                1
            }
            _ => put_length(duration, 2, out),
        } << DURATION_AT;
    }
    head |= u64::from(row.plays.min(3)) << PLAYS_AT;
    if row.plays >= 3 {
        put_varint(out, u64::from(row.plays));
    }
    for text in [row.part, row.device, row.group].into_iter().flatten() {
        put_text(out, text);
    }
    if row.part_since != Millis(0) {
        put_signed(out, row.event_ms.0.wrapping_sub(row.part_since.0));
    }
    head |= write_retries(&row.retries, bases, out) << RETRIES_AT;
    out.bytes[..HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
}

/// Three bytes (`short`) or a varint (`short + 1`).
fn put_length(length: u64, short: u64, out: &mut Scratch) -> u64 {
    if length < SHORT {
        out.put_all(&length.to_le_bytes()[..3]);
        short
    } else {
        put_varint(out, length);
        short + 1
    }
}

/// Last in the record, so that they end with it.
fn write_retries(retries: &Retries<'_>, bases: Bases, out: &mut Scratch) -> u64 {
    let (count, made) = (retries.len(), retries.made());
    let which = match count {
        0 => 0,
        1 => 1 + u64::from(made),
        _ => {
            out.put(made);
            out.put(count as u8);
            3
        }
    };
    retries.write(bases.taken, out);
    which
}

/// The head of a record, read.
#[derive(Clone, Copy)]
pub(super) struct HeadBits(u64);

impl HeadBits {
    pub(super) fn of(record: &[u8]) -> Self {
        let head = record[..HEAD_BYTES].try_into().expect("a record begins with its head");
        Self(u64::from_le_bytes(head))
    }

    fn bits(self, at: u32, count: u32) -> u64 {
        self.0 >> at & ((1 << count) - 1)
    }

    fn flag(self, at: u32) -> bool {
        self.bits(at, 1) == 1
    }

    pub(super) fn event_ms(self, base: i64) -> Millis {
        Millis(base + self.bits(0, TIME_BITS) as i64)
    }

    pub(super) fn kind(self, record: &[u8]) -> KindId {
        match self.bits(KIND_AT, 6) as u8 {
            FAR_KIND => KindId(record[HEAD_BYTES]),
            near => KindId(near),
        }
    }

    pub(super) fn form(self) -> u8 {
        self.bits(FORM_AT, 4) as u8
    }

    pub(super) fn has_retries(self) -> bool {
        self.bits(RETRIES_AT, 2) != 0
    }

    fn is_far(self) -> bool {
        self.bits(KIND_AT, 6) as u8 == FAR_KIND
    }

    /// The record after its head and kind.
    fn body(self, record: &[u8]) -> Reader<'_> {
        Reader::new(&record[HEAD_BYTES + usize::from(self.is_far())..])
    }

    pub(super) fn id(self, record: &[u8]) -> PackedId<'_> {
        PackedId::read_trusted(self.form(), &mut self.body(record)).expect(OURS)
    }
}

const OURS: &str = "this process wrote the record";

/// The row of a record.
pub(super) fn read(record: &[u8], bases: Bases) -> RowRef<'_> {
    let head = HeadBits::of(record);
    read_body(head, head.body(record), bases).expect(OURS)
}

fn read_body<'a>(
    head: HeadBits,
    mut body: Reader<'a>,
    bases: Bases,
) -> Result<RowRef<'a>, BadBytes> {
    let id = PackedId::read_trusted(head.form(), &mut body)?;
    let position_ms = match head.bits(POSITION_AT, 2) {
        0 => None,
        1 => Some(short(&mut body)?),
        _ => Some(body.varint()?),
    };
    let duration_ms = match head.bits(DURATION_AT, 2) {
        0 => None,
        1 => Some(body.varint()? * 1000),
        2 => Some(short(&mut body)?),
        _ => Some(body.varint()?),
    };
    let plays = match head.bits(PLAYS_AT, 2) {
        3 => body.varint32()?,
        few => few as u32,
    };
    let mut text = |at| head.flag(at).then(|| body.text(FIELD_BYTES_MAX)).transpose();
    let (part, device, group) = (text(PART_AT)?, text(DEVICE_AT)?, text(GROUP_AT)?);
    let event_ms = head.event_ms(bases.event);
    let part_since = match head.flag(SINCE_AT) {
        true => Millis(event_ms.0.wrapping_sub(body.signed()?)),
        false => Millis(0),
    };
    let retries = read_retries(head.bits(RETRIES_AT, 2), &mut body, bases)?;
    Ok(RowRef {
        id,
        part,
        position_ms,
        duration_ms,
        event_ms,
        device,
        group,
        finished: head.flag(FINISHED_AT),
        declared: head.flag(DECLARED_AT),
        began: head.flag(BEGAN_AT),
        plays,
        part_since,
        retries,
    })
}

fn short(body: &mut Reader<'_>) -> Result<u64, BadBytes> {
    let bytes = body.bytes(3)?;
    Ok(u64::from(bytes[0]) | u64::from(bytes[1]) << 8 | u64::from(bytes[2]) << 16)
}

fn read_retries<'a>(
    which: u64,
    body: &mut Reader<'a>,
    bases: Bases,
) -> Result<Retries<'a>, BadBytes> {
    let (made, count) = match which {
        0 => return Ok(Retries::EMPTY),
        3 => (body.u8()?, usize::from(body.u8()?)),
        one => (one as u8 - 1, 1),
    };
    Ok(Retries::trusted(count, made, bases.taken, body.left()))
}
