//! How an owner comes to know its partition: the snapshots at rest, then what
//! the log holds after them.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_types::{Epoch, Seq};

use super::Owner;
use crate::ask::Image;
use crate::commit::Entry;
use crate::lane::Lane;
use crate::path::Path;

impl<W> Owner<W> {
    /// A subtree as it rests. Before any [`Owner::replay`].
    pub fn restore(&mut self, root: Path, image: Image) {
        let lane = Lane::rested(image);
        let older = match self.lanes.get(&root) {
            Some(held) if held.log >= lane.log => Some(lane),
            _ => self.lanes.insert(root, lane),
        };
        // Another life under the same root, whose rows a stop left behind.
        self.over.extend(older.map(|older| (Seq::ZERO, older.tree.incarnation())));
    }

    /// An entry of the log, in order. Those at or below `place` are in the
    /// snapshots; they are kept for observers.
    ///
    /// # Errors
    /// What is wrong with it, for people: the log and the tables are not of
    /// the same folder, or one is damaged.
    pub fn replay(
        &mut self,
        place: Seq,
        log: Seq,
        epoch: Epoch,
        key: &[u8],
        value: &Bytes,
    ) -> Result<(), String> {
        let root = std::str::from_utf8(key).ok().and_then(|key| Path::new(key).ok());
        let root = root.ok_or("the key is no path")?;
        match Entry::decode(value).map_err(|bad| bad.to_string())? {
            Entry::Open { incarnation, quota } => {
                let held = self.lanes.get(&root).map(|lane| (lane.log, lane.tree.incarnation()));
                // The snapshot is of this life or a later one.
                if held.is_some_and(|(held, life)| held >= log || life == incarnation)
                    || log <= place
                {
                    return Ok(());
                }
                self.over.extend(held.map(|(_, life)| (log, life)));
                self.lanes.insert(root, Lane::open(incarnation, quota, log, 0));
            }
            Entry::Shut { incarnation } => {
                let of = |lane: &mut Lane| lane.tree.incarnation() == incarnation;
                if self.lanes.get_mut(&root).is_some_and(of) {
                    self.lanes.remove(&root);
                    self.over.push_back((log, incarnation));
                }
            }
            Entry::Commit(commit) => match self.lanes.get_mut(&root) {
                // Of an earlier life than the snapshot's.
                Some(lane) if lane.log > log && lane.tree.incarnation() != commit.incarnation => {}
                Some(lane) => {
                    lane.replay(epoch, log, &commit, value.clone()).map_err(|e| e.to_string())?;
                }
                None if log <= place => {}
                None => return Err(format!("a commit of {root}, which is not there")),
            },
        }
        Ok(())
    }

    /// Everything there is was replayed. Sessions go on for a whole lease.
    pub fn recovered(&mut self) {
        for lane in self.lanes.values_mut() {
            let sessions: BTreeMap<_, _> =
                lane.tree.sessions().map(|(id, s)| (id, (s.lease_ms, s.ending))).collect();
            for (id, (lease_ms, ending)) in sessions {
                lane.leases.renew(id, if ending { 0 } else { lease_ms });
            }
        }
    }
}
