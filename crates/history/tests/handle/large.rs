//! A user of a hundred times the usual size, beside others in one partition:
//! what the table reads and writes for each is counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use jiff::tz::TimeZone;
use tideline_history::mark::{Ack, Mark, MarkSet, Path as MarkPath};
use tideline_history::query::{Filter, ListQuery, PageAt};
use tideline_history::{History, Options, prepare, rows};
use tideline_queue::Queue;
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{Commit, ManualClock, Op, Row, StoreError, Table, TableName};
use tideline_types::{DAY_MS, UserId};

use crate::site::{START, video};

const USERS: i64 = 20;
const MARKS: i64 = 50;
const LARGE: &str = "large";

/// Rows and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    calls: u64,
    rows: u64,
    bytes: u64,
}

/// By partition key, what was read and what was written.
type Counts = BTreeMap<Vec<u8>, [Work; 2]>;

/// A table in memory that counts.
#[derive(Default)]
struct Counting {
    table: MemTable,
    counts: Mutex<Counts>,
}

impl Counting {
    fn count<'a>(&self, key: &[u8], way: usize, rows: impl Iterator<Item = (&'a Bytes, usize)>) {
        let mut counts = self.counts.lock().unwrap();
        let work = &mut counts.entry(key.to_vec()).or_default()[way];
        work.calls += 1;
        for (sort_key, bytes) in rows {
            work.rows += 1;
            work.bytes += (sort_key.len() + bytes) as u64;
        }
    }
}

impl Table for Counting {
    fn get(&self, table: TableName, key: &[u8], sort: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.table.get(table, key, sort)
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
        let rows = self.table.scan(table, key, from, to, reverse, limit)?;
        if table == TableName::History {
            self.count(key, 0, rows.iter().map(|(sort, value)| (sort, value.len())));
        }
        Ok(rows)
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
        for commit in commits.iter().filter(|commit| commit.table == TableName::History) {
            let rows = commit.ops.iter().map(|op| match op {
                Op::Put { sort_key, value } => (sort_key, value.len()),
                Op::Delete { sort_key } => (sort_key, 0),
            });
            self.count(&commit.partition_key, 1, rows);
        }
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

struct World {
    journal: Arc<MemJournal>,
    table: Arc<Counting>,
    clock: Arc<ManualClock>,
    history: History,
}

impl World {
    fn open(journal: Arc<MemJournal>, table: Arc<Counting>, clock: Arc<ManualClock>) -> Self {
        let rules = Arc::new(prepare(&*table, vec![video()], TimeZone::UTC).unwrap());
        let (j, t, c) = (journal.clone(), table.clone(), clock.clone());
        let queue = Queue::open(j, t.clone(), c.clone(), tideline_queue::Options::default());
        let options = Options { flush_after: Duration::from_millis(500), ..Options::default() };
        let history = History::open(queue.unwrap(), t, c, rules, options, 1).unwrap();
        Self { journal, table, clock, history }
    }

    async fn write(&self, user: &str, from: i64, to: i64, age_ms: i64) {
        let kind = self.history.kinds().find("video").unwrap();
        let mut set = MarkSet::with_capacity((to - from) as usize);
        for n in from..to {
            set.push(&Mark {
                user,
                kind,
                id: &format!("{}", 100_000 + n),
                part: None,
                position_ms: Some(1000),
                duration_ms: Some(9000),
                sent_ms: Some(START.plus(-age_ms)),
                device: None,
                group: None,
                finished: false,
                event_id: None,
            });
        }
        self.history.write(set, 0, MarkPath::Live, Ack::Durable).await.unwrap();
    }

    async fn rest(&self) {
        let dirty = || self.history.stats().iter().any(|(_, s)| s.dirty_users > 0 || s.lag > 0);
        while dirty() {
            self.clock.advance(1000);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// One heartbeat of each user at rest, one page, one count; each comes to
    /// rest again. What that cost, by user.
    async fn an_ordinary_hour(self, users: &[String]) -> BTreeMap<String, [Work; 2]> {
        self.history.close(Duration::ZERO);
        let world = Self::open(self.journal, self.table, self.clock);
        world.table.counts.lock().unwrap().clear();
        for user in users {
            world.write(user, 0, 1, 0).await;
            let id = UserId::new(user).unwrap();
            let page =
                ListQuery { filter: Filter::default(), page: PageAt::Below(None), limit: 20 };
            assert_eq!(world.history.list(&id, page).await.unwrap().rows.len(), 20);
            assert!(world.history.count(&id, Filter::default()).await.unwrap() >= 50);
            world.rest().await;
        }
        world.history.close(Duration::ZERO);
        let counts = world.table.counts.lock().unwrap();
        let of = |user: &String| (user.clone(), counts[&rows::partition_key(user)]);
        users.iter().map(of).collect()
    }
}

/// The work of every user, with or without the large one beside them.
async fn work(with_large: bool) -> BTreeMap<String, [Work; 2]> {
    let (journal, table) = (Arc::new(MemJournal::new()), Arc::new(Counting::default()));
    let world = World::open(journal, table, Arc::new(ManualClock::at(START)));
    let mut users: Vec<String> = (0..USERS).map(|n| format!("user-{n}")).collect();
    for user in &users {
        for day in 0..10 {
            let per_day = MARKS / 10;
            world.write(user, day * per_day, (day + 1) * per_day, day * DAY_MS + 1).await;
        }
    }
    if with_large {
        for day in 0..50 {
            let per_day = MARKS * 100 / 50;
            world.write(LARGE, day * per_day, (day + 1) * per_day, day * DAY_MS + 1).await;
        }
        users.push(LARGE.into());
    }
    world.rest().await;
    world.an_ordinary_hour(&users).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_a_hundred_times_the_usual_size_costs_the_others_nothing() {
    let (alone, beside) = (work(false).await, work(true).await);
    for (user, alone) in &alone {
        for (way, (alone, beside)) in alone.iter().zip(&beside[user]).enumerate() {
            let same = (alone.calls, alone.rows) == (beside.calls, beside.rows);
            // A greater number of the log may take a byte or two more.
            let bytes = alone.bytes.abs_diff(beside.bytes) <= 2 * alone.rows;
            assert!(same && bytes, "{user}, way {way}: {alone:?} alone, {beside:?} beside");
        }
    }
    // Nor does a heartbeat of the large one write all that it has.
    let [read, written] = beside[LARGE];
    assert!(read.bytes > 5_000 && written.bytes * 10 < read.bytes, "{read:?}, {written:?}");
}
