//! What a fuzzer feeds: each function takes any bytes and must not panic.

use bytes::Bytes;

use crate::rows::{Entry, HotSet, Place};

/// A row of a tier, of whichever kind: the first byte says of which.
pub fn tier_row(bytes: &[u8]) {
    let Some((kind, row)) = bytes.split_first() else { return };
    let row = Bytes::copy_from_slice(row);
    let again = match kind % 3 {
        0 => Place::decode(&row).ok().map(|place| place.encode()),
        1 => Entry::decode(&row).ok().map(|entry| entry.encode()),
        _ => HotSet::decode(&row).ok().map(|set| set.encode()),
    };
    assert!(again.is_none_or(|again| again == row), "a row has two forms");
}
