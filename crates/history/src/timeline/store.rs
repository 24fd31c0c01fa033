//! All rows of one user, in a few blocks.
//!
//! A changed row is written where it lies if that is the block that takes new
//! rows; else it moves there. So blocks stay roughly in order of arrival, and
//! a read of the newest rows, or of the oldest, skips most of them by their
//! bounds. The order within the store says nothing: reads sort.

use tideline_types::Millis;

use super::block::{Block, Slot};
use crate::id::PackedId;
use crate::kinds::KindId;
use crate::row::RowRef;

/// A block that is left with so few rows gives them to another.
const ROWS_FEW: usize = 12;

/// Rows of one user, each (kind, id) once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// Takes new and changed rows.
    last: Block,
    /// Only of users whose rows do not fit in one block.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
struct More {
    /// Oldest arrival first, none empty.
    blocks: Vec<Block>,
    /// Rows of each kind in all blocks, `last` too.
    counts: Vec<(KindId, u32)>,
    /// Heap bytes of `blocks`: asked for with every change.
    heap: usize,
}

/// Where a row lies, until the next change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Among `more.blocks`; one past them is `last`.
    block: u32,
    slot: Slot,
}

/// What most filters ask of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) place: Place,
    pub(crate) kind: KindId,
    pub(crate) event_ms: Millis,
}

impl More {
    fn count(&mut self, kind: KindId, change: i32) {
        match self.counts.iter_mut().find(|count| count.0 == kind) {
            Some(count) => count.1 = count.1.saturating_add_signed(change),
            None => self.counts.push((kind, change.max(0) as u32)),
        }
    }

    /// After `blocks` changed.
    fn weigh(&mut self) {
        self.heap = self.blocks.iter().map(Block::heap_bytes).sum();
    }
}

impl Store {
    pub(crate) fn len(&self) -> usize {
        match &self.more {
            Some(more) => more.counts.iter().map(|count| count.1 as usize).sum(),
            None => self.last.len(),
        }
    }

    /// Heap bytes, with what a common allocator adds.
    pub(crate) fn bytes(&self) -> usize {
        let more = self.more.as_ref().map_or(0, |more| {
            size_of::<More>()
                + more.blocks.capacity() * size_of::<Block>()
                + more.counts.capacity() * size_of::<(KindId, u32)>()
                + more.heap
                + 48
        });
        more + self.last.heap_bytes()
    }

    /// Reads a little of each block; the result says nothing.
    pub(crate) fn peek(&self) -> u8 {
        self.blocks().fold(0, |all, block| all ^ block.peek())
    }

    fn older(&self) -> &[Block] {
        self.more.as_ref().map_or(&[], |more| &more.blocks)
    }

    fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.older().iter().chain(std::iter::once(&self.last))
    }

    fn block(&self, at: u32) -> &Block {
        self.older().get(at as usize).unwrap_or(&self.last)
    }

    fn block_mut(&mut self, at: u32) -> &mut Block {
        match &mut self.more {
            Some(more) if (at as usize) < more.blocks.len() => &mut more.blocks[at as usize],
            _ => &mut self.last,
        }
    }

    /// How many rows of a kind.
    pub(crate) fn count(&self, kind: KindId) -> usize {
        match &self.more {
            Some(more) => {
                let count = more.counts.iter().find(|count| count.0 == kind);
                count.map_or(0, |count| count.1 as usize)
            }
            None => self.last.slots().filter(|slot| self.last.head(*slot).0 == kind).count(),
        }
    }

    fn place(&self, kind: KindId, id: PackedId<'_>) -> Option<Place> {
        let tag = id.tag(kind.0);
        let older = self.older();
        if let Some(slot) = self.last.find(kind, id, tag) {
            return Some(Place { block: older.len() as u32, slot });
        }
        older.iter().enumerate().rev().find_map(|(at, block)| {
            block.find(kind, id, tag).map(|slot| Place { block: at as u32, slot })
        })
    }

    pub(crate) fn find(&self, kind: KindId, id: PackedId<'_>) -> Option<RowRef<'_>> {
        self.place(kind, id).map(|place| self.get(place))
    }

    pub(crate) fn get(&self, place: Place) -> RowRef<'_> {
        self.block(place.block).row(place.slot)
    }

    pub(crate) fn id(&self, place: Place) -> PackedId<'_> {
        self.block(place.block).id(place.slot)
    }

    /// Sets a row; `replaced` sees the one it replaces.
    pub(crate) fn put(
        &mut self,
        kind: KindId,
        row: &RowRef<'_>,
        mut replaced: impl FnMut(&RowRef<'_>),
    ) {
        if let Some(place) = self.place(kind, row.id) {
            replaced(&self.get(place));
            let in_last = place.block as usize == self.older().len();
            if in_last && self.last.fits(row.event_ms) {
                self.last.replace(place.slot, kind, row, row.id.tag(kind.0));
                return;
            }
            self.remove_at(place, kind);
        }
        self.append(kind, row);
        if let Some(more) = &mut self.more {
            more.count(kind, 1);
        }
    }

    /// Removes a row; `removed` sees it.
    pub(crate) fn remove(
        &mut self,
        kind: KindId,
        id: PackedId<'_>,
        mut removed: impl FnMut(&RowRef<'_>),
    ) {
        if let Some(place) = self.place(kind, id) {
            removed(&self.get(place));
            self.remove_at(place, kind);
        }
    }

    fn remove_at(&mut self, place: Place, kind: KindId) {
        self.block_mut(place.block).remove(place.slot);
        if let Some(more) = &mut self.more {
            more.count(kind, -1);
        }
        self.settle(place.block as usize);
    }

    /// Adds a row that is not there, uncounted.
    fn append(&mut self, kind: KindId, row: &RowRef<'_>) {
        let tag = row.id.tag(kind.0);
        if self.last.push(kind, row, tag) {
            return;
        }
        // A time far from all others must not end the last block for good.
        if !self.last.fits(row.event_ms)
            && let Some(more) = &mut self.more
            && more.blocks.iter_mut().rev().any(|block| block.push(kind, row, tag))
        {
            more.weigh();
            return;
        }
        self.open_block();
        self.last.push(kind, row, tag);
    }

    fn open_block(&mut self) {
        let counts = match self.more {
            Some(_) => Vec::new(),
            None => self.counted(),
        };
        let more = self.more.get_or_insert_with(|| Box::new(More { counts, ..More::default() }));
        let mut full = std::mem::take(&mut self.last);
        full.fit();
        if more.blocks.len() == more.blocks.capacity() {
            more.blocks.reserve_exact(1 + more.blocks.len() / 8);
        }
        more.heap += full.heap_bytes();
        more.blocks.push(full);
    }

    fn counted(&self) -> Vec<(KindId, u32)> {
        let mut sum = More::default();
        self.heads().for_each(|head| sum.count(head.kind, 1));
        sum.counts
    }

    /// After rows went from block `at`: lets none stay almost empty.
    fn settle(&mut self, at: usize) {
        let Some(more) = self.more.as_mut().filter(|more| at < more.blocks.len()) else { return };
        let few = (more.blocks[at].len() <= ROWS_FEW).then(|| more.blocks.remove(at));
        more.weigh();
        if let Some(few) = few {
            for slot in few.slots() {
                let (kind, _) = few.head(slot);
                self.append(kind, &few.row(slot));
            }
        }
        if self.older().is_empty() {
            self.more = None;
        }
    }

    /// Removes rows for which `goes` says so; `removed` sees them. Blocks with
    /// no row at or before `until` are left alone.
    pub(crate) fn remove_where(
        &mut self,
        until: Millis,
        goes: impl Fn(&Self, &Head) -> bool,
        mut removed: impl FnMut(KindId, &RowRef<'_>),
    ) {
        for at in (0..=self.older().len() as u32).rev() {
            if self.block(at).oldest() > until {
                continue;
            }
            let going: Vec<Head> = self.heads_of(at).filter(|head| goes(self, head)).collect();
            for head in going.iter().rev() {
                removed(head.kind, &self.get(head.place));
                self.block_mut(at).remove(head.place.slot);
                if let Some(more) = &mut self.more {
                    more.count(head.kind, -1);
                }
            }
            self.block_mut(at).narrow();
            if !going.is_empty() {
                self.settle(at as usize);
            }
        }
    }

    /// Rewrites rows for which `change` gives another one, of the same time
    /// and key.
    pub(crate) fn rewrite(
        &mut self,
        mut change: impl for<'a> FnMut(&RowRef<'a>) -> Option<RowRef<'a>>,
    ) {
        for at in 0..=self.older().len() as u32 {
            let block = self.block_mut(at);
            if block.slots().any(|slot| block.has_retries(slot)) {
                *block = block.rebuilt(&mut change);
            }
        }
        self.more.iter_mut().for_each(|more| more.weigh());
    }

    fn heads_of(&self, at: u32) -> impl Iterator<Item = Head> + '_ {
        let block = self.block(at);
        block.slots().map(move |slot| {
            let (kind, event_ms) = block.head(slot);
            Head { place: Place { block: at, slot }, kind, event_ms }
        })
    }

    /// All rows, in no order.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Head> + '_ {
        (0..=self.older().len() as u32).flat_map(|at| self.heads_of(at))
    }

    /// Hands out rows of times in `from..to`, newest blocks first; rows
    /// outside may be among them. `visit` answers the time below which it
    /// needs no more.
    pub(crate) fn newest(&self, from: Millis, to: Millis, mut visit: impl FnMut(Head) -> Millis) {
        let mut enough = from;
        for at in (0..=self.older().len() as u32).rev() {
            let block = self.block(at);
            if block.newest() < enough || block.oldest() >= to {
                continue;
            }
            for head in self.heads_of(at) {
                if head.event_ms >= enough {
                    enough = visit(head);
                }
            }
        }
    }

    /// Hands out rows, oldest blocks first. `visit` answers the time above
    /// which it needs no more.
    pub(crate) fn oldest(&self, mut visit: impl FnMut(Head) -> Millis) {
        let mut enough = Millis(i64::MAX);
        for at in 0..=self.older().len() as u32 {
            if self.block(at).oldest() <= enough {
                for head in self.heads_of(at) {
                    if head.event_ms <= enough {
                        enough = visit(head);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
