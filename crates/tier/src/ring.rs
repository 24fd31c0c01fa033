//! The newest frames of a partition's hot keys, for those who follow them.
//!
//! Bounded in bytes. Holds no reader: one who is further back than the oldest
//! frame is told so, and takes a snapshot.

use std::collections::VecDeque;

use bytes::Bytes;
use tideline_record::frame::Frame;
use tideline_types::{Seq, SeqRange};

/// Frames that join, oldest first.
#[derive(Debug)]
pub(crate) struct Ring {
    frames: VecDeque<Frame>,
    bytes: usize,
    bytes_max: usize,
    /// Where the oldest begins.
    after: Seq,
}

impl Ring {
    /// An empty one; the first frame begins after `after`.
    pub(crate) fn new(after: Seq, bytes_max: usize) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, bytes_max, after }
    }

    /// A number after which everything is here.
    pub(crate) fn after(&self) -> Seq {
        self.after
    }

    /// The next frame; the oldest go.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.bytes += frame.bytes().len();
        self.frames.push_back(frame);
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.frames.pop_front()
        {
            self.bytes -= oldest.bytes().len();
            self.after = oldest.range().through;
        }
    }

    /// What comes after `seq`, which is not before [`Ring::after`]: a frame that
    /// begins there. `None` if there is nothing yet.
    pub(crate) fn next(&self, seq: Seq) -> Option<Bytes> {
        let at = self.frames.partition_point(|frame| frame.range().through <= seq);
        let frame = self.frames.get(at)?;
        let range = frame.range();
        if range.after == seq {
            return Some(frame.bytes().clone());
        }
        // A reader of frames that were cut otherwise stands in the middle of one.
        let batches: Vec<Bytes> = frame.batch_bytes().collect();
        let later = Frame::new(
            frame.stream(),
            frame.epoch(),
            SeqRange::new(seq, range.through),
            &batches.into_iter().filter(|batch| covers_after(batch, seq)).collect::<Vec<_>>(),
        );
        Some(later.bytes().clone())
    }
}

/// Whether a batch has records after `seq`.
fn covers_after(batch: &Bytes, seq: Seq) -> bool {
    tideline_record::batch::Header::read(batch).is_ok_and(|header| header.last() > seq)
}

#[cfg(test)]
mod tests {
    use tideline_record::batch::BatchBuilder;
    use tideline_types::{Epoch, Millis, StreamId};

    use super::*;

    fn frame(after: u64, through: u64) -> Frame {
        let mut batch = BatchBuilder::new(StreamId::default(), Epoch(2), Seq(after + 1)).derived();
        (after + 1..=through).for_each(|n| batch.push_at(Seq(n), Millis(7), b"k", b"v"));
        let range = SeqRange::new(Seq(after), Seq(through));
        Frame::new(StreamId::default(), Epoch(2), range, &[batch.finish()])
    }

    #[test]
    fn frames_join_from_wherever_a_reader_stands_and_the_oldest_go() {
        let len = frame(10, 13).bytes().len();
        let mut ring = Ring::new(Seq(10), 3 * len);
        assert_eq!(ring.next(Seq(10)), None);
        for n in 0..9 {
            ring.push(frame(10 + 3 * n, 13 + 3 * n));
        }
        assert_eq!(ring.after(), Seq(28));
        let mut stands = Seq(29);
        let mut seen = Vec::new();
        while let Some(bytes) = ring.next(stands) {
            let frame = Frame::parse(bytes).unwrap();
            assert_eq!(frame.range().after, stands);
            stands = frame.range().through;
            seen.extend(frame.records().map(|record| record.seq.0));
        }
        assert_eq!(seen, (30..=37).collect::<Vec<_>>());
    }
}
