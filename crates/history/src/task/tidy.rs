//! Frees what has run out at rest: remembered retries after their window, rows
//! after their retention.
//!
//! No answer depends on it. One walk finds the users, each of them is loaded
//! and comes to rest anew.

use tideline_store::{StoreError, TableName};

use super::{Driver, Waiter};
use crate::owner::Op;
use crate::rows::{self, Owner};

impl Driver {
    /// Frees what has run out.
    pub(super) fn tidy_due(&self) {
        if let Err(error) = self.tidy() {
            tracing::error!(%error, "cannot free what has run out; again in some hours");
        }
    }

    /// Asks for every user at rest of whom something has run out; they come to
    /// rest anew soon after. Answers how many there were. Blocks.
    pub(crate) fn tidy(&self) -> Result<usize, StoreError> {
        let now = self.now();
        let mut found = 0;
        let mut from: Option<Vec<u8>> = None;
        loop {
            let users = self.untidy_after(from.as_deref(), now)?;
            for (_, user) in &users {
                let (tell, told) = tokio::sync::oneshot::channel();
                self.view.step(self.view.partition_of(user), |partition, effects| {
                    partition.owner.ask(now, user, Op::Tidy, Waiter::Call(tell), effects);
                });
                // One at a time: what nobody waits for crowds nobody out.
                _ = told.blocking_recv();
                if self.is_closed() {
                    return Ok(found);
                }
            }
            found += users.len();
            match users.into_iter().last() {
                Some((last, _)) => from = Some(last),
                None => return Ok(found),
            }
        }
    }

    /// The next users, by partition key, of whom something has run out.
    fn untidy_after(
        &self,
        after: Option<&[u8]>,
        now: tideline_types::Millis,
    ) -> Result<Vec<(Vec<u8>, String)>, StoreError> {
        let mut users: Vec<(Vec<u8>, String)> = Vec::new();
        self.view.table().walk(TableName::History, &[], &mut |row| {
            let key = row.partition_key.as_ref();
            let seen = after.is_some_and(|after| key <= after)
                || users.last().is_some_and(|(last, _)| last == key);
            if !seen
                && rows::is_untidy(&row.sort_key, &row.value, &self.rules.kinds, now)
                && let Ok(Owner::User(user)) = rows::owner_of(key)
            {
                users.push((key.to_vec(), user));
            }
            users.len() < USERS_A_WALK
        })?;
        Ok(users)
    }
}

/// Users that one walk collects.
const USERS_A_WALK: usize = 65_536;
