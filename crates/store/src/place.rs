//! How far a view has applied a partition of its topic, as it is kept.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | the view's name, `/place` | partition | version, epoch, seq, owner's time |
//!
//! A place is written after the rows it speaks of are durable: it may be old,
//! never early.

use bytes::Bytes;
use tideline_types::{Epoch, Millis, PartitionId, Seq};

use crate::{Commit, Op, StoreError, Table, TableName};

/// How far a partition is at rest: every record at or below `seq` is in a
/// durable row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The epoch that wrote it.
    pub epoch: Epoch,
    /// The number.
    pub seq: Seq,
    /// The owner's time may not fall below this.
    pub taken: Millis,
}

impl Place {
    /// The place of a partition of `view`, as it was last kept; the beginning
    /// if never.
    ///
    /// # Errors
    /// `Damaged` if the row does not read; what the engine says otherwise.
    pub fn read(table: &dyn Table, view: &str, partition: PartitionId) -> Result<Self, StoreError> {
        let sort_key = partition.0.to_be_bytes();
        let Some(value) = table.get(TableName::Meta, &key(view), &sort_key)? else {
            return Ok(Self::default());
        };
        Self::decode(&value).ok_or_else(|| StoreError::Damaged {
            file: "tables/meta".into(),
            offset: 0,
            what: format!("place of {view}/{partition}"),
        })
    }

    /// The write that keeps it.
    pub fn keep(&self, view: &str, partition: PartitionId) -> Commit {
        let sort_key = Bytes::copy_from_slice(&partition.0.to_be_bytes());
        let ops = vec![Op::Put { sort_key, value: self.encode().into() }];
        Commit { table: TableName::Meta, partition_key: key(view).into(), ops }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.epoch.0.to_be_bytes());
        value.extend_from_slice(&self.seq.0.to_be_bytes());
        value.extend_from_slice(&self.taken.0.to_be_bytes());
        value
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let rest = value.strip_prefix(&[VERSION])?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let (seq, taken) = rest.split_first_chunk()?;
        Some(Self {
            epoch: Epoch(u32::from_be_bytes(*epoch)),
            seq: Seq(u64::from_be_bytes(*seq)),
            taken: Millis(i64::from_be_bytes(taken.try_into().ok()?)),
        })
    }
}

fn key(view: &str) -> Vec<u8> {
    format!("{view}/place").into_bytes()
}

const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mem::MemTable;

    proptest! {
        #[test]
        fn a_place_reads_back(epoch: u32, seq: u64, taken: i64, partition: u16) {
            let place = Place { epoch: Epoch(epoch), seq: Seq(seq), taken: Millis(taken) };
            let (table, partition) = (MemTable::new(), PartitionId(partition));
            table.commit(&[place.keep("marks", partition)]).unwrap();
            prop_assert_eq!(Place::read(&table, "marks", partition).unwrap(), place);
            prop_assert_eq!(Place::read(&table, "other", partition).unwrap(), Place::default());
        }
    }

    #[test]
    fn the_bytes_of_a_place_never_change_and_strange_ones_are_refused() {
        let place = Place { epoch: Epoch(3), seq: Seq(9), taken: Millis(1_796_000_000_000) };
        let Commit { partition_key, ops, .. } = place.keep("history", PartitionId(258));
        let [Op::Put { sort_key, value }] = &ops[..] else { panic!() };
        assert_eq!((&partition_key[..], &sort_key[..]), (&b"history/place"[..], &[1, 2][..]));
        let golden = [1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 162, 41, 241, 40, 0];
        assert_eq!(value[..], golden);
        for bad in [&golden[1..], &golden[..20], &[], &[&golden[..], &[0]].concat()] {
            assert_eq!(Place::decode(bad), None);
        }
        let mut newer = golden;
        newer[0] = 2;
        assert_eq!(Place::decode(&newer), None);
    }
}
