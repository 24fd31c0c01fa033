//! What drives the owners: [`view::Driver`], with what is history's own.
//!
//! A write is spread over the partitions of its users and answered when all
//! have decided; a page of a user who is not in memory is answered from day
//! rows; two duties are done now and then.

mod erase;
mod gate;
mod load;
mod peeked;
mod spread;
mod tidy;
mod users;

use std::sync::Arc;
use std::time::Duration;

use tideline_queue::view::{self, Duty, Hands, Partition, Read, View};
use tideline_queue::{Filter, Queue};
use tideline_record::batch::Record;
use tideline_store::{Clock, StoreError, Table};
use tideline_types::Millis;

pub(crate) use gate::{Gate, Waiter};

use crate::mark::{Ack, MarkSet, Path};
use crate::outcome::OutcomeRef;
use crate::owner::{self, Answer, Effect, Flush, Op, Owner, Refusal};
use crate::peek;
use crate::recovery;
use crate::rules::Rules;
use load::Wanted;
use peeked::Peeked;
use spread::Spread;

/// The name of the topic that holds the outcomes.
pub const TOPIC: &str = "history";
/// The name of the topic of firsts of the day, derived from [`TOPIC`].
pub const DAILY_FIRST: &str = "daily-first";

/// What bounds history, all partitions together.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of users in memory. Default 1 GiB. Outcomes that are logged and
    /// not at rest take at most as much again (and at least 256 KiB a
    /// partition), and a start reads no more than that into memory.
    pub hot_budget_bytes: usize,
    /// How long a change may wait to be written to cold rows. Default 5 min,
    /// at most 10.
    pub flush_after: Duration,
    /// How long a mark taken with `ack=fast` may wait to be logged. Default
    /// 200 ms.
    pub fast_window: Duration,
    /// Within this time after an erase no file holds a byte of the user's
    /// marks. Default 24 h.
    pub erase_within: Duration,
    /// Marks and calls that may wait for users being loaded. Default 262,144.
    pub parked_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hot_budget_bytes: 1 << 30,
            flush_after: Duration::from_secs(300),
            fast_window: Duration::from_millis(200),
            erase_within: Duration::from_secs(24 * 3600),
            parked_max: 1 << 18,
        }
    }
}

impl Options {
    /// Each partition's part.
    fn of_each(&self, partitions: u16) -> owner::Options {
        let count = usize::from(partitions);
        owner::Options {
            hot_bytes_max: self.hot_budget_bytes / count,
            // A start reads it back into the memory that users have.
            lag_bytes_max: (self.hot_budget_bytes / count).max(PACK_BYTES_MAX),
            flush_after_ms: self.flush_after.as_millis() as u64,
            flights_max: 256,
            parked_max: self.parked_max / count,
            fast_window_ms: self.fast_window.as_millis() as u64,
            pack_bytes_max: PACK_BYTES_MAX,
        }
    }
}

/// The view of topic `history`.
struct Users {
    rules: Arc<Rules>,
}

impl View for Users {
    const NAME: &'static str = TOPIC;
    type Owner = Owner<Waiter>;
    type Wanted = Wanted;

    fn carry_out(&self, effect: Effect<Waiter>, hands: &mut Hands<'_, Self>) {
        match effect {
            Effect::Append(batch) => hands.append(batch),
            Effect::Load { slot, generation, user } => {
                hands.load(Wanted { slot, generation, user });
            }
            Effect::Flush(Flush { slot, generation, commits }) => {
                hands.flush(commits, (slot, generation));
            }
            Effect::Answer(waiter, answer) => waiter.answer(answer),
        }
    }

    fn load(&self, driver: &view::Driver<Self>, at: usize, wanted: Vec<Wanted>) {
        load::load(&self.rules, driver, at, wanted);
    }

    fn recover(
        owner: &mut Owner<Waiter>,
        table: &dyn Table,
        read: &mut Read<'_>,
        alone: bool,
    ) -> Result<(), StoreError> {
        match alone {
            true => recovery::start(owner, table, read),
            false => recovery::recover(owner, table, read),
        }
    }
}

/// All partitions.
pub(crate) struct Driver {
    pub(crate) rules: Arc<Rules>,
    view: Arc<view::Driver<Users>>,
    options: Options,
    /// Users whose pages were lately answered from their day rows.
    peeked: Peeked,
}

impl Driver {
    /// Takes every partition of the topic over, replays what is not at rest,
    /// and starts the threads. Must be called within a tokio runtime.
    pub(crate) fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        rules: Arc<Rules>,
        options: Options,
        partitions: u16,
    ) -> Result<Arc<Self>, StoreError> {
        let derived = [(DAILY_FIRST, Arc::new(first_of_day) as Filter)];
        let partitions = view::ensure_topic(&queue, TOPIC, partitions, derived)?;
        let users = Users { rules: Arc::clone(&rules) };
        let each = options.of_each(partitions);
        let view = view::Driver::open(users, queue, table, clock, partitions, |writer, place| {
            let synced = writer.next().prev();
            let (rules, each) = (Arc::clone(&rules), each.clone());
            Owner::new(writer.stream(), writer.epoch(), synced, place, rules, each)
        })?;
        let driver = Arc::new(Self { rules, view, options, peeked: Peeked::default() });
        let (erasing, tidying) = (Arc::clone(&driver), Arc::clone(&driver));
        driver.view.keep_house(vec![
            Duty { every: ERASES_EVERY, run: Box::new(move || erasing.erase_due()) },
            Duty { every: TIDY_EVERY, run: Box::new(move || tidying.tidy_due()) },
        ]);
        Ok(driver)
    }

    /// How many partitions.
    pub(crate) fn partitions(&self) -> u16 {
        self.view.partitions()
    }

    /// Gives each partition its marks; the gate opens when all have answered.
    pub(crate) fn write(
        &self,
        marks: Arc<MarkSet>,
        shift_ms: i64,
        path: Path,
        ack: Ack,
    ) -> Arc<Gate> {
        let spread = Spread::of(&marks, self.partitions());
        let gate = Gate::new(marks.len(), spread.parts().count());
        let now = self.view.now();
        let mut orders = Vec::new();
        for (at, places) in spread.parts() {
            let waiter = Waiter::Write(Arc::clone(&gate));
            orders.extend(self.view.step_only(at, |partition, effects| match refusal(partition) {
                Some(refusal) => effects.push(Effect::Answer(waiter, Answer::Refused(refusal))),
                None => {
                    let owner = &mut partition.owner;
                    owner.write(now, &marks, places, shift_ms, path, ack, waiter, effects);
                }
            }));
        }
        self.view.order(orders);
        gate
    }

    /// Makes one call about one user.
    pub(crate) async fn ask(self: &Arc<Self>, user: &str, op: Op) -> Answer {
        if let Some(answer) = self.peek(user, &op).await {
            return answer;
        }
        let (tell, told) = tokio::sync::oneshot::channel();
        let now = self.view.now();
        self.view.step(self.view.partition_of(user), |partition, effects| {
            match refusal(partition).filter(|_| !op.is_read()) {
                Some(refusal) => {
                    let answer = Answer::Refused(refusal);
                    effects.push(Effect::Answer(Waiter::Call(tell), answer));
                }
                None => partition.owner.ask(now, user, op, Waiter::Call(tell), effects),
            }
        });
        told.await.unwrap_or(Answer::Refused(Refusal::Overloaded("the server is stopping")))
    }

    /// Answers a page or a count of a user who is not in memory from the days
    /// that it needs, the first time; one who is asked for again is loaded.
    async fn peek(self: &Arc<Self>, user: &str, op: &Op) -> Option<Answer> {
        if !matches!(op, Op::List(_) | Op::Count(_)) {
            return None;
        }
        let at = self.view.partition_of(user);
        let loads = self.view.look(at, |owner| owner.knows(user) || !owner.takes_calls());
        if loads || self.peeked.seen(user) {
            return None;
        }
        let (driver, user, op) = (Arc::clone(self), user.to_owned(), op.clone());
        let peeked = self.view.runtime().spawn_blocking(move || {
            peek::peek(&**driver.view.table(), &driver.rules, &user, &op, driver.now())
        });
        // What cannot be read is named by the load that follows.
        peeked.await.ok()?.ok()?
    }

    /// Figures of each partition.
    pub(crate) fn stats(&self) -> Vec<owner::Stats> {
        self.view.look_at_all(Owner::stats)
    }

    /// Whether calls are refused because the server is stopping.
    pub(crate) fn is_closed(&self) -> bool {
        self.view.is_closed()
    }

    /// Refuses new calls, brings everything to rest within `limit`, and joins
    /// the threads. What does not come to rest in time is in the log.
    pub(crate) fn close(&self, limit: Duration) {
        self.view.close(limit);
    }

    /// The time.
    fn now(&self) -> Millis {
        self.view.now()
    }
}

/// Why nothing may be decided now, if so.
fn refusal(partition: &Partition<Users>) -> Option<Refusal> {
    partition.refusal().map(Refusal::from)
}

/// The record of topic [`DAILY_FIRST`], if an outcome grants one.
fn first_of_day(record: &Record<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let user = std::str::from_utf8(record.key).ok()?;
    let first = OutcomeRef::decode(record.value).ok()?.first_of_day()?;
    Some((record.key.to_vec(), first.to_json(user).into_bytes()))
}

/// Bytes of an open pack that is logged at once.
const PACK_BYTES_MAX: usize = 256 << 10;
/// How often is looked for erases that are due.
const ERASES_EVERY: Duration = Duration::from_secs(2);
/// How often what has run out is freed.
const TIDY_EVERY: Duration = Duration::from_hours(6);
