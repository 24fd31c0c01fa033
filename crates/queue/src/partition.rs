//! One partition that many write: gives each batch its numbers and times, and
//! says who is acknowledged.
//!
//! Always: `synced < next`; times never fall; a ticket is answered once, with
//! success only when its last number is synced. Knows nothing of files, topics
//! or clocks: `now` is an argument.

use std::collections::VecDeque;

use tideline_record::batch::Stamp;
use tideline_types::{Epoch, Millis, Seq, SeqRange};

use crate::StampError;
use crate::producers::{Admit, Producers};

/// What a ticket is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its records survive power loss.
    Synced(SeqRange),
    /// There was no space; nothing of it is kept.
    Dropped,
    /// A write or a sync failed; it may be found after a restart.
    Failed,
}

/// Numbers, and who waits for them. `T` is what the driver answers through.
#[derive(Debug)]
pub(crate) struct Partition<T> {
    epoch: Epoch,
    next: Seq,
    synced: Seq,
    last_time: Millis,
    waiting: VecDeque<(SeqRange, T)>,
    /// With everything that was appended.
    admitted: Producers,
    /// With what is synced alone: what may be kept, and what is left when the
    /// rest is dropped.
    settled: Producers,
    unsettled: VecDeque<(SeqRange, Millis, Option<Stamp>)>,
    /// What was synced when `settled` was kept last, or tried to be.
    kept: Seq,
}

impl<T> Partition<T> {
    /// Continues after `synced`, with times no lower than `newest`; `producers`
    /// follow from everything up to there, and have seen what was freed.
    pub(crate) fn new(epoch: Epoch, synced: Seq, newest: Millis, producers: Producers) -> Self {
        Self {
            epoch,
            next: synced.next(),
            synced,
            last_time: newest.max(producers.newest()),
            waiting: VecDeque::new(),
            admitted: producers.clone(),
            settled: producers,
            unsettled: VecDeque::new(),
            kept: Seq::ZERO,
        }
    }

    /// What becomes of `count` records of a producer.
    pub(crate) fn admit(&self, stamp: &Stamp, count: u64) -> Result<Admit, StampError> {
        self.admitted.admit(stamp, count)
    }

    /// `ticket` waits for records that were appended before.
    pub(crate) fn wait(&mut self, range: SeqRange, ticket: T) -> Option<(T, Answer)> {
        if range.through <= self.synced {
            return Some((ticket, Answer::Synced(range)));
        }
        let at = self.waiting.partition_point(|(other, _)| other.through <= range.through);
        self.waiting.insert(at, (range, ticket));
        None
    }

    /// The producers as of the last number that is synced, and that number.
    pub(crate) fn settled(&self) -> (&Producers, Seq) {
        (&self.settled, self.synced)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The number of the next record.
    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    /// The time that records taken at `now` get.
    pub(crate) fn stamp(&self, now: Millis) -> Millis {
        now.max(self.last_time)
    }

    /// Whether something was synced since this was asked last.
    pub(crate) fn is_news(&mut self) -> bool {
        std::mem::replace(&mut self.kept, self.synced) < self.synced
    }

    /// The journal took `count` records under the next numbers, at `time`;
    /// `ticket` waits for them.
    pub(crate) fn appended(&mut self, count: u64, time: Millis, stamp: Option<&Stamp>, ticket: T) {
        let range = SeqRange::new(self.next.prev(), self.next.prev().plus(count));
        self.next = range.through.next();
        self.last_time = self.last_time.max(time);
        if let Some(stamp) = stamp {
            self.admitted.put(stamp, count, range.after.next(), self.epoch);
        }
        self.admitted.saw(time);
        self.unsettled.push_back((range, time, stamp.copied()));
        self.waiting.push_back((range, ticket));
    }

    /// Everything up to `through` survives power loss.
    pub(crate) fn synced(&mut self, through: Seq, answers: &mut Vec<(T, Answer)>) {
        self.synced = self.synced.max(through);
        while self.unsettled.front().is_some_and(|(range, ..)| range.through <= self.synced) {
            let (range, time, stamp) = self.unsettled.pop_front().expect("the front was just seen");
            self.settled.saw(time);
            if let Some(stamp) = stamp {
                self.settled.put(&stamp, range.count(), range.after.next(), self.epoch);
            }
        }
        while self.waiting.front().is_some_and(|(range, _)| range.through <= self.synced) {
            let (range, ticket) = self.waiting.pop_front().expect("the front was just seen");
            answers.push((ticket, Answer::Synced(range)));
        }
        assert!(self.synced < self.next);
    }

    /// Nothing from `from` on was kept; numbers continue there.
    pub(crate) fn dropped(&mut self, from: Seq, answers: &mut Vec<(T, Answer)>) {
        assert!(self.synced < from && from <= self.next);
        self.next = from;
        self.unsettled.clear();
        self.admitted = self.settled.clone();
        answers.extend(self.waiting.drain(..).map(|(_, ticket)| (ticket, Answer::Dropped)));
    }

    /// Nothing that waits is ever known to be safe.
    pub(crate) fn failed(&mut self, answers: &mut Vec<(T, Answer)>) {
        answers.extend(self.waiting.drain(..).map(|(_, ticket)| (ticket, Answer::Failed)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+n` appends n records for the next ticket, `s7` syncs through 7, `d7`
    /// drops from 7, `f` fails. The trace names tickets from a.
    fn run(script: &str) -> String {
        let producers = Producers::default();
        let mut partition = Partition::new(Epoch(1), Seq(10), Millis(5), producers);
        let (mut tickets, mut trace) = ('a'..='z', Vec::new());
        for word in script.split(' ') {
            let (act, n) = word.split_at(1);
            let n = n.parse().unwrap_or(0);
            let mut answers = Vec::new();
            match act {
                "+" => partition.appended(n, Millis(6), None, tickets.next().unwrap()),
                "s" => partition.synced(Seq(n), &mut answers),
                "d" => partition.dropped(Seq(n), &mut answers),
                _ => partition.failed(&mut answers),
            }
            for (ticket, answer) in answers {
                trace.push(match answer {
                    Answer::Synced(range) => format!("{ticket}{range}"),
                    Answer::Dropped => format!("{ticket} dropped"),
                    Answer::Failed => format!("{ticket} failed"),
                });
            }
        }
        format!("{}; next {}", trace.join(", "), partition.next())
    }

    #[test]
    fn a_ticket_waits_for_its_last_record() {
        assert_eq!(run("+2 +3 s13 s15"), "a(10, 12], b(12, 15]; next 16");
        assert_eq!(run("+2 s11"), "; next 13");
    }

    #[test]
    fn numbers_continue_where_they_were_dropped() {
        assert_eq!(run("+2 +3 s12 d13 +1 s13"), "a(10, 12], b dropped, c(12, 13]; next 14");
    }

    #[test]
    fn a_failure_answers_all_that_wait() {
        assert_eq!(run("+2 +3 s12 f"), "a(10, 12], b failed; next 16");
    }

    #[test]
    fn times_never_fall() {
        let mut partition = Partition::new(Epoch(1), Seq(0), Millis(50), Producers::default());
        assert_eq!(partition.stamp(Millis(40)), Millis(50));
        partition.appended(1, Millis(60), None, ());
        assert_eq!(partition.stamp(Millis(40)), Millis(60));
    }
    #[test]
    fn a_retry_waits_for_the_sync_of_the_first_try() {
        let stamp = |number| Stamp { producer: 7, epoch: 0, number };
        let mut partition = Partition::new(Epoch(1), Seq(0), Millis(0), Producers::default());
        assert_eq!(partition.admit(&stamp(1), 2), Ok(Admit::New));
        partition.appended(2, Millis(1), Some(&stamp(1)), "first");
        partition.appended(1, Millis(1), None, "other");
        let Ok(Admit::Again(range, Epoch(1))) = partition.admit(&stamp(1), 2) else {
            panic!("not known")
        };
        assert_eq!(partition.wait(range, "again"), None);
        let mut answers = Vec::new();
        partition.synced(Seq(2), &mut answers);
        let (first, again) = (Answer::Synced(range), Answer::Synced(range));
        assert_eq!(answers, [("first", first), ("again", again)]);
        assert_eq!(partition.wait(range, "late"), Some(("late", again)));
        assert_eq!(partition.settled().0.admit(&stamp(3), 1), Ok(Admit::New));
    }

    #[test]
    fn what_was_dropped_is_not_remembered() {
        let stamp = |number| Stamp { producer: 7, epoch: 0, number };
        let mut partition = Partition::new(Epoch(1), Seq(0), Millis(0), Producers::default());
        partition.appended(1, Millis(1), Some(&stamp(1)), "kept");
        partition.synced(Seq(1), &mut Vec::new());
        partition.appended(1, Millis(1), Some(&stamp(2)), "lost");
        partition.dropped(Seq(2), &mut Vec::new());
        assert_eq!(partition.admit(&stamp(2), 1), Ok(Admit::New));
    }
}
