//! A mixed load, the same for the same seed but for its times.
//!
//! Each connection asks for users of its own, so the order of what happens to
//! a user is known. Marks are live (now), late (an earlier moment, or days
//! ago), or sent a second time; they repeat objects, tie, change parts, reach
//! ends. Between them come deletes, clears, switches and erases.

use std::collections::BTreeMap;

use super::op::{Clear, Mark, Op, Way};
use super::person::Caps;
use crate::rng::Rng;

const KINDS: [&str; 3] = ["video", "article", "product"];
const IDS: [&str; 7] = ["1", "112489730346240", "007", "7", "s-1", "b4a7c9", "98"];
/// The kind with a cap, and its cap: fewer than there are ids.
const CAPPED: (&str, usize) = ("article", 5);

/// The caps that the server must be configured with.
pub fn caps() -> Caps {
    Caps::from([(CAPPED.0.to_owned(), CAPPED.1)])
}

/// Every object that the load can name.
pub fn objects() -> Vec<(String, String)> {
    let of = |kind: &&str| IDS.map(|id| ((*kind).to_owned(), id.to_owned()));
    KINDS.iter().flat_map(of).collect()
}

/// The load of one connection.
#[derive(Clone, Debug)]
pub struct Load {
    rng: Rng,
    users: Vec<String>,
    /// Times of earlier marks of each user: late marks and ranges use them.
    past: BTreeMap<String, Vec<i64>>,
    sent: BTreeMap<String, Vec<Mark>>,
    recording: BTreeMap<String, bool>,
    serial: u64,
}

impl Load {
    /// The load of connection number `connection` for `users` users.
    pub fn new(seed: u64, connection: u64, users: usize) -> Self {
        let users = (0..users).map(|user| format!("c{connection}-u{user}")).collect();
        Self {
            rng: Rng::new(seed).fork(connection + 1),
            users,
            past: BTreeMap::new(),
            sent: BTreeMap::new(),
            recording: BTreeMap::new(),
            serial: 0,
        }
    }

    /// The users of this connection.
    pub fn users(&self) -> &[String] {
        &self.users
    }

    /// The next request. `now_ms` is later than every answer so far, and than
    /// every `now_ms` before.
    pub fn next(&mut self, now_ms: i64) -> Op {
        let user = self.rng.pick(&self.users).clone();
        match self.rng.below(100) {
            0..30 => self.write(user, now_ms, Way::One),
            30..52 => self.write(user, now_ms, Way::Array),
            52..74 => self.write(user, now_ms, Way::Batch),
            74..78 => self.write(user, now_ms, Way::Merge),
            78..87 => self.delete(user, now_ms),
            87..93 => self.clear(user, now_ms),
            93..98 => {
                let was = self.recording.entry(user.clone()).or_insert(true);
                *was = !*was;
                Op::Switch { user, on: *was, at_ms: now_ms }
            }
            _ => {
                self.recording.insert(user.clone(), true);
                Op::Erase { user, at_ms: now_ms }
            }
        }
    }

    fn write(&mut self, user: String, now_ms: i64, way: Way) -> Op {
        let count = match way {
            Way::One => 1,
            Way::Array | Way::Merge => 1 + self.rng.below(6),
            Way::Batch => 2 + self.rng.below(20),
        };
        let named = self.rng.chance(600);
        let mut user = user;
        let mut marks = Vec::new();
        for _ in 0..count {
            if way == Way::Batch && self.rng.chance(400) {
                user = self.rng.pick(&self.users).clone();
            }
            marks.push(self.mark(&user, now_ms, named));
        }
        for mark in &marks {
            let past = self.past.entry(mark.user.clone()).or_default();
            past.push(mark.event_ms);
            let sent = self.sent.entry(mark.user.clone()).or_default();
            sent.push(mark.clone());
            // Enough to be late and to repeat, and bounded.
            past.drain(..past.len().saturating_sub(40));
            sent.drain(..sent.len().saturating_sub(10));
        }
        let fast = way != Way::Merge && self.rng.chance(120);
        Op::Write { marks, way, fast }
    }

    fn mark(&mut self, user: &str, now_ms: i64, named: bool) -> Mark {
        let rng = &mut self.rng;
        if let Some(sent) = self.sent.get(user)
            && rng.chance(80)
            && let Some(again) = Some(rng.pick(sent)).filter(|m| m.event_id.is_some() == named)
        {
            return again.clone();
        }
        let event_ms = match (rng.below(10), self.past.get(user)) {
            (0, Some(past)) => *rng.pick(past),
            (1, _) => now_ms - 1_000 - rng.below(20 * 86_400_000) as i64,
            _ => now_ms,
        };
        let duration = *rng.pick(&[20_000, 1_440_000, 3]);
        let at = [0, duration / 3, duration * 3 / 4, duration];
        self.serial += 1;
        let serial = self.serial;
        Mark {
            user: user.to_owned(),
            kind: (*rng.pick(&KINDS)).to_owned(),
            id: (*rng.pick(&IDS)).to_owned(),
            part: rng.chance(200).then(|| format!("ep{}", rng.below(2))),
            position_ms: rng.chance(800).then(|| *rng.pick(&at)),
            duration_ms: rng.chance(700).then_some(duration),
            event_ms,
            device: rng.chance(300).then(|| format!("tv-{}", rng.below(3))),
            finished: rng.chance(80),
            event_id: named.then(|| format!("{user}-{serial}")),
        }
    }

    fn delete(&mut self, user: String, at_ms: i64) -> Op {
        let objects = objects();
        let count = if self.rng.chance(700) { 1 } else { 2 + self.rng.below(4) };
        let mut keys: Vec<_> = (0..count).map(|_| self.rng.pick(&objects).clone()).collect();
        keys.sort();
        keys.dedup();
        Op::Delete { user, keys, at_ms }
    }

    fn clear(&mut self, user: String, at_ms: i64) -> Op {
        let rng = &mut self.rng;
        let kind = rng.chance(600).then(|| (*rng.pick(&KINDS)).to_owned());
        let past = self.past.get(&user).map_or(&[][..], |past| past);
        let mut filter = Clear { kind, ..Clear::default() };
        match rng.below(4) {
            0 if !past.is_empty() => {
                let (a, b) = (*rng.pick(past), *rng.pick(past));
                (filter.after_ms, filter.before_ms) = (Some(a.min(b)), Some(a.max(b) + 1));
            }
            1 if !past.is_empty() => filter.before_ms = Some(*rng.pick(past)),
            2 => filter.finished = true,
            3 => filter.id = Some((*rng.pick(&IDS)).to_owned()),
            _ => (),
        }
        Op::Clear { user, filter, at_ms }
    }
}
