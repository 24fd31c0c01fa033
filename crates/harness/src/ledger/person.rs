//! One user by the rules, in plain words and without any speed.
//!
//! The rules of history as far as the load uses them: newest wins, retries,
//! late marks, positions and parts, the end and plays, deletes and clears,
//! pauses, caps, the first of the day, erase. Times of deletes and switches
//! are the client's: the load never sends a mark whose time lies between a
//! request and its answer, so the server's own time decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::op::{Clear, Mark, Step};

/// Rows kept of a kind, by name; other kinds have no cap here.
pub type Caps = BTreeMap<String, usize>;

/// Order of rows within a kind: time, then id.
type Order = (i64, String);

/// A row with what the rules need next time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    event_ms: i64,
    part: Option<String>,
    part_since: i64,
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    device: Option<String>,
    finished: bool,
    plays: u32,
    began: bool,
    declared: bool,
    retries: Vec<(String, i64)>,
}

/// A row as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// When: first, so that rows order as lists do.
    pub event_ms: i64,
    /// Of which kind.
    pub kind: String,
    /// Which object.
    pub id: String,
    /// Which part.
    pub part: Option<String>,
    /// How far.
    pub position_ms: Option<u64>,
    /// Of how much.
    pub duration_ms: Option<u64>,
    /// Where.
    pub device: Option<String>,
    /// Ever finished.
    pub finished: bool,
    /// How often.
    pub plays: u32,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It changed its row; was it the first of its kind today?
    Accepted(bool),
    /// Something newer stands.
    Stale,
    /// Recording was off.
    Paused,
    /// It was taken before.
    Duplicate,
    /// So many rows went.
    Deleted(u64),
    /// It happened.
    Done,
}

/// A user's whole state.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Person {
    rows: BTreeMap<(String, String), Row>,
    /// Clears (a delete is one of a kind and an id) and up to when they hold.
    blocks: BTreeSet<(Clear, i64)>,
    pauses: BTreeSet<(i64, i64)>,
    off_since: Option<i64>,
    floors: BTreeMap<String, Order>,
    firsts: BTreeMap<String, String>,
    erased: bool,
}

impl Person {
    /// The rows as a list shows them, newest first.
    pub fn list(&self) -> Vec<Seen> {
        self.rows_where(|_| true)
    }

    /// The rows of `unfinished=true`.
    pub fn unfinished(&self) -> Vec<Seen> {
        self.rows_where(|row| {
            row.position_ms.is_some() && !at_end(row.position_ms, row.duration_ms) && !row.declared
        })
    }

    fn rows_where(&self, keep: impl Fn(&Row) -> bool) -> Vec<Seen> {
        let kept = self.rows.iter().filter(|(_, row)| keep(row));
        let mut rows: Vec<Seen> = kept.map(|(key, row)| row.seen(key)).collect();
        rows.sort_by(|a, b| b.cmp(a));
        rows
    }

    /// Whether marks are recorded.
    pub fn recording(&self) -> bool {
        self.off_since.is_none()
    }

    /// Kinds that were rewarded today, and by which id.
    pub fn firsts(&self) -> &BTreeMap<String, String> {
        &self.firsts
    }

    /// Whether the user was ever erased: then what was said before is gone.
    pub fn erased(&self) -> bool {
        self.erased
    }

    /// Lets one thing happen.
    pub fn apply(&mut self, step: &Step, caps: &Caps) -> Became {
        match step {
            Step::Mark(mark, rewarded) => self.mark(mark, *rewarded, caps),
            Step::Delete(kind, id, at_ms) => {
                let gone = self.rows.remove(&(kind.clone(), id.clone())).is_some();
                self.block_row(kind, id, *at_ms);
                Became::Deleted(u64::from(gone))
            }
            Step::Clear(filter, at_ms) => Became::Deleted(self.clear(filter, *at_ms)),
            Step::Switch(on, at_ms) => {
                match (on, self.off_since) {
                    (true, Some(since)) => {
                        self.pauses.insert((since, *at_ms));
                        self.off_since = None;
                    }
                    (false, None) => self.off_since = Some(*at_ms),
                    _ => (),
                }
                Became::Done
            }
            Step::Erase(at_ms) => {
                *self = Self { firsts: std::mem::take(&mut self.firsts), ..Self::default() };
                self.blocks.insert((Clear::default(), *at_ms));
                self.erased = true;
                Became::Done
            }
        }
    }

    fn block_row(&mut self, kind: &str, id: &str, at_ms: i64) {
        let row = Clear { kind: Some(kind.into()), id: Some(id.into()), ..Clear::default() };
        self.blocks.insert((row, at_ms));
    }

    fn clear(&mut self, filter: &Clear, at_ms: i64) -> u64 {
        let hit = |(key, row): (&(String, String), &Row)| {
            let covered = filter.covers(&key.0, &key.1, row.event_ms);
            (covered && (!filter.finished || row.finished)).then(|| key.clone())
        };
        let gone: Vec<_> = self.rows.iter().filter_map(hit).collect();
        for key in &gone {
            self.rows.remove(key);
            if filter.finished {
                self.block_row(&key.0, &key.1, at_ms);
            }
        }
        if !filter.finished {
            self.blocks.insert((filter.clone(), at_ms));
        }
        gone.len() as u64
    }

    fn mark(&mut self, mark: &Mark, rewarded: bool, caps: &Caps) -> Became {
        let key = (mark.kind.clone(), mark.id.clone());
        let time = mark.event_ms;
        let old = self.rows.get(&key).cloned();
        let name = mark.event_id.as_ref().map(|id| (id.clone(), time));
        if let (Some(old), Some(name)) = (&old, &name)
            && old.retries.contains(name)
        {
            return Became::Duplicate;
        }
        let live = rewarded;
        if self.pauses.iter().any(|&(from, to)| from <= time && time < to)
            || self.off_since.is_some_and(|since| live || time >= since)
        {
            return Became::Paused;
        }
        let blocked = |(clear, until): &(Clear, i64)| {
            time <= *until && clear.covers(&mark.kind, &mark.id, time)
        };
        let order = (time, mark.id.clone());
        if self.blocks.iter().any(blocked)
            || self.floors.get(&mark.kind).is_some_and(|floor| order <= *floor)
        {
            return Became::Stale;
        }
        let same_part =
            old.as_ref().is_some_and(|old| mark.part.is_none() || mark.part == old.part);
        if let Some(old) = &old
            && time < old.event_ms
        {
            let ends = mark.finished || at_end(mark.position_ms, mark.duration_ms);
            if !(same_part && time >= old.part_since && !old.finished && ends) {
                return Became::Stale;
            }
            let row = self.rows.get_mut(&key).expect("it was just there");
            (row.finished, row.plays, row.began) = (true, 1, false);
            return Became::Accepted(self.first(mark, rewarded));
        }
        if old.is_none() && self.is_full_and_older(mark, &order, caps) {
            return Became::Stale;
        }
        self.rows.insert(key, next_row(old.as_ref(), mark, same_part, name));
        self.cut_to_cap(&mark.kind, caps);
        Became::Accepted(self.first(mark, rewarded))
    }

    fn first(&mut self, mark: &Mark, rewarded: bool) -> bool {
        let first = rewarded && !self.firsts.contains_key(&mark.kind);
        if first {
            self.firsts.insert(mark.kind.clone(), mark.id.clone());
        }
        first
    }

    fn orders(&self, kind: &str) -> BTreeSet<Order> {
        let rows = self.rows.iter().filter(|((of, _), _)| of == kind);
        rows.map(|((_, id), row)| (row.event_ms, id.clone())).collect()
    }

    fn is_full_and_older(&self, mark: &Mark, order: &Order, caps: &Caps) -> bool {
        let Some(&cap) = caps.get(&mark.kind) else { return false };
        let orders = self.orders(&mark.kind);
        orders.len() >= cap && orders.first().is_some_and(|oldest| order < oldest)
    }

    fn cut_to_cap(&mut self, kind: &str, caps: &Caps) {
        let Some(&cap) = caps.get(kind) else { return };
        let orders = self.orders(kind);
        for order in orders.iter().take(orders.len().saturating_sub(cap)) {
            self.rows.remove(&(kind.to_owned(), order.1.clone()));
            let floor = self.floors.entry(kind.to_owned()).or_default();
            *floor = order.clone().max(floor.clone());
        }
    }
}

impl Row {
    fn seen(&self, key: &(String, String)) -> Seen {
        Seen {
            event_ms: self.event_ms,
            kind: key.0.clone(),
            id: key.1.clone(),
            part: self.part.clone(),
            position_ms: self.position_ms,
            duration_ms: self.duration_ms,
            device: self.device.clone(),
            finished: self.finished,
            plays: self.plays,
        }
    }
}

/// The row as it becomes.
fn next_row(old: Option<&Row>, mark: &Mark, same_part: bool, name: Option<(String, i64)>) -> Row {
    let fresh = Row { began: true, ..Row::default() };
    let base = old.filter(|_| same_part).unwrap_or(&fresh);
    let mut row = Row {
        event_ms: mark.event_ms,
        part: mark.part.clone().or_else(|| base.part.clone()),
        part_since: match old {
            Some(old) if same_part => old.part_since,
            Some(_) => mark.event_ms,
            None => 0,
        },
        position_ms: mark.position_ms.or(base.position_ms),
        duration_ms: mark.duration_ms.or(base.duration_ms),
        device: mark.device.clone().or_else(|| old.and_then(|old| old.device.clone())),
        finished: base.finished,
        plays: base.plays,
        began: base.began,
        declared: mark.finished || (base.declared && mark.position_ms.is_none()),
        retries: old.map(|old| old.retries.clone()).unwrap_or_default(),
    };
    let ends = mark.finished || at_end(mark.position_ms, row.duration_ms);
    if let (Some(position), Some(duration)) = (mark.position_ms, row.duration_ms)
        && position * 2 < duration
        && !ends
    {
        row.began = true;
    }
    if ends {
        row.finished = true;
        if row.began {
            row.plays += 1;
            row.began = false;
        }
    }
    row.retries.extend(name);
    row.retries.retain(|(_, time)| *time == mark.event_ms);
    let over = row.retries.len().saturating_sub(8);
    row.retries.drain(..over);
    row
}

/// The last 5% and at least a second, but at most half.
fn at_end(position: Option<u64>, duration: Option<u64>) -> bool {
    let (Some(position), Some(duration)) = (position, duration) else { return false };
    let end = (duration * 5 / 100).max(1_000).min(duration / 2);
    duration > 0 && position.saturating_add(end) >= duration
}
