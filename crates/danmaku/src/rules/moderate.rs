//! What becomes of a comment that is there: taken back, ranked, hidden, shown
//! again, moved, liked, reported.

use std::sync::Arc;

use tideline_wire::danmaku::Pool;

use super::post::{has_room, place};
use super::{Decision, Desk, Lookup, Rules, lookup, outcome};
use crate::ask::{Action, Answer, Moderated, Refusal};
use crate::comment::{Actor, Comment, Index, Role, State, Writer};
use crate::id::CommentId;
use crate::outcome::{Act, Change};
use crate::rows::{self, MarkKind};
use crate::top::Arrival;

impl Rules {
    pub(super) fn recall(&self, desk: &mut Desk<'_>, id: CommentId, actor: &Actor) -> Decision {
        let comment = match lookup(desk, id) {
            Lookup::Wait => return Decision::Wait,
            Lookup::None => return Decision::refused(Refusal::NotFound),
            Lookup::Found(comment) => comment,
        };
        if comment.content.writer != Writer::User(actor.user.clone()) {
            return Decision::refused(Refusal::NotYours);
        }
        let before = comment.index;
        if before.state == State::Recalled {
            return Decision::Done(Answer::Comment(comment), None);
        }
        let within_ms = self.options.recall_within.as_millis() as i64;
        let age_ms = desk.now.0 - comment.content.sent_ms.0;
        if age_ms > within_ms {
            return Decision::refused(Refusal::TooLate { age_ms, within_ms });
        }
        let after = Index { state: State::Recalled, ..before };
        changed(desk, Act::Recall, Some(actor), &comment, after, None)
    }

    pub(super) fn moderate(
        &self,
        desk: &mut Desk<'_>,
        id: CommentId,
        action: Action,
        actor: &Actor,
    ) -> Decision {
        if actor.role == Role::Viewer {
            return Decision::refused(Refusal::NotYours);
        }
        let comment = match lookup(desk, id) {
            Lookup::Wait => return Decision::Wait,
            Lookup::None => return Decision::refused(Refusal::NotFound),
            Lookup::Found(comment) => comment,
        };
        let mut after = comment.index;
        match moderated(desk, id, action, &mut after) {
            Err(refusal) => Decision::refused(refusal),
            Ok(_) if after == comment.index => {
                Decision::Done(Answer::Moderated(Moderated { comment, seq: None }), None)
            }
            Ok(evicted) => {
                match changed(desk, Act::Moderate, Some(actor), &comment, after, evicted) {
                    Decision::Done(Answer::Comment(comment), outcome) => {
                        let seq = Some(desk.next);
                        Decision::Done(Answer::Moderated(Moderated { comment, seq }), outcome)
                    }
                    other => other,
                }
            }
        }
    }

    pub(super) fn judge(&self, desk: &mut Desk<'_>, id: CommentId, shown: bool) -> Decision {
        let comment = match lookup(desk, id) {
            Lookup::Wait => return Decision::Wait,
            Lookup::None => return Decision::refused(Refusal::NotFound),
            Lookup::Found(comment) => comment,
        };
        let mut after = comment.index;
        if after.state != State::Waiting {
            return Decision::Done(Answer::Comment(comment), None);
        }
        let action = if shown { Action::Restore } else { Action::Block };
        match moderated(desk, id, action, &mut after) {
            Err(refusal) => Decision::refused(refusal),
            Ok(evicted) => changed(desk, Act::Judge, None, &comment, after, evicted),
        }
    }

    pub(super) fn like(&self, desk: &mut Desk<'_>, id: CommentId, actor: &Actor) -> Decision {
        let (comment, mark) = match self.marked(desk, MarkKind::Like, id, actor, 0) {
            Ok(marked) => marked,
            Err(decision) => return *decision,
        };
        let before = comment.index;
        let after = Index { likes: before.likes.saturating_add(1), ..before };
        changed(desk, Act::Like, Some(actor), &comment, after, Some(mark))
    }

    pub(super) fn report(
        &self,
        desk: &mut Desk<'_>,
        id: CommentId,
        actor: &Actor,
        reason: u8,
    ) -> Decision {
        let (comment, mark) = match self.marked(desk, MarkKind::Report, id, actor, reason) {
            Ok(marked) => marked,
            Err(decision) => return *decision,
        };
        let before = comment.index;
        let mut after = Index { reports: before.reports.saturating_add(1), ..before };
        if after.reports >= self.options.report_threshold && !after.reviewed {
            after.state = State::Reported;
        }
        changed(desk, Act::Report, Some(actor), &comment, after, Some(mark))
    }

    /// A comment that is shown, and the mark of a user who made none of it yet.
    fn marked(
        &self,
        desk: &mut Desk<'_>,
        kind: MarkKind,
        id: CommentId,
        actor: &Actor,
        reason: u8,
    ) -> Result<(Arc<Comment>, Change), Box<Decision>> {
        let user = self.keys.user(actor.user.as_str());
        let Some(comment) = desk.video.get(id).cloned() else {
            return Err(Box::new(Decision::refused(Refusal::NotFound)));
        };
        match desk.reads.row(rows::mark_key(kind, id, user)) {
            None => Err(Box::new(Decision::Wait)),
            Some(Some(_)) => Err(Box::new(Decision::refused(Refusal::Again))),
            Some(None) => Ok((comment, Change::Mark { kind, id, user, reason })),
        }
    }
}

/// The outcome that gives `comment` the index `after`, and what else happens.
pub(super) fn changed(
    desk: &Desk<'_>,
    act: Act,
    actor: Option<&Actor>,
    comment: &Comment,
    after: Index,
    also: Option<Change>,
) -> Decision {
    let Comment { id, index: before, content } = comment;
    let comes_back = after.is_shown() && !before.is_shown();
    let back = comes_back.then(|| content.clone());
    let change = Change::Index { id: *id, before: *before, after, content: back };
    let changes = [change].into_iter().chain(also).collect();
    let now = Arc::new(Comment { index: after, ..comment.clone() });
    Decision::Done(Answer::Comment(now), Some(outcome(desk, act, actor, changes)))
}

/// Does `action` to the index; answers what happens to another comment for it.
pub(super) fn moderated(
    desk: &Desk<'_>,
    id: CommentId,
    action: Action,
    index: &mut Index,
) -> Result<Option<Change>, Refusal> {
    match action {
        Action::Rank(rank) => {
            let raised = rank > index.rank;
            index.rank = rank;
            if index.is_shown() && index.counts() && desk.video.top().is_outranked((rank, id)) {
                // At once, so that what a stretch shows is always its best.
                index.state = State::Overflow;
                return Ok(None);
            }
            if !raised || index.state != State::Overflow {
                return Ok(None);
            }
            let full = Refusal::Conflict("the limit leaves no room for another of this rank");
            index.state = State::Shown;
            match desk.video.top().arrive((rank, id)) {
                Arrival::Hidden => Err(full),
                Arrival::Shown(Some((evicted, _))) if evicted >= rank => Err(full),
                Arrival::Shown(_) => Ok(place(desk, id, index)),
            }
        }
        Action::Hide | Action::Block if index.state == State::Recalled => {
            Err(Refusal::Is(State::Recalled))
        }
        Action::Hide => {
            index.state = State::Hidden;
            Ok(None)
        }
        Action::Block => {
            index.state = State::Blocked;
            Ok(None)
        }
        Action::Restore => match index.state {
            State::Shown => Ok(None),
            // It comes back by itself; its writer took it back for good.
            State::Overflow | State::Recalled => Err(Refusal::Is(index.state)),
            State::Hidden | State::Blocked | State::Reported | State::Waiting => {
                index.state = State::Shown;
                index.reviewed |= index.reports > 0;
                has_room(desk, index)?;
                Ok(place(desk, id, index))
            }
        },
        Action::Move(pool) => {
            if index.is_special() || pool == Pool::Special {
                return Err(Refusal::Conflict("scripts and BAS stay in the special pool"));
            }
            if index.pool == pool {
                return Ok(None);
            }
            index.pool = pool;
            match index.state {
                State::Shown | State::Overflow => {
                    index.state = State::Shown;
                    has_room(desk, index)?;
                    Ok(place(desk, id, index))
                }
                _ => Ok(None),
            }
        }
    }
}
