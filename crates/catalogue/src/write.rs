//! Puts items: callers that come together share one sync.
//!
//! Always: a put is answered after a sync that began after its rows were
//! committed. Who finds no sync under way does one for all that wait; the
//! others wait for it. A put whose caller goes away may happen all the same.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::limits::{BATCH_KEYS_MAX, ITEMS_WAITING_MAX};
use tokio::sync::{Mutex as Turn, oneshot};

use crate::Item;
use crate::item::{self, BadItem};
use crate::shelf::Shelf;

/// Why items were not put.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PutError {
    /// A field is over its limit; nothing was put.
    #[error("items[{index}]: {bad}")]
    Bad {
        /// The item's place in what was sent.
        index: usize,
        /// Which field, and what it must be.
        bad: BadItem,
    },
    /// More items in one put than allowed; nothing was put.
    #[error("items must be at most {max}, got {sent}")]
    TooMany {
        /// How many were sent.
        sent: usize,
        /// The limit.
        max: usize,
    },
    /// Too many items wait to be written; nothing was put. Try again soon.
    #[error("the catalogue is full of unwritten items ({waiting} wait)")]
    Full {
        /// How many items wait.
        waiting: usize,
    },
    /// The store failed; the items may have been put.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Items in one put, at most.
pub(crate) const PUT_ITEMS_MAX: usize = 10 * BATCH_KEYS_MAX;
const _: () = assert!(PUT_ITEMS_MAX <= ITEMS_WAITING_MAX);

type Done = oneshot::Sender<Result<(), StoreError>>;

#[derive(Default)]
struct Waiting {
    commits: Vec<Commit>,
    callers: Vec<Done>,
}

/// Writes rows of the catalogue.
pub(crate) struct Writer {
    table: Arc<dyn Table>,
    shelf: Arc<Shelf>,
    waiting: Mutex<Waiting>,
    /// Held by the caller that writes for all.
    turn: Turn<()>,
}

/// The rows of `items`, each checked; the error names the first bad one.
pub(crate) fn rows(items: &[(String, String, Item)]) -> Result<Vec<Commit>, PutError> {
    if items.len() > PUT_ITEMS_MAX {
        return Err(PutError::TooMany { sent: items.len(), max: PUT_ITEMS_MAX });
    }
    let row = |(index, (kind, id, item)): (usize, &(String, String, Item))| {
        let checked = item::check_key(kind, id).and_then(|()| item.check());
        checked.map_err(|bad| PutError::Bad { index, bad })?;
        let value = Bytes::from(item::encode(item));
        Ok(Commit {
            table: TableName::Catalogue,
            partition_key: item::key(kind, id).into(),
            ops: vec![Op::Put { sort_key: Bytes::new(), value }],
        })
    };
    items.iter().enumerate().map(row).collect()
}

impl Writer {
    pub(crate) fn new(table: Arc<dyn Table>, shelf: Arc<Shelf>) -> Self {
        Self { table, shelf, waiting: Mutex::default(), turn: Turn::default() }
    }

    /// Commits and syncs `commits`.
    pub(crate) async fn write(&self, commits: Vec<Commit>) -> Result<(), PutError> {
        let (done, mut mine) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let count = waiting.commits.len();
            if count + commits.len() > ITEMS_WAITING_MAX {
                return Err(PutError::Full { waiting: count });
            }
            waiting.commits.extend(commits);
            waiting.callers.push(done);
        }
        let _turn = self.turn.lock().await;
        if let Ok(written) = mine.try_recv() {
            return Ok(written?);
        }
        let all = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        // Empty if whoever took mine has not answered yet.
        if !all.callers.is_empty() {
            let (table, shelf) = (self.table.clone(), self.shelf.clone());
            let written = tokio::task::spawn_blocking(move || write_all(&*table, &shelf, all));
            let _answered = written.await;
        }
        let closed = || StoreError::Failed {
            what: "put".into(),
            cause: "the writing thread stopped".into(),
        };
        Ok(mine.await.unwrap_or_else(|_| Err(closed()))?)
    }
}

fn write_all(table: &dyn Table, shelf: &Shelf, all: Waiting) {
    shelf.put_begins();
    let committed = table.commit(&all.commits);
    shelf.put_ended(all.commits.iter().map(|commit| commit.partition_key.as_ref()));
    let written = committed.and_then(|()| table.sync());
    for caller in all.callers {
        let _gone = caller.send(written.clone());
    }
}
