//! What drives the owners of a view: locks, threads and waits.
//!
//! A partition's owner sits behind a lock that is held for one step and never
//! across a wait. Callers step it on their own thread; the journal's thread
//! steps it when a sync is done. Beside these:
//!
//! - the *ticker* lets time pass for each owner, every few milliseconds;
//! - the *flusher* commits images to the table, in order, syncs it once for
//!   many, and then writes the partitions' places, behind which the log may
//!   be trimmed;
//! - two *loaders* read what owners want, much at a time; recoveries run on
//!   the blocking pool;
//! - the *housekeeper*, if the view has one, does what is due now and then.
//!
//! All are joined by [`Driver::stop`], but for a housekeeper whose files take
//! longer to rewrite than a stop may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tideline_record::batch::BatchBuilder;
use tideline_store::{Clock, Commit, Place, ReadLimits, StoreError, SyncWatcher, Table};
use tideline_types::{Epoch, Millis, PartitionId, Seq, StreamId, TopicName, partition_of};

use super::flush::Image;
use super::outbox::Outbox;
use super::{EffectOf, LandingOf, Owner, View, log_error, setup};
use crate::{PartitionWriter, Queue};

/// One partition: its owner, and its way to the log.
pub struct Partition<V: View> {
    /// Its owner.
    pub owner: V::Owner,
    outbox: Outbox,
    /// Reused by every step.
    effects: Vec<EffectOf<V>>,
}

impl<V: View> Partition<V> {
    /// Why nothing may be decided now, if so: there was no space, and what had
    /// been decided was dropped.
    pub fn refusal(&self) -> Option<&StoreError> {
        self.outbox.refusal()
    }

    /// The epoch that the log has now: see [`PartitionWriter::log_epoch`].
    pub fn log_epoch(&self) -> Epoch {
        self.outbox.log_epoch()
    }
}

/// What an owner wants to be read.
pub struct Order<V: View> {
    /// Of which partition.
    pub(super) at: usize,
    pub(super) wanted: Vec<V::Wanted>,
}

/// What carries effects out; see [`View::carry_out`].
pub struct Hands<'a, V: View> {
    at: usize,
    flushes: &'a mpsc::Sender<Image<V>>,
    outbox: &'a mut Outbox,
    wanted: &'a mut Vec<V::Wanted>,
    failed: Option<StoreError>,
}

impl<V: View> Hands<'_, V> {
    /// Appends to the partition's log.
    pub fn append(&mut self, batch: BatchBuilder) {
        let sent = self.outbox.append(batch.finish());
        if self.failed.is_none() {
            self.failed = sent.err();
        }
    }

    /// Commits, in order and after every earlier flush of the partition, makes
    /// it durable, and gives `landing` back.
    pub fn flush(&mut self, commits: Vec<Commit>, landing: LandingOf<V>) {
        // The flusher outlives every owner that has work for it.
        _ = self.flushes.send(Image { at: self.at, commits, landing });
    }

    /// Has a loader read.
    pub fn load(&mut self, wanted: V::Wanted) {
        self.wanted.push(wanted);
    }
}

/// Everything the threads share.
pub struct Driver<V: View> {
    pub(super) view: V,
    pub(super) queue: Queue,
    pub(super) table: Arc<dyn Table>,
    pub(super) topic: TopicName,
    pub(super) clock: Arc<dyn Clock>,
    runtime: tokio::runtime::Handle,
    partitions: Box<[Mutex<Partition<V>>]>,
    flushes: mpsc::Sender<Image<V>>,
    /// Bounded by what owners let wait.
    orders: mpsc::Sender<Vec<Order<V>>>,
    closed: AtomicBool,
    stopped: AtomicBool,
    /// The housekeeper has files rewritten.
    pub(super) rewriting: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    pub(super) housekeeper: Mutex<Option<JoinHandle<()>>>,
}

impl<V: View> Driver<V> {
    /// Takes over every partition of the view's topic, which has `partitions`
    /// of them, replays what is not at rest, and starts the threads. `owner`
    /// makes the owner of a partition from its writer and its place. Blocks;
    /// must be called within a tokio runtime.
    pub fn open(
        view: V,
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        partitions: u16,
        mut owner: impl FnMut(&PartitionWriter, Place) -> V::Owner,
    ) -> Result<Arc<Self>, StoreError> {
        let topic = setup::name(V::NAME);
        let this: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let mut owned = Vec::with_capacity(usize::from(partitions));
        for partition in (0..partitions).map(PartitionId) {
            let watcher = Arc::new(Watcher { driver: Arc::clone(&this), partition });
            let writer = queue.own(&topic, partition, watcher);
            let writer = writer.map_err(|error| log_error(V::NAME, &error))?;
            let owner = owner(&writer, Place::read(&*table, V::NAME, partition)?);
            let outbox = Outbox::new(V::NAME, writer);
            owned.push(Mutex::new(Partition { owner, outbox, effects: Vec::new() }));
        }
        let (flushes, images) = mpsc::channel();
        let (orders, taken) = mpsc::channel();
        let driver = Arc::new(Self {
            view,
            queue,
            table,
            topic,
            clock,
            runtime: tokio::runtime::Handle::current(),
            partitions: owned.into(),
            flushes,
            orders,
            closed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            rewriting: AtomicBool::new(false),
            threads: Mutex::default(),
            housekeeper: Mutex::default(),
        });
        for partition in (0..partitions).map(PartitionId) {
            driver.recover(partition, true)?;
        }
        this.set(Arc::downgrade(&driver)).expect("set once, here");
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..LOADERS {
            let (loader, taken) = (Arc::clone(&driver), Arc::clone(&taken));
            driver.keep_thread("load", move || loader.run_loader(&taken));
        }
        let (ticker, flusher) = (Arc::clone(&driver), Arc::clone(&driver));
        driver.keep_thread("tick", move || ticker.run_ticker());
        driver.keep_thread("flush", move || flusher.run_flusher(&images));
        Ok(driver)
    }

    /// What the owners are.
    pub fn view(&self) -> &V {
        &self.view
    }

    /// Where they are at rest.
    pub fn table(&self) -> &Arc<dyn Table> {
        &self.table
    }

    /// Where their log is.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The topic of their outcomes.
    pub fn topic(&self) -> &TopicName {
        &self.topic
    }

    /// For what may block.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    /// The time.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The monotone time.
    pub fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    /// How many partitions.
    pub fn partitions(&self) -> u16 {
        self.partitions.len() as u16
    }

    /// Which partition holds `key`.
    pub fn partition_of(&self, key: &str) -> usize {
        usize::from(partition_of(key.as_bytes(), self.partitions()).0)
    }

    /// Looks at one owner, with its lock held.
    pub fn look<T>(&self, at: usize, look: impl FnOnce(&V::Owner) -> T) -> T {
        look(&self.lock(at).owner)
    }

    /// Looks at each owner, in order.
    pub fn look_at_all<T>(&self, mut look: impl FnMut(&V::Owner) -> T) -> Vec<T> {
        (0..self.partitions.len()).map(|at| self.look(at, &mut look)).collect()
    }

    /// One step of one owner, and what follows from it.
    pub fn step(&self, at: usize, step: impl FnOnce(&mut Partition<V>, &mut Vec<EffectOf<V>>)) {
        self.order(self.step_only(at, step).into_iter().collect());
    }

    /// One step, and what follows from it, but that what loaders are to read is
    /// left for the caller to order.
    #[must_use]
    pub fn step_only(
        &self,
        at: usize,
        step: impl FnOnce(&mut Partition<V>, &mut Vec<EffectOf<V>>),
    ) -> Option<Order<V>> {
        let mut wanted = Vec::new();
        {
            let mut held = self.lock(at);
            let mut effects = std::mem::take(&mut held.effects);
            step(&mut held, &mut effects);
            let failed = self.carry_out(at, &mut held.outbox, &mut effects, &mut wanted);
            if let Some(error) = failed {
                tracing::error!(view = V::NAME, partition = at, %error, "the log refuses; read-only until a restart");
                held.owner.failed(&error, &mut effects);
                _ = self.carry_out(at, &mut held.outbox, &mut effects, &mut wanted);
            }
            held.effects = effects;
        }
        (!wanted.is_empty()).then_some(Order { at, wanted })
    }

    /// Answers why the log took a fault, if it did.
    fn carry_out(
        &self,
        at: usize,
        outbox: &mut Outbox,
        effects: &mut Vec<EffectOf<V>>,
        wanted: &mut Vec<V::Wanted>,
    ) -> Option<StoreError> {
        let mut hands = Hands { at, flushes: &self.flushes, outbox, wanted, failed: None };
        effects.drain(..).for_each(|effect| self.view.carry_out(effect, &mut hands));
        hands.failed
    }

    /// Has loaders read, with one wake-up for all.
    pub fn order(&self, orders: Vec<Order<V>>) {
        if !orders.is_empty() {
            // The loaders outlive every owner that has work for them.
            _ = self.orders.send(orders);
        }
    }

    /// Whether calls are refused because the server is stopping.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the threads are to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Refuses new calls, brings everything to rest within `limit`, and joins
    /// the threads. What does not come to rest in time is in the log. Blocks.
    pub fn close(&self, limit: Duration) {
        self.closed.store(true, Ordering::Release);
        let end = self.clock.ticks() + limit.as_millis() as u64;
        for at in 0..self.partitions.len() {
            self.lock(at).owner.drain();
        }
        let at_rest = |at: usize| self.look(at, V::Owner::is_at_rest);
        while !(0..self.partitions.len()).all(at_rest) && self.clock.ticks() < end {
            std::thread::sleep(TICK);
        }
        self.end_housekeeping(end);
        self.stopped.store(true, Ordering::Release);
        // Each loader takes one, and looks up.
        for _ in 0..LOADERS {
            _ = self.orders.send(Vec::new());
        }
        let threads = std::mem::take(&mut *self.threads.lock().expect("held for a push"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!(view = V::NAME, "a thread ended in a panic");
            }
        }
    }

    pub(super) fn lock(&self, at: usize) -> MutexGuard<'_, Partition<V>> {
        self.partitions[at].lock().expect("a step that panicked leaves no state to go on from")
    }

    /// Time passes for one owner; what the log was too full for is tried again.
    fn tick(self: &Arc<Self>, at: usize, now: Millis, ticks: u64) {
        let mut dropped = false;
        self.step(at, |partition, effects| {
            let Partition { owner, outbox, .. } = partition;
            match outbox.retry(owner.synced_through()) {
                Err(error) => owner.failed(&error, effects),
                Ok(Some((from, error))) => {
                    owner.dropped(from, &error, effects);
                    dropped = true;
                }
                Ok(None) => {
                    owner.tick(now, ticks, effects);
                    outbox.tick(owner.is_settled());
                }
            }
        });
        if dropped {
            self.recover_later(PartitionId(at as u16));
        }
    }

    fn run_ticker(self: &Arc<Self>) {
        while !self.is_stopped() {
            std::thread::sleep(TICK);
            let (now, ticks) = (self.clock.now(), self.clock.ticks());
            for at in 0..self.partitions.len() {
                self.tick(at, now, ticks);
            }
        }
    }

    /// Makes the owner anew from the table and the log, and lets it take calls.
    /// The one it replaces refuses everybody meanwhile. `alone` as in
    /// [`View::recover`].
    fn recover(&self, partition: PartitionId, alone: bool) -> Result<(), StoreError> {
        let at = usize::from(partition.0);
        let mut owner = self.look(at, V::Owner::successor);
        let mut read = |from| {
            let batches = self.queue.read(&self.topic, partition, from, READ);
            batches.map_err(|error| log_error(V::NAME, &error))
        };
        V::recover(&mut owner, &*self.table, &mut read, alone)?;
        self.lock(at).owner = owner;
        Ok(())
    }

    /// As `recover`, on the blocking pool, until it succeeds or the server
    /// stops. Images of the owner before it may still be on their way.
    fn recover_later(self: &Arc<Self>, partition: PartitionId) {
        let driver = Arc::clone(self);
        self.runtime.spawn_blocking(move || {
            while !driver.is_closed() {
                match driver.recover(partition, false) {
                    Ok(()) => return,
                    Err(error) => {
                        let view = V::NAME;
                        tracing::error!(view, %partition, %error, "cannot recover; again soon");
                    }
                }
                std::thread::sleep(RECOVER_AGAIN);
            }
        });
    }

    fn keep_thread(&self, what: &str, run: impl FnOnce() + Send + 'static) {
        let thread = Self::thread(what, run);
        self.threads.lock().expect("held for a push").push(thread);
    }

    pub(super) fn thread(what: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        let thread = std::thread::Builder::new().name(format!("{}-{what}", V::NAME)).spawn(run);
        thread.expect("a process at its start can make a thread")
    }
}

/// Passes on what the journal says of one partition.
struct Watcher<V: View> {
    driver: Arc<OnceLock<Weak<Driver<V>>>>,
    partition: PartitionId,
}

impl<V: View> Watcher<V> {
    fn step(
        &self,
        step: impl FnOnce(&mut Partition<V>, &mut Vec<EffectOf<V>>),
    ) -> Option<Arc<Driver<V>>> {
        let driver = self.driver.get().and_then(Weak::upgrade)?;
        driver.step(usize::from(self.partition.0), step);
        Some(driver)
    }
}

impl<V: View> SyncWatcher for Watcher<V> {
    fn synced(&self, _: StreamId, through: Seq) {
        self.step(|partition, effects| partition.owner.synced(through, effects));
    }

    fn failed(&self, _: StreamId, error: &StoreError) {
        self.step(|partition, effects| partition.owner.failed(error, effects));
    }

    fn dropped(&self, _: StreamId, from: Seq, error: &StoreError) {
        let driver = self.step(|partition, effects| {
            partition.outbox.dropped(from, error);
            partition.owner.dropped(from, error, effects);
        });
        if let Some(driver) = driver {
            driver.recover_later(self.partition);
        }
    }
}

/// How often time passes for an owner.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// Threads that read for owners.
const LOADERS: usize = 2;
const READ: ReadLimits = ReadLimits { records_max: 65_536, bytes_max: 4 << 20 };
const RECOVER_AGAIN: Duration = Duration::from_millis(200);
