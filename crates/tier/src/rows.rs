//! What lies at rest of a partition: rows of one partition key, so that what was
//! applied and how far change together.
//!
//! | sort key | value |
//! |---|---|
//! | `0` | place: version u8, loading u8, incarnation u64, epoch u32, seq u64, time i64, whole from u64, hot version u64, skipped u64, count of epochs, each: epoch, first |
//! | `1` key | entry: version u8, kind u8 (0 counter, 1 value), number of its last change; counter, or the value to the end |
//! | `2` hot version u64 | hot set: version u8, from, count, each: length, key |
//!
//! Sort keys are in big-endian; fixed numbers in values are little-endian, others
//! varints, a counter a signed one. The partition key is `tier/`, the topic, `/`
//! and the partition as u16.

use std::collections::BTreeSet;

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Out as _, Reader, put_signed, put_varint};
use tideline_types::limits::{TIER_HOT_KEYS_MAX, TIER_KEY_BYTES_MAX};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Position, Seq, TopicName};

const VERSION: u8 = 1;
/// Epochs that a place remembers, the newest ones.
pub(crate) const EPOCHS_KEPT: usize = 64;

/// What a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Has {
    /// A counter.
    Counter(i64),
    /// A value, as JSON.
    Value(Bytes),
}

/// A key's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) has: Has,
    /// The number of the last change in it.
    pub(crate) at: Seq,
}

/// How far a partition is, and how well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// A snapshot is being loaded: what lies there is a part of something.
    pub(crate) loading: bool,
    pub(crate) position: Position,
    /// The greatest time of a record.
    pub(crate) time: Millis,
    /// Before this number it is a snapshot that was not of one place.
    pub(crate) whole_from: Seq,
    /// Which hot set is in force.
    pub(crate) hot_version: u64,
    /// Records that were no operation, or of a key that is not held.
    pub(crate) skipped: u64,
    /// Where epochs began, as far as it was seen.
    pub(crate) epochs: Vec<(Epoch, Seq)>,
}

/// Keys that are hot from after a number on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HotSet {
    pub(crate) from: Seq,
    pub(crate) keys: BTreeSet<Bytes>,
}

pub(crate) const PLACE: &[u8] = &[0];

pub(crate) fn partition_key(topic: &TopicName, partition: PartitionId) -> Bytes {
    [b"tier/", topic.as_str().as_bytes(), b"/", &partition.0.to_be_bytes()].concat().into()
}

pub(crate) fn entry_key(key: &[u8]) -> Bytes {
    [&[1], key].concat().into()
}

/// The key of an entry's sort key.
pub(crate) fn key_of(sort_key: &Bytes) -> Option<Bytes> {
    (sort_key.first() == Some(&1)).then(|| sort_key.slice(1..))
}

pub(crate) fn hot_key(version: u64) -> Bytes {
    [&[2][..], &version.to_be_bytes()].concat().into()
}

impl Entry {
    pub(crate) fn encode(&self) -> Bytes {
        let mut row = vec![VERSION, u8::from(matches!(self.has, Has::Value(_)))];
        put_varint(&mut row, self.at.0);
        match &self.has {
            Has::Counter(n) => put_signed(&mut row, *n),
            Has::Value(bytes) => row.put_all(bytes),
        }
        row.into()
    }

    pub(crate) fn decode(row: &Bytes) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(row);
        version(&mut reader)?;
        let kind = reader.u8()?;
        let at = Seq(reader.varint()?);
        let has = match kind {
            0 => {
                let counter = Has::Counter(reader.signed()?);
                end(&reader)?;
                counter
            }
            1 => Has::Value(row.slice(row.len() - reader.left().len()..)),
            _ => return Err(BadBytes("a kind of value")),
        };
        Ok(Self { has, at })
    }
}

impl Place {
    pub(crate) fn encode(&self) -> Bytes {
        let mut row = vec![VERSION, u8::from(self.loading)];
        row.put_all(&self.position.incarnation.0.to_le_bytes());
        row.put_all(&self.position.epoch.0.to_le_bytes());
        let numbers = [
            self.position.seq.0,
            self.time.0.cast_unsigned(),
            self.whole_from.0,
            self.hot_version,
            self.skipped,
        ];
        numbers.iter().for_each(|number| row.put_all(&number.to_le_bytes()));
        put_varint(&mut row, self.epochs.len() as u64);
        for (epoch, first) in &self.epochs {
            put_varint(&mut row, epoch.0.into());
            put_varint(&mut row, first.0);
        }
        row.into()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(row);
        version(&mut reader)?;
        let loading = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(BadBytes("a state")),
        };
        let incarnation = Incarnation(reader.u64_le()?);
        let mut epoch = [0; 4];
        epoch.copy_from_slice(reader.bytes(4)?);
        let epoch = Epoch(u32::from_le_bytes(epoch));
        let seq = Seq(reader.u64_le()?);
        let mut place = Self {
            loading,
            position: Position { incarnation, epoch, seq },
            time: Millis(reader.u64_le()?.cast_signed()),
            whole_from: Seq(reader.u64_le()?),
            hot_version: reader.u64_le()?,
            skipped: reader.u64_le()?,
            epochs: Vec::new(),
        };
        for _ in 0..reader.count(0, EPOCHS_KEPT)? {
            place.epochs.push((Epoch(reader.varint32()?), Seq(reader.varint()?)));
        }
        end(&reader)?;
        Ok(place)
    }

    /// Which epoch wrote `seq`, as far as it is remembered.
    pub(crate) fn epoch_of(&self, seq: Seq) -> Option<Epoch> {
        self.epochs.iter().rev().find(|(_, first)| *first <= seq).map(|(epoch, _)| *epoch)
    }

    /// Records of `epoch` come, from `first` on.
    pub(crate) fn saw_epoch(&mut self, epoch: Epoch, first: Seq) {
        if self.epochs.last().is_none_or(|(last, _)| *last < epoch) {
            self.epochs.push((epoch, first));
        }
        if self.epochs.len() > EPOCHS_KEPT {
            self.epochs.remove(0);
        }
    }
}

impl HotSet {
    pub(crate) fn encode(&self) -> Bytes {
        let mut row = vec![VERSION];
        put_varint(&mut row, self.from.0);
        put_varint(&mut row, self.keys.len() as u64);
        for key in &self.keys {
            put_varint(&mut row, key.len() as u64);
            row.put_all(key);
        }
        row.into()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(row);
        version(&mut reader)?;
        let from = Seq(reader.varint()?);
        let mut keys = BTreeSet::new();
        for _ in 0..reader.count(0, TIER_HOT_KEYS_MAX)? {
            let len = reader.count(0, TIER_KEY_BYTES_MAX)?;
            let key = Bytes::copy_from_slice(reader.bytes(len)?);
            if keys.last().is_some_and(|last| *last >= key) {
                return Err(BadBytes("keys out of order"));
            }
            keys.insert(key);
        }
        end(&reader)?;
        Ok(Self { from, keys })
    }
}

fn version(reader: &mut Reader<'_>) -> Result<(), BadBytes> {
    match reader.u8()? {
        VERSION => Ok(()),
        _ => Err(BadBytes("a version that this build does not read")),
    }
}

fn end(reader: &Reader<'_>) -> Result<(), BadBytes> {
    if reader.is_empty() { Ok(()) } else { Err(BadBytes("bytes after the end")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_of_rows_never_change() {
        let counter = Entry { has: Has::Counter(-2), at: Seq(300) };
        assert_eq!(&counter.encode()[..], [1, 0, 0xac, 2, 3]);
        let value = Entry { has: Has::Value(Bytes::from_static(b"{}")), at: Seq(1) };
        assert_eq!(&value.encode()[..], [1, 1, 1, b'{', b'}']);
        let set = HotSet { from: Seq(9), keys: [Bytes::from_static(b"a")].into() };
        assert_eq!(&set.encode()[..], [1, 9, 1, 1, b'a']);
        let place = Place {
            loading: true,
            position: "7-2-5".parse().unwrap(),
            time: Millis(3),
            whole_from: Seq(4),
            hot_version: 6,
            skipped: 8,
            epochs: vec![(Epoch(2), Seq(1))],
        };
        let golden = "010107000000000000000200000005000000000000000300000000000000\
                      040000000000000006000000000000000800000000000000010201";
        let hex: String = place.encode().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, golden);
        assert_eq!(Place::decode(&place.encode()), Ok(place));
    }

    #[test]
    fn the_newest_epochs_are_remembered() {
        let mut place = Place::default();
        for epoch in 1..=100 {
            place.saw_epoch(Epoch(epoch), Seq(u64::from(epoch) * 10));
            place.saw_epoch(Epoch(epoch), Seq(u64::from(epoch) * 10 + 5));
        }
        assert_eq!(place.epochs.len(), EPOCHS_KEPT);
        assert_eq!(place.epoch_of(Seq(999)), Some(Epoch(99)));
        assert_eq!(place.epoch_of(Seq(1_000)), Some(Epoch(100)));
        assert_eq!(place.epoch_of(Seq(5)), None);
    }

    proptest! {
        #[test]
        fn rows_read_back(
            counter: i64, at: u64, value: Vec<u8>, keys: BTreeSet<Vec<u8>>, loading: bool,
            numbers: [u64; 4], epochs in prop::collection::vec((any::<u32>(), any::<u64>()), 0..9),
        ) {
            for has in [Has::Counter(counter), Has::Value(value.clone().into())] {
                let entry = Entry { has, at: Seq(at) };
                prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
            }
            let set = HotSet { from: Seq(at), keys: keys.into_iter().map(Bytes::from).collect() };
            prop_assert_eq!(HotSet::decode(&set.encode()), Ok(set));
            let [a, b, c, d] = numbers;
            let epochs = epochs.into_iter().map(|(epoch, first)| (Epoch(epoch), Seq(first)));
            let position = Position {
                incarnation: Incarnation(a), epoch: Epoch(b as u32), seq: Seq(c),
            };
            let place = Place {
                loading, position, time: Millis(counter), whole_from: Seq(d), hot_version: a,
                skipped: b, epochs: epochs.collect(),
            };
            prop_assert_eq!(Place::decode(&place.encode()), Ok(place));
        }

        #[test]
        fn no_bytes_make_the_decoders_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            crate::fuzz::tier_row(&bytes);
        }
    }
}
