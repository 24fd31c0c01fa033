//! Undoing what somebody did: what was there before is put back, if what they
//! made of it still stands. An undo is logged as what it does, so it can be
//! undone as well.

use super::moderate::{changed, moderated};
use super::{Decision, Desk, Lookup, Rules, lookup, outcome};
use crate::ask::{Action, Answer, Refusal};
use crate::comment::{Actor, Index, Role, State};
use crate::id::CommentId;
use crate::outcome::{Act, Change, Outcome};

const SINCE: Refusal = Refusal::Conflict("it was changed again since");

impl Rules {
    pub(super) fn undo(&self, desk: &mut Desk<'_>, done: &Outcome, actor: &Actor) -> Decision {
        if actor.role == Role::Viewer {
            return Decision::refused(Refusal::NotYours);
        }
        match (done.act, done.changes.first()) {
            (Act::Recall, _) => Decision::refused(Refusal::Is(State::Recalled)),
            (Act::Erase, _) => Decision::refused(Refusal::Conflict("an erase is for good")),
            // What follows the first is the queue's, which comes to rest by itself.
            (_, Some(Change::Index { id, before, after, .. })) => {
                undo_index(desk, *id, before, after, actor)
            }
            (_, Some(Change::Settings { before, after })) => {
                if desk.video.settings() != after {
                    return Decision::refused(SINCE);
                }
                put_back(desk, actor, Change::Settings { before: *after, after: *before })
            }
            (_, Some(Change::Filters { before, after })) => {
                if desk.video.filters_json() != Some(after) {
                    return Decision::refused(SINCE);
                }
                let none = || "[]".into();
                let (before, after) = (after.clone(), before.clone().unwrap_or_else(none));
                put_back(desk, actor, Change::Filters { before: Some(before), after })
            }
            _ => Decision::refused(Refusal::Conflict("there is nothing in it to undo")),
        }
    }
}

fn put_back(desk: &Desk<'_>, actor: &Actor, change: Change) -> Decision {
    let done = outcome(desk, Act::Undo, Some(actor), vec![change]);
    Decision::Done(Answer::Done, Some(done))
}

fn undo_index(
    desk: &mut Desk<'_>,
    id: CommentId,
    before: &Index,
    after: &Index,
    actor: &Actor,
) -> Decision {
    let comment = match lookup(desk, id) {
        Lookup::Wait => return Decision::Wait,
        Lookup::None => return Decision::refused(Refusal::NotFound),
        Lookup::Found(comment) => comment,
    };
    let now = comment.index;
    if (now.rank, now.pool, settled(now.state)) != (after.rank, after.pool, settled(after.state)) {
        return Decision::refused(SINCE);
    }
    let mut index = now;
    let evicted = match way_back(before, &now) {
        None => Ok(None),
        Some(action) => moderated(desk, id, action, &mut index),
    };
    if before.state.is_due() {
        index.state = before.state;
        index.reviewed = before.reviewed;
    }
    match evicted {
        Err(refusal) => Decision::refused(refusal),
        Ok(_) if index == now => Decision::Done(Answer::Done, None),
        Ok(evicted) => match changed(desk, Act::Undo, Some(actor), &comment, index, evicted) {
            Decision::Done(_, outcome) => Decision::Done(Answer::Done, outcome),
            other => other,
        },
    }
}

/// The queue moves a comment between these two by itself.
fn settled(state: State) -> State {
    if state == State::Overflow { State::Shown } else { state }
}

/// What is to be done to a comment that is `now`, so that it is as `before`.
fn way_back(before: &Index, now: &Index) -> Option<Action> {
    if before.pool != now.pool {
        return Some(Action::Move(before.pool));
    }
    if before.rank != now.rank {
        return Some(Action::Rank(before.rank));
    }
    match settled(before.state) {
        state if state == settled(now.state) => None,
        State::Hidden => Some(Action::Hide),
        State::Blocked => Some(Action::Block),
        State::Shown => Some(Action::Restore),
        State::Reported | State::Waiting | State::Recalled | State::Overflow => None,
    }
}
