//! What drives the owners: locks, threads and waits.
//!
//! A partition's owner sits behind a lock that is held for one step and never
//! across a wait. Callers step it on their own thread; the journal's thread
//! steps it when a sync is done. Beside these the *ticker* lets time pass for
//! each owner, the *flusher* commits images to the table and writes the
//! partitions' places, the *housekeeper* empties the files of erased users, and
//! two *loaders* read rows; recoveries run on the blocking pool. All are joined by [`Driver::close`].

mod flush;
mod load;
mod open;
mod rooms;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tideline_queue::{PartitionWriter, Queue};
use tideline_store::{AppendError, Clock, Place, StoreError, SyncWatcher, Table};
use tideline_types::{Millis, PartitionId, Seq, StreamId, TopicName, partition_of};
use tokio::sync::oneshot;

pub use open::{AUDIT, STATS, TOPIC};
pub use rooms::Watch;

use crate::ask::{Answer, Op, Refusal};
use crate::erase;
use crate::options::Options;
use crate::owner::{Bounds, Effect, Owner, Stats};
use crate::rules::Rules;

type Waiter = oneshot::Sender<Answer>;

/// One partition: its owner and its place in the log.
struct Partition {
    owner: Owner<Waiter>,
    writer: PartitionWriter,
    /// Batches that the log was too full to take, in order.
    unsent: VecDeque<Bytes>,
    /// The log is over its quota, not merely busy.
    over_quota: Option<StoreError>,
    /// There was no space, and what had been decided was dropped. Until the
    /// partition is at rest, or for so many ticks, nothing new is decided.
    full: Option<(StoreError, u32)>,
}

/// Everything the threads share.
pub(crate) struct Driver {
    pub(crate) rules: Arc<Rules>,
    pub(crate) table: Arc<dyn Table>,
    queue: Queue,
    topic: TopicName,
    clock: Arc<dyn Clock>,
    runtime: tokio::runtime::Handle,
    partitions: Box<[Mutex<Partition>]>,
    flushes: mpsc::Sender<flush::Image>,
    /// Bounded by the calls that owners let wait.
    orders: mpsc::Sender<load::Order>,
    rooms: rooms::Rooms,
    closed: AtomicBool,
    stop: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Driver {
    /// Takes every partition of the topic over, replays what is not at rest,
    /// and starts the threads. Must be called within a tokio runtime.
    pub(crate) fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
        partitions: u16,
    ) -> Result<Arc<Self>, StoreError> {
        let topic = open::topic();
        let partitions = open::ensure_topics(&queue, &topic, partitions)?;
        let bounds = bounds(&options, usize::from(partitions));
        let rules = Arc::new(Rules { keys: open::keys(&*table)?, options });
        let this: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let mut owned = Vec::with_capacity(usize::from(partitions));
        for partition in (0..partitions).map(PartitionId) {
            let watcher = Arc::new(Watcher { driver: Arc::clone(&this), partition });
            let writer =
                queue.own(&topic, partition, watcher).map_err(|error| log_error(&error))?;
            let place = Place::read(&*table, TOPIC, partition)?;
            let synced = writer.next().prev();
            let (stream, epoch, rules) = (writer.stream(), writer.epoch(), Arc::clone(&rules));
            let owner = Owner::new(stream, epoch, synced, place, rules, bounds.clone());
            let unsent = VecDeque::new();
            owned.push(Mutex::new(Partition {
                owner,
                writer,
                unsent,
                over_quota: None,
                full: None,
            }));
        }
        let (flushes, images) = mpsc::channel();
        let (orders, taken) = mpsc::channel();
        let driver = Arc::new(Self {
            rules,
            table,
            queue,
            topic,
            clock,
            runtime: tokio::runtime::Handle::current(),
            partitions: owned.into(),
            flushes,
            orders,
            rooms: rooms::Rooms::default(),
            closed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            threads: Mutex::default(),
        });
        for partition in (0..partitions).map(PartitionId) {
            driver.recover(partition)?;
        }
        this.set(Arc::downgrade(&driver)).expect("set once, here");
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..LOADERS {
            let (loader, taken) = (Arc::clone(&driver), Arc::clone(&taken));
            driver.spawn("danmaku-load", move || loader.run_loader(&taken));
        }
        let (ticker, flusher) = (Arc::clone(&driver), Arc::clone(&driver));
        driver.spawn("danmaku-tick", move || ticker.run_ticker());
        driver.spawn("danmaku-flush", move || flusher.run_flusher(&images));
        let housekeeper = Arc::clone(&driver);
        driver.spawn("danmaku-keep", move || housekeeper.run_housekeeper());
        Ok(driver)
    }

    /// How many partitions.
    pub(crate) fn partitions(&self) -> u16 {
        self.partitions.len() as u16
    }

    /// Makes one call about one video.
    pub(crate) async fn ask(self: &Arc<Self>, video: &str, op: Op) -> Answer {
        const STOPPING: Answer = Answer::Refused(Refusal::Overloaded("the server is stopping"));
        if self.is_closed() {
            return STOPPING;
        }
        let (tell, told) = oneshot::channel();
        let now = self.clock.now();
        let at = usize::from(partition_of(video.as_bytes(), self.partitions()).0);
        self.step_partition(at, |partition, effects| {
            match partition.refusal().filter(|_| !op.is_read()) {
                Some(refusal) => effects.push(Effect::Answer(tell, Answer::Refused(refusal))),
                None => partition.owner.ask(now, video, op, tell, effects),
            }
        });
        told.await.unwrap_or(STOPPING)
    }

    /// Videos of which something is not at rest, of all partitions.
    pub(crate) fn unrested_videos(&self) -> Vec<Arc<str>> {
        let of = |at: usize| self.lock(at).owner.unrested_videos().cloned().collect::<Vec<_>>();
        (0..self.partitions.len()).flat_map(of).collect()
    }

    /// Told when a video changes.
    pub(crate) fn watch(&self, video: &str) -> Watch {
        self.rooms.watch(video)
    }

    /// Figures of each partition.
    pub(crate) fn stats(&self) -> Vec<Stats> {
        (0..self.partitions.len()).map(|at| self.lock(at).owner.stats()).collect()
    }

    fn is_closed(&self) -> bool {
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
        self.stop.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.threads.lock().expect("held for a push"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of danmaku ended in a panic");
            }
        }
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
        let mut held = self.lock(at);
        let partition = &mut *held;
        let mut effects = Vec::new();
        step(partition, &mut effects);
        let mut failed = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Append(batch) => {
                    partition.unsent.push_back(batch.finish());
                    failed = failed.or(partition.send().err());
                }
                // Loaders and flusher outlive every owner that has work for them.
                Effect::Load { video, generation } => {
                    _ = self.orders.send(load::Order { at, video, generation, reads: None });
                }
                Effect::Read { video, generation, reads } => {
                    _ = self.orders.send(load::Order { at, video, generation, reads: Some(reads) });
                }
                Effect::Flush(flush) => _ = self.flushes.send(flush::Image { at, flush }),
                Effect::Changed(video, seq) => self.rooms.changed(&video, seq),
                // One who has gone away is not missed.
                Effect::Answer(waiter, answer) => _ = waiter.send(answer),
            }
        }
        if let Some(error) = failed {
            tracing::error!(partition = at, %error, "the log refuses; read-only until a restart");
            partition.owner.failed(&error, &mut effects);
            for effect in effects {
                if let Effect::Answer(waiter, answer) = effect {
                    _ = waiter.send(answer);
                }
            }
        }
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

    fn run_housekeeper(self: &Arc<Self>) {
        let mut looked = self.clock.ticks();
        let half_ms = self.rules.options.erase_within.as_millis() as i64 / 2;
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            let ticks = self.clock.ticks();
            if ticks.saturating_sub(looked) < ERASES_EVERY_MS {
                continue;
            }
            looked = ticks;
            let (table, keys, now) = (&*self.table, &self.rules.keys, self.clock.now());
            let done = erase::empty_files(table, &self.queue, &self.topic, keys, now, half_ms);
            if let Err(error) = done {
                tracing::error!(%error, "cannot empty the files of erased users; again soon");
            }
        }
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread = thread.expect("a process at its start can make a thread");
        self.threads.lock().expect("held for a push").push(thread);
    }
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

/// Each partition's part of what is allowed.
fn bounds(options: &Options, partitions: usize) -> Bounds {
    Bounds {
        hot_bytes_max: options.hot_budget_bytes / partitions,
        flush_after_ms: options.flush_after.as_millis() as u64,
        flush_bytes: 4 << 20,
        flights_max: 64,
        parked_max: options.parked_max,
        pack_bytes_max: 256 << 10,
        count_after_ms: 1000,
    }
}

/// A refusal of the log that an owner cannot do anything about.
fn log_error(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { what: "the log of danmaku".into(), cause: error.to_string() }
}

/// How often time passes for an owner.
const TICK: Duration = Duration::from_millis(20);
/// How long a partition without space brings videos to rest before it tries to
/// log more, unless all are at rest: five seconds.
const FULL_FOR_TICKS: u32 = 250;
/// How often the housekeeper looks for erases that are due.
const ERASES_EVERY_MS: u64 = 2_000;
/// Threads that read rows.
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
