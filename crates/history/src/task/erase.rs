//! Empties the files of users who were erased.
//!
//! An erase hides the user at once. Their bytes leave in batches: the log's
//! records become empty at their positions, the table's files are rewritten,
//! and only then is the note of the erase forgotten.

use std::collections::BTreeMap;

use tideline_store::{StoreError, TableName};
use tideline_types::{PartitionId, Seq, SeqRange};

use super::Driver;
use crate::cold::{self, Erasing};

impl Driver {
    /// Empties the files if the oldest erase has waited half of its time.
    pub(super) fn erase_due(&self) {
        let half = self.options.erase_within.as_millis() as i64 / 2;
        if let Err(error) = self.erase_older_than(half) {
            tracing::error!(%error, "cannot empty the files of erased users; again soon");
        }
    }

    /// Empties the files of all partitions if any erase is older than
    /// `age_ms`.
    fn erase_older_than(&self, age_ms: i64) -> Result<(), StoreError> {
        let now = self.now();
        let pending = cold::erasing(&**self.view.table())?;
        let oldest = pending.iter().map(|erase| erase.taken_ms).min();
        if oldest.is_none_or(|taken| taken.plus(age_ms) > now) {
            return Ok(());
        }
        self.view.rewriting(|| self.empty_files(&pending))
    }

    /// Ends early, with all to be done again, once calls are refused.
    fn empty_files(&self, pending: &[Erasing]) -> Result<(), StoreError> {
        for erasing in pending.chunk_by(|a, b| a.partition == b.partition) {
            if self.is_closed() {
                return Ok(());
            }
            self.empty_records(erasing[0].partition, erasing)?;
        }
        if self.is_closed() {
            return Ok(());
        }
        let table = self.view.table();
        table.purge(TableName::History)?;
        table.commit(&[cold::forget_erasing(pending)])?;
        table.sync()?;
        table.purge(TableName::Meta)
    }

    fn empty_records(&self, partition: PartitionId, erasing: &[Erasing]) -> Result<(), StoreError> {
        // In order: of two erases of one user the later stands.
        let until: BTreeMap<[u8; 16], Seq> = erasing.iter().map(|e| (e.hash, e.through)).collect();
        let last = until.values().max().copied().unwrap_or(Seq::ZERO);
        let range = SeqRange::new(Seq::ZERO, last);
        let (queue, topic) = (self.view.queue(), self.view.topic());
        let report = queue.erase(topic, partition, range, &mut |seq, key, _| {
            let hash = std::str::from_utf8(key).ok().map(|user| self.rules.user_hash(user));
            hash.and_then(|hash| until.get(&hash)).is_some_and(|through| seq <= *through)
        });
        let report = report.map_err(|error| StoreError::Io {
            what: "empty records of history".into(),
            cause: error.to_string(),
        })?;
        tracing::info!(%partition, erased = report.erased, seen = report.seen, "emptied records of erased users");
        Ok(())
    }
}
