//! One partition of a tier: rows, and how far they are.
//!
//! Always: what is in the rows is what the topic gives at the place that is
//! kept with them, for both change in one write. A hot set is durable before
//! anyone sees what follows from it. A change is applied to a row iff its number
//! is larger than the row's, so that a snapshot that was taken while it changed
//! becomes whole by its tail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use tideline_record::frame::Frame;
use tideline_record::kv::Change;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::limits::TIER_KEY_BYTES_MAX;
use tideline_types::{Epoch, Incarnation, PartitionId, Position, Seq, SeqRange, partition_of};

use crate::fold::{enter, fold};
use crate::hot::{Turn, decide, hot_frame};
use crate::ring::Ring;
use crate::rows::{self, Entry, Has, HotSet, Place};
use crate::sketch::Sketch;
use crate::{HotEntry, Options, Whole};

/// Why a range was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It does not begin where the partition stands.
    #[error("a range {range} of life {incarnation}, where the partition stands at {stands}")]
    Join {
        /// The range.
        range: SeqRange,
        /// Of which life.
        incarnation: Incarnation,
        /// Where the partition stands.
        stands: Position,
    },
    /// The store failed. Nothing of the range is kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What one who follows the hot keys is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HotNext {
    /// A frame that begins where the reader stands.
    Frame(Bytes),
    /// Nothing yet.
    Wait,
    /// It is not here any more: take a snapshot.
    Lagged {
        /// What comes next for the reader.
        next: Seq,
        /// The oldest number that is here.
        oldest: Seq,
    },
    /// The reader's place is of another life.
    Recreated {
        /// The present one.
        incarnation: Incarnation,
    },
    /// The reader's place is on a tail that was lost.
    Diverged,
}

pub(crate) struct Part {
    table: Arc<dyn Table>,
    key: Bytes,
    partition: PartitionId,
    partitions: u16,
    options: Options,
    pub(crate) place: Place,
    hot: BTreeSet<Bytes>,
    /// Decided, and not in force yet.
    next_hot: Option<BTreeSet<Bytes>>,
    ring: Ring,
    pub(crate) sketch: Sketch,
    /// What the source last said that it has.
    pub(crate) head: Seq,
    /// Why it does not go on.
    pub(crate) stopped: Option<String>,
}

impl Part {
    pub(crate) fn open(
        table: Arc<dyn Table>,
        key: Bytes,
        partition: PartitionId,
        partitions: u16,
        options: &Options,
    ) -> Result<Self, StoreError> {
        let damaged = |what: &str| StoreError::Damaged {
            file: "tables/meta".into(),
            offset: 0,
            what: format!("{what} of a tier's partition {partition}"),
        };
        let row = table.get(TableName::Meta, &key, rows::PLACE)?;
        let place = row.map(|row| Place::decode(&row)).transpose();
        let place = place.map_err(|_| damaged("the place"))?.unwrap_or_default();
        let row = table.get(TableName::Meta, &key, &rows::hot_key(place.hot_version))?;
        let hot = row.map(|row| HotSet::decode(&row)).transpose();
        let hot = hot.map_err(|_| damaged("the hot set"))?.unwrap_or_default().keys;
        Ok(Self {
            table,
            key,
            partition,
            partitions,
            ring: Ring::new(place.position.seq, options.ring_bytes),
            sketch: Sketch::new(16 * options.hot_keys_max.max(1)),
            options: options.clone(),
            place,
            hot,
            next_hot: None,
            head: Seq::ZERO,
            stopped: None,
        })
    }

    /// Whether all is there: no snapshot is being loaded or waits for its tail.
    pub(crate) fn is_whole(&self) -> bool {
        !self.place.loading && self.place.position.seq >= self.place.whole_from
    }

    pub(crate) fn hot_keys(&self) -> &BTreeSet<Bytes> {
        &self.hot
    }

    /// Applies a range that begins where the partition stands. `true` if there is
    /// something new for those who follow the hot keys.
    pub(crate) fn apply(&mut self, frame: &Frame) -> Result<(), ApplyError> {
        let (stands, range) = (self.place.position, frame.range());
        let incarnation = frame.stream().incarnation;
        let fresh = stands == Position::default();
        let of_it = fresh || stands.incarnation == incarnation && range.after == stands.seq;
        if self.place.loading || !of_it || frame.stream().partition != self.partition {
            return Err(ApplyError::Join { range, incarnation, stands });
        }
        let mut place = self.place.clone();
        place.position = frame.through();
        place.saw_epoch(frame.epoch(), range.after.next());
        let mut changed = Changed::new();
        for record in frame.records().filter(|record| !record.erased) {
            place.time = place.time.max(record.time);
            let change = match Change::read(record.value) {
                Ok(change) if !record.skipped && self.holds(record.key) => change,
                _ => {
                    place.skipped += 1;
                    continue;
                }
            };
            let key = Bytes::copy_from_slice(record.key);
            if !changed.contains_key(&key) {
                let entry = self.entry(&key)?;
                let through = entry.as_ref().map_or(Seq::ZERO, |entry| entry.at);
                changed.insert(key.clone(), (entry, through));
            }
            let Some((entry, through)) = changed.get_mut(&key) else { continue };
            // A row of a snapshot may have it already.
            if record.seq > *through {
                let has = fold(entry.take().map(|entry| entry.has), change);
                *entry = has.map(|has| Entry { has, at: record.seq });
            }
        }
        let mut ops: Vec<Op> = changed
            .iter()
            .map(|(key, (entry, _))| match entry {
                Some(entry) => Op::Put { sort_key: rows::entry_key(key), value: entry.encode() },
                None => Op::Delete { sort_key: rows::entry_key(key) },
            })
            .collect();
        let next_hot = self.next_hot.take().filter(|_| place.position.seq >= place.whole_from);
        let turn = match &next_hot {
            Some(next) => {
                place.hot_version += 1;
                Some(self.turn(next, &changed)?)
            }
            None => None,
        };
        if let Some(keys) = &next_hot {
            let set = HotSet { from: range.through, keys: keys.clone() };
            let sort_key = rows::hot_key(place.hot_version);
            ops.push(Op::Put { sort_key, value: set.encode() });
            if let Some(old) = place.hot_version.checked_sub(HOT_SETS_KEPT) {
                ops.push(Op::Delete { sort_key: rows::hot_key(old) });
            }
        }
        let place_row =
            Op::Put { sort_key: Bytes::from_static(rows::PLACE), value: place.encode() };
        #[cfg(feature = "sabotage")]
        if crate::sabotage::is(crate::sabotage::Broken::PlaceApart) {
            self.commit(vec![place_row.clone()])?;
        }
        ops.push(place_row);
        self.commit(ops)?;
        if next_hot.is_some() {
            self.table.sync()?;
        }
        if fresh {
            self.ring = Ring::new(range.after, self.options.ring_bytes);
        }
        let hot = hot_frame(frame, &self.hot, turn.as_ref(), place.time);
        self.ring.push(hot);
        self.place = place;
        self.head = self.head.max(range.through);
        self.stopped = None;
        if let Some(next) = next_hot {
            self.hot = next;
        }
        Ok(())
    }

    /// Keys that belong to this partition, and are not too long.
    fn holds(&self, key: &[u8]) -> bool {
        key.len() <= TIER_KEY_BYTES_MAX && partition_of(key, self.partitions) == self.partition
    }

    fn turn(&self, next: &BTreeSet<Bytes>, changed: &Changed) -> Result<Turn, StoreError> {
        let mut turn = Turn { enter: Vec::new(), leave: Vec::new() };
        for key in next.difference(&self.hot) {
            let has = match changed.get(key) {
                Some((entry, _)) => entry.as_ref().map(|entry| entry.has.clone()),
                None => self.entry(key)?.map(|entry| entry.has),
            };
            turn.enter.push((key.clone(), enter(has.as_ref())));
        }
        turn.leave = self.hot.difference(next).cloned().collect();
        Ok(turn)
    }

    pub(crate) fn entry(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        let row = self.table.get(TableName::Meta, &self.key, &rows::entry_key(key))?;
        row.map(|row| self.decode(&row)).transpose()
    }

    fn decode(&self, row: &Bytes) -> Result<Entry, StoreError> {
        Entry::decode(row).map_err(|bad| StoreError::Damaged {
            file: "tables/meta".into(),
            offset: 0,
            what: format!("an entry of a tier's partition {}: {bad}", self.partition),
        })
    }

    fn commit(&self, ops: Vec<Op>) -> Result<(), StoreError> {
        let partition_key = self.key.clone();
        self.table.commit(&[Commit { table: TableName::Meta, partition_key, ops }])
    }

    /// Keys from `from` on, at most `limit`, of all rows or of the hot ones.
    pub(crate) fn page(
        &self,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Has, Seq)>, StoreError> {
        // The byte after the last key's end sorts right behind it.
        let from = from.map_or_else(
            || Bytes::from_static(&[1]),
            |last| [&rows::entry_key(last)[..], &[0]].concat().into(),
        );
        let rows = self.table.scan(TableName::Meta, &self.key, &from, Some(&[2]), false, limit)?;
        let entry = |(sort_key, row): (Bytes, Bytes)| {
            let entry = self.decode(&row)?;
            Ok((rows::key_of(&sort_key).unwrap_or_default(), entry.has, entry.at))
        };
        rows.into_iter().map(entry).collect()
    }

    /// What each hot key has, all of one place.
    pub(crate) fn hot_entries(&self) -> Result<Vec<HotEntry>, StoreError> {
        let entry = |key: &Bytes| {
            let entry = self.entry(key)?;
            let at = entry.as_ref().map_or(Seq::ZERO, |entry| entry.at);
            Ok(HotEntry { key: key.clone(), has: entry.map(|entry| entry.has), at })
        };
        self.hot.iter().map(entry).collect()
    }

    /// Looks which keys should be hot; they are from the next range on.
    pub(crate) fn look(&mut self) {
        let (least, max) = (self.options.hot_least, self.options.hot_keys_max);
        self.next_hot = decide(&self.hot, &self.sketch, least, max);
    }

    pub(crate) fn hot_next(&self, stands: Position) -> HotNext {
        let place = &self.place;
        if stands.incarnation != place.position.incarnation {
            return HotNext::Recreated { incarnation: place.position.incarnation };
        }
        if stands.seq < self.ring.after() || !self.is_whole() {
            let oldest = self.ring.after().next();
            return HotNext::Lagged { next: stands.seq.next(), oldest };
        }
        let known = stands.seq <= place.position.seq && stands.seq != Seq::ZERO;
        if known && place.epoch_of(stands.seq).is_some_and(|epoch| epoch != stands.epoch) {
            return HotNext::Diverged;
        }
        self.ring.next(stands.seq).map_or(HotNext::Wait, HotNext::Frame)
    }

    /// Everything goes, and what comes is of `position`: a snapshot's place, or
    /// before the first record. Nothing is whole before [`Part::loaded`].
    pub(crate) fn wipe(&mut self, position: Position) -> Result<(), StoreError> {
        let hot_version = self.place.hot_version;
        let mut place = Place { loading: true, position, hot_version, ..Place::default() };
        if position.seq != Seq::ZERO {
            place.saw_epoch(position.epoch, Seq::ZERO);
        }
        self.keep(place)?;
        loop {
            let rows = self.table.scan(TableName::Meta, &self.key, &[1], None, false, WIPE_ROWS)?;
            if rows.is_empty() {
                break;
            }
            let gone = rows.into_iter().map(|(sort_key, _)| Op::Delete { sort_key });
            self.commit(gone.collect())?;
        }
        self.hot.clear();
        self.next_hot = None;
        self.ring = Ring::new(position.seq, self.options.ring_bytes);
        Ok(())
    }

    /// Some entries of a snapshot.
    pub(crate) fn load(&self, entries: Vec<Whole>) -> Result<(), StoreError> {
        let put = |whole: Whole| Op::Put {
            sort_key: rows::entry_key(&whole.key),
            value: Entry { has: whole.has, at: whole.at }.encode(),
        };
        self.commit(entries.into_iter().filter(|e| self.holds(&e.key)).map(put).collect())
    }

    /// All entries are there; with what comes up to `whole_from`, it is whole.
    pub(crate) fn loaded(&mut self, whole_from: Seq) -> Result<(), StoreError> {
        let place = Place { loading: false, whole_from, ..self.place.clone() };
        self.keep(place)
    }

    fn keep(&mut self, place: Place) -> Result<(), StoreError> {
        let value = place.encode();
        self.commit(vec![Op::Put { sort_key: Bytes::from_static(rows::PLACE), value }])?;
        self.table.sync()?;
        self.place = place;
        Ok(())
    }

    /// The epoch of where it stands, for the fills.
    pub(crate) fn epoch(&self) -> Epoch {
        self.place.position.epoch
    }
}

/// Rows that a range changes: as they become, and the number of what was in them.
type Changed = BTreeMap<Bytes, (Option<Entry>, Seq)>;

/// Hot sets that are kept: what followed from them can be told again.
const HOT_SETS_KEPT: u64 = 100;
/// Rows that are removed at once.
const WIPE_ROWS: usize = 10_000;
