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

/// A filter made ready: which rows it lets through, of those that are shown.
struct Lets<'r> {
    shown: Shown<'r>,
    kinds: [u64; 4],
    from: Millis,
    to: Millis,
    unfinished: bool,
}

impl<'r> Lets<'r> {
    fn new(user: &Timeline, filter: &Filter, rules: &'r Rules, now: Millis) -> Self {
        let mut kinds = if filter.kinds.is_empty() { [u64::MAX; 4] } else { [0; 4] };
        for kind in &filter.kinds {
            kinds[usize::from(kind.0 >> 6)] |= 1 << (kind.0 & 63);
        }
        Self {
            shown: Shown::new(user, rules, now),
            kinds,
            from: filter.after_ms.unwrap_or(Millis(i64::MIN)),
            to: filter.before_ms.unwrap_or(Millis(i64::MAX)),
            unfinished: filter.unfinished,
        }
    }

    fn through(&self, user: &Timeline, head: &Head) -> bool {
        self.kinds[usize::from(head.kind.0 >> 6)] >> (head.kind.0 & 63) & 1 == 1
            && self.from <= head.event_ms
            && head.event_ms < self.to
            && self.shown.holds(user, head)
            && (!self.unfinished || is_unfinished(&user.store.get(head.place)))
    }
}

impl Timeline {
    /// Compares (`event_ms`, id), of rows of one kind.
    fn cmp_order(&self, head: &Head, event_ms: Millis, id: PackedId<'_>) -> Ordering {
        head.event_ms.cmp(&event_ms).then_with(|| self.store.id(head.place).cmp_text(id))
    }

    /// Compares (`event_ms`, kind, id).
    fn cmp_heads(&self, a: &Head, b: &Head) -> Ordering {
        (a.event_ms, a.kind)
            .cmp(&(b.event_ms, b.kind))
            .then_with(|| self.store.id(a.place).cmp_text(self.store.id(b.place)))
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
        let matches = |head: &Head| {
            head.kind == kind && except.is_none_or(|id| self.store.id(head.place) != id)
        };
        let nth = nth.checked_sub(1)?;
        let head = if nth == 0 {
            let mut oldest: Option<Head> = None;
            self.store.oldest(|head| {
                let older = oldest.is_none_or(|own| self.cmp_heads(&head, &own).is_lt());
                if older && matches(&head) {
                    oldest = Some(head);
                }
                oldest.map_or(Millis(i64::MAX), |head| head.event_ms)
            });
            oldest?
        } else {
            let mut heads: Vec<Head> = self.store.heads().filter(matches).collect();
            if nth >= heads.len() {
                return None;
            }
            *heads.select_nth_unstable_by(nth, |a, b| self.cmp_heads(a, b)).1
        };
        Some((head.event_ms, IdBuf::of(self.store.id(head.place))))
    }

    /// Heads of rows that are shown and that the filter lets through.
    fn matching<'a>(
        &'a self,
        filter: &'a Filter,
        rules: &'a Rules,
        now: Millis,
    ) -> impl Iterator<Item = Head> + 'a {
        let lets = Lets::new(self, filter, rules, now);
        self.store.heads().filter(move |head| lets.through(self, head))
    }

    /// A row by its key, if it is shown.
    pub fn row(&self, kind: KindId, id: &str, rules: &Rules, now: Millis) -> Option<Row> {
        let id = IdBuf::pack(id);
        self.shown(kind, id.borrow(), rules, now).map(|row| row.to_shown(kind))
    }

    /// A page of a list, newest first.
    pub fn list(&self, query: &ListQuery, rules: &Rules, now: Millis) -> List {
        let lets = Lets::new(self, &query.filter, rules, now);
        let (below, skip, total) = match &query.page {
            PageAt::Below(None) => (None, 0, None),
            PageAt::Below(Some(below)) => (Some((below, IdBuf::pack(&below.id))), 0, None),
            PageAt::Skip(skip) => {
                let matching = self.store.heads().filter(|head| lets.through(self, head));
                (None, *skip, Some(matching.count()))
            }
        };
        let end = skip.saturating_add(query.limit);
        let to = below.as_ref().map_or(lets.to, |(below, _)| lets.to.min(below.event_ms.plus(1)));
        let mut newest = Newest::new(self, end.saturating_add(1));
        self.store.newest(lets.from, to, |head| {
            let is_below =
                below.as_ref().is_none_or(|(below, id)| self.is_below(&head, below, id.borrow()));
            if is_below && lets.through(self, &head) {
                newest.add(head);
            }
            newest.enough
        });
        let mut heads = newest.sorted();
        let more = heads.len() > end;
        heads.truncate(end);
        let rows = heads.iter().skip(skip).map(|head| self.owned(head)).collect();
        List { rows, more, total }
    }

    fn is_below(&self, head: &Head, below: &RowOrder, id: PackedId<'_>) -> bool {
        (head.event_ms, head.kind)
            .cmp(&(below.event_ms, below.kind))
            .then_with(|| self.store.id(head.place).cmp_text(id))
            .is_lt()
    }

    fn owned(&self, head: &Head) -> Row {
        self.store.get(head.place).to_shown(head.kind)
    }

    /// All rows that are shown, newest first, with every fact.
    pub(crate) fn export_rows(&self, rules: &Rules, now: Millis) -> Vec<Row> {
        let filter = Filter::default();
        let mut heads: Vec<Head> = self.matching(&filter, rules, now).collect();
        heads.sort_unstable_by(|a, b| self.cmp_heads(b, a));
        heads.iter().map(|head| self.store.get(head.place).to_row(head.kind)).collect()
    }

    /// All rows that the filter lets through, newest first.
    pub fn rows(&self, filter: &Filter, rules: &Rules, now: Millis) -> Vec<Row> {
        let mut heads: Vec<Head> = self.matching(filter, rules, now).collect();
        heads.sort_unstable_by(|a, b| self.cmp_heads(b, a));
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

    /// Shows `visit` all rows kept of each (kind, day of UTC) of `days`, which
    /// are sorted: oldest first. One pass over the rows, however many days.
    pub(crate) fn for_days<'a>(
        &'a self,
        days: &[(KindId, i32)],
        mut visit: impl FnMut(KindId, i32, &[RowRef<'a>]),
    ) {
        let place = |head: &Head| days.binary_search(&(head.kind, head.event_ms.utc_day())).ok();
        let heads = self.store.heads();
        let mut heads: Vec<(usize, Head)> =
            heads.filter_map(|head| Some((place(&head)?, head))).collect();
        heads.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.cmp_heads(&a.1, &b.1)));
        let (mut rest, mut rows) = (&heads[..], Vec::new());
        for (at, &(kind, day)) in days.iter().enumerate() {
            let (own, later) = rest.split_at(rest.partition_point(|(of, _)| *of == at));
            rest = later;
            rows.clear();
            rows.extend(own.iter().map(|(_, head)| self.store.get(head.place)));
            visit(kind, day, &rows);
        }
    }

    /// Kind and time of all rows kept, in no order.
    pub(crate) fn kept_times(&self) -> impl Iterator<Item = (KindId, Millis)> {
        self.store.heads().map(|head| (head.kind, head.event_ms))
    }

    /// All rows kept, in no order.
    pub(crate) fn all_kept(&self) -> impl Iterator<Item = (KindId, RowRef<'_>)> {
        self.store.heads().map(|head| (head.kind, self.store.get(head.place)))
    }
}

/// The newest so many of the rows that are added.
struct Newest<'u> {
    user: &'u Timeline,
    count: usize,
    heads: Vec<Head>,
    /// Older rows than this are not among them.
    enough: Millis,
}

impl<'u> Newest<'u> {
    fn new(user: &'u Timeline, count: usize) -> Self {
        let room = count.saturating_mul(2).min(user.len() + 1);
        Self { user, count, heads: Vec::with_capacity(room), enough: Millis(i64::MIN) }
    }

    fn add(&mut self, head: Head) {
        if self.heads.len() >= self.count.saturating_mul(2) {
            self.cut();
        }
        self.heads.push(head);
    }

    fn cut(&mut self) {
        if self.heads.len() > self.count {
            let user = self.user;
            let last = self.count - 1;
            self.heads.select_nth_unstable_by(last, |a, b| user.cmp_heads(b, a));
            self.heads.truncate(self.count);
            self.enough = self.heads[last].event_ms;
        }
    }

    fn sorted(mut self) -> Vec<Head> {
        self.cut();
        let user = self.user;
        self.heads.sort_unstable_by(|a, b| user.cmp_heads(b, a));
        self.heads
    }
}

/// Whether a row has a position that is not at the end and is not declared
/// finished.
fn is_unfinished(row: &RowRef<'_>) -> bool {
    let at_the_end = at_end(row.position_ms, row.duration_ms);
    row.position_ms.is_some() && !at_the_end && !row.declared
}
