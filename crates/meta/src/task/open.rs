//! A start: topics, partitions, what they hold, and what was begun and not
//! finished.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use tideline_queue::{PartitionWriter, Queue, TopicSpec};
use tideline_store::{Clock, ReadLimits, StoreError, Table};
use tideline_types::{Incarnation, PartitionId, Seq, TopicName};

use super::{Door, Driver, Partition, Waiter, Watcher};
use crate::ask::{Answer, Ask};
use crate::namespace;
use crate::options::Options;
use crate::owner::Owner;
use crate::path::Path;
use crate::recovery;

/// The name of the topic that holds the commits.
pub const TOPIC: &str = "meta";

impl Driver {
    /// Takes every partition over, brings back what it holds, and starts the
    /// threads. Blocks.
    pub(crate) fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Arc<Self>, StoreError> {
        let topic = TopicName::new(TOPIC).expect("the name is within its alphabet");
        let spec = TopicSpec {
            partitions: Some(options.partitions),
            read_only: true,
            durable_view: true,
            ..TopicSpec::new(topic.clone())
        };
        let partitions = queue.ensure_topic(spec).map_err(|error| failed(&error))?.partitions;
        let this: Arc<OnceLock<std::sync::Weak<Self>>> = Arc::default();
        let mut owned = Vec::with_capacity(usize::from(partitions));
        for partition in (0..partitions).map(PartitionId) {
            let watcher = Arc::new(Watcher { driver: Arc::clone(&this), partition });
            let writer = queue.own(&topic, partition, watcher).map_err(|error| failed(&error))?;
            let owner = recover(&queue, &topic, &*table, &writer, clock.ticks())?;
            let (unsent, lost) = (VecDeque::new(), false);
            owned.push(Mutex::new(Partition { owner, writer, unsent, lost }));
        }
        let driver = Arc::new(Self {
            queue,
            table,
            clock,
            topic,
            options,
            partitions: owned.into(),
            doors: RwLock::default(),
            closed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            threads: Mutex::default(),
        });
        this.set(Arc::downgrade(&driver)).expect("set once, here");
        for at in 0..driver.partitions.len() {
            driver.open_doors(at);
        }
        // On a thread of its own: the caller's may not wait for a sync.
        std::thread::scope(|scope| scope.spawn(|| driver.reconcile()).join())
            .map_err(|_| failed(&"a panic while it was opened"))??;
        let (ticker, keeper) = (Arc::clone(&driver), Arc::clone(&driver));
        driver.spawn("meta-tick", move || ticker.run_ticker());
        driver.spawn("meta-keep", move || keeper.run_keeper());
        Ok(driver)
    }

    /// Lets callers and observers in to what the partition has synced.
    fn open_doors(&self, at: usize) {
        let partition = self.lock(at);
        let mut doors = self.doors_mut();
        doors.retain(|root, door| {
            let there =
                |(held, life, _): (&Path, Incarnation, Seq)| held == root && life == door.life;
            let stays = door.partition != at || partition.owner.subtrees().any(there);
            if !stays {
                door.shut();
            }
            stays
        });
        for (root, life, synced) in partition.owner.subtrees() {
            let new = || Arc::new(Door::new(at, root.clone(), life, synced));
            doors.entry(root.clone()).or_insert_with(new).changed(synced);
        }
    }

    /// Opens what is declared and not there, shuts what is there and not
    /// declared: a stop came between the two.
    fn reconcile(self: &Arc<Self>) -> Result<(), StoreError> {
        let top = Path::root();
        let (life, quota) = (namespace::LIFE, namespace::QUOTA);
        self.settle(&top, Ask::Open { incarnation: life, quota })?;
        let Answer::Image(image) = self.ask_blocking(&top, Ask::Picture) else {
            return Err(failed(&"what lies above subtrees cannot be read"));
        };
        let mut declared = BTreeMap::new();
        for (path, node) in image.tree.nodes() {
            let found = namespace::declared(node).map_err(|bad| failed(&bad))?;
            declared.extend(found.map(|found| (path.clone(), found)));
        }
        let mut there = BTreeMap::<Path, Incarnation>::new();
        for at in 0..self.partitions.len() {
            let partition = self.lock(at);
            there.extend(partition.owner.subtrees().map(|(root, life, _)| (root.clone(), life)));
        }
        for (root, &(incarnation, quota)) in &declared {
            self.settle(root, Ask::Open { incarnation, quota })?;
        }
        for (root, life) in there {
            let is_declared = declared.get(&root).is_some_and(|(held, _)| *held == life);
            if !root.is_root() && !is_declared {
                self.settle(&root, Ask::Shut(life))?;
            }
        }
        Ok(())
    }

    fn settle(self: &Arc<Self>, root: &Path, ask: Ask) -> Result<(), StoreError> {
        match self.ask_blocking(root, ask) {
            Answer::Refused(refusal) => Err(failed(&refusal)),
            _ => Ok(()),
        }
    }

    /// A partition begins anew from what is durable, once nothing of it is on
    /// its way to the log.
    pub(super) fn start_again(&self, at: usize) -> Result<(), StoreError> {
        let mut partition = self.lock(at);
        let id = PartitionId(at as u16);
        let bounds = self.queue.topic(&self.topic).map(|info| info.bounds);
        let synced = bounds.and_then(|bounds| Some(bounds.get(usize::from(id.0))?.synced));
        if synced.map(Seq::next) != Some(partition.writer.next()) {
            return Ok(());
        }
        let ticks = self.clock.ticks();
        let owner = recover(&self.queue, &self.topic, &*self.table, &partition.writer, ticks)?;
        partition.owner = owner;
        partition.lost = false;
        drop(partition);
        self.open_doors(at);
        Ok(())
    }
}

/// An owner of what tables and log hold.
fn recover(
    queue: &Queue,
    topic: &TopicName,
    table: &dyn Table,
    writer: &PartitionWriter,
    ticks: u64,
) -> Result<Owner<Waiter>, StoreError> {
    let (stream, synced) = (writer.stream(), writer.next().prev());
    let mut owner = Owner::new(stream, writer.epoch(), synced, writer.newest());
    let limits = ReadLimits { records_max: usize::MAX, bytes_max: 4 << 20 };
    let mut read = |from| {
        let batches = queue.read(topic, stream.partition, from, limits);
        batches.map_err(|error| failed(&error))
    };
    recovery::recover(&mut owner, table, writer.start(), ticks, &mut read)?;
    Ok(owner)
}

fn failed(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { what: "the metadata tree".into(), cause: error.to_string() }
}
