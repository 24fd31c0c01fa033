//! How an owner comes to know what its partition holds: the snapshots at rest,
//! then the log after them.

use tideline_queue::view::Read;
use tideline_record::batch::BatchRef;
use tideline_store::{Place, StoreError, Table};
use tideline_types::Seq;

use crate::cold;
use crate::owner::Owner;
use crate::task::TOPIC;

/// Brings a fresh owner to where tables and log are; it takes calls from then
/// on. What the log still has from before the place, from `start` on, is kept
/// for observers. Blocks.
///
/// # Errors
/// `Damaged` if the tables are ahead of the log, if entries between the two
/// are gone, or if something does not read; what the engines say otherwise.
pub fn recover<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    start: Seq,
    read: &mut Read<'_>,
) -> Result<(), StoreError> {
    let (stream, synced) = (owner.stream(), owner.synced_through());
    let place = Place::read(table, TOPIC, stream.partition)?.seq;
    let damaged = |at: Seq, what: String| StoreError::Damaged {
        file: format!("log of {TOPIC}/{}", stream.partition).into(),
        offset: at.0,
        what,
    };
    if place > synced {
        return Err(damaged(place, format!("the tables are at {place}, the log ends at {synced}")));
    }
    for (root, image) in cold::load(table, stream.partition)? {
        let log = image.log;
        if log > synced {
            let what = format!("a snapshot of {root} is at {log}, the log ends at {synced}");
            return Err(damaged(log, what));
        }
        owner.restore(root, image);
    }
    let refill = Seq(place.next().0.saturating_sub(REFILL_ENTRIES)).max(start);
    let mut from = refill.min(place.next());
    while from <= synced {
        let batches = read(from)?;
        if batches.is_empty() {
            return Err(damaged(from, format!("nothing is read, though {synced} is synced")));
        }
        for bytes in batches {
            let batch = BatchRef::parse(&bytes).map_err(|bad| damaged(from, bad.to_string()))?;
            for record in batch.records().filter(|record| record.seq >= from) {
                let value = bytes.slice_ref(record.value);
                let replayed = owner.replay(place, record.seq, batch.epoch(), record.key, &value);
                replayed.map_err(|what| damaged(record.seq, what))?;
            }
            from = batch.range().through.next();
        }
    }
    owner.recovered();
    Ok(())
}

/// Entries before the place that are read again, so that observers go on from
/// where they were.
const REFILL_ENTRIES: u64 = 16_384;
