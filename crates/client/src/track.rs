//! Where a follower stands in a partition, and what it may believe.
//!
//! ```text
//!   from ──range──▶ stands ──range that begins where it stands──▶ stands
//!                     │
//!                     └─ stopped ──(the caller says where to go on)──▶ from
//! ```
//!
//! Always: ranges that are handed on join, each beginning where the one before
//! it ended; they are of one life of the topic, and their epochs do not fall. What does
//! not join is not handed on: the driver asks again, from where this stands.
//! A stop is handed on again and again, until the caller says where to go on.
//!
//! Knows no clock and no network.

use bytes::Bytes;
use tideline_record::frame::{BadFrame, Frame};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Position, Seq, SeqRange};

/// Where following begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first record that there is.
    Earliest,
    /// After the last record that there is, when the source is first reached.
    Latest,
    /// At the first record whose time is at least this.
    Time(Millis),
    /// After what was applied: the place that a checkpoint holds.
    After(Position),
}

/// Why nothing more comes from where a follower stands. It stays so until the
/// caller has done what there is to do, and says where to go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Records before `start` are gone. Take what was missed from a snapshot,
    /// and go on after the place that it is of; or, where a part may be missing,
    /// at [`From::Earliest`].
    #[error("records before {start} are gone")]
    Truncated {
        /// The first number that can be read.
        start: Seq,
        /// What holds everything before `start`; empty if the source knows of
        /// none.
        snapshot: String,
    },
    /// The log was cut behind the reader. Undo what came after `common`, and go on after it.
    #[error("the log was cut; what was read is the same up to {common}")]
    Diverged {
        /// The last record that reader and log have in common.
        common: Position,
    },
    /// The topic was deleted and made again. Forget everything, and go on at
    /// [`From::Earliest`].
    #[error("the topic was made anew (incarnation {incarnation})")]
    Recreated {
        /// Its present life.
        incarnation: Incarnation,
    },
    /// The sender no longer holds what comes next. Take a snapshot from it, or
    /// ask another, or its source.
    #[error("the sender holds nothing before {oldest}, and {next} comes next")]
    Lagged {
        /// What comes next.
        next: Seq,
        /// The oldest number that the sender holds.
        oldest: Seq,
    },
    /// An operator fails on a record, and may not go on without it. Once there
    /// is another operator, go on where this stands.
    #[error("the operator fails on record {seq}: {reason}")]
    Halted {
        /// The record.
        seq: Seq,
        /// What the operator says.
        reason: String,
    },
}

/// Why a range was not handed on. Asking again from the same place helps, or
/// the sender is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is damaged.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// It is of another partition, or of another life than it was asked for.
    #[error("a range of another partition or life")]
    Stream,
    /// It begins elsewhere than it should: there would be a gap, or a double.
    #[error("a range {0} that does not begin at {1}")]
    Join(SeqRange, Seq),
    /// Its epoch is before the one that wrote what was read.
    #[error("a range of epoch {0}, after one of epoch {1}")]
    Epoch(Epoch, Epoch),
}

/// A follower's place.
#[derive(Clone, Debug)]
pub struct Track {
    partition: PartitionId,
    from: From,
    stopped: Option<Stopped>,
}

impl Track {
    /// One that begins at `from`.
    pub fn new(partition: PartitionId, from: From) -> Self {
        Self { partition, from, stopped: None }
    }

    /// Which partition.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// What to ask for.
    pub fn from(&self) -> From {
        self.from
    }

    /// Up to where everything was handed on; `None` before it is known where
    /// following began.
    pub fn stands(&self) -> Option<Position> {
        match self.from {
            From::After(position) => Some(position),
            _ => None,
        }
    }

    /// Why nothing more comes, if so.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// A range came.
    ///
    /// # Errors
    /// Why it is not handed on; the place stays as it was.
    pub fn range(&mut self, bytes: Bytes) -> Result<Frame, Unfit> {
        let frame = Frame::parse(bytes)?;
        if frame.stream().partition != self.partition {
            return Err(Unfit::Stream);
        }
        if let Some(stands) = self.stands() {
            if frame.stream().incarnation != stands.incarnation {
                return Err(Unfit::Stream);
            }
            if frame.range().after != stands.seq {
                return Err(Unfit::Join(frame.range(), stands.seq));
            }
            if frame.epoch() < stands.epoch {
                return Err(Unfit::Epoch(frame.epoch(), stands.epoch));
            }
        }
        self.from = From::After(frame.through());
        Ok(frame)
    }

    /// The sender says where this stands. It counts where that was not known.
    pub fn head(&mut self, stands: Position) {
        if self.stands().is_none() {
            self.from = From::After(stands);
        }
    }

    /// Nothing more comes.
    pub fn stop(&mut self, why: Stopped) {
        self.stopped = Some(why);
    }

    /// The caller has done what there was to do, and goes on there.
    pub fn go_on(&mut self, from: From) {
        self.from = from;
        self.stopped = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_record::batch::BatchBuilder;
    use tideline_types::StreamId;

    use super::*;

    const P: PartitionId = PartitionId(3);

    fn range(incarnation: u64, epoch: u32, after: u64, through: u64) -> Bytes {
        let stream = StreamId { incarnation: Incarnation(incarnation), partition: P };
        let mut batches = Vec::new();
        if after < through {
            let mut batch = BatchBuilder::new(stream, Epoch(epoch), Seq(after + 1));
            for _ in after..through {
                batch.push(Millis(1), b"k", b"v");
            }
            batches.push(batch.finish());
        }
        let range = SeqRange::new(Seq(after), Seq(through));
        Frame::new(stream, Epoch(epoch), range, &batches).bytes().clone()
    }

    fn at(text: &str) -> Track {
        Track::new(P, From::After(text.parse().unwrap()))
    }

    #[test]
    fn only_what_joins_is_handed_on() {
        let mut track = at("7-2-5");
        assert!(matches!(track.range(range(7, 2, 6, 8)), Err(Unfit::Join(_, Seq(5)))));
        assert!(matches!(track.range(range(7, 2, 4, 8)), Err(Unfit::Join(_, Seq(5)))));
        assert_eq!(track.range(range(8, 2, 5, 8)).unwrap_err(), Unfit::Stream);
        assert_eq!(track.range(range(7, 1, 5, 8)).unwrap_err(), Unfit::Epoch(Epoch(1), Epoch(2)));
        let mut damaged = range(7, 2, 5, 8).to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(matches!(track.range(damaged.into()), Err(Unfit::Frame(_))));
        assert_eq!(track.stands().unwrap().to_string(), "7-2-5");
        assert_eq!(track.range(range(7, 3, 5, 8)).unwrap().records().count(), 3);
        assert_eq!(track.stands().unwrap().to_string(), "7-3-8");
        assert!(track.range(range(7, 3, 8, 8)).is_ok(), "an empty range joins too");
    }

    #[test]
    fn the_first_range_says_where_it_stands_unless_a_head_did() {
        let mut track = Track::new(P, From::Latest);
        assert_eq!(track.stands(), None);
        assert!(track.clone().range(range(7, 2, 5, 8)).is_ok());
        track.head("7-2-4".parse().unwrap());
        assert!(matches!(track.range(range(7, 2, 5, 8)), Err(Unfit::Join(..))));
        track.head("7-2-9".parse().unwrap());
        assert!(track.range(range(7, 2, 4, 6)).is_ok(), "a later head moves nothing");
    }

    #[test]
    fn a_stop_lasts_until_the_caller_goes_on() {
        let mut track = at("7-2-5");
        let truncated = Stopped::Truncated { start: Seq(9), snapshot: String::new() };
        track.stop(truncated.clone());
        assert_eq!((track.stopped(), track.from()), (Some(&truncated), at("7-2-5").from()));
        track.go_on(From::Earliest);
        assert_eq!((track.stopped(), track.stands()), (None, None));
    }

    proptest! {
        /// Whatever comes, twice, late, cut or out of order: what is handed on
        /// is each number once and in order.
        #[test]
        fn there_is_never_a_gap_nor_a_double(
            ranges in prop::collection::vec((0_u64..12, 0_u64..5, any::<bool>()), 0..60),
        ) {
            let mut track = at("7-2-0");
            let mut seen = 0;
            for (after, len, damaged) in ranges {
                let mut bytes = range(7, 2, after, after + len).to_vec();
                let at = bytes.len() / 2;
                bytes[at] ^= u8::from(damaged);
                if let Ok(frame) = track.range(bytes.into()) {
                    prop_assert!(!damaged);
                    for record in frame.records() {
                        seen += 1;
                        prop_assert_eq!(record.seq, Seq(seen));
                    }
                    prop_assert_eq!(track.stands().unwrap().seq, Seq(seen));
                }
            }
        }
    }
}
