//! Which engine runs which suite.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tideline_store::disk::{FaultyDisk, KeepAll, LoseAll, RealDisk};
use tideline_store::laws;
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::mem::MemJournal;
use tideline_store::{Disk, Journal};

/// Files so small that every law meets several.
fn small() -> JournalOptions {
    JournalOptions { file_bytes: 2_000, ..JournalOptions::default() }
}

fn on(disk: &FaultyDisk) -> Arc<dyn Journal> {
    Arc::new(LocalJournal::open_on(Arc::new(disk.clone()), Path::new("/log"), small()).unwrap())
}

#[test]
fn the_real_disk_keeps_the_laws() {
    let dir = tempfile::tempdir().unwrap();
    laws::disk(&RealDisk, &dir.path().join("d"));
}

#[test]
fn the_faulty_disk_keeps_the_laws() {
    laws::disk(&FaultyDisk::new() as &dyn Disk, Path::new("/d"));
}

#[test]
fn the_memory_journal_keeps_the_laws() {
    laws::journal(&|| Arc::new(MemJournal::new()));
}

#[test]
fn the_local_journal_keeps_the_laws_on_the_real_disk() {
    let dirs = Mutex::new(Vec::new());
    laws::journal(&|| {
        let dir = tempfile::tempdir().unwrap();
        let journal = LocalJournal::open(dir.path(), small()).unwrap();
        dirs.lock().unwrap().push(dir);
        Arc::new(journal)
    });
}

#[test]
fn the_local_journal_keeps_the_laws_with_large_files() {
    laws::journal(&|| {
        let disk = Arc::new(FaultyDisk::new());
        let options = JournalOptions::default();
        Arc::new(LocalJournal::open_on(disk, Path::new("/log"), options).unwrap())
    });
}

#[test]
fn the_local_journal_keeps_the_laws_on_the_faulty_disk() {
    laws::journal(&|| on(&FaultyDisk::new()));
}

#[test]
fn the_local_journal_lasts_on_the_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    laws::journal_that_lasts(&|old| {
        drop(old);
        Arc::new(LocalJournal::open(dir.path(), small()).unwrap())
    });
}

#[test]
fn the_local_journal_outlives_a_crash_that_keeps_or_loses_everything() {
    for lose in [false, true] {
        let disk = Mutex::new(FaultyDisk::new());
        laws::journal_that_lasts(&|old| {
            let mut disk = disk.lock().unwrap();
            *disk = if lose { disk.crash(&mut LoseAll) } else { disk.crash(&mut KeepAll) };
            drop(old);
            on(&disk)
        });
    }
}
