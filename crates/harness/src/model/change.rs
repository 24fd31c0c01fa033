//! What else changes a user: deletes, clears, switches, erases, restores.

use std::collections::BTreeMap;

use super::{Key, Model, ModelRow};

/// A delete or a clear.
#[derive(Clone, Debug)]
pub struct ModelBlock {
    /// Of this kind alone.
    pub kind: Option<String>,
    /// Of this id alone.
    pub id: Option<String>,
    /// From here on.
    pub after: Option<i64>,
    /// Up to, and not at, this.
    pub before: Option<i64>,
    /// Its server time: it holds against every event up to here.
    pub until: i64,
}

impl ModelBlock {
    /// Whether it is about a row at `t`.
    pub fn matches(&self, kind: &str, id: &str, t: i64) -> bool {
        self.kind.as_deref().unwrap_or(kind) == kind
            && self.id.as_deref().unwrap_or(id) == id
            && self.after.unwrap_or(i64::MIN) <= t
            && t < self.before.unwrap_or(i64::MAX)
    }
}

/// What an export holds, in the model's terms.
#[derive(Clone, Debug)]
pub struct ModelDoc {
    rows: Vec<(Key, ModelRow)>,
    blocks: Vec<ModelBlock>,
    pauses: Vec<(i64, i64)>,
    off: Option<i64>,
    floors: BTreeMap<String, (i64, String)>,
    rewards: BTreeMap<String, i64>,
}

impl Model {
    /// Deletes `keys`; says how many were shown.
    pub fn delete(&mut self, keys: &[Key], now: i64) -> u64 {
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

    /// Deletes what `filter` matches, or of that only what is finished; says how
    /// many rows were shown.
    pub fn clear(&mut self, filter: &ModelBlock, finished: bool, now: i64) -> u64 {
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

    /// Turns recording on or off.
    pub fn switch(&mut self, on: bool, now: i64) {
        match (self.off, on) {
            (Some(off), true) => {
                self.pauses.push((off, now));
                self.off = None;
            }
            (None, false) => self.off = Some(now),
            _ => {}
        }
    }

    /// Forgets everything.
    pub fn erase(&mut self, now: i64) {
        let today = self.day(now);
        self.rows.clear();
        self.pauses.clear();
        self.floors.clear();
        self.off = None;
        self.rewards.retain(|_, day| *day >= today);
        self.blocks =
            vec![ModelBlock { kind: None, id: None, after: None, before: None, until: now }];
    }

    /// What an export made at `now` holds.
    pub fn export(&self, now: i64) -> ModelDoc {
        ModelDoc {
            rows: self.shown(now),
            blocks: self.blocks.clone(),
            pauses: self.pauses.clone(),
            off: self.off,
            floors: self.floors.clone(),
            rewards: self.rewards.clone(),
        }
    }

    /// Puts an export back; says how many of its rows were taken, and how many
    /// were older than the row there was.
    pub fn restore(&mut self, doc: &ModelDoc) -> (u64, u64) {
        let (mut taken, mut older) = (0, 0);
        for (key, row) in &doc.rows {
            if self.rows.get(key).is_none_or(|old| old.event <= row.event) {
                self.rows.insert(key.clone(), row.clone());
                taken += 1;
            } else {
                older += 1;
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
        (taken, older)
    }
}
