//! Derived topics: a pure function of each record of a source.
//!
//! A derived record keeps the number, time and epoch of the record it comes
//! from; numbers whose records are left out are covered all the same. Nothing
//! is stored: the same source gives the same records, byte for byte, each time.

use std::sync::Arc;

use bytes::Bytes;
use tideline_store::batch::{BatchBuilder, BatchRef, Record};

/// What the derived record holds (key, value), or `None` to leave it out.
/// Must depend on the record alone.
pub type Filter = Arc<dyn Fn(&Record<'_>) -> Option<(Vec<u8>, Vec<u8>)> + Send + Sync>;

/// The batches that a derived topic has for one batch of its source: one for
/// each run of kept records with contiguous numbers.
pub(crate) fn batches(source: &BatchRef<'_>, filter: &Filter) -> Vec<Bytes> {
    let (mut out, mut run): (_, Option<BatchBuilder>) = (Vec::new(), None);
    for record in source.records() {
        let kept = if record.erased { None } else { filter(&record) };
        let Some((key, value)) = kept else {
            out.extend(run.take().map(BatchBuilder::finish));
            continue;
        };
        if run.as_ref().is_some_and(|run| !run.has_room(key.len(), value.len())) {
            out.extend(run.take().map(BatchBuilder::finish));
        }
        run.get_or_insert_with(|| BatchBuilder::new(source.stream(), source.epoch(), record.seq))
            .push(record.time, &key, &value);
    }
    out.extend(run.map(BatchBuilder::finish));
    out
}

#[cfg(test)]
mod tests {
    use tideline_types::{Epoch, Millis, Seq, StreamId};

    use super::*;

    #[test]
    fn kept_records_keep_their_numbers() {
        let mut source = BatchBuilder::new(StreamId::default(), Epoch(3), Seq(10));
        for value in ["a", "", "b", "c", ""] {
            source.push(Millis(7), b"k", value.as_bytes());
        }
        let source = source.finish();
        let filter: Filter =
            Arc::new(|r| (!r.value.is_empty()).then(|| (r.key.to_vec(), r.value.to_vec())));
        let derived = batches(&BatchRef::parse(&source).unwrap(), &filter);
        let kept: Vec<(u64, u8)> = derived
            .iter()
            .flat_map(|b| BatchRef::parse(b).unwrap().records())
            .map(|r| (r.seq.0, r.value[0]))
            .collect();
        assert_eq!(kept, [(10, b'a'), (12, b'b'), (13, b'c')]);
        assert_eq!(derived.len(), 2);
    }
}
