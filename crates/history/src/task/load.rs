//! Reads users who are not in memory.

use tideline_queue::view;

use super::Users;
use crate::cold;
use crate::owner::SlotId;
use crate::rules::Rules;

/// A user whose cold rows are wanted.
pub(super) struct Wanted {
    pub(super) slot: SlotId,
    pub(super) generation: u32,
    pub(super) user: Box<str>,
}

/// Reads each user's rows and gives them to the owner in one step.
pub(super) fn load(rules: &Rules, driver: &view::Driver<Users>, at: usize, wanted: Vec<Wanted>) {
    let table = &**driver.table();
    let read = wanted.into_iter().map(|Wanted { slot, generation, user }| {
        let hash = rules.user_hash(&user);
        let rows = view::guarded("history", || cold::read(table, &user, &hash));
        if let Err(error) = &rows {
            tracing::error!(partition = at, %error, "cannot read a user's rows");
        }
        (slot, generation, rows)
    });
    let read: Vec<_> = read.collect();
    let now = driver.now();
    driver.step(at, |partition, effects| {
        for (slot, generation, rows) in read {
            partition.owner.loaded(now, slot, generation, rows, effects);
        }
    });
}
