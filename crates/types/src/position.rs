//! Where something stands in a partition's log.

use std::fmt;
use std::str::FromStr;

/// The number of a record in its partition. The first record is 1; 0 stands
/// before every record. Numbers have no gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every record.
    pub const ZERO: Self = Self(0);

    /// The number `n` further on.
    pub fn plus(self, n: u64) -> Self {
        Self(self.0 + n)
    }

    /// The number right after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number right before this one; 0 stays 0.
    pub fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// The half-open range `(after, through]` of one partition's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// The last number before the range.
    pub after: Seq,
    /// The last number in the range; `after <= through`.
    pub through: Seq,
}

impl SeqRange {
    /// `(after, through]`.
    pub fn new(after: Seq, through: Seq) -> Self {
        debug_assert!(after <= through);
        Self { after, through }
    }

    /// How many numbers the range covers.
    pub fn count(self) -> u64 {
        self.through.0 - self.after.0
    }

    /// Whether the range covers no number.
    pub fn is_empty(self) -> bool {
        self.after == self.through
    }

    /// Whether `seq` lies in the range.
    pub fn contains(self, seq: Seq) -> bool {
        self.after < seq && seq <= self.through
    }
}

/// Counts the owners and recoveries of a partition. Two records with the same
/// number and different epochs are different records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// Tells a topic from one of the same name that was deleted before it.
/// Unique in a data folder; never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// A place in a partition that can be told from the same number of a deleted
/// topic or of a tail that was lost. Text form: `incarnation-epoch-seq`, each
/// in decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Which life of the topic.
    pub incarnation: Incarnation,
    /// Which epoch wrote the record at `seq`.
    pub epoch: Epoch,
    /// The record's number.
    pub seq: Seq,
}

/// A text that is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPosition;

impl fmt::Display for BadPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a position (incarnation-epoch-seq)")
    }
}

impl std::error::Error for BadPosition {}

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, BadPosition> {
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or(BadPosition);
        let (incarnation, epoch, seq) = (part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(BadPosition);
        }
        Ok(Self {
            incarnation: Incarnation(incarnation.parse().map_err(|_| BadPosition)?),
            epoch: Epoch(epoch.parse().map_err(|_| BadPosition)?),
            seq: Seq(seq.parse().map_err(|_| BadPosition)?),
        })
    }
}

macro_rules! shown_as_its_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
shown_as_its_number!(Seq, Epoch, Incarnation);

impl fmt::Display for SeqRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}]", self.after, self.through)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.incarnation, self.epoch, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_from_its_text() {
        let position = Position { incarnation: Incarnation(7), epoch: Epoch(2), seq: Seq(41) };
        assert_eq!(position.to_string(), "7-2-41");
        assert_eq!("7-2-41".parse(), Ok(position));
        for bad in ["", "7", "7-2", "7-2-41-9", "a-2-3", "7--3", "-1-2-3"] {
            assert_eq!(bad.parse::<Position>(), Err(BadPosition), "{bad:?}");
        }
    }

    #[test]
    fn a_range_leaves_its_lower_end_out() {
        let range = SeqRange::new(Seq(3), Seq(5));
        assert_eq!(range.count(), 2);
        assert!(!range.contains(Seq(3)) && range.contains(Seq(4)) && range.contains(Seq(5)));
        assert!(SeqRange::new(Seq(3), Seq(3)).is_empty());
    }
}
