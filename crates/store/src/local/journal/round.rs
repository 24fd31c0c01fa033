//! A round: what one write and one sync of the journal carry.
//!
//! ```text
//!  0  "TLR1"                     8  number of the round  u64
//!  4  CRC-32C of what follows   16  bytes of its batches u32
//!     in the header         u32 20  batches, back to back
//! ```
//!
//! A round is written only when the one before it has been synced, so a round
//! whose header is whole proves every byte before it: damage there is damage,
//! and not a torn tail. A round without batches (a mark) is written when the
//! journal rests, to prove the last one; the next round takes its number and
//! its place.

use tideline_record::batch::{BatchRef, Header};

/// Bytes before the batches of a round.
pub(super) const HEADER_BYTES: usize = 20;

const MAGIC: &[u8; 4] = b"TLR1";

/// Writes the header of round `number` over the first bytes of `round`.
pub(super) fn seal(round: &mut [u8], number: u64) {
    let bytes = (round.len() - HEADER_BYTES) as u32;
    round[..4].copy_from_slice(MAGIC);
    round[8..16].copy_from_slice(&number.to_le_bytes());
    round[16..20].copy_from_slice(&bytes.to_le_bytes());
    let crc = crc32c::crc32c(&round[8..20]);
    round[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// The number and the batches' bytes of the round that starts at `bytes`.
fn header(bytes: &[u8]) -> Option<(u64, usize)> {
    let raw: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let crc = u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]);
    if &raw[..4] != MAGIC || crc != crc32c::crc32c(&raw[8..]) {
        return None;
    }
    let number = raw[8..16].try_into().map(u64::from_le_bytes).ok()?;
    let batches = raw[16..20].try_into().map(u32::from_le_bytes).ok()?;
    Some((number, batches as usize))
}

/// A batch in a journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) offset: u64,
    pub(super) header: Header,
}

/// What a journal file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// Its whole batches, in order.
    pub(super) batches: Vec<Found>,
    /// The number after that of its last round; the one asked for if there is
    /// none.
    pub(super) next_round: u64,
    /// Where reading stopped: if nothing is torn, only zeroes follow.
    pub(super) end: u64,
    /// What was found at `end`, if that is neither the end of the file nor the
    /// zeroes after its last round.
    pub(super) torn: Option<String>,
    /// Bytes before `end` were proven whole by something after it.
    pub(super) damaged: bool,
}

/// Reads a journal file. Rounds must be numbered from `first_round` on (any,
/// if `None`). `last`: no journal file follows, so that its end may be torn.
pub(super) fn scan(file: &[u8], first_round: Option<u64>, last: bool) -> Scan {
    let mut scan = Scan {
        batches: Vec::new(),
        next_round: first_round.unwrap_or_default(),
        end: 0,
        torn: None,
        damaged: false,
    };
    let mut expected = first_round;
    let mut at = 0;
    while at < file.len() && !is_zero(&file[at..]) {
        let found = header(&file[at..]).filter(|(n, _)| expected.is_none_or(|e| e == *n));
        let Some((number, bytes)) = found else {
            scan.stop(at, "no round starts here");
            break;
        };
        scan.next_round = if bytes == 0 { number } else { number.saturating_add(1) };
        expected = Some(scan.next_round);
        at += HEADER_BYTES;
        let end = at.saturating_add(bytes);
        let round = &file[..end.min(file.len())];
        while at < end {
            match BatchRef::parse(&round[at..]) {
                Ok(batch) => {
                    let header = *batch.header();
                    scan.batches.push(Found { offset: at as u64, header });
                    at += header.len;
                }
                Err(error) => {
                    scan.stop(at, &error.to_string());
                    scan.damaged = !last || later_round(file, at, scan.next_round);
                    return scan;
                }
            }
        }
    }
    scan.end = at.min(file.len()) as u64;
    if scan.torn.is_some() {
        // A file that another follows may end in a torn mark. Were it a torn
        // round, the other file would not go on with its number.
        let mark = !last && is_zero(file.get(at + HEADER_BYTES..).unwrap_or_default());
        scan.damaged = !mark && (!last || later_round(file, at, scan.next_round));
    }
    scan
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

impl Scan {
    fn stop(&mut self, at: usize, what: &str) {
        self.end = at as u64;
        self.torn = Some(what.into());
    }
}

/// Whether a round numbered `least` or later starts after `at`.
fn later_round(file: &[u8], at: usize, least: u64) -> bool {
    let starts = file.windows(MAGIC.len()).enumerate().skip(at);
    let mut starts = starts.filter(|(_, window)| *window == MAGIC);
    starts.any(|(start, _)| header(&file[start..]).is_some_and(|(n, _)| n >= least))
}

/// What a fuzzer feeds.
pub fn fuzz_rounds(bytes: &[u8]) {
    let mut round = vec![0; HEADER_BYTES];
    round.extend(tideline_record::fuzz::sealed(bytes));
    seal(&mut round, 1);
    for file in [bytes, &round] {
        let scan = scan(file, None, true);
        assert!(scan.end as usize <= file.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_types::{Epoch, Millis, Seq, StreamId};

    use super::*;
    use tideline_record::batch::BatchBuilder;

    fn file(rounds: &[&[u64]]) -> Vec<u8> {
        let mut file = Vec::new();
        for (n, round) in rounds.iter().enumerate() {
            let mut bytes = vec![0; HEADER_BYTES];
            for first in *round {
                let mut batch = BatchBuilder::new(StreamId::default(), Epoch(1), Seq(*first));
                batch.push(Millis(7), b"key", b"value");
                bytes.extend(batch.finish());
            }
            seal(&mut bytes, 5 + n as u64);
            file.extend(bytes);
        }
        file
    }

    fn firsts(scan: &Scan) -> Vec<u64> {
        scan.batches.iter().map(|b| b.header.first.0).collect()
    }

    #[test]
    fn a_cut_anywhere_in_the_last_round_leaves_its_whole_batches() {
        let whole = file(&[&[1], &[2, 3]]);
        let batch = whole.len() - file(&[&[1], &[2]]).len();
        for len in 0..whole.len() {
            let scan = scan(&whole[..len], Some(5), true);
            assert!(!scan.damaged, "cut to {len}");
            let expected = (0..=3)
                .rev()
                .find(|n| {
                    let headers = [0, 20, 40, 40][*n];
                    len >= headers + n * batch
                })
                .unwrap();
            assert_eq!(scan.batches.len(), expected, "cut to {len}");
        }
    }

    #[test]
    fn a_flip_before_a_later_round_is_damage_and_in_the_last_round_a_torn_tail() {
        let whole = file(&[&[1], &[2], &[3]]);
        let last = file(&[&[1], &[2]]).len();
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            let scan = scan(&bad, Some(5), true);
            assert_eq!(scan.damaged, at < last, "flip at {at}");
            assert!(scan.torn.is_some());
        }
    }

    #[test]
    fn a_mark_proves_the_round_before_it() {
        let mut bad = file(&[&[1], &[]]);
        assert_eq!(firsts(&scan(&bad, Some(5), true)), [1]);
        bad[HEADER_BYTES + 60] ^= 1;
        assert!(scan(&bad, Some(5), true).damaged);
    }

    #[test]
    fn a_torn_mark_is_no_damage_and_a_torn_round_in_its_place_is_found_by_its_number() {
        let mut whole = file(&[&[1], &[]]);
        let end = whole.len();
        whole[end - 20..].fill(0);
        let first = scan(&whole, Some(5), false);
        assert!(!first.damaged && first.next_round == 6);
        let mut next = vec![0; HEADER_BYTES];
        seal(&mut next, 6);
        assert!(scan(&next, Some(first.next_round), true).torn.is_none());
        seal(&mut next, 7);
        assert!(scan(&next, Some(first.next_round), true).damaged);
    }

    #[test]
    fn zeros_after_the_last_round_are_its_end_and_no_record() {
        let mut whole = file(&[&[1], &[2]]);
        let end = whole.len();
        for last in [false, true] {
            whole.truncate(end);
            whole.resize(end + 4_096, 0);
            assert!(!scan(&whole, Some(5), last).damaged);
            whole[end + 100] = 1;
            assert_eq!(scan(&whole, Some(5), last).damaged, !last);
        }
        whole.truncate(end);
        for zeros in 1..=4_096 {
            whole.push(0);
            let scan = scan(&whole, Some(5), true);
            assert!(!scan.damaged && scan.torn.is_none(), "{zeros} zeros");
            assert_eq!((firsts(&scan), scan.end as usize, scan.next_round), (vec![1, 2], end, 7));
        }
    }

    #[test]
    fn nothing_may_be_torn_in_a_file_that_another_follows() {
        let whole = file(&[&[1]]);
        assert!(scan(&whole[..whole.len() - 1], None, false).damaged);
        assert!(!scan(&whole, None, false).damaged);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_scan_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_rounds(&bytes);
        }
    }
}
