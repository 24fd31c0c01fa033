//! What outcomes change at rest, until it is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tideline_types::Seq;

use crate::comment::{Index, State};
use crate::id::CommentId;
use crate::rows::Rows;

/// What an outcome changes at rest.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    /// Rows of the video.
    pub rows: Rows,
    /// Of each user here it must say elsewhere whether they have a comment on
    /// this video.
    pub users: BTreeMap<u64, bool>,
    /// Users who were erased, and the number of that: what the log holds of
    /// them up to there is to be emptied.
    pub erased: BTreeMap<u64, Seq>,
    /// Comments here of which it must say elsewhere whether they are due to be
    /// looked at.
    pub due: BTreeMap<CommentId, Option<State>>,
    /// Of each work here: how many comments this video has for it, and shows.
    pub works: BTreeMap<Arc<str>, Option<(u64, u64)>>,
    /// Bytes in `rows`, about.
    pub bytes: usize,
}

impl Rest {
    pub(super) fn put(&mut self, key: Bytes, value: Vec<u8>) {
        self.bytes += key.len() + value.len() + ROW_BYTES;
        self.rows.insert(key, Some(value.into()));
    }

    pub(super) fn delete(&mut self, key: Bytes) {
        self.bytes += key.len() + ROW_BYTES;
        self.rows.insert(key, None);
    }

    /// A comment was of `before`, if it was there, and is of `after`, if it is.
    pub(super) fn note_due(
        &mut self,
        id: CommentId,
        before: Option<&Index>,
        after: Option<&Index>,
    ) {
        let due = |index: Option<&Index>| index.map(|i| i.state).filter(|state| state.is_due());
        let (before, after) = (due(before), due(after));
        if before != after {
            self.bytes += ROW_BYTES;
            self.due.insert(id, after);
        }
    }

    /// Adds what came later.
    pub fn merge(&mut self, later: Self) {
        self.rows.extend(later.rows);
        self.users.extend(later.users);
        self.erased.extend(later.erased);
        self.due.extend(later.due);
        self.works.extend(later.works);
        self.bytes += later.bytes;
    }
}

/// What a row takes in memory besides its bytes, about.
const ROW_BYTES: usize = 96;
