//! What is wrong with the subtrees at rest of a folder that no server has open.

use std::collections::BTreeSet;

use tideline_store::{Place, StoreError, Table};
use tideline_types::{Epoch, PartitionId, Seq};

use crate::{TOPIC, cold};

/// What one partition has at rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Subtrees, each read as a whole.
    pub subtrees: u64,
    /// Nodes in them.
    pub nodes: u64,
    /// What is wrong, for people.
    pub findings: Vec<String>,
}

/// Reads every snapshot of `partition`, whose log ends with `last` of `epoch`.
///
/// # Errors
/// What the engine says. A snapshot that does not read is a finding, and the
/// others are read all the same.
pub fn partition(
    table: &dyn Table,
    partition: PartitionId,
    epoch: Epoch,
    last: Seq,
) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let place = Place::read(table, TOPIC, partition)?;
    if place.seq > last || place.epoch > epoch {
        found.findings.push(format!(
            "meta/{partition} is at rest up to {} of epoch {}, and its log ends with {last} of \
             epoch {epoch}",
            place.seq, place.epoch
        ));
    }
    let mut roots = BTreeSet::new();
    for key in cold::keys(table, partition)? {
        let (root, image) = match cold::load_one(table, &key) {
            Ok(None) => continue,
            Ok(Some(rest)) => rest,
            Err(error @ (StoreError::Damaged { .. } | StoreError::Version { .. })) => {
                let whose = cold::whose(table, &key);
                found.findings.push(format!("{whose} of meta/{partition}: {error}"));
                continue;
            }
            Err(error) => return Err(error),
        };
        found.subtrees += 1;
        found.nodes += image.tree.count();
        if image.log > last || image.epoch > epoch {
            found.findings.push(format!(
                "subtree {root} is at rest at {} of epoch {}, and the log of meta/{partition} \
                 ends with {last} of epoch {epoch}",
                image.log, image.epoch
            ));
        }
        if !roots.insert((root.clone(), image.tree.incarnation())) {
            found.findings.push(format!("subtree {root} is at rest twice"));
        }
    }
    Ok(found)
}
