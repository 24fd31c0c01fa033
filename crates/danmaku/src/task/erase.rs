//! Empties the files of users who were erased.
//!
//! An erase hides a user's comments at once, and their rows go with the next
//! flush. Their bytes leave in batches: records of the log become empty at
//! their positions, the table's files are rewritten, and only then is the note
//! forgotten. A record is emptied only once it is at rest: until then it may be
//! needed.

use std::collections::{BTreeMap, BTreeSet};

use tideline_store::{Place, StoreError, TableName};
use tideline_types::{PartitionId, Seq, SeqRange};

use super::{Driver, TOPIC};
use crate::erase::{self, Erasing};
use crate::outcome::Outcome;

impl Driver {
    /// Empties the files if the oldest erase has waited half of its time.
    pub(super) fn erase_due(&self) {
        if let Err(error) = self.empty_files() {
            tracing::error!(%error, "cannot empty the files of erased users; again soon");
        }
    }

    fn empty_files(&self) -> Result<(), StoreError> {
        let half_ms = self.rules.options.erase_within.as_millis() as i64 / 2;
        let pending = erase::erasing(&*self.table)?;
        let oldest = pending.iter().map(|erase| erase.taken).min();
        if oldest.is_none_or(|taken| taken.plus(half_ms) > self.view.now()) {
            return Ok(());
        }
        self.view.rewriting(|| self.empty_files_of(&pending))
    }

    /// Ends early, with all to be done again, once calls are refused.
    fn empty_files_of(&self, pending: &[Erasing]) -> Result<(), StoreError> {
        let mut done = Vec::new();
        for erasing in pending.chunk_by(|a, b| a.partition == b.partition) {
            if self.view.is_closed() {
                return Ok(());
            }
            let partition = erasing[0].partition;
            let rested = Place::read(&*self.table, TOPIC, partition)?.seq;
            let ready = erasing.iter().filter(|erase| erase.through <= rested).copied();
            let ready: Vec<Erasing> = ready.collect();
            self.empty_records(partition, &ready)?;
            done.extend(ready);
        }
        if done.is_empty() || self.view.is_closed() {
            return Ok(());
        }
        let users: BTreeSet<u64> = done.iter().map(|erase| erase.user).collect();
        let is_erased = |user: &str| users.contains(&self.rules.keys.user(user));
        self.empty_scores(&is_erased)?;
        self.table.purge(TableName::Danmaku)?;
        self.table.commit(&[erase::forget(&done)])?;
        self.table.sync()
    }

    fn empty_records(&self, partition: PartitionId, ready: &[Erasing]) -> Result<(), StoreError> {
        // In order: of two erases of one user the later stands.
        let until: BTreeMap<u64, Seq> = ready.iter().map(|e| (e.user, e.through)).collect();
        let last = until.values().max().filter(|last| **last > Seq::ZERO);
        let Some(last) = last else { return Ok(()) };
        let range = SeqRange::new(Seq::ZERO, *last);
        let (queue, topic) = (self.view.queue(), self.view.topic());
        let report = queue.erase(topic, partition, range, &mut |seq, _, value| {
            Outcome::decode(value).is_ok_and(|outcome| {
                let mut users = erase::users_of(&outcome, &self.rules.keys);
                users.any(|user| until.get(&user).is_some_and(|through| seq <= *through))
            })
        });
        let report = report.map_err(|error| StoreError::Io {
            what: "empty records of danmaku".into(),
            cause: error.to_string(),
        })?;
        tracing::info!(%partition, erased = report.erased, seen = report.seen, "emptied records of erased users");
        Ok(())
    }
}
