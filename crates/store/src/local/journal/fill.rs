//! Filling: copies what a complete journal file holds to each stream's own
//! segment, in bulk, and lets the file go.
//!
//! ```text
//! read file │ append to segments, sync each │ manifest │ remove file, sync
//! ```
//!
//! Until the manifest says so, what was appended to a segment does not exist:
//! a stop before it leaves the batches in the journal file, and one after it
//! leaves a file that is void. No batch is lost or doubled.

use std::time::Duration;

use tideline_types::StreamId;

use super::Shared;
use super::manifest::{Manifest, SegmentMeta, StreamMeta, journal_path, segment_path, stream_dir};
use super::state::{Frame, Index, Segment, note};
use super::turn::{failed, hard};
use crate::StoreError;
use crate::disk::Disk;

/// How long the filler waits for space before it tries again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;
/// Reading this much more takes no longer than reading once more.
const GAP_BYTES: usize = 4 << 10;

/// One stream's batches on their way into a segment.
pub(super) struct Share {
    pub(super) stream: StreamId,
    /// In order.
    pub(super) frames: Vec<Frame>,
}

/// Where a share went.
pub(super) struct Filled {
    stream: StreamId,
    meta: SegmentMeta,
    /// Entries for the segment's index; the segment is new if `made`.
    index: Index,
    made: bool,
}

impl Shared {
    /// The filler's thread.
    pub(super) fn fill_until_stopped(&self) {
        loop {
            let mut state = self.state();
            while state.complete().is_none() || state.failed.is_some() {
                if state.stopping {
                    return;
                }
                state = self.wait(&self.filler, state);
            }
            let stopping = state.stopping;
            drop(state);
            if stopping {
                return;
            }
            if self.fill_complete(&mut self.keeping()).is_err() {
                let state = self.state();
                if state.stopping {
                    return;
                }
                drop(self.wait_for(&self.filler, state, RETRY_AFTER));
            }
        }
    }

    /// Completes the current file, and fills every complete one.
    pub(super) fn fill_all(&self, manifest: &mut Manifest) -> Result<(), StoreError> {
        self.rotate()?;
        self.fill_complete(manifest)
    }

    /// Completes the current file: the writer does it after its turn, if it is
    /// at one.
    fn rotate(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        let current = state.current;
        while state.writing && state.current == current && state.failed.is_none() {
            state.rotate = true;
            state = self.settle(state);
        }
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        if state.current == current {
            state.current = None;
        }
        state.rotate = false;
        Ok(())
    }

    /// Fills every file that is complete when this begins.
    fn fill_complete(&self, manifest: &mut Manifest) -> Result<(), StoreError> {
        let state = self.state();
        let current = state.current;
        let complete: Vec<_> =
            state.files.keys().copied().filter(|n| Some(*n) != current).collect();
        drop(state);
        for number in complete {
            if let Some(error) = &self.state().failed {
                return Err(error.clone());
            }
            self.fill_file(manifest, number)?;
        }
        Ok(())
    }

    fn fill_file(&self, manifest: &mut Manifest, number: u64) -> Result<(), StoreError> {
        let state = self.state();
        let Some(file) = state.files.get(&number) else { return Ok(()) };
        let file = file.file.clone();
        let mut shares = Vec::new();
        for (id, stream) in &state.streams {
            let of_file = stream.frames.iter().take_while(|f| f.file == number);
            let frames: Vec<_> = of_file.copied().collect();
            if !frames.is_empty() {
                shares.push(Share { stream: *id, frames });
            }
        }
        let next_round = state.next_round;
        drop(state);
        shares.sort_by_key(|share| share.stream);

        let mut next = manifest.clone();
        let limit = self.file_bytes;
        let read = |at, bytes: &mut [u8]| {
            file.read_at(at, bytes).map_err(|e| hard("reading a journal file", &e))
        };
        let filled = fill(&*self.disk, &self.dir, &mut next, &read, &shares, limit);
        let filled = filled.map_err(|e| self.fail(e))?;
        next.filled = number;
        next.next_round = next_round;
        self.put(manifest, next)?;

        let mut state = self.state();
        for filled in filled {
            let Some(stream) = state.streams.get_mut(&filled.stream) else { continue };
            while stream.frames.front().is_some_and(|f| f.file == number) {
                stream.frames.pop_front();
            }
            if filled.made {
                stream.segments.push(Segment::made(filled.meta.clone()));
            }
            if let Some(segment) = stream.segments.last_mut() {
                segment.meta = filled.meta;
                if let Some(index) = &mut segment.index {
                    index.extend(filled.index);
                }
            }
        }
        state.segment_bytes = segment_bytes(manifest);
        state.files.remove(&number);
        drop(state);
        let path = journal_path(&self.dir, number);
        self.disk.remove_file(&path).map_err(|e| self.fail(hard("removing a journal file", &e)))?;
        let dir = self.dir.join("journal");
        self.disk.sync_dir(&dir).map_err(|e| self.fail(hard("syncing the journal's folder", &e)))
    }

    /// Replaces the manifest, on disk first.
    pub(super) fn put(&self, manifest: &mut Manifest, next: Manifest) -> Result<(), StoreError> {
        let stored = next.store(&*self.disk, &self.dir);
        let bytes = stored.map_err(|e| self.fail(failed("writing the manifest", &e)))?;
        *manifest = next;
        self.state().manifest_bytes = bytes;
        Ok(())
    }
}

pub(super) fn segment_bytes(manifest: &Manifest) -> u64 {
    manifest.streams.values().flat_map(|s| &s.segments).map(|s| s.bytes).sum()
}

/// Fills a buffer from a place in a journal file.
pub(super) type ReadAt<'a> = dyn Fn(u64, &mut [u8]) -> Result<(), StoreError> + 'a;

/// Appends each share, from the journal file that `read` reads, to its
/// stream's segment, and syncs it. `next` becomes the manifest that says so.
/// Holds a piece of one share at a time, not the bytes of the file.
pub(super) fn fill(
    disk: &dyn Disk,
    dir: &std::path::Path,
    next: &mut Manifest,
    read: &ReadAt<'_>,
    shares: &[Share],
    file_bytes: u64,
) -> Result<Vec<Filled>, StoreError> {
    let mut out = Vec::with_capacity(shares.len());
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    for share in shares {
        let Some(stream) = next.streams.get_mut(&share.stream) else { continue };
        out.extend(fill_share(disk, dir, stream, share, (read, &mut piece), file_bytes)?);
    }
    Ok(out)
}

fn fill_share(
    disk: &dyn Disk,
    dir: &std::path::Path,
    stream: &mut StreamMeta,
    share: &Share,
    (read, piece): (&ReadAt<'_>, &mut Vec<u8>),
    file_bytes: u64,
) -> Result<Option<Filled>, StoreError> {
    let (Some(first), Some(last)) = (share.frames.first(), share.frames.last()) else {
        return Ok(None);
    };
    let made = stream.segments.last().is_none_or(|s| s.bytes >= file_bytes);
    if made {
        stream.segments.push(SegmentMeta {
            first: first.first,
            through: first.first.prev(),
            bytes: 0,
            newest: first.newest,
            rewrites: 0,
        });
        let dir = stream_dir(dir, share.stream);
        disk.create_dir_all(&dir).map_err(|e| failed("making a stream's folder", &e))?;
    }
    let meta = stream.segments.last_mut().expect("there is one, or it was just made");
    let path = segment_path(dir, share.stream, meta);
    let file = disk.open(&path, made).map_err(|e| failed("opening a segment", &e))?;
    let mut end = meta.bytes;
    let mut rest = &share.frames[..];
    while !rest.is_empty() {
        rest = read_piece(read, rest, piece)?;
        if let Err(error) = file.write_at(end, piece) {
            // What is beyond the segment's end does not exist; it only takes room.
            let _ = file.set_len(meta.bytes);
            return Err(failed("writing a segment", &error));
        }
        end += piece.len() as u64;
    }
    file.sync().map_err(|e| hard("syncing a segment", &e))?;
    if made {
        sync_up(disk, dir, share.stream).map_err(|e| hard("syncing a stream's folder", &e))?;
    }
    let (mut index, mut offset) = (Index::new(), meta.bytes);
    for frame in &share.frames {
        note(&mut index, frame.first, offset);
        offset += u64::from(frame.bytes);
    }
    meta.bytes = offset;
    meta.through = last.last();
    let newest = share.frames.iter().map(|f| f.newest).max().unwrap_or(meta.newest);
    meta.newest = meta.newest.max(newest);
    Ok(Some(Filled { stream: share.stream, meta: meta.clone(), index, made }))
}

/// Reads the frames at the front into `piece`, back to back: as many as fit, at
/// least one. Returns the others.
fn read_piece<'a>(
    read: &ReadAt<'_>,
    frames: &'a [Frame],
    piece: &mut Vec<u8>,
) -> Result<&'a [Frame], StoreError> {
    piece.clear();
    let mut rest = frames;
    while let Some(first) = rest.first() {
        let begin = first.offset as usize;
        let end_of = |frame: &Frame| (frame.offset + frame.bytes) as usize;
        let (room, mut end) = (PIECE_BYTES.saturating_sub(piece.len()), begin);
        // What lies close together is read at once, with what is between.
        let near = rest.iter().take_while(|frame| {
            let joins = end == begin
                || (frame.offset as usize <= end + GAP_BYTES && end_of(frame) - begin <= room);
            end = if joins { end_of(frame) } else { end };
            joins
        });
        let (run, after) = rest.split_at(near.count());
        if !piece.is_empty() && end - begin > room {
            break;
        }
        let mut into = piece.len();
        piece.resize(into + end - begin, 0);
        read(begin as u64, &mut piece[into..])?;
        let from = into;
        for frame in run {
            let at = from + frame.offset as usize - begin;
            piece.copy_within(at..at + frame.bytes as usize, into);
            into += frame.bytes as usize;
        }
        piece.truncate(into);
        rest = after;
    }
    Ok(rest)
}

/// Makes a stream's folder, and the way to it, survive power loss.
pub(super) fn sync_up(
    disk: &dyn Disk,
    dir: &std::path::Path,
    stream: StreamId,
) -> std::io::Result<()> {
    let folder = stream_dir(dir, stream);
    for above in folder.ancestors().take(3) {
        disk.sync_dir(above)?;
    }
    Ok(())
}
