//! A watcher that remembers what it was told, and lets a test wait for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tideline_types::{Seq, StreamId};

use crate::{StoreError, SyncWatcher};

/// What a journal has told. Cheap to clone; clones hear the same.
#[derive(Clone, Default)]
pub struct Heard {
    inner: Arc<(Mutex<News>, Condvar)>,
}

/// What one watcher was told so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct News {
    synced: Seq,
    times: u64,
    dropped: Vec<Seq>,
    failed: bool,
}

impl Heard {
    fn news(&self) -> MutexGuard<'_, News> {
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.news());
        self.inner.1.notify_all();
    }

    fn wait(&self, until: impl Fn(&News) -> bool) {
        let mut news = self.news();
        while !until(&news) {
            news = self.inner.1.wait(news).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The last number that was told as synced.
    pub fn synced(&self) -> Seq {
        self.news().synced
    }

    /// How often something was told.
    pub fn times(&self) -> u64 {
        self.news().times
    }

    /// The numbers from which on batches were dropped, in order.
    pub fn dropped(&self) -> Vec<Seq> {
        self.news().dropped.clone()
    }

    /// Whether a failure was told.
    pub fn failed(&self) -> bool {
        self.news().failed
    }

    /// Waits until `through` is told as synced. Panics if a failure is.
    pub fn wait_synced(&self, through: Seq) {
        self.wait(|news| news.synced >= through || news.failed);
        assert!(!self.failed(), "the journal failed before {through} was synced");
    }

    /// Waits for a failure.
    pub fn wait_failed(&self) {
        self.wait(|news| news.failed);
    }

    /// Waits until batches were dropped `times` times.
    pub fn wait_dropped(&self, times: usize) {
        self.wait(|news| news.dropped.len() >= times);
    }
}

impl SyncWatcher for Heard {
    fn synced(&self, stream: StreamId, through: Seq) {
        self.change(|news| {
            assert!(news.synced < through, "law: synced grows ({stream}: {through})");
            assert!(!news.failed, "law: nothing is synced after a failure ({stream})");
            news.synced = through;
            news.times += 1;
        });
    }

    fn failed(&self, stream: StreamId, _: &StoreError) {
        self.change(|news| {
            assert!(!news.failed, "law: a failure is told once ({stream})");
            news.failed = true;
            news.times += 1;
        });
    }

    fn dropped(&self, stream: StreamId, from: Seq, _: &StoreError) {
        self.change(|news| {
            assert!(news.synced < from, "law: what is synced is not dropped ({stream})");
            news.dropped.push(from);
            news.times += 1;
        });
    }
}
