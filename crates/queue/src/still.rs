//! Holding still, so that a copy of the table and a later copy of the journal
//! fit together: what a view has applied is still in the log, and a topic that
//! the table knows has its streams.

use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

use crate::Queue;

/// While it lives nothing is freed, and no topic is made or deleted. Writing
/// and reading go on.
pub struct Still<'a> {
    _freeing: RwLockWriteGuard<'a, ()>,
    _changing: MutexGuard<'a, u64>,
}

impl Queue {
    /// Waits until nothing is being freed and no topic is being changed, and
    /// keeps it so. Callers who make or delete a topic wait for its end. Blocks.
    pub fn hold_still(&self) -> Still<'_> {
        // In this order: nobody who changes a topic frees by retention.
        let changing = self.changing();
        let freeing = self.inner.freeing.write().unwrap_or_else(PoisonError::into_inner);
        Still { _freeing: freeing, _changing: changing }
    }

    /// Leave to free records, unless somebody holds still.
    pub(crate) fn may_free(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.inner.freeing.try_read().ok()
    }
}
