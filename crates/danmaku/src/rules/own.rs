//! What a user has under a video: their own comments, and none of them any
//! more.

use std::sync::Arc;

use tideline_types::UserId;
use tideline_types::limits::OWN_ROWS_MAX;

use super::{Decision, Desk, Lookup, Progress, Rules, lookup, outcome};
use crate::ask::Answer;
use crate::comment::{Comment, Writer};
use crate::id::CommentId;
use crate::outcome::{Act, Change};
use crate::rows;

impl Rules {
    pub(super) fn own(
        &self,
        desk: &mut Desk<'_>,
        user: &UserId,
        below: Option<CommentId>,
        limit: usize,
    ) -> Decision {
        match self.comments_of(desk, user, below, limit.clamp(1, OWN_ROWS_MAX)) {
            Some(comments) => Decision::Done(Answer::Own(comments), None),
            None => Decision::Wait,
        }
    }

    pub(super) fn erase(
        &self,
        desk: &mut Desk<'_>,
        user: &UserId,
        progress: &mut Progress,
    ) -> Decision {
        let Some(mut comments) = self.comments_of(desk, user, None, OWN_ROWS_MAX) else {
            return Decision::Wait;
        };
        comments.retain(|comment| comment.index.is_shown() || !broken!(ErasedInPart));
        let user = self.keys.user(user.as_str());
        if comments.is_empty() {
            let forgotten = outcome(desk, Act::Erase, None, vec![Change::Forgotten { user }]);
            return Decision::Done(Answer::Erased(progress.erased), Some(forgotten));
        }
        progress.erased += comments.len() as u64;
        let gone = |c: &Arc<Comment>| Change::Gone { id: c.id, before: c.index, user };
        let changes = comments.iter().map(gone).collect();
        Decision::Again(outcome(desk, Act::Erase, None, changes))
    }

    /// The user's comments, newest first; `None` while they are being read.
    fn comments_of(
        &self,
        desk: &mut Desk<'_>,
        user: &UserId,
        below: Option<CommentId>,
        limit: usize,
    ) -> Option<Vec<Arc<Comment>>> {
        let range = rows::own_range(self.keys.user(user.as_str()), below);
        let found = desk.reads.scan(range, true, limit)?;
        let ids: Vec<CommentId> =
            found.iter().filter_map(|(key, _)| rows::id_of(key).ok()).collect();
        let mut comments = Vec::with_capacity(ids.len());
        for id in ids {
            if let Lookup::Found(comment) = lookup(desk, id)
                && comment.content.writer == Writer::User(user.clone())
            {
                comments.push(comment);
            }
        }
        if desk.reads.is_waiting() { None } else { Some(comments) }
    }
}
