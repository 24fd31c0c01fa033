//! A batch of records: the unit that is written, checksummed and passed on.
//!
//! ```text
//!  0  version (1 to 3)      u8        22  epoch                      u32
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
//! version 3, of a derived topic, before the records:
//! 54  number of the last record      u64
//!
//! record: [version 3: varint(number - number before, * 2, + skipped)],
//!         varint(key bytes * 2 + erased), zigzag varint(time - time before),
//!         [not erased: varint(value bytes), key, value]
//! ```
//!
//! Numbers are little-endian. The records of a log have contiguous numbers; an
//! erased record keeps its number and its time. Those of a derived topic have
//! the numbers of what they come from: some are left out, and several of one
//! number are told apart by their order. The checksum covers every byte but its
//! own four. Knows nothing of files, topics or what values mean.

mod builder;
mod header;

use bytes::Bytes;
use tideline_types::{Epoch, Millis, Seq, SeqRange, StreamId};

pub use builder::BatchBuilder;
pub use header::{Extra, HEADER_BYTES, Header, Stamp, VERSION};

use crate::codec::Reader;
use header::checksum;

/// Bytes that a record takes beside its key and value, at most.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 30;

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

/// Says of a record, by number, key and value, whether it is to be erased.
pub type Choose<'a> = dyn FnMut(Seq, &[u8], &[u8]) -> bool + 'a;

/// One record, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub seq: Seq,
    /// Which one of its number, from 0; always 0 in a log.
    pub sub: u32,
    /// The time that its writer gave it.
    pub time: Millis,
    /// Whether it was erased: key and value are empty then.
    pub erased: bool,
    /// Whether the operator of a derived topic failed on the record of this
    /// number: the value says why.
    pub skipped: bool,
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
        let mut last = Seq::ZERO;
        for n in 0..header.count {
            last = records.next().ok_or(BadBatch::Record(n))?.seq;
        }
        let whole = records.rest.is_empty() && last == header.last();
        if whole { Ok(batch) } else { Err(BadBatch::Record(header.count)) }
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
            sparse: matches!(self.header.extra, Extra::Last(_)),
            before: self.header.first.prev(),
            sub: 0,
            begun: false,
            time: self.header.base,
        }
    }

    /// The same batch with every record for which `choose` says true empty
    /// and marked erased; `None` if it chose none. Adds to `erased`.
    ///
    /// What is derived is not stored: of such a batch nothing is chosen.
    pub fn erase(&self, erased: &mut u64, choose: &mut Choose<'_>) -> Option<Bytes> {
        let header = &self.header;
        let room = self.body.len() + header.bytes();
        let mut builder =
            BatchBuilder::with_capacity(header.stream, header.epoch, header.first, room);
        match header.extra {
            Extra::None => {}
            Extra::Stamp(stamp) => builder = builder.stamped(stamp),
            Extra::Last(_) => return None,
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
        (*erased > before).then(|| builder.finish_as(header.generation.wrapping_add(1)))
    }
}

struct Walk<'a> {
    rest: Reader<'a>,
    left: u32,
    sparse: bool,
    before: Seq,
    sub: u32,
    begun: bool,
    time: Millis,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (seq, skipped) = self.number()?;
        let head = self.rest.varint().ok()?;
        let delta = self.rest.signed().ok()?;
        self.time = Millis(self.time.0.wrapping_add(delta));
        let (sub, time) = (self.sub, self.time);
        if head & 1 == 1 {
            let erased = Record { seq, sub, time, erased: true, skipped, key: &[], value: &[] };
            return (head == 1 && !skipped).then_some(erased);
        }
        let value_bytes = self.rest.varint().ok()?;
        let key = self.slice(head >> 1)?;
        let value = self.slice(value_bytes)?;
        Some(Record { seq, sub, time, erased: false, skipped, key, value })
    }
}

impl<'a> Walk<'a> {
    /// The number of the next record, and whether it stands for a failure. The
    /// first has that of the header.
    fn number(&mut self) -> Option<(Seq, bool)> {
        if !self.sparse {
            self.before = self.before.next();
            return Some((self.before, false));
        }
        let head = self.rest.varint().ok()?;
        let step = head >> 1;
        self.sub = if step == 0 && self.begun { self.sub.checked_add(1)? } else { 0 };
        if !self.begun {
            self.begun = true;
            self.before = self.before.next();
            if step != 0 {
                return None;
            }
        }
        self.before = Seq(self.before.0.checked_add(step)?);
        Some((self.before, head & 1 == 1))
    }

    fn slice(&mut self, bytes: u64) -> Option<&'a [u8]> {
        self.rest.bytes(usize::try_from(bytes).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_types::{Incarnation, PartitionId};

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
        assert_eq!(header.stamp(), Some(&Stamp { producer: 0x0102, epoch: 3, number: 9 }));
        let erased = BatchRef::parse(&batch).unwrap().erase(&mut 0, &mut |_, _, _| true).unwrap();
        assert_eq!(Header::read(&erased).unwrap().stamp(), header.stamp());
    }

    fn derived() -> Bytes {
        let mut builder = BatchBuilder::new(stream(), Epoch(2), Seq(41)).derived();
        builder.push_at(Seq(41), Millis(1_000), b"k", b"v");
        builder.push_at(Seq(41), Millis(1_000), b"k", b"w");
        builder.push_skipped(Seq(300), Millis(1_001), "no number");
        builder.finish()
    }

    #[test]
    fn the_bytes_of_a_derived_batch_never_change() {
        let golden = "03b70000580000006e78edc80700000000000000030002000000290000000000000003000000e\
                      803000000000000e9030000000000002c01000000000000000200016b76000200016b778704000\
                      2096e6f206e756d626572";
        let hex: String = derived().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, golden);
    }

    #[test]
    fn records_of_one_number_are_told_apart_and_failures_are_kept() {
        let batch = derived();
        let batch = BatchRef::parse(&batch).unwrap();
        let seen: Vec<_> =
            batch.records().map(|r| (r.seq.0, r.sub, r.skipped, r.value.to_vec())).collect();
        assert_eq!(
            seen,
            [
                (41, 0, false, b"v".to_vec()),
                (41, 1, false, b"w".to_vec()),
                (300, 0, true, b"no number".to_vec())
            ]
        );
        assert_eq!(batch.range().to_string(), "(40, 300]");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        for batch in [two_records(), stamped(), derived()] {
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
        let gone = Record {
            seq: Seq(41),
            sub: 0,
            time: Millis(1_000),
            erased: true,
            skipped: false,
            key: b"",
            value: b"",
        };
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
            prop_assert_eq!(batch.header().stamp(), stamp.as_ref());
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
