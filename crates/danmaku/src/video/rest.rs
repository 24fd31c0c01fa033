//! What outcomes change at rest, until it is there.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_types::Seq;

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

    /// Adds what came later.
    pub fn merge(&mut self, later: Self) {
        self.rows.extend(later.rows);
        self.users.extend(later.users);
        self.erased.extend(later.erased);
        self.bytes += later.bytes;
    }
}

/// What a row takes in memory besides its bytes, about.
const ROW_BYTES: usize = 96;
