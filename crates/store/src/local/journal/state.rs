//! What the journal knows while it runs, behind one lock.
//!
//! Nothing slow happens under it: a file is written, read or synced only when
//! it is not held. Order of locks: [`super::Shared::keeping`], then this.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tideline_types::{Millis, Seq, SeqRange, StreamId};

use super::manifest::{SegmentMeta, StreamMeta};
use crate::disk::DiskFile;
use crate::{Bounds, EpochStart, Extent, StoreError, SyncWatcher};

/// Bytes between two entries of a segment's index.
const INDEX_BYTES: u64 = 64 << 10;

/// A batch that is in a journal file and not yet in a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) first: Seq,
    pub(super) newest: Millis,
    pub(super) file: u64,
    pub(super) offset: u32,
    pub(super) bytes: u32,
    pub(super) count: u32,
}

impl Frame {
    pub(super) fn last(&self) -> Seq {
        Seq(self.first.0 + u64::from(self.count) - 1)
    }
}

/// Places in a segment where batches begin: (first number, offset), ascending.
pub(super) type Index = Vec<(Seq, u64)>;

/// A segment in use.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) meta: SegmentMeta,
    /// Known from the start for what was appended since the opening, and from
    /// the first read for what was found then.
    pub(super) index: Option<Index>,
    /// Where the last read ended, so that the next one begins there.
    pub(super) hint: (Seq, u64),
}

impl Segment {
    pub(super) fn found(meta: SegmentMeta) -> Self {
        let hint = (meta.first, 0);
        Self { meta, index: None, hint }
    }

    pub(super) fn made(meta: SegmentMeta) -> Self {
        Self { index: Some(Vec::new()), ..Self::found(meta) }
    }

    /// Where to begin to look for `seq`; none if that takes an index that is
    /// not there yet.
    pub(super) fn near(&self, seq: Seq) -> Option<(Seq, u64)> {
        if self.hint.0 == seq {
            return Some(self.hint);
        }
        if self.meta.first == seq {
            return Some((seq, 0));
        }
        let index = self.index.as_ref()?;
        let after = index.partition_point(|(first, _)| *first <= seq);
        let known = after.checked_sub(1).map_or((self.meta.first, 0), |n| index[n]);
        let hint = Some(self.hint).filter(|hint| hint.0 <= seq);
        Some(hint.map_or(known, |hint| hint.max(known)))
    }
}

/// Adds a batch to an index that is kept as sparse as it may be.
pub(super) fn note(index: &mut Index, first: Seq, offset: u64) {
    if offset >= index.last().map_or(0, |(_, at)| *at) + INDEX_BYTES {
        index.push((first, offset));
    }
}

/// A stream in use. Always: every number of `start..=synced` is in exactly one
/// of `segments` and `frames`, the segments first.
pub(super) struct Stream {
    pub(super) bounds: Bounds,
    pub(super) epochs: Vec<EpochStart>,
    /// Who is told; none before the first fence of this opening.
    pub(super) owner: Option<Arc<dyn SyncWatcher>>,
    /// Batches that were appended and are neither synced nor dropped.
    pub(super) pending: u64,
    pub(super) segments: Vec<Segment>,
    pub(super) frames: VecDeque<Frame>,
    /// The newest journal file that holds bytes of this stream, trimmed or not.
    pub(super) newest_file: u64,
    /// The last turn that wrote to it.
    pub(super) turn: u64,
}

impl Stream {
    /// A stream whose records are all in segments.
    pub(super) fn found(meta: &StreamMeta) -> Self {
        let synced = meta.filled();
        Self {
            bounds: Bounds { epoch: meta.epoch(), start: meta.start, synced, next: synced.next() },
            epochs: meta.epochs.clone(),
            owner: None,
            pending: 0,
            segments: meta.segments.iter().cloned().map(Segment::found).collect(),
            frames: VecDeque::new(),
            newest_file: 0,
            turn: 0,
        }
    }

    pub(super) fn extents(&self) -> Vec<Extent> {
        let of_segment = |s: &Segment| Extent {
            range: SeqRange::new(s.meta.first.prev(), s.meta.through),
            bytes: s.meta.bytes,
            newest: s.meta.newest,
        };
        let mut extents: Vec<_> = self.segments.iter().map(of_segment).collect();
        if let (Some(first), Some(last)) = (self.frames.front(), self.frames.back()) {
            extents.push(Extent {
                range: SeqRange::new(first.first.prev(), last.last()),
                bytes: self.frames.iter().map(|f| u64::from(f.bytes)).sum(),
                newest: self.frames.iter().map(|f| f.newest).max().unwrap_or_default(),
            });
        }
        extents
    }
}

/// A journal file in use.
#[derive(Clone)]
pub(super) struct JournalFile {
    pub(super) file: Arc<dyn DiskFile>,
    /// Bytes of whole rounds.
    pub(super) bytes: u64,
    /// Its length: zeroes follow the rounds.
    pub(super) len: u64,
}

/// Everything behind the lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) streams: HashMap<StreamId, Stream>,
    /// Appended and not yet taken by a turn, in order.
    pub(super) waiting: Vec<(StreamId, Bytes)>,
    pub(super) waiting_bytes: u64,
    /// Journal files by number; all but `current` are complete.
    pub(super) files: BTreeMap<u64, JournalFile>,
    /// The file that the next round goes to, if it exists.
    pub(super) current: Option<u64>,
    pub(super) next_file: u64,
    pub(super) next_round: u64,
    /// A turn is writing.
    pub(super) writing: bool,
    /// The current file is to be completed after this turn.
    pub(super) rotate: bool,
    /// A round was written that no later one proves.
    pub(super) unproven: bool,
    /// Turns that have settled, and turns whose watchers have been told.
    pub(super) settled: u64,
    pub(super) told: u64,
    pub(super) failed: Option<StoreError>,
    pub(super) failure_told: bool,
    /// No more appends.
    pub(super) closed: bool,
    /// Threads are to end.
    pub(super) stopping: bool,
    /// The writer waits on its condition until so many batches wait; with
    /// `usize::MAX` it does not.
    pub(super) writer_wants: usize,
    /// Batches that the last turn took, and that came in until all were told.
    pub(super) crowd: usize,
    /// How long the last turn wrote and synced.
    pub(super) sync_took: Duration,
    pub(super) segment_bytes: u64,
    pub(super) manifest_bytes: u64,
    /// Copies that read segments now: no file is removed while there are any.
    pub(super) copying: u32,
    /// Files whose removal waits for that.
    pub(super) doomed: Vec<std::path::PathBuf>,
    pub(super) syncs: u64,
    pub(super) appended_bytes: u64,
}

impl State {
    pub(super) fn journal_bytes(&self) -> u64 {
        self.files.values().map(|f| f.bytes).sum()
    }

    /// After the rounds of journal files.
    pub(super) fn zero_bytes(&self) -> u64 {
        self.files.values().map(|f| f.len - f.bytes).sum()
    }

    /// The first journal file that is complete.
    pub(super) fn complete(&self) -> Option<u64> {
        self.files.keys().copied().find(|n| Some(*n) != self.current)
    }

    pub(super) fn writable(&self) -> Result<(), StoreError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.closed {
            let cause = "the log is closed".into();
            return Err(StoreError::Io { what: "append".into(), cause });
        }
        Ok(())
    }
}
