//! Records from anyone: numbers, times and acknowledgements of topics that
//! have no owner of their own. A producer that numbers its records may send
//! again what was not acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tideline_record::batch::{BatchBuilder, RECORD_OVERHEAD_BYTES_MAX, Stamp};
use tideline_store::{StoreError, SyncWatcher};
use tideline_types::limits::{
    BATCH_BYTES_MAX, BATCH_RECORDS_MAX, RECORD_KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX,
};
use tideline_types::{
    Epoch, Incarnation, PartitionId, Position, Seq, SeqRange, StreamId, TopicName, partition_of,
};
use tokio::sync::oneshot;

use crate::partition::{Answer, Partition};
use crate::producers::Admit;
use crate::queue::{Inner, Lane, Topic};
use crate::writer::newest;
use crate::{ProduceError, Queue, StampError};

/// Records, each (key, value).
pub type Records = Vec<(Bytes, Bytes)>;

/// Records that were appended and are on their way to the disk.
#[must_use = "nothing is acknowledged before `synced`"]
pub struct Sent {
    incarnation: Incarnation,
    count: usize,
    shares: Vec<Result<Share, ProduceError>>,
}

/// What one partition's share of a call waits for.
struct Share {
    epoch: Epoch,
    places: Vec<usize>,
    answer: oneshot::Receiver<(Answer, Option<StoreError>)>,
}

impl Queue {
    /// Appends records and answers their positions, in the same order, when
    /// all are synced: [`Queue::send`], then [`Sent::synced`].
    pub async fn produce(
        &self,
        topic: &TopicName,
        partition: Option<PartitionId>,
        records: Records,
    ) -> Result<Vec<Position>, ProduceError> {
        self.send(topic, partition, records).await?.synced().await
    }

    /// Appends records. Without a partition, a record goes by its key, and one
    /// with an empty key to the next partition in turn. What is sent after this
    /// has returned comes after it in each partition.
    ///
    /// Records of one partition are kept together or not at all; after an
    /// error, those of other partitions may have been kept.
    pub async fn send(
        &self,
        topic: &TopicName,
        partition: Option<PartitionId>,
        records: Records,
    ) -> Result<Sent, ProduceError> {
        self.append(topic, partition, None, records).await
    }

    /// Appends the records of an idempotent producer to one partition. Sent
    /// again with the same stamp, they are not appended again and get the same
    /// positions: as long as they are among the last 16 batches of the
    /// producer, and it among the last 1,024 that wrote to the partition.
    pub async fn send_once(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        stamp: Stamp,
        records: Records,
    ) -> Result<Sent, ProduceError> {
        if records.is_empty() || stamp.number == 0 || stamp.number > u64::MAX / 4 {
            return Err(ProduceError::Stamp(StampError::Range));
        }
        self.append(topic, Some(partition), Some(stamp), records).await
    }

    async fn append(
        &self,
        topic: &TopicName,
        partition: Option<PartitionId>,
        stamp: Option<Stamp>,
        records: Records,
    ) -> Result<Sent, ProduceError> {
        let found = self.writable(topic)?;
        let shares = self.inner.share(&found, partition, &records)?;
        check(&records, &shares)?;
        let mut sent = Vec::with_capacity(shares.len());
        for (partition, places) in shares {
            let lane = &found.lanes[usize::from(partition.0)];
            sent.push(match self.inner.owned(lane).await {
                Ok(()) => self.inner.append_share(lane, places, &records, stamp),
                Err(error) => Err(error),
            });
        }
        let incarnation = found.config.incarnation;
        Ok(Sent { incarnation, count: records.len(), shares: sent })
    }

    /// The topic, if anyone may write it.
    fn writable(&self, topic: &TopicName) -> Result<Arc<Topic>, ProduceError> {
        if self.inner.derived().contains_key(topic) {
            return Err(ProduceError::ReadOnly(topic.clone()));
        }
        let found = self.inner.source(topic);
        let found = found.ok_or_else(|| ProduceError::NoTopic(topic.clone()))?;
        match found.config.read_only {
            true => Err(ProduceError::ReadOnly(topic.clone())),
            false => Ok(found),
        }
    }
}

impl Sent {
    /// The positions, in the order in which the records were given, once all
    /// are synced.
    pub async fn synced(self) -> Result<Vec<Position>, ProduceError> {
        let Self { incarnation, count, shares } = self;
        let mut positions = vec![Position::default(); count];
        let mut outcome = Ok(());
        for share in shares {
            let waited = match share {
                Ok(share) => {
                    wait(share.answer).await.map(|range| (range, share.epoch, share.places))
                }
                Err(error) => Err(error),
            };
            match waited {
                Ok((range, epoch, places)) => {
                    for (n, place) in places.into_iter().enumerate() {
                        let seq = range.after.plus(n as u64 + 1);
                        positions[place] = Position { incarnation, epoch, seq };
                    }
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| positions)
    }
}

async fn wait(
    answer: oneshot::Receiver<(Answer, Option<StoreError>)>,
) -> Result<SeqRange, ProduceError> {
    let what = || "the records' batch".to_owned();
    match answer.await {
        Ok((Answer::Synced(range), _)) => Ok(range),
        Ok((Answer::Dropped, _)) => Err(ProduceError::NoSpace(what())),
        Ok((Answer::Failed, Some(error))) => Err(ProduceError::Store(error)),
        // The partition was taken over, or its topic deleted: nobody knows.
        Ok((Answer::Failed, None)) | Err(_) => Err(ProduceError::Store(StoreError::Failed {
            what: what(),
            cause: "the partition has another owner now".into(),
        })),
    }
}

fn check(
    records: &Records,
    shares: &BTreeMap<PartitionId, Vec<usize>>,
) -> Result<(), ProduceError> {
    let within = |what, bytes, bytes_max| {
        let too_large = ProduceError::TooLarge { what, bytes, bytes_max };
        if bytes > bytes_max { Err(too_large) } else { Ok(()) }
    };
    for (key, value) in records {
        within("a key", key.len(), RECORD_KEY_BYTES_MAX)?;
        within("a value", value.len(), RECORD_VALUE_BYTES_MAX)?;
    }
    let size = |n: &usize| records[*n].0.len() + records[*n].1.len() + RECORD_OVERHEAD_BYTES_MAX;
    for places in shares.values() {
        let bytes = places.iter().map(size).sum::<usize>();
        within("the records of a partition", bytes, BATCH_BYTES_MAX - (1 << 10))?;
        within("the count of records", places.len(), BATCH_RECORDS_MAX)?;
    }
    Ok(())
}

impl Inner {
    /// Which records go to which partition, by their places in the call.
    fn share(
        &self,
        topic: &Topic,
        partition: Option<PartitionId>,
        records: &Records,
    ) -> Result<BTreeMap<PartitionId, Vec<usize>>, ProduceError> {
        let partitions = topic.config.partitions;
        if let Some(partition) = partition.filter(|p| p.0 >= partitions) {
            return Err(ProduceError::NoPartition(topic.name.clone(), partition));
        }
        let mut shares = BTreeMap::<_, Vec<usize>>::new();
        for (n, (key, _)) in records.iter().enumerate() {
            let of_key = || match key.is_empty() {
                false => partition_of(key, partitions),
                true => {
                    let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                    PartitionId((turn % u32::from(partitions)) as u16)
                }
            };
            shares.entry(partition.unwrap_or_else(of_key)).or_default().push(n);
        }
        Ok(shares)
    }

    /// Makes sure that the partition is written through this queue. The first
    /// time, that fences it, which writes to the disk.
    async fn owned(self: &Arc<Self>, lane: &Arc<Lane>) -> Result<(), ProduceError> {
        if lane.shared().is_some() {
            return Ok(());
        }
        let (inner, lane) = (self.clone(), lane.clone());
        let taken = tokio::task::spawn_blocking(move || inner.take_over(&lane));
        taken.await.map_err(|_| ProduceError::Full)?
    }

    fn append_share(
        &self,
        lane: &Arc<Lane>,
        places: Vec<usize>,
        records: &Records,
        stamp: Option<Stamp>,
    ) -> Result<Share, ProduceError> {
        let mut shared = lane.shared();
        let partition = shared.as_mut().ok_or(ProduceError::Full)?;
        let count = places.len() as u64;
        let (ticket, answer) = oneshot::channel();
        if let Some(stamp) = &stamp
            && let Admit::Again(range, epoch) = partition.admit(stamp, count)?
        {
            if let Some((ticket, answer)) = partition.wait(range, ticket) {
                // The caller stands right here.
                let _ = ticket.send((answer, None));
            }
            return Ok(Share { epoch, places, answer });
        }
        let time = partition.stamp(self.clock.now());
        let mut batch = BatchBuilder::new(lane.stream, partition.epoch(), partition.next());
        if let Some(stamp) = stamp {
            batch = batch.stamped(stamp);
        }
        for &n in &places {
            batch.push(time, &records[n].0, &records[n].1);
        }
        self.journal.append(lane.stream, batch.finish()).map_err(ProduceError::of_append)?;
        partition.appended(count, time, stamp.as_ref(), ticket);
        Ok(Share { epoch: partition.epoch(), places, answer })
    }

    /// Fences the partition for all who produce through this queue.
    fn take_over(&self, lane: &Arc<Lane>) -> Result<(), ProduceError> {
        // Only one takes over; the journal's thread never waits for this lock.
        let _changing = self.changing.lock();
        if lane.shared().is_some() {
            return Ok(());
        }
        let watcher = Arc::new(Shared { lane: lane.clone() });
        let bounds = self.journal.fence(lane.stream, watcher).map_err(ProduceError::of_append)?;
        let newest = newest(&*self.journal, lane.stream);
        let producers = self.producers(lane.stream, bounds.synced)?;
        *lane.shared() = Some(Partition::new(bounds.epoch, bounds.synced, newest, producers));
        Ok(())
    }
}

/// Hears the journal for all who produce to one partition.
struct Shared {
    lane: Arc<Lane>,
}

impl Shared {
    fn answer(
        &self,
        error: Option<&StoreError>,
        step: impl FnOnce(
            &mut Partition<crate::queue::Ticket>,
            &mut Vec<(crate::queue::Ticket, Answer)>,
        ),
    ) {
        let mut answers = Vec::new();
        if let Some(partition) = self.lane.shared().as_mut() {
            step(partition, &mut answers);
        }
        for (ticket, answer) in answers {
            // A caller that has gone needs no answer.
            let _ = ticket.send((answer, error.cloned()));
        }
    }
}

impl SyncWatcher for Shared {
    fn synced(&self, _: StreamId, through: Seq) {
        self.lane.synced.send_replace(through);
        self.answer(None, |partition, answers| partition.synced(through, answers));
    }

    fn failed(&self, _: StreamId, error: &StoreError) {
        self.answer(Some(error), |partition, answers| partition.failed(answers));
    }

    fn dropped(&self, _: StreamId, from: Seq, error: &StoreError) {
        self.answer(Some(error), |partition, answers| partition.dropped(from, answers));
    }
}
