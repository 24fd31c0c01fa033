//! When sessions end: the owner's own reckoning, kept in no log.
//!
//! Time comes as `ticks` of a monotone clock and counts only while the owner
//! runs: a gap between two looks longer than [`STEP_MS_MAX`] counts as that
//! much, so that an owner that was stopped, or a new one, ends nobody who had
//! no chance to renew. So a session may end late, and never early. That it
//! has ended is a commit; this only says when to propose one.

use std::collections::{BTreeMap, BTreeSet};

use crate::commit::SessionId;

/// What passes between two looks, at most, whatever the clock says.
pub const STEP_MS_MAX: u64 = 1_000;

/// The leases of one subtree.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    /// The owner's time: what has passed while it ran.
    now_ms: u64,
    last_ticks: Option<u64>,
    ends: BTreeMap<SessionId, u64>,
    by_end: BTreeSet<(u64, SessionId)>,
}

impl Leases {
    /// Time passes.
    pub fn advance(&mut self, ticks: u64) {
        let passed = ticks.saturating_sub(self.last_ticks.unwrap_or(ticks));
        self.now_ms += passed.min(STEP_MS_MAX);
        self.last_ticks = Some(ticks);
    }

    /// A session begins, goes on for `lease_ms` from now, or is found by a new
    /// owner.
    pub fn renew(&mut self, id: SessionId, lease_ms: u32) {
        self.remove(id);
        let end = self.now_ms + u64::from(lease_ms);
        self.ends.insert(id, end);
        self.by_end.insert((end, id));
    }

    /// A session has ended.
    pub fn remove(&mut self, id: SessionId) {
        if let Some(end) = self.ends.remove(&id) {
            self.by_end.remove(&(end, id));
        }
    }

    /// The sessions whose time has run out, the longest ago first.
    pub fn expired(&self) -> impl Iterator<Item = SessionId> {
        self.by_end.iter().take_while(|(end, _)| *end <= self.now_ms).map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expired(leases: &Leases) -> Vec<u64> {
        leases.expired().map(|id| id.0).collect()
    }

    #[test]
    fn a_lease_ends_when_it_was_not_renewed_in_its_time() {
        let mut leases = Leases::default();
        leases.advance(100);
        leases.renew(SessionId(1), 500);
        leases.renew(SessionId(2), 500);
        leases.advance(400);
        leases.renew(SessionId(1), 500);
        leases.advance(600);
        assert_eq!(expired(&leases), [2]);
        leases.remove(SessionId(2));
        leases.advance(900);
        assert_eq!(expired(&leases), [1]);
    }

    #[test]
    fn an_owner_that_was_stopped_ends_nobody() {
        let mut leases = Leases::default();
        leases.advance(0);
        leases.renew(SessionId(1), 2_000);
        leases.advance(3_600_000);
        assert_eq!(expired(&leases), [0; 0]);
        leases.advance(3_600_900);
        assert_eq!(expired(&leases), [0; 0]);
        leases.advance(3_601_000);
        assert_eq!(expired(&leases), [1]);
    }

    #[test]
    fn a_clock_that_goes_back_takes_no_time_away() {
        let mut leases = Leases::default();
        leases.advance(5_000);
        leases.renew(SessionId(1), 1_000);
        leases.advance(1_000);
        leases.advance(1_900);
        assert_eq!(expired(&leases), [0; 0]);
        leases.advance(2_000);
        assert_eq!(expired(&leases), [1]);
    }
}
