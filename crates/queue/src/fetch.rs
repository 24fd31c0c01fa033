//! Reading a range of records, waiting for one if there is none yet.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tideline_record::batch::BatchRef;
use tideline_record::derive;
use tideline_store::{ReadLimits, StoreError};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, SeqRange, StreamId, TopicName};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cursor::{From, epoch_of, next_of};
use crate::queue::{Inner, Place, stages_of};
use crate::{FetchError, Queue};

/// A derived topic reads on through this many bytes of its source before it
/// answers a range without a record.
const SCAN_BYTES_MAX: usize = 8 << 20;

/// A fetch that moves over records that are left out waits so long for one that
/// is not, and then answers how far it has come: so its caller's place moves on,
/// and a busy source is not asked again for each of its records.
const LINGER: Duration = Duration::from_millis(500);

/// A record as read. Key and value share the memory of their batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Its number.
    pub seq: Seq,
    /// The time that its writer gave it.
    pub time: Millis,
    /// The operator of a derived topic failed on the record of this number: the
    /// value says why.
    pub skipped: bool,
    /// What it is about.
    pub key: Bytes,
    /// What it says.
    pub value: Bytes,
}

/// The records of a range of numbers; erased and filtered ones are left out.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What is covered: reading goes on after `range.through`.
    pub range: SeqRange,
    /// Which life of the topic.
    pub incarnation: Incarnation,
    /// Who wrote all records of the range; for an empty range, the last one
    /// before it.
    pub epoch: Epoch,
    /// In order.
    pub records: Vec<OwnedRecord>,
}

/// Batches of one epoch that cover `(from - 1, through]`.
pub(crate) struct Chunk {
    pub(crate) range: SeqRange,
    pub(crate) epoch: Epoch,
    pub(crate) batches: Vec<Bytes>,
}

impl Queue {
    /// Records from a place on, within `limits`. Waits up to `wait` for the
    /// first one; where all that come are left out, it answers what it covers
    /// half a second after the first of these.
    pub async fn fetch(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        from: From,
        limits: ReadLimits,
        wait: Duration,
    ) -> Result<Fetched, FetchError> {
        let mut deadline = Instant::now() + wait;
        let place = self.inner.place(topic, partition)?;
        let incarnation = place.topic.config.incarnation;
        let mut synced = place.lane.synced.subscribe();
        let first = self.begin(topic, partition, from).await?;
        let (mut next, mut epoch) = (first, None);
        loop {
            synced.mark_unchanged();
            let chunk = self.chunk(topic, partition, incarnation, next, limits).await?;
            if let Some(mut chunk) = chunk {
                let records = records(&mut chunk, next, limits)?;
                let range = SeqRange::new(first.prev(), chunk.range.through);
                if !records.is_empty() || Instant::now() >= deadline {
                    return Ok(Fetched { range, incarnation, epoch: chunk.epoch, records });
                }
                if epoch.is_none() {
                    deadline = deadline.min(Instant::now() + LINGER);
                }
                (next, epoch) = (chunk.range.through.next(), Some(chunk.epoch));
                continue;
            }
            let grown = tokio::time::timeout_at(deadline, synced.changed()).await;
            if grown.is_err() {
                let epoch =
                    epoch.unwrap_or_else(|| self.inner.epoch_before(place.lane.stream, next));
                let range = SeqRange::new(first.prev(), next.prev());
                return Ok(Fetched { range, incarnation, epoch, records: Vec::new() });
            }
        }
    }

    /// The next number to read for `from`.
    pub(crate) async fn begin(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        from: From,
    ) -> Result<Seq, FetchError> {
        let place = self.inner.place(topic, partition)?;
        let inner = self.inner.clone();
        let name = topic.clone();
        blocking(move || inner.resolve(&name, &place, from)).await
    }

    /// One read of the log, and what is derived of it, from `next` on; `None` at
    /// the end.
    pub(crate) async fn chunk(
        &self,
        topic: &TopicName,
        partition: PartitionId,
        incarnation: Incarnation,
        next: Seq,
        limits: ReadLimits,
    ) -> Result<Option<Chunk>, FetchError> {
        let place = self.inner.place(topic, partition)?;
        if place.topic.config.incarnation != incarnation {
            return Err(FetchError::Recreated { incarnation: place.topic.config.incarnation });
        }
        let inner = self.inner.clone();
        blocking(move || inner.chunk(&place, next, limits)).await
    }

    /// Told when a partition's synced number grows or its topic is deleted.
    pub(crate) fn watch(
        &self,
        topic: &TopicName,
        partition: PartitionId,
    ) -> Result<watch::Receiver<Seq>, FetchError> {
        Ok(self.inner.place(topic, partition)?.lane.synced.subscribe())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let stopped = |_| StoreError::Io { what: "read".into(), cause: "the server stops".into() };
    tokio::task::spawn_blocking(work).await.map_err(stopped)?
}

/// The records of `chunk` from `next` on, cut to the limits, and the range with
/// them.
fn records(
    chunk: &mut Chunk,
    next: Seq,
    limits: ReadLimits,
) -> Result<Vec<OwnedRecord>, FetchError> {
    let (mut out, mut bytes) = (Vec::new(), 0);
    for batch in &chunk.batches {
        let parsed = parse(batch)?;
        for record in parsed.records().filter(|r| r.seq >= next && !r.erased) {
            bytes += record.key.len() + record.value.len();
            // All of a number go together.
            let enough = out.len() >= limits.records_max || bytes > limits.bytes_max;
            if !out.is_empty() && enough && record.sub == 0 {
                chunk.range.through = record.seq.prev();
                return Ok(out);
            }
            out.push(OwnedRecord {
                seq: record.seq,
                time: record.time,
                skipped: record.skipped,
                key: batch.slice_ref(record.key),
                value: batch.slice_ref(record.value),
            });
        }
    }
    Ok(out)
}

fn parse(batch: &[u8]) -> Result<BatchRef<'_>, StoreError> {
    BatchRef::parse(batch)
        .map_err(|e| StoreError::Io { what: "read a batch".into(), cause: e.to_string() })
}

impl Inner {
    fn resolve(&self, name: &TopicName, place: &Place, from: From) -> Result<Seq, FetchError> {
        let stream = place.lane.stream;
        let bounds = self.journal.bounds(stream);
        let bounds = bounds.ok_or_else(|| FetchError::NoTopic(name.clone()))?;
        let at = |position, after| {
            let epochs = self.journal.epochs(stream);
            next_of(position, after, place.topic.config.incarnation, &bounds, &epochs)
        };
        match from {
            From::Earliest => Ok(bounds.start),
            From::Latest => Ok(bounds.synced.next()),
            From::At(position) => at(position, false),
            From::After(position) => at(position, true),
            From::Time(time) => self.first_at(place, time, bounds.synced.next()),
        }
    }

    /// The first record whose time is at least `time`; times never fall.
    fn first_at(&self, place: &Place, time: Millis, end: Seq) -> Result<Seq, FetchError> {
        let stream = place.lane.stream;
        let extents = self.journal.extents(stream);
        let Some(extent) = extents.iter().find(|e| e.newest >= time) else { return Ok(end) };
        let mut next = extent.range.after.next();
        let limits = ReadLimits { records_max: BATCHES, bytes_max: 1 << 20 };
        while next <= extent.range.through {
            let read = self.journal.read(stream, next, limits);
            let batches = read.map_err(|e| FetchError::of_read(e, &place.topic.name))?;
            if batches.is_empty() {
                break;
            }
            for batch in &batches {
                let batch = parse(batch)?;
                if let Some(record) = batch.records().find(|r| r.time >= time) {
                    return Ok(record.seq);
                }
                next = batch.range().through.next();
            }
        }
        Ok(next)
    }

    fn chunk(
        &self,
        place: &Place,
        next: Seq,
        limits: ReadLimits,
    ) -> Result<Option<Chunk>, FetchError> {
        let (mut through, mut epoch, mut out) = (next.prev(), None, Vec::new());
        let mut scanned = 0;
        // Held to the end: a version takes effect between two reads.
        let derived = self.derived();
        let stages = stages_of(&derived, &place.name);
        while out.is_empty() && scanned < SCAN_BYTES_MAX {
            let read = self.journal.read(place.lane.stream, through.next(), limits);
            let batches = read.map_err(|e| FetchError::of_read(e, &place.topic.name))?;
            if batches.is_empty() {
                break;
            }
            for batch in batches {
                let parsed = parse(&batch)?;
                if *epoch.get_or_insert(parsed.epoch()) != parsed.epoch() {
                    scanned = SCAN_BYTES_MAX;
                    break;
                }
                through = parsed.range().through;
                scanned += batch.len();
                if stages.is_empty() {
                    out.push(batch);
                    continue;
                }
                let made = derive::batches(&parsed, next, &stages, limits.bytes_max);
                out.extend(made.batches);
                if let Some(derive::Halt { seq, why }) = made.halt.filter(|h| h.seq == next) {
                    return Err(FetchError::Halted { seq, why });
                }
                if made.through < through {
                    through = made.through;
                    scanned = SCAN_BYTES_MAX;
                    break;
                }
            }
        }
        let range = SeqRange::new(next.prev(), through);
        let bytes = out.iter().map(Bytes::len).sum::<usize>();
        place.egress.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(epoch.map(|epoch| Chunk { range, epoch, batches: out }))
    }

    pub(crate) fn epoch_before(&self, stream: StreamId, next: Seq) -> Epoch {
        epoch_of(next.prev(), &self.journal.epochs(stream)).unwrap_or_default()
    }
}

/// Records looked at in one read while a time is searched.
const BATCHES: usize = 4_096;
