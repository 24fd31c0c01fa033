//! What the derived topics say of an outcome: pure functions of it.

use std::fmt::Write as _;

use super::{Act, Change, Outcome};
use crate::apart;
use crate::comment::{Index, State};
use crate::rows::Settings;

/// What topic `danmaku-audit` says of an outcome; `None` unless somebody
/// moderated. `before` is what undoes it. What holds for all videos says
/// `site` in the place of a video.
pub fn audit(video: &str, outcome: &Outcome) -> Option<String> {
    let moderates = match outcome.act {
        Act::Recall | Act::Moderate | Act::Settings | Act::Filters | Act::Erase | Act::Undo => {
            true
        },
        // Not what was shown as it was posted.
        Act::Judge => outcome.changes.iter().any(|change| {
            matches!(change, Change::Index { after, .. } if after.state == State::Blocked)
        }),
        Act::Report => outcome.changes.iter().any(|change| {
            matches!(change, Change::Index { before, after, .. } if before.state != after.state)
        }),
        Act::Post | Act::Import | Act::Like | Act::Queue | Act::Count | Act::Send | Act::Work => {
            false
        },
    };
    if !moderates {
        return None;
    }
    let of = match video {
        apart::SITE => r#""site":true"#.to_owned(),
        video => format!(r#""video":{}"#, quoted(video)),
    };
    let mut out = format!(r#"{{{of},"act":"{}""#, outcome.act.name());
    if let Some(actor) = &outcome.actor {
        let (user, role) = (quoted(actor.user.as_str()), actor.role.name());
        _ = write!(out, r#","actor":{user},"role":"{role}""#);
    }
    _ = write!(out, r#","at_ms":{},"changes":["#, outcome.taken);
    let mut said = outcome.changes.iter().filter_map(change).peekable();
    while let Some(change) = said.next() {
        out.push_str(&change);
        if said.peek().is_some() {
            out.push(',');
        }
    }
    out.push_str("]}");
    Some(out)
}

/// What topic `danmaku-stats` says of an outcome, if it counts.
pub fn stats(video: &str, outcome: &Outcome) -> Option<String> {
    let count = outcome.changes.iter().rev().find_map(|change| match change {
        Change::Count { total, shown, work } => Some((total, shown, work)),
        _ => None,
    });
    let ((total, shown, work), video) = (count?, quoted(video));
    let work = work.as_ref().map_or("null".to_owned(), |work| quoted(work));
    let at = outcome.taken;
    Some(format!(
        r#"{{"video":{video},"work":{work},"total":{total},"shown":{shown},"at_ms":{at}}}"#
    ))
}

fn change(change: &Change) -> Option<String> {
    Some(match change {
        Change::Index { id, before, after, .. } => {
            format!(r#"{{"id":"{id}","before":{},"after":{}}}"#, index(before), index(after))
        }
        Change::Gone { id, .. } => format!(r#"{{"id":"{id}","gone":true}}"#),
        Change::Settings { before, after } => {
            format!(r#"{{"before":{},"after":{}}}"#, settings(before), settings(after))
        }
        Change::Filters { before, after } => {
            let before = before.as_ref().map_or("null".to_owned(), |list| quoted(list));
            format!(r#"{{"filters":{{"before":{before},"after":{}}}}}"#, quoted(after))
        }
        Change::New { .. }
        | Change::Mark { .. }
        | Change::Forgotten { .. }
        | Change::Count { .. }
        | Change::Work { .. }
        | Change::Sent(_) => return None,
    })
}

fn index(index: &Index) -> String {
    let Index { state, rank, pool, reports, .. } = index;
    let (state, rank, pool) = (state.name(), rank.name(), pool.name());
    format!(r#"{{"state":"{state}","rank":"{rank}","pool":"{pool}","reports":{reports}}}"#)
}

fn settings(settings: &Settings) -> String {
    let number = |n: Option<u32>| n.map_or("null".to_owned(), |n| n.to_string());
    let (duration, limit) = (number(settings.duration_ms), number(settings.limit));
    format!(r#"{{"duration_ms":{duration},"limit":{limit},"closed":{}}}"#, settings.closed)
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
