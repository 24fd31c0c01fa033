//! A batch of records: the unit that is written, checksummed and passed on.
//!
//! ```text
//!  0  version (1 or 2)      u8        22  epoch                      u32
//!  1  mark (0xb7)           u8        26  number of the first record u64
//!  2  erase generation      u16       34  count of records           u32
//!  4  bytes, header and all u32       38  time of the first record   i64
//!  8  CRC-32C of the rest   u32       46  greatest time              i64
//! 12  incarnation           u64       54  records, back to back
//! 20  partition             u16
//!
//! version 2, of an idempotent producer, before the records:
//! 54  producer              u64       66  its number of the first    u64
//! 62  its epoch             u32
//!
//! record: varint(key bytes * 2 + erased), zigzag varint(time - time before),
//!         [not erased: varint(value bytes), key, value]
//! ```
//!
//! Numbers are little-endian. The records of a batch have contiguous numbers;
//! an erased record keeps its number and its time. The checksum covers every
//! byte but its own four. Knows nothing of files, topics or what values mean.

use bytes::Bytes;
use tideline_types::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, SeqRange, StreamId};

use crate::Choose;
use crate::codec::{Reader, put_signed, put_varint};

/// The newest format that this build writes and reads.
pub const VERSION: u8 = 2;
/// Bytes that every header has. Those of a batch with a producer's stamp are
/// [`STAMP_BYTES`] more.
pub const HEADER_BYTES: usize = 54;
/// Bytes of a producer's stamp.
pub const STAMP_BYTES: usize = 20;
/// Bytes that a record takes beside its key and value, at most.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 20;

const MARK: u8 = 0xb7;

/// Why bytes are no batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBatch {
    /// The bytes end before the batch does.
    #[error("the batch is cut short: {have} of {need} bytes")]
    Short {
        /// Bytes there are.
        have: usize,
        /// Bytes it takes.
        need: usize,
    },
    /// The first bytes are not those of a batch.
    #[error("not a batch (starts with {0:#04x} {1:#04x})")]
    Mark(u8, u8),
    /// Written by another version.
    #[error("batch format version {0}, this build reads {VERSION}")]
    Version(u8),
    /// The header says what cannot be.
    #[error("the batch's header is impossible: {0}")]
    Header(&'static str),
    /// The checksum does not fit the bytes.
    #[error("checksum {found:#010x}, {stored:#010x} was stored")]
    Checksum {
        /// Of the bytes.
        found: u32,
        /// In the header.
        stored: u32,
    },
    /// A record runs over its end, or bytes are left after the last.
    #[error("record {0} of the batch is malformed")]
    Record(u32),
}

/// Who sent the records of a batch, and as which of its own: so that one whose
/// acknowledgement was lost can be told from a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which producer.
    pub producer: u64,
    /// Which life of it; a later one shuts out all before it.
    pub epoch: u32,
    /// The producer's own number of the first record, from 1.
    pub number: u64,
}

/// What a batch says of itself, without its checksum having been verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How often records of this batch were erased; wraps.
    pub generation: u16,
    /// Bytes, header and all.
    pub len: usize,
    /// The stored checksum.
    pub crc: u32,
    /// Whose records.
    pub stream: StreamId,
    /// Who wrote them.
    pub epoch: Epoch,
    /// The number of the first record, at least 1.
    pub first: Seq,
    /// Records, at least 1.
    pub count: u32,
    /// The time of the first record.
    pub base: Millis,
    /// The greatest time of a record.
    pub newest: Millis,
    /// Who sent the records, if they said so.
    pub stamp: Option<Stamp>,
}

impl Header {
    /// Reads the header at the start of `bytes`. `Short` with the batch's own
    /// length when the header is whole and the rest is not: see [`Header::peek`].
    pub fn read(bytes: &[u8]) -> Result<Self, BadBatch> {
        let header = Self::peek(bytes)?;
        if bytes.len() < header.len {
            return Err(BadBatch::Short { have: bytes.len(), need: header.len });
        }
        Ok(header)
    }

    /// Reads the header alone; the records need not be there.
    pub fn peek(bytes: &[u8]) -> Result<Self, BadBatch> {
        let Some(raw) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BadBatch::Short { have: bytes.len(), need: HEADER_BYTES });
        };
        if raw[1] != MARK {
            return Err(BadBatch::Mark(raw[0], raw[1]));
        }
        let stamp = match raw[0] {
            1 => None,
            VERSION => match bytes[HEADER_BYTES..].first_chunk::<STAMP_BYTES>() {
                Some(raw) => Some(Stamp::read(raw)),
                None => {
                    let need = HEADER_BYTES + STAMP_BYTES;
                    return Err(BadBatch::Short { have: bytes.len(), need });
                }
            },
            other => return Err(BadBatch::Version(other)),
        };
        let header = Self {
            generation: u16::from_le_bytes(part(raw, 2)),
            len: u32::from_le_bytes(part(raw, 4)) as usize,
            crc: u32::from_le_bytes(part(raw, 8)),
            stream: StreamId {
                incarnation: Incarnation(u64::from_le_bytes(part(raw, 12))),
                partition: PartitionId(u16::from_le_bytes(part(raw, 20))),
            },
            epoch: Epoch(u32::from_le_bytes(part(raw, 22))),
            first: Seq(u64::from_le_bytes(part(raw, 26))),
            count: u32::from_le_bytes(part(raw, 34)),
            base: Millis(i64::from_le_bytes(part(raw, 38))),
            newest: Millis(i64::from_le_bytes(part(raw, 46))),
            stamp,
        };
        if header.len < header.bytes() || header.len > BATCH_BYTES_MAX {
            return Err(BadBatch::Header("length"));
        }
        let records_max = (header.len - header.bytes()) / 2;
        if header.count == 0 || header.count as usize > records_max.min(BATCH_RECORDS_MAX) {
            return Err(BadBatch::Header("count"));
        }
        if header.first == Seq::ZERO || header.first.0 > u64::MAX / 2 {
            return Err(BadBatch::Header("first number"));
        }
        if stamp.is_some_and(|stamp| stamp.number == 0 || stamp.number > u64::MAX / 2) {
            return Err(BadBatch::Header("producer's number"));
        }
        Ok(header)
    }

    /// Bytes before the first record.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + if self.stamp.is_some() { STAMP_BYTES } else { 0 }
    }

    /// The numbers of the records.
    pub fn range(&self) -> SeqRange {
        SeqRange::new(self.first.prev(), self.last())
    }

    /// The number of the last record.
    pub fn last(&self) -> Seq {
        Seq(self.first.0 + u64::from(self.count) - 1)
    }

    /// Writes the header into the first bytes of `batch`, checksum included.
    fn seal(&self, batch: &mut [u8]) {
        batch[0] = if self.stamp.is_some() { VERSION } else { 1 };
        batch[1] = MARK;
        batch[2..4].copy_from_slice(&self.generation.to_le_bytes());
        batch[4..8].copy_from_slice(&(self.len as u32).to_le_bytes());
        batch[12..20].copy_from_slice(&self.stream.incarnation.0.to_le_bytes());
        batch[20..22].copy_from_slice(&self.stream.partition.0.to_le_bytes());
        batch[22..26].copy_from_slice(&self.epoch.0.to_le_bytes());
        batch[26..34].copy_from_slice(&self.first.0.to_le_bytes());
        batch[34..38].copy_from_slice(&self.count.to_le_bytes());
        batch[38..46].copy_from_slice(&self.base.0.to_le_bytes());
        batch[46..54].copy_from_slice(&self.newest.0.to_le_bytes());
        if let Some(stamp) = &self.stamp {
            batch[54..62].copy_from_slice(&stamp.producer.to_le_bytes());
            batch[62..66].copy_from_slice(&stamp.epoch.to_le_bytes());
            batch[66..74].copy_from_slice(&stamp.number.to_le_bytes());
        }
        let crc = checksum(batch);
        batch[8..12].copy_from_slice(&crc.to_le_bytes());
    }
}

impl Stamp {
    fn read(raw: &[u8; STAMP_BYTES]) -> Self {
        Self {
            producer: u64::from_le_bytes(part(raw, 0)),
            epoch: u32::from_le_bytes(part(raw, 8)),
            number: u64::from_le_bytes(part(raw, 12)),
        }
    }
}

fn part<const N: usize>(raw: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&raw[at..at + N]);
    out
}

/// CRC-32C of all bytes but the four that hold it.
fn checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&batch[..8]), &batch[12..])
}

/// Collects records of one stream and one epoch under contiguous numbers.
#[derive(Debug)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    header: Header,
    last_time: Millis,
}

impl BatchBuilder {
    /// An empty batch whose first record gets the number `first` (at least 1).
    pub fn new(stream: StreamId, epoch: Epoch, first: Seq) -> Self {
        Self::with_capacity(stream, epoch, first, 1 << 10)
    }

    /// The same, with room for `bytes` of records before it grows.
    pub fn with_capacity(stream: StreamId, epoch: Epoch, first: Seq, bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(HEADER_BYTES + bytes);
        buffer.resize(HEADER_BYTES, 0);
        let header = Header {
            generation: 0,
            len: 0,
            crc: 0,
            stream,
            epoch,
            first,
            count: 0,
            base: Millis(0),
            newest: Millis(i64::MIN),
            stamp: None,
        };
        Self { bytes: buffer, header, last_time: Millis(0) }
    }

    /// The batch is of this producer. To be said before the first record.
    #[must_use]
    pub fn stamped(mut self, stamp: Stamp) -> Self {
        debug_assert!(self.is_empty() && self.header.stamp.is_none());
        self.header.stamp = Some(stamp);
        self.bytes.resize(HEADER_BYTES + STAMP_BYTES, 0);
        self
    }

    /// Whether one more record of these lengths stays within the limits of a
    /// batch.
    pub fn has_room(&self, key_bytes: usize, value_bytes: usize) -> bool {
        let more = key_bytes.saturating_add(value_bytes).saturating_add(RECORD_OVERHEAD_BYTES_MAX);
        self.len() < BATCH_RECORDS_MAX && self.bytes.len().saturating_add(more) <= BATCH_BYTES_MAX
    }

    /// Adds a record and returns its number. Whether there is room is for the
    /// caller to ask first.
    pub fn push(&mut self, time: Millis, key: &[u8], value: &[u8]) -> Seq {
        debug_assert!(self.has_room(key.len(), value.len()));
        self.stamp(time, (key.len() as u64) << 1);
        put_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.header.last()
    }

    fn push_erased(&mut self, time: Millis) {
        self.stamp(time, 1);
    }

    fn stamp(&mut self, time: Millis, head: u64) {
        if self.header.count == 0 {
            self.header.base = time;
            self.last_time = time;
        }
        put_varint(&mut self.bytes, head);
        put_signed(&mut self.bytes, time.0.wrapping_sub(self.last_time.0));
        self.last_time = time;
        self.header.newest = self.header.newest.max(time);
        self.header.count += 1;
    }

    /// Records so far.
    pub fn len(&self) -> usize {
        self.header.count as usize
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Bytes so far, header and all.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The number that the next record gets.
    pub fn next(&self) -> Seq {
        self.header.first.plus(u64::from(self.header.count))
    }

    /// Whose records.
    pub fn stream(&self) -> StreamId {
        self.header.stream
    }

    /// The encoded batch. A batch without records, or over the limits, is
    /// refused by every journal.
    pub fn finish(mut self) -> Bytes {
        self.header.len = self.bytes.len();
        self.header.seal(&mut self.bytes);
        Bytes::from(self.bytes)
    }
}

/// One record, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub seq: Seq,
    /// The time that its writer gave it.
    pub time: Millis,
    /// Whether it was erased: key and value are empty then.
    pub erased: bool,
    /// What it is about.
    pub key: &'a [u8],
    /// What it says.
    pub value: &'a [u8],
}

/// A batch whose checksum and every record have been verified.
#[derive(Clone, Copy, Debug)]
pub struct BatchRef<'a> {
    header: Header,
    body: &'a [u8],
}

impl<'a> BatchRef<'a> {
    /// Verifies the batch at the start of `bytes`; what follows it is left.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BadBatch> {
        let header = Header::read(bytes)?;
        let bytes = &bytes[..header.len];
        let found = checksum(bytes);
        if found != header.crc {
            return Err(BadBatch::Checksum { found, stored: header.crc });
        }
        let batch = Self { header, body: &bytes[header.bytes()..] };
        let mut records = batch.walk();
        for n in 0..header.count {
            if records.next().is_none() {
                return Err(BadBatch::Record(n));
            }
        }
        if records.rest.is_empty() { Ok(batch) } else { Err(BadBatch::Record(header.count)) }
    }

    /// The same for bytes that were verified before.
    pub(crate) fn verified(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::read(bytes).ok()?;
        Some(Self { header, body: bytes.get(header.bytes()..header.len)? })
    }

    /// What the batch says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whose records.
    pub fn stream(&self) -> StreamId {
        self.header.stream
    }

    /// Who wrote them.
    pub fn epoch(&self) -> Epoch {
        self.header.epoch
    }

    /// Their numbers.
    pub fn range(&self) -> SeqRange {
        self.header.range()
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.header.count
    }

    /// The greatest time of a record.
    pub fn newest(&self) -> Millis {
        self.header.newest
    }

    /// The records in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        self.walk()
    }

    fn walk(&self) -> Walk<'a> {
        Walk {
            rest: Reader::new(self.body),
            left: self.header.count,
            next: self.header.first,
            time: self.header.base,
        }
    }

    /// The same batch with every record for which `choose` says true empty
    /// and marked erased; `None` if it chose none. Adds to `erased`.
    pub fn erase(&self, erased: &mut u64, choose: &mut Choose<'_>) -> Option<Bytes> {
        let header = &self.header;
        let (stream, room) = (header.stream, self.body.len() + STAMP_BYTES);
        let mut builder = BatchBuilder::with_capacity(stream, header.epoch, header.first, room);
        if let Some(stamp) = header.stamp {
            builder = builder.stamped(stamp);
        }
        let before = *erased;
        for record in self.records() {
            if record.erased {
                builder.push_erased(record.time);
            } else if choose(record.seq, record.key, record.value) {
                *erased += 1;
                builder.push_erased(record.time);
            } else {
                builder.push(record.time, record.key, record.value);
            }
        }
        builder.header.generation = header.generation.wrapping_add(1);
        (*erased > before).then(|| builder.finish())
    }
}

struct Walk<'a> {
    rest: Reader<'a>,
    left: u32,
    next: Seq,
    time: Millis,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        self.left = self.left.checked_sub(1)?;
        let head = self.rest.varint().ok()?;
        let delta = self.rest.signed().ok()?;
        self.time = Millis(self.time.0.wrapping_add(delta));
        let seq = self.next;
        self.next = seq.next();
        if head & 1 == 1 {
            return (head == 1).then_some(Record {
                seq,
                time: self.time,
                erased: true,
                key: &[],
                value: &[],
            });
        }
        let value_bytes = self.rest.varint().ok()?;
        let key = self.slice(head >> 1)?;
        let value = self.slice(value_bytes)?;
        Some(Record { seq, time: self.time, erased: false, key, value })
    }
}

impl<'a> Walk<'a> {
    fn slice(&mut self, bytes: u64) -> Option<&'a [u8]> {
        self.rest.bytes(usize::try_from(bytes).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream() -> StreamId {
        StreamId { incarnation: Incarnation(7), partition: PartitionId(3) }
    }

    fn two_records() -> Bytes {
        let mut builder = BatchBuilder::new(stream(), Epoch(2), Seq(41));
        assert_eq!(builder.push(Millis(1_000), b"k", b"value"), Seq(41));
        assert_eq!(builder.push(Millis(998), b"", b"v"), Seq(42));
        builder.finish()
    }

    #[test]
    fn the_bytes_of_a_batch_never_change() {
        let golden = "01b70000430000002e79cf6f070000000000000003000200000029000000000000000\
                      2000000e803000000000000e8030000000000000200056b76616c756500030176";
        let hex: String = two_records().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, golden);
    }

    fn stamped() -> Bytes {
        let stamp = Stamp { producer: 0x0102, epoch: 3, number: 9 };
        let mut builder = BatchBuilder::new(stream(), Epoch(2), Seq(41)).stamped(stamp);
        builder.push(Millis(1_000), b"k", b"value");
        builder.finish()
    }

    #[test]
    fn the_bytes_of_a_producers_batch_never_change() {
        let golden = "02b700005300000054a513880700000000000000030002000000290000000000000001000000e8\
                      03000000000000e803000000000000020100000000000003000000090000000000000002\
                      00056b76616c7565";
        let hex: String = stamped().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, golden);
        let batch = stamped();
        let header = Header::read(&batch).unwrap();
        assert_eq!(header.stamp, Some(Stamp { producer: 0x0102, epoch: 3, number: 9 }));
        let erased = BatchRef::parse(&batch).unwrap().erase(&mut 0, &mut |_, _, _| true).unwrap();
        assert_eq!(Header::read(&erased).unwrap().stamp, header.stamp);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        for batch in [two_records(), stamped()] {
            every_fault_is_found(&batch);
        }
    }

    fn every_fault_is_found(batch: &[u8]) {
        for bit in 0..batch.len() * 8 {
            let mut bad = batch.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(BatchRef::parse(&bad).is_err(), "bit {bit}");
        }
        for len in 0..batch.len() {
            assert!(BatchRef::parse(&batch[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn an_erased_record_keeps_its_place_and_time_and_nothing_else() {
        let batch = two_records();
        let parsed = BatchRef::parse(&batch).unwrap();
        let mut erased = 0;
        let after = parsed.erase(&mut erased, &mut |seq, _, _| seq == Seq(41)).unwrap();
        assert_eq!(erased, 1);
        let after = BatchRef::parse(&after).unwrap();
        assert_eq!(after.header().generation, 1);
        assert_eq!((after.range(), after.epoch()), (parsed.range(), parsed.epoch()));
        let records: Vec<_> = after.records().collect();
        let gone = Record { seq: Seq(41), time: Millis(1_000), erased: true, key: b"", value: b"" };
        assert_eq!(records[0], gone);
        assert_eq!(records[1], parsed.records().nth(1).unwrap());
        assert!(after.erase(&mut erased, &mut |seq, _, _| seq == Seq(41)).is_none());
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            records in prop::collection::vec(
                (any::<i64>(), prop::collection::vec(any::<u8>(), 0..20),
                 prop::collection::vec(any::<u8>(), 0..300)), 1..40),
            first in 1_u64..1 << 60,
            stamp in prop::option::of((any::<u64>(), any::<u32>(), 1_u64..1 << 60)),
        ) {
            let stamp =
                stamp.map(|(producer, epoch, number)| Stamp { producer, epoch, number });
            let mut builder = BatchBuilder::new(stream(), Epoch(9), Seq(first));
            if let Some(stamp) = stamp {
                builder = builder.stamped(stamp);
            }
            for (time, key, value) in &records {
                builder.push(Millis(*time), key, value);
            }
            let bytes = builder.finish();
            let batch = BatchRef::parse(&bytes).unwrap();
            prop_assert_eq!(batch.stream(), stream());
            prop_assert_eq!(batch.header().stamp, stamp);
            prop_assert_eq!(batch.range().count(), records.len() as u64);
            prop_assert_eq!(batch.newest().0, records.iter().map(|r| r.0).max().unwrap());
            for (n, (record, (time, key, value))) in batch.records().zip(&records).enumerate() {
                prop_assert_eq!(record.seq, Seq(first + n as u64));
                prop_assert_eq!(record.time.0, *time);
                prop_assert_eq!((record.key, record.value), (&key[..], &value[..]));
            }
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            crate::fuzz::batch(&bytes);
        }
    }
}
