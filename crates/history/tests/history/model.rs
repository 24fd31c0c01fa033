//! A plain model of one user's history: sorted maps and lists, one field per
//! fact, every rule written out as it is said. Shares no code with the rules.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) const DAY: i64 = 86_400_000;

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) retention_days: i64,
    pub(crate) cap: usize,
    pub(crate) per_day: usize,
    pub(crate) daily_first: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remembered {
    pub(crate) event_id: String,
    pub(crate) sent: Option<i64>,
    pub(crate) at: i64,
    pub(crate) made: bool,
    pub(crate) taken: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelRow {
    pub(crate) part: Option<String>,
    pub(crate) position: Option<i64>,
    pub(crate) duration: Option<i64>,
    pub(crate) event: i64,
    pub(crate) device: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) finished: bool,
    pub(crate) plays: u32,
    pub(crate) declared: bool,
    pub(crate) began: bool,
    pub(crate) part_since: i64,
    pub(crate) remembered: Vec<Remembered>,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelMark {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) part: Option<String>,
    pub(crate) position: Option<i64>,
    pub(crate) duration: Option<i64>,
    pub(crate) sent: Option<i64>,
    pub(crate) shift: i64,
    pub(crate) device: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) finished: bool,
    pub(crate) event_id: Option<String>,
    pub(crate) live: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelBlock {
    pub(crate) kind: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) after: Option<i64>,
    pub(crate) before: Option<i64>,
    pub(crate) until: i64,
}

impl ModelBlock {
    pub(crate) fn matches(&self, kind: &str, id: &str, t: i64) -> bool {
        self.kind.as_deref().unwrap_or(kind) == kind
            && self.id.as_deref().unwrap_or(id) == id
            && self.after.unwrap_or(i64::MIN) <= t
            && t < self.before.unwrap_or(i64::MAX)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Accepted { first: bool },
    Stale,
    Paused,
    Duplicate,
    OverCap,
    Rejected,
}

pub(crate) type Key = (String, String);

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) kinds: BTreeMap<String, Config>,
    pub(crate) zone: TimeZone,
    pub(crate) rows: BTreeMap<Key, ModelRow>,
    pub(crate) blocks: Vec<ModelBlock>,
    pub(crate) pauses: Vec<(i64, i64)>,
    pub(crate) off: Option<i64>,
    pub(crate) floors: BTreeMap<String, (i64, String)>,
    pub(crate) rewards: BTreeMap<String, i64>,
}

/// What an export holds, in the model's terms.
#[derive(Clone, Debug)]
pub(crate) struct ModelDoc {
    rows: Vec<(Key, ModelRow)>,
    blocks: Vec<ModelBlock>,
    pauses: Vec<(i64, i64)>,
    off: Option<i64>,
    floors: BTreeMap<String, (i64, String)>,
    rewards: BTreeMap<String, i64>,
}

fn in_the_end(position: Option<i64>, duration: Option<i64>) -> bool {
    let (Some(position), Some(duration)) = (position, duration) else { return false };
    let left = (duration - position) as f64;
    let twentieth = duration as f64 * 0.05;
    left <= f64::max(twentieth, 1000.0).min(duration as f64 / 2.0)
}

impl Model {
    pub(crate) fn new(kinds: BTreeMap<String, Config>, zone: TimeZone) -> Self {
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

    pub(crate) fn day(&self, t: i64) -> i64 {
        let local = self.zone.to_datetime(Timestamp::from_millisecond(t).unwrap());
        let midnight = jiff::civil::date(1970, 1, 1);
        i64::from(local.date().since((jiff::Unit::Day, midnight)).unwrap().get_days())
    }

    fn too_old(&self, kind: &str, t: i64, now: i64) -> bool {
        let days = self.kinds[kind].retention_days;
        days > 0 && t < now - days * DAY
    }

    /// Every row that any read may show, newest first: within retention, and
    /// of each kind at most the cap.
    pub(crate) fn shown(&self, now: i64) -> Vec<(Key, ModelRow)> {
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

    pub(crate) fn mark(&mut self, m: &ModelMark, now: i64) -> Said {
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
            let row = self.rows.get_mut(&key).unwrap();
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
                && (t, m.id.clone()) < *of_kind.last().unwrap()
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

    pub(crate) fn delete(&mut self, keys: &[Key], now: i64) -> u64 {
        let shown = self.shown(now);
        let mut deleted = 0;
        for key in keys {
            let gone = self.rows.remove(key).is_some();
            deleted += u64::from(gone && shown.iter().any(|(own, _)| own == key));
            let (kind, id) = (Some(key.0.clone()), Some(key.1.clone()));
            self.blocks.push(ModelBlock { kind, id, after: None, before: None, until: now });
        }
        deleted
    }

    pub(crate) fn clear(&mut self, filter: &ModelBlock, finished: bool, now: i64) -> u64 {
        let matched: Vec<Key> = self
            .shown(now)
            .into_iter()
            .filter(|((kind, id), row)| filter.matches(kind, id, row.event))
            .filter(|(_, row)| !finished || row.finished)
            .map(|(key, _)| key)
            .collect();
        if finished {
            return self.delete(&matched, now);
        }
        self.rows.retain(|(kind, id), row| !filter.matches(kind, id, row.event));
        self.blocks.push(ModelBlock { until: now, ..filter.clone() });
        matched.len() as u64
    }

    pub(crate) fn switch(&mut self, on: bool, now: i64) {
        match (self.off, on) {
            (Some(off), true) => {
                self.pauses.push((off, now));
                self.off = None;
            }
            (None, false) => self.off = Some(now),
            _ => {}
        }
    }

    pub(crate) fn erase(&mut self, now: i64) {
        let today = self.day(now);
        self.rows.clear();
        self.pauses.clear();
        self.floors.clear();
        self.off = None;
        self.rewards.retain(|_, day| *day >= today);
        self.blocks =
            vec![ModelBlock { kind: None, id: None, after: None, before: None, until: now }];
    }

    pub(crate) fn export(&self, now: i64) -> ModelDoc {
        ModelDoc {
            rows: self.shown(now),
            blocks: self.blocks.clone(),
            pauses: self.pauses.clone(),
            off: self.off,
            floors: self.floors.clone(),
            rewards: self.rewards.clone(),
        }
    }

    pub(crate) fn restore(&mut self, doc: &ModelDoc) {
        for (key, row) in &doc.rows {
            if self.rows.get(key).is_none_or(|old| old.event <= row.event) {
                self.rows.insert(key.clone(), row.clone());
            }
        }
        self.blocks.extend(doc.blocks.iter().cloned());
        self.pauses.extend(doc.pauses.iter().copied());
        self.off = match (self.off, doc.off) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (kind, floor) in &doc.floors {
            let own = self.floors.entry(kind.clone()).or_default();
            *own = floor.clone().max(own.clone());
        }
        for (kind, day) in &doc.rewards {
            let own = self.rewards.entry(kind.clone()).or_insert(i64::MIN);
            *own = (*day).max(*own);
        }
    }
}

pub(crate) fn is_unfinished(row: &ModelRow) -> bool {
    row.position.is_some() && !in_the_end(row.position, row.duration) && !row.declared
}
