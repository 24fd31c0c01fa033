//! A checksum over the records of a range, so that two hosts can say whether
//! they hold the same.
//!
//! ```text
//! each record: number u64, sub u32, flags u8 (1 erased, 2 skipped), time i64,
//!              key bytes u32, value bytes u32, key, value; little-endian
//! ```
//!
//! Over all of these in order goes XXH3 of 128 bits. It depends on the records
//! alone, however they were cut into batches and frames. Meant to find faults,
//! not forgers. An erase changes it: compare within one erase generation.

use xxhash_rust::xxh3::Xxh3;

use crate::batch::Record;

/// The digest of the records so far.
#[derive(Clone, Default)]
pub struct Digest {
    state: Box<Xxh3>,
    records: u64,
}

impl Digest {
    /// The next record.
    pub fn add(&mut self, record: &Record<'_>) {
        let flags = u8::from(record.erased) | u8::from(record.skipped) << 1;
        self.state.update(&record.seq.0.to_le_bytes());
        self.state.update(&record.sub.to_le_bytes());
        self.state.update(&[flags]);
        self.state.update(&record.time.0.to_le_bytes());
        self.state.update(&(record.key.len() as u32).to_le_bytes());
        self.state.update(&(record.value.len() as u32).to_le_bytes());
        self.state.update(record.key);
        self.state.update(record.value);
        self.records += 1;
    }

    /// How many there were.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Of all so far.
    pub fn value(&self) -> u128 {
        self.state.digest128()
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.value())
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self} of {})", self.records)
    }
}

#[cfg(test)]
mod tests {
    use tideline_types::{Millis, Seq};

    use super::*;

    fn record<'a>(seq: u64, key: &'a [u8], value: &'a [u8]) -> Record<'a> {
        let time = Millis(7);
        Record { seq: Seq(seq), sub: 0, time, erased: false, skipped: false, key, value }
    }

    fn of(records: &[Record<'_>]) -> String {
        let mut digest = Digest::default();
        records.iter().for_each(|record| digest.add(record));
        digest.to_string()
    }

    #[test]
    fn a_digest_never_changes() {
        assert_eq!(of(&[]), "99aa06d3014798d86001c324468d497f");
        let one = of(&[record(1, b"k", b"v")]);
        assert_eq!(one, of(&[record(1, b"k", b"v")]));
    }

    #[test]
    fn every_part_of_a_record_is_in_it() {
        let plain = record(1, b"k", b"v");
        let others = [
            record(2, b"k", b"v"),
            record(1, b"", b"kv"),
            record(1, b"kv", b""),
            Record { sub: 1, ..plain },
            Record { time: Millis(8), ..plain },
            Record { erased: true, ..plain },
            Record { skipped: true, ..plain },
        ];
        for other in others {
            assert_ne!(of(&[plain]), of(&[other]), "{other:?}");
        }
        assert_ne!(of(&[plain, record(2, b"", b"")]), of(&[record(2, b"", b""), plain]));
    }
}
