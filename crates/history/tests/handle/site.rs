//! A history over a journal and a table in memory, which can be stopped and
//! opened again.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tideline_history::kinds::Kind;
use tideline_history::mark::{Ack, Mark, MarkSet, Path, Verdict};
use tideline_history::owner::Refusal;
use tideline_history::query::{Filter, ListQuery, PageAt};
use tideline_history::{History, Options, prepare};
use tideline_queue::Queue;
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{Journal, ManualClock, Table};
use tideline_types::{Millis, UserId};

pub(crate) const START: Millis = Millis(1_796_000_000_000);
pub(crate) const PARTITIONS: u16 = 4;

pub(crate) struct Site {
    pub(crate) journal: Arc<MemJournal>,
    pub(crate) table: Arc<MemTable>,
    pub(crate) clock: Arc<ManualClock>,
    _queue: Queue,
    pub(crate) history: History,
}

fn kind(name: &str, max_records: u32) -> Kind {
    Kind {
        name: name.into(),
        declared: true,
        retention_days: 90,
        max_records,
        max_per_day: 0,
        daily_first: true,
    }
}

/// The kind of most marks, without a cap or a reward.
pub(crate) fn video() -> Kind {
    Kind { daily_first: false, ..kind("video", 0) }
}

impl Site {
    pub(crate) fn new(options: &Options) -> Self {
        let journal = Arc::new(MemJournal::new());
        let clock = Arc::new(ManualClock::at(START));
        Self::open(journal, Arc::new(MemTable::new()), clock, options)
    }

    pub(crate) fn open(
        journal: Arc<MemJournal>,
        table: Arc<MemTable>,
        clock: Arc<ManualClock>,
        options: &Options,
    ) -> Self {
        let kinds = vec![kind("video", 1000), kind("product", 20)];
        let rules = Arc::new(prepare(&*table, kinds, TimeZone::UTC).unwrap());
        let (j, t, c) = (journal.clone(), table.clone(), clock.clone());
        let queue = Queue::open(j, t.clone(), c.clone(), tideline_queue::Options::default());
        let queue = queue.unwrap();
        let history =
            History::open(queue.clone(), t, c, rules, options.clone(), PARTITIONS).unwrap();
        Self { journal, table, clock, _queue: queue, history }
    }

    /// Stops in order, and starts again on the same engines.
    pub(crate) fn reopen(self, options: &Options) -> Self {
        self.history.close(Duration::ZERO);
        Self::open(self.journal, self.table, self.clock, options)
    }

    /// Stops as by a kill: the table keeps what it may keep.
    pub(crate) fn crash(self, options: &Options, keep: usize) -> Self {
        self.crash_into(options, keep, |_| ())
    }

    /// As `crash`; the table is made `ready` before anything opens on it.
    pub(crate) fn crash_into(
        self,
        options: &Options,
        keep: usize,
        ready: impl FnOnce(&MemTable),
    ) -> Self {
        let table = Arc::new(self.table.crash(|_, _, unsynced| keep.min(unsynced)));
        ready(&table);
        let (journal, clock) = (self.journal.clone(), self.clock.clone());
        std::mem::forget(self);
        Self::open(journal, table, clock, options)
    }

    pub(crate) async fn write(&self, user: &str, ids: &[&str], at: i64) -> Vec<Verdict> {
        self.try_write(user, ids, at).await.unwrap()
    }

    pub(crate) async fn try_write(
        &self,
        user: &str,
        ids: &[&str],
        at: i64,
    ) -> Result<Vec<Verdict>, Refusal> {
        let kind = self.history.kinds().find("video").unwrap();
        let mut set = MarkSet::with_capacity(ids.len());
        for id in ids {
            set.push(&Mark {
                user,
                kind,
                id,
                part: None,
                position_ms: Some(1000),
                duration_ms: Some(9000),
                sent_ms: Some(START.plus(at)),
                device: None,
                group: None,
                finished: false,
                event_id: Some("e"),
            });
        }
        self.history.write(set, 0, Path::Live, Ack::Durable).await
    }

    pub(crate) async fn ids(&self, user: &str) -> Vec<String> {
        let user = UserId::new(user).unwrap();
        let query = ListQuery { filter: Filter::default(), page: PageAt::Below(None), limit: 100 };
        let list = self.history.list(&user, query).await.unwrap();
        list.rows.iter().map(|row| row.id.to_string()).collect()
    }

    pub(crate) async fn count(&self, user: &str) -> Result<usize, Refusal> {
        self.history.count(&UserId::new(user).unwrap(), Filter::default()).await
    }

    /// Waits until every change is in a durable row.
    pub(crate) async fn until_at_rest(&self) {
        while self.history.stats().iter().any(|(_, stats)| stats.dirty_users > 0 || stats.lag > 0) {
            self.clock.advance(1000);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn health(&self) -> bool {
        self.journal.health().is_ok() && self.table.disk_bytes() > 0
    }
}
