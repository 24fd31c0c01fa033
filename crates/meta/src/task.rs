//! What drives the owners: [`view::Driver`], with what is the tree's own: doors
//! through which callers and observers come in, and a housekeeper that brings
//! subtrees to rest.

mod door;
mod keep;
mod open;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use tideline_queue::view::{self, Hands, View};
use tideline_store::{StoreError, Table};
use tideline_types::Seq;
use tokio::sync::oneshot;

pub(crate) use door::{Door, Snapshot};

use crate::ask::{Answer, Ask, Refusal};
use crate::options::Options;
use crate::owner::{At, Effect, Owner};
use crate::path::Path;
use crate::recovery;

/// The name of the topic that holds the commits.
pub const TOPIC: &str = "meta";

type Waiter = oneshot::Sender<Answer>;

/// The view of topic `meta`: the subtrees there are, as far as they are
/// durable.
#[derive(Default)]
struct Subtrees {
    doors: RwLock<BTreeMap<Path, Arc<Door>>>,
}

impl View for Subtrees {
    const NAME: &'static str = TOPIC;
    type Owner = Owner<Waiter>;
    type Wanted = Infallible;

    fn carry_out(&self, effect: Effect<Waiter>, hands: &mut Hands<'_, Self>) {
        match effect {
            Effect::Append(batch) => hands.append(batch),
            // One who has gone away is not missed.
            Effect::Answer(waiter, answer) => _ = waiter.send(answer),
            Effect::Changed(root, seq) => {
                if let Some(door) = self.door(&root) {
                    door.changed(seq);
                }
            }
            Effect::Opened(root, life) => {
                self.doors_mut().insert(root.clone(), Arc::new(Door::new(root, life, Seq::ZERO)));
            }
            Effect::Shut(root, life) => {
                let mut doors = self.doors_mut();
                if let Some(door) = doors.get(&root).filter(|door| door.life == life) {
                    door.shut();
                    doors.remove(&root);
                }
            }
        }
    }

    fn load(&self, _: &view::Driver<Self>, _: usize, _: Vec<Infallible>) {}

    fn recover(
        owner: &mut Owner<Waiter>,
        table: &dyn Table,
        read: &mut view::Read<'_>,
        alone: bool,
    ) -> Result<(), StoreError> {
        // Later, the log may have been freed up to the place.
        let start = if alone { owner.start() } else { Seq(u64::MAX) };
        recovery::recover(owner, table, start, read)
    }
}

impl Subtrees {
    fn door(&self, root: &Path) -> Option<Arc<Door>> {
        self.doors.read().unwrap_or_else(PoisonError::into_inner).get(root).cloned()
    }

    fn doors_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Path, Arc<Door>>> {
        self.doors.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All partitions.
pub(crate) struct Driver {
    options: Options,
    view: Arc<view::Driver<Subtrees>>,
    closed: AtomicBool,
}

impl Driver {
    /// Makes one call about the subtree at `root`.
    pub(crate) async fn ask(&self, root: &Path, ask: Ask) -> Answer {
        self.begin(root, ask).answer().await
    }

    /// Makes the call, and waits for nothing. Calls are taken in this order.
    pub(crate) fn begin(&self, root: &Path, ask: Ask) -> Begun {
        let closed = self.closed.load(Ordering::Acquire);
        Begun((!closed).then(|| self.put(root, ask)))
    }

    /// The same on a thread that may block, also while closing.
    fn ask_blocking(&self, root: &Path, ask: Ask) -> Answer {
        self.put(root, ask).blocking_recv().unwrap_or(STOPPING)
    }

    fn put(&self, root: &Path, ask: Ask) -> oneshot::Receiver<Answer> {
        let (tell, told) = oneshot::channel();
        let (now, ticks) = (self.view.now(), self.view.ticks());
        self.view.step(self.partition_of(root), |partition, effects| {
            if let Some(error) = partition.refusal().filter(|_| ask.is_write()) {
                effects.push(Effect::Answer(tell, Answer::Refused(Refusal::from(error))));
                return;
            }
            let at = At { now, ticks, epoch: partition.log_epoch() };
            if matches!(ask, Ask::Image) {
                partition.owner.resting(root);
            }
            partition.owner.ask(at, root, ask, tell, effects);
        });
        told
    }

    fn partition_of(&self, root: &Path) -> usize {
        self.view.partition_of(root.as_str())
    }

    /// The subtree at `root`.
    pub(crate) fn door(&self, root: &Path) -> Option<Arc<Door>> {
        self.view.view().door(root)
    }

    /// The subtree that `path` is in, and what is left of it below its root.
    pub(crate) fn resolve(&self, path: &Path) -> Result<(Arc<Door>, Path), Refusal> {
        let doors = self.view.view().doors.read().unwrap_or_else(PoisonError::into_inner);
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

    /// Refuses new calls, brings every subtree to rest, and joins the threads.
    /// What does not come to rest within `limit` is in the log.
    pub(crate) fn close(&self, limit: Duration) {
        let end = self.view.ticks() + limit.as_millis() as u64;
        self.closed.store(true, Ordering::Release);
        // On a thread of its own: the caller's may not wait for a sync.
        std::thread::scope(|scope| _ = scope.spawn(|| self.rest_all(end)));
        self.view.close(Duration::from_millis(end.saturating_sub(self.view.ticks())));
        let doors = std::mem::take(&mut *self.view.view().doors_mut());
        doors.values().for_each(|door| door.shut());
    }
}

/// A call that was made; none where no more are taken.
pub(crate) struct Begun(Option<oneshot::Receiver<Answer>>);

impl Begun {
    pub(crate) async fn answer(self) -> Answer {
        match self.0 {
            Some(told) => told.await.unwrap_or(STOPPING),
            None => STOPPING,
        }
    }
}

const STOPPING: Answer = Answer::Refused(Refusal::Overloaded("the server is stopping"));
