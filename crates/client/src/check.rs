//! Whether readers show what they should: samples what is pushed, and compares it
//! with what readers say that a key has.
//!
//! Two alarms. *Stale*: a change was pushed more than a while ago, and the reader
//! says that it stands before it. *Wrong*: at the place where the reader says that it
//! stands, the key has something else. The second needs no patience, and the first no
//! agreement of clocks: both times are the checker's.
//!
//! Bounded: so many keys are sampled, and so many changes of each are kept; of what is
//! older or newer than those, nothing is said. Knows no clock and no network.

use std::collections::{BTreeMap, VecDeque};

use tideline_types::{Millis, PartitionId, Seq};

use crate::cache::{Change, Filled};

/// A reader shows what it should not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Alarm {
    /// It misses a change that was pushed long ago.
    #[error("stands at {shown}, and misses the change {missed}, which was pushed {late_ms} ms ago")]
    Stale {
        /// Where the reader stands.
        shown: Seq,
        /// The oldest change that it misses.
        missed: Seq,
        /// For how long that was there, in ms.
        late_ms: i64,
    },
    /// It has another value than the topic gives the key there.
    #[error("shows {shown:?} at {at}, where the key has {expected:?}")]
    Wrong {
        /// Where the reader stands.
        at: Seq,
        /// What it shows.
        shown: Option<Filled>,
        /// What the key has there.
        expected: Option<Filled>,
    },
}

/// What was found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Values that were compared, and were right and new enough.
    pub good: u64,
    /// Alarms.
    pub alarms: u64,
    /// Values of which nothing could be said.
    pub unsaid: u64,
}

/// Samples and compares.
#[derive(Debug)]
pub struct Checker {
    keys_max: usize,
    within_ms: i64,
    keys: BTreeMap<Vec<u8>, Sampled>,
    covered: BTreeMap<PartitionId, Seq>,
    tally: Tally,
}

/// The newest changes of a key.
#[derive(Debug)]
struct Sampled {
    partition: PartitionId,
    /// Number, what the key has after it, when it was pushed; in order.
    changes: VecDeque<(Seq, Option<Filled>, Millis)>,
}

/// Changes of a key that are kept.
const CHANGES_MAX: usize = 4_096;

impl Checker {
    /// One that samples up to `keys_max` keys, those that are pushed first, and
    /// lets readers miss a change for `within_ms`.
    pub fn new(keys_max: usize, within_ms: i64) -> Self {
        let (keys, covered, tally) = Default::default();
        Self { keys_max, within_ms, keys, covered, tally }
    }

    /// A change was pushed; all of a key's, from its first on, in order.
    pub fn pushed(
        &mut self,
        partition: PartitionId,
        seq: Seq,
        key: &[u8],
        change: &Change,
        now: Millis,
    ) {
        if !self.keys.contains_key(key) {
            if self.keys.len() == self.keys_max {
                return;
            }
            let fresh = Sampled { partition, changes: VecDeque::new() };
            self.keys.insert(key.to_vec(), fresh);
        }
        let Some(sampled) = self.keys.get_mut(key) else { return };
        let before = sampled.changes.back().and_then(|(_, value, _)| value.clone());
        let after = match (change, before) {
            (Change::Set(bytes), _) => Some(Filled::Bytes(bytes.clone())),
            (Change::Delete, _) => None,
            (Change::Add(by), Some(Filled::Counter(n))) => {
                Some(Filled::Counter(n.saturating_add(*by)))
            }
            (Change::Add(by), _) => Some(Filled::Counter(*by)),
            (Change::Enter(value), _) => value.clone(),
            (Change::Leave, before) => before,
        };
        sampled.changes.push_back((seq, after, now));
        if sampled.changes.len() > CHANGES_MAX {
            sampled.changes.pop_front();
        }
    }

    /// Everything of a partition up to `through` was pushed.
    pub fn covered(&mut self, partition: PartitionId, through: Seq) {
        self.covered.insert(partition, through);
    }

    /// A reader shows `value` for a key, as of `at`.
    ///
    /// # Errors
    /// The alarm.
    pub fn shown(
        &mut self,
        key: &[u8],
        value: Option<&Filled>,
        at: Seq,
        now: Millis,
    ) -> Result<(), Alarm> {
        let result = self.compare(key, value, at, now);
        match &result {
            Ok(true) => self.tally.good += 1,
            Ok(false) => self.tally.unsaid += 1,
            Err(_) => self.tally.alarms += 1,
        }
        result.map(drop)
    }

    /// How often which.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn compare(
        &self,
        key: &[u8],
        value: Option<&Filled>,
        at: Seq,
        now: Millis,
    ) -> Result<bool, Alarm> {
        let Some(Sampled { partition, changes }) = self.keys.get(key) else { return Ok(false) };
        let next = changes.partition_point(|(seq, ..)| *seq <= at);
        if let Some((missed, _, pushed)) = changes.get(next) {
            let late_ms = now.0 - pushed.0;
            if late_ms > self.within_ms {
                return Err(Alarm::Stale { shown: at, missed: *missed, late_ms });
            }
        }
        let known = self.covered.get(partition).is_some_and(|covered| at <= *covered);
        let Some((_, expected, _)) = next.checked_sub(1).and_then(|n| changes.get(n)) else {
            // Before the oldest change that is kept.
            return Ok(false);
        };
        if known && expected.as_ref() != value {
            let (shown, expected) = (value.cloned(), expected.clone());
            return Err(Alarm::Wrong { at, shown, expected });
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionId = PartitionId(2);

    /// Adds one at 3, 5 and 9, pushed at 30, 50 and 90 ms; covered up to 10.
    fn checker() -> Checker {
        let mut checker = Checker::new(1, 100);
        for seq in [3, 5, 9] {
            checker.pushed(P, Seq(seq), b"k", &Change::Add(1), Millis(seq as i64 * 10));
        }
        checker.pushed(P, Seq(9), b"other", &Change::Add(1), Millis(90));
        checker.covered(P, Seq(10));
        checker
    }

    fn shown(n: i64, at: u64, now: i64) -> Result<(), Alarm> {
        checker().shown(b"k", Some(&Filled::Counter(n)), Seq(at), Millis(now))
    }

    #[test]
    fn a_reader_may_be_late_for_a_while_and_not_longer() {
        assert_eq!(shown(2, 8, 190), Ok(()));
        let stale = Alarm::Stale { shown: Seq(8), missed: Seq(9), late_ms: 101 };
        assert_eq!(shown(2, 8, 191), Err(stale));
        assert_eq!(shown(3, 9, 10_000), Ok(()), "nothing came after");
    }

    #[test]
    fn another_value_than_at_that_place_is_an_alarm_at_once() {
        for (n, at) in [(1, 3), (1, 4), (2, 5), (3, 9), (3, 10)] {
            assert_eq!(shown(n, at, 100), Ok(()), "{n} at {at}");
            assert!(matches!(shown(n + 1, at, 100), Err(Alarm::Wrong { .. })), "{n} at {at}");
        }
        assert!(matches!(
            checker().shown(b"k", None, Seq(9), Millis(100)),
            Err(Alarm::Wrong { .. })
        ));
    }

    #[test]
    fn of_what_is_not_known_nothing_is_said() {
        let mut checker = checker();
        let mut say = |key: &[u8], at| checker.shown(key, None, Seq(at), Millis(100)).is_ok();
        assert!(say(b"other", 9) && say(b"k", 2) && say(b"k", 11));
        assert_eq!(checker.tally(), Tally { good: 0, alarms: 0, unsaid: 3 });
    }
}
