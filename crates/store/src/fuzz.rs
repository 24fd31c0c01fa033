//! What a fuzzer feeds: each function takes any bytes and must not panic.

use crate::Place;
pub use crate::local::{
    fuzz_manifest as manifest, fuzz_rounds as journal_file, fuzz_table_files as table_files,
};

/// The value of a partition's place.
pub fn place(bytes: &[u8]) {
    if let Some(place) = Place::decode(bytes) {
        assert_eq!(place.encode(), bytes, "a place has two forms");
    }
}
