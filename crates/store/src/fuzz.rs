//! What a fuzzer feeds: each function takes any bytes and must not panic.

use crate::batch::BatchRef;
pub use crate::local::{fuzz_manifest as manifest, fuzz_rounds as journal_file};

/// A batch of the log, its records, and its erased form.
pub fn batch(bytes: &[u8]) {
    if let Ok(batch) = BatchRef::parse(bytes) {
        assert_eq!(batch.records().count(), batch.count() as usize);
        let _ = batch.erase(&mut 0, &mut |seq, _, _| seq.0 % 2 == 0);
    }
}
