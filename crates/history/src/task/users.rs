//! Every user there is, for exports: those at rest, and those in memory that
//! are not at rest yet.

use std::collections::HashSet;

use tideline_store::{StoreError, TableName};

use super::Driver;
use crate::rows::{self, Owner};

impl Driver {
    /// Shows each user that has, or may have, anything, once, in no order that
    /// means something, until `visit` says false. A user whose first mark
    /// comes during the call may be left out. Blocks.
    pub(crate) fn users(&self, visit: &mut dyn FnMut(String) -> bool) -> Result<(), StoreError> {
        let mut shown = HashSet::new();
        let table = self.view.table();
        for at in 0..usize::from(self.partitions()) {
            let in_memory: Vec<String> =
                self.view.look(at, |owner| owner.users().map(str::to_owned).collect());
            for user in in_memory {
                let key = rows::partition_key(&user);
                let at_rest = table.scan(TableName::History, &key, &[], None, false, 1)?;
                if !at_rest.is_empty() {
                    continue;
                }
                if !visit(user.clone()) {
                    return Ok(());
                }
                shown.insert(user);
            }
        }
        let mut before = Vec::new();
        table.walk(TableName::History, &[], &mut |row| {
            if row.partition_key == before {
                return true;
            }
            before = row.partition_key.to_vec();
            match rows::owner_of(&row.partition_key) {
                Ok(Owner::User(user)) if !shown.contains(&user) => visit(user),
                // What stays of an erased user names nobody, and a key that
                // does not read is found by a check.
                _ => true,
            }
        })
    }
}
