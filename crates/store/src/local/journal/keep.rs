//! What changes which streams and bytes there are: making, removing, fencing,
//! trimming, erasing, copying.
//!
//! Each is decided by one replacement of the manifest: what is to go goes
//! after it, what is to be there is synced before it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tideline_types::{Epoch, Seq, SeqRange, StreamId};

use super::Shared;
use super::fill::{segment_bytes, sync_up};
use super::manifest::{Manifest, SegmentMeta, StreamMeta, segment_path, stream_dir};
use super::segment::Span;
use super::state::Stream;
use super::turn::{failed, hard};
use crate::disk::{Disk, DiskFile};
use tideline_record::batch::Choose;

use crate::{AppendError, Bounds, EraseReport, StoreError, SyncWatcher, epochs};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

impl Shared {
    pub(super) fn create(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        let mut manifest = self.keeping();
        self.state().writable()?;
        let mut next = manifest.clone();
        for &id in streams {
            next.streams.entry(id).or_insert_with(StreamMeta::new);
        }
        if next != *manifest {
            self.put(&mut manifest, next)?;
        }
        let mut state = self.state();
        for id in streams {
            let found = || Stream::found(&manifest.streams[id]);
            state.streams.entry(*id).or_insert_with(found);
        }
        Ok(())
    }

    pub(super) fn remove(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        let mut manifest = self.keeping();
        self.state().writable()?;
        let mut next = manifest.clone();
        let gone: Vec<_> =
            streams.iter().filter_map(|id| Some((*id, next.streams.remove(id)?))).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.put(&mut manifest, next)?;
        let mut state = self.state();
        for (id, _) in &gone {
            state.streams.remove(id);
        }
        let removed: BTreeSet<_> = gone.iter().map(|(id, _)| *id).collect();
        state.waiting.retain(|(id, _)| !removed.contains(id));
        state.waiting_bytes = state.waiting.iter().map(|(_, b)| b.len() as u64).sum();
        state.segment_bytes = segment_bytes(&manifest);
        drop(state);
        let of_stream = |(id, meta): &(StreamId, StreamMeta)| -> Vec<PathBuf> {
            meta.segments.iter().map(|s| segment_path(&self.dir, *id, s)).collect()
        };
        self.discard(gone.iter().flat_map(of_stream).collect())?;
        for (id, _) in &gone {
            let dir = stream_dir(&self.dir, *id);
            // They are empty, unless a copy still reads them.
            let _ = self.disk.remove_dir(&dir);
            let _ = dir.parent().map(|above| self.disk.remove_dir(above));
        }
        // What the streams left in the journal goes with its files.
        self.fill_all(&mut manifest)
    }

    pub(super) fn fence(
        &self,
        id: StreamId,
        watcher: Arc<dyn SyncWatcher>,
    ) -> Result<Bounds, AppendError> {
        let mut manifest = self.keeping();
        let mut state = self.state();
        state.writable()?;
        state.streams.get_mut(&id).ok_or(AppendError::NoStream(id))?.owner = None;
        let settled = state.settled;
        loop {
            let pending = state.streams.get(&id).is_some_and(|s| s.pending > 0);
            if state.failed.is_some() || !pending && state.told >= settled {
                break;
            }
            state = self.settle(state);
        }
        state.writable()?;
        let synced = state.streams.get(&id).ok_or(AppendError::NoStream(id))?.bounds.synced;
        drop(state);

        let mut next = manifest.clone();
        let meta = next.streams.get_mut(&id).ok_or(AppendError::NoStream(id))?;
        let epoch = Epoch(meta.epoch().0 + 1);
        epochs::begin(&mut meta.epochs, epoch, synced.next());
        let starts = meta.epochs.clone();
        self.put(&mut manifest, next)?;

        let mut state = self.state();
        let stream = state.streams.get_mut(&id).ok_or(AppendError::NoStream(id))?;
        stream.owner = Some(watcher);
        stream.epochs = starts;
        stream.bounds.epoch = epoch;
        stream.bounds.next = synced.next();
        Ok(stream.bounds)
    }

    pub(super) fn raise_epochs(&self, by: u32) -> Result<(), StoreError> {
        let mut manifest = self.keeping();
        self.state().writable()?;
        let mut next = manifest.clone();
        for meta in next.streams.values_mut() {
            let raised = meta.epoch().0.checked_add(by).ok_or_else(|| StoreError::Io {
                what: "raise epochs".into(),
                cause: format!("{by} above {} there is none", meta.epoch()),
            })?;
            let first = meta.filled().next();
            epochs::begin(&mut meta.epochs, Epoch(raised), first);
        }
        self.put(&mut manifest, next)?;
        let mut state = self.state();
        for (id, meta) in &manifest.streams {
            if let Some(stream) = state.streams.get_mut(id) {
                stream.owner = None;
                stream.epochs = meta.epochs.clone();
                stream.bounds.epoch = meta.epoch();
            }
        }
        Ok(())
    }

    pub(super) fn trim(&self, id: StreamId, through: Seq) -> Result<Seq, StoreError> {
        let mut manifest = self.keeping();
        let state = self.state();
        state.writable()?;
        let Some(stream) = state.streams.get(&id) else { return Ok(Seq::ZERO) };
        let mut start = stream.bounds.start;
        let drop_segments = stream.segments.partition_point(|s| s.meta.through <= through);
        if let Some(last) = stream.segments[..drop_segments].last() {
            start = start.max(last.meta.through.next());
        }
        if drop_segments == stream.segments.len() {
            let freed = stream.frames.partition_point(|f| f.last() <= through);
            start = freed.checked_sub(1).map_or(start, |n| stream.frames[n].last().next());
        }
        let before = stream.bounds.start;
        drop(state);
        if start == before {
            return Ok(start);
        }
        let mut next = manifest.clone();
        let Some(meta) = next.streams.get_mut(&id) else { return Ok(start) };
        meta.start = start;
        let freed: Vec<SegmentMeta> = meta.segments.drain(..drop_segments).collect();
        epochs::forget(&mut meta.epochs, start);
        let starts = meta.epochs.clone();
        self.put(&mut manifest, next)?;

        let mut state = self.state();
        if let Some(stream) = state.streams.get_mut(&id) {
            stream.bounds.start = start;
            stream.epochs = starts;
            stream.segments.drain(..drop_segments);
            while stream.frames.front().is_some_and(|f| f.last() < start) {
                stream.frames.pop_front();
            }
        }
        state.segment_bytes = segment_bytes(&manifest);
        drop(state);
        self.discard(freed.iter().map(|s| segment_path(&self.dir, id, s)).collect())?;
        Ok(start)
    }

    pub(super) fn erase(
        &self,
        id: StreamId,
        range: SeqRange,
        choose: &mut Choose<'_>,
    ) -> Result<EraseReport, StoreError> {
        let mut report = EraseReport::default();
        let mut manifest = self.keeping();
        let mut state = self.state();
        // A copy in the making may hold files that are to go.
        while state.copying > 0 {
            state = self.wait(&self.settled, state);
        }
        state.writable()?;
        let Some(stream) = state.streams.get(&id) else { return Ok(report) };
        let in_journal = state.files.keys().next().is_some_and(|n| stream.newest_file >= *n);
        drop(state);
        if in_journal {
            self.fill_all(&mut manifest)?;
        }
        let mut next = manifest.clone();
        let mut old = Vec::new();
        let segments = next.streams.get_mut(&id).map(|s| &mut s.segments);
        for meta in segments.into_iter().flatten() {
            // Whoever closes the log waits for one file at most. What was
            // written anew so far is void, and begun again after a start.
            self.state().writable()?;
            if meta.through <= range.after || meta.first > range.through {
                continue;
            }
            let rewritten = self.erase_in(id, meta, range, choose, &mut report)?;
            if let Some(after) = rewritten {
                old.push(segment_path(&self.dir, id, meta));
                *meta = after;
            }
        }
        if old.is_empty() {
            return Ok(report);
        }
        sync_up(&*self.disk, &self.dir, id)
            .map_err(|e| self.fail(hard("syncing a stream's folder", &e)))?;
        self.put(&mut manifest, next)?;
        let mut state = self.state();
        if let Some(stream) = state.streams.get_mut(&id) {
            for (segment, meta) in stream.segments.iter_mut().zip(&manifest.streams[&id].segments) {
                if segment.meta != *meta {
                    *segment = super::state::Segment::found(meta.clone());
                }
            }
        }
        state.segment_bytes = segment_bytes(&manifest);
        drop(state);
        self.discard(old)?;
        self.disk
            .sync_dir(&stream_dir(&self.dir, id))
            .map_err(|e| self.fail(hard("syncing a stream's folder", &e)))?;
        Ok(report)
    }

    /// Writes a segment anew without what is chosen, under a name of its own.
    /// `None` if nothing is.
    fn erase_in(
        &self,
        id: StreamId,
        meta: &SegmentMeta,
        range: SeqRange,
        choose: &mut Choose<'_>,
        report: &mut EraseReport,
    ) -> Result<Option<SegmentMeta>, StoreError> {
        let path = segment_path(&self.dir, id, meta);
        let file = open(&*self.disk, &path)?;
        let mut changed: Vec<(u64, u64, Bytes)> = Vec::new();
        span(&*file, &path, id, meta).verify(&mut |batch, offset, bytes| {
            let in_range = batch.records().filter(|r| range.contains(r.seq));
            report.seen += in_range.count() as u64;
            let after = batch.erase(&mut report.erased, &mut |seq, key, value| {
                range.contains(seq) && choose(seq, key, value)
            });
            changed.extend(after.map(|after| (offset, bytes.len() as u64, after)));
            Ok(())
        })?;
        if changed.is_empty() {
            return Ok(None);
        }
        let mut after = SegmentMeta { rewrites: meta.rewrites + 1, ..meta.clone() };
        let target_path = segment_path(&self.dir, id, &after);
        let write = || -> std::io::Result<u64> {
            let target = self.disk.open(&target_path, true)?;
            target.set_len(0)?;
            let (mut from, mut to) = (0, 0);
            for (offset, bytes, batch) in &changed {
                to = copy(&*file, from, *offset, &*target, to)?;
                target.write_at(to, batch)?;
                to += batch.len() as u64;
                from = offset + bytes;
            }
            let end = copy(&*file, from, meta.bytes, &*target, to)?;
            target.sync()?;
            Ok(end)
        };
        match write() {
            Ok(end) => after.bytes = end,
            Err(error) => {
                let _ = self.disk.remove_file(&target_path);
                return Err(self.fail(failed("rewriting a segment", &error)));
            }
        }
        Ok(Some(after))
    }

    /// Removes files that the manifest no longer names, or leaves it to the
    /// end of a copy that may be reading them.
    fn discard(&self, paths: Vec<PathBuf>) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.copying > 0 {
            state.doomed.extend(paths);
            return Ok(());
        }
        drop(state);
        for path in paths {
            self.disk.remove_file(&path).map_err(|e| self.fail(hard("removing a segment", &e)))?;
        }
        Ok(())
    }

    pub(super) fn backup(&self, into: &Path) -> Result<(), StoreError> {
        let mut manifest = self.keeping();
        self.fill_all(&mut manifest)?;
        let mut copied = manifest.clone();
        self.state().copying += 1;
        drop(manifest);
        let outcome = self.copy_all(&mut copied, into);
        let mut state = self.state();
        state.copying -= 1;
        let doomed =
            if state.copying == 0 { std::mem::take(&mut state.doomed) } else { Vec::new() };
        drop(state);
        self.settled.notify_all();
        outcome.and(self.discard(doomed))
    }

    fn copy_all(&self, manifest: &mut Manifest, into: &Path) -> Result<(), StoreError> {
        let io = |e: std::io::Error| StoreError::io(format!("copy to {}", into.display()), &e);
        let disk = &*self.disk;
        disk.create_dir_all(&into.join("journal")).map_err(io)?;
        for (id, stream) in &manifest.streams {
            if stream.segments.is_empty() {
                continue;
            }
            disk.create_dir_all(&stream_dir(into, *id)).map_err(io)?;
            for meta in &stream.segments {
                let path = segment_path(&self.dir, *id, meta);
                let file = open(disk, &path)?;
                span(&*file, &path, *id, meta).verify(&mut |_, _, _| Ok(()))?;
                let target = disk.open(&segment_path(into, *id, meta), true).map_err(io)?;
                copy(&*file, 0, meta.bytes, &*target, 0).map_err(io)?;
                target.sync().map_err(io)?;
            }
            sync_up(disk, into, *id).map_err(io)?;
        }
        manifest.store(disk, into).map_err(io)?;
        Ok(())
    }
}

fn open(disk: &dyn Disk, path: &Path) -> Result<Arc<dyn DiskFile>, StoreError> {
    disk.open(path, false).map_err(|e| StoreError::io(format!("open {}", path.display()), &e))
}

pub(super) fn span<'a>(
    file: &'a dyn DiskFile,
    path: &'a Path,
    stream: StreamId,
    meta: &SegmentMeta,
) -> Span<'a> {
    Span { file, path, stream, first: meta.first, offset: 0, end: meta.bytes }
}

/// Copies `from..until` of one file to `to` in another; answers where it ends.
fn copy(
    file: &dyn DiskFile,
    mut from: u64,
    until: u64,
    target: &dyn DiskFile,
    mut to: u64,
) -> std::io::Result<u64> {
    let mut buffer = vec![0; COPY_BYTES.min((until - from) as usize)];
    while from < until {
        let piece = buffer.len().min((until - from) as usize);
        file.read_at(from, &mut buffer[..piece])?;
        target.write_at(to, &buffer[..piece])?;
        from += piece as u64;
        to += piece as u64;
    }
    Ok(to)
}
