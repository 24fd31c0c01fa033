//! What a topic is, and the row that says so.
//!
//! ```text
//! row: version (1) u8, state u8, flags u8, incarnation u64, partitions u16,
//!      retention in ms u64
//! ```
//!
//! Numbers are little-endian. The row's key is the topic's name.

use std::time::Duration;

use tideline_store::Bounds;
use tideline_types::{Incarnation, PartitionId, StreamId, TopicName};

/// A topic as asked for.
#[derive(Clone, Debug)]
pub struct TopicSpec {
    /// Its name.
    pub name: TopicName,
    /// Partitions, fixed from then on; `None` for the default.
    pub partitions: Option<u16>,
    /// How long records are kept; `None` for the default.
    pub retention: Option<Duration>,
    /// Only the product itself writes it, by owning its partitions.
    pub read_only: bool,
    /// A durable view applies it: nothing is freed before the view says so.
    pub durable_view: bool,
}

impl TopicSpec {
    /// A topic with all defaults, written by anyone.
    pub fn new(name: TopicName) -> Self {
        Self { name, partitions: None, retention: None, read_only: false, durable_view: false }
    }
}

/// Where a topic's records come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicKind {
    /// Its own log.
    Source,
    /// What an operator makes of another topic, with the same numbers.
    Derived {
        /// The other topic.
        source: TopicName,
        /// The text that declares the operator in force; `None` where the
        /// product itself brings it.
        operator: Option<String>,
    },
}

/// A topic as it is.
#[derive(Clone, Debug)]
pub struct TopicInfo {
    /// Its name.
    pub name: TopicName,
    /// Which life of that name; a derived topic has its source's.
    pub incarnation: Incarnation,
    /// Partitions.
    pub partitions: u16,
    /// Where its records come from.
    pub kind: TopicKind,
    /// Whether `produce` and deletion are refused.
    pub read_only: bool,
    /// How long records are kept.
    pub retention: Duration,
    /// Bytes of batches that readers were given since the start.
    pub egress_bytes: u64,
    /// What each partition holds, by number.
    pub bounds: Vec<Bounds>,
}

/// How far the making or the deletion of a topic has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The row is there, the streams may be.
    Creating = 0,
    /// All is there.
    Active = 1,
    /// The streams may be gone.
    Deleting = 2,
}

/// A source topic at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) state: State,
    pub(crate) incarnation: Incarnation,
    pub(crate) partitions: u16,
    pub(crate) retention: Duration,
    pub(crate) read_only: bool,
    pub(crate) durable_view: bool,
}

const VERSION: u8 = 1;
const ROW_BYTES: usize = 21;

impl Config {
    pub(crate) fn streams(&self) -> Vec<StreamId> {
        (0..self.partitions).map(|p| self.stream(PartitionId(p))).collect()
    }

    pub(crate) fn stream(&self, partition: PartitionId) -> StreamId {
        StreamId { incarnation: self.incarnation, partition }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(ROW_BYTES);
        row.extend([VERSION, self.state as u8]);
        row.push(u8::from(self.read_only) | u8::from(self.durable_view) << 1);
        row.extend(self.incarnation.0.to_le_bytes());
        row.extend(self.partitions.to_le_bytes());
        row.extend((self.retention.as_millis() as u64).to_le_bytes());
        row
    }

    /// `None` if `row` is not what [`Config::encode`] writes.
    pub(crate) fn decode(row: &[u8]) -> Option<Self> {
        let row: &[u8; ROW_BYTES] = row.try_into().ok()?;
        let (state, flags) = (row[1], row[2]);
        let config = Self {
            state: match state {
                0 => State::Creating,
                1 => State::Active,
                2 => State::Deleting,
                _ => return None,
            },
            incarnation: Incarnation(u64::from_le_bytes(row[3..11].try_into().ok()?)),
            partitions: u16::from_le_bytes(row[11..13].try_into().ok()?),
            retention: Duration::from_millis(u64::from_le_bytes(row[13..21].try_into().ok()?)),
            read_only: flags & 1 != 0,
            durable_view: flags & 2 != 0,
        };
        (row[0] == VERSION && flags < 4 && config.partitions > 0).then_some(config)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_of_a_row_never_change() {
        let config = Config {
            state: State::Active,
            incarnation: Incarnation(7),
            partitions: 64,
            retention: Duration::from_millis(0x1234),
            read_only: true,
            durable_view: false,
        };
        let row = [1, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0x34, 0x12, 0, 0, 0, 0, 0, 0];
        assert_eq!(config.encode(), row);
    }

    proptest! {
        #[test]
        fn a_row_reads_back(
            incarnation: u64, partitions in 1_u16.., ms: u64, flags in 0_u8..4, state in 0_u8..3,
        ) {
            let config = Config {
                state: [State::Creating, State::Active, State::Deleting][state as usize],
                incarnation: Incarnation(incarnation),
                partitions,
                retention: Duration::from_millis(ms),
                read_only: flags & 1 != 0,
                durable_view: flags & 2 != 0,
            };
            prop_assert_eq!(Config::decode(&config.encode()), Some(config));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            crate::fuzz::topic_row(&bytes);
        }
    }
}
