//! A frame of a topic: a range of numbers and the batches in it, as it is
//! passed from the log to readers, and from reader to reader.
//!
//! ```text
//!  0  version (1)             u8      20  partition                u16
//!  1  mark (0xf7)             u8      22  epoch of every record    u32
//!  2  nothing (0)             u16     26  covered after            u64
//!  4  bytes, header and all   u32     34  covered through          u64
//!  8  CRC-32C of the header   u32     42  batches, back to back
//! 12  incarnation             u64
//! ```
//!
//! Numbers are little-endian. The frame covers (after, through]: a number in it
//! without a record was filtered out or never had one, so that a frame without
//! a record still advances its reader, and a reader that stands anywhere but at
//! `after` has a gap. The first batch may begin before the range. The header's
//! checksum covers the 8 bytes before it and all after it; batches carry their
//! own, and are passed on as the bytes that came.

use bytes::{BufMut as _, Bytes, BytesMut};
use tideline_types::limits::BATCH_BYTES_MAX;
use tideline_types::{Epoch, Incarnation, PartitionId, Position, Seq, SeqRange, StreamId};

use crate::batch::{BadBatch, BatchRef, Header, Record};

/// The format that this build writes and reads.
pub const VERSION: u8 = 1;
/// Bytes before the first batch.
pub const HEADER_BYTES: usize = 42;
/// Bytes of a frame, at most.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + 2 * BATCH_BYTES_MAX;

const MARK: u8 = 0xf7;

/// Why bytes are no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// The bytes are fewer or more than the frame's.
    #[error("the frame has {have} bytes, not {need}")]
    Length {
        /// Bytes there are.
        have: usize,
        /// Bytes it takes.
        need: usize,
    },
    /// Not a frame, or of another version.
    #[error("not a frame of version {VERSION} (starts with {0:#04x} {1:#04x})")]
    Version(u8, u8),
    /// The header's checksum does not fit it.
    #[error("the frame's header is damaged")]
    Checksum,
    /// The header says what cannot be, or the batches do not fit it.
    #[error("the frame does not hold together: {0}")]
    Shape(&'static str),
    /// A batch is damaged.
    #[error(transparent)]
    Batch(#[from] BadBatch),
}

/// A frame, verified: its header, and every batch in it.
#[derive(Clone, Debug)]
pub struct Frame {
    stream: StreamId,
    epoch: Epoch,
    range: SeqRange,
    bytes: Bytes,
}

impl Frame {
    /// Puts batches of one stream and epoch into a frame that covers `range`.
    pub fn new(stream: StreamId, epoch: Epoch, range: SeqRange, batches: &[Bytes]) -> Self {
        let len = HEADER_BYTES + batches.iter().map(Bytes::len).sum::<usize>();
        let mut bytes = BytesMut::with_capacity(len);
        bytes.put_u8(VERSION);
        bytes.put_u8(MARK);
        bytes.put_u16_le(0);
        bytes.put_u32_le(len as u32);
        bytes.put_u32_le(0);
        bytes.put_u64_le(stream.incarnation.0);
        bytes.put_u16_le(stream.partition.0);
        bytes.put_u32_le(epoch.0);
        bytes.put_u64_le(range.after.0);
        bytes.put_u64_le(range.through.0);
        let crc = checksum(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        batches.iter().for_each(|batch| bytes.extend_from_slice(batch));
        Self { stream, epoch, range, bytes: bytes.freeze() }
    }

    /// Verifies a frame that came from elsewhere; `bytes` are all of it.
    pub fn parse(bytes: Bytes) -> Result<Self, BadFrame> {
        let Some(raw) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BadFrame::Length { have: bytes.len(), need: HEADER_BYTES });
        };
        if raw[..4] != [VERSION, MARK, 0, 0] {
            return Err(BadFrame::Version(raw[0], raw[1]));
        }
        if checksum(raw).to_le_bytes() != raw[8..12] {
            return Err(BadFrame::Checksum);
        }
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&raw[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let u32_at = |at: usize| u64_at(at) as u32;
        let need = u32_at(4) as usize;
        if bytes.len() != need || need > FRAME_BYTES_MAX {
            return Err(BadFrame::Length { have: bytes.len(), need: need.min(FRAME_BYTES_MAX) });
        }
        let (after, through) = (u64_at(26), u64_at(34));
        if after > through || through > u64::MAX / 2 {
            return Err(BadFrame::Shape("its range"));
        }
        let frame = Self {
            stream: StreamId {
                incarnation: Incarnation(u64_at(12)),
                partition: PartitionId(u32_at(20) as u16),
            },
            epoch: Epoch(u32_at(22)),
            range: SeqRange::new(Seq(after), Seq(through)),
            bytes,
        };
        frame.check()?;
        Ok(frame)
    }

    /// Batches of its own stream and epoch alone, in order, within the range.
    fn check(&self) -> Result<(), BadFrame> {
        let mut last = Seq::ZERO;
        for batch in self.walk() {
            let batch = BatchRef::parse(batch?)?;
            if batch.stream() != self.stream || batch.epoch() != self.epoch {
                return Err(BadFrame::Shape("a batch of another stream or epoch"));
            }
            let range = batch.range();
            if range.after < last || range.through <= self.range.after {
                return Err(BadFrame::Shape("batches out of order"));
            }
            last = range.through;
        }
        if last > self.range.through {
            return Err(BadFrame::Shape("a batch beyond its range"));
        }
        Ok(())
    }

    fn walk(&self) -> impl Iterator<Item = Result<&[u8], BadBatch>> {
        let mut rest = &self.bytes[HEADER_BYTES..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let len = match Header::read(rest) {
                Ok(header) => header.len,
                Err(bad) => {
                    rest = &[];
                    return Some(Err(bad));
                }
            };
            let (batch, after) = rest.split_at(len);
            rest = after;
            Some(Ok(batch))
        })
    }

    /// The batches of it, in order; the first may begin before its range.
    pub fn batches(&self) -> impl Iterator<Item = BatchRef<'_>> {
        self.walk().filter_map(|batch| BatchRef::verified(batch.ok()?))
    }

    /// The bytes of each batch, in order.
    pub fn batch_bytes(&self) -> impl Iterator<Item = Bytes> {
        self.walk().filter_map(|batch| Some(self.bytes.slice_ref(batch.ok()?)))
    }

    /// The frame as it is passed on.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whose records.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Who wrote every record.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What is covered.
    pub fn range(&self) -> SeqRange {
        self.range
    }

    /// Where a reader stands that has applied it.
    pub fn through(&self) -> Position {
        let StreamId { incarnation, .. } = self.stream;
        Position { incarnation, epoch: self.epoch, seq: self.range.through }
    }

    /// The records of the range, in order; erased ones too.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let after = self.range.after;
        self.batches().flat_map(|batch| batch.records()).filter(move |record| record.seq > after)
    }
}

/// CRC-32C of the header but the four bytes that hold it.
fn checksum(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..8]), &header[12..HEADER_BYTES])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_types::Millis;

    use super::*;
    use crate::batch::BatchBuilder;

    fn stream() -> StreamId {
        StreamId { incarnation: Incarnation(7), partition: PartitionId(3) }
    }

    fn batch(first: u64, values: &[&str]) -> Bytes {
        let mut builder = BatchBuilder::new(stream(), Epoch(2), Seq(first));
        for value in values {
            builder.push(Millis(1_000), b"k", value.as_bytes());
        }
        builder.finish()
    }

    fn frame(after: u64, through: u64, batches: &[Bytes]) -> Frame {
        Frame::new(stream(), Epoch(2), SeqRange::new(Seq(after), Seq(through)), batches)
    }

    #[test]
    fn the_bytes_of_a_frame_never_change() {
        let golden = "01f700002a00000074a3fbcd070000000000000003000200000004000000000000000\
                      900000000000000";
        let hex: String = frame(4, 9, &[]).bytes().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, golden);
    }

    #[test]
    fn records_before_the_range_are_left_out_and_gaps_are_covered() {
        let sent = frame(5, 12, &[batch(4, &["a", "b", "c"]), batch(9, &["d"])]);
        let came = Frame::parse(sent.bytes().clone()).unwrap();
        let seen: Vec<_> = came.records().map(|r| (r.seq.0, r.value.to_vec())).collect();
        assert_eq!(seen, [(6, b"c".to_vec()), (9, b"d".to_vec())]);
        assert_eq!(came.through().to_string(), "7-2-12");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let whole = frame(3, 9, &[batch(4, &["a", "b"])]);
        for bit in 0..whole.bytes().len() * 8 {
            let mut bad = whole.bytes().to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::parse(bad.into()).is_err(), "bit {bit}");
        }
        for len in 0..whole.bytes().len() {
            assert!(Frame::parse(whole.bytes().slice(..len)).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn batches_that_do_not_belong_are_refused() {
        let why = |batches: &[Bytes]| match Frame::parse(frame(3, 9, batches).bytes().clone()) {
            Err(BadFrame::Shape(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(why(&[batch(9, &["x", "y"])]), "a batch beyond its range");
        assert_eq!(why(&[batch(6, &["x"]), batch(5, &["y"])]), "batches out of order");
        assert_eq!(why(&[batch(2, &["x"])]), "batches out of order");
        let mut other = BatchBuilder::new(stream(), Epoch(3), Seq(4));
        other.push(Millis(0), b"", b"");
        assert_eq!(why(&[other.finish()]), "a batch of another stream or epoch");
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_comes(
            after in 0_u64..1 << 40,
            runs in prop::collection::vec((0_u64..4, 1_usize..5), 0..6),
            rest in 0_u64..9,
        ) {
            let (mut next, mut batches, mut seqs) = (after + 1, Vec::new(), Vec::new());
            for (gap, count) in runs {
                next += gap;
                batches.push(batch(next, &vec!["v"; count]));
                seqs.extend(next..next + count as u64);
                next += count as u64;
            }
            let sent = frame(after, next - 1 + rest, &batches);
            let came = Frame::parse(sent.bytes().clone()).unwrap();
            prop_assert_eq!(came.range(), sent.range());
            prop_assert_eq!(came.stream(), stream());
            prop_assert_eq!(came.records().map(|r| r.seq.0).collect::<Vec<_>>(), seqs);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzz::frame(&bytes);
        }
    }
}
