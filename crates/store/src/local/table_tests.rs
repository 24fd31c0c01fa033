//! The default table against the laws and against what disks do to it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::super::table_files as files;
use super::*;
use crate::laws::table as laws;

struct Lsm {
    dir: tempfile::TempDir,
    table: Option<Arc<LsmTable>>,
}

/// Memtables so small that flushes and merges happen within a test.
fn small() -> LsmOptions {
    LsmOptions { cache_bytes: 1 << 20, memtable_bytes: 64 << 10, ..LsmOptions::default() }
}

fn open(dir: &Path) -> LsmTable {
    LsmTable::open(dir, &small()).unwrap()
}

impl laws::Engine for Lsm {
    fn table(&self) -> Arc<dyn Table> {
        self.table.clone().unwrap()
    }

    fn reopen(&mut self) {
        self.table = None;
        self.table = Some(Arc::new(open(self.dir.path())));
    }

    fn open_copy(&self, dir: &Path) -> Arc<dyn Table> {
        Arc::new(open(dir))
    }
}

#[test]
fn the_laws_hold() {
    laws::run(&|| {
        let dir = tempfile::tempdir().unwrap();
        let table = Some(Arc::new(open(dir.path())));
        Box::new(Lsm { dir, table })
    });
}

fn put(partition_key: &[u8], sort_key: &[u8], value: &[u8]) -> Commit {
    let copy = Bytes::copy_from_slice;
    Commit {
        table: TableName::History,
        partition_key: copy(partition_key),
        ops: vec![Op::Put { sort_key: copy(sort_key), value: copy(value) }],
    }
}

fn delete(partition_key: &[u8], sort_key: &[u8]) -> Commit {
    let copy = Bytes::copy_from_slice;
    Commit {
        table: TableName::History,
        partition_key: copy(partition_key),
        ops: vec![Op::Delete { sort_key: copy(sort_key) }],
    }
}

/// How many files below `dir` hold `needle`, as they are or once their blocks
/// are decompressed.
fn files_with(dir: &Path, needle: &[u8]) -> usize {
    let holds = |bytes: &[u8]| memchr::memmem::find(bytes, needle).is_some();
    let in_a_block = |bytes: &[u8]| {
        files::blocks(bytes).iter().any(|block| {
            lz4_flex::decompress(block.data, block.plain_length).is_ok_and(|data| holds(&data))
        })
    };
    let read = |file| fs::read(file).unwrap_or_default();
    let found = |bytes: &Vec<u8>| holds(bytes) || in_a_block(bytes);
    files::all(dir).into_iter().map(read).filter(found).count()
}

/// Fills the table with rows of other users, so that blocks are compressed and
/// several files are there.
fn crowd(table: &LsmTable) {
    for n in 0..4_000u32 {
        let value = format!("a row of someone else, number {n}, number {n}").repeat(2);
        table.commit(&[put(format!("other-{n}").as_bytes(), b"day", value.as_bytes())]).unwrap();
    }
}

#[test]
fn after_a_purge_no_file_holds_a_byte_of_what_was_deleted_or_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let table = open(dir.path());
    crowd(&table);
    let deleted = b"SECRET-deleted-row-SECRET-deleted-row";
    let replaced = b"SECRET-replaced-row-SECRET-replaced-row";
    table.commit(&[put(b"\xfeerin-the-user", b"day-1", deleted)]).unwrap();
    table.commit(&[put(b"\xfeerin-the-user", b"day-2", replaced)]).unwrap();
    table.sync().unwrap();
    assert!(files_with(dir.path(), deleted) > 0, "in the journal");
    for space in table.spaces() {
        space.rotate_memtable_and_wait().unwrap();
    }
    crowd(&table);
    table.db.persist(PersistMode::SyncAll).unwrap();
    assert!(files_with(dir.path(), deleted) > 1, "in the journal and in a block");
    table.commit(&[delete(b"\xfeerin-the-user", b"day-1")]).unwrap();
    table.commit(&[put(b"\xfeerin-the-user", b"day-2", b"new")]).unwrap();
    table.sync().unwrap();
    assert!(files_with(dir.path(), replaced) > 1, "a delete or replace alone removes nothing");
    table.purge(TableName::History).unwrap();
    assert_eq!(files_with(dir.path(), deleted), 0);
    assert_eq!(files_with(dir.path(), replaced), 0);
    assert_eq!(files_with(dir.path(), b"day-1"), 0, "not the key either");
    let rows = table.scan(TableName::History, b"\xfeerin-the-user", b"", None, false, 9).unwrap();
    assert_eq!(rows, [(Bytes::from("day-2"), Bytes::from("new"))]);
    table.commit(&[delete(b"\xfeerin-the-user", b"day-2")]).unwrap();
    table.purge(TableName::History).unwrap();
    assert_eq!(files_with(dir.path(), b"erin-the-user"), 0, "no trace of the user");
    drop(table);
    let table = open(dir.path());
    assert_eq!(table.verify().unwrap(), 4_000);
}

#[test]
fn a_purge_goes_on_beside_readers_and_writers() {
    let dir = tempfile::tempdir().unwrap();
    let table = LsmTable::open(dir.path(), &LsmOptions::default()).unwrap();
    crowd(&table);
    table.commit(&[put(b"erin", b"day", b"SECRET")]).unwrap();
    table.commit(&[delete(b"erin", b"day")]).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let stopped = || done.load(std::sync::atomic::Ordering::SeqCst);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped() {
                table.walk(TableName::History, b"other", &mut |_| !stopped()).unwrap();
            }
        });
        scope.spawn(|| {
            for n in 0u64.. {
                if stopped() {
                    break;
                }
                table.commit(&[put(b"writer", &n.to_be_bytes(), b"row")]).unwrap();
            }
        });
        let purged = table.purge(TableName::History);
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        purged.unwrap();
    });
    assert_eq!(files_with(dir.path(), b"SECRET"), 0);
}

#[test]
fn a_second_opening_is_refused_as_locked() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(dir.path());
    assert!(matches!(LsmTable::open(dir.path(), &small()), Err(StoreError::Locked(_))));
}

#[test]
fn what_was_not_synced_is_lost_from_the_end_alone() {
    let dir = tempfile::tempdir().unwrap();
    let table = open(dir.path());
    for n in 0..50u8 {
        table.commit(&[put(b"u", &[n], &[n; 100])]).unwrap();
    }
    table.db.persist(PersistMode::Buffer).unwrap();
    let journal = files::journals(dir.path()).pop().unwrap();
    let bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    drop(table);
    let whole = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), whole.path());
    let mut counts = Vec::new();
    for cut in (0..end).rev().step_by(197) {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(whole.path(), copy.path());
        let journal = copy.path().join(journal.file_name().unwrap());
        fs::OpenOptions::new().write(true).open(&journal).unwrap().set_len(cut as u64).unwrap();
        let table = open(copy.path());
        let rows = table.scan(TableName::History, b"u", b"", None, false, 100).unwrap();
        assert!(rows.iter().enumerate().all(|(n, (key, _))| key.as_ref() == [n as u8]));
        counts.push(rows.len());
    }
    assert!(counts.is_sorted_by(|a, b| a >= b), "a shorter journal shows a shorter prefix");
    assert!(counts.contains(&0) && counts[0] >= 48);
}

/// A journal with four large commits, of which two are synced, as a copy
/// to hurt: its folder, its path and where each commit begins.
fn four_commits(sync_last: bool) -> (tempfile::TempDir, std::path::PathBuf, Vec<usize>) {
    let dir = tempfile::tempdir().unwrap();
    let table = open(dir.path());
    for n in 0..4u8 {
        table.commit(&[put(b"u", &[n], &[b'A' + n; 9_000])]).unwrap();
        if n == 1 || (n == 3 && sync_last) {
            table.sync().unwrap();
        }
    }
    table.db.persist(PersistMode::Buffer).unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), copy.path());
    let journal = files::journals(copy.path()).pop().unwrap();
    let bytes = fs::read(&journal).unwrap();
    let at = |n| memchr::memmem::find(&bytes, &[b'A' + n; 9_000]).unwrap();
    let commits = (0..4).map(at).collect();
    (copy, journal, commits)
}

/// Zeroes a piece of the value that begins at `at`, as a page that was lost.
fn lose(journal: &Path, at: usize) {
    let file = fs::OpenOptions::new().write(true).open(journal).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4_096], at as u64 + 600).unwrap();
}

#[test]
fn a_torn_end_is_cut_before_the_first_bad_commit() {
    for (lost, kept) in [(2, 2), (3, 3)] {
        let (dir, journal, commits) = four_commits(false);
        lose(&journal, commits[lost]);
        for _ in 0..2 {
            let table = open(dir.path());
            let rows = table.scan(TableName::History, b"u", b"", None, false, 9).unwrap();
            assert_eq!(rows.len(), kept);
            table.commit(&[put(b"later", &[0], b"v")]).unwrap();
            table.sync().unwrap();
        }
    }
}

#[test]
fn damage_in_the_synced_part_of_the_journal_is_named_and_not_cut() {
    for (sync_last, hurt) in [(false, 0), (false, 1), (true, 2), (true, 3)] {
        let (dir, journal, commits) = four_commits(sync_last);
        lose(&journal, commits[hurt]);
        for _ in 0..2 {
            match LsmTable::open(dir.path(), &small()) {
                Err(StoreError::Damaged { file, offset, .. }) => {
                    assert_eq!(file, journal);
                    assert!(offset as usize <= commits[hurt]);
                }
                other => panic!("commit {hurt}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_folder_whose_making_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("0.jnl"), [0; 64]).unwrap();
    fs::create_dir_all(dir.path().join("keyspaces/0")).unwrap();
    for version in [None, Some(&b""[..]), Some(b"FJL")] {
        if let Some(version) = version {
            fs::write(dir.path().join("version"), version).unwrap();
        }
        let table = open(dir.path());
        assert_eq!(table.verify().unwrap(), 0);
        table.commit(&[put(b"u", b"k", b"v")]).unwrap();
        drop(table);
        assert_eq!(open(dir.path()).verify().unwrap(), 1);
        fs::remove_file(dir.path().join("version")).unwrap();
    }
}

fn copy_dir(from: &Path, to: &Path) {
    for file in files::all(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        // The journal is 64 MiB of mostly nothing.
        let mut bytes = fs::read(&file).unwrap();
        if file.extension().is_some_and(|extension| extension == "jnl") {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
            bytes.truncate(end + 64);
        }
        fs::write(target, bytes).unwrap();
    }
}

/// Everything the table answers, or the first error.
fn read_all(dir: &Path) -> Result<(u64, Vec<Row>), StoreError> {
    let table = LsmTable::open(dir, &small())?;
    let mut rows = Vec::new();
    for name in TableName::ALL {
        table.walk(name, b"", &mut |row| {
            rows.push(row);
            true
        })?;
    }
    Ok((table.verify()?, rows))
}

#[test]
fn a_changed_byte_in_a_data_file_is_named_and_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let table = open(dir.path());
    crowd(&table);
    table.purge(TableName::History).unwrap();
    drop(table);
    let whole = read_all(dir.path()).unwrap();
    let data: Vec<_> = files::all(dir.path())
        .into_iter()
        .filter(|file| file.parent().unwrap().ends_with("1/tables"))
        .collect();
    assert!(!data.is_empty());
    let mut named = 0;
    for file in &data {
        let length = fs::metadata(file).unwrap().len() as usize;
        // All over the file, and its end, which says where the rest lies.
        let end = (length.saturating_sub(96)..length).step_by(7);
        for at in (0..length).step_by(length / 20).chain(end) {
            let copy = tempfile::tempdir().unwrap();
            copy_dir(dir.path(), copy.path());
            let hurt = copy.path().join(file.strip_prefix(dir.path()).unwrap());
            let mut bytes = fs::read(&hurt).unwrap();
            bytes[at] ^= 0x10;
            fs::write(&hurt, bytes).unwrap();
            match read_all(copy.path()) {
                Err(StoreError::Damaged { file, .. }) => named += usize::from(file == hurt),
                Err(other) => panic!("byte {at} of {}: {other}", file.display()),
                Ok(found) => panic!("byte {at}: served {}, was {}", found.0, whole.0),
            }
        }
    }
    assert!(named > 15, "the file itself is named: {named}");
}

#[test]
fn a_commit_over_the_bounds_is_the_callers_mistake() {
    let dir = tempfile::tempdir().unwrap();
    let table = open(dir.path());
    let huge = catch_unwind(AssertUnwindSafe(|| table.commit(&[put(&[b'k'; 513], b"", b"")])));
    assert!(huge.is_err());
    table.commit(&[put(&[b'k'; 512], &[0; 512], b"v")]).unwrap();
}

#[test]
fn a_commit_is_refused_while_little_space_is_free_and_taken_when_there_is_more() {
    let dir = tempfile::tempdir().unwrap();
    let commit = Commit {
        table: TableName::Meta,
        partition_key: "k".into(),
        ops: vec![Op::Put { sort_key: "s".into(), value: "v".into() }],
    };
    let greedy = LsmOptions { free_bytes_min: u64::MAX, ..small() };
    let table = LsmTable::open(dir.path(), &greedy).unwrap();
    let refused = table.commit(std::slice::from_ref(&commit));
    assert!(matches!(refused, Err(StoreError::NoSpace { .. })), "{refused:?}");
    assert_eq!(table.get(TableName::Meta, b"k", b"s").unwrap(), None);
    drop(table);
    let table = LsmTable::open(dir.path(), &small()).unwrap();
    table.commit(&[commit]).unwrap();
    assert_eq!(table.get(TableName::Meta, b"k", b"s").unwrap().as_deref(), Some(&b"v"[..]));
}
