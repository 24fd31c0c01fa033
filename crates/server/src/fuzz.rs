//! Entries for the fuzzers: each takes any bytes and must not panic.

use std::collections::HashMap;

use crate::import::{
    Csv, Format, Movielens, Ndjson, Netflix, Parsed, Records, Youtube, read_titles,
};

/// Reads `bytes` as a file of every import format in turn.
pub fn import(bytes: &[u8]) {
    let some = || Some("u".to_owned());
    let formats: [Box<dyn Format>; 5] = [
        Box::new(Ndjson::new(some(), some())),
        Box::new(Csv::new(some(), some())),
        Box::new(Movielens::new(None, HashMap::new())),
        Box::new(Netflix::new(None, None, None)),
        Box::new(Youtube::new(some(), None)),
    ];
    for mut format in formats {
        let cut = format.cut();
        let mut records = Records::new(bytes, cut, 0, 1);
        while let Ok(Some(record)) = records.read() {
            let Some(bytes) = record.bytes else { continue };
            if record.line == 1 && format.header(bytes).is_err() {
                continue;
            }
            if let Parsed::Mark(entry) = format.parse(bytes) {
                assert!(entry.id.len() <= 64, "every field of a mark fits its limit");
            }
        }
    }
    let _ = read_titles(bytes);
    crate::import::fuzz_pieces(bytes);
}

/// Reads `bytes` as a configuration file.
pub fn config(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = crate::config::parse(text, "fuzz");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_an_importer_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            super::import(&bytes);
            super::config(&bytes);
        }

        #[test]
        fn no_text_near_the_formats_makes_an_importer_panic(
            text in "(userId,movieId,rating,timestamp|id,user,event_ms|Profile Name,Start Time,Title,Duration|\\[)\n[{}\":,a-z0-9\\-TZ \n]{0,80}",
        ) {
            super::import(text.as_bytes());
        }
    }
}
