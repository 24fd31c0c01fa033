//! The log on this machine's disk: one synced journal for all streams, filled
//! in bulk into segments of each.
//!
//! ```text
//! LOCK                      held by the one process that writes
//! manifest                  what the log consists of; replaced as a whole
//! reserve                   room for its replacement on a full disk
//! journal/<number>.log      rounds of batches of all streams, synced together
//! streams/<incarnation>/<partition>/<first>[.<rewrites>].seg
//!                           batches of one stream, back to back
//! ```
//!
//! Always: a batch is in a journal file or in a segment that the manifest
//! names, before its stream's `synced` covers it; a journal file goes only
//! when the manifest says that all of it is in segments. The manifest is the
//! one place where anything is decided: files, and bytes at the end of a
//! segment, that it does not name do not exist. See `docs/adr/0001-log-layout.md`.
//!
//! Knows nothing of topics, users or what records mean.

mod fill;
mod keep;
mod manifest;
mod read;
mod recover;
mod round;
mod segment;
mod state;
mod turn;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tideline_record::batch::Choose;
use tideline_types::limits::{LOG_FILE_BYTES, LOG_WAITING_BYTES_MAX, UNFILLED_BYTES_MAX};
use tideline_types::{Seq, SeqRange, StreamId};

pub use manifest::fuzz_manifest;
pub use recover::Recovered;
pub use round::fuzz_rounds;
pub use verify::{Finding, Verified, verify_journal};

use self::manifest::Manifest;
use self::state::State;
use self::turn::Scratch;
use super::FolderLock;
use crate::disk::{Disk, RealDisk};
use crate::{
    AppendError, Bounds, EpochStart, EraseReport, Extent, Journal, ReadError, ReadLimits,
    StoreError, SyncWatcher, Usage,
};

/// Bounds of a local journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// Bytes on disk, at which appends are refused. Default: no bound.
    pub max_bytes: u64,
    /// Bytes of a journal file or segment, from which on the next is begun.
    /// Default 64 MiB; at most an eighth of `max_bytes`.
    pub file_bytes: u64,
    /// Bytes of appended batches that wait for a write, at most. Default 64 MiB.
    pub waiting_bytes_max: u64,
    /// Bytes of journal files not yet in segments, at most. Default 256 MiB.
    pub unfilled_bytes_max: u64,
    /// Threads of its own write and fill. Without, [`LocalJournal::turn`] and
    /// [`LocalJournal::fill`] do: for simulations.
    pub threads: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            max_bytes: u64::MAX,
            file_bytes: LOG_FILE_BYTES,
            waiting_bytes_max: LOG_WAITING_BYTES_MAX,
            unfilled_bytes_max: UNFILLED_BYTES_MAX,
            threads: true,
        }
    }
}

/// The default engine of [`Journal`].
pub struct LocalJournal {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    recovered: Recovered,
    _lock: Option<FolderLock>,
}

/// What callers and threads share.
struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: JournalOptions,
    /// `options.file_bytes`, within its bounds.
    file_bytes: u64,
    /// The manifest as it is on disk. Held by whatever changes it or the files
    /// that it names: filling, fences, trims, removals, erases.
    keeping: Mutex<Manifest>,
    state: Mutex<State>,
    /// Held through a turn, watchers included.
    scratch: Mutex<Scratch>,
    /// There is something to write.
    writer: Condvar,
    /// There is something to fill.
    filler: Condvar,
    /// A turn has settled, or its watchers have been told, or a copy ended.
    settled: Condvar,
}

impl LocalJournal {
    /// Opens the log in `dir`, or makes an empty one, and holds the folder.
    /// What was found at the end of the journal is in segments and synced when
    /// this returns.
    pub fn open(dir: &Path, options: JournalOptions) -> Result<Self, StoreError> {
        let lock = FolderLock::take(dir)?;
        Self::open_with(Arc::new(RealDisk), dir, options, Some(lock))
    }

    /// The same on any disk, without a lock.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: JournalOptions,
    ) -> Result<Self, StoreError> {
        Self::open_with(disk, dir, options, None)
    }

    fn open_with(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: JournalOptions,
        lock: Option<FolderLock>,
    ) -> Result<Self, StoreError> {
        let (manifest, state, recovered) = recover::open(&*disk, dir, file_bytes(&options))?;
        let shared = Arc::new(Shared {
            disk,
            dir: dir.to_path_buf(),
            options,
            file_bytes: file_bytes(&options),
            keeping: Mutex::new(manifest),
            state: Mutex::new(state),
            scratch: Mutex::default(),
            writer: Condvar::new(),
            filler: Condvar::new(),
            settled: Condvar::new(),
        });
        let journal = Self { shared, threads: Mutex::default(), recovered, _lock: lock };
        if options.threads {
            journal.spawn("log-writer", Shared::write_until_stopped)?;
            journal.spawn("log-filler", Shared::fill_until_stopped)?;
        }
        Ok(journal)
    }

    fn spawn(&self, name: &str, run: fn(&Shared)) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let builder = std::thread::Builder::new().name(name.into());
        let thread = builder.spawn(move || {
            let run = std::panic::AssertUnwindSafe(|| run(&shared));
            if std::panic::catch_unwind(run).is_err() {
                // A watcher has panicked: nothing may wait for what never comes.
                let cause = "it panicked".into();
                shared.fail(StoreError::Failed { what: "the log's thread".into(), cause });
            }
        });
        let thread = thread.map_err(|e| StoreError::io(format!("starting {name}"), &e))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// What the opening found at the end of the journal.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Writes and syncs what waits, and tells the watchers. False if nothing
    /// waited. For journals without threads.
    pub fn turn(&self) -> bool {
        self.shared.turn()
    }

    /// Proves the last round, as a journal that rests does by itself.
    pub fn mark(&self) -> bool {
        self.shared.mark()
    }

    /// Fills all that is synced into segments now.
    pub fn fill(&self) -> Result<(), StoreError> {
        self.shared.fill_all(&mut self.shared.keeping())
    }

    /// Lets every stream go on `by` epochs above its present one; durable on
    /// return. For a copy of a log that goes on elsewhere, where epochs rise
    /// one by one: no place of the one is a place of the other from here on.
    /// To be called right after an opening, before anything is appended.
    ///
    /// # Errors
    /// `Io` if an epoch would be too large; what the disk says.
    pub fn raise_epochs(&self, by: u32) -> Result<(), StoreError> {
        self.shared.raise_epochs(by)
    }

    fn stop(&self) {
        let mut state = self.shared.state();
        state.closed = true;
        state.stopping = true;
        drop(state);
        self.shared.writer.notify_all();
        self.shared.filler.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// Stops without writing what waits: a process that wants it kept calls
/// [`Journal::close`].
impl Drop for LocalJournal {
    fn drop(&mut self) {
        self.stop();
    }
}

fn file_bytes(options: &JournalOptions) -> u64 {
    options.file_bytes.min(options.max_bytes / 8).clamp(1 << 10, u64::from(u32::MAX) / 4)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeping(&self) -> MutexGuard<'_, Manifest> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scratch(&self) -> MutexGuard<'_, Scratch> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, on: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        on.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the time has passed.
    fn wait_for<'a>(
        &self,
        on: &Condvar,
        state: MutexGuard<'a, State>,
        time: Duration,
    ) -> (MutexGuard<'a, State>, bool) {
        let (state, timeout) = on.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
        (state, timeout.timed_out())
    }

    /// Waits for the writer to settle what is asked for, or does its work
    /// where there is none.
    fn settle<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if self.options.threads && !state.stopping {
            return self.wait(&self.settled, state);
        }
        drop(state);
        self.turn();
        self.state()
    }
}

impl Journal for LocalJournal {
    fn create(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        self.shared.create(streams)
    }

    fn remove(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        self.shared.remove(streams)
    }

    fn streams(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.shared.state().streams.keys().copied().collect();
        streams.sort();
        streams
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
        self.shared.fence(stream, watcher)
    }

    fn append(&self, stream: StreamId, batch: Bytes) -> Result<(), AppendError> {
        self.shared.append(stream, batch)
    }

    fn read(
        &self,
        stream: StreamId,
        from: Seq,
        limits: ReadLimits,
    ) -> Result<Vec<Bytes>, ReadError> {
        self.shared.read(stream, from, limits)
    }

    fn extents(&self, stream: StreamId) -> Vec<Extent> {
        self.shared.state().streams.get(&stream).map_or_else(Vec::new, |s| s.extents())
    }

    fn trim(&self, stream: StreamId, through: Seq) -> Result<Seq, StoreError> {
        self.shared.trim(stream, through)
    }

    fn erase(
        &self,
        stream: StreamId,
        range: SeqRange,
        choose: &mut Choose<'_>,
    ) -> Result<EraseReport, StoreError> {
        self.shared.erase(stream, range, choose)
    }

    fn backup(&self, into: &Path) -> Result<(), StoreError> {
        self.shared.backup(into)
    }

    fn usage(&self) -> Usage {
        let state = self.shared.state();
        let unfilled_bytes = state.journal_bytes();
        let journal_bytes = unfilled_bytes + state.zero_bytes();
        Usage {
            total_bytes: state.segment_bytes + journal_bytes + state.manifest_bytes,
            unfilled_bytes,
            syncs: state.syncs,
            appended_bytes: state.appended_bytes,
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        self.shared.state().failed.clone().map_or(Ok(()), Err)
    }

    fn close(&self) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        state.closed = true;
        while (!state.waiting.is_empty() || state.writing || state.told < state.settled)
            && state.failed.is_none()
        {
            state = self.shared.settle(state);
        }
        let failed = state.failed.clone();
        drop(state);
        let filled = failed.map_or_else(|| self.fill(), Err);
        self.stop();
        filled
    }
}
