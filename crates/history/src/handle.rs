//! The handle: what the rest of the program calls.

use std::sync::Arc;
use std::time::Duration;

use tideline_queue::Queue;
use tideline_store::{Clock, StoreError, Table};
use tideline_types::{PartitionId, UserId};

use crate::facts::ExportDoc;
use crate::kinds::Kinds;
use crate::mark::{Ack, MarkSet, Path, Verdict};
use crate::owner::{self, Answer, Op, Refusal};
use crate::query::{ClearFilter, Filter, List, ListQuery, ObjectKey, Row};
use crate::rules::{RestoreReport, Rules};
use crate::task::{Driver, Options};

/// Users' history. Clones share one; all calls may be made at once.
#[derive(Clone)]
pub struct History {
    driver: Arc<Driver>,
}

impl History {
    /// Takes over the topic `history` of `queue`, making it with `partitions`
    /// partitions if there is none (else it keeps its own number), registers
    /// the topic `daily-first`, and replays what is not at rest in `table`.
    /// Blocks; must be called within a tokio runtime.
    pub fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        rules: Arc<Rules>,
        options: Options,
        partitions: u16,
    ) -> Result<Self, StoreError> {
        let driver = Driver::open(queue, table, clock, rules, options, partitions)?;
        Ok(Self { driver })
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.driver.rules
    }

    /// The kinds in force.
    pub fn kinds(&self) -> &Kinds {
        &self.driver.rules.kinds
    }

    /// How many partitions users are spread over.
    pub fn partitions(&self) -> u16 {
        self.driver.partitions()
    }

    /// Decides `marks` in order and answers each by its place. With
    /// [`Ack::Durable`] every accepted mark, and everything that a refusal of
    /// another rests on, survives power loss on return. On a refusal some of
    /// the marks may have been taken; sending the same again is safe.
    pub async fn write(
        &self,
        marks: impl Into<Arc<MarkSet>>,
        shift_ms: i64,
        path: Path,
        ack: Ack,
    ) -> Result<Vec<Verdict>, Refusal> {
        if self.driver.is_closed() {
            return Err(STOPPING);
        }
        self.driver.write(marks.into(), shift_ms, path, ack).wait().await
    }

    /// A page of the list, newest first.
    pub async fn list(&self, user: &UserId, query: ListQuery) -> Result<List, Refusal> {
        expect(self.ask(user, Op::List(query)).await, |answer| match answer {
            Answer::List(list) => Some(list),
            _ => None,
        })
    }

    /// Every row that the filter lets through, newest first.
    pub async fn rows(&self, user: &UserId, filter: Filter) -> Result<Vec<Row>, Refusal> {
        expect(self.ask(user, Op::Rows(filter)).await, |answer| match answer {
            Answer::Rows(rows) => Some(rows),
            _ => None,
        })
    }

    /// How many rows the filter lets through.
    pub async fn count(&self, user: &UserId, filter: Filter) -> Result<usize, Refusal> {
        expect(self.ask(user, Op::Count(filter)).await, |answer| match answer {
            Answer::Count(count) => Some(count),
            _ => None,
        })
    }

    /// Rows on each local day (counted from the epoch), newest day first.
    pub async fn days(&self, user: &UserId, filter: Filter) -> Result<Vec<(i32, u32)>, Refusal> {
        expect(self.ask(user, Op::Days(filter)).await, |answer| match answer {
            Answer::Days(days) => Some(days),
            _ => None,
        })
    }

    /// The rows of `keys`, in order.
    pub async fn points(
        &self,
        user: &UserId,
        keys: Vec<ObjectKey>,
    ) -> Result<Vec<Option<Row>>, Refusal> {
        expect(self.ask(user, Op::Points(keys)).await, |answer| match answer {
            Answer::Points(rows) => Some(rows),
            _ => None,
        })
    }

    /// Deletes `keys`; says how many of them were shown.
    pub async fn delete(&self, user: &UserId, keys: Vec<ObjectKey>) -> Result<u64, Refusal> {
        self.deleted(user, Op::Delete(keys)).await
    }

    /// Deletes what the filter matches; says how many rows were shown.
    pub async fn clear(&self, user: &UserId, filter: ClearFilter) -> Result<u64, Refusal> {
        self.deleted(user, Op::Clear(filter)).await
    }

    async fn deleted(&self, user: &UserId, op: Op) -> Result<u64, Refusal> {
        expect(self.ask(user, op).await, |answer| match answer {
            Answer::Deleted(count) => Some(count),
            _ => None,
        })
    }

    /// Whether the user's history is being recorded.
    pub async fn recording(&self, user: &UserId) -> Result<bool, Refusal> {
        expect(self.ask(user, Op::Recording).await, |answer| match answer {
            Answer::Recording(on) => Some(on),
            _ => None,
        })
    }

    /// Turns recording on or off, from now on.
    pub async fn set_recording(&self, user: &UserId, on: bool) -> Result<(), Refusal> {
        expect(self.ask(user, Op::Switch(on)).await, done)
    }

    /// Everything that a restore needs.
    pub async fn export(&self, user: &UserId) -> Result<ExportDoc, Refusal> {
        expect(self.ask(user, Op::Export).await, |answer| match answer {
            Answer::Export(doc) => Some(*doc),
            _ => None,
        })
    }

    /// Puts an export back, by rule 1 alone.
    pub async fn restore(&self, user: &UserId, doc: ExportDoc) -> Result<RestoreReport, Refusal> {
        expect(self.ask(user, Op::Restore(Box::new(doc))).await, |answer| match answer {
            Answer::Restored(report) => Some(report),
            _ => None,
        })
    }

    /// Hides everything of the user at once, and empties the files in time.
    pub async fn erase(&self, user: &UserId) -> Result<(), Refusal> {
        expect(self.ask(user, Op::Erase).await, done)
    }

    /// Figures of each partition.
    pub fn stats(&self) -> Vec<(PartitionId, owner::Stats)> {
        (0..).map(PartitionId).zip(self.driver.stats()).collect()
    }

    /// Shows each user that has, or may have, anything, once, until `visit`
    /// says false. A user whose first mark comes during the call may be left
    /// out. Reads everything at rest: for exports. Blocks.
    pub fn users(&self, visit: &mut dyn FnMut(String) -> bool) -> Result<(), StoreError> {
        self.driver.users(visit)
    }

    /// Lets every user come to rest anew of whom something has run out:
    /// retries beyond their window, rows beyond their retention. Happens by
    /// itself every few hours. Answers how many users there were. Blocks.
    pub fn tidy(&self) -> Result<usize, StoreError> {
        self.driver.tidy()
    }

    /// Refuses new calls, brings everything to rest within `limit`, and stops.
    /// Blocks. What does not come to rest in time is in the log.
    pub fn close(&self, limit: Duration) {
        self.driver.close(limit);
    }

    async fn ask(&self, user: &UserId, op: Op) -> Answer {
        match self.driver.is_closed() {
            true => Answer::Refused(STOPPING),
            false => self.driver.ask(user.as_str(), op).await,
        }
    }
}

const STOPPING: Refusal = Refusal::Overloaded("the server is stopping");

fn done(answer: Answer) -> Option<()> {
    matches!(answer, Answer::Done).then_some(())
}

/// The answer that the call asks for, or the refusal.
fn expect<T>(answer: Answer, as_asked: impl FnOnce(Answer) -> Option<T>) -> Result<T, Refusal> {
    match answer {
        Answer::Refused(refusal) => Err(refusal),
        answer => Ok(as_asked(answer).expect("an owner answers what it was asked")),
    }
}
