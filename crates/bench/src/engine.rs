//! How many marks a second does `History` take without a network, with every
//! write synced before it is answered?
//!
//! The handle over the default engines, as the server puts them together:
//! what the network's lines cost beyond this is the network's.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tideline_history::History;
use tideline_history::mark::{Ack, MarkSet, Path as Way, Verdict};
use tideline_history::query::{Filter, ListQuery, PageAt};
use tideline_queue::Queue;
use tideline_store::local::{JournalOptions, LocalJournal, LsmOptions, LsmTable};
use tideline_store::{Journal, RealClock, Table};
use tideline_types::UserId;

use crate::BenchError;
use crate::data::{DataSet, Fields, Key, Random, push_user};
use crate::in_process::{Found, mark_of, rules};
use crate::stage::BATCH;

/// Writes under way at a time, as over the network.
const UNDER_WAY: usize = 16;
/// As by default.
const PARTITIONS: u16 = 64;

/// Writes all of `data`, then lists active users' newest 20.
pub(crate) fn history(data: &DataSet, dir: &Path) -> Result<Found, BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| BenchError::io("runtime", &e))?;
    runtime.block_on(async {
        let journal: Arc<dyn Journal> =
            Arc::new(LocalJournal::open(&dir.join("log"), JournalOptions::default())?);
        let table: Arc<dyn Table> =
            Arc::new(LsmTable::open(&dir.join("tables"), &LsmOptions::default())?);
        let clock = Arc::new(RealClock::new());
        let queue = Queue::open(journal.clone(), table.clone(), clock.clone(), Default::default())
            .map_err(|e| BenchError::Ours(e.to_string()))?;
        let options = Default::default();
        let history = History::open(queue, table, clock, Arc::new(rules()), options, PARTITIONS)?;
        let mut found = write(&history, data).await?;
        found.list_ns = list(&history, data).await?;
        found.disk = crate::ours::bytes_below(dir);
        history.close(std::time::Duration::from_secs(10));
        Ok(found)
    })
}

async fn write(history: &History, data: &DataSet) -> Result<Found, BenchError> {
    let keys = data.in_order_of_time();
    let mut found = Found::default();
    let mut spent = 0.0;
    for some in keys.chunks(1_000_000) {
        // Made before the clock starts.
        let sets: Vec<Arc<MarkSet>> =
            some.chunks(BATCH).map(|keys| Arc::new(set(data, keys))).collect();
        let sets = Arc::new(sets);
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let tasks = (0..UNDER_WAY).map(|_| {
            let (history, sets, next) = (history.clone(), sets.clone(), next.clone());
            tokio::spawn(async move {
                let mut accepted = 0;
                while let Some(set) = sets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdicts = history.write(set.clone(), 0, Way::Live, Ack::Durable).await;
                    let verdicts = verdicts.map_err(|e| BenchError::Ours(e.to_string()))?;
                    let taken = |v: &&Verdict| matches!(v, Verdict::Accepted { .. });
                    accepted += verdicts.iter().filter(taken).count() as u64;
                }
                Ok::<_, BenchError>(accepted)
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            found.marks += task.await.map_err(|e| BenchError::Ours(e.to_string()))??;
        }
        spent += start.elapsed().as_secs_f64();
    }
    found.write_ns = spent * 1e9 / keys.len().max(1) as f64;
    Ok(found)
}

fn set(data: &DataSet, keys: &[Key]) -> MarkSet {
    let (mut set, mut fields) = (MarkSet::with_capacity(keys.len()), Fields::default());
    for &key in keys {
        data.fields(&data.spec(key), &mut fields);
        set.push(&mark_of(&fields));
    }
    set
}

async fn list(history: &History, data: &DataSet) -> Result<f64, BenchError> {
    let mut random = Random::new(2);
    let users: Vec<UserId> = (0..200_000)
        .map(|_| {
            let mut name = String::new();
            push_user(data.active_user(random.draw()), &mut name);
            UserId::new(&name).expect("ten digits are an id")
        })
        .collect();
    let query = ListQuery { filter: Filter::default(), page: PageAt::Below(None), limit: 20 };
    let start = Instant::now();
    for user in &users {
        let list = history.list(user, query.clone()).await;
        list.map_err(|e| BenchError::Ours(e.to_string()))?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / users.len() as f64)
}
