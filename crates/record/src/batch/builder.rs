//! Collecting records into a batch.

use bytes::Bytes;
use tideline_types::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX};
use tideline_types::{Epoch, Millis, Seq, StreamId};

use super::RECORD_OVERHEAD_BYTES_MAX;
use super::header::{Extra, HEADER_BYTES, Header, Stamp};
use crate::codec::{put_signed, put_varint};

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
            extra: Extra::None,
        };
        Self { bytes: buffer, header, last_time: Millis(0) }
    }

    /// The batch is of this producer. To be said before the first record.
    #[must_use]
    pub fn stamped(self, stamp: Stamp) -> Self {
        self.with(Extra::Stamp(stamp))
    }

    /// The batch is of a derived topic: each record comes with its number, by
    /// [`BatchBuilder::push_at`]. To be said before the first record.
    #[must_use]
    pub fn derived(self) -> Self {
        let first = self.header.first;
        self.with(Extra::Last(first))
    }

    fn with(mut self, extra: Extra) -> Self {
        debug_assert!(self.is_empty() && self.header.extra == Extra::None);
        self.header.extra = extra;
        self.bytes.resize(self.header.bytes(), 0);
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

    /// Adds a record that comes from `seq`, which is not below the one before;
    /// the first has the number that the batch was begun with.
    pub fn push_at(&mut self, seq: Seq, time: Millis, key: &[u8], value: &[u8]) {
        self.number(seq, false);
        self.push(time, key, value);
    }

    /// Says that the operator failed on the record `seq`, and why.
    pub fn push_skipped(&mut self, seq: Seq, time: Millis, why: &str) {
        self.number(seq, true);
        self.push(time, b"", why.as_bytes());
    }

    fn number(&mut self, seq: Seq, skipped: bool) {
        let Extra::Last(before) = self.header.extra else {
            unreachable!("only records of a derived topic bring their numbers")
        };
        debug_assert!(before <= seq && (!self.is_empty() || seq == self.header.first));
        put_varint(&mut self.bytes, (seq.0 - before.0) << 1 | u64::from(skipped));
        self.header.extra = Extra::Last(seq);
    }

    pub(super) fn push_erased(&mut self, time: Millis) {
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
    pub fn finish(self) -> Bytes {
        self.finish_as(0)
    }

    /// The same, as what is left of a batch after erasing.
    pub(super) fn finish_as(mut self, generation: u16) -> Bytes {
        self.header.generation = generation;
        self.header.len = self.bytes.len();
        self.header.seal(&mut self.bytes);
        Bytes::from(self.bytes)
    }
}
