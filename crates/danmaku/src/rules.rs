//! What the owner of a video decides: pure functions of the video, the call,
//! the rows that were read for it, and the owner's time.
//!
//! A decision comes to outcomes, which the caller applies and logs, and an
//! answer. After each decision [`Rules::settle`] brings the bounded queue to
//! rest, one outcome at a time. What misses a row says so and is asked again
//! with it; nothing has been decided then.

mod hidden;
mod import;
mod moderate;
mod own;
mod post;
mod sent;
mod undo;

use std::ops::RangeInclusive;
use std::sync::Arc;

use hidden::hidden;

use tideline_types::limits::PROGRESS_MS_MAX;
use tideline_types::{Millis, Seq};

use crate::ask::{Answer, Changes, Op, Refusal, SettingsPatch, Snapshot, Tally, View};
use crate::comment::{Actor, Comment, Index, State};
use crate::filters;
use crate::id::{CommentId, Mint};
use crate::options::{Keys, Options};
use crate::outcome::{Act, Change, Outcome};
use crate::reads::Reads;
use crate::rows;
use crate::top::{LIMITS, RESERVE, Step};
use crate::video::Video;

/// The rules in force.
#[derive(Debug)]
pub struct Rules {
    /// What the operator set.
    pub options: Options,
    /// The folder's key.
    pub keys: Keys,
}

/// What a decision stands on.
pub(crate) struct Desk<'a> {
    /// The id of the video.
    pub(crate) name: &'a str,
    /// As it is. Decisions change what it remembers of rows, nothing else.
    pub(crate) video: &'a mut Video,
    /// Rows.
    pub(crate) reads: &'a mut Reads,
    /// Makes ids.
    pub(crate) mint: &'a mut Mint,
    /// The owner's time.
    pub(crate) now: Millis,
    /// The number that the next outcome gets.
    pub(crate) next: Seq,
}

/// How far a call of several decisions has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Items that are done.
    pub(crate) done: usize,
    /// Of an import.
    pub(crate) tally: Tally,
    /// Of an erase.
    pub(crate) erased: u64,
}

/// What is to happen next.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The call is done, with these outcomes.
    Done(Answer, Option<Outcome>),
    /// Log this, then ask again.
    Again(Outcome),
    /// Ask again once what was asked for has been read.
    Wait,
}

impl Decision {
    fn refused(refusal: impl Into<Refusal>) -> Self {
        Self::Done(Answer::Refused(refusal.into()), None)
    }
}

/// What the queue needs.
#[derive(Debug)]
pub(crate) enum Settle {
    /// Nothing.
    Rest,
    /// Log this, then ask again.
    Log(Outcome),
    /// Ask again once what was asked for has been read.
    Wait,
    /// Rows that cannot be.
    Damaged(&'static str),
}

/// A comment that was looked for.
pub(crate) enum Lookup {
    Wait,
    None,
    Found(Arc<Comment>),
}

impl Rules {
    /// Decides one call.
    pub(crate) fn decide(&self, desk: &mut Desk<'_>, op: &Op, progress: &mut Progress) -> Decision {
        match op {
            Op::Post { draft, actor } => self.post(desk, draft, actor),
            Op::Send { post } => self.send(desk, *post),
            Op::Import { items, actor } => self.import(desk, items, actor, progress),
            Op::Recall { id, actor } => self.recall(desk, *id, actor),
            Op::Moderate { id, action, actor } => self.moderate(desk, *id, *action, actor),
            Op::Judge { id, shown } => self.judge(desk, *id, *shown),
            Op::Like { id, actor } => self.like(desk, *id, actor),
            Op::Report { id, actor, reason } => self.report(desk, *id, actor, *reason),
            Op::Set { patch, actor } => set(desk, patch, actor),
            Op::Undo { outcome, actor } => self.undo(desk, outcome, actor),
            Op::Belong { work } => belong(desk, work.as_ref()),
            Op::SetFilters { json, actor } => set_filters(desk, json, actor),
            Op::Erase { user } => self.erase(desk, user, progress),
            Op::Own { user, below, limit } => self.own(desk, user, *below, *limit),
            Op::Hidden { after, limit } => hidden(desk, *after, *limit),
            Op::Find { id } => find_whole(desk, *id),
            Op::Special { pack } => special(desk, *pack),
            Op::View | Op::Segment(_) | Op::All | Op::Changes { .. } => {
                Decision::Done(read(desk.video, op, desk.next.prev()), None)
            }
        }
    }

    /// Brings the queue one step nearer to rest.
    pub(crate) fn settle(&self, desk: &mut Desk<'_>) -> Settle {
        match desk.video.top_mut().step() {
            Step::Rest => Settle::Rest,
            Step::Hide((_, id)) => match desk.video.get(id) {
                None => Settle::Damaged("a comment of the queue is not shown"),
                Some(comment) => {
                    let before = comment.index;
                    let after = Index { state: State::Overflow, ..before };
                    let change = Change::Index { id, before, after, content: None };
                    Settle::Log(outcome(desk, Act::Queue, None, vec![change]))
                }
            },
            Step::Return(order) => self.bring_back(desk, order.1),
            Step::Fill(_) => {
                let stretches: Vec<u16> = desk.video.top().unfilled().collect();
                for at in stretches {
                    let below = rows::queue_range(at, desk.video.top().lowest(at));
                    let Some(found) = desk.reads.scan(below, false, RESERVE + 1) else { continue };
                    let orders: Result<Vec<_>, _> =
                        found.iter().map(|(key, _)| rows::order_of(key)).collect();
                    let Ok(orders) = orders else {
                        return Settle::Damaged("a key of the overflow");
                    };
                    if orders.is_empty() {
                        return Settle::Damaged("overflow that is counted and not there");
                    }
                    let whole = orders.len() <= RESERVE;
                    desk.video.top_mut().fill(at, orders, whole);
                }
                if desk.reads.is_waiting() { Settle::Wait } else { self.settle(desk) }
            }
        }
    }

    fn bring_back(&self, desk: &mut Desk<'_>, id: CommentId) -> Settle {
        match lookup(desk, id) {
            Lookup::None => Settle::Damaged("a comment of the overflow is not there"),
            Lookup::Wait => {
                // Where one comes back, others are likely to.
                let room = desk.video.limit().saturating_sub(desk.video.top().shown());
                let next: Vec<CommentId> = desk
                    .video
                    .top()
                    .reserve(id.stretch())
                    .take(AHEAD.min(room as usize))
                    .map(|(_, id)| id)
                    .collect();
                for id in next {
                    _ = lookup(desk, id);
                }
                Settle::Wait
            }
            Lookup::Found(comment) => {
                let before = comment.index;
                let after = Index { state: State::Shown, ..before };
                let content = Some(comment.content.clone());
                let change = Change::Index { id, before, after, content };
                Settle::Log(outcome(desk, Act::Queue, None, vec![change]))
            }
        }
    }
}

/// Comments that are read ahead when the queue brings one back.
const AHEAD: usize = 64;
/// Script and BAS comments of one pack.
pub(crate) const SPECIALS_PER_PACK: usize = 8;

/// An outcome of now.
fn outcome(desk: &Desk<'_>, act: Act, actor: Option<&Actor>, changes: Vec<Change>) -> Outcome {
    Outcome { taken: desk.now, act, actor: actor.cloned(), changes }
}

/// A comment of whatever state; of a special one, without its text.
fn lookup(desk: &mut Desk<'_>, id: CommentId) -> Lookup {
    if let Some(comment) = desk.video.get(id) {
        return Lookup::Found(Arc::clone(comment));
    }
    let content = desk.reads.row(rows::content_key(id));
    let index = rows::hidden_keys(id).map(|key| desk.reads.row(key));
    let (Some(content), [Some(a), Some(b), Some(c), Some(d)]) = (content, index) else {
        return Lookup::Wait;
    };
    let (Some(content), Some(index)) = (content, a.or(b).or(c).or(d)) else { return Lookup::None };
    // Rows are checked when they come from the table.
    match (rows::decode_index(&index), rows::decode_content(id, &content)) {
        (Ok(index), Ok(content)) => Lookup::Found(Arc::new(Comment { id, index, content })),
        _ => Lookup::None,
    }
}

/// The comment, with its text where that lies apart.
fn find_whole(desk: &mut Desk<'_>, id: CommentId) -> Decision {
    match whole(desk, id) {
        Lookup::Wait => Decision::Wait,
        Lookup::None => Decision::Done(Answer::Found(None), None),
        Lookup::Found(comment) => Decision::Done(Answer::Found(Some(comment)), None),
    }
}

fn whole(desk: &mut Desk<'_>, id: CommentId) -> Lookup {
    let found = lookup(desk, id);
    let Lookup::Found(comment) = &found else { return found };
    if !comment.index.is_special() {
        return found;
    }
    let Some(text) = desk.reads.row(rows::text_key(id)) else { return Lookup::Wait };
    let mut comment = Comment::clone(comment);
    let text = text.unwrap_or_default();
    comment.content.text = String::from_utf8_lossy(&text).into();
    Lookup::Found(Arc::new(comment))
}

fn special(desk: &mut Desk<'_>, pack: u32) -> Decision {
    let specials = desk.video.shown().filter(|comment| comment.index.is_special());
    let skip = (pack as usize).saturating_sub(1).saturating_mul(SPECIALS_PER_PACK);
    let ids: Vec<CommentId> =
        specials.map(|comment| comment.id).skip(skip).take(SPECIALS_PER_PACK).collect();
    let seq = desk.next.prev();
    if pack == 0 || ids.is_empty() {
        return Decision::Done(Answer::Snapshot(None), None);
    }
    let mut items = Vec::new();
    for id in ids {
        if let Lookup::Found(comment) = whole(desk, id) {
            items.push(comment);
        }
    }
    if desk.reads.is_waiting() {
        return Decision::Wait;
    }
    let snapshot = snapshot(desk.video, seq, 0..=u16::MAX, items);
    Decision::Done(Answer::Snapshot(Some(snapshot)), None)
}

/// The answer of a read that memory is enough for, as of outcome `seq`.
pub(crate) fn read(video: &Video, op: &Op, seq: Seq) -> Answer {
    let of = |stretches: RangeInclusive<u16>| {
        let items = video.items(&stretches);
        snapshot(video, seq, stretches, items)
    };
    match op {
        Op::Segment(n) => Answer::Snapshot(video.stretches(*n).map(of)),
        Op::All => Answer::Snapshot(Some(of(0..=u16::MAX))),
        Op::Changes { since } => {
            let events = if *since > seq { None } else { video.changes_since(*since) };
            Answer::Changes(match events {
                Some(events) => {
                    let (since, end) = (*since, video.end());
                    Changes::Range { since, through: seq, end, events }
                }
                None => Changes::Lagged { through: seq },
            })
        }
        _ => Answer::View(View {
            settings: *video.settings(),
            segments: video.segments(),
            limit: video.limit(),
            total: video.total(),
            shown: video.shown_count(),
            counted: video.top().shown(),
            overflow: video.top().overflow(),
            special_packs: (video.specials() as usize).div_ceil(SPECIALS_PER_PACK) as u32,
            filters: video.filters_json().cloned(),
            seq,
        }),
    }
}

fn snapshot(
    video: &Video,
    seq: Seq,
    stretches: RangeInclusive<u16>,
    items: Vec<Arc<Comment>>,
) -> Snapshot {
    let (limit, closed) = (video.limit(), video.settings().closed);
    let seq = if broken!(SeqAhead) { seq.next() } else { seq };
    Snapshot { seq, stretches, limit, closed, items }
}

fn set(desk: &mut Desk<'_>, patch: &SettingsPatch, actor: &Actor) -> Decision {
    let before = *desk.video.settings();
    let mut after = before;
    after.duration_ms = patch.duration_ms.unwrap_or(before.duration_ms);
    after.limit = patch.limit.unwrap_or(before.limit);
    after.closed = patch.closed.unwrap_or(before.closed);
    if let Some(limit) = after.limit.filter(|limit| !LIMITS.contains(limit)) {
        return Decision::refused(Refusal::BadLimit(limit));
    }
    if after.duration_ms.is_some_and(|ms| ms > PROGRESS_MS_MAX) {
        return Decision::refused(Refusal::Conflict("a video is at most 24 days long"));
    }
    let change = Change::Settings { before, after };
    let done = outcome(desk, Act::Settings, Some(actor), vec![change]);
    Decision::Done(Answer::Settings(after), (before != after).then_some(done))
}

fn belong(desk: &mut Desk<'_>, after: Option<&Arc<str>>) -> Decision {
    let before = desk.video.work().cloned();
    if before.as_ref() == after {
        return Decision::Done(Answer::Done, None);
    }
    let change = Change::Work { before, after: after.cloned() };
    let done = outcome(desk, Act::Work, None, vec![change]);
    Decision::Done(Answer::Done, Some(done))
}

fn set_filters(desk: &mut Desk<'_>, json: &str, actor: &Actor) -> Decision {
    match filters::checked(json) {
        Err(error) => Decision::refused(error),
        Ok(after) => {
            let before = desk.video.filters_json().cloned();
            let change = Change::Filters { before, after: after.into() };
            let done = outcome(desk, Act::Filters, Some(actor), vec![change]);
            Decision::Done(Answer::Done, Some(done))
        }
    }
}
