//! What a batch says of itself before its records.

use tideline_types::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, SeqRange, StreamId};

use super::BadBatch;

/// The newest format that this build writes and reads.
pub const VERSION: u8 = 3;
/// Bytes that every header has, and all that one of version 1 has.
pub const HEADER_BYTES: usize = 54;

const MARK: u8 = 0xb7;

/// What a header holds beside what all have: one for each version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Nothing.
    None,
    /// Who sent the records.
    Stamp(Stamp),
    /// Numbers are left out or repeated: the last one.
    Last(Seq),
}

impl Extra {
    fn version(self) -> u8 {
        match self {
            Self::None => 1,
            Self::Stamp(_) => 2,
            Self::Last(_) => 3,
        }
    }

    /// Bytes of it, by version; `None` for a version that is unknown.
    fn bytes_of(version: u8) -> Option<usize> {
        match version {
            1 => Some(0),
            2 => Some(20),
            3 => Some(8),
            _ => None,
        }
    }

    fn read(version: u8, raw: &[u8]) -> Self {
        match version {
            2 => Self::Stamp(Stamp {
                producer: u64::from_le_bytes(part(raw, 0)),
                epoch: u32::from_le_bytes(part(raw, 8)),
                number: u64::from_le_bytes(part(raw, 12)),
            }),
            3 => Self::Last(Seq(u64::from_le_bytes(part(raw, 0)))),
            _ => Self::None,
        }
    }

    fn write(self, raw: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Stamp(stamp) => {
                raw[..8].copy_from_slice(&stamp.producer.to_le_bytes());
                raw[8..12].copy_from_slice(&stamp.epoch.to_le_bytes());
                raw[12..20].copy_from_slice(&stamp.number.to_le_bytes());
            }
            Self::Last(last) => raw[..8].copy_from_slice(&last.0.to_le_bytes()),
        }
    }

    /// Why it cannot be, if so.
    fn fault(self, first: Seq) -> Option<&'static str> {
        match self {
            Self::Stamp(stamp) if stamp.number == 0 || stamp.number > u64::MAX / 2 => {
                Some("producer's number")
            }
            Self::Last(last) if last < first || last.0 > u64::MAX / 2 => Some("last number"),
            _ => None,
        }
    }
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
    /// What else.
    pub extra: Extra,
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
        let more = Extra::bytes_of(raw[0]).ok_or(BadBatch::Version(raw[0]))?;
        let Some(extra) = bytes.get(HEADER_BYTES..HEADER_BYTES + more) else {
            return Err(BadBatch::Short { have: bytes.len(), need: HEADER_BYTES + more });
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
            extra: Extra::read(raw[0], extra),
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
        match header.extra.fault(header.first) {
            Some(fault) => Err(BadBatch::Header(fault)),
            None => Ok(header),
        }
    }

    /// Bytes before the first record.
    pub fn bytes(&self) -> usize {
        let more = Extra::bytes_of(self.extra.version());
        HEADER_BYTES + more.expect("every version has its length")
    }

    /// The numbers of the records.
    pub fn range(&self) -> SeqRange {
        SeqRange::new(self.first.prev(), self.last())
    }

    /// The number of the last record.
    pub fn last(&self) -> Seq {
        match self.extra {
            Extra::Last(last) => last,
            _ => Seq(self.first.0 + u64::from(self.count) - 1),
        }
    }

    /// Who sent the records, if they said so.
    pub fn stamp(&self) -> Option<&Stamp> {
        match &self.extra {
            Extra::Stamp(stamp) => Some(stamp),
            _ => None,
        }
    }

    /// Writes the header into the first bytes of `batch`, checksum included.
    pub(super) fn seal(&self, batch: &mut [u8]) {
        batch[0] = self.extra.version();
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
        self.extra.write(&mut batch[HEADER_BYTES..]);
        let crc = checksum(batch);
        batch[8..12].copy_from_slice(&crc.to_le_bytes());
    }
}

fn part<const N: usize>(raw: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&raw[at..at + N]);
    out
}

/// CRC-32C of all bytes but the four that hold it.
pub(super) fn checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&batch[..8]), &batch[12..])
}
