//! What drives the owners: locks, threads and waits.
//!
//! A partition's owner sits behind a lock that is held for one step and never
//! across a wait. Callers step it on their own thread; the journal's thread
//! steps it when a sync is done. Beside these the *ticker* lets time pass, and
//! the *keeper* brings subtrees to rest, moves places, removes what is over,
//! and starts a partition again that has lost what it decided. Both are joined
//! by [`Driver::close`].

mod door;
mod keep;
mod open;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tideline_queue::{PartitionWriter, Queue};
use tideline_store::{AppendError, Clock, StoreError, SyncWatcher, Table};
use tideline_types::{PartitionId, Seq, StreamId, TopicName, partition_of};
use tokio::sync::oneshot;

pub(crate) use door::{Door, Snapshot};
pub use open::TOPIC;

use crate::ask::{Answer, Ask, Refusal};
use crate::options::Options;
use crate::owner::{At, Effect, Owner};
use crate::path::Path;

type Waiter = oneshot::Sender<Answer>;

/// One partition: its owner and its place in the log.
struct Partition {
    owner: Owner<Waiter>,
    writer: PartitionWriter,
    /// Batches that the log was too full to take, in order.
    unsent: VecDeque<Bytes>,
    /// There was no space, and what had been decided is lost: to be started
    /// again from what is durable.
    lost: bool,
}

/// Everything the threads share.
pub(crate) struct Driver {
    queue: Queue,
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    topic: TopicName,
    options: Options,
    partitions: Box<[Mutex<Partition>]>,
    /// The subtrees there are, as far as they are durable.
    doors: RwLock<BTreeMap<Path, Arc<Door>>>,
    closed: AtomicBool,
    stop: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Driver {
    /// Makes one call about the subtree at `root`.
    pub(crate) async fn ask(self: &Arc<Self>, root: &Path, ask: Ask) -> Answer {
        match self.send(root, ask) {
            Some(told) => told.await.unwrap_or(STOPPING),
            None => STOPPING,
        }
    }

    /// The same on a thread that may block, also while closing.
    fn ask_blocking(self: &Arc<Self>, root: &Path, ask: Ask) -> Answer {
        self.put(root, ask).blocking_recv().unwrap_or(STOPPING)
    }

    fn send(self: &Arc<Self>, root: &Path, ask: Ask) -> Option<oneshot::Receiver<Answer>> {
        (!self.closed.load(Ordering::Acquire)).then(|| self.put(root, ask))
    }

    fn put(self: &Arc<Self>, root: &Path, ask: Ask) -> oneshot::Receiver<Answer> {
        let (tell, told) = oneshot::channel();
        self.step(self.partition_of(root), |partition, at, effects| {
            if matches!(ask, Ask::Image) {
                partition.owner.resting(root);
            }
            partition.owner.ask(at, root, ask, tell, effects);
        });
        told
    }

    fn partition_of(&self, root: &Path) -> usize {
        let partitions = self.partitions.len() as u16;
        usize::from(partition_of(root.as_str().as_bytes(), partitions).0)
    }

    fn lock(&self, at: usize) -> MutexGuard<'_, Partition> {
        self.partitions[at].lock().expect("a step that panicked leaves no state to go on from")
    }

    /// One step of one owner, and what follows from it.
    fn step(
        self: &Arc<Self>,
        at: usize,
        step: impl FnOnce(&mut Partition, At, &mut Vec<Effect<Waiter>>),
    ) {
        let mut held = self.lock(at);
        let partition = &mut *held;
        let (now, ticks) = (self.clock.now(), self.clock.ticks());
        let mut effects = Vec::new();
        step(partition, At { now, ticks, epoch: partition.writer.log_epoch() }, &mut effects);
        let mut sent = Ok(());
        for effect in effects.drain(..) {
            if let Effect::Append(batch) = effect {
                partition.unsent.push_back(batch.finish());
                sent = sent.and_then(|()| partition.send());
            } else {
                self.tell(at, effect);
            }
        }
        if let Err(error) = sent {
            partition.refused(&error, &mut effects);
        }
        effects.into_iter().for_each(|effect| self.tell(at, effect));
    }

    fn tell(&self, at: usize, effect: Effect<Waiter>) {
        match effect {
            // One who has gone away is not missed.
            Effect::Answer(waiter, answer) => _ = waiter.send(answer),
            Effect::Changed(root, seq) => {
                if let Some(door) = self.door(&root) {
                    door.changed(seq);
                }
            }
            Effect::Opened(root, life) => {
                self.doors_mut()
                    .insert(root.clone(), Arc::new(Door::new(at, root, life, Seq::ZERO)));
            }
            Effect::Shut(root, life) => {
                let mut doors = self.doors_mut();
                if let Some(door) = doors.get(&root).filter(|door| door.life == life) {
                    door.shut();
                    doors.remove(&root);
                }
            }
            Effect::Append(_) => unreachable!("batches went to the log"),
        }
    }

    /// The subtree at `root`.
    pub(crate) fn door(&self, root: &Path) -> Option<Arc<Door>> {
        self.doors.read().unwrap_or_else(PoisonError::into_inner).get(root).cloned()
    }

    /// The subtree that `path` is in, and what is left of it below its root.
    pub(crate) fn resolve(&self, path: &Path) -> Result<(Arc<Door>, Path), Refusal> {
        let doors = self.doors.read().unwrap_or_else(PoisonError::into_inner);
        let mut root = Some(path.clone());
        while let Some(at) = root {
            if let Some(door) = doors.get(&at) {
                let below = path.below(&at).expect("a path is below what is above it");
                return Ok((door.clone(), below));
            }
            root = at.parent();
        }
        Err(Refusal::NoSubtree(path.clone()))
    }

    fn doors_mut(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<Path, Arc<Door>>> {
        self.doors.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_ticker(self: &Arc<Self>) {
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            for at in 0..self.partitions.len() {
                self.step(at, |partition, at, effects| {
                    if let Err(error) = partition.send() {
                        partition.refused(&error, effects);
                    }
                    partition.owner.tick(at, effects);
                });
            }
        }
    }

    /// Refuses new calls, brings every subtree to rest, and joins the threads.
    pub(crate) fn close(self: &Arc<Self>) {
        self.closed.store(true, Ordering::Release);
        self.stop.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.threads.lock().expect("held for a push"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the metadata tree ended in a panic");
            }
        }
        let doors = std::mem::take(&mut *self.doors_mut());
        doors.values().for_each(|door| door.shut());
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread = thread.expect("a process at its start can make a thread");
        self.threads.lock().expect("held for a push").push(thread);
    }
}

impl Partition {
    /// Appends what is unsent. Stops, without an error, while the log is full.
    fn send(&mut self) -> Result<(), StoreError> {
        while let Some(batch) = self.unsent.front() {
            match self.writer.append_bytes(batch.clone()) {
                Ok(_) => _ = self.unsent.pop_front(),
                // The latter: the journal has dropped a tail and tells so next.
                Err(AppendError::Full { .. } | AppendError::OutOfOrder { .. }) => return Ok(()),
                Err(error @ AppendError::OverQuota { .. }) => {
                    return Err(StoreError::NoSpace { what: error.to_string() });
                }
                Err(AppendError::Store(error)) => return Err(error),
                Err(error) => {
                    let what = "append to the log of meta".into();
                    return Err(StoreError::Failed { what, cause: error.to_string() });
                }
            }
        }
        Ok(())
    }

    /// The log does not take what was decided.
    fn refused(&mut self, error: &StoreError, effects: &mut Vec<Effect<Waiter>>) {
        if let StoreError::NoSpace { .. } = error {
            return self.lose(error, effects);
        }
        tracing::error!(stream = %self.owner.stream(), %error, "metadata is read-only until a restart");
        self.unsent.clear();
        self.owner.failed(error, effects);
    }

    fn lose(&mut self, error: &StoreError, effects: &mut Vec<Effect<Waiter>>) {
        self.unsent.clear();
        self.owner.dropped(error, effects);
        self.lost = true;
    }
}

const STOPPING: Answer = Answer::Refused(Refusal::Overloaded("the server is stopping"));

/// How often time passes for an owner.
const TICK: Duration = Duration::from_millis(20);

/// Passes on what the journal says of one partition.
struct Watcher {
    driver: Arc<OnceLock<Weak<Driver>>>,
    partition: PartitionId,
}

impl Watcher {
    fn step(&self, step: impl FnOnce(&mut Partition, &mut Vec<Effect<Waiter>>)) {
        if let Some(driver) = self.driver.get().and_then(Weak::upgrade) {
            driver.step(usize::from(self.partition.0), |partition, _, effects| {
                step(partition, effects);
            });
        }
    }
}

impl SyncWatcher for Watcher {
    fn synced(&self, _: StreamId, through: Seq) {
        self.step(|partition, effects| partition.owner.synced(through, effects));
    }

    fn failed(&self, _: StreamId, error: &StoreError) {
        self.step(|partition, effects| partition.owner.failed(error, effects));
    }

    fn dropped(&self, _: StreamId, from: Seq, error: &StoreError) {
        self.step(|partition, effects| {
            partition.writer.rewind(from);
            partition.lose(error, effects);
        });
    }
}
