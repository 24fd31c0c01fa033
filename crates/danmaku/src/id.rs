//! Ids of comments: 63 bits that sort by time and say where in the video.
//!
//! ```text
//! bit 62 ............ 22 | 21 ......... 9 | 8 ..... 0
//! ms since 2000-01-01    | stretch        | counter
//! 41 bits, until 2069    | 13 bits        | 9 bits
//! ```
//!
//! A *stretch* is six minutes of the video, counted from 0. It is part of the
//! id so that whoever has an id knows where its rows lie. Ids are unique within
//! a video; the owner of the video's partition makes them, and needs nobody
//! else for it. Always: 0 <= id < 2^63, and the time in an id is no later than
//! the owner's time when it was made.

use std::fmt;

use tideline_types::Millis;

/// Milliseconds of one stretch. Part of the data format.
pub const STRETCH_MS: u32 = 360_000;
/// 2000-01-01T00:00:00Z in ms since the Unix epoch.
const EPOCH_MS: i64 = 946_684_800_000;
const MS_MAX: u64 = (1 << 41) - 1;
const STRETCH_BITS: u32 = 13;
const COUNTER_BITS: u32 = 9;
/// Ids of one ms and stretch.
const COUNTERS: u64 = 1 << COUNTER_BITS;

const _: () = assert!(tideline_types::limits::PROGRESS_MS_MAX / STRETCH_MS < 1 << STRETCH_BITS);

/// The id of a comment, unique in its video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentId(u64);

impl CommentId {
    /// The id of a number; `None` if it is negative.
    pub fn new(number: i64) -> Option<Self> {
        u64::try_from(number).ok().map(Self)
    }

    /// As players and callers know it.
    pub fn number(self) -> i64 {
        self.0 as i64
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        (bits >> 63 == 0).then_some(Self(bits))
    }

    /// Which six minutes of the video, from 0.
    pub fn stretch(self) -> u16 {
        (self.0 >> COUNTER_BITS) as u16 & ((1 << STRETCH_BITS) - 1)
    }

    /// The time in the id.
    pub fn time(self) -> Millis {
        Millis((self.0 >> (STRETCH_BITS + COUNTER_BITS)) as i64 + EPOCH_MS)
    }

    fn of(ms: u64, stretch: u16, counter: u64) -> Self {
        let high = ms.min(MS_MAX) << (STRETCH_BITS + COUNTER_BITS);
        Self(high | (u64::from(stretch) << COUNTER_BITS) | (counter % COUNTERS))
    }
}

impl fmt::Display for CommentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The stretch that a time in the video lies in.
pub fn stretch_of(progress_ms: u32) -> u16 {
    (progress_ms / STRETCH_MS) as u16
}

/// Makes the ids of one partition, each once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mint {
    ms: u64,
    used: u64,
}

impl Mint {
    /// Gives no id whose time is `taken` or before.
    pub(crate) fn after(taken: Millis) -> Self {
        Self { ms: since_epoch(taken), used: COUNTERS }
    }

    /// The next id for a comment of `stretch`, taken at `now`; where one ms has
    /// no id left, of a later ms. The owner's time must follow it.
    pub(crate) fn next(&mut self, now: Millis, stretch: u16) -> CommentId {
        let now = since_epoch(now);
        if now > self.ms {
            (self.ms, self.used) = (now, 0);
        } else if self.used == COUNTERS {
            (self.ms, self.used) = (self.ms + 1, 0);
        }
        self.used += 1;
        CommentId::of(self.ms, stretch, self.used - 1)
    }
}

fn since_epoch(time: Millis) -> u64 {
    u64::try_from(time.0 - EPOCH_MS).unwrap_or(0)
}

/// The ids that a comment from a file may have, best first: the time it was
/// sent, spread by `key` over the second, since files know no finer time. The
/// same comment has the same ids each time.
pub(crate) fn imported(
    sent: Millis,
    stretch: u16,
    key: u64,
) -> impl Iterator<Item = CommentId> + Clone {
    let second = since_epoch(sent) / 1000 * 1000;
    (0..IMPORT_TRIES).map(move |nth| {
        let place = key.wrapping_add(nth) % (1000 * COUNTERS);
        CommentId::of(second + place / COUNTERS, stretch, place)
    })
}

/// Places that an imported comment looks for, in case others of the same
/// second are there.
pub(crate) const IMPORT_TRIES: u64 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_layout_of_an_id_never_changes() {
        let mut mint = Mint::default();
        let id = mint.next(Millis(1_796_000_000_000), 3);
        assert_eq!(id.number(), 849_315_200_000 << 22 | 3 << 9);
        assert_eq!(mint.next(Millis(1_796_000_000_000), 3).number(), id.number() + 1);
        assert_eq!((id.stretch(), id.time()), (3, Millis(1_796_000_000_000)));
    }

    #[test]
    fn a_new_mint_repeats_no_id_of_the_time_it_is_told() {
        let (mut old, now) = (Mint::default(), Millis(1_796_000_000_000));
        let first: Vec<_> = (0..700).map(|_| old.next(now, 0)).collect();
        let taken = first.last().unwrap().time();
        assert_eq!(taken, now.plus(1), "the second ms was begun");
        let mut new = Mint::after(taken);
        assert!(new.next(now, 0) > *first.last().unwrap());
    }

    proptest! {
        #[test]
        fn ids_are_unique_and_sort_by_time(steps in prop::collection::vec((0_i64..3, 0_u16..5966), 1..2000)) {
            let (mut mint, mut now) = (Mint::default(), 1_796_000_000_000);
            let mut seen = std::collections::BTreeSet::new();
            let mut last = Millis(0);
            for (ms, stretch) in steps {
                now += ms;
                let id = mint.next(Millis(now), stretch);
                prop_assert!(seen.insert(id) && id.time() >= last && id.time().0 >= now);
                prop_assert_eq!(id.stretch(), stretch);
                prop_assert!(id.number() > 0);
                last = id.time();
            }
        }

        #[test]
        fn an_imported_id_keeps_second_and_stretch(sent in 0_i64..3_000_000_000_000, stretch in 0_u16..5966, key: u64) {
            for id in imported(Millis(sent), stretch, key) {
                prop_assert_eq!(id.stretch(), stretch);
                prop_assert!(CommentId::new(id.number()) == Some(id));
                let second = (sent - EPOCH_MS).max(0) / 1000;
                prop_assert_eq!((id.time().0 - EPOCH_MS) / 1000, second.min(MS_MAX as i64 / 1000));
            }
        }
    }
}
