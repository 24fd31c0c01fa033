//! Reads of a timeline. What one read does not show, no other shows.

use std::cmp::Ordering;

use tideline_types::Millis;

use super::Timeline;
use super::store::Head;
use crate::id::{IdBuf, PackedId};
use crate::kinds::KindId;
use crate::query::{Filter, List, ListQuery, PageAt, Row, RowOrder};
use crate::row::RowRef;
use crate::rules::{Rules, at_end};

/// A place in the order of rows of one kind.
type Order = (Millis, IdBuf);

/// Which rows are shown at all: those within retention, and of a kind whose
/// cap was lowered only the newest.
struct Shown<'r> {
    rules: &'r Rules,
    now: Millis,
    /// Kinds that hold more than their cap: the highest row not shown.
    over: Vec<(KindId, Order)>,
}

impl<'r> Shown<'r> {
    fn new(user: &Timeline, rules: &'r Rules, now: Millis) -> Self {
        let over = rules
            .kinds
            .iter()
            .filter_map(|(kind, _)| Some((kind, user.highest_over_cap(kind, rules)?)));
        let smallest = rules.smallest_cap();
        let over = if user.len() > smallest { over.collect() } else { Vec::new() };
        Self { rules, now, over }
    }

    fn holds(&self, user: &Timeline, head: &Head) -> bool {
        !self.rules.is_expired(head.kind, head.event_ms, self.now)
            && self.over.iter().all(|(kind, (event_ms, id))| {
                *kind != head.kind
                    || user.cmp_order(head, *event_ms, id.borrow()) == Ordering::Greater
            })
    }
}

impl Timeline {
    /// Compares (`event_ms`, id), of rows of one kind.
    fn cmp_order(&self, head: &Head, event_ms: Millis, id: PackedId<'_>) -> Ordering {
        head.event_ms.cmp(&event_ms).then_with(|| self.store.get(head.place).id.cmp_text(id))
    }

    /// Compares (`event_ms`, kind, id).
    fn cmp_heads(&self, a: &Head, b: &Head) -> Ordering {
        (a.event_ms, a.kind)
            .cmp(&(b.event_ms, b.kind))
            .then_with(|| self.store.get(a.place).id.cmp_text(self.store.get(b.place).id))
    }

    /// Rows of a kind, kept, shown or not.
    pub(crate) fn count_kept(&self, kind: KindId) -> usize {
        self.store.count(kind)
    }

    /// The row that is kept, shown or not.
    pub(crate) fn kept(&self, kind: KindId, id: PackedId<'_>) -> Option<RowRef<'_>> {
        self.store.find(kind, id)
    }

    /// The row, if it is shown.
    pub(crate) fn shown(
        &self,
        kind: KindId,
        id: PackedId<'_>,
        rules: &Rules,
        now: Millis,
    ) -> Option<RowRef<'_>> {
        let row = self.store.find(kind, id)?;
        let over = self.highest_over_cap(kind, rules);
        let hidden = over.is_some_and(|(event_ms, last)| {
            row.event_ms < event_ms
                || (row.event_ms == event_ms && row.id.cmp_text(last.borrow()).is_le())
        });
        (!hidden && !rules.is_expired(kind, row.event_ms, now)).then_some(row)
    }

    /// Of a kind that holds more rows than its cap: the highest one over it.
    fn highest_over_cap(&self, kind: KindId, rules: &Rules) -> Option<Order> {
        let cap = rules.cap(kind)?;
        if self.len() <= cap {
            return None;
        }
        let over = self.count_kept(kind).checked_sub(cap).filter(|&over| over > 0)?;
        self.oldest(kind, over, None)
    }

    /// The `nth` oldest row of a kind, counted from 1, `except` left out.
    pub(crate) fn oldest(
        &self,
        kind: KindId,
        nth: usize,
        except: Option<PackedId<'_>>,
    ) -> Option<Order> {
        let mut heads: Vec<Head> = self
            .store
            .heads()
            .filter(|head| head.kind == kind)
            .filter(|head| except.is_none_or(|id| self.store.get(head.place).id != id))
            .collect();
        if nth == 0 || nth > heads.len() {
            return None;
        }
        let (_, head, _) = heads.select_nth_unstable_by(nth - 1, |a, b| self.cmp_heads(a, b));
        Some((head.event_ms, IdBuf::of(self.store.get(head.place).id)))
    }

    /// Heads of rows that are shown and that the filter lets through.
    fn matching<'a>(
        &'a self,
        filter: &'a Filter,
        rules: &'a Rules,
        now: Millis,
    ) -> impl Iterator<Item = Head> + 'a {
        let shown = Shown::new(self, rules, now);
        self.store.heads().filter(move |head| {
            (filter.kinds.is_empty() || filter.kinds.contains(&head.kind))
                && filter.after_ms.is_none_or(|after| after <= head.event_ms)
                && filter.before_ms.is_none_or(|before| head.event_ms < before)
                && shown.holds(self, head)
                && (!filter.unfinished || is_unfinished(&self.store.get(head.place)))
        })
    }

    /// A row by its key, if it is shown.
    pub fn row(&self, kind: KindId, id: &str, rules: &Rules, now: Millis) -> Option<Row> {
        let id = IdBuf::pack(id);
        self.shown(kind, id.borrow(), rules, now).map(|row| row.to_row(kind))
    }

    /// A page of a list, newest first.
    pub fn list(&self, query: &ListQuery, rules: &Rules, now: Millis) -> List {
        let mut heads: Vec<Head> = Vec::new();
        let (skip, total) = match &query.page {
            PageAt::Below(None) => {
                heads.extend(self.matching(&query.filter, rules, now));
                (0, None)
            }
            PageAt::Below(Some(below)) => {
                let id = IdBuf::pack(&below.id);
                heads.extend(
                    self.matching(&query.filter, rules, now)
                        .filter(|head| self.is_below(head, below, id.borrow())),
                );
                (0, None)
            }
            PageAt::Skip(skip) => {
                heads.extend(self.matching(&query.filter, rules, now));
                (*skip, Some(heads.len()))
            }
        };
        let end = skip.saturating_add(query.limit);
        let more = heads.len() > end;
        self.newest_first(&mut heads, end);
        let rows = heads.iter().skip(skip).map(|head| self.owned(head)).collect();
        List { rows, more, total }
    }

    fn is_below(&self, head: &Head, below: &RowOrder, id: PackedId<'_>) -> bool {
        (head.event_ms, head.kind)
            .cmp(&(below.event_ms, below.kind))
            .then_with(|| self.store.get(head.place).id.cmp_text(id))
            .is_lt()
    }

    /// Cuts `heads` to the newest `count`, in order.
    fn newest_first(&self, heads: &mut Vec<Head>, count: usize) {
        if count == 0 {
            heads.clear();
        }
        if heads.len() > count {
            heads.select_nth_unstable_by(count - 1, |a, b| self.cmp_heads(b, a));
            heads.truncate(count);
        }
        heads.sort_unstable_by(|a, b| self.cmp_heads(b, a));
    }

    fn owned(&self, head: &Head) -> Row {
        self.store.get(head.place).to_row(head.kind)
    }

    /// All rows that the filter lets through, newest first.
    pub fn rows(&self, filter: &Filter, rules: &Rules, now: Millis) -> Vec<Row> {
        let mut heads: Vec<Head> = self.matching(filter, rules, now).collect();
        self.newest_first(&mut heads, usize::MAX);
        heads.iter().map(|head| self.owned(head)).collect()
    }

    /// Rows that are shown and that the filter lets through, in no order.
    pub(crate) fn shown_rows<'a>(
        &'a self,
        filter: &'a Filter,
        rules: &'a Rules,
        now: Millis,
    ) -> impl Iterator<Item = (KindId, RowRef<'a>)> + 'a {
        self.matching(filter, rules, now).map(|head| (head.kind, self.store.get(head.place)))
    }

    /// How many rows the filter lets through.
    pub fn count(&self, filter: &Filter, rules: &Rules, now: Millis) -> usize {
        self.matching(filter, rules, now).count()
    }

    /// (Local day, rows of that day), newest first.
    pub fn days(&self, filter: &Filter, rules: &Rules, now: Millis) -> Vec<(i32, u32)> {
        let matching = self.matching(filter, rules, now);
        let mut days: Vec<i32> = matching.map(|head| rules.day_of(head.event_ms)).collect();
        days.sort_unstable_by(|a, b| b.cmp(a));
        let runs = days.chunk_by(|a, b| a == b);
        runs.map(|run| (run[0], run.len() as u32)).collect()
    }

    /// Rows shown of `kind` whose time lies on the local day of `at`.
    pub(crate) fn count_on_day(
        &self,
        kind: KindId,
        at: Millis,
        rules: &Rules,
        now: Millis,
    ) -> usize {
        let day = rules.day_of(at);
        let near = 2 * tideline_types::DAY_MS;
        let filter = Filter {
            kinds: vec![kind],
            after_ms: Some(at.plus(-near)),
            before_ms: Some(at.plus(near)),
            unfinished: false,
        };
        self.matching(&filter, rules, now).filter(|head| rules.day_of(head.event_ms) == day).count()
    }

    /// All rows kept of (kind, day of UTC), oldest first.
    pub(crate) fn day_rows(&self, kind: KindId, day: i32) -> Vec<RowRef<'_>> {
        let mut heads: Vec<Head> = self
            .store
            .heads()
            .filter(|head| head.kind == kind && head.event_ms.utc_day() == day)
            .collect();
        heads.sort_unstable_by(|a, b| self.cmp_heads(a, b));
        heads.iter().map(|head| self.store.get(head.place)).collect()
    }

    /// All rows kept, in no order.
    pub(crate) fn all_kept(&self) -> impl Iterator<Item = (KindId, RowRef<'_>)> {
        self.store.heads().map(|head| (head.kind, self.store.get(head.place)))
    }
}

/// Whether a row has a position that is not at the end and is not declared
/// finished.
fn is_unfinished(row: &RowRef<'_>) -> bool {
    let at_the_end = at_end(row.position_ms, row.duration_ms);
    row.position_ms.is_some() && !at_the_end && !row.declared
}
