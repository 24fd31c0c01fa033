//! Entries for the fuzzers: each takes any bytes and must not panic.

use std::collections::HashMap;

use crate::import::{
    Csv, Format, Movielens, Ndjson, Netflix, Parsed, Records, Youtube, read_titles,
};

/// Marks, one JSON object a line.
pub fn import_ndjson(bytes: &[u8]) {
    read_all(&mut Ndjson::new(some(), some()), bytes);
}

/// Marks, one CSV row each.
pub fn import_csv(bytes: &[u8]) {
    read_all(&mut Csv::new(some(), some()), bytes);
}

/// MovieLens' ratings.
pub fn import_movielens(bytes: &[u8]) {
    read_all(&mut Movielens::new(None, HashMap::new()), bytes);
}

/// MovieLens' titles.
pub fn import_titles(bytes: &[u8]) {
    let _ = read_titles(bytes);
}

/// Netflix' viewing activity.
pub fn import_netflix(bytes: &[u8]) {
    read_all(&mut Netflix::new(None, None, None), bytes);
}

/// YouTube's watch history.
pub fn import_youtube(bytes: &[u8]) {
    read_all(&mut Youtube::new(some(), None), bytes);
}

/// Our own export, cut into pieces.
pub fn import_export(bytes: &[u8]) {
    crate::import::fuzz_pieces(bytes);
}

fn some() -> Option<String> {
    Some("u".to_owned())
}

/// Reads `bytes` as a file of `format`.
fn read_all(format: &mut dyn Format, bytes: &[u8]) {
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

/// Reads `bytes` as a configuration file.
pub fn config(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = crate::config::parse(text, "fuzz");
    }
}

/// What a ZooKeeper answers.
pub fn zookeeper_answer(bytes: &[u8]) {
    crate::meta::fuzz_answer(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn import(bytes: &[u8]) {
        super::import_ndjson(bytes);
        super::import_csv(bytes);
        super::import_movielens(bytes);
        super::import_titles(bytes);
        super::import_netflix(bytes);
        super::import_youtube(bytes);
        super::import_export(bytes);
    }

    proptest! {
        #[test]
        fn no_bytes_make_an_importer_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            import(&bytes);
            super::config(&bytes);
        }

        #[test]
        fn no_text_near_the_formats_makes_an_importer_panic(
            text in "(userId,movieId,rating,timestamp|id,user,event_ms|Profile Name,Start Time,Title,Duration|\\[)\n[{}\":,a-z0-9\\-TZ \n]{0,80}",
        ) {
            import(text.as_bytes());
        }
    }
}
