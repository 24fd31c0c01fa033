//! The view of topic `danmaku-flags`: scores that its records say are set for
//! their viewers.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `danmaku/flags` | partition | version, incarnation, seq |
//!
//! A place moves once what lies below it is durable, so after a stop some
//! records are applied again, which changes nothing. A record that makes no
//! sense, or is older than the erase of its user, is passed over.

use bytes::Bytes;
use std::collections::BTreeMap;
use tideline_queue::{FetchError, Queue, TopicSpec};
use tideline_record::batch::BatchRef;
use tideline_store::{Commit, Op, ReadLimits, StoreError, Table, TableName};
use tideline_types::{Incarnation, Millis, PartitionId, Seq, SeqRange, TopicName};

use super::Driver;
use crate::scores::Scores;
use crate::{erase, personal};

/// The name of the topic of scores.
pub const FLAGS: &str = "danmaku-flags";

pub(crate) fn topic() -> TopicName {
    TopicName::new(FLAGS).expect("the name is within its alphabet")
}

/// Makes the topic, if there is none.
pub(super) fn ensure(queue: &Queue, partitions: u16) -> Result<(), StoreError> {
    let partitions = Some(partitions);
    let spec = TopicSpec { partitions, durable_view: true, ..TopicSpec::new(topic()) };
    queue.ensure_topic(spec).map(|_| ()).map_err(|error| log_error(&error))
}

/// What of the topic is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    incarnation: Incarnation,
    seq: Seq,
}

impl Driver {
    /// Applies the records that are there.
    pub(super) fn apply_scores(&self) {
        if let Err(error) = self.apply_all() {
            tracing::error!(%error, "scores of topic danmaku-flags cannot be applied; again soon");
        }
    }

    fn apply_all(&self) -> Result<(), StoreError> {
        // Somebody may have removed the topic.
        let Some(info) = self.view.queue().topic(&topic()) else { return Ok(()) };
        for (at, bounds) in info.bounds.iter().enumerate() {
            let partition = PartitionId(at as u16);
            let mut at = place(&*self.table, partition)?
                .filter(|place| place.incarnation == info.incarnation)
                .map_or(Seq::ZERO, |place| place.seq)
                .max(bounds.start.prev());
            while at < bounds.synced && !self.view.is_closed() {
                at = match self.apply_some(partition, at)? {
                    Some(through) => through,
                    None => break,
                };
                let place = Place { incarnation: info.incarnation, seq: at };
                self.table.commit(&[keep(partition, &place)])?;
                self.table.sync()?;
                _ = self.view.queue().trim_allowed(&topic(), partition, at);
            }
        }
        Ok(())
    }

    /// Applies some records behind `at`, durably; answers how far.
    fn apply_some(&self, partition: PartitionId, at: Seq) -> Result<Option<Seq>, StoreError> {
        let limits = ReadLimits { records_max: RECORDS_MAX, bytes_max: BYTES_MAX };
        let batches = match self.view.queue().read(&topic(), partition, at.next(), limits) {
            Ok(batches) => batches,
            Err(FetchError::Store(error)) => return Err(error),
            // Freed or removed meanwhile.
            Err(_) => return Ok(None),
        };
        let erased = self.erased()?;
        let (mut scores, mut through) = (Vec::new(), None);
        for bytes in &batches {
            let batch = BatchRef::parse(bytes).map_err(|error| log_error(&error))?;
            for record in batch.records().filter(|record| record.seq > at && !record.erased) {
                match Scores::read(record.value) {
                    Ok(one) => {
                        let user = self.rules.keys.user(one.user.as_str());
                        if erased.get(&user).is_none_or(|taken| record.time > *taken) {
                            scores.push((user, one));
                        }
                    }
                    Err(why) => {
                        tracing::warn!(%partition, seq = %record.seq, %why, "a record of scores is passed over");
                    }
                }
            }
            through = Some(batch.range().through);
        }
        personal::put_scores(&*self.table, scores)?;
        Ok(through)
    }

    /// Empties the records of users whose files are being emptied, as far as
    /// they are applied.
    pub(super) fn empty_scores(&self, is_erased: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
        let queue = self.view.queue();
        let Some(info) = queue.topic(&topic()) else { return Ok(()) };
        for partition in (0..info.partitions).map(PartitionId) {
            let Some(place) = place(&*self.table, partition)? else { continue };
            if place.incarnation != info.incarnation {
                continue;
            }
            let range = SeqRange::new(Seq::ZERO, place.seq);
            let report = queue.erase(&topic(), partition, range, &mut |_, _, value| {
                Scores::read(value).is_ok_and(|scores| is_erased(scores.user.as_str()))
            });
            report.map_err(|error| log_error(&error))?;
        }
        Ok(())
    }

    /// When users were erased last whose bytes may be in files.
    fn erased(&self) -> Result<BTreeMap<u64, Millis>, StoreError> {
        let mut erased = BTreeMap::new();
        for erasing in erase::erasing(&*self.table)? {
            let taken = erased.entry(erasing.user).or_insert(erasing.taken);
            *taken = erasing.taken.max(*taken);
        }
        Ok(erased)
    }
}

/// How far a partition of the topic is applied; `None` if never.
pub(crate) fn place(
    table: &dyn Table,
    partition: PartitionId,
) -> Result<Option<Place>, StoreError> {
    let Some(value) = table.get(TableName::Meta, KEY, &partition.0.to_be_bytes())? else {
        return Ok(None);
    };
    decode(&value).map(Some).ok_or_else(|| StoreError::Damaged {
        file: "tables/meta".into(),
        offset: 0,
        what: format!("place of {FLAGS}/{partition}"),
    })
}

fn keep(partition: PartitionId, place: &Place) -> Commit {
    let mut value = vec![VERSION];
    value.extend(place.incarnation.0.to_be_bytes());
    value.extend(place.seq.0.to_be_bytes());
    let sort_key = Bytes::copy_from_slice(&partition.0.to_be_bytes());
    let ops = vec![Op::Put { sort_key, value: value.into() }];
    Commit { table: TableName::Meta, partition_key: KEY.into(), ops }
}

fn decode(value: &[u8]) -> Option<Place> {
    let rest = value.strip_prefix(&[VERSION])?;
    let (incarnation, seq) = rest.split_first_chunk()?;
    Some(Place {
        incarnation: Incarnation(u64::from_be_bytes(*incarnation)),
        seq: Seq(u64::from_be_bytes(seq.try_into().ok()?)),
    })
}

const KEY: &[u8] = b"danmaku/flags";
const VERSION: u8 = 1;
fn log_error(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { what: format!("the log of {FLAGS}"), cause: error.to_string() }
}

/// What is applied under one sync.
const RECORDS_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_a_strange_one_is_refused() {
        let place = Place { incarnation: Incarnation(3), seq: Seq(9) };
        let Op::Put { value, .. } = &keep(PartitionId(1), &place).ops[0] else { panic!() };
        assert_eq!(value[..], [1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(decode(value), Some(place));
        assert_eq!((decode(&value[1..]), decode(&value[..9])), (None, None));
    }
}
