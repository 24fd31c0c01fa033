//! What stays bounded when something is stuck or out of proportion.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use jiff::tz::TimeZone;
use tideline_history::mark::{Ack, Mark, MarkSet, Path as MarkPath, Verdict};
use tideline_history::owner::Refusal;
use tideline_history::query::Filter;
use tideline_history::{History, Options, prepare};
use tideline_queue::Queue;
use tideline_store::disk::FaultyDisk;
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::mem::{MemTable, TableCall};
use tideline_store::{Clock, ManualClock, StoreError};
use tideline_types::UserId;
use tokio::task::JoinSet;

use crate::site::{PARTITIONS, START, Site, video};

const LOG_BYTES_MAX: u64 = 400_000;

/// A history over the log on a disk of memory, with a bound.
struct House {
    disk: FaultyDisk,
    table: Arc<MemTable>,
    clock: Arc<ManualClock>,
    queue: Queue,
    history: History,
}

impl House {
    fn open(disk: FaultyDisk, table: Arc<MemTable>, clock: Arc<ManualClock>) -> Self {
        let log = JournalOptions { max_bytes: LOG_BYTES_MAX, ..JournalOptions::default() };
        let on = Arc::new(disk.clone());
        let journal = Arc::new(LocalJournal::open_on(on, Path::new("/log"), log).unwrap());
        let rules = Arc::new(prepare(&*table, vec![video()], TimeZone::UTC).unwrap());
        let (t, c) = (table.clone(), clock.clone());
        let bound =
            tideline_queue::Options { log_bytes_target: LOG_BYTES_MAX / 2, ..Default::default() };
        let queue = Queue::open(journal, t.clone(), c.clone(), bound).unwrap();
        let options = Options { flush_after: Duration::from_secs(1), ..Options::default() };
        let history = History::open(queue.clone(), t, c, rules, options, 4).unwrap();
        Self { disk, table, clock, queue, history }
    }

    /// Bytes of the log's files.
    fn log_bytes(&self) -> u64 {
        self.disk.files().iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// One durable write of 20 marks of one user, `n` apart from all others.
    async fn write(&self, n: u64) -> Result<(), Refusal> {
        let (user, kind) = (user_of(n), self.history.kinds().find("video").unwrap());
        let mut set = MarkSet::with_capacity(20);
        for at in 0..20 {
            set.push(&Mark {
                user: &user,
                kind,
                id: &format!("{n}-{at}"),
                part: Some("a part with a name of some length"),
                position_ms: Some(1000),
                duration_ms: None,
                sent_ms: None,
                device: Some("a device with a name of some length"),
                group: None,
                finished: false,
                event_id: None,
            });
        }
        self.history.write(set, 0, MarkPath::Live, Ack::Durable).await.map(drop)
    }

    async fn count(&self, user: &str) -> Result<usize, Refusal> {
        self.history.count(&UserId::new(user).unwrap(), Filter::default()).await
    }
}

fn user_of(n: u64) -> String {
    format!("user-{}", n % 50)
}

/// Writes for ten minutes while `stuck`, then calls `free` and writes again.
async fn stuck_for_ten_minutes(house: House, free: impl FnOnce(&House)) {
    let mut taken = vec![0; 50];
    let (mut refused, mut n) = (0, 0);
    let end = house.clock.now().plus(600_000);
    while house.clock.now() < end {
        n += 1;
        match house.write(n).await {
            Ok(()) => taken[(n % 50) as usize] += 20,
            Err(Refusal::NoSpace(_)) => refused += 1,
            // The partition that was refused takes itself back to what is safe.
            Err(Refusal::Overloaded(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(house.log_bytes() <= LOG_BYTES_MAX, "{} bytes", house.log_bytes());
        house.clock.advance(1000);
        tokio::task::yield_now().await;
    }
    assert!(refused > 0, "the log had room for {n} writes");
    assert!(house.log_bytes() > LOG_BYTES_MAX / 2, "{} bytes", house.log_bytes());

    free(&house);
    // Nobody waits for the table to catch up: callers of every partition go on
    // trying.
    let house = Arc::new(house);
    let mut callers = JoinSet::new();
    for user in 0..50 {
        let house = house.clone();
        callers.spawn(async move {
            while house.write(10_000 + user).await.is_err() {
                tokio::task::yield_now().await;
            }
        });
        taken[user as usize] += 20;
    }
    while !callers.is_empty() {
        house.clock.advance(100);
        house.queue.run_retention(house.clock.now()).unwrap();
        while callers.try_join_next().is_some_and(|caller| caller.is_ok()) {}
        tokio::task::yield_now().await;
    }
    for (user, taken) in taken.iter().enumerate() {
        let user = user_of(user as u64);
        // A write that was refused may have been taken in part: never less.
        assert!(house.count(&user).await.unwrap() >= *taken, "{user}");
    }
    house.history.close(Duration::ZERO);
}

fn house() -> House {
    House::open(FaultyDisk::new(), Arc::default(), Arc::new(ManualClock::at(START)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_refuses_for_ten_minutes_keeps_the_log_within_its_bound_and_all_recovers() {
    let house = house();
    house.table.set_fault(|call| match call {
        TableCall::Commit => Err(StoreError::Io { what: "commit".into(), cause: "told to".into() }),
        _ => Ok(()),
    });
    stuck_for_ten_minutes(house, |house| house.table.clear_fault()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_stands_still_for_ten_minutes_keeps_the_log_within_its_bound_and_all_recovers()
{
    let house = house();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let at = gate.clone();
    house.table.set_fault(move |call| {
        if call == TableCall::Commit {
            let open = at.0.lock().unwrap();
            drop(at.1.wait_while(open, |open| !*open).unwrap());
        }
        Ok(())
    });
    stuck_for_ten_minutes(house, |_| {
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    })
    .await;
}

/// Bytes of one partition that a start may read back into memory.
const LAG_BYTES_MAX: usize = 256 << 10;

/// Lets ten users watch one video each until nothing of theirs is taken.
async fn write_until_refused(site: &Site) {
    let (mut n, mut refused) = (0, 0);
    while refused < 100 && n < 100_000 {
        n += 1;
        match site.try_write(&format!("u{}", n % 10), &["a"], n).await {
            Ok(_) => refused = 0,
            Err(Refusal::Overloaded(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        site.clock.advance(1);
    }
}

fn lag_bytes(site: &Site) -> usize {
    site.history.stats().iter().map(|(_, stats)| stats.lag_bytes).max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_must_read_is_bounded_and_a_start_with_a_stuck_table_answers_reads() {
    let partitions = usize::from(PARTITIONS);
    let options = Options { hot_budget_bytes: LAG_BYTES_MAX * partitions, ..Options::default() };
    let site = Site::new(&options);
    assert_eq!(site.write("u3", &["a"], 0).await.len(), 1);
    let stuck = |table: &MemTable| {
        table.set_fault(|call| match call {
            TableCall::Commit => Err(StoreError::Failed { what: "x".into(), cause: "y".into() }),
            _ => Ok(()),
        });
    };
    stuck(&site.table);
    write_until_refused(&site).await;
    // Above the bound by one pack at most, and early flushes were tried.
    let lag = lag_bytes(&site);
    assert!(lag > LAG_BYTES_MAX && lag < LAG_BYTES_MAX / 4 * 5, "{lag} bytes");

    let site = site.crash_into(&options, 0, stuck);
    assert_eq!(lag_bytes(&site), lag);
    assert_eq!(site.ids("u3").await, ["a"]);
    let hot: usize = site.history.stats().iter().map(|(_, stats)| stats.hot_bytes).sum();
    assert!(hot < options.hot_budget_bytes / 4 * 5, "{hot} bytes");
    assert!(matches!(site.try_write("u3", &["a"], 1 << 30).await, Err(Refusal::Overloaded(_))));

    site.table.clear_fault();
    site.until_at_rest().await;
    assert_eq!(lag_bytes(&site), 0);
    assert!(site.try_write("u3", &["a"], 1 << 30).await.is_ok());
    site.history.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_less_memory_than_the_log_holds_brings_it_to_rest_and_loses_nothing() {
    let site = Site::new(&Options::default());
    let user = |n: i64| format!("user-{n}");
    for n in 0..400 {
        site.write(&user(n), &["a", "b"], n).await;
    }
    site.until_at_rest().await;
    for n in 0..1000 {
        site.write(&user(n), &["b", "c"], 1000 + n).await;
    }
    // At rest before and changed since, changed since alone, and neither.
    for n in [7, 700, 7000] {
        site.history.erase(&UserId::new(&user(n)).unwrap()).await.unwrap();
    }
    let kept: usize = site.history.stats().iter().map(|(_, stats)| stats.hot_bytes).sum();
    let small = Options { hot_budget_bytes: kept / 10, ..Options::default() };
    let site = site.crash(&small, 0);
    let held: usize = site.history.stats().iter().map(|(_, stats)| stats.hot_bytes).sum();
    assert!(held < kept / 8, "{held} bytes of {kept}");
    for (n, ids) in [(6, "cba"), (399, "cba"), (400, "cb"), (999, "cb"), (7, ""), (700, "")] {
        assert_eq!(site.ids(&user(n)).await.concat(), ids, "user {n}");
    }
    // What came before the erase stays away, what comes after it counts.
    for n in [7, 700, 7000] {
        let stale = site.write(&user(n), &["a"], 0).await;
        assert!(!matches!(stale[..], [Verdict::Accepted { .. }]), "user {n}: {stale:?}");
    }
    site.history.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_a_purge_beyond_its_limit() {
    let site = Site::new(&Options { flush_after: Duration::ZERO, ..Options::default() });
    site.write("u", &["a"], 0).await;
    site.history.erase(&UserId::new("u").unwrap()).await.unwrap();
    site.until_at_rest().await;
    // Held up until the stop is through; a while, so that a failure ends.
    let (purging, stopped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begins, ends) = (purging.clone(), stopped.clone());
    let gave_up = Arc::new(AtomicBool::new(false));
    let gives_up = gave_up.clone();
    site.table.set_fault(move |call| {
        if call == TableCall::Purge {
            begins.store(true, Ordering::SeqCst);
            let since = std::time::Instant::now();
            while !ends.load(Ordering::SeqCst) && !gives_up.load(Ordering::SeqCst) {
                gives_up.store(since.elapsed() > Duration::from_secs(20), Ordering::SeqCst);
                std::thread::yield_now();
            }
        }
        Ok(())
    });
    while !purging.load(Ordering::SeqCst) {
        site.clock.advance(3_600_000);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    site.history.close(Duration::ZERO);
    stopped.store(true, Ordering::SeqCst);
    assert!(!gave_up.load(Ordering::SeqCst), "the stop waited for the purge");
}
