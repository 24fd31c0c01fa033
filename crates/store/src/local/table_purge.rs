//! Removes every byte of deleted and replaced rows from the engine's files.
//!
//! A deleted row lives on in three places: in data files until a merge meets
//! its tombstone, in journal files until all they hold is flushed, and in the
//! data files that a merge replaced until no snapshot needs them. So:
//!
//! ```text
//! 1. push the journal on, so that the present file is sealed
//! 2. flush every memtable            -> sealed journals are removed
//! 3. wait for older snapshots to end
//! 4. merge all files of the table    -> tombstones and what they hide go
//! 5. wait until the files before the merge are removed
//! ```
//!
//! The engine seals its journal only once 64 MB are in it. The push is zeroes
//! in a keyspace of our own, which is emptied at once: they cost a write of at
//! most 64 MB and no disk afterwards. Callers batch their purges.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use fjall::{Keyspace, PersistMode};

use super::LsmTable;
use super::table_files as files;
use crate::{StoreError, TableName};

const PUSH_BYTES: usize = 4 << 20;
const PUSHES_A_ROUND: usize = 2;
/// Rounds until the journal must have been sealed: four times what it takes.
const ROUNDS_MAX: usize = 64;
const WAIT: Duration = Duration::from_millis(5);
/// Waits for a snapshot, a merge or a flush, at most: a minute.
const WAITS_MAX: usize = 12_000;

pub(super) fn purge(table: &LsmTable, of: TableName) -> Result<(), StoreError> {
    let started_at = table.db.seqno();
    let old_journals = files::journals(&table.dir);
    push_journal_on(table, &old_journals)?;
    let snapshots_ended = || table.db.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
    until(table, "older snapshots to end", || snapshots_ended() >= started_at)?;
    let space = table.space(of);
    let data = space.path().join("tables");
    let old_data = files::all(&data);
    if space.table_count() > 0 {
        space.major_compact().map_err(|e| table.fact("purge", e))?;
    }
    until(table, "merged files to be removed", || gone(&old_data))?;
    table.db.persist(PersistMode::SyncAll).map_err(|e| table.fact("purge", e))?;
    files::sync_dir_of(&data.join("x"))?;
    files::sync_dir_of(&table.dir.join("x"))
}

fn gone(old: &[PathBuf]) -> bool {
    !old.iter().any(|file| file.exists())
}

fn push_journal_on(table: &LsmTable, old: &[PathBuf]) -> Result<(), StoreError> {
    for _ in 0..ROUNDS_MAX {
        for _ in 0..PUSHES_A_ROUND {
            table.write(|batch| batch.insert(&table.scratch, *b"push", vec![0; PUSH_BYTES]))?;
        }
        table.scratch.clear().map_err(|e| table.fact("purge", e))?;
        nudge(table)?;
        for space in table.spaces() {
            flush(table, space)?;
        }
        if gone(old) {
            return Ok(());
        }
    }
    Err(gave_up("the journal to be sealed"))
}

/// Makes the engine look after its journals and file versions, which it does
/// at each flush.
fn nudge(table: &LsmTable) -> Result<(), StoreError> {
    table.write(|batch| batch.insert(&table.scratch, *b"nudge", Vec::new()))?;
    flush(table, &table.scratch)
}

fn flush(table: &LsmTable, space: &Keyspace) -> Result<(), StoreError> {
    space.rotate_memtable().map_err(|e| table.fact("purge", e))?;
    for _ in 0..WAITS_MAX {
        if space.sealed_memtable_count() == 0 {
            return Ok(());
        }
        // Says so if the worker that we wait for has died.
        table.db.persist(PersistMode::Buffer).map_err(|e| table.fact("purge", e))?;
        thread::sleep(WAIT);
    }
    Err(gave_up("a memtable to be flushed"))
}

fn until(
    table: &LsmTable,
    what: &'static str,
    mut done: impl FnMut() -> bool,
) -> Result<(), StoreError> {
    for _ in 0..WAITS_MAX {
        if done() {
            return Ok(());
        }
        nudge(table)?;
        thread::sleep(WAIT);
    }
    Err(gave_up(what))
}

fn gave_up(on: &str) -> StoreError {
    StoreError::Io { what: "purge".into(), cause: format!("waited too long for {on}") }
}
