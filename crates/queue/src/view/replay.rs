//! The log above a view's place, batch by batch.

use bytes::Bytes;
use tideline_record::batch::BatchRef;
use tideline_store::{Place, StoreError, Table};
use tideline_types::{Millis, Seq, StreamId};

/// Gives whole batches, of which the first contains the number asked for.
pub type Read<'a> = dyn FnMut(Seq) -> Result<Vec<Bytes>, StoreError> + 'a;

/// A batch that is replayed.
pub struct Replayed<'a> {
    batch: BatchRef<'a>,
    bytes: &'a Bytes,
    from: Seq,
}

impl<'a> Replayed<'a> {
    /// Its records above the place that are not erased: number, time, key and
    /// value.
    pub fn records(&self) -> impl Iterator<Item = (Seq, Millis, &'a [u8], Bytes)> {
        let (from, bytes) = (self.from, self.bytes);
        let above = self.batch.records().filter(move |r| r.seq >= from && !r.erased);
        above.map(|r| (r.seq, r.time, r.key, bytes.slice_ref(r.value)))
    }

    /// Its last number.
    pub fn through(&self) -> Seq {
        self.batch.range().through
    }

    /// All its records.
    pub fn len(&self) -> usize {
        self.batch.count() as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Shows every batch that reaches above the place that `table` holds of a
/// partition of `view`, up to `synced`, in order. Blocks.
///
/// # Errors
/// `Damaged` if the table is ahead of the log, if records between the two are
/// gone, or if something does not read; what `read` and `show` say otherwise.
pub fn replay(
    view: &str,
    stream: StreamId,
    synced: Seq,
    table: &dyn Table,
    read: &mut Read<'_>,
    mut show: impl FnMut(&Replayed<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let wrong = |at: Seq, what: String| StoreError::Damaged {
        file: format!("log of {view}/{}", stream.partition).into(),
        offset: at.0,
        what,
    };
    let place = Place::read(table, view, stream.partition)?.seq;
    if place > synced {
        return Err(wrong(place, format!("the tables are at {place}, the log ends at {synced}")));
    }
    let mut from = place.next();
    while from <= synced {
        let batches = read(from)?;
        if batches.is_empty() {
            return Err(wrong(from, format!("nothing is read, though {synced} is synced")));
        }
        for bytes in &batches {
            let batch = BatchRef::parse(bytes).map_err(|error| wrong(from, error.to_string()))?;
            if batch.range().after >= from {
                return Err(wrong(from, format!("the log goes on at {}", batch.range())));
            }
            show(&Replayed { batch, bytes, from })?;
            from = batch.range().through.next();
        }
    }
    Ok(())
}
