//! A plain model of one user's history: sorted maps and lists, one field per
//! fact, every rule written out as it is said. Shares no code with the rules,
//! and takes the time as an argument, as they do.
//!
//! Tests of history's core, of the faces and the simulator compare the product
//! with it. Times and lengths are in ms.

mod change;

pub use change::{ModelBlock, ModelDoc};

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A day.
pub const DAY: i64 = 86_400_000;

/// What holds for a kind.
#[derive(Clone, Debug)]
pub struct Config {
    /// Days; 0 = for ever.
    pub retention_days: i64,
    /// Rows; 0 = no cap.
    pub cap: usize,
    /// Rows of one event day; 0 = no cap.
    pub per_day: usize,
    /// Whether the first mark of a day is rewarded.
    pub daily_first: bool,
}

/// A mark that a row remembers, to know it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// The name that its sender gave it.
    pub event_id: String,
    /// The time it was sent with.
    pub sent: Option<i64>,
    /// The time it was taken at.
    pub at: i64,
    /// Whether the server made or moved its time.
    pub made: bool,
    /// When it was taken.
    pub taken: i64,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRow {
    /// The part.
    pub part: Option<String>,
    /// How far.
    pub position: Option<i64>,
    /// Of how much.
    pub duration: Option<i64>,
    /// When.
    pub event: i64,
    /// The device last named.
    pub device: Option<String>,
    /// The group last named.
    pub group: Option<String>,
    /// Whether it was ever finished.
    pub finished: bool,
    /// How often.
    pub plays: u32,
    /// Declared finished, and no position since.
    pub declared: bool,
    /// Seen in its first half since the last play, or never played.
    pub began: bool,
    /// The last change of part.
    pub part_since: i64,
    /// Marks to be known again, the newest last.
    pub remembered: Vec<Remembered>,
}

/// A mark as sent.
#[derive(Clone, Debug)]
pub struct ModelMark {
    /// The kind.
    pub kind: String,
    /// The id.
    pub id: String,
    /// The part.
    pub part: Option<String>,
    /// How far.
    pub position: Option<i64>,
    /// Of how much.
    pub duration: Option<i64>,
    /// The time it is sent with.
    pub sent: Option<i64>,
    /// By how much the device is wrong; added to `sent`.
    pub shift: i64,
    /// The device.
    pub device: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// Declared finished.
    pub finished: bool,
    /// The name that its sender gives it.
    pub event_id: Option<String>,
    /// By a path that is rewarded, and that a pause stops whatever the time.
    pub live: bool,
}

/// What becomes of a mark.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Taken.
    Accepted {
        /// The first of its kind on the server's day.
        first: bool,
    },
    /// Too late or too old.
    Stale,
    /// Recording is or was off.
    Paused,
    /// Known already.
    Duplicate,
    /// Over the cap of its day.
    OverCap,
    /// Its time is impossible.
    Rejected,
}

/// A kind and an id.
pub type Key = (String, String);

/// One user.
#[derive(Clone, Debug)]
pub struct Model {
    /// The kinds by name.
    pub kinds: BTreeMap<String, Config>,
    /// Where days begin.
    pub zone: TimeZone,
    /// The rows.
    pub rows: BTreeMap<Key, ModelRow>,
    /// Deletes and clears.
    pub blocks: Vec<ModelBlock>,
    /// When recording was off: from, and up to but not at.
    pub pauses: Vec<(i64, i64)>,
    /// Since when recording is off.
    pub off: Option<i64>,
    /// What is at or below it in its kind was pushed out by the cap.
    pub floors: BTreeMap<String, (i64, String)>,
    /// The last day of which a kind was rewarded.
    pub rewards: BTreeMap<String, i64>,
}

fn in_the_end(position: Option<i64>, duration: Option<i64>) -> bool {
    let (Some(position), Some(duration)) = (position, duration) else { return false };
    let left = (duration - position) as f64;
    let twentieth = duration as f64 * 0.05;
    left <= f64::max(twentieth, 1000.0).min(duration as f64 / 2.0)
}

impl Model {
    /// A user without history.
    pub fn new(kinds: BTreeMap<String, Config>, zone: TimeZone) -> Self {
        Self {
            kinds,
            zone,
            rows: BTreeMap::new(),
            blocks: Vec::new(),
            pauses: Vec::new(),
            off: None,
            floors: BTreeMap::new(),
            rewards: BTreeMap::new(),
        }
    }

    /// The day of `t` in the zone, counted from 1970.
    pub fn day(&self, t: i64) -> i64 {
        let local =
            self.zone.to_datetime(Timestamp::from_millisecond(t).expect("a time of this age"));
        let midnight = jiff::civil::date(1970, 1, 1);
        i64::from(local.date().since((jiff::Unit::Day, midnight)).expect("days fit").get_days())
    }

    fn too_old(&self, kind: &str, t: i64, now: i64) -> bool {
        let days = self.kinds[kind].retention_days;
        days > 0 && t < now - days * DAY
    }

    /// Every row that any read may show, newest first: within retention, and
    /// of each kind at most the cap.
    pub fn shown(&self, now: i64) -> Vec<(Key, ModelRow)> {
        let mut shown = Vec::new();
        for (kind, config) in &self.kinds {
            let mut of_kind: Vec<(Key, ModelRow)> = self
                .rows
                .iter()
                .filter(|((own, _), row)| own == kind && !self.too_old(kind, row.event, now))
                .map(|(key, row)| (key.clone(), row.clone()))
                .collect();
            of_kind.sort_by_key(|((_, id), row)| std::cmp::Reverse((row.event, id.clone())));
            if config.cap > 0 {
                of_kind.truncate(config.cap);
            }
            shown.extend(of_kind);
        }
        shown.sort_by_key(|((kind, id), row)| {
            std::cmp::Reverse((row.event, kind.clone(), id.clone()))
        });
        shown
    }

    fn shown_row(&self, key: &Key, now: i64) -> Option<ModelRow> {
        self.shown(now).into_iter().find(|(own, _)| own == key).map(|(_, row)| row)
    }

    /// A mark arrives at `now`.
    pub fn mark(&mut self, m: &ModelMark, now: i64) -> Said {
        let key = (m.kind.clone(), m.id.clone());
        let config = self.kinds[&m.kind].clone();
        // Rejected.
        let shifted = m.sent.map(|sent| sent + m.shift);
        if shifted.is_some_and(|t| t <= 0 || t > now + DAY) {
            return Said::Rejected;
        }
        // Duplicate.
        let old = self.shown_row(&key, now);
        if let (Some(old), Some(event_id)) = (&old, &m.event_id) {
            let same = |r: &&Remembered| {
                &r.event_id == event_id && r.sent == m.sent && r.taken > now - DAY
            };
            if old.remembered.iter().any(|r| same(&r)) {
                return Said::Duplicate;
            }
        }
        let t = match shifted {
            Some(t) => t.min(now),
            None => {
                let covering = |t: i64| {
                    let holds = |b: &&ModelBlock| b.matches(&m.kind, &m.id, t) && t <= b.until;
                    self.blocks.iter().filter(holds).map(|b| b.until).max()
                };
                let mut t = now;
                while let Some(until) = covering(t) {
                    t = until + 1;
                }
                t
            }
        };
        // Retention.
        if self.too_old(&m.kind, t, now) {
            return Said::Stale;
        }
        // Paused.
        if self.pauses.iter().any(|&(from, to)| from <= t && t < to) {
            return Said::Paused;
        }
        if let Some(off) = self.off
            && (m.live || t >= off)
        {
            return Said::Paused;
        }
        // Deletes.
        if self.blocks.iter().any(|b| t <= b.until && b.matches(&m.kind, &m.id, t)) {
            return Said::Stale;
        }
        // Cap floor.
        if self.floors.get(&m.kind).is_some_and(|floor| (t, m.id.clone()) <= *floor) {
            return Said::Stale;
        }
        let same_part = old.as_ref().is_some_and(|old| m.part.is_none() || m.part == old.part);
        // Older than the row.
        if let Some(old) = &old
            && t < old.event
        {
            let ends = m.finished || in_the_end(m.position, m.duration);
            if !(same_part && t >= old.part_since && !old.finished && ends) {
                return Said::Stale;
            }
            let row = self.rows.get_mut(&key).expect("it was shown");
            row.finished = true;
            row.plays = 1;
            row.began = false;
            return Said::Accepted { first: self.reward(m, now) };
        }
        let of_kind: Vec<(i64, String)> = self
            .shown(now)
            .into_iter()
            .filter(|((kind, _), _)| *kind == m.kind)
            .map(|((_, id), row)| (row.event, id))
            .collect();
        if old.is_none() {
            if config.cap > 0
                && of_kind.len() >= config.cap
                && (t, m.id.clone()) < *of_kind.last().expect("the cap is not 0")
            {
                return Said::Stale;
            }
            let that_day = of_kind.iter().filter(|(e, _)| self.day(*e) == self.day(t)).count();
            if config.per_day > 0 && that_day >= config.per_day {
                return Said::OverCap;
            }
        }
        // Accepted.
        let base = old.clone().filter(|_| same_part);
        let mut row = ModelRow {
            part: m.part.clone().or(base.as_ref().and_then(|b| b.part.clone())),
            position: m.position.or(base.as_ref().and_then(|b| b.position)),
            duration: m.duration.or(base.as_ref().and_then(|b| b.duration)),
            event: t,
            device: m.device.clone().or(old.as_ref().and_then(|o| o.device.clone())),
            group: m.group.clone().or(old.as_ref().and_then(|o| o.group.clone())),
            finished: base.as_ref().is_some_and(|b| b.finished),
            plays: base.as_ref().map_or(0, |b| b.plays),
            declared: base.as_ref().is_some_and(|b| b.declared),
            began: base.as_ref().is_none_or(|b| b.began),
            part_since: match (&old, &base) {
                (None, _) => 0,
                (Some(_), None) => t,
                (Some(_), Some(b)) => b.part_since,
            },
            remembered: Vec::new(),
        };
        let end = m.finished || in_the_end(m.position, row.duration);
        if m.position.is_some() {
            row.declared = false;
        }
        if m.finished {
            row.declared = true;
        }
        if !end && let (Some(p), Some(d)) = (m.position, row.duration) {
            row.began |= 2 * p < d;
        }
        if end {
            row.finished = true;
            if row.began {
                row.plays += 1;
                row.began = false;
            }
        }
        let mut remembered = old.map(|o| o.remembered).unwrap_or_default();
        if let Some(event_id) = &m.event_id {
            let made = m.sent != Some(t);
            let (event_id, sent) = (event_id.clone(), m.sent);
            remembered.push(Remembered { event_id, sent, at: t, made, taken: now });
        }
        remembered.retain(|r| r.made || r.at == t);
        let over = remembered.len().saturating_sub(8);
        row.remembered = remembered.split_off(over);
        self.rows.insert(key, row);
        if config.cap > 0 {
            let mut orders: Vec<(i64, String)> = self
                .rows
                .iter()
                .filter(|((kind, _), row)| *kind == m.kind && !self.too_old(kind, row.event, now))
                .map(|((_, id), row)| (row.event, id.clone()))
                .collect();
            orders.sort();
            orders.reverse();
            if let Some(highest) = orders.get(config.cap) {
                let floor = self.floors.entry(m.kind.clone()).or_default();
                *floor = highest.clone().max(floor.clone());
                for (_, id) in &orders[config.cap..] {
                    self.rows.remove(&(m.kind.clone(), id.clone()));
                }
            }
        }
        Said::Accepted { first: self.reward(m, now) }
    }

    fn reward(&mut self, m: &ModelMark, now: i64) -> bool {
        let today = self.day(now);
        let first = m.live
            && self.kinds[&m.kind].daily_first
            && self.rewards.get(&m.kind).is_none_or(|&day| day < today);
        if first {
            self.rewards.insert(m.kind.clone(), today);
        }
        first
    }
}

/// Whether it has a position that is not at the end, and is not declared
/// finished.
pub fn is_unfinished(row: &ModelRow) -> bool {
    row.position.is_some() && !in_the_end(row.position, row.duration) && !row.declared
}
