//! How many bytes of disk does a cold day row cost, and how fast is it loaded?
//!
//! Rows of (user, kind, day) with 1 to 5 marks of 12 random bytes each, as the
//! history writes them late: 200,000 users in random order, their rows of a
//! day together, batches of 500 rows. Random values do not compress, so what
//! is over the raw bytes is the engine's own.
//! Sketch: a row's value type, sequence number, lengths and what a key does not
//! share with the one before are about 10 bytes; blocks and index 1%.
//!
//! Run: `cargo bench -p tideline-store --bench day_rows [-- USERS [BLOCK_BYTES RESTART]…]`

use std::time::Instant;

use bytes::Bytes;
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_store::{Commit, Op, Table, TableName};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
}

/// A user's partition key: its decimal id in a compact binary form.
fn user_key(user: u64) -> Vec<u8> {
    let id = 10_000_000_000 + user.wrapping_mul(7_919) % 90_000_000_000;
    let bytes = id.to_be_bytes();
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(7);
    [&[(8 - first) as u8 + 2], &bytes[first..]].concat()
}

fn measure(
    users: u64,
    block_bytes: u32,
    restart_interval: u8,
) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let options = LsmOptions { block_bytes, restart_interval, ..LsmOptions::default() };
    let table = LsmTable::open(dir.path(), &options)?;
    let mut random = Random(42);
    let (mut rows, mut marks, mut key_bytes, mut value_bytes) = (0u64, 0u64, 0u64, 0u64);
    let started = Instant::now();
    let mut batch = Vec::new();
    // Each user comes by several times, as a flush of the dirty ones would have it.
    for _visit in 0..3 {
        for _ in 0..users {
            let user = random.below(users);
            let mut ops = Vec::new();
            for _ in 0..1 + random.below(6) {
                let count = if random.below(2) == 0 { 1 } else { 1 + random.below(5) };
                let sort_key =
                    [&[b'v'][..], &(20_400 + random.below(90) as u16).to_be_bytes()].concat();
                let value: Vec<u8> = (0..count * 12).map(|_| random.next() as u8).collect();
                ops.push(Op::Put { sort_key: sort_key.into(), value: value.into() });
            }
            let partition_key = Bytes::from(user_key(user));
            batch.push(Commit { table: TableName::History, partition_key, ops });
            if batch.len() >= 150 {
                table.commit(&std::mem::take(&mut batch))?;
            }
        }
    }
    table.commit(&batch)?;
    let loaded = started.elapsed();
    table.purge(TableName::History)?;
    let purged = started.elapsed() - loaded;
    table.walk(TableName::History, b"", &mut |row| {
        rows += 1;
        marks += row.value.len() as u64 / 12;
        key_bytes += (row.partition_key.len() + row.sort_key.len()) as u64;
        value_bytes += row.value.len() as u64;
        true
    })?;
    let data: u64 = walk_files(&dir.path().join("keyspaces"));
    let reads = 20_000;
    let started = Instant::now();
    let mut slowest = std::time::Duration::ZERO;
    let mut found = 0;
    for _ in 0..reads {
        let one = Instant::now();
        let key = user_key(random.below(users));
        found += table.scan(TableName::History, &key, b"", None, false, usize::MAX)?.len();
        slowest = slowest.max(one.elapsed());
    }
    let read = started.elapsed();
    let over = |n: u64| n as f64 / rows as f64;
    println!(
        "block {block_bytes:>6} restart {restart_interval:>3}: {rows} rows, {marks} marks; \
         raw value {:.1} + key {:.1} B/row; disk {:.2} B/row = {:.2} over raw value, {:.2} B/mark; \
         load {:.0}k rows/s, purge {:.1} s; a user's rows ({:.1}) in {:.1} us, max {:.1} ms",
        over(value_bytes),
        over(key_bytes),
        over(data),
        over(data) - over(value_bytes),
        data as f64 / marks as f64,
        rows as f64 / loaded.as_secs_f64() / 1e3,
        purged.as_secs_f64(),
        f64::from(found as u32) / f64::from(reads),
        read.as_secs_f64() * 1e6 / f64::from(reads),
        slowest.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn walk_files(dir: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => walk_files(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let users = numbers.first().copied().unwrap_or(200_000);
    let defaults = LsmOptions::default();
    let mut pairs: Vec<(u32, u8)> = numbers
        .get(1..)
        .unwrap_or_default()
        .chunks_exact(2)
        .map(|pair| (pair[0] as u32, pair[1] as u8))
        .collect();
    if pairs.is_empty() {
        pairs.push((defaults.block_bytes, defaults.restart_interval));
    }
    for (block_bytes, restart_interval) in pairs {
        measure(users, block_bytes, restart_interval)?;
    }
    Ok(())
}
