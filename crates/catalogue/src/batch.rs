//! What to ask an owner's service next, how much of it, and when.
//!
//! Always: an id is waiting, in flight, or neither, never two of them;
//! `in_flight <= in_flight_max`; `1 <= size <= batch_max`; waiting and in
//! flight together are at most `ids_max`.
//!
//! The size of a request grows by [`STEP`] after each full one that went well,
//! and halves after one that failed or was late. After a failure nothing is
//! asked for a while, twice as long after each further one. Without clock,
//! network or tasks: `now` is in ms of a clock that never falls.

use std::collections::{HashSet, VecDeque};

const SIZE_AT_FIRST: usize = 32;
/// Ids that a request grows by.
const STEP: usize = 8;
const PAUSE_MS_MIN: u64 = 50;
const PAUSE_MS_MAX: u64 = 5_000;

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was answered.
    Answered,
    /// It failed or was late; the owner may say how long to stay away.
    Failed {
        /// At least this long, in ms; 0 if it did not say.
        stay_away_ms: u64,
    },
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask for these, in this order; then say `done`.
    Ask(Vec<String>),
    /// Nothing until then, unless a request is done before.
    WaitUntil(u64),
    /// Nothing until an id is wanted or a request is done.
    Idle,
}

/// The state of one owner's service.
#[derive(Debug)]
pub(crate) struct Batcher {
    batch_max: usize,
    in_flight_max: usize,
    ids_max: usize,
    waiting: VecDeque<String>,
    /// Ids that wait or are in flight.
    known: HashSet<String>,
    in_flight: usize,
    size: usize,
    failures: u32,
    quiet_until: u64,
}

impl Batcher {
    /// Bounds of 0 are taken as 1.
    pub(crate) fn new(batch_max: usize, in_flight_max: usize, ids_max: usize) -> Self {
        let batch_max = batch_max.max(1);
        Self {
            batch_max,
            in_flight_max: in_flight_max.max(1),
            ids_max: ids_max.max(1),
            waiting: VecDeque::new(),
            known: HashSet::new(),
            in_flight: 0,
            size: SIZE_AT_FIRST.min(batch_max),
            failures: 0,
            quiet_until: 0,
        }
    }

    /// Ids in the next request, at most.
    #[cfg(test)]
    fn size(&self) -> usize {
        self.size
    }

    /// Wants `id`, once. `false` if too many are wanted already.
    pub(crate) fn want(&mut self, id: &str) -> bool {
        if self.known.contains(id) {
            return true;
        }
        if self.known.len() >= self.ids_max {
            return false;
        }
        self.known.insert(id.to_owned());
        self.waiting.push_back(id.to_owned());
        true
    }

    /// What to do at `now`; to be called until it says to wait.
    pub(crate) fn step(&mut self, now: u64) -> Step {
        if self.waiting.is_empty() || self.in_flight >= self.in_flight_max {
            return Step::Idle;
        }
        if now < self.quiet_until {
            return Step::WaitUntil(self.quiet_until);
        }
        // After a failure one request finds out whether the owner is back.
        if self.failures > 0 && self.in_flight > 0 {
            return Step::Idle;
        }
        let size = self.size.min(self.waiting.len());
        self.in_flight += 1;
        Step::Ask(self.waiting.drain(..size).collect())
    }

    /// The request for `ids` came to its end.
    pub(crate) fn done(&mut self, ids: &[String], outcome: Outcome, now: u64) {
        assert!(self.in_flight > 0, "a request is done once");
        self.in_flight -= 1;
        for id in ids {
            self.known.remove(id);
        }
        match outcome {
            Outcome::Answered => {
                self.failures = 0;
                if ids.len() == self.size {
                    self.size = (self.size + STEP).min(self.batch_max);
                }
            }
            Outcome::Failed { stay_away_ms } => {
                // A larger one began before the last failure, which it is part of.
                if ids.len() <= self.size {
                    self.size = (self.size / 2).max(1);
                    self.failures += 1;
                }
                let doublings = self.failures.saturating_sub(1).min(10);
                let pause = (PAUSE_MS_MIN << doublings).min(PAUSE_MS_MAX);
                let pause = pause.max(stay_away_ms.min(12 * PAUSE_MS_MAX));
                self.quiet_until = self.quiet_until.max(now + pause);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script of `N want A..B`, `N ok`, `N fail [ms]`; traces what is
    /// asked, and what the last step of each line says.
    fn run(mut batcher: Batcher, script: &str) -> String {
        let mut flights: VecDeque<Vec<String>> = VecDeque::new();
        let mut trace = Vec::new();
        for line in script.split(" / ") {
            let words: Vec<&str> = line.split(' ').collect();
            let now: u64 = words[0].parse().unwrap();
            match words[1] {
                "want" => {
                    let (from, to) = words[2].split_once("..").unwrap();
                    let ids: std::ops::Range<u32> = from.parse().unwrap()..to.parse().unwrap();
                    let refused = ids.filter(|id| !batcher.want(&id.to_string())).count();
                    if refused > 0 {
                        trace.push(format!("refused {refused}"));
                    }
                }
                "ok" => batcher.done(&flights.pop_front().unwrap(), Outcome::Answered, now),
                "fail" => {
                    let stay_away_ms = words.get(2).map_or(0, |ms| ms.parse().unwrap());
                    let outcome = Outcome::Failed { stay_away_ms };
                    batcher.done(&flights.pop_front().unwrap(), outcome, now);
                }
                _ => {}
            }
            loop {
                match batcher.step(now) {
                    Step::Ask(ids) => {
                        trace.push(format!("ask {}+{}", ids[0], ids.len()));
                        flights.push_back(ids);
                    }
                    Step::WaitUntil(then) => break trace.push(format!("until {then}")),
                    Step::Idle => break,
                }
            }
        }
        trace.join(", ")
    }

    #[test]
    fn what_is_wanted_is_asked_at_once_up_to_the_requests_allowed() {
        let trace = run(Batcher::new(10, 2, 100), "0 want 0..25 / 1 ok / 2 ok");
        assert_eq!(trace, "ask 0+10, ask 10+10, ask 20+5");
    }

    #[test]
    fn an_id_in_flight_is_not_asked_again_and_one_that_is_done_may_be() {
        let trace = run(Batcher::new(10, 2, 100), "0 want 1..2 / 0 want 1..2 / 1 ok / 2 want 1..2");
        assert_eq!(trace, "ask 1+1, ask 1+1");
    }

    #[test]
    fn full_requests_that_go_well_grow_and_others_do_not() {
        let script = "0 want 0..200 / 1 ok / 2 ok / 3 ok / 4 ok / 5 want 500..700";
        assert_eq!(
            run(Batcher::new(50, 1, 1_000), script),
            "ask 0+32, ask 32+40, ask 72+48, ask 120+50, ask 170+30"
        );
    }

    #[test]
    fn failures_halve_the_request_and_double_the_pause() {
        let script = "0 want 0..90 / 10 fail / 60 tick / 70 fail / 169 tick / 170 tick / 171 ok";
        assert_eq!(
            run(Batcher::new(50, 1, 100), script),
            "ask 0+32, until 60, ask 32+16, until 170, until 170, ask 48+8, ask 56+16"
        );
    }

    #[test]
    fn an_owner_that_says_when_to_come_back_is_left_alone_until_then() {
        let trace = run(Batcher::new(10, 1, 100), "0 want 0..20 / 5 fail 2000 / 2005 tick");
        assert_eq!(trace, "ask 0+10, until 2005, ask 10+5");
    }

    #[test]
    fn requests_that_fail_together_count_once_and_one_finds_out() {
        let script = "0 want 0..60 / 1 fail / 2 fail / 3 fail / 53 tick / 60 ok";
        assert_eq!(
            run(Batcher::new(10, 3, 100), script),
            "ask 0+10, ask 10+10, ask 20+10, until 51, until 52, until 53, \
             ask 30+5, ask 35+10, ask 45+10, ask 55+5"
        );
    }

    #[test]
    fn more_ids_than_allowed_are_refused() {
        assert_eq!(run(Batcher::new(2, 1, 5), "0 want 0..9"), "refused 4, ask 0+2");
    }

    #[test]
    fn a_request_never_shrinks_to_nothing() {
        let mut batcher = Batcher::new(1, 1, 9);
        batcher.want("a");
        let Step::Ask(ids) = batcher.step(0) else { panic!("asks") };
        batcher.done(&ids, Outcome::Failed { stay_away_ms: 0 }, 0);
        assert_eq!(batcher.size(), 1);
    }
}
