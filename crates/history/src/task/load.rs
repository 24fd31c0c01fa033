//! Reads: cold users, and the log above a partition's place.

use std::sync::Arc;

use tideline_store::batch::BatchRef;
use tideline_store::{ReadLimits, StoreError, TableName};
use tideline_types::PartitionId;

use super::Driver;
use crate::cold;
use crate::owner::{Erases, SlotId};
use crate::rows;

/// A user whose cold rows are wanted.
pub(super) struct Wanted {
    pub(super) slot: SlotId,
    pub(super) generation: u32,
    pub(super) user: Box<str>,
}

impl Driver {
    /// Reads each user's rows and gives them to the owner. Blocks on the table.
    pub(super) fn load(self: &Arc<Self>, at: usize, wanted: Vec<Wanted>) {
        for Wanted { slot, generation, user } in wanted {
            let hash = self.rules.user_hash(&user);
            let rows = cold::read(&*self.table, &user, &hash);
            if let Err(error) = &rows {
                tracing::error!(partition = at, %error, "cannot read a user's rows");
            }
            let now = self.now();
            self.step(at, |owner, effects| owner.loaded(now, slot, generation, rows, effects));
        }
    }

    /// Replays what the log holds above the partition's place, and lets the
    /// owner take calls.
    pub(super) fn recover(self: &Arc<Self>, partition: PartitionId) -> Result<(), StoreError> {
        let at = usize::from(partition.0);
        let place = cold::place(&*self.table, partition)?;
        let (start, synced) = {
            let held = self.lock(at);
            (held.writer.start(), held.owner.synced_through())
        };
        let wrong = |what: String| StoreError::Damaged {
            file: format!("log of history/{partition}").into(),
            offset: place.seq.0,
            what,
        };
        if place.seq > synced {
            return Err(wrong(format!(
                "the tables are at {}, the log ends at {synced}",
                place.seq
            )));
        }
        if place.seq.next() < start {
            return Err(wrong(format!(
                "the tables are at {}, the log starts at {start}",
                place.seq
            )));
        }
        let mut erases = Erases::new();
        let mut from = place.seq.next();
        while from <= synced {
            let batches = self.queue.read(&self.topic, partition, from, READ);
            let batches = batches.map_err(|error| super::log_error(&error))?;
            for bytes in &batches {
                let bad = |error: tideline_store::batch::BadBatch| wrong(error.to_string());
                let batch = BatchRef::parse(bytes).map_err(bad)?;
                let mut held = self.lock(at);
                for record in batch.records().filter(|r| r.seq >= from && !r.erased) {
                    let value = bytes.slice_ref(record.value);
                    held.owner.replay(record.seq, record.time, record.key, value, &mut erases)?;
                }
                from = batch.range().through.next();
            }
            if batches.is_empty() {
                return Err(wrong(format!("nothing to read at {from}, though {synced} is synced")));
            }
        }
        let unmatched = self.lock(at).owner.match_erases(erases);
        if !unmatched.is_empty() {
            self.find_erased(at, unmatched)?;
        }
        self.lock(at).owner.recovered();
        Ok(())
    }

    /// As `recover`, on the blocking pool, until it succeeds or the server stops.
    pub(super) fn recover_later(self: &Arc<Self>, partition: PartitionId) {
        let driver = Arc::clone(self);
        self.runtime.spawn_blocking(move || {
            while !driver.is_closed() {
                match driver.recover(partition) {
                    Ok(()) => return,
                    Err(error) => tracing::error!(%partition, %error, "cannot recover; again soon"),
                }
                std::thread::sleep(RECOVER_AGAIN);
            }
        });
    }

    /// Finds the users whom erases of the log name by hash alone.
    fn find_erased(&self, at: usize, erases: Erases) -> Result<(), StoreError> {
        let mut last = bytes::Bytes::new();
        let mut found = Vec::new();
        let mut bad = None;
        self.table.walk(TableName::History, &[], &mut |row| {
            if row.partition_key == last {
                return true;
            }
            last = row.partition_key;
            match rows::owner_of(&last) {
                Ok(rows::Owner::Erased(_)) => true,
                Ok(rows::Owner::User(user)) => {
                    if let Some((seq, value)) = erases.get(&self.rules.user_hash(&user)) {
                        found.push((user, *seq, value.clone()));
                    }
                    true
                }
                Err(error) => {
                    bad = Some(error);
                    false
                }
            }
        })?;
        if let Some(error) = bad {
            let (file, what) = ("tables/history".into(), error.to_string());
            return Err(StoreError::Damaged { file, offset: 0, what });
        }
        let mut held = self.lock(at);
        for (user, seq, value) in found {
            held.owner.remember_erase(&user, seq, value);
        }
        Ok(())
    }
}

const READ: ReadLimits = ReadLimits { records_max: 65_536, bytes_max: 4 << 20 };
const RECOVER_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);
