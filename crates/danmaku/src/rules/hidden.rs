//! What of a video is hidden, for who may show it again.

use std::sync::Arc;

use tideline_types::limits::OWN_ROWS_MAX;

use super::{Decision, Desk, Lookup, whole};
use crate::ask::Answer;
use crate::comment::Comment;
use crate::id::CommentId;
use crate::rows;

pub(super) fn hidden(desk: &mut Desk<'_>, after: Option<CommentId>, limit: usize) -> Decision {
    let limit = limit.clamp(1, OWN_ROWS_MAX);
    let Some(found) = desk.reads.scan(rows::hidden_range(after), false, limit) else {
        return Decision::Wait;
    };
    let ids: Vec<CommentId> = found.iter().filter_map(|(key, _)| rows::id_of(key).ok()).collect();
    let mut comments: Vec<Arc<Comment>> = Vec::with_capacity(ids.len());
    for id in ids {
        if let Lookup::Found(comment) = whole(desk, id) {
            comments.push(comment);
        }
    }
    match desk.reads.is_waiting() {
        true => Decision::Wait,
        false => Decision::Done(Answer::Own(comments), None),
    }
}
