//! How outcomes change a video, and what they change at rest.
//!
//! Reads no clock, no row and no setting that decides: so a replay comes to
//! what was there before.

use std::sync::Arc;

use tideline_types::Seq;
use tideline_types::limits::FEED_EVENTS_MAX;

use super::{Event, LATEST_MAX, Rest, Video};
use crate::comment::{Comment, Content, Index, State, Writer};
use crate::filters::Filters;
use crate::id::CommentId;
use crate::options::Keys;
use crate::outcome::{Change, Outcome};
use crate::rows;

impl Video {
    /// Takes an outcome into account. `rest` gets what it changes at rest, but
    /// for the facts, which every image has.
    pub fn apply(&mut self, seq: Seq, outcome: &Outcome, keys: &Keys, rest: &mut Rest) {
        for change in &outcome.changes {
            self.change(seq, change, keys, rest);
        }
    }

    /// Of an outcome that the rows have applied: what lies under other keys,
    /// which may not have come through the same crash, is to be written again.
    pub(crate) fn apply_elsewhere(seq: Seq, outcome: &Outcome, keys: &Keys, rest: &mut Rest) {
        for change in &outcome.changes {
            match change {
                Change::New { id, index, content } => {
                    rest.note_due(*id, None, Some(index));
                    if let Writer::User(user) = &content.writer {
                        rest.users.insert(keys.user(user.as_str()), true);
                    }
                }
                Change::Index { id, before, after, .. } => {
                    rest.note_due(*id, Some(before), Some(after));
                }
                Change::Gone { id, before, .. } => rest.note_due(*id, Some(before), None),
                Change::Forgotten { user } => {
                    rest.users.insert(*user, false);
                    rest.erased.insert(*user, seq);
                }
                Change::Count { .. } | Change::Work { .. } => note_work(change, rest),
                _ => {}
            }
        }
    }

    /// Whether [`Video::apply_elsewhere`] may find anything in an outcome.
    pub(crate) fn is_elsewhere(outcome: &Outcome) -> bool {
        outcome.changes.iter().any(|change| match change {
            Change::New { index, content, .. } => {
                index.state.is_due() || matches!(content.writer, Writer::User(_))
            }
            Change::Index { before, after, .. } => before.state.is_due() || after.state.is_due(),
            Change::Gone { .. } | Change::Forgotten { .. } => true,
            Change::Count { work, .. } => work.is_some(),
            Change::Work { .. } => true,
            Change::Mark { .. }
            | Change::Settings { .. }
            | Change::Filters { .. }
            | Change::Sent(_) => false,
        })
    }

    fn change(&mut self, seq: Seq, change: &Change, keys: &Keys, rest: &mut Rest) {
        match change {
            Change::New { id, index, content } => {
                self.new_rows(*id, index, content, keys, rest);
                rest.note_due(*id, None, Some(index));
                self.total += 1;
                if self.enter(*id, index, || Some(content.clone())) {
                    self.tell_shown(seq, *id);
                }
            }
            Change::Index { id, before, after, content } => {
                let (from, to) = (rows::index_key(*id, before), rows::index_key(*id, after));
                if from != to {
                    rest.delete(from);
                }
                rest.put(to, rows::encode_index(after));
                rest.note_due(*id, Some(before), Some(after));
                let was = self.leave(*id, before);
                let was_shown = was.is_some();
                let content = || content.clone().or_else(|| Some(was?.content.clone()));
                let is_shown = self.enter(*id, after, content);
                match (was_shown, is_shown) {
                    (true, true) => {
                        if before.rank > after.rank {
                            self.top.reordered();
                        }
                        if let Some(comment) = self.get(*id).cloned() {
                            self.tell(seq, Event::Changed(comment));
                        }
                    }
                    (false, true) => self.tell_shown(seq, *id),
                    (true, false) => self.tell(seq, Event::Hidden(*id)),
                    (false, false) => {}
                }
            }
            Change::Mark { kind, id, user, reason } => {
                rest.put(rows::mark_key(*kind, *id, *user), vec![*reason]);
            }
            Change::Gone { id, before, user } => {
                rest.delete(rows::index_key(*id, before));
                rest.note_due(*id, Some(before), None);
                rest.delete(rows::content_key(*id));
                rest.delete(rows::own_key(*user, *id));
                if before.is_special() {
                    rest.delete(rows::text_key(*id));
                }
                self.writers.remove(user);
                self.total = self.total.saturating_sub(1);
                if self.leave(*id, before).is_some() {
                    self.tell(seq, Event::Hidden(*id));
                }
            }
            Change::Forgotten { user } => {
                rest.users.insert(*user, false);
                rest.erased.insert(*user, seq);
            }
            Change::Settings { after, .. } => {
                self.settings = *after;
                self.limit_changed();
                self.tell(seq, Event::Settings(*after));
            }
            Change::Filters { after: list, .. } => {
                rest.put(rows::FILTERS_KEY.into(), list.as_bytes().to_vec());
                self.filters = Filters::of_rest(list);
                self.filters_json = Some(Arc::clone(list));
            }
            Change::Sent(sent) => rest.put(rows::SENT_KEY.into(), sent.encode()),
            Change::Count { .. } => note_work(change, rest),
            Change::Work { after, .. } => {
                match after {
                    Some(work) => rest.put(rows::WORK_KEY.into(), work.as_bytes().to_vec()),
                    None => rest.delete(rows::WORK_KEY.into()),
                }
                self.work.clone_from(after);
                note_work(change, rest);
            }
        }
    }

    fn new_rows(
        &mut self,
        id: CommentId,
        index: &Index,
        content: &Content,
        keys: &Keys,
        rest: &mut Rest,
    ) {
        rest.put(rows::index_key(id, index), rows::encode_index(index));
        if index.is_special() {
            rest.put(rows::text_key(id), content.text.as_bytes().to_vec());
            let apart = Content { text: Arc::from(""), ..content.clone() };
            rest.put(rows::content_key(id), rows::encode_content(id, &apart));
        } else {
            rest.put(rows::content_key(id), rows::encode_content(id, content));
        }
        if let Writer::User(user) = &content.writer {
            let hash = keys.user(user.as_str());
            let client = content.client.map(|client| client.to_be_bytes().to_vec());
            rest.put(rows::own_key(hash, id), client.unwrap_or_default());
            rest.users.insert(hash, true);
            if let Some(latest) = self.writers.get_mut(&hash) {
                latest.push((id, content.client));
                if latest.len() > LATEST_MAX {
                    latest.remove(0);
                }
            }
        }
    }

    /// A comment is of `index` from now on; answers whether it is shown.
    pub(super) fn enter(
        &mut self,
        id: CommentId,
        index: &Index,
        content: impl FnOnce() -> Option<Content>,
    ) -> bool {
        match index.state {
            State::Shown => {
                let Some(mut content) = content() else { return false };
                if let Some(index) = self.get(id).map(|there| there.index) {
                    self.leave(id, &index);
                }
                match index {
                    _ if index.is_special() => {
                        content.text = Arc::from("");
                        self.specials += 1;
                    }
                    _ if index.counts() => self.top.show((index.rank, id)),
                    _ => self.subtitles += 1,
                }
                self.comment_bytes += bytes_of(&content);
                let comment = Comment { id, index: *index, content };
                self.comments.insert((id.stretch(), id), Arc::new(comment));
                true
            }
            State::Overflow => {
                self.top.overflowed((index.rank, id));
                false
            }
            State::Hidden if broken!(HiddenComesBack) => {
                self.top.overflowed((index.rank, id));
                false
            }
            _ => false,
        }
    }

    /// A comment is no longer of `index`; answers it if it was shown.
    fn leave(&mut self, id: CommentId, index: &Index) -> Option<Arc<Comment>> {
        match index.state {
            State::Shown => {
                let comment = self.comments.remove(&(id.stretch(), id))?;
                self.comment_bytes -= bytes_of(&comment.content);
                match &comment.index {
                    index if index.is_special() => self.specials -= 1,
                    index if index.counts() => self.top.unshow((index.rank, id)),
                    _ => self.subtitles -= 1,
                }
                Some(comment)
            }
            State::Overflow => {
                self.top.left_overflow((index.rank, id));
                None
            }
            State::Hidden if broken!(HiddenComesBack) => {
                self.top.left_overflow((index.rank, id));
                None
            }
            _ => None,
        }
    }

    /// The limit may be another one: the queue follows up.
    pub(super) fn limit_changed(&mut self) {
        let limit = self.limit();
        if !broken!(LimitForgotten) || limit > self.top.limit() {
            self.top.set(self.scope, limit);
        }
    }

    fn tell_shown(&mut self, seq: Seq, id: CommentId) {
        if let Some(comment) = self.get(id).cloned() {
            self.tell(seq, Event::Shown(comment));
        }
    }

    fn tell(&mut self, seq: Seq, event: Event) {
        self.feed.push_back((seq, event));
        if self.feed.len() > FEED_EVENTS_MAX
            && let Some((dropped, _)) = self.feed.pop_front()
        {
            self.feed_from = dropped;
        }
    }
}

/// What a count, or another work, changes under the keys of works.
fn note_work(change: &Change, rest: &mut Rest) {
    match change {
        Change::Count { total, shown, work: Some(work) } => {
            rest.works.insert(Arc::clone(work), Some((*total, *shown)));
        }
        Change::Work { before: Some(work), .. } => _ = rest.works.insert(Arc::clone(work), None),
        _ => {}
    }
}

/// What a comment takes in memory, about.
fn bytes_of(content: &Content) -> usize {
    size_of::<Comment>() + 64 + content.text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outcome::any_outcome;

    proptest! {
        #[test]
        fn what_is_said_to_lie_in_the_videos_rows_alone_does(outcome in any_outcome()) {
            let mut rest = Rest::default();
            Video::apply_elsewhere(Seq(7), &outcome, &Keys([7; 16]), &mut rest);
            let any = !rest.users.is_empty()
                || !rest.erased.is_empty()
                || !rest.due.is_empty()
                || !rest.works.is_empty();
            prop_assert!(!any || Video::is_elsewhere(&outcome));
            prop_assert!(rest.rows.is_empty());
        }
    }
}
