//! Lists on their way out: pages, cursors, groups, titles.
//!
//! A grouped list shows one row per kind and group, the newest; the group is
//! the catalogue's, else the mark's. A cursor holds the last row shown, and in
//! a grouped list also the top of the first page: rows that came or moved
//! above it since are not looked at, so a group repeats only if a row of it
//! moved.

use std::collections::HashSet;

use tideline_catalogue::Item;
use tideline_history::kinds::KindId;
use tideline_history::query::{ClearFilter, Filter, ListQuery, PageAt, Row, RowOrder};
use tideline_types::limits::PAGE_ROWS_MAX;
use tideline_types::{Millis, UserId};
use tideline_wire::cursor::{Cursor, FilterHash, Place};

use crate::Gateway;
use crate::problem::Problem;

/// Rows in a page, if not said.
pub(crate) const ROWS_DEFAULT: usize = 20;

/// A list as it is asked for.
#[derive(Debug, Default)]
pub(crate) struct PageAsk<'a> {
    pub(crate) filter: Filter,
    /// 1 to 100.
    pub(crate) limit: usize,
    pub(crate) cursor: Option<&'a str>,
    /// From 1.
    pub(crate) page: Option<u64>,
    pub(crate) group: bool,
    pub(crate) enrich: bool,
}

/// A page of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// One for each row, or none at all.
    pub(crate) items: Vec<Option<Item>>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) total: Option<usize>,
    pub(crate) partial: bool,
}

impl PageAsk<'_> {
    /// How many rows the pages before take up.
    fn skip(&self) -> Result<Option<usize>, Problem> {
        let Some(page) = self.page else { return Ok(None) };
        if self.cursor.is_some() {
            return Err(Problem::invalid("page: not together with cursor"));
        }
        let before = page.checked_sub(1).ok_or_else(|| Problem::invalid("page: from 1"))?;
        let skip = before.checked_mul(self.limit as u64).and_then(|skip| skip.try_into().ok());
        skip.map(Some).ok_or_else(|| Problem::invalid("page: too large"))
    }

    fn check(&self) -> Result<(), Problem> {
        if !(1..=PAGE_ROWS_MAX).contains(&self.limit) {
            return Err(Problem::invalid(format!("limit: must be 1 to {PAGE_ROWS_MAX}")));
        }
        Ok(())
    }
}

impl Gateway {
    /// A page of a user's list.
    pub(crate) async fn page(&self, user: &UserId, ask: PageAsk<'_>) -> Result<Page, Problem> {
        ask.check()?;
        if ask.group {
            self.grouped_page(user, ask).await
        } else {
            self.plain_page(user, ask).await
        }
    }

    async fn plain_page(&self, user: &UserId, ask: PageAsk<'_>) -> Result<Page, Problem> {
        let skip = ask.skip()?;
        let filters = self.filter_hash(user, &ask);
        let at = match (skip, ask.cursor) {
            (Some(skip), _) => PageAt::Skip(skip),
            (None, Some(cursor)) => PageAt::Below(Some(self.open_cursor(cursor, filters)?.0)),
            (None, None) => PageAt::Below(None),
        };
        let query = ListQuery { filter: ask.filter, page: at, limit: ask.limit };
        let list = self.inner.history.list(user, query).await?;
        let mut page = Page { rows: list.rows, total: list.total, ..Page::default() };
        if skip.is_none() && list.more {
            page.next_cursor = page.rows.last().map(|row| self.cursor(filters, row, None));
        }
        if ask.enrich {
            let joined = self.join(&page.rows).await;
            (page.items, page.partial) = (joined.items, joined.partial);
        }
        Ok(page)
    }

    async fn grouped_page(&self, user: &UserId, ask: PageAsk<'_>) -> Result<Page, Problem> {
        let skip = ask.skip()?;
        let filters = self.filter_hash(user, &ask);
        let cursor = ask.cursor.map(|cursor| self.open_cursor(cursor, filters)).transpose()?;
        let mut rows = self.inner.history.rows(user, ask.filter).await?;
        if let Some((_, Some(top))) = &cursor {
            rows.retain(|row| order(row) <= order_ref(top));
        }
        let top = match &cursor {
            Some((_, top)) => top.clone(),
            None => rows.first().map(row_order),
        };
        let mut page = Page::default();
        let mut shown = self.newest_of_groups(rows, &mut page.partial).await;
        page.total = skip.is_some().then_some(shown.len());
        if let Some(skip) = skip {
            shown.drain(..skip.min(shown.len()));
        } else if let Some((after, _)) = &cursor {
            shown.retain(|(row, _)| order(row) < order_ref(after));
        }
        let more = shown.len() > ask.limit;
        shown.truncate(ask.limit);
        (page.rows, page.items) = shown.into_iter().unzip();
        if skip.is_none() && more {
            page.next_cursor = page.rows.last().map(|row| self.cursor(filters, row, top));
        }
        if !ask.enrich {
            for (row, item) in page.rows.iter_mut().zip(std::mem::take(&mut page.items)) {
                row.group = item.and_then(|item| item.group).map(Into::into).or(row.group.take());
            }
        }
        Ok(page)
    }

    /// How many rows, or groups.
    pub(crate) async fn count(
        &self,
        user: &UserId,
        filter: Filter,
        group: bool,
    ) -> Result<usize, Problem> {
        if !group {
            return Ok(self.inner.history.count(user, filter).await?);
        }
        let rows = self.inner.history.rows(user, filter).await?;
        Ok(self.newest_of_groups(rows, &mut false).await.len())
    }

    /// Clears what `filter` matches; everything only if `all` says so.
    pub(crate) async fn clear(
        &self,
        user: &UserId,
        filter: ClearFilter,
        all: bool,
    ) -> Result<u64, Problem> {
        if filter == ClearFilter::default() && !all {
            return Err(Problem::invalid(
                "all: must be true to clear everything; or filter by kind, id, before_ms, \
                 after_ms, finished=true",
            ));
        }
        Ok(self.inner.history.clear(user, filter).await?)
    }

    /// Of rows that come newest first, the first of each kind and group; those
    /// without a group all.
    async fn newest_of_groups(
        &self,
        rows: Vec<Row>,
        partial: &mut bool,
    ) -> Vec<(Row, Option<Item>)> {
        let joined = self.join(&rows).await;
        *partial = joined.partial;
        let mut seen: HashSet<(KindId, Box<str>)> = HashSet::new();
        let mut shown = Vec::new();
        for (row, item) in rows.into_iter().zip(joined.items) {
            let group = item.as_ref().and_then(|item| item.group.as_deref());
            let group = group.or(row.group.as_deref());
            if group.is_none_or(|group| seen.insert((row.kind, group.into()))) {
                shown.push((row, item));
            }
        }
        shown
    }

    /// What a cursor is bound to.
    fn filter_hash(&self, user: &UserId, ask: &PageAsk<'_>) -> u64 {
        let kinds = self.inner.history.kinds();
        let mut names: Vec<&str> = ask.filter.kinds.iter().map(|kind| kinds.name(*kind)).collect();
        names.sort_unstable();
        names.dedup();
        let time = |ms: Option<Millis>| ms.map_or(i64::MIN, |ms| ms.0).to_be_bytes();
        let flags = [u8::from(ask.filter.unfinished), u8::from(ask.group)];
        let mut hash = FilterHash::new()
            .with(user.as_str().as_bytes())
            .with(&time(ask.filter.after_ms))
            .with(&time(ask.filter.before_ms))
            .with(&flags);
        for name in names {
            hash = hash.with(name.as_bytes());
        }
        hash.finish()
    }

    fn cursor(&self, filters: u64, after: &Row, top: Option<RowOrder>) -> String {
        let kinds = self.inner.history.kinds();
        let place = |at: RowOrder| Place {
            event_ms: at.event_ms.0,
            kind: kinds.name(at.kind).into(),
            id: at.id,
        };
        Cursor { filters, after: place(row_order(after)), top: top.map(place) }.encode()
    }

    /// The last row shown, and the top of the first page.
    fn open_cursor(
        &self,
        text: &str,
        filters: u64,
    ) -> Result<(RowOrder, Option<RowOrder>), Problem> {
        let cursor =
            Cursor::decode(text).map_err(|bad| Problem::invalid(format!("cursor: {bad}")))?;
        if cursor.filters != filters {
            return Err(Problem::invalid("cursor: is of a list with other filters"));
        }
        let place = |place: Place| {
            let kind = self.inner.history.kinds().find(&place.kind);
            let kind = kind.ok_or_else(|| Problem::invalid("cursor: its kind is gone"))?;
            Ok::<_, Problem>(RowOrder { event_ms: Millis(place.event_ms), kind, id: place.id })
        };
        Ok((place(cursor.after)?, cursor.top.map(place).transpose()?))
    }
}

fn row_order(row: &Row) -> RowOrder {
    RowOrder { event_ms: row.event_ms, kind: row.kind, id: row.id.clone() }
}

fn order(row: &Row) -> (Millis, KindId, &str) {
    (row.event_ms, row.kind, &row.id)
}

fn order_ref(order: &RowOrder) -> (Millis, KindId, &str) {
    (order.event_ms, order.kind, &order.id)
}
