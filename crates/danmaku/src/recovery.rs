//! How an owner comes to know what its partition holds: the log above the
//! place.

use bytes::Bytes;
use tideline_store::batch::BatchRef;
use tideline_store::{Place, StoreError, Table};
use tideline_types::Seq;

use crate::owner::Owner;
use crate::task::TOPIC;

/// Replays what the log holds above the partition's place into a fresh owner,
/// which takes calls from then on. `read` gives whole batches, of which the
/// first contains the number asked for. Blocks.
///
/// # Errors
/// `Damaged` if the tables are ahead of the log, if records between the two
/// are gone, or if something does not read; what the engines say otherwise.
pub fn recover<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    read: &mut dyn FnMut(Seq) -> Result<Vec<Bytes>, StoreError>,
) -> Result<(), StoreError> {
    let (stream, synced) = (owner.stream(), owner.synced_through());
    let place = Place::read(table, TOPIC, stream.partition)?;
    let wrong = |at: Seq, what: String| StoreError::Damaged {
        file: format!("log of danmaku/{}", stream.partition).into(),
        offset: at.0,
        what,
    };
    if place.seq > synced {
        let what = format!("the tables are at {}, the log ends at {synced}", place.seq);
        return Err(wrong(place.seq, what));
    }
    let mut from = place.seq.next();
    while from <= synced {
        let batches = read(from)?;
        if batches.is_empty() {
            return Err(wrong(from, format!("nothing is read, though {synced} is synced")));
        }
        for bytes in batches {
            let batch = BatchRef::parse(&bytes).map_err(|error| wrong(from, error.to_string()))?;
            if batch.range().after >= from {
                return Err(wrong(from, format!("the log goes on at {}", batch.range())));
            }
            for record in batch.records().filter(|r| r.seq >= from && !r.erased) {
                let value = bytes.slice_ref(record.value);
                owner.replay(record.seq, record.time, record.key, value)?;
            }
            from = batch.range().through.next();
        }
    }
    owner.recovered();
    Ok(())
}
