//! What clients do: few users, few objects, small caps, so that everything
//! meets everything.

use std::collections::BTreeMap;

use super::oracle::Action;
use crate::rng::Rng;
use tideline_harness::model::{Config, DAY, Key, ModelBlock, ModelMark};

pub(crate) const KINDS: [&str; 2] = ["article", "video"];
pub(crate) const USERS: [&str; 8] = ["1", "ann", "007", "bo", "22", "cy", "d", "é"];
const IDS: [&str; 7] = ["7", "007", "112489730346240", "a", "b", "cc", "z"];

pub(crate) fn configs() -> BTreeMap<String, Config> {
    let article = Config { retention_days: 3, cap: 3, per_day: 0, daily_first: true };
    let video = Config { retention_days: 0, cap: 5, per_day: 4, daily_first: true };
    [("article".to_owned(), article), ("video".to_owned(), video)].into()
}

/// One client's stream of actions.
pub(crate) struct Workload {
    rng: Rng,
    /// Marks sent before, to be sent again.
    sent: Vec<(String, ModelMark)>,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed, "workload"), sent: Vec::new() }
    }

    pub(crate) fn user(&mut self) -> String {
        (*self.rng.pick(&USERS)).to_owned()
    }

    /// A handful of marks of one or several users.
    pub(crate) fn marks(&mut self, now: i64) -> Vec<(String, ModelMark)> {
        (0..1 + self.rng.below(4)).map(|_| self.mark(now)).collect()
    }

    fn mark(&mut self, now: i64) -> (String, ModelMark) {
        if !self.sent.is_empty() && self.rng.once_in(6) {
            return self.rng.pick(&self.sent).clone();
        }
        let rng = &mut self.rng;
        let durations = [1_500, 100_000, 1_440_000];
        let duration = rng.maybe(4, &durations);
        let within = duration.unwrap_or(100_000) as u64;
        let at = [0, -1, -500, -500, -1000, -60_000, -DAY / 2, -2 * DAY, -4 * DAY, 700];
        let mark = ModelMark {
            kind: (*rng.pick(&KINDS)).to_owned(),
            id: (*rng.pick(&IDS)).to_owned(),
            part: rng.maybe(2, &["p1".to_owned(), "p2".to_owned()]),
            position: (!rng.once_in(4)).then(|| rng.below(within + 1) as i64),
            duration,
            sent: (!rng.once_in(4)).then(|| now + rng.pick(&at)),
            shift: if rng.once_in(10) { -3_600_000 } else { 0 },
            device: rng.maybe(2, &["tv".to_owned()]),
            group: rng.maybe(2, &["g".to_owned()]),
            finished: rng.once_in(8),
            event_id: rng.maybe(2, &["e1".to_owned(), "e2".to_owned()]),
            live: true,
        };
        let user = self.user();
        self.sent.push((user.clone(), mark.clone()));
        if self.sent.len() > 64 {
            self.sent.remove(0);
        }
        (user, mark)
    }

    /// A delete, clear, switch or erase.
    pub(crate) fn change(&mut self, now: i64) -> Action {
        let rng = &mut self.rng;
        match rng.below(10) {
            0..4 => {
                let key = |rng: &mut Rng| -> Key {
                    ((*rng.pick(&KINDS)).to_owned(), (*rng.pick(&IDS)).to_owned())
                };
                Action::Delete((0..1 + rng.below(2)).map(|_| key(rng)).collect())
            }
            4..7 => {
                let kind = rng.maybe(2, &KINDS).map(str::to_owned);
                let id = if rng.once_in(6) { rng.maybe(9, &IDS).map(str::to_owned) } else { None };
                let after = rng.once_in(3).then(|| now - rng.below(DAY as u64) as i64);
                let before = rng.once_in(3).then(|| now - rng.below(60_000) as i64);
                let filter = ModelBlock { kind, id, after, before, until: now };
                Action::Clear(filter, rng.once_in(4))
            }
            7..9 => Action::Switch(!rng.once_in(3)),
            _ => Action::Erase,
        }
    }
}
