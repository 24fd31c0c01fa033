//! Derived topics: what operators make of the records of a source.
//!
//! A derived record keeps the number, time and epoch of the record it comes
//! from; several of one number stand in the order in which they were made.
//! Numbers whose records are left out are covered all the same. Nothing is
//! stored: the same source gives the same records, byte for byte, each time.
//!
//! Another version of an operator takes effect at a number of each partition,
//! its cut: what is before it is made as before, whoever reads it and whenever.

use std::sync::Arc;

use bytes::Bytes;
use tideline_types::limits::{BATCH_RECORDS_MAX, DERIVED_BYTES_MAX, DERIVED_RECORDS_MAX};
use tideline_types::{PartitionId, Seq, SeqRange};

use crate::batch::{BatchBuilder, BatchRef, Record};
use crate::frame::Frame;
use crate::operator::{OnError, Operator, Output};

/// One step from a topic to the one derived from it.
pub struct Stage {
    /// By their cuts; the first has none.
    pub versions: Vec<Version>,
    /// What becomes of a record on which one of them fails.
    pub on_error: OnError,
}

/// An operator, from a number of each partition on.
pub struct Version {
    /// By partition; empty for the first version, which is from the start.
    pub cuts: Vec<Seq>,
    /// What makes the records.
    pub operator: Arc<dyn Operator>,
}

impl Stage {
    fn operator(&self, partition: PartitionId, seq: Seq) -> Option<&dyn Operator> {
        let cut = |v: &&Version| v.cuts.get(usize::from(partition.0)).is_none_or(|cut| *cut <= seq);
        self.versions.iter().rev().find(cut).map(|version| &*version.operator)
    }
}

/// An operator has failed where it may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// On which record.
    pub seq: Seq,
    /// As the operator says.
    pub why: String,
}

/// What was made of a batch.
pub struct Made {
    /// Batches of what was made, in order; none where all was left out.
    pub batches: Vec<Bytes>,
    /// Up to where.
    pub through: Seq,
    /// Why no further, if not for its size.
    pub halt: Option<Halt>,
}

/// The batches that a derived topic has for one batch of its source, of which
/// only records from `from` on are made, until there are `bytes_max` of them.
pub fn batches(source: &BatchRef<'_>, from: Seq, stages: &[Arc<Stage>], bytes_max: usize) -> Made {
    let mut making = Making { source, stages, sink: None, out: Vec::new(), bytes: 0 };
    let (mut spare, mut whole) = (Vec::new(), Output::default());
    for record in source.records().filter(|record| record.seq >= from && !record.erased) {
        whole.clear();
        if let Err(why) = making.apply(&record, 0, &mut whole, &mut spare) {
            let over = whole.is_over() && stages.iter().all(|s| s.on_error == OnError::Skip);
            if !over {
                return making.finish(record.seq.prev(), Some(Halt { seq: record.seq, why }));
            }
            whole.clear();
            whole.add(b"", why.as_bytes(), true);
        }
        making.emit(&record, &whole);
        if making.bytes >= bytes_max {
            return making.finish(record.seq, None);
        }
    }
    making.finish(source.range().through, None)
}

/// What a reader makes of a frame by itself, as a host makes it of its log:
/// frames of about `bytes_max` that join, and cover what the frame covers; less
/// where an operator has failed and may not.
pub fn frames(
    source: &Frame,
    stages: &[Arc<Stage>],
    bytes_max: usize,
) -> (Vec<Frame>, Option<Halt>) {
    let (mut after, mut pending, mut bytes) = (source.range().after, Vec::new(), 0);
    let mut frames = Vec::new();
    let frame = |after: &mut Seq, through: Seq, batches: &[Bytes]| {
        let range = SeqRange::new(std::mem::replace(after, through), through);
        Frame::new(source.stream(), source.epoch(), range, batches)
    };
    for batch in source.batches() {
        let mut from = source.range().after.max(batch.range().after).next();
        while from <= batch.range().through {
            let made = batches(&batch, from, stages, bytes_max);
            bytes += made.batches.iter().map(Bytes::len).sum::<usize>();
            pending.extend(made.batches);
            from = made.through.next();
            if made.halt.is_some() {
                frames.push(frame(&mut after, made.through, &pending));
                return (frames, made.halt);
            }
            if bytes >= bytes_max {
                frames.push(frame(&mut after, made.through, &pending));
                (pending, bytes) = (Vec::new(), 0);
            }
        }
    }
    if after < source.range().through || frames.is_empty() {
        frames.push(frame(&mut after, source.range().through, &pending));
    }
    (frames, None)
}

/// A source batch on its way through the stages.
struct Making<'a> {
    source: &'a BatchRef<'a>,
    stages: &'a [Arc<Stage>],
    sink: Option<BatchBuilder>,
    out: Vec<Bytes>,
    /// Of keys and values that were made.
    bytes: usize,
}

impl Making<'_> {
    /// Adds to `whole` what `record` becomes by the stages from `at` on.
    fn apply(
        &self,
        record: &Record<'_>,
        at: usize,
        whole: &mut Output,
        spare: &mut Vec<Output>,
    ) -> Result<(), String> {
        let Some(stage) = self.stages.get(at) else {
            whole.add(record.key, record.value, record.skipped);
            return Ok(());
        };
        let operator = stage.operator(self.source.stream().partition, record.seq);
        let Some(operator) = operator else { return Err("there is no operator".into()) };
        let mut made = spare.pop().unwrap_or_default();
        made.clear();
        let failed = match operator.apply(record, &mut made) {
            Ok(()) if made.is_over() => Some(TOO_MUCH.to_owned()),
            Ok(()) => None,
            Err(why) => Some(why),
        };
        let applied = match (failed, stage.on_error) {
            (None, _) => made.records().try_for_each(|(key, value, _)| {
                let next = Record { key, value, ..*record };
                self.apply(&next, at + 1, whole, spare)
            }),
            (Some(why), OnError::Halt) => Err(why),
            // What failed is not shown to the stages after.
            (Some(why), OnError::Skip) => {
                whole.add(b"", why.as_bytes(), true);
                Ok(())
            }
        };
        spare.push(made);
        applied?;
        if whole.is_over() { Err(TOO_MUCH.into()) } else { Ok(()) }
    }

    fn emit(&mut self, record: &Record<'_>, made: &Output) {
        let full = |sink: &mut BatchBuilder| {
            let records = sink.len() + DERIVED_RECORDS_MAX > BATCH_RECORDS_MAX;
            // All of a number stand in one batch.
            records || !sink.has_room(DERIVED_RECORDS_MAX * OVERHEAD, DERIVED_BYTES_MAX)
        };
        if let Some(sink) = self.sink.take_if(full) {
            self.out.push(sink.finish());
        }
        self.bytes += made.bytes();
        for (key, value, skipped) in made.records() {
            let begin = || {
                let (stream, epoch) = (self.source.stream(), self.source.epoch());
                BatchBuilder::new(stream, epoch, record.seq).derived()
            };
            let sink = self.sink.get_or_insert_with(begin);
            match std::str::from_utf8(value) {
                Ok(why) if skipped => sink.push_skipped(record.seq, record.time, why),
                _ => sink.push_at(record.seq, record.time, key, value),
            }
        }
    }

    fn finish(mut self, through: Seq, halt: Option<Halt>) -> Made {
        self.out.extend(self.sink.take().map(BatchBuilder::finish));
        Made { batches: self.out, through, halt }
    }
}

/// Bytes that a batch adds to a record, about.
const OVERHEAD: usize = 30;

const TOO_MUCH: &str = "more than 1,000 records or 1 MiB from one record";

#[cfg(test)]
mod tests {
    use tideline_types::{Epoch, Millis, StreamId};

    use super::*;

    /// Splits values at spaces; fails on "!", and marks with its version.
    struct Words(u64);

    impl Operator for Words {
        fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
            let text = std::str::from_utf8(record.value).map_err(|e| e.to_string())?;
            if text == "!" {
                return Err("cannot".into());
            }
            for word in text.split_whitespace() {
                out.push(record.key, format!("{word}{}", self.0).as_bytes());
            }
            Ok(())
        }
    }

    fn stage(on_error: OnError, versions: &[(u64, &[u64])]) -> Arc<Stage> {
        let versions = versions.iter().map(|(version, cuts)| Version {
            cuts: cuts.iter().map(|cut| Seq(*cut)).collect(),
            operator: Arc::new(Words(*version)),
        });
        Arc::new(Stage { versions: versions.collect(), on_error })
    }

    fn source(values: &[&str]) -> Bytes {
        let mut source = BatchBuilder::new(StreamId::default(), Epoch(3), Seq(10));
        for value in values {
            source.push(Millis(7), b"k", value.as_bytes());
        }
        source.finish()
    }

    fn made(values: &[&str], from: u64, stages: &[Arc<Stage>]) -> String {
        let source = source(values);
        let source = BatchRef::parse(&source).unwrap();
        let Made { batches, halt, .. } = batches(&source, Seq(from), stages, usize::MAX);
        let mut all: Vec<String> = batches
            .iter()
            .flat_map(|b| BatchRef::parse(b).unwrap().records())
            .map(|r| {
                let mark = if r.skipped { "skipped " } else { "" };
                format!("{}.{} {mark}{}", r.seq, r.sub, String::from_utf8_lossy(r.value))
            })
            .collect();
        all.extend(halt.map(|halt| format!("halt at {}: {}", halt.seq, halt.why)));
        all.join(", ")
    }

    #[test]
    fn records_keep_their_numbers_and_stand_in_the_order_in_which_they_were_made() {
        let stages = [stage(OnError::Skip, &[(1, &[])])];
        assert_eq!(made(&["a b", "", "c"], 0, &stages), "10.0 a1, 10.1 b1, 12.0 c1");
        assert_eq!(made(&["a b", "", "c"], 12, &stages), "12.0 c1");
    }

    #[test]
    fn a_failure_stands_in_its_place_or_ends_it() {
        let values = ["a", "!", "b"];
        let skip = [stage(OnError::Skip, &[(1, &[])])];
        assert_eq!(made(&values, 0, &skip), "10.0 a1, 11.0 skipped cannot, 12.0 b1");
        let halt = [stage(OnError::Halt, &[(1, &[])])];
        assert_eq!(made(&values, 0, &halt), "10.0 a1, halt at 11: cannot");
    }

    #[test]
    fn a_range_ends_where_there_is_enough() {
        let source = source(&["aaaa", "bbbb", "cccc"]);
        let source = BatchRef::parse(&source).unwrap();
        let stages = [stage(OnError::Skip, &[(1, &[])])];
        let through = |from| batches(&source, Seq(from), &stages, 10).through;
        assert_eq!([through(10), through(12)], [Seq(11), Seq(12)]);
    }

    #[test]
    fn a_reader_makes_of_a_frame_what_a_host_makes_of_the_log() {
        let stages = [stage(OnError::Skip, &[(1, &[])])];
        let batch = source(&["a b", "", "c", "dd", ""]);
        // The frame begins in the middle of its batch, and covers more than it.
        let range = SeqRange::new(Seq(10), Seq(20));
        let whole = Frame::new(StreamId::default(), Epoch(3), range, std::slice::from_ref(&batch));
        for bytes_max in [1, 4, 1 << 20] {
            let (frames, halt) = frames(&whole, &stages, bytes_max);
            assert_eq!(halt, None);
            let mut stands = Seq(10);
            let mut seen = Vec::new();
            for frame in &frames {
                assert_eq!(frame.range().after, stands);
                stands = frame.range().through;
                seen.extend(frame.records().map(|r| (r.seq.0, r.value.to_vec())));
                assert!(Frame::parse(frame.bytes().clone()).is_ok());
            }
            assert_eq!(stands, Seq(20));
            assert_eq!(seen, [(12, b"c1".to_vec()), (13, b"dd1".to_vec())]);
        }
        let halts = [stage(OnError::Halt, &[(1, &[])])];
        let batch = source(&["a", "!", "b"]);
        let range = SeqRange::new(Seq(9), Seq(12));
        let whole = Frame::new(StreamId::default(), Epoch(3), range, std::slice::from_ref(&batch));
        let (frames, halt) = frames(&whole, &halts, 1 << 20);
        assert_eq!((frames[0].range().through, halt.unwrap().seq), (Seq(10), Seq(11)));
    }

    #[test]
    fn what_is_before_a_cut_is_made_as_before() {
        let stages = [stage(OnError::Skip, &[(1, &[]), (2, &[12])])];
        assert_eq!(made(&["a", "b", "c", "d"], 0, &stages), "10.0 a1, 11.0 b1, 12.0 c2, 13.0 d2");
    }

    #[test]
    fn a_derived_topic_may_be_the_source_of_another() {
        let stages = [stage(OnError::Skip, &[(1, &[])]), stage(OnError::Skip, &[(2, &[])])];
        let made = made(&["a b", "!"], 0, &stages);
        assert_eq!(made, "10.0 a12, 10.1 b12, 11.0 skipped cannot");
    }

    #[test]
    fn too_much_from_one_record_is_a_failure_and_leaves_no_part_of_it() {
        let many = "w ".repeat(DERIVED_RECORDS_MAX + 1);
        let stages = [stage(OnError::Skip, &[(1, &[])])];
        assert_eq!(made(&[&many, "b"], 0, &stages), format!("10.0 skipped {TOO_MUCH}, 11.0 b1"));
    }
}
