//! Who is told what of a room.
//!
//! A room asks what happened since, and tells it in ranges `(after, through]`,
//! each right behind the one before; numbers of other videos are in them, too.
//! A member holds one number: what it knows everything through. Always: what it
//! is told follows without a gap, and nothing is told twice; where ranges are
//! missing, it is told from where they go on. Knows nothing of sockets, clocks
//! and comments.

use tideline_types::Seq;

/// How far a room has come.
#[derive(Debug)]
pub(super) struct Teller {
    asked: Seq,
    told: Seq,
}

/// Everything that happened after one number and through another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) after: Seq,
    pub(super) through: Seq,
}

impl Teller {
    /// For members who know everything through `at`, or ask what they miss.
    pub(super) fn new(at: Seq) -> Self {
        Self { asked: at, told: at }
    }

    /// Since when to ask what happened.
    pub(super) fn asked(&self) -> Seq {
        self.asked
    }

    /// Everything through this is known, in which `something` happened; the
    /// range to be told, if there is anything in it.
    pub(super) fn hear(&mut self, through: Seq, something: bool) -> Option<Range> {
        self.asked = self.asked.max(through);
        if !something {
            return None;
        }
        let after = std::mem::replace(&mut self.told, self.asked);
        Some(Range { after, through: self.asked })
    }

    /// Too much happened to say what: telling goes on behind this range, which
    /// is empty.
    pub(super) fn lag(&mut self, through: Seq) -> Range {
        (self.asked, self.told) = (through, through);
        Range { after: through, through }
    }
}

/// How far a member has been told.
#[derive(Debug)]
pub(super) struct Follower {
    at: Seq,
}

/// What of a range a member is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tell {
    /// It knows all of it.
    Nothing,
    /// All of it.
    All,
    /// What comes after this number.
    After(Seq),
    /// That it is to load again what does not hold everything through this
    /// number; and all of it.
    Lagged(Seq),
}

impl Follower {
    /// A member who knows everything through `at`.
    pub(super) fn new(at: Seq) -> Self {
        Self { at }
    }

    /// Takes the next range that came; some may have been missed before it.
    pub(super) fn hear(&mut self, range: Range) -> Tell {
        if range.through <= self.at {
            return Tell::Nothing;
        }
        let at = std::mem::replace(&mut self.at, range.through);
        match range.after {
            after if after > at => Tell::Lagged(after),
            after if after < at => Tell::After(at),
            _ => Tell::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn range(after: u64, through: u64) -> Range {
        Range { after: Seq(after), through: Seq(through) }
    }

    #[test]
    fn one_who_misses_ranges_is_told_from_where_they_go_on() {
        let mut slow = Follower::new(Seq(10));
        assert_eq!(slow.hear(range(10, 12)), Tell::All);
        assert_eq!(slow.hear(range(20, 25)), Tell::Lagged(Seq(20)));
        assert_eq!(slow.hear(range(25, 26)), Tell::All);
    }

    #[test]
    fn what_is_known_already_is_not_told_again() {
        let mut ahead = Follower::new(Seq(15));
        assert_eq!(ahead.hear(range(10, 15)), Tell::Nothing);
        assert_eq!(ahead.hear(range(12, 18)), Tell::After(Seq(15)));
    }

    #[test]
    fn a_room_that_lost_the_thread_says_so_to_those_who_had_it() {
        let mut room = Teller::new(Seq(5));
        let (mut had, mut has) = (Follower::new(Seq(5)), Follower::new(Seq(50)));
        let lost = room.lag(Seq(50));
        assert_eq!((had.hear(lost), has.hear(lost)), (Tell::Lagged(Seq(50)), Tell::Nothing));
        let next = room.hear(Seq(52), true).unwrap();
        assert_eq!((had.hear(next), has.hear(next)), (Tell::All, Tell::All));
    }

    #[test]
    fn a_range_without_events_is_part_of_the_next_one() {
        let mut room = Teller::new(Seq(5));
        assert_eq!((room.hear(Seq(9), false), room.asked()), (None, Seq(9)));
        assert_eq!(room.hear(Seq(12), true), Some(range(5, 12)));
    }

    /// A member: what they have from a body, from pushes, and what waits.
    struct Member {
        follower: Follower,
        body: u64,
        told: Vec<u64>,
        waiting: VecDeque<Range>,
    }

    impl Member {
        /// Takes what waits first; whether anything did.
        fn take(&mut self, log: &[u64]) -> bool {
            let Some(next) = self.waiting.pop_front() else { return false };
            let after = match self.follower.hear(next) {
                Tell::Nothing => return true,
                Tell::All => next.after.0,
                Tell::After(seq) => seq.0,
                // It loads what it has again.
                Tell::Lagged(seq) => {
                    self.told.retain(|told| *told > seq.0);
                    self.body = self.body.max(seq.0);
                    next.after.0
                }
            };
            self.told.extend(log.iter().filter(|seq| (after + 1..=next.through.0).contains(seq)));
            true
        }
    }

    proptest! {
        #[test]
        fn every_member_comes_to_know_every_change_once_and_in_order(
            // What happens: 0 an outcome of this video, 1 of another, 2 the
            // room tells, 3 it has lost the thread, 4 somebody joins with a body
            // of some age, 5 and more: somebody takes what they were sent.
            steps in prop::collection::vec((0_u8..8, any::<prop::sample::Index>()), 1..200),
        ) {
            const KEPT: usize = 3;
            let (mut log, mut last) = (Vec::new(), 0_u64);
            let mut room = Teller::new(Seq(0));
            let mut members: Vec<Member> = Vec::new();
            let tell = |members: &mut Vec<Member>, range: Range| {
                for member in members {
                    member.waiting.push_back(range);
                    if member.waiting.len() > KEPT {
                        member.waiting.pop_front();
                    }
                }
            };
            for (what, at) in steps {
                match what {
                    0 => { last += 1; log.push(last); }
                    1 => last += 1,
                    2 => {
                        let something = log.iter().any(|seq| *seq > room.asked().0);
                        if let Some(range) = room.hear(Seq(last), something) {
                            tell(&mut members, range);
                        }
                    }
                    3 if last > room.asked().0 => {
                        let range = room.lag(Seq(last));
                        tell(&mut members, range);
                    }
                    4 => {
                        let body = at.index(last as usize + 1) as u64;
                        let told = log.iter().copied().filter(|seq| *seq > body).collect();
                        let follower = Follower::new(Seq(last));
                        members.push(Member { follower, body, told, waiting: VecDeque::new() });
                    }
                    _ if members.is_empty() => {}
                    _ => _ = { let at = at.index(members.len()); members[at].take(&log) },
                }
            }
            last += 1;
            log.push(last);
            let range = room.hear(Seq(last), true).unwrap();
            tell(&mut members, range);
            for mut member in members {
                while member.take(&log) {}
                let want: Vec<u64> = log.iter().copied().filter(|seq| *seq > member.body).collect();
                prop_assert_eq!(member.told, want);
            }
        }
    }
}
