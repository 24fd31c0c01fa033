//! The topic of hot keys: a function of the topic, and of which keys are hot.
//!
//! Which keys are hot cannot be computed again, so it is logged: set `v` is in
//! force for records after number `s`. With both, the topic of hot keys is the
//! same each time it is made: of a range, the changes of keys that are hot in
//! it; and at the number after which another set is in force, each key that
//! enters with all that it has there, and each that leaves. Numbers, times and epochs are
//! the source's.

use std::collections::BTreeSet;

use bytes::Bytes;
use tideline_record::batch::BatchBuilder;
use tideline_record::frame::Frame;
use tideline_types::limits::{BATCH_RECORDS_MAX, DERIVED_RECORDS_MAX};
use tideline_types::{Millis, Seq};

use crate::sketch::Sketch;

/// Another set, in force after the end of a range.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Keys that enter, each with the change that brings what it has.
    pub(crate) enter: Vec<(Bytes, Bytes)>,
    /// Keys that leave.
    pub(crate) leave: Vec<Bytes>,
}

/// The set that should be in force: the keys asked for most, at least `least`
/// times, up to `max`. One that is hot stays as long as it is among twice as
/// many, so that two keys of the same heat do not change places all the time.
/// `None` if it is the one in force.
pub(crate) fn decide(
    now: &BTreeSet<Bytes>,
    sketch: &Sketch,
    least: u64,
    max: usize,
) -> Option<BTreeSet<Bytes>> {
    let wide: Vec<&Bytes> = sketch.top(least).take(2 * max).map(|(key, _)| key).collect();
    let stay = wide.iter().filter(|key| now.contains(**key)).take(max);
    let mut next: BTreeSet<Bytes> = stay.map(|key| (*key).clone()).collect();
    for key in wide.iter().take(max) {
        if next.len() < max {
            next.insert((*key).clone());
        }
    }
    (next != *now).then_some(next)
}

/// What the topic of hot keys has for `frame`, of which the keys in `hot` are
/// hot; `turn` comes at its end.
pub(crate) fn hot_frame(
    frame: &Frame,
    hot: &BTreeSet<Bytes>,
    turn: Option<&Turn>,
    time: Millis,
) -> Frame {
    let leave = Bytes::from_static(br#"{"leave":true}"#);
    let mut out = Writer { frame, batches: Vec::new(), sink: None, last: Seq::ZERO };
    for record in frame.records() {
        if !record.erased && !record.skipped && hot.contains(record.key) {
            out.push(record.seq, record.time, record.key, record.value);
        }
    }
    let end = frame.range().through;
    for (key, brings) in turn.iter().flat_map(|turn| &turn.enter) {
        out.push(end, time, key, brings);
    }
    for key in turn.iter().flat_map(|turn| &turn.leave) {
        out.push(end, time, key, &leave);
    }
    out.finish()
}

struct Writer<'a> {
    frame: &'a Frame,
    batches: Vec<Bytes>,
    sink: Option<BatchBuilder>,
    last: Seq,
}

impl Writer<'_> {
    fn push(&mut self, seq: Seq, time: Millis, key: &[u8], value: &[u8]) {
        // All of a number stand in one batch: there is room for what one may have.
        let full = |sink: &mut BatchBuilder| {
            seq != self.last
                && (sink.len() + 4 * DERIVED_RECORDS_MAX > BATCH_RECORDS_MAX
                    || !sink.has_room(0, GROUP_BYTES_MAX))
        };
        if let Some(sink) = self.sink.take_if(full) {
            self.batches.push(sink.finish());
        }
        let sink = self.sink.get_or_insert_with(|| {
            BatchBuilder::new(self.frame.stream(), self.frame.epoch(), seq).derived()
        });
        sink.push_at(seq, time, key, value);
        self.last = seq;
    }

    fn finish(mut self) -> Frame {
        self.batches.extend(self.sink.take().map(BatchBuilder::finish));
        let frame = self.frame;
        Frame::new(frame.stream(), frame.epoch(), frame.range(), &self.batches)
    }
}

/// Bytes of what one number may have, at most: what an operator made of it, and
/// a turn.
const GROUP_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use tideline_types::{Epoch, SeqRange, StreamId};

    use super::*;

    fn frame() -> Frame {
        let mut batch = BatchBuilder::new(StreamId::default(), Epoch(2), Seq(11));
        for key in ["a", "b", "a", "c"] {
            batch.push(Millis(7), key.as_bytes(), b"{\"add\":1}");
        }
        let range = SeqRange::new(Seq(10), Seq(20));
        Frame::new(StreamId::default(), Epoch(2), range, &[batch.finish()])
    }

    fn keys(keys: &[&str]) -> BTreeSet<Bytes> {
        keys.iter().map(|key| Bytes::copy_from_slice(key.as_bytes())).collect()
    }

    fn shown(frame: &Frame) -> Vec<String> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        frame
            .records()
            .map(|r| format!("{}.{} {} {}", r.seq, r.sub, text(r.key), text(r.value)))
            .collect()
    }

    #[test]
    fn hot_keys_are_handed_on_and_a_turn_stands_at_the_end_of_its_range() {
        let hot = hot_frame(&frame(), &keys(&["a"]), None, Millis(7));
        assert_eq!(shown(&hot), [r#"11.0 a {"add":1}"#, r#"13.0 a {"add":1}"#]);
        assert_eq!(hot.range(), frame().range());
        let turn = Turn {
            enter: vec![("b".into(), br#"{"enter":{"counter":1}}"#[..].into())],
            leave: vec!["a".into()],
        };
        let hot = hot_frame(&frame(), &keys(&["a"]), Some(&turn), Millis(7));
        let expected = [
            r#"11.0 a {"add":1}"#,
            r#"13.0 a {"add":1}"#,
            r#"20.0 b {"enter":{"counter":1}}"#,
            r#"20.1 a {"leave":true}"#,
        ];
        assert_eq!(shown(&hot), expected);
        assert!(Frame::parse(hot.bytes().clone()).is_ok());
        let nothing = hot_frame(&frame(), &keys(&[]), None, Millis(7));
        assert_eq!((nothing.range(), shown(&nothing).len()), (frame().range(), 0));
    }

    #[test]
    fn keys_of_the_same_heat_do_not_change_places() {
        let mut sketch = Sketch::new(10);
        for (key, times) in [("a", 9), ("b", 5), ("c", 5), ("d", 1)] {
            sketch.add(key.as_bytes(), times);
        }
        let next = |now: &[&str], max| decide(&keys(now), &sketch, 2, max);
        assert_eq!(next(&[], 2), Some(keys(&["a", "c"])));
        assert_eq!(next(&["a", "b"], 2), None);
        assert_eq!(next(&["a", "c"], 2), None);
        assert_eq!(next(&["c"], 1), None, "among the first two");
        assert_eq!(next(&["x"], 1), Some(keys(&["a"])));
        assert_eq!(next(&["d"], 9), Some(keys(&["a", "b", "c"])), "too cold to be hot");
    }
}
