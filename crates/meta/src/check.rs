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
/// The first snapshot that does not read; what the engine says otherwise.
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
    for (root, image) in cold::load(table, partition)? {
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
