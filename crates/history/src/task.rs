//! What drives the owners: locks, threads and waits.
//!
//! A partition's owner sits behind a lock that is held for one step and never
//! across a wait. Callers step it on their own thread; the journal's thread
//! steps it when a sync is done. Beside these:
//!
//! - the *ticker* lets time pass for each owner, every few milliseconds;
//! - the *flusher* commits images to the table, in order, syncs it once for
//!   many, and then writes the partitions' places, behind which the log may
//!   be trimmed;
//! - the *housekeeper* empties the files of erased users and frees what has
//!   run out;
//! - two *loaders* read cold users, many at a time; recoveries run on the
//!   blocking pool.
//!
//! All are joined by [`Driver::close`], but for a housekeeper whose files take
//! longer to rewrite than a stop may take.

mod erase;
mod flush;
mod gate;
mod keep;
mod load;
mod tidy;
mod users;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use tideline_queue::{PartitionWriter, Queue, TopicSpec};
use tideline_store::batch::Record;
use tideline_store::{AppendError, Clock, Place, StoreError, SyncWatcher, Table};
use tideline_types::{Millis, PartitionId, Seq, StreamId, TopicName, partition_of};

pub(crate) use gate::{Gate, Waiter};

use crate::mark::{Ack, MarkSet, Path};
use crate::outcome::OutcomeRef;
use crate::owner::{self, Answer, Effect, Op, Owner, Refusal};
use crate::peek;
use crate::recovery;
use crate::rules::Rules;

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

/// One partition: its rules and its place in the log.
struct Partition {
    owner: Owner<Waiter>,
    writer: PartitionWriter,
    /// Batches that the log was too full to take, in order.
    unsent: VecDeque<Bytes>,
    /// The log is over its quota, not merely busy.
    over_quota: Option<StoreError>,
    /// There was no space, and what had been decided was dropped. Until the
    /// partition is at rest, or for so many ticks, nothing new is decided:
    /// dropped again and again, it would never come to rest, and the log never
    /// be freed.
    full: Option<(StoreError, u32)>,
    /// Users whose pages were lately answered from their day rows.
    peeked: Peeked,
    /// Reused by every step.
    effects: Vec<Effect<Waiter>>,
}

/// Everything the threads share.
pub(crate) struct Driver {
    pub(crate) rules: Arc<Rules>,
    pub(crate) table: Arc<dyn Table>,
    pub(crate) queue: Queue,
    pub(crate) topic: TopicName,
    clock: Arc<dyn Clock>,
    runtime: tokio::runtime::Handle,
    options: Options,
    partitions: Box<[Mutex<Partition>]>,
    flushes: mpsc::Sender<flush::Image>,
    /// Bounded by the users that owners let wait.
    loads: mpsc::Sender<Vec<load::Order>>,
    closed: AtomicBool,
    stop: AtomicBool,
    /// The housekeeper has files of erased users rewritten.
    erasing: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    housekeeper: Mutex<Option<JoinHandle<()>>>,
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
        let topic = TopicName::new(TOPIC).expect("the name is within its alphabet");
        let partitions = ensure_topics(&queue, &topic, partitions)?;
        let this: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let count = usize::from(partitions);
        let per_partition = owner::Options {
            hot_bytes_max: options.hot_budget_bytes / count,
            // A start reads it back into the memory that users have.
            lag_bytes_max: (options.hot_budget_bytes / count).max(PACK_BYTES_MAX),
            flush_after_ms: options.flush_after.as_millis() as u64,
            flights_max: 256,
            parked_max: options.parked_max / count,
            fast_window_ms: options.fast_window.as_millis() as u64,
            pack_bytes_max: PACK_BYTES_MAX,
        };
        let mut owned = Vec::with_capacity(count);
        for partition in (0..partitions).map(PartitionId) {
            let watcher = Arc::new(Watcher { driver: Arc::clone(&this), partition });
            let writer =
                queue.own(&topic, partition, watcher).map_err(|error| log_error(&error))?;
            let place = Place::read(&*table, TOPIC, partition)?;
            let owner = Owner::new(
                writer.stream(),
                writer.epoch(),
                writer.next().prev(),
                place,
                Arc::clone(&rules),
                per_partition.clone(),
            );
            owned.push(Mutex::new(Partition {
                owner,
                writer,
                unsent: VecDeque::new(),
                over_quota: None,
                full: None,
                peeked: Peeked::default(),
                effects: Vec::new(),
            }));
        }
        let (flushes, images) = mpsc::channel();
        let (loads, orders) = mpsc::channel();
        let orders = Arc::new(Mutex::new(orders));
        let driver = Arc::new(Self {
            rules,
            table,
            queue,
            topic,
            clock,
            runtime: tokio::runtime::Handle::current(),
            options,
            partitions: owned.into(),
            flushes,
            loads,
            closed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            erasing: AtomicBool::new(false),
            threads: Mutex::default(),
            housekeeper: Mutex::default(),
        });
        for partition in (0..partitions).map(PartitionId) {
            driver.recover(partition, recovery::start)?;
        }
        this.set(Arc::downgrade(&driver)).expect("set once, here");
        let (ticker, flusher) = (Arc::clone(&driver), Arc::clone(&driver));
        let housekeeper = Arc::clone(&driver);
        for _ in 0..LOADERS {
            let (loader, orders) = (Arc::clone(&driver), Arc::clone(&orders));
            driver.spawn("history-load", move || loader.run_loader(&orders));
        }
        driver.spawn("history-tick", move || ticker.run_ticker());
        driver.spawn("history-flush", move || flusher.run_flusher(&images));
        let keep = std::thread::Builder::new().name("history-keep".into());
        let keep = keep.spawn(move || housekeeper.run_housekeeper());
        let keep = keep.expect("a process at its start can make a thread");
        *driver.housekeeper.lock().expect("held for a moment") = Some(keep);
        Ok(driver)
    }

    /// How many partitions.
    pub(crate) fn partitions(&self) -> u16 {
        self.partitions.len() as u16
    }

    /// Gives each partition its marks; the gate opens when all have answered.
    pub(crate) fn write(
        self: &Arc<Self>,
        marks: Arc<MarkSet>,
        shift_ms: i64,
        path: Path,
        ack: Ack,
    ) -> Arc<Gate> {
        let spread = Spread::of(&marks, self.partitions());
        let gate = Gate::new(marks.len(), spread.parts().count());
        let now = self.clock.now();
        let mut orders = Vec::new();
        for (at, places) in spread.parts() {
            let waiter = Waiter::Write(Arc::clone(&gate));
            orders.extend(self.step_partition_only(at, |partition, effects| {
                match partition.refusal() {
                    Some(refusal) => effects.push(Effect::Answer(waiter, Answer::Refused(refusal))),
                    None => {
                        let owner = &mut partition.owner;
                        owner.write(now, &marks, places, shift_ms, path, ack, waiter, effects);
                    }
                }
            }));
        }
        self.order(orders);
        gate
    }

    /// Has loaders read users, with one wake-up for all.
    fn order(&self, orders: Vec<load::Order>) {
        if !orders.is_empty() {
            // The loaders outlive every owner that has work for them.
            _ = self.loads.send(orders);
        }
    }

    /// Makes one call about one user.
    pub(crate) async fn ask(self: &Arc<Self>, user: &str, op: Op) -> Answer {
        if let Some(answer) = self.peek(user, &op).await {
            return answer;
        }
        let (tell, told) = tokio::sync::oneshot::channel();
        let now = self.clock.now();
        self.step_partition(self.partition_of(user), |partition, effects| {
            match partition.refusal().filter(|_| !op.is_read()) {
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
        {
            let mut held = self.lock(self.partition_of(user));
            if held.owner.knows(user) || !held.owner.takes_calls() || held.peeked.seen(user) {
                return None;
            }
        }
        let (driver, user, op) = (Arc::clone(self), user.to_owned(), op.clone());
        let peeked = self.runtime.spawn_blocking(move || {
            peek::peek(&*driver.table, &driver.rules, &user, &op, driver.now())
        });
        // What cannot be read is named by the load that follows.
        peeked.await.ok()?.ok()?
    }

    /// Figures of each partition.
    pub(crate) fn stats(&self) -> Vec<owner::Stats> {
        (0..self.partitions.len()).map(|at| self.lock(at).owner.stats()).collect()
    }

    /// Whether calls are refused because the server is stopping.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Refuses new calls, brings everything to rest within `limit`, and joins
    /// the threads. What does not come to rest in time is in the log.
    pub(crate) fn close(self: &Arc<Self>, limit: Duration) {
        self.closed.store(true, Ordering::Release);
        let end = self.clock.ticks() + limit.as_millis() as u64;
        for at in 0..self.partitions.len() {
            self.lock(at).owner.drain();
        }
        let at_rest = |at: usize| self.lock(at).owner.is_at_rest();
        while !(0..self.partitions.len()).all(at_rest) && self.clock.ticks() < end {
            std::thread::sleep(TICK);
        }
        self.end_housekeeping(end);
        self.stop.store(true, Ordering::Release);
        // Each loader takes one, and looks up.
        for _ in 0..LOADERS {
            _ = self.loads.send(Vec::new());
        }
        let threads = std::mem::take(&mut *self.threads.lock().expect("held for a push"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of history ended in a panic");
            }
        }
    }

    fn partition_of(&self, user: &str) -> usize {
        usize::from(partition_of(user.as_bytes(), self.partitions()).0)
    }

    fn lock(&self, at: usize) -> MutexGuard<'_, Partition> {
        self.partitions[at].lock().expect("a step that panicked leaves no state to go on from")
    }

    /// One step of one owner, and what follows from it.
    fn step(
        self: &Arc<Self>,
        at: usize,
        step: impl FnOnce(&mut Owner<Waiter>, &mut Vec<Effect<Waiter>>),
    ) {
        self.step_partition(at, |partition, effects| step(&mut partition.owner, effects));
    }

    fn step_partition(
        self: &Arc<Self>,
        at: usize,
        step: impl FnOnce(&mut Partition, &mut Vec<Effect<Waiter>>),
    ) {
        self.order(self.step_partition_only(at, step).into_iter().collect());
    }

    /// One step, and what follows from it, but that what loaders are to read is
    /// left for the caller to order.
    #[must_use]
    fn step_partition_only(
        self: &Arc<Self>,
        at: usize,
        step: impl FnOnce(&mut Partition, &mut Vec<Effect<Waiter>>),
    ) -> Option<load::Order> {
        let mut wanted = Vec::new();
        {
            let mut held = self.lock(at);
            let partition = &mut *held;
            let mut effects = std::mem::take(&mut partition.effects);
            step(partition, &mut effects);
            let mut failed = None;
            for effect in effects.drain(..) {
                match effect {
                    Effect::Append(batch) => {
                        partition.unsent.push_back(batch.finish());
                        failed = failed.or(partition.send().err());
                    }
                    Effect::Load { slot, generation, user } => {
                        wanted.push(load::Wanted { slot, generation, user });
                    }
                    Effect::Flush(flush) => {
                        let partition = PartitionId(at as u16);
                        // The flusher outlives every owner that has work for it.
                        _ = self.flushes.send(flush::Image { partition, flush });
                    }
                    Effect::Answer(waiter, answer) => waiter.answer(answer),
                }
            }
            if let Some(error) = failed {
                tracing::error!(partition = at, %error, "the log refuses; read-only until a restart");
                partition.owner.failed(&error, &mut effects);
                for effect in effects.drain(..) {
                    if let Effect::Answer(waiter, answer) = effect {
                        waiter.answer(answer);
                    }
                }
            }
            partition.effects = effects;
        }
        (!wanted.is_empty()).then_some(load::Order { at, wanted })
    }

    /// Time passes for one owner; what the log was too full for is tried again.
    fn tick(self: &Arc<Self>, at: usize, now: Millis, ticks: u64) {
        let mut dropped = false;
        self.step_partition(at, |partition, effects| {
            let sent = partition.send();
            let nothing_in_flight =
                partition.writer.next() == partition.owner.synced_through().next();
            match (sent, partition.over_quota.take()) {
                (Err(error), _) => partition.owner.failed(&error, effects),
                (Ok(()), Some(error)) if nothing_in_flight => {
                    partition.unsent.clear();
                    let from = partition.writer.next();
                    partition.owner.dropped(from, &error, effects);
                    partition.full = Some((error, FULL_FOR_TICKS));
                    dropped = true;
                }
                _ => {
                    partition.owner.tick(now, ticks, effects);
                    partition.try_again();
                }
            }
        });
        if dropped {
            self.recover_later(PartitionId(at as u16));
        }
    }

    fn run_ticker(self: &Arc<Self>) {
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            let (now, ticks) = (self.clock.now(), self.clock.ticks());
            for at in 0..self.partitions.len() {
                self.tick(at, now, ticks);
            }
        }
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread = thread.expect("a process at its start can make a thread");
        self.threads.lock().expect("held for a push").push(thread);
    }

    /// The time.
    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }
}

/// The topic of outcomes, and the one derived from it; answers the number of
/// partitions.
fn ensure_topics(queue: &Queue, topic: &TopicName, partitions: u16) -> Result<u16, StoreError> {
    let spec = TopicSpec {
        partitions: Some(partitions),
        read_only: true,
        durable_view: true,
        ..TopicSpec::new(topic.clone())
    };
    let info = queue.ensure_topic(spec).map_err(|error| log_error(&error))?;
    let firsts = TopicName::new(DAILY_FIRST).expect("the name is within its alphabet");
    let filter = Arc::new(|record: &Record<'_>| {
        let user = std::str::from_utf8(record.key).ok()?;
        let first = OutcomeRef::decode(record.value).ok()?.first_of_day()?;
        Some((record.key.to_vec(), first.to_json(user).into_bytes()))
    });
    queue.register_derived(firsts, topic.clone(), filter).map_err(|error| log_error(&error))?;
    Ok(info.partitions)
}

impl Partition {
    /// Why nothing may be decided now, if so.
    fn refusal(&self) -> Option<Refusal> {
        self.full.as_ref().map(|(error, _)| Refusal::from(error))
    }

    /// A tick has passed: lets calls decide again once that can come to
    /// something.
    fn try_again(&mut self) {
        let settled = self.owner.is_settled();
        self.full = self.full.take().and_then(|(error, left)| match left.checked_sub(1) {
            Some(left) if !settled => Some((error, left)),
            _ => None,
        });
    }

    /// Appends what is unsent. Stops, without an error, while the log is full.
    fn send(&mut self) -> Result<(), StoreError> {
        while let Some(batch) = self.unsent.front() {
            match self.writer.append_bytes(batch.clone()) {
                Ok(_) => _ = self.unsent.pop_front(),
                Err(AppendError::Full { .. }) => return Ok(()),
                Err(error @ AppendError::OverQuota { .. }) => {
                    self.over_quota = Some(StoreError::NoSpace { what: error.to_string() });
                    return Ok(());
                }
                // The journal has dropped a tail and tells so next.
                Err(AppendError::OutOfOrder { .. }) => return Ok(()),
                Err(AppendError::Store(error)) => return Err(error),
                Err(error) => return Err(log_error(&error)),
            }
        }
        self.over_quota = None;
        Ok(())
    }
}

/// A refusal of the log that an owner cannot do anything about.
fn log_error(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { what: "the log of history".into(), cause: error.to_string() }
}

/// Remembers, roughly, who was asked for: a few hundred hashes, each in the one
/// place it may have.
#[derive(Debug)]
struct Peeked {
    hashes: Box<[u64; 256]>,
    hasher: DefaultHashBuilder,
}

impl Default for Peeked {
    fn default() -> Self {
        Self { hashes: Box::new([0; 256]), hasher: DefaultHashBuilder::default() }
    }
}

impl Peeked {
    /// Whether the user was seen lately; they are from now on.
    fn seen(&mut self, user: &str) -> bool {
        let hash = self.hasher.hash_one(user);
        let place = &mut self.hashes[(hash >> 56) as usize];
        std::mem::replace(place, hash) == hash
    }
}

/// The places of marks, partition by partition: a counting sort, so that a
/// batch costs three allocations however many partitions it touches.
struct Spread {
    places: Vec<u32>,
    /// Where each partition's places end.
    ends: Vec<u32>,
}

impl Spread {
    fn of(marks: &MarkSet, partitions: u16) -> Self {
        let of = |place| partition_of(marks.user(place).as_bytes(), partitions).0;
        let of: Vec<u16> = (0..marks.len()).map(of).collect();
        let mut ends = vec![0; usize::from(partitions)];
        of.iter().for_each(|at| ends[usize::from(*at)] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut places = vec![0; of.len()];
        for (place, at) in of.iter().enumerate() {
            let end = &mut ends[usize::from(*at)];
            places[*end as usize] = place as u32;
            *end += 1;
        }
        Self { places, ends }
    }

    /// The partitions that have any, with theirs, in order.
    fn parts(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let parts = starts.zip(&self.ends).enumerate();
        parts
            .map(|(at, (start, end))| (at, &self.places[*start as usize..*end as usize]))
            .filter(|(_, places)| !places.is_empty())
    }
}

/// Bytes of an open pack that is logged at once.
const PACK_BYTES_MAX: usize = 256 << 10;
/// How often time passes for an owner.
const TICK: Duration = Duration::from_millis(20);
/// How long a partition without space brings users to rest before it tries to
/// log more, unless all are at rest: five seconds.
const FULL_FOR_TICKS: u32 = 250;
/// Threads that read cold users.
const LOADERS: usize = 2;
/// Passes on what the journal says of one partition.
struct Watcher {
    driver: Arc<OnceLock<Weak<Driver>>>,
    partition: PartitionId,
}

impl Watcher {
    fn step(&self, step: impl FnOnce(&mut Owner<Waiter>, &mut Vec<Effect<Waiter>>)) {
        if let Some(driver) = self.driver.get().and_then(Weak::upgrade) {
            driver.step(usize::from(self.partition.0), step);
        }
    }
}

impl SyncWatcher for Watcher {
    fn synced(&self, _: StreamId, through: Seq) {
        self.step(|owner, effects| owner.synced(through, effects));
    }

    fn failed(&self, _: StreamId, error: &StoreError) {
        self.step(|owner, effects| owner.failed(error, effects));
    }

    fn dropped(&self, _: StreamId, from: Seq, error: &StoreError) {
        let Some(driver) = self.driver.get().and_then(Weak::upgrade) else { return };
        driver.step_partition(usize::from(self.partition.0), |partition, effects| {
            partition.unsent.clear();
            partition.over_quota = None;
            partition.writer.rewind(from);
            partition.owner.dropped(from, error, effects);
            partition.full = Some((error.clone(), FULL_FOR_TICKS));
        });
        driver.recover_later(self.partition);
    }
}
