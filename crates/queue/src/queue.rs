//! The handle: what there is, and the ways in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tideline_record::batch::Choose;
use tideline_record::derive::{Stage, Version};
use tideline_record::{Maker, OnError};
use tideline_store::{
    Bounds, Clock, EraseReport, Extent, Journal, ReadLimits, StoreError, SyncWatcher, Table, Usage,
};
use tideline_types::{PartitionId, Seq, SeqRange, StreamId, TopicName};
use tokio::sync::{oneshot, watch};

use crate::declared::{Declared, Rows, TableRows};
use crate::filter::{Built, Filter};
use crate::partition::{Answer, Partition};
use crate::topic::Config;
use crate::{FetchError, OpenError, Options, TopicInfo, TopicKind};

/// All topics of a data folder. Cheap to clone; clones are the same queue.
#[derive(Clone)]
pub struct Queue {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) table: Arc<dyn Table>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    topics: RwLock<BTreeMap<TopicName, Arc<Topic>>>,
    /// Read-held while records are derived, so that a version takes effect
    /// between two reads.
    derived: RwLock<BTreeMap<TopicName, Derived>>,
    pub(crate) maker: RwLock<Option<Arc<dyn Maker>>>,
    /// Where declared topics are kept.
    pub(crate) rows: RwLock<Arc<dyn Rows>>,
    /// Held while a topic is made or deleted. What is in it is the greatest
    /// incarnation that was ever given.
    pub(crate) changing: Mutex<u64>,
    /// Where the next record without a key goes.
    pub(crate) turn: AtomicU32,
    /// Read-held while records are freed; write-held by who holds still.
    pub(crate) freeing: RwLock<()>,
}

/// A source topic that is active.
pub(crate) struct Topic {
    pub(crate) name: TopicName,
    pub(crate) config: Config,
    pub(crate) lanes: Vec<Arc<Lane>>,
    /// Bytes of batches given to readers.
    pub(crate) egress: Arc<AtomicU64>,
}

#[derive(Clone)]
pub(crate) struct Derived {
    pub(crate) source: TopicName,
    pub(crate) stage: Arc<Stage>,
    /// What was declared; nothing of one that the product itself derives.
    pub(crate) declared: Option<Declared>,
    /// As [`Topic::egress`].
    pub(crate) egress: Arc<AtomicU64>,
}

impl Derived {
    /// One that the product itself derives.
    pub(crate) fn built(source: TopicName, filter: Filter) -> Self {
        let versions = vec![Version { cuts: Vec::new(), operator: Arc::new(Built(filter)) }];
        let stage = Arc::new(Stage { versions, on_error: OnError::Halt });
        Self { source, stage, declared: None, egress: Arc::default() }
    }

    pub(crate) fn declared(declared: Declared, stage: Stage) -> Self {
        let source = declared.source.clone();
        Self { source, stage: Arc::new(stage), declared: Some(declared), egress: Arc::default() }
    }
}

/// Who waits for a produce: told once.
pub(crate) type Ticket = oneshot::Sender<(Answer, Option<StoreError>)>;

/// One partition as it runs.
pub(crate) struct Lane {
    pub(crate) stream: StreamId,
    /// The last synced number; readers at the end wait here. Changed by the
    /// journal's thread, and once more when the topic is deleted.
    pub(crate) synced: watch::Sender<Seq>,
    /// The last number that the durable view has applied.
    pub(crate) trim_allowed: AtomicU64,
    /// Numbers for `produce`, from its first call on. The journal may be
    /// appended to while this is held, and nothing slower.
    pub(crate) shared: Mutex<Option<Partition<Ticket>>>,
}

impl Lane {
    pub(crate) fn new(stream: StreamId, synced: Seq, durable_view: bool) -> Arc<Self> {
        let trim_allowed = if durable_view { 0 } else { u64::MAX };
        Arc::new(Self {
            stream,
            synced: watch::Sender::new(synced),
            trim_allowed: AtomicU64::new(trim_allowed),
            shared: Mutex::new(None),
        })
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, Option<Partition<Ticket>>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Opens the topics that `table` knows over the records that `journal`
    /// holds, and finishes what a stop has interrupted. Blocks.
    pub fn open(
        journal: Arc<dyn Journal>,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, OpenError> {
        let rows: Arc<dyn Rows> = Arc::new(TableRows(table.clone()));
        let queue = Self {
            inner: Arc::new(Inner {
                journal,
                table,
                rows: RwLock::new(rows),
                clock,
                options,
                topics: RwLock::default(),
                derived: RwLock::default(),
                maker: RwLock::default(),
                changing: Mutex::new(0),
                turn: AtomicU32::new(0),
                freeing: RwLock::new(()),
            }),
        };
        queue.load()?;
        Ok(queue)
    }

    /// Every topic, by name.
    pub fn topics(&self) -> Vec<TopicInfo> {
        let sources: Vec<_> = self.inner.topics().values().cloned().collect();
        let derived: Vec<_> = self.inner.derived().keys().cloned().collect();
        let mut all: Vec<TopicInfo> = sources.iter().map(|t| self.describe(t)).collect();
        all.extend(derived.iter().filter_map(|name| self.topic(name)));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The topic of that name.
    pub fn topic(&self, name: &TopicName) -> Option<TopicInfo> {
        if let Some(topic) = self.inner.source(name) {
            return Some(self.describe(&topic));
        }
        let Derived { source, egress, declared, .. } = self.inner.derived().get(name)?.clone();
        let topic = self.inner.place(name, PartitionId(0)).ok()?.topic;
        let mut info = self.describe(&topic);
        info.name = name.clone();
        let operator = declared.map(|declared| declared.text().to_owned());
        info.kind = TopicKind::Derived { source, operator };
        info.read_only = true;
        info.egress_bytes = egress.load(Ordering::Relaxed);
        Some(info)
    }

    fn describe(&self, topic: &Topic) -> TopicInfo {
        let bounds = |lane: &Arc<Lane>| self.inner.journal.bounds(lane.stream).unwrap_or_default();
        TopicInfo {
            name: topic.name.clone(),
            incarnation: topic.config.incarnation,
            partitions: topic.config.partitions,
            kind: TopicKind::Source,
            read_only: topic.config.read_only,
            retention: topic.config.retention,
            egress_bytes: topic.egress.load(Ordering::Relaxed),
            bounds: topic.lanes.iter().map(bounds).collect(),
        }
    }

    /// What a partition holds now; of a derived topic, its source's.
    pub fn bounds(&self, topic: &TopicName, partition: PartitionId) -> Result<Bounds, FetchError> {
        let lane = self.inner.place(topic, partition)?.lane;
        let bounds = self.inner.journal.bounds(lane.stream);
        bounds.ok_or_else(|| FetchError::NoTopic(topic.clone()))
    }

    /// Synced batches of a source topic's partition, as in [`Journal::read`].
    /// For the owner of a view, on a thread that may block.
    pub fn read(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        from: Seq,
        limits: ReadLimits,
    ) -> Result<Vec<Bytes>, FetchError> {
        let lane = self.inner.place(topic, partition)?.lane;
        let read = self.inner.journal.read(lane.stream, from, limits);
        read.map_err(|error| FetchError::of_read(error, topic))
    }

    /// The runs of records that are freed at once, in order.
    pub fn extents(
        &self,
        topic: &TopicName,
        partition: PartitionId,
    ) -> Result<Vec<Extent>, FetchError> {
        let lane = self.inner.place(topic, partition)?.lane;
        Ok(self.inner.journal.extents(lane.stream))
    }

    /// Frees what lies at or below `through` now, whatever its age, but never
    /// what a durable view has not applied, and nothing while someone holds
    /// still. Answers the new start. Blocks.
    pub fn trim(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        through: Seq,
    ) -> Result<Seq, FetchError> {
        let place = self.inner.place(topic, partition)?;
        let lane = place.lane;
        let Some(_leave) = self.may_free() else {
            return Ok(self.inner.journal.bounds(lane.stream).unwrap_or_default().start);
        };
        let through = through.min(Seq(lane.trim_allowed.load(Ordering::Acquire)));
        Ok(self.inner.free(&place.topic, &lane, through)?)
    }

    /// A durable view has applied everything up to `through`: retention may
    /// free it from now on. Never falls.
    pub fn trim_allowed(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        through: Seq,
    ) -> Result<(), FetchError> {
        let lane = self.inner.place(topic, partition)?.lane;
        lane.trim_allowed.fetch_max(through.0, Ordering::AcqRel);
        Ok(())
    }

    /// Empties the chosen records, as in [`Journal::erase`]. Blocks.
    pub fn erase(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        range: SeqRange,
        choose: &mut Choose<'_>,
    ) -> Result<EraseReport, FetchError> {
        let lane = self.inner.place(topic, partition)?.lane;
        Ok(self.inner.journal.erase(lane.stream, range, choose)?)
    }

    /// Bytes of all topics.
    pub fn usage(&self) -> Usage {
        self.inner.journal.usage()
    }

    /// `Err` when nothing can be written, and why.
    pub fn health(&self) -> Result<(), StoreError> {
        self.inner.journal.health()
    }
}

/// A partition to read: its lane, and by which topic it is read.
pub(crate) struct Place {
    pub(crate) topic: Arc<Topic>,
    pub(crate) lane: Arc<Lane>,
    pub(crate) name: TopicName,
    /// Where what is read is counted.
    pub(crate) egress: Arc<AtomicU64>,
}

impl Inner {
    pub(crate) fn topics(&self) -> RwLockReadGuard<'_, BTreeMap<TopicName, Arc<Topic>>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn topics_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<TopicName, Arc<Topic>>> {
        self.topics.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn derived(&self) -> RwLockReadGuard<'_, BTreeMap<TopicName, Derived>> {
        self.derived.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn derived_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<TopicName, Derived>> {
        self.derived.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source topic of that name.
    pub(crate) fn source(&self, name: &TopicName) -> Option<Arc<Topic>> {
        self.topics().get(name).cloned()
    }

    /// Where a topic's partition is read.
    pub(crate) fn place(
        &self,
        name: &TopicName,
        partition: PartitionId,
    ) -> Result<Place, FetchError> {
        let derived = self.derived();
        let root = root_of(&derived, name);
        let topic = self.source(root).ok_or_else(|| FetchError::NoTopic(name.clone()))?;
        let lane = topic.lanes.get(usize::from(partition.0)).cloned();
        let lane = lane.ok_or_else(|| FetchError::NoPartition(name.clone(), partition))?;
        let egress = derived.get(name).map_or(&topic.egress, |derived| &derived.egress).clone();
        Ok(Place { topic, lane, name: name.clone(), egress })
    }

    pub(crate) fn rows(&self) -> Arc<dyn Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn maker(&self) -> Option<Arc<dyn Maker>> {
        self.maker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The topic with a log on which `name` stands, if it stands on one.
fn root_of<'a>(
    derived: &'a BTreeMap<TopicName, Derived>,
    mut name: &'a TopicName,
) -> &'a TopicName {
    // A chain is bounded when it is made, and never has a circle.
    while let Some(derived) = derived.get(name) {
        name = &derived.source;
    }
    name
}

/// The stages from the log to `name`, in order.
pub(crate) fn stages_of<'a>(
    derived: &'a BTreeMap<TopicName, Derived>,
    mut name: &'a TopicName,
) -> Vec<Arc<Stage>> {
    let mut stages = Vec::new();
    while let Some(derived) = derived.get(name) {
        stages.push(derived.stage.clone());
        name = &derived.source;
    }
    stages.reverse();
    stages
}

/// Passes what the journal says on to readers who wait, then to the owner.
pub(crate) struct Relay {
    pub(crate) lane: Arc<Lane>,
    pub(crate) owner: Arc<dyn SyncWatcher>,
}

impl SyncWatcher for Relay {
    fn synced(&self, stream: StreamId, through: Seq) {
        self.lane.synced.send_replace(through);
        self.owner.synced(stream, through);
    }

    fn failed(&self, stream: StreamId, error: &StoreError) {
        self.owner.failed(stream, error);
    }

    fn dropped(&self, stream: StreamId, from: Seq, error: &StoreError) {
        self.owner.dropped(stream, from, error);
    }
}
