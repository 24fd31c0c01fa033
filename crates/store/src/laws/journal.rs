//! The laws of [`Journal`].

// A law panics where it is broken.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, SeqRange, StreamId};

use super::Heard;
use crate::{AppendError, Bounds, Journal, ReadError, ReadLimits};
use tideline_record::batch::{BatchBuilder, BatchRef};

const ALL: ReadLimits = ReadLimits { records_max: usize::MAX, bytes_max: usize::MAX };

fn stream(partition: u16) -> StreamId {
    StreamId { incarnation: Incarnation(1), partition: PartitionId(partition) }
}

fn value(stream: StreamId, seq: Seq) -> Vec<u8> {
    format!("value {seq} of {stream}").into_bytes()
}

/// The next batch of `count` records after `bounds`.
fn batch(stream: StreamId, epoch: Epoch, first: Seq, count: u64) -> Bytes {
    let mut builder = BatchBuilder::new(stream, epoch, first);
    for n in 0..count {
        let seq = first.plus(n);
        builder.push(Millis(seq.0 as i64), b"key", &value(stream, seq));
    }
    builder.finish()
}

/// Appends `count` records and waits for their sync.
fn say(journal: &dyn Journal, heard: &Heard, stream: StreamId, count: u64) {
    let Bounds { epoch, next, .. } = bounds(journal, stream);
    journal.append(stream, batch(stream, epoch, next, count)).unwrap();
    heard.wait_synced(next.plus(count).prev());
}

fn bounds(journal: &dyn Journal, stream: StreamId) -> Bounds {
    journal.bounds(stream).expect("the stream exists")
}

/// Every record from `from` on: number and value (empty if erased).
fn records(journal: &dyn Journal, stream: StreamId, from: Seq) -> Vec<(Seq, Vec<u8>)> {
    let (mut out, mut next) = (Vec::new(), from);
    loop {
        let batches = journal.read(stream, next, ALL).unwrap();
        if batches.is_empty() {
            return out;
        }
        for bytes in &batches {
            let batch = BatchRef::parse(bytes).expect("law: what is read is whole");
            assert_eq!(batch.stream(), stream);
            let records = batch.records().filter(|r| r.seq >= from);
            out.extend(records.map(|r| (r.seq, r.value.to_vec())));
            next = batch.range().through.next();
        }
    }
}

fn assert_whole(journal: &dyn Journal, stream: StreamId) {
    let Bounds { start, synced, next, .. } = bounds(journal, stream);
    assert!(start <= synced.next() && synced < next, "law: start <= synced + 1, synced < next");
    let found = records(journal, stream, start);
    let expected: Vec<_> = (start.0..=synced.0).map(|n| (Seq(n), value(stream, Seq(n)))).collect();
    assert_eq!(found, expected, "law: no gap, no double, no change");
    let covered = journal.extents(stream);
    assert_eq!(covered.first().map_or(start, |e| e.range.after.next()), start);
    assert_eq!(covered.last().map_or(synced, |e| e.range.through), synced);
    assert!(
        covered.windows(2).all(|p| p[0].range.through == p[1].range.after),
        "law: extents join"
    );
}

fn owned(journal: &dyn Journal, partitions: u16) -> Vec<(StreamId, Heard)> {
    let streams: Vec<_> = (0..partitions).map(stream).collect();
    journal.create(&streams).unwrap();
    let own = |stream| {
        let heard = Heard::default();
        journal.fence(stream, Arc::new(heard.clone())).unwrap();
        (stream, heard)
    };
    streams.into_iter().map(own).collect()
}

/// Runs every law that needs no restart, each on a journal of its own that
/// syncs by itself.
#[allow(clippy::missing_panics_doc)]
pub fn journal(make: &dyn Fn() -> Arc<dyn Journal>) {
    streams_are_made_once_and_removed(&*make());
    what_is_synced_is_read_as_it_came(&*make());
    reads_keep_their_limits(&*make());
    only_the_next_batch_of_the_owner_is_taken(&*make());
    an_epoch_that_wrote_is_remembered(&*make());
    streams_share_syncs(&*make());
    trimmed_records_are_gone_and_the_rest_stays(&*make());
    an_erased_record_leaves_its_place(&*make());
    a_closed_journal_takes_nothing(&*make());
}

fn streams_are_made_once_and_removed(journal: &dyn Journal) {
    let owned = owned(journal, 3);
    say(journal, &owned[1].1, stream(1), 3);
    journal.create(&[stream(1), stream(3)]).unwrap();
    assert_eq!(bounds(journal, stream(1)).synced, Seq(3), "law: an existing stream stays");
    assert_eq!(journal.streams(), [0, 1, 2, 3].map(stream));
    journal.remove(&[stream(1), stream(0)]).unwrap();
    assert_eq!(journal.streams(), [stream(2), stream(3)]);
    assert!(journal.bounds(stream(1)).is_none());
    assert!(matches!(journal.read(stream(1), Seq(1), ALL), Err(ReadError::NoStream(_))));
    let late = journal.append(stream(1), batch(stream(1), Epoch(1), Seq(4), 1));
    assert!(matches!(late, Err(AppendError::NoStream(_))));
    journal.create(&[stream(1)]).unwrap();
    assert_eq!(bounds(journal, stream(1)).next, Seq(1), "law: a stream made anew is empty");
    assert_whole(journal, stream(1));
}

fn what_is_synced_is_read_as_it_came(journal: &dyn Journal) {
    let owned = owned(journal, 2);
    let mut sent = Vec::new();
    for n in 1..=20 {
        let next = bounds(journal, stream(0)).next;
        let bytes = batch(stream(0), Epoch(1), next, n % 3 + 1);
        journal.append(stream(0), bytes.clone()).unwrap();
        sent.push(bytes);
        say(journal, &owned[1].1, stream(1), 1);
    }
    owned[0].1.wait_synced(bounds(journal, stream(0)).next.prev());
    let read = journal.read(stream(0), Seq(1), ALL).unwrap();
    assert_eq!(read, sent, "law: byte for byte");
    assert!(journal.read(stream(0), Seq(1_000), ALL).unwrap().is_empty());
    owned.iter().for_each(|(stream, _)| assert_whole(journal, *stream));
}

fn reads_keep_their_limits(journal: &dyn Journal) {
    let owned = owned(journal, 1);
    for _ in 0..10 {
        say(journal, &owned[0].1, stream(0), 4);
    }
    let read = |from, records_max, bytes_max| {
        let limits = ReadLimits { records_max, bytes_max };
        let batches = journal.read(stream(0), Seq(from), limits).unwrap();
        let first = BatchRef::parse(&batches[0]).unwrap().range();
        assert!(first.contains(Seq(from)), "law: the first batch contains `from`");
        batches.len()
    };
    assert_eq!(read(6, 1, usize::MAX), 1, "law: the first batch always comes");
    assert_eq!(read(6, usize::MAX, 1), 1, "law: the first batch always comes");
    assert_eq!(read(1, 8, usize::MAX), 2);
    assert_eq!(read(1, 11, usize::MAX), 2);
    assert_eq!(read(40, 100, usize::MAX), 1);
}

fn only_the_next_batch_of_the_owner_is_taken(journal: &dyn Journal) {
    let id = stream(0);
    journal.create(&[id]).unwrap();
    let unowned = journal.append(id, batch(id, Epoch(0), Seq(1), 1));
    assert!(matches!(unowned, Err(AppendError::Fenced { .. })), "law: no owner, no append");
    let (old, new) = (Heard::default(), Heard::default());
    let first = journal.fence(id, Arc::new(old.clone())).unwrap();
    say(journal, &old, id, 2);
    for wrong in [Seq(1), Seq(2), Seq(4)] {
        let refused = journal.append(id, batch(id, first.epoch, wrong, 1));
        let expected = matches!(refused, Err(AppendError::OutOfOrder { expected: Seq(3), .. }));
        assert!(expected, "law: batches follow each other ({wrong})");
    }
    let other = journal.append(id, batch(stream(1), first.epoch, Seq(3), 1));
    assert!(other.is_err(), "law: a batch is its stream's");
    assert!(journal.append(id, Bytes::from_static(b"no batch")).is_err());
    journal.append(id, batch(id, first.epoch, Seq(3), 1)).unwrap();
    let second = journal.fence(id, Arc::new(new.clone())).unwrap();
    assert!(second.epoch > first.epoch, "law: a fence raises the epoch");
    assert_eq!(second.next, second.synced.next(), "law: nothing waits after a fence");
    let late = journal.append(id, batch(id, first.epoch, second.next, 1));
    assert!(matches!(late, Err(AppendError::Fenced { .. })), "law: the former owner is fenced");
    let told = old.times();
    say(journal, &new, id, 1);
    assert_eq!(old.times(), told, "law: the former owner is told nothing more");
    assert_whole(journal, id);
}

fn an_epoch_that_wrote_is_remembered(journal: &dyn Journal) {
    let id = stream(0);
    journal.create(&[id]).unwrap();
    for _ in 0..3 {
        let heard = Heard::default();
        journal.fence(id, Arc::new(Heard::default())).unwrap();
        journal.fence(id, Arc::new(heard.clone())).unwrap();
        say(journal, &heard, id, 2);
    }
    let epochs: Vec<_> = journal.epochs(id).iter().map(|e| (e.epoch.0, e.first.0)).collect();
    assert_eq!(epochs, [(2, 1), (4, 3), (6, 5)]);
}

fn streams_share_syncs(journal: &dyn Journal) {
    let owned = owned(journal, 64);
    let before = journal.usage().syncs;
    for round in 0..50 {
        for (id, _) in &owned {
            journal.append(*id, batch(*id, Epoch(1), Seq(round + 1), 1)).unwrap();
        }
    }
    owned.iter().for_each(|(_, heard)| heard.wait_synced(Seq(50)));
    let syncs = journal.usage().syncs - before;
    assert!(syncs <= 50 * 64 / 2, "law: appends that wait together share a sync ({syncs})");
    owned.iter().for_each(|(id, _)| assert_whole(journal, *id));
}

fn trimmed_records_are_gone_and_the_rest_stays(journal: &dyn Journal) {
    let owned = owned(journal, 2);
    for _ in 0..10 {
        say(journal, &owned[0].1, stream(0), 4);
        say(journal, &owned[1].1, stream(1), 4);
    }
    let start = journal.trim(stream(0), Seq(21)).unwrap();
    assert!(start <= Seq(22), "law: nothing after `through` is freed");
    assert_eq!(bounds(journal, stream(0)).start, start);
    if start > Seq(1) {
        let freed = journal.read(stream(0), start.prev(), ALL);
        assert!(matches!(freed, Err(ReadError::Truncated { start: s }) if s == start));
    }
    assert_whole(journal, stream(0));
    assert_eq!(bounds(journal, stream(1)).start, Seq(1), "law: each stream is freed by itself");
    let start = journal.trim(stream(0), Seq(1_000)).unwrap();
    assert!(start <= Seq(41));
    say(journal, &owned[0].1, stream(0), 2);
    assert_eq!(bounds(journal, stream(0)).synced, Seq(42), "law: numbers go on after a trim");
    assert_whole(journal, stream(0));
}

fn an_erased_record_leaves_its_place(journal: &dyn Journal) {
    let owned = owned(journal, 1);
    for _ in 0..5 {
        say(journal, &owned[0].1, stream(0), 4);
    }
    let gone = |n: u64| n.is_multiple_of(5) && n <= 15;
    let mut choose = |seq: Seq, key: &[u8], found: &[u8]| {
        assert_eq!((key, found), (&b"key"[..], &value(stream(0), seq)[..]));
        gone(seq.0)
    };
    let range = SeqRange::new(Seq(2), Seq(18));
    let report = journal.erase(stream(0), range, &mut choose).unwrap();
    assert_eq!((report.seen, report.erased), (16, 3));
    for (seq, found) in records(journal, stream(0), Seq(1)) {
        let expected = if gone(seq.0) { Vec::new() } else { value(stream(0), seq) };
        assert_eq!(found, expected, "law: exactly what was chosen is empty ({seq})");
    }
    let again = journal.erase(stream(0), range, &mut |_, _, v| v.is_empty()).unwrap();
    assert_eq!(again.erased, 0, "law: an erased record is not chosen again");
    say(journal, &owned[0].1, stream(0), 2);
    assert_eq!(records(journal, stream(0), Seq(21)).len(), 2);
}

fn a_closed_journal_takes_nothing(journal: &dyn Journal) {
    let owned = owned(journal, 1);
    journal.append(stream(0), batch(stream(0), Epoch(1), Seq(1), 3)).unwrap();
    journal.close().unwrap();
    assert_eq!(owned[0].1.synced(), Seq(3), "law: closing syncs what waits");
    assert!(journal.append(stream(0), batch(stream(0), Epoch(1), Seq(4), 1)).is_err());
    assert!(journal.fence(stream(0), Arc::new(Heard::default())).is_err());
}

/// Runs the laws of an engine that keeps its records: `reopen` is given the
/// journal (none at first), ends it, and opens it again on the same bytes.
#[allow(clippy::missing_panics_doc)]
pub fn journal_that_lasts(reopen: &dyn Fn(Option<Arc<dyn Journal>>) -> Arc<dyn Journal>) {
    let mut journal = reopen(None);
    journal.create(&[stream(0), stream(1), stream(2)]).unwrap();
    let mut epoch = Epoch(0);
    for round in 0..6_u64 {
        for n in 0..2 {
            let heard = Heard::default();
            let fenced = journal.fence(stream(n), Arc::new(heard.clone())).unwrap();
            assert!(n > 0 || fenced.epoch > epoch, "law: epochs outlive a restart");
            epoch = epoch.max(fenced.epoch);
            for _ in 0..5 {
                say(&*journal, &heard, stream(n), round + 1);
            }
        }
        let before = [0, 1, 2].map(|n| bounds(&*journal, stream(n)));
        let epochs = journal.epochs(stream(0));
        if round % 2 == 1 {
            journal.close().unwrap();
        }
        journal = reopen(Some(journal));
        let after = [0, 1, 2].map(|n| bounds(&*journal, stream(n)));
        assert_eq!(after, before, "law: everything synced is found");
        assert_eq!(journal.epochs(stream(0)), epochs);
        let unowned = journal.append(stream(0), batch(stream(0), epoch, after[0].next, 1));
        assert!(matches!(unowned, Err(AppendError::Fenced { .. })), "law: an owner fences first");
        for n in 0..3 {
            assert_whole(&*journal, stream(n));
        }
        if round == 3 {
            let start = journal.trim(stream(0), Seq(20)).unwrap();
            journal = reopen(Some(journal));
            assert_eq!(bounds(&*journal, stream(0)).start, start, "law: a trim lasts");
            journal.remove(&[stream(2)]).unwrap();
            journal = reopen(Some(journal));
            assert_eq!(journal.streams(), [stream(0), stream(1)], "law: a removal lasts");
            journal.create(&[stream(2)]).unwrap();
        }
    }
}
