//! Producers at rest: a view of each partition that anyone writes, kept so that
//! a retry is told apart also after a restart, and after the batch itself was
//! freed.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `queue/producers` | incarnation, partition | [`Producers::encode`] |
//!
//! The row holds the place that it is of, so that both change together. It is
//! written now and then, and always before what it follows from is freed; what
//! is after its place is read from the log.

use bytes::Bytes;
use tideline_record::batch::Header;
use tideline_store::{Commit, Op, ReadError, ReadLimits, StoreError, TableName};
use tideline_types::{Seq, StreamId};

use crate::Queue;
use crate::cursor::epoch_of;
use crate::producers::Producers;
use crate::queue::{Inner, Lane, Topic};

const KEY: &[u8] = b"queue/producers";

impl Inner {
    /// The producers as the batches that end at or before `through`, which is
    /// synced, make them.
    pub(crate) fn producers(
        &self,
        stream: StreamId,
        through: Seq,
    ) -> Result<Producers, StoreError> {
        let (mut producers, at) = self.kept(stream)?;
        let start = self.journal.bounds(stream).unwrap_or_default().start;
        let mut next = at.next().max(start);
        let limits = ReadLimits { records_max: usize::MAX, bytes_max: 1 << 20 };
        while next <= through {
            let read = self.journal.read(stream, next, limits).map_err(|error| match error {
                ReadError::Store(error) => error,
                other => {
                    StoreError::Io { what: format!("read {stream}"), cause: other.to_string() }
                }
            })?;
            let headers = read.iter().filter_map(|batch| Header::read(batch).ok());
            let before = next;
            // What reaches beyond is not freed, and is read by the next start.
            for header in headers.filter(|header| header.last() <= through) {
                producers.note(&header);
                next = header.last().next();
            }
            if next == before {
                break;
            }
        }
        Ok(producers)
    }

    /// What was kept last, and up to where it holds. Of a log that has lost what
    /// it follows from, nothing.
    fn kept(&self, stream: StreamId) -> Result<(Producers, Seq), StoreError> {
        let Some(row) = self.table.get(TableName::Meta, KEY, &sort_key(stream))? else {
            return Ok(Default::default());
        };
        let (producers, epoch, seq) =
            Producers::decode(&row).map_err(|bad| StoreError::Damaged {
                file: "tables/meta".into(),
                offset: 0,
                what: format!("producers of {stream}: {bad}"),
            })?;
        let bounds = self.journal.bounds(stream).unwrap_or_default();
        let wrote = epoch_of(seq, &self.journal.epochs(stream));
        let holds = seq <= bounds.synced && wrote.is_none_or(|wrote| wrote == epoch);
        Ok(if holds { (producers, seq) } else { Default::default() })
    }

    fn keep(&self, stream: StreamId, producers: &Producers, through: Seq) -> Commit {
        let epoch = epoch_of(through, &self.journal.epochs(stream)).unwrap_or_default();
        let value = Bytes::from(producers.encode(epoch, through));
        let ops = vec![Op::Put { sort_key: sort_key(stream), value }];
        Commit { table: TableName::Meta, partition_key: Bytes::from_static(KEY), ops }
    }

    /// Frees what lies at or below `through`, and keeps before what is
    /// remembered of its producers. Answers the new start.
    pub(crate) fn free(&self, topic: &Topic, lane: &Lane, through: Seq) -> Result<Seq, StoreError> {
        let bounds = self.journal.bounds(lane.stream).unwrap_or_default();
        let through = through.min(bounds.synced);
        if !topic.config.read_only && through >= bounds.start {
            let (_, kept) = self.kept(lane.stream)?;
            if kept < through {
                let producers = self.producers(lane.stream, through)?;
                self.table.commit(&[self.keep(lane.stream, &producers, through)])?;
                self.table.sync()?;
            }
        }
        self.journal.trim(lane.stream, through)
    }

    /// That the topic's rows are gone is durable with what is synced next.
    pub(crate) fn forget_producers(&self, streams: &[StreamId]) -> Result<(), StoreError> {
        let ops = streams.iter().map(|s| Op::Delete { sort_key: sort_key(*s) }).collect();
        let partition_key = Bytes::from_static(KEY);
        self.table.commit(&[Commit { table: TableName::Meta, partition_key, ops }])
    }
}

impl Queue {
    /// Keeps what is remembered of the producers of partitions that were written
    /// since the last time, so that the next start reads little of the log.
    /// Blocks.
    pub(crate) fn keep_producers(&self) -> Result<(), StoreError> {
        let topics: Vec<_> = self.inner.topics().values().cloned().collect();
        let mut commits = Vec::new();
        for lane in topics.iter().flat_map(|topic| &topic.lanes) {
            if let Some(partition) = lane.shared().as_mut()
                && partition.is_news()
            {
                let (producers, through) = partition.settled();
                commits.push(self.inner.keep(lane.stream, producers, through));
            }
        }
        if commits.is_empty() {
            return Ok(());
        }
        self.inner.table.commit(&commits)?;
        self.inner.table.sync()
    }
}

fn sort_key(stream: StreamId) -> Bytes {
    let mut key = stream.incarnation.0.to_be_bytes().to_vec();
    key.extend(stream.partition.0.to_be_bytes());
    key.into()
}
