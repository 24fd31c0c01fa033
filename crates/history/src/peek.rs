//! A page or a count of a user at rest, from the days that it needs.
//!
//! The facts row says how many marks each day row holds, so whole days are
//! skipped or summed unread. Only days that the filter or retention cuts
//! through, and those on the page, are read. Worth it for users with many
//! rows; one who is asked for again is loaded whole.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_store::{StoreError, Table, TableName};
use tideline_types::{DAY_MS, Millis};

use crate::kinds::KindId;
use crate::owner::{Answer, Op};
use crate::query::{Filter, ListQuery, PageAt};
use crate::rows::{self, DayCounts};
use crate::rules::Rules;
use crate::timeline::Timeline;

/// Users with fewer rows are loaded whole.
const ROWS_MIN: u64 = 256;

/// Answers `op` from the day rows that it needs, if it is a page or a count
/// that can be answered so; `None` if the user must be loaded. `user` must be
/// at rest when the call begins; a change meanwhile is noticed.
pub(crate) fn peek(
    table: &dyn Table,
    rules: &Rules,
    user: &str,
    op: &Op,
    now: Millis,
) -> Result<Option<Answer>, StoreError> {
    let filter = match op {
        Op::List(query) => &query.filter,
        Op::Count(filter) => filter,
        _ => return Ok(None),
    };
    let key = rows::partition_key(user);
    let facts = || table.get(TableName::History, &key, rows::FACTS_KEY);
    let Some(before) = facts()? else { return Ok(None) };
    let void = rows::erased_key(rules.user_hash(user));
    if filter.unfinished || table.get(TableName::History, &void, rows::FACTS_KEY)?.is_some() {
        return Ok(None);
    }
    let Ok(counts) = rows::day_counts(&before, &rules.kinds) else { return Ok(None) };
    let Some(days) = Days::of(&counts, filter, rules, now) else { return Ok(None) };
    let answer = days.answer(op, filter, rules, now, &mut |kind, day| {
        let sort_key = rows::day_key(rules.kinds.name(kind), day);
        let value = table.get(TableName::History, &key, &sort_key)?;
        Ok(value.map(|value| (sort_key, value)))
    })?;
    // What was read belongs together only if nothing came to rest meanwhile.
    Ok(if facts()? == Some(before) { answer } else { None })
}

/// One day of UTC, of the kinds that are asked for.
#[derive(Clone, Debug, Default)]
struct Day {
    kinds: Vec<KindId>,
    count: u64,
    /// Only a part of the day is shown: it must be read to be counted.
    cut: bool,
}

struct Days(BTreeMap<i32, Day>);

type Read<'a> = dyn FnMut(KindId, i32) -> Result<Option<(Bytes, Bytes)>, StoreError> + 'a;

impl Days {
    /// The days that the filter and retention leave; `None` where the user is
    /// small, or over a cap, so that counts alone do not say what is shown.
    fn of(counts: &DayCounts, filter: &Filter, rules: &Rules, now: Millis) -> Option<Self> {
        let mut days: BTreeMap<i32, Day> = BTreeMap::new();
        let mut per_kind: BTreeMap<KindId, u64> = BTreeMap::new();
        for (&(kind, day), &count) in counts {
            *per_kind.entry(kind).or_default() += count;
            if !filter.kinds.is_empty() && !filter.kinds.contains(&kind) {
                continue;
            }
            let start = i64::from(day) * DAY_MS;
            let last = start + DAY_MS - 1;
            let oldest = rules.kinds.get(kind).retention_ms().map(|ms| now.0 - ms);
            let from = oldest.max(filter.after_ms.map(|ms| ms.0)).unwrap_or(i64::MIN);
            let to = filter.before_ms.map_or(i64::MAX, |ms| ms.0);
            if last < from || start >= to {
                continue;
            }
            let entry = days.entry(day).or_default();
            entry.kinds.push(kind);
            entry.count += count;
            entry.cut |= start < from || last >= to;
        }
        let over_a_cap = per_kind.iter().any(|(&kind, &count)| {
            let cap = u64::from(rules.kinds.get(kind).max_records);
            cap > 0 && count > cap
        });
        let rows: u64 = per_kind.values().sum();
        (rows >= ROWS_MIN && !over_a_cap).then_some(Self(days))
    }

    fn answer(
        mut self,
        op: &Op,
        filter: &Filter,
        rules: &Rules,
        now: Millis,
        read: &mut Read<'_>,
    ) -> Result<Option<Answer>, StoreError> {
        let cut: Vec<i32> = self.0.iter().filter(|(_, day)| day.cut).map(|(at, _)| *at).collect();
        for at in cut {
            let Some(part) = self.load(&[at], read, rules)? else { return Ok(None) };
            if let Some(day) = self.0.get_mut(&at) {
                day.count = part.count(filter, rules, now) as u64;
            }
        }
        let total: u64 = self.0.values().map(|day| day.count).sum();
        let query = match op {
            Op::List(query) => query,
            _ => return Ok(Some(Answer::Count(total as usize))),
        };
        let (needed, skipped) = self.needed(query);
        let Some(part) = self.load(&needed, read, rules)? else { return Ok(None) };
        let page = match &query.page {
            PageAt::Skip(skip) => PageAt::Skip(skip - skipped as usize),
            below => below.clone(),
        };
        let mut list = part.list(&ListQuery { page, ..query.clone() }, rules, now);
        if let PageAt::Skip(skip) = query.page {
            list.total = Some(total as usize);
            list.more = (skip + list.rows.len()) < total as usize;
        }
        Ok(Some(Answer::List(list)))
    }

    /// The days that hold the page and one row beyond it, and how many rows
    /// lie in newer days that need not be read.
    fn needed(&self, query: &ListQuery) -> (Vec<i32>, u64) {
        let (mut needed, mut skipped, mut held) = (Vec::new(), 0, 0);
        let skip = match &query.page {
            PageAt::Skip(skip) => *skip as u64,
            PageAt::Below(_) => 0,
        };
        let newest = match &query.page {
            PageAt::Below(Some(order)) => order.event_ms.utc_day(),
            _ => i32::MAX,
        };
        for (&at, day) in self.0.range(..=newest).rev() {
            if needed.is_empty() && skipped + day.count <= skip {
                skipped += day.count;
                continue;
            }
            needed.push(at);
            // Rows of the cursor's own day may all lie above it.
            if at != newest {
                held += day.count;
            }
            if held > skip - skipped + query.limit as u64 {
                break;
            }
        }
        (needed, skipped)
    }

    /// A user who has these days alone. `None` if one is missing.
    fn load(
        &self,
        days: &[i32],
        read: &mut Read<'_>,
        rules: &Rules,
    ) -> Result<Option<Timeline>, StoreError> {
        let mut found = Vec::new();
        for at in days {
            for &kind in self.0.get(at).map_or(&[][..], |day| &day.kinds) {
                match read(kind, *at)? {
                    Some(row) => found.push(row),
                    None => return Ok(None),
                }
            }
        }
        // Damage is named by the load that follows.
        Ok(rows::load(&found, &rules.kinds).ok().map(|(timeline, _)| timeline))
    }
}
