//! How many records of 110 bytes does the log make durable, in batches of 8 of
//! 64 streams, on one core?
//!
//! Sketch: a batch is 0.9 KiB; one copy, one index entry and a tenth of a sync
//! make 2 us of it, so that 8 records take 3 us with their building: 2.5M/s.
//! What the disk writes (twice: journal, then segments) binds first.
//!
//! Run: `taskset -c 1 cargo run --release -p tideline-store --example journal_rate -- DIR [SECONDS]`

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tideline_record::batch::BatchBuilder;
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::{AppendError, Journal, StoreError, SyncWatcher};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, StreamId};

const STREAMS: u16 = 64;
const BATCH: usize = 8;
/// Batches that wait for their sync, at most: what a window of callers holds.
const WINDOW: u64 = 4_096;

#[derive(Default)]
struct Synced(AtomicU64);

impl SyncWatcher for Synced {
    fn synced(&self, _: StreamId, through: Seq) {
        self.0.store(through.0, Ordering::Release);
    }
    fn failed(&self, _: StreamId, error: &StoreError) {
        panic!("{error}");
    }
    fn dropped(&self, _: StreamId, _: Seq, error: &StoreError) {
        panic!("{error}");
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().unwrap_or_else(|| "/tmp/journal-rate".into()));
    let seconds = args.next().and_then(|s| s.parse().ok()).unwrap_or(5);
    let journal = LocalJournal::open(&dir, JournalOptions::default()).expect("the folder opens");
    let incarnation = Incarnation(journal.streams().last().map_or(1, |s| s.incarnation.0 + 1));
    let streams: Vec<_> =
        (0..STREAMS).map(|n| StreamId { incarnation, partition: PartitionId(n) }).collect();
    journal.create(&streams).expect("streams are made");
    let watchers: Vec<Arc<Synced>> = streams
        .iter()
        .map(|id| {
            let synced = Arc::new(Synced::default());
            journal.fence(*id, synced.clone()).expect("a fence");
            synced
        })
        .collect();
    let value = [7; 100];
    let (start, before) = (Instant::now(), journal.usage());
    let (mut rounds, mut full, mut building) = (0_u64, 0_u64, Duration::ZERO);
    while start.elapsed() < Duration::from_secs(seconds) {
        let begun = Instant::now();
        let first = Seq(rounds * BATCH as u64 + 1);
        let batches: Vec<_> = streams
            .iter()
            .map(|id| {
                let mut batch = BatchBuilder::new(*id, Epoch(1), first);
                for _ in 0..BATCH {
                    batch.push(Millis(1_796_000_000_000), b"user 12345", &value);
                }
                batch.finish()
            })
            .collect();
        building += begun.elapsed();
        for (id, batch) in streams.iter().zip(batches) {
            while let Err(error) = journal.append(*id, batch.clone()) {
                assert!(matches!(error, AppendError::Full { .. }), "{error}");
                full += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        rounds += 1;
        let window = WINDOW / u64::from(STREAMS) * BATCH as u64;
        while watchers[0].0.load(Ordering::Acquire) + window < rounds * BATCH as u64 {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    while watchers.iter().any(|w| w.0.load(Ordering::Acquire) < rounds * BATCH as u64) {
        std::thread::yield_now();
    }
    let (elapsed, after) = (start.elapsed().as_secs_f64(), journal.usage());
    let records = (rounds * u64::from(STREAMS) * BATCH as u64) as f64;
    let appended = (after.appended_bytes - before.appended_bytes) as f64;
    println!(
        "{:.0} records/s, {:.1} MB/s appended, {:.0} syncs/s, {:.2} s of {elapsed:.2} s in building, full {full} times",
        records / elapsed,
        appended / elapsed / 1e6,
        (after.syncs - before.syncs) as f64 / elapsed,
        building.as_secs_f64(),
    );
    let closing = Instant::now();
    journal.close().expect("it closes");
    println!("closed in {:.2} s", closing.elapsed().as_secs_f64());
}
