//! A comment that comes in from its writer.

use std::sync::Arc;

use tideline_types::limits::{SPECIALS_PER_VIDEO_MAX, SUBTITLES_PER_VIDEO_MAX};

use super::{Decision, Desk, Lookup, Rules, lookup, outcome};
use crate::ask::{Answer, Posted, Refusal};
use crate::comment::{Actor, Comment, Content, Draft, Index, Rank, Role, State, Writer};
use crate::id::{CommentId, stretch_of};
use crate::outcome::{Act, Change};
use crate::rows;
use crate::top::Arrival;
use crate::video::{LATEST_MAX, Latest};

impl Rules {
    pub(super) fn post(&self, desk: &mut Desk<'_>, draft: &Draft, actor: &Actor) -> Decision {
        let settings = *desk.video.settings();
        if settings.closed && actor.role == Role::Viewer {
            return Decision::refused(Refusal::Closed);
        }
        let draft = match draft.clone().admit(actor.role, settings.duration_ms) {
            Ok(draft) => draft,
            Err(refusal) => return Decision::refused(refusal),
        };
        let user = actor.user.as_str();
        let sender = format!("{:x}", self.keys.sender(desk.name, user));
        if actor.role == Role::Viewer && desk.video.filters().rejects(&draft.text, &[user, &sender])
        {
            return Decision::refused(Refusal::Forbidden);
        }
        let client = draft.client_id.as_ref().map(|id| self.keys.client(user, id));
        if let Some(client) = client {
            match self.retried(desk, user, client) {
                None => return Decision::Wait,
                Some(Lookup::Wait) => return Decision::Wait,
                Some(Lookup::Found(comment)) => {
                    let posted = Posted { comment, seq: desk.next.prev(), again: true };
                    return Decision::Done(Answer::Posted(posted), None);
                }
                Some(Lookup::None) => {}
            }
        }
        let mut index = Index {
            state: State::Shown,
            rank: Rank::Plain,
            pool: draft.pool,
            mode: draft.mode,
            progress_ms: draft.progress_ms,
            likes: 0,
            reports: 0,
            reviewed: false,
        };
        if let Err(refusal) = has_room(desk, &index) {
            return Decision::refused(refusal);
        }
        let id = desk.mint.next(desk.now, stretch_of(draft.progress_ms));
        desk.now = desk.now.max(id.time());
        let content = Content {
            color: draft.color,
            size: draft.size.max(1),
            sent_ms: desk.now,
            writer: Writer::User(actor.user.clone()),
            weight: 0,
            attr: 0,
            client,
            text: draft.text.into(),
        };
        let mut changes = Vec::with_capacity(2);
        let evicted = match self.options.look_first && actor.role == Role::Viewer {
            true => {
                index.state = State::Waiting;
                None
            }
            false => place(desk, id, &mut index),
        };
        changes.push(Change::New { id, index, content: content.clone() });
        changes.extend(evicted);
        let done = outcome(desk, Act::Post, Some(actor), changes);
        let comment = Arc::new(Comment { id, index, content });
        let posted = Posted { comment, seq: desk.next, again: false };
        Decision::Done(Answer::Posted(posted), Some(done))
    }

    /// The comment that a post with this fingerprint became before, among the
    /// writer's latest; `None` while that is being read.
    fn retried(&self, desk: &mut Desk<'_>, user: &str, client: u64) -> Option<Lookup> {
        let hash = self.keys.user(user);
        if desk.video.latest(hash).is_none() {
            let found = desk.reads.scan(rows::own_range(hash, None), true, LATEST_MAX)?;
            let mut latest: Latest = found
                .iter()
                .take(if broken!(RetryForgotten) { 0 } else { LATEST_MAX })
                .filter_map(|(key, value)| {
                    let client = value.as_ref().try_into().ok().map(u64::from_be_bytes);
                    Some((rows::id_of(key).ok()?, client))
                })
                .collect();
            latest.reverse();
            desk.video.remember(hash, latest);
        }
        let latest = desk.video.latest(hash)?;
        let same = latest.iter().rev().find(|(_, own)| *own == Some(client)).map(|(id, _)| *id);
        Some(same.map_or(Lookup::None, |id| lookup(desk, id)))
    }
}

/// Whether one more of its kind may be there, where the queue does not count.
pub(super) fn has_room(desk: &Desk<'_>, index: &Index) -> Result<(), Refusal> {
    let (there, max, what) = match index {
        _ if index.counts() => return Ok(()),
        _ if index.is_special() => {
            (desk.video.specials(), SPECIALS_PER_VIDEO_MAX, "scripts of a video")
        }
        _ => (desk.video.subtitles(), SUBTITLES_PER_VIDEO_MAX, "subtitles of a video"),
    };
    if there < max { Ok(()) } else { Err(Refusal::TooMany { what, max }) }
}

/// Finds a comment that is to be shown its place in the queue: it may be hidden
/// instead, or another one, whose change is answered.
pub(super) fn place(desk: &Desk<'_>, id: CommentId, index: &mut Index) -> Option<Change> {
    if !index.counts() {
        return None;
    }
    match desk.video.top().arrive((index.rank, id)) {
        Arrival::Hidden => {
            index.state = State::Overflow;
            None
        }
        Arrival::Shown(evicted) => {
            let (_, id) = evicted?;
            let before = desk.video.get(id)?.index;
            let after = Index { state: State::Overflow, ..before };
            Some(Change::Index { id, before, after, content: None })
        }
    }
}
