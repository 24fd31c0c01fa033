//! Writes that may be asked for again: what they came to, for the last few
//! thousand of a subtree.
//!
//! A client that lost the answer to a create sends it again under the same
//! operation id and is told what the first one made. That holds until 4,096
//! later writes with an id have gone through the same subtree.

use std::collections::{BTreeMap, VecDeque};

use tideline_types::Seq;
use tideline_types::limits::META_RETRIES_KEPT;

use crate::commit::OpId;
use crate::path::Path;

/// What a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its number; reads that wait for it see it.
    pub seq: Seq,
    /// The nodes that it created, in order.
    pub created: Vec<Path>,
}

/// The last writes that had an id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    by_id: BTreeMap<OpId, Written>,
    order: VecDeque<OpId>,
}

impl Done {
    pub(crate) fn find(&self, op: OpId) -> Option<&Written> {
        #[cfg(feature = "sabotage")]
        if crate::sabotage::is(crate::sabotage::Broken::RetryDoneTwice) {
            return None;
        }
        self.by_id.get(&op)
    }

    /// Remembers a write, and forgets the oldest over the limit. An id that is
    /// there keeps its place.
    pub(crate) fn remember(&mut self, op: OpId, written: Written) {
        if self.by_id.insert(op, written).is_none() {
            self.order.push_back(op);
        }
        while self.order.len() > META_RETRIES_KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.by_id.remove(&oldest);
            }
        }
    }

    /// All, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (OpId, &Written)> {
        self.order.iter().filter_map(|op| Some((*op, self.by_id.get(op)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_over_the_limit() {
        let mut done = Done::default();
        for n in 0..=META_RETRIES_KEPT as u64 {
            done.remember(OpId(n.into()), Written { seq: Seq(n), created: Vec::new() });
        }
        assert_eq!(done.find(OpId(0)), None);
        assert_eq!(done.find(OpId(1)).map(|written| written.seq), Some(Seq(1)));
        assert_eq!(done.iter().count(), META_RETRIES_KEPT);
    }
}
