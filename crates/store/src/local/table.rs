//! The default table: a log-structured merge tree (fjall) on the local disk.
//!
//! Each [`TableName`] is a keyspace; a row's key is
//! [`table_key`](super::table_key). All commits of one call are one atomic
//! write, which is more than the law asks and saves bytes.
//!
//! Always:
//! - A reader takes its snapshot while no commit is half applied, so it sees
//!   whole commits.
//! - The write-ahead journal is synced by [`Table::sync`] and before each
//!   flush of a memtable, in the order it was written: a restart finds a
//!   prefix of all commits.
//! - After a failed write or sync every write is refused until it is opened
//!   again.
//!
//! A commit may be held up: until a memtable is flushed where three wait, or
//! until files are merged where too many pile up, both up to seconds on a slow
//! disk. Callers commit from a thread that no request waits for. Readers are
//! not held up.
//!
//! Options that shape files are written into a folder when it is made and hold
//! for its life; those of memory may change at each opening.

use std::fs::{OpenOptions, TryLockError};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    RestartIntervalPolicy,
};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    Readable, Snapshot,
};

use super::{table_files as files, table_key as key, table_tail as tail};
use crate::table::check_commit;
use crate::{Commit, Op, Row, StoreError, Table, TableName};

/// How an [`LsmTable`] uses memory and disk.
#[derive(Clone, Debug)]
pub struct LsmOptions {
    /// Blocks kept in memory, in bytes. Default 64 MiB.
    pub cache_bytes: u64,
    /// A memtable of `History` is flushed at this many bytes; up to four may
    /// be in memory. Default 16 MiB. The other tables take an eighth of it.
    pub memtable_bytes: u64,
    /// Write-ahead journal files on disk, in bytes; at least 64 MiB. Beyond
    /// it idle memtables are flushed to free them. Default 128 MiB.
    pub journal_bytes_max: u64,
    /// Data blocks of `History`, in bytes before compression. Larger ones
    /// take less disk and cost more per read. Default 16 KiB.
    pub block_bytes: u32,
    /// Rows between two whole keys in a block of `History`; the keys between
    /// hold only what differs. Default 32.
    pub restart_interval: u8,
    /// A commit is refused with `NoSpace` while the file system has fewer bytes
    /// free than this: the engine below cannot go on after it has met a full
    /// disk, so it must not meet one. Default 128 MiB.
    pub free_bytes_min: u64,
}

impl Default for LsmOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            memtable_bytes: 16 << 20,
            journal_bytes_max: 128 << 20,
            block_bytes: 16 << 10,
            restart_interval: 32,
            free_bytes_min: 128 << 20,
        }
    }
}

impl LsmOptions {
    /// `History` is read by scans alone, which no filter helps; the other
    /// tables are asked for single rows that often are not there.
    fn keyspace(&self, table: Option<TableName>) -> KeyspaceCreateOptions {
        let options = KeyspaceCreateOptions::default()
            .manual_journal_persist(true)
            // Memtables are rotated by `write`. fjall asks its worker to, once
            // per commit until it has; that fills the worker's queue, and the
            // worker then waits for room in it for ever.
            .max_memtable_size(u64::MAX)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4));
        match table {
            Some(TableName::History) => options
                .data_block_size_policy(BlockSizePolicy::all(self.block_bytes))
                .data_block_restart_interval_policy(RestartIntervalPolicy::all(
                    self.restart_interval,
                ))
                .filter_policy(FilterPolicy::disabled()),
            Some(TableName::Catalogue | TableName::Meta) => options
                .data_block_size_policy(BlockSizePolicy::all(4 << 10))
                .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
                    BloomConstructionPolicy::BitsPerKey(10.0),
                ))),
            // Scanned to open a video; asked, mostly in vain, whether an
            // imported comment, a like or a retry is there already.
            Some(TableName::Danmaku) => options
                .data_block_size_policy(BlockSizePolicy::all(self.block_bytes))
                .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
                    BloomConstructionPolicy::BitsPerKey(10.0),
                ))),
            None => options.filter_policy(FilterPolicy::disabled()),
        }
    }

    fn memtable_bytes(&self, table: TableName) -> u64 {
        match table {
            TableName::History | TableName::Danmaku => self.memtable_bytes,
            TableName::Catalogue | TableName::Meta => self.memtable_bytes / 8,
        }
    }
}

/// The keyspace that takes what pushes old bytes out of the journal; holds no
/// row of anybody.
const SCRATCH: &str = "scratch";

/// Memtables of a keyspace that wait to be flushed when a commit waits too.
/// fjall itself sleeps at four, holding up readers' snapshots with it here.
const SEALED_MAX: usize = 3;
/// Files in the top level at which a commit waits for a merge.
const TOP_FILES_MAX: usize = 18;
const WAIT: Duration = Duration::from_millis(2);

/// A [`Table`] in a folder of its own.
pub struct LsmTable {
    pub(super) dir: PathBuf,
    pub(super) db: Database,
    spaces: [Keyspace; TableName::ALL.len()],
    memtable_bytes: [u64; TableName::ALL.len()],
    free_bytes_min: u64,
    pub(super) scratch: Keyspace,
    /// Written to while a commit is applied: no snapshot begins meanwhile.
    gate: RwLock<()>,
    /// Held by the one commit that waits or applies.
    writer: Mutex<()>,
    /// Held while a sync runs.
    tail: Mutex<tail::Tail>,
    /// Held by a purge or a backup: a backup's snapshot would keep alive what
    /// a purge must remove.
    pub(super) upkeep: Mutex<()>,
}

impl std::fmt::Debug for LsmTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LsmTable").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl LsmTable {
    /// Opens the table in `dir`, which it makes if needed. Errors: `Locked`,
    /// `Damaged`, `Version`, or what the system says.
    pub fn open(dir: &Path, options: &LsmOptions) -> Result<Self, StoreError> {
        Self::prepare(dir)?;
        // fjall checks what it reads, but asserts some of it.
        catch_unwind(AssertUnwindSafe(|| Self::open_inner(dir, options))).unwrap_or_else(|_| {
            let what = "the engine gave up on what it found".into();
            Err(StoreError::Damaged { file: dir.to_path_buf(), offset: 0, what })
        })
    }

    /// Heals or refuses what a power loss left, while nobody else can open it.
    fn prepare(dir: &Path) -> Result<(), StoreError> {
        let fact = |error| StoreError::io(format!("open {}", dir.display()), &error);
        std::fs::create_dir_all(dir).map_err(fact)?;
        files::sync_dir_of(dir)?;
        let mut lock = OpenOptions::new();
        let lock = lock.create(true).truncate(false).write(true).open(dir.join("lock"));
        let lock = lock.map_err(fact)?;
        match lock.try_lock() {
            Ok(()) => tail::prepare(dir),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked(dir.to_path_buf())),
            Err(TryLockError::Error(error)) => Err(fact(error)),
        }
    }

    fn open_inner(dir: &Path, options: &LsmOptions) -> Result<Self, StoreError> {
        let fact = |error| files::fact(dir, "open table", error);
        let db = Database::builder(dir)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes_max.max(64 << 20))
            .manual_journal_persist(true)
            // A copy of a value in clear is found by a scan for it, and costs
            // no processor time.
            .journal_compression(CompressionType::None)
            // A second worker would spin while the first one merges.
            .worker_threads(1)
            .open()
            .map_err(fact)?;
        let space = |table: TableName| {
            db.keyspace(table.as_str(), || options.keyspace(Some(table))).map_err(fact)
        };
        let spaces = [
            space(TableName::History)?,
            space(TableName::Catalogue)?,
            space(TableName::Meta)?,
            space(TableName::Danmaku)?,
        ];
        let scratch = db.keyspace(SCRATCH, || options.keyspace(None)).map_err(fact)?;
        // The engine syncs what is in a new keyspace's folder, not its entry.
        files::sync_dir_of(scratch.path())?;
        let tail = tail::Tail::open(dir).map_err(|e| StoreError::io("open note", &e))?;
        Ok(Self {
            dir: dir.to_path_buf(),
            tail: Mutex::new(tail),
            db,
            spaces,
            memtable_bytes: TableName::ALL.map(|table| options.memtable_bytes(table)),
            free_bytes_min: options.free_bytes_min,
            scratch,
            gate: RwLock::new(()),
            writer: Mutex::new(()),
            upkeep: Mutex::new(()),
        })
    }

    pub(super) fn space(&self, table: TableName) -> &Keyspace {
        &self.spaces[table as usize]
    }

    /// Every keyspace with rows of ours.
    pub(super) fn spaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.spaces.iter()
    }

    pub(super) fn fact(&self, what: &'static str, error: fjall::Error) -> StoreError {
        files::fact(&self.dir, what, error)
    }

    fn snapshot(&self) -> Snapshot {
        let _no_commit = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        self.db.snapshot()
    }

    /// Waits, with nothing held that readers need, until fjall would take a
    /// write without sleeping.
    fn wait_for_room(&self) -> Result<(), StoreError> {
        let crowded = |space: &Keyspace| {
            space.sealed_memtable_count() >= SEALED_MAX || space.l0_table_count() >= TOP_FILES_MAX
        };
        while self.spaces().any(crowded) {
            // Says so if the worker that we wait for has died.
            self.db.persist(PersistMode::Buffer).map_err(|e| self.fact("commit", e))?;
            thread::sleep(WAIT);
        }
        Ok(())
    }

    /// Writes `fill` as one atomic batch.
    pub(super) fn write(
        &self,
        fill: impl FnOnce(&mut fjall::OwnedWriteBatch),
    ) -> Result<(), StoreError> {
        let mut batch = self.db.batch();
        fill(&mut batch);
        let _one = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.wait_for_room()?;
        {
            let _no_snapshot = self.gate.write().unwrap_or_else(PoisonError::into_inner);
            batch.commit().map_err(|e| self.fact("commit", e))?;
        }
        for (space, bytes) in self.spaces.iter().zip(self.memtable_bytes) {
            if space.tree.active_memtable().size() > bytes {
                space.rotate_memtable().map_err(|e| self.fact("commit", e))?;
            }
        }
        Ok(())
    }

    fn damaged_key(&self, table: TableName) -> StoreError {
        let what = format!("a key of table {} that cannot have been written", table.as_str());
        StoreError::Damaged { file: self.space(table).path().to_path_buf(), offset: 0, what }
    }

    /// Rows of one snapshot from `low` on, at least `WALK_ROWS` of them if
    /// there are, up to the end of a partition key. `true` if more may follow.
    fn chunk(
        &self,
        table: TableName,
        low: Bound<Vec<u8>>,
        high: &Bound<Vec<u8>>,
        visit: &mut Visit<'_>,
    ) -> Result<bool, StoreError> {
        let snapshot = self.snapshot();
        let mut partition = Vec::new();
        for (n, row) in snapshot.range(self.space(table), (low, high.clone())).enumerate() {
            let (key, value) = row.into_inner().map_err(|e| self.fact("walk", e))?;
            let end = key::sort_key_at(&key).ok_or_else(|| self.damaged_key(table))?;
            if n >= WALK_ROWS && partition != key[..end] {
                return Ok(true);
            }
            if n + 1 >= WALK_ROWS {
                partition.clear();
                partition.extend_from_slice(&key[..end]);
            }
            visit(&key, &value)?;
        }
        Ok(false)
    }
}

/// Shown a key and a value.
type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError> + 'a;

/// Rows that a walk reads at a time, so that no snapshot lives long.
const WALK_ROWS: usize = 1_024;

impl LsmTable {
    /// `NoSpace` while too little is free.
    fn check_space(&self) -> Result<(), StoreError> {
        let free = rustix::fs::statvfs(&self.dir)
            .map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
            .map_err(|error| StoreError::io("table: free space", &error.into()))?;
        if free < self.free_bytes_min {
            let what =
                format!("table: {free} bytes free, {} are kept in reserve", self.free_bytes_min);
            return Err(StoreError::NoSpace { what });
        }
        Ok(())
    }
}

impl Table for LsmTable {
    fn get(
        &self,
        table: TableName,
        partition_key: &[u8],
        sort_key: &[u8],
    ) -> Result<Option<Bytes>, StoreError> {
        let key = key::encode(partition_key, sort_key);
        let value = self.snapshot().get(self.space(table), key);
        let value = value.map_err(|e| self.fact("get", e))?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }

    /// The rows share one buffer, which lives as long as any of them.
    fn scan(
        &self,
        table: TableName,
        partition_key: &[u8],
        from: &[u8],
        to: Option<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        let range = key::range(partition_key, from, to);
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let prefix = range.start.len() - from.len();
        let mut rows = self.snapshot().range(self.space(table), range);
        let (mut buffer, mut ends) = (Vec::new(), Vec::new());
        while let Some(row) = if reverse { rows.next_back() } else { rows.next() } {
            let (key, value) = row.into_inner().map_err(|e| self.fact("scan", e))?;
            buffer.extend_from_slice(&key[prefix..]);
            let middle = buffer.len();
            buffer.extend_from_slice(&value);
            ends.push((middle, buffer.len()));
            if ends.len() == limit {
                break;
            }
        }
        let buffer = Bytes::from(buffer);
        let mut start = 0;
        Ok(ends
            .into_iter()
            .map(|(middle, end)| {
                let row = (buffer.slice(start..middle), buffer.slice(middle..end));
                start = end;
                row
            })
            .collect())
    }

    fn walk(
        &self,
        table: TableName,
        prefix: &[u8],
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), StoreError> {
        let (low, high) = key::prefix_range(prefix);
        let high = high.map_or(Bound::Unbounded, Bound::Excluded);
        let mut low = Bound::Included(low);
        loop {
            let (mut rows, mut last) = (Vec::new(), Vec::new());
            let more = self.chunk(table, low, &high, &mut |key, value| {
                let (partition_key, sort_key) =
                    key::decode(key).ok_or_else(|| self.damaged_key(table))?;
                rows.push(Row {
                    partition_key: partition_key.into(),
                    sort_key: Bytes::copy_from_slice(sort_key),
                    value: Bytes::copy_from_slice(value),
                });
                last.clear();
                last.extend_from_slice(key);
                Ok(())
            })?;
            if !rows.into_iter().all(&mut *visit) || !more {
                return Ok(());
            }
            low = Bound::Excluded(last);
        }
    }

    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        commits.iter().for_each(check_commit);
        self.check_space()?;
        self.write(|batch| {
            for commit in commits {
                let space = self.space(commit.table);
                for op in &commit.ops {
                    match op {
                        Op::Put { sort_key, value } => {
                            let key = key::encode(&commit.partition_key, sort_key);
                            batch.insert(space, key, value.as_ref());
                        }
                        Op::Delete { sort_key } => {
                            batch.remove(space, key::encode(&commit.partition_key, sort_key));
                        }
                    }
                }
            }
        })
    }

    fn sync(&self) -> Result<(), StoreError> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let persist = |mode| self.db.persist(mode).map_err(|e| self.fact("sync", e));
        persist(PersistMode::Buffer)?;
        let looked = tail.look();
        persist(PersistMode::SyncData)?;
        // The note makes damage known; no row depends on it.
        let _noted = looked.and_then(|()| tail.synced());
        Ok(())
    }

    fn purge(&self, table: TableName) -> Result<(), StoreError> {
        let _alone = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        super::table_purge::purge(self, table)
    }

    /// Rows are read from one snapshot of all tables and loaded, in order,
    /// into a fresh table: the copy holds no deleted row, and is checked as it
    /// is read.
    fn backup(&self, into: &Path) -> Result<(), StoreError> {
        let _alone = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.snapshot();
        let options = LsmOptions { cache_bytes: 1 << 20, ..LsmOptions::default() };
        let copy = Self::open(into, &options)?;
        for table in TableName::ALL {
            let failed = |error| copy.fact("backup", error);
            let mut load = copy.space(table).start_ingestion().map_err(failed)?;
            for row in snapshot.iter(self.space(table)) {
                let (key, value) = row.into_inner().map_err(|e| self.fact("backup", e))?;
                load.write(key, value).map_err(failed)?;
            }
            load.finish().map_err(failed)?;
        }
        copy.db.persist(PersistMode::SyncAll).map_err(|e| copy.fact("backup", e))?;
        drop(copy);
        files::sync_dirs(into)
    }

    fn verify(&self) -> Result<u64, StoreError> {
        self.spaces().try_for_each(files::verify)?;
        let mut rows = 0;
        for table in TableName::ALL {
            let (mut low, high) = (Bound::Unbounded, Bound::Unbounded);
            loop {
                let mut last = Vec::new();
                let more = self.chunk(table, low, &high, &mut |key, _| {
                    key::decode(key).ok_or_else(|| self.damaged_key(table))?;
                    rows += 1;
                    last.clear();
                    last.extend_from_slice(key);
                    Ok(())
                })?;
                if !more {
                    break;
                }
                low = Bound::Excluded(last);
            }
        }
        Ok(rows)
    }

    fn disk_bytes(&self) -> u64 {
        files::disk_bytes(&self.dir)
    }
}

/// What a fuzzer feeds: a key, a block of a data file, the end of a journal.
pub fn fuzz_table_files(bytes: &[u8]) {
    if let Some((partition_key, sort_key)) = key::decode(bytes) {
        assert_eq!(key::encode(&partition_key, sort_key), bytes);
    }
    let _ = files::blocks(bytes);
    tail::fuzz(bytes);
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
