//! What a partition remembers of the producers that number their records, so
//! that one whose acknowledgement was lost may send the same again.
//!
//! A producer names itself (64 bits that it draws), says in which life it is
//! (an epoch that it raises when it starts), and numbers its records from 1
//! without a gap. Of each producer the last [`RUNS_MAX`] batches are known with
//! the places that they got; of a partition the [`PRODUCERS_MAX`] that wrote
//! last. So:
//!
//! - the same batch again gets the places that it got, and changes nothing;
//! - what comes next is taken only after all before it: of a producer's records
//!   a prefix is in the log, each once;
//! - a life that was followed by another is shut out;
//! - one that is not remembered is told so, and nothing of it is guessed.
//!
//! Knows no clock and no log: what is known follows from the stamps of the
//! batches in their order alone.
//!
//! Beside them, the greatest time of a record: all records may have been freed
//! when an owner begins whose clock is behind.
//!
//! ```text
//! at rest: version (2) u8, epoch, seq, newest time, count of producers,
//!          producer: id u64, epoch, count of runs,
//!          run: number, count, first seq, epoch that wrote it
//! ```
//!
//! Numbers without a type are varints, the time a signed one; producers stand in
//! order of their ids. Version 1 had no time, and no epoch of a run: that of the
//! row stands for it.

use std::collections::{BTreeMap, VecDeque};

use tideline_record::batch::{Header, Stamp};
use tideline_record::codec::{BadBytes, Reader, put_signed, put_varint};
use tideline_types::limits::{BATCH_RECORDS_MAX, PRODUCER_RUNS_MAX as RUNS_MAX, PRODUCERS_MAX};
use tideline_types::{Epoch, Millis, Seq, SeqRange};

/// One batch of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The producer's number of its first record.
    number: u64,
    count: u64,
    /// Where the first record stands.
    first: Seq,
    /// The owner that wrote it.
    epoch: Epoch,
}

impl Run {
    /// The producer's number of its last record.
    fn last(&self) -> u64 {
        self.number + self.count - 1
    }

    fn range(&self) -> SeqRange {
        SeqRange::new(self.first.prev(), Seq(self.first.0 + self.count - 1))
    }
}

/// The last life of one producer; the newest batch last, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Producer {
    epoch: u32,
    runs: VecDeque<Run>,
}

impl Producer {
    fn newest(&self) -> Run {
        *self.runs.back().expect("a producer is known by a batch")
    }
}

/// All that one partition remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    known: BTreeMap<u64, Producer>,
    /// Who wrote last where, to forget who wrote longest ago.
    by_place: BTreeMap<Seq, u64>,
    /// The greatest time of a record, whoever wrote it.
    newest: Millis,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// It comes next.
    New,
    /// It is there already, written in this epoch.
    Again(SeqRange, Epoch),
}

/// Why a producer's batch is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// A later life of the producer has written.
    #[error("producer epoch {given} was followed by {known}")]
    Fenced {
        /// Of the batch.
        given: u32,
        /// The life that is known.
        known: u32,
    },
    /// Records before it are missing: send those first.
    #[error("record {given} of the producer, {expected} comes next")]
    Gap {
        /// The number of the first record.
        given: u64,
        /// What is due.
        expected: u64,
    },
    /// It was taken, so long ago that its places are not remembered, or in
    /// other batches than now.
    #[error("record {0} of the producer was taken before, in a batch that is not remembered")]
    Taken(u64),
    /// Records are numbered from 1, and there is at least one.
    #[error("a producer's batch holds records, numbered from 1")]
    Range,
    /// Nothing is known of the producer: it is new, and does not begin at 1, or
    /// others have written so much since that it was forgotten. What it sent
    /// last may or may not have been taken; read the topic to find out, or go
    /// on under another name.
    #[error("nothing is remembered of the producer")]
    Forgotten,
}

impl Producers {
    /// What becomes of `count` records under this stamp.
    pub(crate) fn admit(&self, stamp: &Stamp, count: u64) -> Result<Admit, StampError> {
        let known = self.known.get(&stamp.producer);
        let expected = match known {
            Some(known) if stamp.epoch < known.epoch => {
                return Err(StampError::Fenced { given: stamp.epoch, known: known.epoch });
            }
            Some(known) if stamp.epoch == known.epoch => known.newest().last() + 1,
            None if stamp.number != 1 => return Err(StampError::Forgotten),
            _ => 1,
        };
        if stamp.number == expected {
            return Ok(Admit::New);
        }
        if stamp.number > expected {
            return Err(StampError::Gap { given: stamp.number, expected });
        }
        let runs = known.map(|known| known.runs.iter()).into_iter().flatten();
        let same = |run: &&Run| run.number == stamp.number && run.count == count;
        #[cfg(feature = "sabotage")]
        if crate::sabotage::is(crate::sabotage::Broken::RetryTakenAgain) {
            return Ok(Admit::New);
        }
        match runs.rev().find(same) {
            Some(run) => Ok(Admit::Again(run.range(), run.epoch)),
            None => Err(StampError::Taken(stamp.number)),
        }
    }

    /// A batch of the log, in order: remembers it if it is of a producer.
    pub(crate) fn note(&mut self, batch: &Header) {
        self.saw(batch.newest);
        if let Some(stamp) = batch.stamp() {
            self.put(stamp, u64::from(batch.count), batch.first, batch.epoch);
        }
    }

    /// There is a record of that time.
    pub(crate) fn saw(&mut self, time: Millis) {
        self.newest = self.newest.max(time);
    }

    /// The greatest time of a record that was noted; 0 if there was none.
    pub(crate) fn newest(&self) -> Millis {
        self.newest
    }

    /// `count` records under this stamp stand from `first` on, written in
    /// `epoch`.
    pub(crate) fn put(&mut self, stamp: &Stamp, count: u64, first: Seq, epoch: Epoch) {
        let run = Run { number: stamp.number, count, first, epoch };
        let known = self.known.entry(stamp.producer);
        let known = known.or_insert_with(|| Producer { epoch: stamp.epoch, runs: VecDeque::new() });
        if let Some(newest) = known.runs.back() {
            self.by_place.remove(&newest.first);
        }
        if known.epoch != stamp.epoch {
            *known = Producer { epoch: stamp.epoch, runs: VecDeque::new() };
        }
        if known.runs.len() == RUNS_MAX {
            known.runs.pop_front();
        }
        known.runs.push_back(run);
        self.by_place.insert(first, stamp.producer);
        if self.known.len() > PRODUCERS_MAX
            && let Some((_, longest_ago)) = self.by_place.pop_first()
        {
            self.known.remove(&longest_ago);
        }
    }

    /// The row that holds them, as of everything up to (`epoch`, `seq`).
    pub(crate) fn encode(&self, epoch: Epoch, seq: Seq) -> Vec<u8> {
        let mut row = vec![VERSION];
        put_varint(&mut row, epoch.0.into());
        put_varint(&mut row, seq.0);
        put_signed(&mut row, self.newest.0);
        put_varint(&mut row, self.known.len() as u64);
        for (id, producer) in &self.known {
            row.extend(id.to_le_bytes());
            put_varint(&mut row, producer.epoch.into());
            put_varint(&mut row, producer.runs.len() as u64);
            for run in &producer.runs {
                for number in [run.number, run.count, run.first.0, run.epoch.0.into()] {
                    put_varint(&mut row, number);
                }
            }
        }
        row
    }

    /// What [`Producers::encode`] wrote, with the place that it is of.
    pub(crate) fn decode(row: &[u8]) -> Result<(Self, Epoch, Seq), BadBytes> {
        let mut row = Reader::new(row);
        let version = row.u8()?;
        if !(1..=VERSION).contains(&version) {
            return Err(BadBytes("a version that this build does not read"));
        }
        let place = (Epoch(row.varint32()?), Seq(row.varint()?));
        let mut all = Self::default();
        if version > 1 {
            all.newest = Millis(row.signed()?);
        }
        let mut before = None;
        for _ in 0..row.count(0, PRODUCERS_MAX)? {
            let id = row.u64_le()?;
            if before.replace(id).is_some_and(|before| before >= id) {
                return Err(BadBytes("producers out of order"));
            }
            let epoch = row.varint32()?;
            let runs = row.count(1, RUNS_MAX)?;
            let runs = (0..runs)
                .map(|_| run(&mut row, version, place))
                .collect::<Result<VecDeque<_>, _>>()?;
            if runs
                .iter()
                .zip(runs.iter().skip(1))
                .any(|(a, b)| a.last() + 1 != b.number || a.range().through >= b.first)
            {
                return Err(BadBytes("runs out of order"));
            }
            let producer = Producer { epoch, runs };
            if all.by_place.insert(producer.newest().first, id).is_some() {
                return Err(BadBytes("two producers in one place"));
            }
            all.known.insert(id, producer);
        }
        if !row.is_empty() {
            return Err(BadBytes("bytes after the end"));
        }
        Ok((all, place.0, place.1))
    }
}

fn run(row: &mut Reader<'_>, version: u8, place: (Epoch, Seq)) -> Result<Run, BadBytes> {
    let (epoch, through) = place;
    let number = row.varint()?;
    let count = row.count(1, BATCH_RECORDS_MAX)? as u64;
    let first = Seq(row.varint()?);
    let wrote = if version > 1 { Epoch(row.varint32()?) } else { epoch };
    let fits = number > 0 && number <= u64::MAX / 2 && first > Seq::ZERO && first.0 <= through.0;
    if !fits || count - 1 > through.0 - first.0 {
        return Err(BadBytes("a run beyond its place"));
    }
    Ok(Run { number, count, first, epoch: wrote })
}

const VERSION: u8 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp(producer: u64, epoch: u32, number: u64) -> Stamp {
        Stamp { producer, epoch, number }
    }

    /// Sends batches as (producer, epoch, number, count); the trace has where
    /// each went, or why not.
    fn run(batches: &[(u64, u32, u64, u64)]) -> String {
        let (mut producers, mut next, mut trace) = (Producers::default(), Seq(1), Vec::new());
        for &(producer, epoch, number, count) in batches {
            let stamp = stamp(producer, epoch, number);
            trace.push(match producers.admit(&stamp, count) {
                Ok(Admit::New) => {
                    producers.put(&stamp, count, next, Epoch(1));
                    let range = SeqRange::new(next.prev(), next.prev().plus(count));
                    next = next.plus(count);
                    range.to_string()
                }
                Ok(Admit::Again(range, _)) => format!("again {range}"),
                Err(StampError::Fenced { known, .. }) => format!("fenced by {known}"),
                Err(StampError::Gap { expected, .. }) => format!("{expected} first"),
                Err(StampError::Taken(_)) => "taken".into(),
                Err(error) => {
                    assert_eq!(error, StampError::Forgotten);
                    "forgotten".into()
                }
            });
        }
        trace.join("; ")
    }

    #[test]
    fn the_same_batch_again_gets_the_places_that_it_got() {
        let trace = run(&[(7, 0, 1, 2), (8, 0, 1, 1), (7, 0, 3, 3), (7, 0, 1, 2), (7, 0, 3, 3)]);
        assert_eq!(trace, "(0, 2]; (2, 3]; (3, 6]; again (0, 2]; again (3, 6]");
    }

    #[test]
    fn only_what_comes_next_is_taken() {
        assert_eq!(run(&[(7, 0, 1, 2), (7, 0, 4, 1), (7, 0, 2, 1)]), "(0, 2]; 3 first; taken");
        assert_eq!(run(&[(7, 0, 2, 1)]), "forgotten");
        assert_eq!(run(&[(7, 0, 1, 2), (7, 0, 1, 3)]), "(0, 2]; taken");
    }

    #[test]
    fn a_later_life_begins_at_one_and_shuts_out_the_one_before() {
        let trace = run(&[(7, 1, 1, 2), (7, 2, 3, 1), (7, 2, 1, 2), (7, 1, 3, 1), (7, 1, 1, 2)]);
        assert_eq!(trace, "(0, 2]; 1 first; (2, 4]; fenced by 2; fenced by 2");
    }

    #[test]
    fn a_batch_of_long_ago_is_known_to_be_taken_and_no_more() {
        let mut batches: Vec<_> = (1..=RUNS_MAX as u64 + 1).map(|n| (7, 0, n, 1)).collect();
        batches.extend([(7, 0, 1, 1), (7, 0, 2, 1)]);
        let trace = run(&batches);
        assert!(trace.ends_with("; taken; again (1, 2]"), "{trace}");
    }

    #[test]
    fn who_wrote_longest_ago_is_forgotten_first() {
        let mut producers = Producers::default();
        for id in 0..=PRODUCERS_MAX as u64 {
            producers.put(&stamp(id, 0, 1), 1, Seq(id + 1), Epoch(1));
            if id == 9 {
                producers.put(&stamp(0, 0, 2), 1, Seq(1 << 40), Epoch(1));
            }
        }
        assert_eq!(producers.known.len(), PRODUCERS_MAX);
        assert_eq!(producers.admit(&stamp(1, 0, 2), 1), Err(StampError::Forgotten));
        assert_eq!(producers.admit(&stamp(0, 0, 3), 1), Ok(Admit::New));
    }

    #[test]
    fn the_bytes_at_rest_never_change() {
        let mut producers = Producers::default();
        producers.put(&stamp(0x0102, 3, 1), 2, Seq(5), Epoch(1));
        producers.put(&stamp(0x0102, 3, 3), 300, Seq(7), Epoch(2));
        producers.saw(Millis(7));
        let golden = "02028805 0e 01 0201000000000000 0302 01020501 03ac020702";
        let row: String =
            producers.encode(Epoch(2), Seq(0x288)).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(row, golden.replace(' ', ""));
    }

    #[test]
    fn a_row_of_version_1_is_read() {
        let row = [1, 2, 0x88, 5, 1, 2, 1, 0, 0, 0, 0, 0, 0, 3, 1, 1, 2, 5];
        let (producers, epoch, seq) = Producers::decode(&row).unwrap();
        assert_eq!((epoch, seq, producers.newest()), (Epoch(2), Seq(0x288), Millis(0)));
        let again = producers.admit(&stamp(0x0102, 3, 1), 2);
        assert_eq!(again, Ok(Admit::Again(SeqRange::new(Seq(4), Seq(6)), Epoch(2))));
    }

    proptest! {
        #[test]
        fn what_is_remembered_reads_back_and_follows_from_the_log_alone(
            steps in prop::collection::vec((0_u64..4, 0_u32..3, 1_u64..9, 1_u64..4), 0..60),
            cut in 0_usize..60,
        ) {
            let (mut producers, mut next, mut log) = (Producers::default(), Seq(1), Vec::new());
            for &(producer, epoch, number, count) in &steps {
                let stamp = stamp(producer, epoch, number);
                if producers.admit(&stamp, count) == Ok(Admit::New) {
                    let epoch = Epoch(log.len() as u32 / 3);
                    producers.put(&stamp, count, next, epoch);
                    producers.saw(Millis(number as i64));
                    log.push((stamp, count, next, epoch));
                    next = next.plus(count);
                }
            }
            // From a row in the middle and the rest of the log, the same.
            let cut = cut.min(log.len());
            let mut again = Producers::default();
            let put = |to: &mut Producers, (stamp, count, first, epoch): &(Stamp, u64, Seq, Epoch)| {
                to.put(stamp, *count, *first, *epoch);
                to.saw(Millis(stamp.number as i64));
            };
            log[..cut].iter().for_each(|batch| put(&mut again, batch));
            let seq = log.get(cut).map_or(next.prev(), |(_, _, first, _)| first.prev());
            let (mut again, epoch, at) = Producers::decode(&again.encode(Epoch(7), seq)).unwrap();
            prop_assert_eq!((epoch, at), (Epoch(7), seq));
            log[cut..].iter().for_each(|batch| put(&mut again, batch));
            prop_assert_eq!(again, producers);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(row in prop::collection::vec(any::<u8>(), 0..200)) {
            crate::fuzz::producers_row(&row);
        }
    }
}
