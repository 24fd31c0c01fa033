//! A journal in memory: the laws of [`Journal`] with nothing between.
//!
//! A batch is "synced" when its turn has come: on a thread of the journal's
//! own, or when a test calls [`MemJournal::turn`]. Nothing survives a drop.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use tideline_record::batch::{BatchRef, Choose, Header};
use tideline_types::limits::LOG_WAITING_BYTES_MAX;
use tideline_types::{Epoch, Seq, SeqRange, StreamId};

use crate::epochs;
use crate::{
    AppendError, Bounds, EpochStart, EraseReport, Extent, Journal, ReadError, ReadLimits,
    StoreError, SyncWatcher, Usage,
};

/// A journal in memory.
pub struct MemJournal {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Held while watchers are told: a fence waits for it, so that the former
    /// owner hears nothing after it.
    telling: Mutex<()>,
    state: Mutex<State>,
    /// Something waits, or the journal stops.
    wake: Condvar,
}

#[derive(Default)]
struct State {
    streams: BTreeMap<StreamId, Stream>,
    waiting: Vec<(StreamId, Bytes)>,
    waiting_bytes: u64,
    fault: Option<StoreError>,
    failed: Option<StoreError>,
    closed: bool,
    syncs: u64,
    appended_bytes: u64,
}

#[derive(Default)]
struct Stream {
    bounds: Bounds,
    epochs: Vec<EpochStart>,
    owner: Option<Arc<dyn SyncWatcher>>,
    batches: VecDeque<Bytes>,
}

impl MemJournal {
    /// A journal that syncs on a thread of its own, at once.
    pub fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let on_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("mem-journal".into())
            .spawn(move || on_thread.run())
            .ok();
        Self { shared, thread }
    }

    /// A journal that syncs when [`MemJournal::turn`] is called, and not else.
    pub fn manual() -> Self {
        Self { shared: Arc::new(Shared::default()), thread: None }
    }

    /// Syncs what waits and tells the watchers. True if anything waited.
    pub fn turn(&self) -> bool {
        self.shared.turn()
    }

    /// What the coming turns meet: `NoSpace` drops what waits, for as long as
    /// it stays set; anything else makes the journal read-only for good.
    pub fn set_fault(&self, fault: Option<StoreError>) {
        self.shared.state().fault = fault;
    }
}

impl Default for MemJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for MemJournal {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

enum News {
    Synced(Seq),
    Dropped(Seq, StoreError),
    Failed(StoreError),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let mut state = self.state();
            while state.waiting.is_empty() && !state.closed {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.waiting.is_empty() {
                return;
            }
            drop(state);
            self.turn();
        }
    }

    fn turn(&self) -> bool {
        let _telling = self.telling();
        let mut state = self.state();
        let any = !state.waiting.is_empty();
        let news = state.settle();
        drop(state);
        tell(news);
        any
    }
}

type Told = (StreamId, Arc<dyn SyncWatcher>, News);

fn tell(news: Vec<Told>) {
    for (stream, watcher, news) in news {
        match news {
            News::Synced(through) => watcher.synced(stream, through),
            News::Dropped(from, error) => watcher.dropped(stream, from, &error),
            News::Failed(error) => watcher.failed(stream, &error),
        }
    }
}

impl State {
    /// Moves what waits to where it is read, or drops it, and says whom to tell.
    fn settle(&mut self) -> Vec<Told> {
        if self.waiting.is_empty() || self.failed.is_some() {
            return Vec::new();
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        self.syncs += 1;
        let fault = self.fault.clone();
        if let Some(error) = fault.clone().filter(|e| !matches!(e, StoreError::NoSpace { .. })) {
            let error =
                StoreError::Failed { what: "sync of memory".into(), cause: error.to_string() };
            self.failed = Some(error.clone());
            return self.owners().map(|(s, w)| (s, w, News::Failed(error.clone()))).collect();
        }
        let mut touched = BTreeMap::new();
        for (id, batch) in waiting {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            touched.insert(id, ());
            if fault.is_some() {
                stream.bounds.next = stream.bounds.synced.next();
            } else if let Ok(header) = Header::read(&batch) {
                stream.bounds.synced = header.last();
                stream.batches.push_back(batch);
            }
        }
        let mut news = Vec::new();
        for (id, watcher) in self.owners().filter(|(id, _)| touched.contains_key(id)) {
            let synced = self.streams[&id].bounds.synced;
            news.push((
                id,
                watcher,
                match &fault {
                    Some(error) => News::Dropped(synced.next(), error.clone()),
                    None => News::Synced(synced),
                },
            ));
        }
        news
    }

    fn fence(
        &mut self,
        stream: StreamId,
        watcher: Arc<dyn SyncWatcher>,
    ) -> Result<Bounds, AppendError> {
        self.writable()?;
        let found = self.streams.get_mut(&stream).ok_or(AppendError::NoStream(stream))?;
        found.owner = Some(watcher);
        found.bounds.epoch = Epoch(found.bounds.epoch.0 + 1);
        found.bounds.next = found.bounds.synced.next();
        epochs::begin(&mut found.epochs, found.bounds.epoch, found.bounds.next);
        Ok(found.bounds)
    }

    fn owners(&self) -> impl Iterator<Item = (StreamId, Arc<dyn SyncWatcher>)> {
        self.streams.iter().filter_map(|(id, s)| Some((*id, s.owner.clone()?)))
    }

    fn writable(&self) -> Result<(), StoreError> {
        if self.closed {
            return Err(closed());
        }
        self.failed.clone().map_or(Ok(()), Err)
    }
}

fn closed() -> StoreError {
    StoreError::Io { what: "append".into(), cause: "the journal is closed".into() }
}

impl Journal for MemJournal {
    fn create(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        state.writable()?;
        for &id in streams {
            state.streams.entry(id).or_insert_with(|| Stream {
                bounds: Bounds { start: Seq(1), next: Seq(1), ..Bounds::default() },
                ..Stream::default()
            });
        }
        Ok(())
    }

    fn remove(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        state.streams.retain(|id, _| !streams.contains(id));
        state.waiting.retain(|(id, _)| !streams.contains(id));
        state.waiting_bytes = state.waiting.iter().map(|(_, b)| b.len() as u64).sum();
        Ok(())
    }

    fn streams(&self) -> Vec<StreamId> {
        self.shared.state().streams.keys().copied().collect()
    }

    fn bounds(&self, stream: StreamId) -> Option<Bounds> {
        self.shared.state().streams.get(&stream).map(|s| s.bounds)
    }

    fn epochs(&self, stream: StreamId) -> Vec<EpochStart> {
        self.shared.state().streams.get(&stream).map_or_else(Vec::new, |s| s.epochs.clone())
    }

    fn fence(
        &self,
        stream: StreamId,
        watcher: Arc<dyn SyncWatcher>,
    ) -> Result<Bounds, AppendError> {
        let _telling = self.shared.telling();
        let mut state = self.shared.state();
        state.writable()?;
        match state.streams.get_mut(&stream) {
            None => return Err(AppendError::NoStream(stream)),
            Some(found) => found.owner = None,
        }
        let others = state.settle();
        let fenced = state.fence(stream, watcher);
        drop(state);
        tell(others);
        fenced
    }

    fn append(&self, stream: StreamId, batch: Bytes) -> Result<(), AppendError> {
        let mut state = self.shared.state();
        state.writable()?;
        let len = batch.len() as u64;
        if state.waiting_bytes + len > LOG_WAITING_BYTES_MAX {
            return Err(AppendError::Full { waiting_bytes: state.waiting_bytes });
        }
        let found = state.streams.get_mut(&stream).ok_or(AppendError::NoStream(stream))?;
        let owned = found.owner.is_some();
        let last = epochs::admit(stream, &found.bounds, owned, &batch)?;
        found.bounds.next = last.next();
        state.waiting_bytes += len;
        state.appended_bytes += len;
        state.waiting.push((stream, batch));
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    fn read(
        &self,
        stream: StreamId,
        from: Seq,
        limits: ReadLimits,
    ) -> Result<Vec<Bytes>, ReadError> {
        let state = self.shared.state();
        let found = state.streams.get(&stream).ok_or(ReadError::NoStream(stream))?;
        if from < found.bounds.start {
            return Err(ReadError::Truncated { start: found.bounds.start });
        }
        let (mut out, mut records, mut bytes) = (Vec::new(), 0, 0);
        let skip = found.batches.partition_point(|b| last_of(b) < from);
        for batch in found.batches.range(skip..) {
            records += Header::read(batch).map_or(0, |h| h.count as usize);
            bytes += batch.len();
            if !out.is_empty() && (records > limits.records_max || bytes > limits.bytes_max) {
                break;
            }
            out.push(batch.clone());
        }
        Ok(out)
    }

    fn extents(&self, stream: StreamId) -> Vec<Extent> {
        let state = self.shared.state();
        let batches = state.streams.get(&stream).map(|s| &s.batches);
        let extent = |b: &Bytes| {
            let header = Header::read(b).ok()?;
            Some(Extent { range: header.range(), bytes: b.len() as u64, newest: header.newest })
        };
        batches.into_iter().flatten().filter_map(extent).collect()
    }

    fn trim(&self, stream: StreamId, through: Seq) -> Result<Seq, StoreError> {
        let mut state = self.shared.state();
        state.writable()?;
        let Some(found) = state.streams.get_mut(&stream) else { return Ok(Seq::ZERO) };
        while found.batches.front().is_some_and(|b| last_of(b) <= through) {
            if let Some(batch) = found.batches.pop_front() {
                found.bounds.start = last_of(&batch).next();
            }
        }
        epochs::forget(&mut found.epochs, found.bounds.start);
        Ok(found.bounds.start)
    }

    fn erase(
        &self,
        stream: StreamId,
        range: SeqRange,
        choose: &mut Choose<'_>,
    ) -> Result<EraseReport, StoreError> {
        let mut report = EraseReport::default();
        let mut state = self.shared.state();
        let Some(found) = state.streams.get_mut(&stream) else { return Ok(report) };
        for bytes in &mut found.batches {
            let Ok(batch) = BatchRef::parse(bytes) else { continue };
            report.seen += batch.records().filter(|r| range.contains(r.seq)).count() as u64;
            let after = batch.erase(&mut report.erased, &mut |seq, key, value| {
                range.contains(seq) && choose(seq, key, value)
            });
            if let Some(after) = after {
                *bytes = after;
            }
        }
        Ok(report)
    }

    fn backup(&self, _into: &Path) -> Result<(), StoreError> {
        Err(StoreError::Io { what: "backup".into(), cause: "memory keeps no backups".into() })
    }

    fn usage(&self) -> Usage {
        let state = self.shared.state();
        let batches = state.streams.values().flat_map(|s| &s.batches);
        Usage {
            total_bytes: batches.map(|b| b.len() as u64).sum(),
            unfilled_bytes: 0,
            syncs: state.syncs,
            appended_bytes: state.appended_bytes,
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        self.shared.state().failed.clone().map_or(Ok(()), Err)
    }

    fn close(&self) -> Result<(), StoreError> {
        self.shared.turn();
        self.shared.state().closed = true;
        self.shared.wake.notify_all();
        self.health()
    }
}

fn last_of(batch: &[u8]) -> Seq {
    Header::peek(batch).map_or(Seq::ZERO, |h| h.last())
}
