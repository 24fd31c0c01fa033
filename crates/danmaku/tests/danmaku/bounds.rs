//! What stays bounded: batches on their way, and what is logged and not at
//! rest.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tideline_danmaku::ask::{Op, Refusal};
use tideline_danmaku::comment::Role;
use tideline_danmaku::options::Options;
use tideline_danmaku::owner::Bounds;
use tideline_danmaku::{STRETCH_MS, cold};
use tideline_store::mem::MemTable;
use tideline_store::{Commit, Row, StoreError, Table, TableName};

use crate::partition::{Partition, actor, bounds, draft};

fn post(n: usize) -> Op {
    Op::Post { draft: draft(&n.to_string(), 0), actor: actor("ann", Role::Viewer) }
}

#[test]
fn a_second_batch_waits_for_the_next_sync_while_a_third_gathers() {
    let mut p = Partition::new(Options::default());
    p.post("v", "ann", draft("0", 0)).unwrap();
    let calls: Vec<u64> = (1..5).map(|n| p.call("v", post(n))).collect();
    assert_eq!(p.unsynced(), 2);
    p.sync_one();
    assert_eq!((p.answers.keys().copied().collect(), p.unsynced()), (vec![calls[0]], 2));
    p.sync_one();
    assert_eq!((p.answers.keys().copied().collect(), p.unsynced()), (calls[..2].to_vec(), 1));
    p.sync_one();
    assert_eq!(p.answers.keys().copied().collect::<Vec<_>>(), calls);
}

#[test]
fn above_the_bound_of_what_is_not_at_rest_reads_alone_are_answered() {
    let bounds = Bounds { lag_bytes_max: 8 << 10, ..bounds() };
    let mut p = Partition::with_bounds(Options::default(), bounds);
    let refused = (0..1000).find_map(|n| p.post("v", "ann", draft(&n.to_string(), 0)).err());
    assert!(matches!(refused, Some(Refusal::Overloaded(_))), "{refused:?}");
    let lag = p.owner.stats().lag_bytes;
    assert!(lag > 8 << 10 && lag < 9 << 10, "{lag} bytes");
    assert!(p.texts("v").len() > 10);
    // Long before the time of a flush.
    p.tick(20);
    while p.commit_one() || p.sync_table() {}
    assert!(p.owner.stats().lag_bytes <= 4 << 10);
    p.post("v", "ann", draft("more", 0)).unwrap();
}

#[test]
fn a_start_with_less_memory_than_the_log_holds_brings_it_to_rest_and_loses_nothing() {
    let mut p = Partition::new(Options::default());
    let video = |n: usize| format!("v{}", n % 20);
    for n in 0..400 {
        if n == 200 {
            p.rest();
        }
        p.post(&video(n), "ann", draft(&n.to_string(), 0)).unwrap();
    }
    let texts: Vec<Vec<String>> = (0..20).map(|n| p.texts(&video(n))).collect();
    assert_eq!(texts[7].len(), 20);
    let lag = p.owner.stats().lag_bytes;
    let short = Bounds { lag_bytes_max: lag / 10, ..bounds() };
    let Partition { table, log, now, .. } = p;
    let mut p = Partition::open(table, log, 2, now, Options::default(), short);
    let left = p.owner.stats().lag_bytes;
    assert!(left < lag / 7, "{left} bytes of {lag}");
    for (n, texts) in texts.iter().enumerate() {
        assert_eq!(p.texts(&video(n)), *texts, "video {n}");
    }
}

/// A table that counts the rows that are read of it.
struct Counting {
    table: MemTable,
    rows: AtomicUsize,
}

impl Counting {
    fn counted<T>(&self, rows: usize, found: T) -> T {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        found
    }
}

impl Table for Counting {
    fn get(&self, table: TableName, key: &[u8], sort: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.counted(1, self.table.get(table, key, sort)?))
    }

    fn scan(
        &self,
        table: TableName,
        key: &[u8],
        from: &[u8],
        to: Option<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        let found = self.table.scan(table, key, from, to, reverse, limit)?;
        Ok(self.counted(found.len(), found))
    }

    fn walk(
        &self,
        table: TableName,
        prefix: &[u8],
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), StoreError> {
        self.table.walk(table, prefix, visit)
    }

    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        self.table.commit(commits)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.table.sync()
    }

    fn purge(&self, table: TableName) -> Result<(), StoreError> {
        self.table.purge(table)
    }

    fn backup(&self, into: &Path) -> Result<(), StoreError> {
        self.table.backup(into)
    }

    fn verify(&self) -> Result<u64, StoreError> {
        self.table.verify()
    }

    fn disk_bytes(&self) -> u64 {
        self.table.disk_bytes()
    }
}

#[test]
fn what_is_read_to_open_a_video_does_not_grow_with_what_it_hides() {
    let mut p = Partition::new(Options { limit: Some(300), ..Options::default() });
    for (video, count) in [("small", 600), ("large", 12_000)] {
        for n in 0..count {
            p.post(video, "ann", draft(&n.to_string(), n % 3 * STRETCH_MS)).unwrap();
        }
        assert_eq!((p.view(video).counted, p.view(video).total), (300, u64::from(count)));
    }
    p.rest();
    let counting = Counting { table: p.table, rows: AtomicUsize::new(0) };
    let [small, large] = ["small", "large"].map(|video| {
        cold::read(&counting, video).unwrap();
        counting.rows.swap(0, Ordering::Relaxed)
    });
    assert_eq!(large, small);
    assert!(large < 3 * 300, "{large} rows");
}
