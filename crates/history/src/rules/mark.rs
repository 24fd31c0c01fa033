//! One mark: accepted or not, and the row as it becomes.
//!
//! Checks in order: time, retry, retention, pause, deletes, cap floor, older
//! than the row, the kind's cap, the day's cap.

use std::cmp::Ordering;

use tideline_types::Millis;
use tideline_types::limits::{AHEAD_MS_MAX, RETRY_WINDOW_MS};

use super::{Rules, at_end};
use crate::id::{IdBuf, PackedId};
use crate::mark::{Mark, Path, Verdict};
use crate::outcome::Put;
use crate::query::Retry;
use crate::retry::{Retries, fingerprint};
use crate::row::RowRef;
use crate::timeline::Timeline;

impl Rules {
    /// Decides one mark. If something changes, appends exactly one outcome.
    /// `now` must not fall from one decision of a user to the next.
    pub fn mark(
        &self,
        user: &Timeline,
        mark: &Mark<'_>,
        shift_ms: i64,
        now: Millis,
        path: Path,
        out: &mut Vec<u8>,
    ) -> Verdict {
        let shifted = mark.sent_ms.map(|sent| sent.plus(shift_ms));
        if shifted.is_some_and(|at| at.0 <= 0) {
            return Verdict::BeforeEpoch;
        }
        if shifted.is_some_and(|at| at > now.plus(AHEAD_MS_MAX)) {
            return Verdict::Ahead;
        }
        let id = IdBuf::pack(mark.id);
        let id = id.borrow();
        let row = user.shown(mark.kind, id, self, now);
        let print = mark.event_id.map(|event| fingerprint(&self.key, event, mark.sent_ms));
        let remembered = |retry: Retry| {
            Some(retry.fingerprint) == print && retry.taken_ms > now.plus(-RETRY_WINDOW_MS)
        };
        if row.is_some_and(|row| row.retries.iter().any(remembered)) {
            return Verdict::Duplicate;
        }
        let at = match shifted {
            Some(at) => at.min(now),
            None => first_free(user, mark, now),
        };
        if let Some(verdict) = self.refused(user, mark, id, at, now, path) {
            return verdict;
        }
        let made = mark.sent_ms != Some(at);
        let retry = print.map(|fingerprint| Retry { fingerprint, taken_ms: now, made });
        let (next, floor) = match row {
            Some(old) if at < old.event_ms || (broken!(TieReversed) && at == old.event_ms) => {
                match finished_late(&old, mark, at) {
                    Some(next) => (next, None),
                    None => return Verdict::Stale,
                }
            }
            Some(old) => {
                let floor = self.floor_of_old(user, mark, id);
                (next_row(Some(&old), mark, id, at, retry, now), floor)
            }
            None => match self.floor_of_new(user, mark, id, at, now) {
                Ok(floor) => (next_row(None, mark, id, at, retry, now), floor),
                Err(verdict) => return verdict,
            },
        };
        let first_of = (path == Path::Live && self.kinds.get(mark.kind).daily_first)
            .then(|| self.day_of(now))
            .filter(|&day| user.rewards().is_first(mark.kind, day) || broken!(FirstTwice));
        let floor = floor.as_ref().map(|(event_ms, id)| (*event_ms, id.borrow()));
        let kind = self.kinds.name(mark.kind);
        Put { taken_ms: now, kind, row: next, first_of, floor }.encode(out);
        Verdict::Accepted { first_today: first_of.is_some() }
    }

    /// Checks that need no row.
    fn refused(
        &self,
        user: &Timeline,
        mark: &Mark<'_>,
        id: PackedId<'_>,
        at: Millis,
        now: Millis,
        path: Path,
    ) -> Option<Verdict> {
        if self.is_expired(mark.kind, at, now) {
            return Some(Verdict::Stale);
        }
        let facts = user.facts();
        let off_for_live = path == Path::Live && facts.off_since().is_some();
        if off_for_live || facts.paused_at(at) {
            return Some(Verdict::Paused);
        }
        if facts.covered_until(mark.kind, mark.id, at).is_some() {
            return Some(Verdict::Stale);
        }
        let floor = facts.floor(mark.kind)?;
        let order = at.cmp(&floor.event_ms).then_with(|| cmp_id(id, &floor.id));
        (order != Ordering::Greater).then_some(Verdict::Stale)
    }

    /// What a changed row pushes over a cap that was lowered.
    fn floor_of_old(
        &self,
        user: &Timeline,
        mark: &Mark<'_>,
        id: PackedId<'_>,
    ) -> Option<(Millis, IdBuf)> {
        let cap = self.cap(mark.kind).filter(|&cap| user.len() > cap)?;
        let over = user.count_kept(mark.kind).checked_sub(cap)?;
        user.oldest(mark.kind, over, Some(id))
    }

    /// What a new row pushes over the cap, or why it may not come in.
    fn floor_of_new(
        &self,
        user: &Timeline,
        mark: &Mark<'_>,
        id: PackedId<'_>,
        at: Millis,
        now: Millis,
    ) -> Result<Option<(Millis, IdBuf)>, Verdict> {
        let mut floor = None;
        if let Some(cap) = self.cap(mark.kind).filter(|&cap| user.len() >= cap) {
            let hidden = usize::from(user.kept(mark.kind, id).is_some());
            let others = user.count_kept(mark.kind) - hidden;
            if others >= cap {
                floor = user.oldest(mark.kind, others - cap + 1, Some(id));
            }
        }
        let below = |(event_ms, last): &(Millis, IdBuf)| {
            at.cmp(event_ms).then_with(|| id.cmp_text(last.borrow())).is_lt()
        };
        if floor.as_ref().is_some_and(below) {
            return Err(Verdict::Stale);
        }
        let per_day = self.kinds.get(mark.kind).max_per_day as usize;
        if per_day > 0 && user.count_on_day(mark.kind, at, self, now) >= per_day {
            return Err(Verdict::OverCap);
        }
        Ok(floor)
    }
}

fn cmp_id(id: PackedId<'_>, text: &str) -> Ordering {
    id.cmp_text(IdBuf::pack(text).borrow())
}

/// The first moment from `now` on that no delete covers.
fn first_free(user: &Timeline, mark: &Mark<'_>, now: Millis) -> Millis {
    let mut at = now;
    while let Some(until) = user.facts().covered_until(mark.kind, mark.id, at) {
        at = until.plus(1);
    }
    at
}

/// The row of a mark that comes late but brings the end: finished once,
/// nothing else changed.
fn finished_late<'a>(old: &RowRef<'a>, mark: &Mark<'_>, at: Millis) -> Option<RowRef<'a>> {
    let same_part = mark.part.is_none() || mark.part == old.part;
    let ends = mark.finished || at_end(mark.position_ms, mark.duration_ms);
    (same_part && at >= old.part_since && !old.finished && ends).then_some(RowRef {
        finished: true,
        plays: 1,
        began: false,
        ..*old
    })
}

/// The row as it becomes by a mark that is not older than it.
fn next_row<'a>(
    old: Option<&RowRef<'a>>,
    mark: &Mark<'a>,
    id: PackedId<'a>,
    at: Millis,
    retry: Option<Retry>,
    now: Millis,
) -> RowRef<'a> {
    let same_part = old.filter(|old| mark.part.is_none() || mark.part == old.part);
    let mut row = RowRef {
        id,
        part: mark.part.or(same_part.and_then(|old| old.part)),
        position_ms: mark.position_ms.or(same_part.and_then(|old| old.position_ms)),
        duration_ms: mark.duration_ms.or(same_part.and_then(|old| old.duration_ms)),
        event_ms: at,
        device: mark.device.or(old.and_then(|old| old.device)),
        group: mark.group.or(old.and_then(|old| old.group)),
        finished: same_part.is_some_and(|old| old.finished),
        declared: same_part.is_some_and(|old| old.declared),
        began: same_part.is_none_or(|old| old.began),
        plays: same_part.map_or(0, |old| old.plays),
        part_since: match (old, same_part) {
            (None, _) => Millis(0),
            (_, Some(old)) => old.part_since,
            (Some(_), None) => at,
        },
        retries: Retries::EMPTY,
    };
    count_play(&mut row, mark);
    if let Some(old) = old {
        row.retries = old.retries;
        row.retries.retain(|retry| {
            (retry.made || at == old.event_ms) && retry.taken_ms > now.plus(-RETRY_WINDOW_MS)
        });
    }
    if let Some(retry) = retry {
        row.retries.push(retry);
    }
    row
}

/// What the mark says about the end, the beginning and declaring.
fn count_play(row: &mut RowRef<'_>, mark: &Mark<'_>) {
    let ends = mark.finished || at_end(mark.position_ms, row.duration_ms);
    if mark.position_ms.is_some() {
        row.declared = false;
    }
    if mark.finished {
        row.declared = true;
    }
    if ends {
        row.finished = true;
        if row.began {
            row.plays = row.plays.saturating_add(1);
            row.began = false;
        }
    } else if let (Some(position), Some(duration)) = (mark.position_ms, row.duration_ms) {
        row.began |= position < duration.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_last_twentieth_but_a_second_at_least_and_half_at_most() {
        let end = |duration| (0..=duration).find(|&at| at_end(Some(at), Some(duration)));
        assert_eq!(end(100_000), Some(95_000));
        assert_eq!(end(10_000), Some(9_000));
        assert_eq!(end(1_500), Some(750));
        assert_eq!(end(3), Some(2));
        assert_eq!(end(1), Some(1));
        assert!(!at_end(Some(5), None) && !at_end(None, Some(5)));
    }
}
