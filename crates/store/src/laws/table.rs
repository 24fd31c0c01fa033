//! The laws of [`Table`], for every engine.
//!
//! [`run`] panics with the law that an engine breaks. Random steps are the
//! same on every run; what power loss may do is for the engine's own tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;

use crate::{Commit, Op, Row, StoreError, Table, TableName};

/// An engine under test.
pub trait Engine {
    /// The open table.
    fn table(&self) -> Arc<dyn Table>;
    /// Stops in order and opens again on the same bytes. Nothing else holds
    /// the table when it is called.
    fn reopen(&mut self);
    /// Opens what [`Table::backup`] wrote into `dir`.
    fn open_copy(&self, dir: &Path) -> Arc<dyn Table>;
}

/// Holds `make`'s engine to every law; each is shown a fresh engine.
pub fn run(make: &dyn Fn() -> Box<dyn Engine>) {
    what_is_put_is_read_until_it_is_replaced_or_deleted(&*make());
    ops_of_a_commit_apply_in_order(&*make());
    scans_are_ordered_and_keep_to_their_partition_key(&*make());
    tables_are_apart(&*make());
    a_walk_sees_every_row_of_its_prefix_together(&*make());
    a_walk_ends_when_told(&*make());
    readers_see_whole_commits(&*make());
    an_orderly_restart_keeps_what_is_synced(&mut *make());
    a_purge_keeps_what_is_live(&mut *make());
    a_backup_holds_the_rows_of_one_moment(&*make());
    random_steps_agree_with_a_plain_map(&mut *make(), 7, 1_500);
}

const T: TableName = TableName::History;

/// Keys at which encodings break: empty, special bytes, prefixes of others.
const KEYS: [&[u8]; 14] = [
    b"",
    b"\0",
    b"\0\0",
    b"\0\x01",
    b"\0\xff",
    b"\x01",
    b"\x01\x01",
    b"\x01\x02",
    b"a",
    b"a\0",
    b"a\0b",
    b"ab",
    b"\xff",
    b"\xff\xff",
];

fn expect<T>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| panic!("the engine failed: {error}"))
}

fn put(sort_key: &[u8], value: &[u8]) -> Op {
    let copy = Bytes::copy_from_slice;
    Op::Put { sort_key: copy(sort_key), value: copy(value) }
}

fn delete(sort_key: &[u8]) -> Op {
    Op::Delete { sort_key: Bytes::copy_from_slice(sort_key) }
}

fn commit(table: TableName, partition_key: &[u8], ops: Vec<Op>) -> Commit {
    Commit { table, partition_key: Bytes::copy_from_slice(partition_key), ops }
}

fn sort_keys(rows: &[(Bytes, Bytes)]) -> Vec<&[u8]> {
    rows.iter().map(|(sort_key, _)| sort_key.as_ref()).collect()
}

fn walked(table: &dyn Table, of: TableName, prefix: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    expect(table.walk(of, prefix, &mut |row| {
        rows.push(row);
        true
    }));
    rows
}

fn what_is_put_is_read_until_it_is_replaced_or_deleted(engine: &dyn Engine) {
    let table = engine.table();
    assert_eq!(expect(table.get(T, b"u", b"k")), None);
    for value in [&b"1"[..], b"", b"longer than before"] {
        expect(table.commit(&[commit(T, b"u", vec![put(b"k", value)])]));
        assert_eq!(expect(table.get(T, b"u", b"k")).as_deref(), Some(value), "read your write");
    }
    expect(table.commit(&[commit(T, b"u", vec![delete(b"k"), delete(b"absent")])]));
    assert_eq!(expect(table.get(T, b"u", b"k")), None, "a deleted row is gone");
    let large = vec![7u8; 1 << 20];
    expect(table.commit(&[commit(T, b"u", vec![put(b"large", &large)])]));
    assert_eq!(expect(table.get(T, b"u", b"large")).as_deref(), Some(&large[..]));
    expect(table.commit(&[]));
    expect(table.commit(&[commit(T, b"u", vec![])]));
}

fn ops_of_a_commit_apply_in_order(engine: &dyn Engine) {
    let table = engine.table();
    let ops = vec![put(b"a", b"1"), delete(b"a"), put(b"b", b"1"), put(b"b", b"2"), delete(b"c")];
    expect(table.commit(&[
        commit(T, b"u", ops),
        commit(T, b"u", vec![put(b"c", b"1")]),
        commit(T, b"u", vec![put(b"c", b"2")]),
    ]));
    assert_eq!(expect(table.get(T, b"u", b"a")), None, "a later op stands");
    assert_eq!(expect(table.get(T, b"u", b"b")).as_deref(), Some(&b"2"[..]));
    assert_eq!(expect(table.get(T, b"u", b"c")).as_deref(), Some(&b"2"[..]));
}

fn scans_are_ordered_and_keep_to_their_partition_key(engine: &dyn Engine) {
    let table = engine.table();
    for partition_key in &KEYS[1..] {
        let ops = KEYS.iter().map(|key| put(key, &[partition_key, *key].concat())).collect();
        expect(table.commit(&[commit(T, partition_key, ops)]));
    }
    for partition_key in &KEYS[1..] {
        let all = expect(table.scan(T, partition_key, b"", None, false, usize::MAX));
        assert_eq!(sort_keys(&all), KEYS, "rows of {partition_key:?} alone, in byte order");
        for (sort_key, value) in &all {
            assert_eq!(value, &[partition_key, sort_key.as_ref()].concat());
        }
        for (low, from) in KEYS.iter().enumerate() {
            let mut back = expect(table.scan(T, partition_key, from, None, true, usize::MAX));
            back.reverse();
            assert_eq!(sort_keys(&back), KEYS[low..], "reverse is the same rows from the end");
            for (high, to) in KEYS.iter().enumerate() {
                let rows = expect(table.scan(T, partition_key, from, Some(to), false, usize::MAX));
                assert_eq!(sort_keys(&rows), KEYS[low.min(high)..high], "from {from:?} to {to:?}");
            }
        }
        let two = expect(table.scan(T, partition_key, b"", None, true, 2));
        assert_eq!(sort_keys(&two), [KEYS[13], KEYS[12]], "a limit counts from the start");
        assert!(expect(table.scan(T, partition_key, b"", None, false, 0)).is_empty());
    }
    assert!(expect(table.scan(T, b"nobody", b"", None, false, 9)).is_empty());
}

fn tables_are_apart(engine: &dyn Engine) {
    let table = engine.table();
    for of in TableName::ALL {
        expect(table.commit(&[commit(of, b"u", vec![put(b"k", of.as_str().as_bytes())])]));
    }
    for of in TableName::ALL {
        let value = expect(table.get(of, b"u", b"k"));
        assert_eq!(value.as_deref(), Some(of.as_str().as_bytes()));
        assert_eq!(walked(&*table, of, b"").len(), 1);
    }
}

fn a_walk_sees_every_row_of_its_prefix_together(engine: &dyn Engine) {
    let table = engine.table();
    for partition_key in &KEYS[1..] {
        let ops = KEYS.iter().map(|key| put(key, b"v")).collect();
        expect(table.commit(&[commit(T, partition_key, ops)]));
    }
    for prefix in KEYS {
        let rows = walked(&*table, T, prefix);
        let mut seen: Vec<&[u8]> = Vec::new();
        for chunk in rows.chunks(KEYS.len()) {
            let partition_key = chunk[0].partition_key.as_ref();
            assert!(chunk.iter().all(|row| row.partition_key == partition_key), "kept together");
            assert!(chunk.iter().map(|row| row.sort_key.as_ref()).eq(KEYS), "in order");
            seen.push(partition_key);
        }
        seen.sort_unstable();
        let due: Vec<&[u8]> =
            KEYS[1..].iter().copied().filter(|key| key.starts_with(prefix)).collect();
        assert_eq!(seen, due, "prefix {prefix:?}");
    }
    let many: Vec<Commit> = (0..5_000u32)
        .map(|n| commit(T, format!("many-{n:04}").as_bytes(), vec![put(b"", &n.to_le_bytes())]))
        .collect();
    expect(table.commit(&many));
    assert_eq!(walked(&*table, T, b"many-").len(), 5_000);
}

fn a_walk_ends_when_told(engine: &dyn Engine) {
    let table = engine.table();
    for partition_key in [b"a", b"b", b"c"] {
        expect(table.commit(&[commit(T, partition_key, vec![put(b"", b"")])]));
    }
    let mut seen = 0;
    expect(table.walk(T, b"", &mut |_| {
        seen += 1;
        seen < 2
    }));
    assert_eq!(seen, 2);
}

/// A writer gives all rows of a user one number per commit; no reader may see
/// two numbers in one scan, nor see the number fall.
fn readers_see_whole_commits(engine: &dyn Engine) {
    let table = engine.table();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=400u32 {
                let ops = (0..20u8).map(|key| put(&[key], &n.to_be_bytes())).collect();
                expect(table.commit(&[commit(T, b"u", ops)]));
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut newest = Bytes::new();
        loop {
            let last = done.load(Ordering::SeqCst);
            let rows = expect(table.scan(T, b"u", b"", None, false, usize::MAX));
            if let Some((_, first)) = rows.first() {
                assert_eq!(rows.len(), 20, "all of a commit or none");
                assert!(rows.iter().all(|(_, value)| value == first), "a scan saw half a commit");
                assert!(*first >= newest, "a scan went back");
                newest = first.clone();
            }
            if last {
                break;
            }
        }
        assert_eq!(newest.as_ref(), 400u32.to_be_bytes(), "what is committed is read at once");
    });
}

fn an_orderly_restart_keeps_what_is_synced(engine: &mut dyn Engine) {
    let table = engine.table();
    for of in TableName::ALL {
        expect(table.commit(&[commit(of, b"u", vec![put(b"a", b"1"), put(b"b", b"2")])]));
        expect(table.commit(&[commit(of, b"u", vec![delete(b"a")])]));
    }
    expect(table.sync());
    drop(table);
    for _ in 0..2 {
        engine.reopen();
        let table = engine.table();
        for of in TableName::ALL {
            assert_eq!(expect(table.get(of, b"u", b"a")), None, "a delete survives");
            assert_eq!(expect(table.get(of, b"u", b"b")).as_deref(), Some(&b"2"[..]));
        }
        assert_eq!(expect(table.verify()), TableName::ALL.len() as u64, "a live row in each");
    }
}

fn a_purge_keeps_what_is_live(engine: &mut dyn Engine) {
    let table = engine.table();
    for n in 0..500u32 {
        let user = format!("user-{n}");
        let ops = vec![put(b"gone", b"g"), put(b"kept", b"old"), put(b"kept", b"new")];
        expect(table.commit(&[commit(T, user.as_bytes(), ops)]));
        expect(table.commit(&[commit(T, user.as_bytes(), vec![delete(b"gone")])]));
    }
    expect(table.commit(&[commit(TableName::Meta, b"m", vec![put(b"", b"stays")])]));
    expect(table.purge(T));
    let check = |table: &dyn Table| {
        let rows = walked(table, T, b"");
        assert_eq!(rows.len(), 500);
        assert!(rows.iter().all(|row| row.sort_key == "kept" && row.value == "new"));
        assert_eq!(expect(table.get(TableName::Meta, b"m", b"")).as_deref(), Some(&b"stays"[..]));
    };
    check(&*table);
    expect(table.commit(&[commit(T, b"user-1", vec![put(b"later", b"x"), delete(b"later")])]));
    drop(table);
    engine.reopen();
    check(&*engine.table());
}

fn a_backup_holds_the_rows_of_one_moment(engine: &dyn Engine) {
    let table = engine.table();
    for n in 0..1_000u32 {
        let user = format!("user-{n}");
        let ops = vec![put(b"a", &n.to_be_bytes()), put(b"", b"facts")];
        expect(table.commit(&[commit(T, user.as_bytes(), ops)]));
    }
    expect(table.commit(&[commit(TableName::Catalogue, b"item", vec![put(b"", b"title")])]));
    expect(table.commit(&[commit(T, b"user-7", vec![delete(b"a")])]));
    let dir = scratch_dir("backup");
    expect(table.backup(dir.path()));
    expect(table.commit(&[commit(T, b"user-8", vec![put(b"after", b"x")])]));
    let copy = engine.open_copy(dir.path());
    assert_eq!(expect(copy.verify()), 2_000, "1,999 users' rows and a title");
    assert_eq!(expect(copy.get(T, b"user-7", b"a")), None);
    assert_eq!(expect(copy.get(T, b"user-8", b"after")), None, "the copy is a copy");
    assert_eq!(
        expect(copy.get(TableName::Catalogue, b"item", b"")).as_deref(),
        Some(&b"title"[..])
    );
    expect(copy.commit(&[commit(T, b"user-7", vec![put(b"a", b"again")])]));
    assert_eq!(expect(copy.get(T, b"user-7", b"a")).as_deref(), Some(&b"again"[..]));
    assert_eq!(expect(table.get(T, b"user-7", b"a")), None, "and has its own life");
}

/// `steps` random calls, each compared with a `BTreeMap` that had the same.
pub fn random_steps_agree_with_a_plain_map(engine: &mut dyn Engine, seed: u64, steps: u32) {
    let mut random = Random(seed);
    let mut plain: BTreeMap<(TableName, Vec<u8>, Vec<u8>), Vec<u8>> = BTreeMap::new();
    for step in 0..steps {
        let table = engine.table();
        let of = TableName::ALL[random.below(TableName::ALL.len())];
        let partition_key = KEYS[1 + random.below(KEYS.len() - 1)];
        match random.below(100) {
            0..60 => {
                let mut ops = Vec::new();
                for _ in 0..random.below(6) {
                    let sort_key = KEYS[random.below(KEYS.len())];
                    let key = (of, partition_key.to_vec(), sort_key.to_vec());
                    if random.below(4) == 0 {
                        plain.remove(&key);
                        ops.push(delete(sort_key));
                    } else {
                        let value = vec![step as u8; random.below(300)];
                        ops.push(put(sort_key, &value));
                        plain.insert(key, value);
                    }
                }
                expect(table.commit(&[commit(of, partition_key, ops)]));
            }
            60..97 => {
                let (from, to) = (KEYS[random.below(14)], KEYS[random.below(14)]);
                let to = (random.below(3) > 0).then_some(to);
                let (reverse, limit) = (random.below(2) == 0, random.below(16));
                let rows = expect(table.scan(of, partition_key, from, to, reverse, limit));
                let mut due: Vec<(Bytes, Bytes)> = (plain.iter())
                    .filter(|((t, p, s), _)| {
                        *t == of
                            && p == partition_key
                            && s.as_slice() >= from
                            && to.is_none_or(|to| s.as_slice() < to)
                    })
                    .map(|((_, _, s), v)| (s.clone().into(), v.clone().into()))
                    .collect();
                if reverse {
                    due.reverse();
                }
                due.truncate(limit);
                assert_eq!(rows, due, "seed {seed} step {step}");
                let sort_key = KEYS[random.below(14)];
                let due = plain.get(&(of, partition_key.to_vec(), sort_key.to_vec()));
                let found = expect(table.get(of, partition_key, sort_key));
                assert_eq!(found.as_deref(), due.map(Vec::as_slice), "seed {seed} step {step}");
            }
            97 => expect(table.sync()),
            98 if random.below(6) == 0 => {
                expect(table.sync());
                drop(table);
                engine.reopen();
            }
            98 => {
                let rows = walked(&*table, of, b"");
                assert_eq!(rows.len(), plain.keys().filter(|(t, _, _)| *t == of).count());
            }
            _ if random.below(4) == 0 => expect(table.purge(of)),
            _ => assert_eq!(expect(table.verify()), plain.len() as u64),
        }
    }
}

/// xorshift64*: enough to choose test steps, the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

struct ScratchDir(std::path::PathBuf);

impl ScratchDir {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A new empty folder that goes when dropped; laws may not need a test-only
/// dependency.
fn scratch_dir(what: &str) -> ScratchDir {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let name = format!(
        "tideline-laws-{what}-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let dir = std::env::temp_dir().join(name);
    if let Err(error) = std::fs::create_dir_all(&dir) {
        panic!("no scratch folder {}: {error}", dir.display());
    }
    ScratchDir(dir)
}
