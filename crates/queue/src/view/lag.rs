//! Bytes of a partition's log that are not at rest: what a start would read
//! back into memory.
//!
//! Always: `bytes` is the sum over the batches that reach above the place.

use std::collections::VecDeque;

use bytes::Bytes;
use tideline_types::Seq;

/// The batches above a partition's place, in order, with what each weighs.
#[derive(Debug, Default)]
pub struct Lag {
    batches: VecDeque<(Seq, usize)>,
    bytes: usize,
}

impl Lag {
    /// What an outcome takes that waits for what it is about to be loaded,
    /// besides its own bytes.
    pub const RECORD_BYTES: usize = size_of::<(Seq, Bytes)>();

    /// The log has one batch more, of so many records and bytes, and ends at
    /// `through`.
    pub fn logged(&mut self, through: Seq, records: usize, bytes: usize) {
        let weighs = bytes + records * Self::RECORD_BYTES + BATCH_BYTES;
        self.batches.push_back((through, weighs));
        self.bytes += weighs;
    }

    /// Everything at or below `place` is in a durable row.
    pub fn rested(&mut self, place: Seq) {
        while let Some((_, weighs)) = self.batches.pop_front_if(|(through, _)| *through <= place) {
            self.bytes -= weighs;
        }
    }

    /// What a start would hold, without names.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What a batch takes here.
const BATCH_BYTES: usize = size_of::<(Seq, usize)>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_weighs_until_all_of_it_is_at_rest() {
        let mut lag = Lag::default();
        lag.logged(Seq(3), 3, 300);
        let first = lag.bytes();
        assert_eq!(first, 300 + 3 * Lag::RECORD_BYTES + BATCH_BYTES);
        lag.logged(Seq(4), 1, 100);
        let both = lag.bytes();
        lag.rested(Seq(2));
        assert_eq!(lag.bytes(), both);
        lag.rested(Seq(3));
        assert_eq!(lag.bytes(), both - first);
        lag.rested(Seq(9));
        assert_eq!(lag.bytes(), 0);
    }
}
