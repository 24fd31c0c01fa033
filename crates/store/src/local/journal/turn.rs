//! Appending, and the turns that write and sync what was appended.
//!
//! ```text
//!  append ─▶ waiting ─▶ turn: one write, one sync ─▶ frames, synced ─▶ watchers
//! ```
//!
//! A turn takes everything that waits, of all streams. It touches no record:
//! batches are copied once, into the buffer of the write.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use bytes::Bytes;
use tideline_types::limits::LOG_WRITE_BYTES_MAX;
use tideline_types::{Seq, StreamId};

use super::Shared;
use super::manifest::journal_path;
use super::round;
use super::state::{Frame, JournalFile, State};
use crate::epochs::admit;
use crate::error::is_no_space;
use crate::{AppendError, StoreError, SyncWatcher};
use tideline_record::batch::Header;

/// A short round that makes its file longer is followed by zeroes up to the next
/// multiple of this: a sync that changes no length is quicker, since it writes
/// nothing of the file system's own.
pub(super) const PAD_BYTES: usize = 256 << 10;
/// A longer round takes so long that the length does not matter.
const PADDED_ROUND_MAX: usize = 32 << 10;

/// What turns use again and again.
#[derive(Default)]
pub(super) struct Scratch {
    batches: Vec<(StreamId, Bytes)>,
    buffer: Vec<u8>,
    touched: Vec<StreamId>,
    news: Vec<(StreamId, Arc<dyn SyncWatcher>, News)>,
}

enum News {
    Synced(Seq),
    Dropped(Seq),
}

/// Where a round was written.
struct Written {
    number: u64,
    file: JournalFile,
    /// Of the round's header.
    offset: u64,
    /// The file was made by this turn.
    made: bool,
}

impl Shared {
    pub(super) fn append(&self, stream: StreamId, batch: Bytes) -> Result<(), AppendError> {
        let len = batch.len() as u64;
        let mut state = self.state();
        state.writable()?;
        self.admit_bytes(&state, len)?;
        let found = state.streams.get_mut(&stream).ok_or(AppendError::NoStream(stream))?;
        let last = admit(stream, &found.bounds, found.owner.is_some(), &batch)?;
        found.bounds.next = last.next();
        found.pending += 1;
        state.waiting.push((stream, batch));
        state.waiting_bytes += len;
        state.appended_bytes += len;
        let wake = state.waiting.len() >= state.writer_wants;
        if wake {
            state.writer_wants = usize::MAX;
        }
        drop(state);
        if wake {
            self.writer.notify_one();
        }
        Ok(())
    }

    fn admit_bytes(&self, state: &State, len: u64) -> Result<(), AppendError> {
        let options = &self.options;
        let (waiting_bytes, journal) = (state.waiting_bytes, state.journal_bytes());
        let unfilled = journal + waiting_bytes + len;
        if waiting_bytes + len > options.waiting_bytes_max || unfilled > options.unfilled_bytes_max
        {
            return Err(AppendError::Full { waiting_bytes: unfilled - len });
        }
        // Filling holds a journal file twice for a moment.
        let twice = unfilled.min(self.file_bytes + LOG_WRITE_BYTES_MAX as u64);
        let zeroes = state.zero_bytes().max(self.file_bytes.min(PAD_BYTES as u64));
        let used_bytes = state.segment_bytes + unfilled + zeroes + twice + 2 * state.manifest_bytes;
        if used_bytes > options.max_bytes {
            return Err(AppendError::OverQuota { used_bytes, max_bytes: options.max_bytes });
        }
        Ok(())
    }

    /// Writes and syncs what waits, and tells the watchers. False if nothing
    /// waited.
    pub(super) fn turn(&self) -> bool {
        let mut scratch = self.scratch();
        let mut state = self.state();
        if state.failed.is_some() {
            return self.tell_failure(state);
        }
        if state.waiting.is_empty() {
            return false;
        }
        take(&mut state, &mut scratch.batches);
        state.writing = true;
        let round_number = state.next_round;
        let current = state.current.and_then(|n| Some((n, state.files.get(&n)?.clone())));
        let next_file = state.next_file;
        drop(state);

        let Scratch { batches, buffer, .. } = &mut *scratch;
        buffer.clear();
        buffer.resize(round::HEADER_BYTES, 0);
        for (_, batch) in batches.iter() {
            buffer.extend_from_slice(batch);
        }
        round::seal(buffer, round_number);
        let (taken, began) = (batches.len(), Instant::now());
        let outcome = self.write_round(current, next_file, buffer);

        let mut state = self.state();
        state.sync_took = began.elapsed();
        state.writing = false;
        state.settled += 1;
        state.syncs += 1;
        match outcome {
            Ok(written) => self.install(&mut state, &mut scratch, written),
            Err(error @ StoreError::NoSpace { .. }) => {
                if let Some(file) = state.current.and_then(|n| state.files.get_mut(&n)) {
                    file.len = file.bytes;
                }
                drop_streams(&mut state, &mut scratch);
                drop(state);
                self.tell(&mut scratch, taken, Some(&error));
                return true;
            }
            Err(error) => {
                state.failed.get_or_insert(error);
                scratch.batches.clear();
                return self.tell_failure(state);
            }
        }
        self.settled.notify_all();
        drop(state);
        self.tell(&mut scratch, taken, None);
        true
    }

    /// One write, one sync. On `NoSpace` the file ends where its rounds do.
    fn write_round(
        &self,
        current: Option<(u64, JournalFile)>,
        next_file: u64,
        round: &mut Vec<u8>,
    ) -> Result<Written, StoreError> {
        let made = current.is_none();
        let (number, mut file) = match current {
            Some(current) => current,
            None => {
                let path = journal_path(&self.dir, next_file);
                let file = self.disk.open(&path, true);
                let file = file.map_err(|e| failed("creating a journal file", &e))?;
                (next_file, JournalFile { file, bytes: 0, len: 0 })
            }
        };
        let offset = file.bytes;
        if let Err(error) = self.write_padded(&mut file, round) {
            let error = failed("writing the journal", &error);
            if matches!(error, StoreError::NoSpace { .. }) {
                // Nothing of it may be found after a restart.
                let cut = file.file.set_len(offset).and_then(|()| file.file.sync());
                cut.map_err(|e| hard("cutting", &e))?;
            }
            return Err(error);
        }
        file.file.sync().map_err(|e| hard("syncing the journal", &e))?;
        if made {
            self.disk
                .sync_dir(&self.dir.join("journal"))
                .map_err(|e| hard("syncing the journal's folder", &e))?;
        }
        Ok(Written { number, file, offset, made })
    }

    /// Writes a round after those of its file. Zeroes follow a short one that
    /// makes the file longer, if there is room.
    fn write_padded(&self, file: &mut JournalFile, round: &mut Vec<u8>) -> io::Result<()> {
        let (offset, round_bytes) = (file.bytes, round.len());
        let end = offset + round_bytes as u64;
        let mut len = file.len.max(end);
        if len > file.len && round_bytes <= PADDED_ROUND_MAX {
            len = end.next_multiple_of(PAD_BYTES as u64).min(self.file_bytes).max(end);
            round.resize((len - offset) as usize, 0);
        }
        let mut written = file.file.write_at(offset, round);
        let no_room = written.as_ref().is_err_and(is_no_space);
        if no_room && round.len() > round_bytes {
            len = end;
            written = file.file.set_len(offset);
            written = written.and_then(|()| file.file.write_at(offset, &round[..round_bytes]));
        }
        (file.bytes, file.len) = (end, len);
        written
    }

    /// The round is safe: makes it readable.
    fn install(&self, state: &mut State, scratch: &mut Scratch, written: Written) {
        let mut offset = written.offset + round::HEADER_BYTES as u64;
        let turn = state.settled;
        for (id, batch) in scratch.batches.drain(..) {
            let at = offset;
            offset += batch.len() as u64;
            // A stream that was removed meanwhile leaves bytes, and no frame.
            let Some(stream) = state.streams.get_mut(&id) else { continue };
            let header = Header::peek(&batch).expect("append has read this header");
            stream.frames.push_back(Frame {
                first: header.first,
                newest: header.newest,
                file: written.number,
                offset: at as u32,
                bytes: batch.len() as u32,
                count: header.count,
            });
            stream.bounds.synced = header.last();
            stream.pending = stream.pending.saturating_sub(1);
            stream.newest_file = written.number;
            if stream.turn != turn {
                stream.turn = turn;
                scratch.touched.push(id);
            }
        }
        for id in scratch.touched.drain(..) {
            let Some(stream) = state.streams.get(&id) else { continue };
            if let Some(owner) = &stream.owner {
                scratch.news.push((id, owner.clone(), News::Synced(stream.bounds.synced)));
            }
        }
        if written.made {
            state.current = Some(written.number);
            state.next_file = written.number + 1;
        }
        state.files.insert(written.number, written.file);
        state.next_round += 1;
        state.unproven = true;
        if state.rotate || offset >= self.file_bytes {
            state.rotate = false;
            state.current = None;
            self.filler.notify_one();
        }
    }

    /// Tells the watchers what became of the batches that a turn has `taken`.
    fn tell(&self, scratch: &mut Scratch, taken: usize, dropped: Option<&StoreError>) {
        for (id, watcher, news) in scratch.news.drain(..) {
            match (news, dropped) {
                (News::Synced(through), _) => watcher.synced(id, through),
                (News::Dropped(from), Some(error)) => watcher.dropped(id, from, error),
                (News::Dropped(_), None) => {}
            }
        }
        let mut state = self.state();
        state.told += 1;
        // Who was told may have appended what it had gathered.
        state.crowd = taken + state.waiting.len();
        drop(state);
        self.settled.notify_all();
    }

    /// Tells every watcher, once, that the journal is read-only.
    fn tell_failure(&self, mut state: MutexGuard<'_, State>) -> bool {
        let first = !std::mem::replace(&mut state.failure_told, true);
        state.waiting.clear();
        state.waiting_bytes = 0;
        state.told = state.settled;
        let error = state.failed.clone();
        let mut owners: Vec<_> =
            state.streams.iter().filter_map(|(id, s)| Some((*id, s.owner.clone()?))).collect();
        drop(state);
        self.settled.notify_all();
        if let Some(error) = error.filter(|_| first) {
            owners.sort_by_key(|(id, _)| *id);
            for (id, owner) in owners {
                owner.failed(id, &error);
            }
        }
        first
    }

    /// Makes the journal read-only for good. The writer tells the watchers.
    pub(super) fn fail(&self, error: StoreError) -> StoreError {
        if matches!(error, StoreError::NoSpace { .. }) {
            return error;
        }
        let mut state = self.state();
        let first = state.failed.get_or_insert(error).clone();
        state.writer_wants = usize::MAX;
        drop(state);
        self.writer.notify_one();
        self.settled.notify_all();
        first
    }

    /// Writes an empty round, unsynced: if it is found, the last one was whole.
    /// The next round takes its number and its place.
    pub(super) fn mark(&self) -> bool {
        let _scratch = self.scratch();
        let mut state = self.state();
        let current = state.current.filter(|_| state.unproven && state.failed.is_none());
        let Some(file) = current.and_then(|n| state.files.get(&n)) else { return false };
        let mut mark = [0; round::HEADER_BYTES];
        round::seal(&mut mark, state.next_round);
        // Twenty bytes to the page cache: short enough to hold the lock.
        let written = file.file.write_at(file.bytes, &mark);
        state.unproven = false;
        drop(state);
        if let Err(error) = written {
            self.fail(failed("writing a mark", &error));
        }
        true
    }
}

/// Takes what one round may carry.
fn take(state: &mut State, into: &mut Vec<(StreamId, Bytes)>) {
    if state.waiting_bytes <= LOG_WRITE_BYTES_MAX as u64 {
        std::mem::swap(&mut state.waiting, into);
        state.waiting_bytes = 0;
        return;
    }
    let (mut bytes, mut count) = (0, 0);
    for (_, batch) in &state.waiting {
        if bytes > 0 && bytes + batch.len() > LOG_WRITE_BYTES_MAX {
            break;
        }
        bytes += batch.len();
        count += 1;
    }
    into.extend(state.waiting.drain(..count));
    state.waiting_bytes -= bytes as u64;
}

/// There was no space for the round: it and all that waits behind it, of the
/// same streams, is as if it had never been appended.
fn drop_streams(state: &mut State, scratch: &mut Scratch) {
    let turn = state.settled;
    for (id, _) in scratch.batches.drain(..) {
        let Some(stream) = state.streams.get_mut(&id) else { continue };
        if stream.turn == turn {
            continue;
        }
        stream.turn = turn;
        stream.pending = 0;
        let from = stream.bounds.synced.next();
        stream.bounds.next = from;
        scratch.touched.push(id);
        if let Some(owner) = &stream.owner {
            scratch.news.push((id, owner.clone(), News::Dropped(from)));
        }
    }
    let State { waiting, waiting_bytes, .. } = state;
    scratch.touched.sort();
    waiting.retain(|(id, batch)| {
        let keep = scratch.touched.binary_search(id).is_err();
        if !keep {
            *waiting_bytes -= batch.len() as u64;
        }
        keep
    });
    scratch.touched.clear();
}

/// `NoSpace`, or what makes the journal read-only.
pub(super) fn failed(what: &str, error: &io::Error) -> StoreError {
    match StoreError::io(what, error) {
        no_space @ StoreError::NoSpace { .. } => no_space,
        _ => hard(what, error),
    }
}

/// What makes the journal read-only, even when the cause is a want of space:
/// after a failed sync nobody knows what is on the disk.
pub(super) fn hard(what: &str, error: &io::Error) -> StoreError {
    StoreError::Failed { what: what.into(), cause: error.to_string() }
}
