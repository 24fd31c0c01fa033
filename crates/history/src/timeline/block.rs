//! Up to 64 rows in one allocation: records from the front, and at the back the
//! lengths and the tags of all, by which a row is found without reading the
//! others.
//!
//! ```text
//! [ record 0 | record 1 | … | free | len 1 | len 0 | tag 1 | tag 0 ]
//! ```
//!
//! A length of 255 means that the record begins with its true length in two bytes.
//! Times of events are bounded by `oldest` and `newest`, which may be wider
//! than what the rows span, never narrower.

use tideline_types::Millis;

use super::record::{self, Bases, HeadBits, SPAN_MS, Scratch};
use crate::id::PackedId;
use crate::kinds::KindId;
use crate::row::RowRef;

/// Rows in a block, at most.
const ROWS_MAX: u8 = 64;
/// New rows fill a block up to this many bytes.
const BYTES_FULL: usize = 2048;
/// Bytes of the index per row.
const ENTRY: usize = 2;
/// Bounds of times are kept in this many ms.
const BOUND_MS: i64 = 1 << 8;
/// Longer records carry their length themselves.
const WIDE: u8 = u8::MAX;

#[derive(Clone, Debug)]
pub(super) struct Block {
    bytes: Box<[u8]>,
    bases: Bases,
    oldest: u32,
    newest: u32,
    used: u16,
    rows: u8,
}

/// A record's place in its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Which row.
    index: u8,
    /// Where its record begins, length and all.
    at: u16,
    /// Its whole length.
    len: u16,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            bytes: Box::default(),
            bases: Bases { event: 0, taken: 0 },
            oldest: u32::MAX,
            newest: 0,
            used: 0,
            rows: 0,
        }
    }
}

impl Block {
    pub(super) fn len(&self) -> usize {
        usize::from(self.rows)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether a row of that time can be told from this block's base.
    pub(super) fn fits(&self, event_ms: Millis) -> bool {
        self.is_empty() || (0..SPAN_MS).contains(&event_ms.0.saturating_sub(self.bases.event))
    }

    /// Heap bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// No row is older.
    pub(super) fn oldest(&self) -> Millis {
        match self.rows {
            0 => Millis(i64::MAX),
            _ => Millis(self.bases.event + i64::from(self.oldest) * BOUND_MS),
        }
    }

    /// No row is newer.
    pub(super) fn newest(&self) -> Millis {
        match self.rows {
            0 => Millis(i64::MIN),
            _ => Millis(self.bases.event + i64::from(self.newest) * BOUND_MS + BOUND_MS - 1),
        }
    }

    /// The lengths, the last row's first.
    fn lens(&self) -> &[u8] {
        let (size, rows) = (self.bytes.len(), self.len());
        &self.bytes[size - 2 * rows..size - rows]
    }

    /// The tags, the last row's first.
    fn tags(&self) -> &[u8] {
        &self.bytes[self.bytes.len() - self.len()..]
    }

    /// All places, oldest arrival first.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let mut at = 0u16;
        self.lens().iter().rev().enumerate().map(move |(index, &len)| {
            let slot = Slot { index: index as u8, at, len: self.true_len(len, at) };
            at += slot.len;
            slot
        })
    }

    /// The place of one row.
    fn slot(&self, index: usize) -> Slot {
        let before = &self.lens()[self.len() - index..];
        let at = if memchr::memchr(WIDE, before).is_none() {
            before.iter().map(|&len| u16::from(len)).sum()
        } else {
            before.iter().rev().fold(0, |at, &len| at + self.true_len(len, at))
        };
        let len = self.true_len(self.lens()[self.len() - 1 - index], at);
        Slot { index: index as u8, at, len }
    }

    fn true_len(&self, len: u8, at: u16) -> u16 {
        if len == WIDE {
            let at = usize::from(at);
            u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
        } else {
            u16::from(len)
        }
    }

    fn record(&self, slot: Slot) -> &[u8] {
        let record = &self.bytes[usize::from(slot.at)..usize::from(slot.at + slot.len)];
        if slot.len >= u16::from(WIDE) { &record[2..] } else { record }
    }

    pub(super) fn head(&self, slot: Slot) -> (KindId, Millis) {
        let record = self.record(slot);
        let head = HeadBits::of(record);
        (head.kind(record), head.event_ms(self.bases.event))
    }

    pub(super) fn id(&self, slot: Slot) -> PackedId<'_> {
        let record = self.record(slot);
        HeadBits::of(record).id(record)
    }

    pub(super) fn has_retries(&self, slot: Slot) -> bool {
        HeadBits::of(self.record(slot)).has_retries()
    }

    pub(super) fn row(&self, slot: Slot) -> RowRef<'_> {
        record::read(self.record(slot), self.bases)
    }

    /// Where the row of (`kind`, `id`) lies; `tag` is the id's tag.
    pub(super) fn find(&self, kind: KindId, id: PackedId<'_>, tag: u8) -> Option<Slot> {
        let last = self.len().wrapping_sub(1);
        memchr::memchr_iter(tag, self.tags()).find_map(|back| {
            let slot = self.slot(last - back);
            let record = self.record(slot);
            let head = HeadBits::of(record);
            let found =
                head.form() == id.form() && head.kind(record) == kind && head.id(record) == id;
            found.then_some(slot)
        })
    }

    /// Adds a row that is not in the block, if its time fits and there is
    /// room, as there is in an empty one; whether it did.
    pub(super) fn push(&mut self, kind: KindId, row: &RowRef<'_>, tag: u8) -> bool {
        if self.is_empty() {
            let taken = row.retries.iter().next().map_or(row.event_ms, |retry| retry.taken_ms);
            let event = row.event_ms.0.saturating_sub(SPAN_MS / 2);
            self.bases = Bases { event, taken: taken.0 };
            (self.oldest, self.newest) = (u32::MAX, 0);
        } else if self.rows >= ROWS_MAX || !self.fits(row.event_ms) {
            return false;
        }
        let mut record = Scratch::new();
        record::write(kind, row, self.bases, &mut record);
        let whole = self.needed() + whole_len(record.as_slice()) + ENTRY;
        if whole > BYTES_FULL && !self.is_empty() {
            return false;
        }
        self.add(record.as_slice(), row.event_ms, tag);
        true
    }

    fn add(&mut self, record: &[u8], event_ms: Millis, tag: u8) {
        let slot = Slot { index: self.rows, at: self.used, len: 0 };
        self.make_room(whole_len(record) + ENTRY);
        // The lengths move down by one, to let a tag in behind them.
        let (size, rows) = (self.bytes.len(), self.len());
        self.bytes.copy_within(size - 2 * rows..size - rows, size - 2 * rows - 1);
        self.rows += 1;
        self.splice(slot, record, tag);
        self.widen(event_ms);
    }

    /// The same rows, changed where `change` says so, in no more bytes than it
    /// takes. Times and keys must stay.
    pub(super) fn rebuilt(
        &self,
        change: &mut impl for<'a> FnMut(&RowRef<'a>) -> Option<RowRef<'a>>,
    ) -> Self {
        let mut fresh = Self { bases: self.bases, ..Self::default() };
        for slot in self.slots() {
            let row = self.row(slot);
            let row = change(&row).unwrap_or(row);
            let tag = self.tags()[self.len() - 1 - usize::from(slot.index)];
            let mut record = Scratch::new();
            record::write(self.head(slot).0, &row, self.bases, &mut record);
            fresh.add(record.as_slice(), row.event_ms, tag);
        }
        fresh
    }

    /// Puts another row in the place of one.
    pub(super) fn replace(&mut self, slot: Slot, kind: KindId, row: &RowRef<'_>, tag: u8) {
        let mut record = Scratch::new();
        record::write(kind, row, self.bases, &mut record);
        self.make_room(whole_len(record.as_slice()).saturating_sub(usize::from(slot.len)));
        self.splice(slot, record.as_slice(), tag);
        self.widen(row.event_ms);
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, slot: Slot) {
        let (start, end) = (usize::from(slot.at), usize::from(slot.at + slot.len));
        self.bytes.copy_within(end..usize::from(self.used), start);
        self.used -= slot.len;
        let (size, rows) = (self.bytes.len(), self.len());
        let tag = size - 1 - usize::from(slot.index);
        let len = tag - rows;
        let lens = size - 2 * rows;
        // Tags and lengths of later rows move up over what is removed, and
        // all lengths by one more, after the tags.
        self.bytes.copy_within(lens..len, lens + 1);
        self.bytes.copy_within(size - rows..tag, size - rows + 1);
        self.bytes.copy_within(lens + 1..size - rows, lens + 2);
        self.rows -= 1;
        let needed = self.needed();
        if self.rows == 0 {
            *self = Self::default();
        } else if size_for(needed + needed / 4) < size {
            self.reallocate(size_for(needed));
        }
    }

    /// Writes a record over the one at `slot`, for which there is room, and
    /// sets its length and tag.
    fn splice(&mut self, slot: Slot, record: &[u8], tag: u8) {
        let len = whole_len(record);
        let (at, old_end) = (usize::from(slot.at), usize::from(slot.at + slot.len));
        let used = usize::from(self.used);
        if old_end != at + len {
            self.bytes.copy_within(old_end..used, at + len);
            self.used = (used + at + len - old_end) as u16;
        }
        let start = at + len - record.len();
        if start > at {
            self.bytes[at..start].copy_from_slice(&(len as u16).to_le_bytes());
        }
        self.bytes[start..at + len].copy_from_slice(record);
        let place = self.bytes.len() - 1 - usize::from(slot.index);
        self.bytes[place] = tag;
        let rows = self.len();
        self.bytes[place - rows] = len.min(usize::from(WIDE)) as u8;
    }

    fn make_room(&mut self, more: usize) {
        let needed = self.needed() + more;
        if needed > self.bytes.len() {
            self.reallocate(size_for(needed));
        }
    }

    fn needed(&self) -> usize {
        usize::from(self.used) + ENTRY * usize::from(self.rows)
    }

    fn reallocate(&mut self, size: usize) {
        let mut bytes = vec![0; size].into_boxed_slice();
        let (used, index) = (usize::from(self.used), ENTRY * self.len());
        bytes[..used].copy_from_slice(&self.bytes[..used]);
        bytes[size - index..].copy_from_slice(&self.bytes[self.bytes.len() - index..]);
        self.bytes = bytes;
    }

    fn widen(&mut self, event_ms: Millis) {
        let bound = ((event_ms.0 - self.bases.event) / BOUND_MS) as u32;
        self.oldest = self.oldest.min(bound);
        self.newest = self.newest.max(bound);
    }

    /// Makes the bounds as narrow as the rows allow.
    pub(super) fn narrow(&mut self) {
        let (mut oldest, mut newest) = (u32::MAX, 0);
        for slot in self.slots() {
            let (_, event_ms) = self.head(slot);
            let bound = ((event_ms.0 - self.bases.event) / BOUND_MS) as u32;
            oldest = oldest.min(bound);
            newest = newest.max(bound);
        }
        (self.oldest, self.newest) = (oldest, newest);
    }

    /// Gives back all free bytes.
    pub(super) fn fit(&mut self) {
        let size = size_for(self.needed());
        if size < self.bytes.len() {
            self.reallocate(size);
        }
    }

    /// Reads a little of what a search reads first, and of where the next row
    /// goes; the result says nothing.
    pub(super) fn peek(&self) -> u8 {
        let of = |byte: Option<&u8>| byte.copied().unwrap_or_default();
        let tags = self.tags();
        of(tags.first()) ^ of(tags.last()) ^ of(self.bytes.get(usize::from(self.used)))
    }
}

/// The least size with room for `needed` bytes, of those in which the allocator
/// gives memory (mimalloc: four to a doubling). Anything between would be
/// rounded up, and be of no use to anybody.
fn size_for(needed: usize) -> usize {
    let step = 1 << needed.saturating_sub(1).max(64).ilog2().saturating_sub(2);
    needed.next_multiple_of(step)
}

/// The length of a record with what goes before it.
fn whole_len(record: &[u8]) -> usize {
    let wide = record.len() >= usize::from(WIDE);
    record.len() + if wide { 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_what_the_allocator_would_give_it_anyway() {
        let mut sizes: Vec<usize> = (1..=600).map(size_for).collect();
        sizes.dedup();
        let given = [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640];
        assert_eq!(sizes, given);
        assert_eq!((size_for(1_793), size_for(2_048), size_for(2_049)), (2_048, 2_048, 2_560));
    }
}
