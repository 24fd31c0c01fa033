//! A tier beside a plain model: what a key has is what its topic says at the
//! place that comes with the answer, whatever happens in between.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use tideline_record::batch::BatchBuilder;
use tideline_record::digest::Digest;
use tideline_record::frame::Frame;
use tideline_record::kv::{Change, Whole as Brought};
use tideline_store::mem::MemTable;
use tideline_store::{Table, TableName};
use tideline_tier::{ApplyError, GetError, Has, HotEntry, HotNext, Options, Start, Tier, Whole};
use tideline_types::{
    Epoch, Incarnation, Millis, PartitionId, Position, Seq, SeqRange, StreamId, TopicName,
};

const P: PartitionId = PartitionId(0);

/// Changes of one partition, each of one key.
type Log = Vec<(String, Change)>;

fn at(epoch: u32, seq: u64) -> Position {
    Position { incarnation: Incarnation(7), epoch: Epoch(epoch), seq: Seq(seq) }
}

/// The range `(after, through]` of the log.
fn range(log: &Log, epoch: u32, after: u64, through: u64) -> Frame {
    let stream = StreamId { incarnation: Incarnation(7), partition: P };
    let mut batches = Vec::new();
    if after < through {
        let mut batch = BatchBuilder::new(stream, Epoch(epoch), Seq(after + 1));
        for (n, (key, change)) in (after + 1..).zip(&log[after as usize..through as usize]) {
            batch.push(Millis(n as i64), key.as_bytes(), &change.write());
        }
        batches.push(batch.finish());
    }
    Frame::new(stream, Epoch(epoch), SeqRange::new(Seq(after), Seq(through)), &batches)
}

fn model(log: &Log, through: u64) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for (key, change) in &log[..through as usize] {
        match change {
            Change::Add(by) => *counts.entry(key.clone()).or_default() += by,
            _ => drop(counts.remove(key)),
        }
    }
    counts
}

fn options() -> Options {
    Options { hot_keys_max: 2, hot_least: 2, ring_bytes: 1 << 20 }
}

fn open(table: &Arc<MemTable>) -> Tier {
    Tier::open(table.clone(), TopicName::new("counts").unwrap(), 1, &options()).unwrap()
}

/// Every key, and the place.
fn all(tier: &Tier) -> (u64, BTreeMap<String, i64>) {
    let (position, entries) = tier.page(P, None, 1_000).unwrap();
    let count = |whole: Whole| {
        let Has::Counter(n) = whole.has else { panic!("a counter") };
        (String::from_utf8(whole.key.to_vec()).unwrap(), n)
    };
    (position.seq.0, entries.into_iter().map(count).collect())
}

fn add(key: &str) -> (String, Change) {
    (key.to_owned(), Change::Add(1))
}

#[test]
fn only_a_range_that_joins_is_applied_and_an_empty_one_moves_the_place() {
    let tier = open(&Arc::default());
    let log: Log = vec![add("a"), add("b"), add("a")];
    assert_eq!(tier.start(P), Start::Fresh);
    tier.apply(&range(&log, 1, 0, 2)).unwrap();
    for (after, through) in [(0, 2), (1, 3)] {
        let refused = tier.apply(&range(&log, 1, after, through));
        assert!(matches!(refused, Err(ApplyError::Join { .. })), "{after}");
    }
    assert_eq!(all(&tier), (2, model(&log, 2)));
    tier.apply(&range(&log, 1, 2, 3)).unwrap();
    let empty = Frame::new(
        StreamId { incarnation: Incarnation(7), partition: P },
        Epoch(2),
        SeqRange::new(Seq(3), Seq(10_000)),
        &[],
    );
    tier.apply(&empty).unwrap();
    assert_eq!(tier.get(b"a").unwrap(), (Some(Has::Counter(2)), at(2, 10_000)));
    assert_eq!(tier.get(b"none").unwrap().0, None);
}

/// Queue fault 18: a position that is stored apart from its data.
#[test]
fn what_is_applied_and_how_far_are_in_one_write() {
    let table = Arc::new(MemTable::new());
    let tier = open(&table);
    let log: Log = vec![add("a"), add("b"), add("a"), add("c")];
    tier.apply(&range(&log, 1, 0, 2)).unwrap();
    drop(tier);
    // A restart finds both or neither: they are rows of one partition key.
    let tier = open(&table);
    assert_eq!(tier.start(P), Start::After(at(1, 2)));
    tier.apply(&range(&log, 1, 2, 4)).unwrap();
    assert_eq!(all(&tier), (4, model(&log, 4)));
    let mut keys = Vec::new();
    let walk = table.walk(TableName::Meta, b"", &mut |row| {
        keys.push(row.partition_key);
        true
    });
    walk.unwrap();
    keys.dedup();
    assert_eq!(keys.len(), 1);
}

#[test]
fn a_snapshot_that_is_cut_off_is_never_answered_from() {
    let table = Arc::new(MemTable::new());
    let tier = open(&table);
    tier.apply(&range(&vec![add("old")], 1, 0, 1)).unwrap();
    tier.wipe(P, at(1, 5)).unwrap();
    let whole = Whole { key: "a".into(), has: Has::Counter(3), at: Seq(4) };
    tier.load(P, vec![whole.clone()]).unwrap();
    assert!(matches!(tier.get(b"a"), Err(GetError::NotWhole(_))));
    drop(tier);
    let tier = open(&table);
    assert_eq!(tier.start(P), Start::Snapshot);
    assert!(matches!(tier.get(b"a"), Err(GetError::NotWhole(_))));
    tier.wipe(P, at(1, 5)).unwrap();
    tier.load(P, vec![whole]).unwrap();
    tier.loaded(P, Seq(5)).unwrap();
    assert_eq!(tier.get(b"a").unwrap(), (Some(Has::Counter(3)), at(1, 5)));
    assert_eq!(tier.get(b"old").unwrap().0, None);
}

#[test]
fn records_that_cannot_be_looked_up_are_counted_and_not_just_left_out() {
    let topic = TopicName::new("counts").unwrap();
    let tier = Tier::open(Arc::new(MemTable::new()), topic, 4, &options()).unwrap();
    let log: Log = (0..40).map(|n| add(&format!("k{n}"))).collect();
    tier.apply(&range(&log, 1, 0, 40)).unwrap();
    let (_, here) = all(&tier);
    let skipped = tier.standing()[0].skipped;
    assert!(!here.is_empty() && skipped > 0 && here.len() as u64 + skipped == 40);
}

/// Asks for `key` so often that it is hot.
fn heat(tier: &Tier, key: &str) {
    tier.touch(key.as_bytes(), 10);
    tier.look(true);
}

#[test]
fn a_key_that_becomes_hot_brings_what_it_has_and_is_pushed_from_then_on() {
    let table = Arc::new(MemTable::new());
    let tier = open(&table);
    let log: Log = vec![add("a"), add("b"), add("a"), add("a"), add("b"), add("a")];
    tier.apply(&range(&log, 1, 0, 2)).unwrap();
    heat(&tier, "a");
    let follow = |tier: &Tier, stands: &mut Position| {
        let mut seen = Vec::new();
        while let HotNext::Frame(bytes) = tier.hot_next(P, *stands).unwrap() {
            let frame = Frame::parse(bytes).unwrap();
            assert_eq!(frame.range().after, stands.seq);
            *stands = frame.through();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let shown = |r: tideline_record::batch::Record<'_>| {
                format!("{} {} {}", r.seq, text(r.key), text(r.value))
            };
            seen.extend(frame.records().map(shown));
        }
        seen
    };
    let mut stands = at(1, 0);
    assert_eq!(follow(&tier, &mut stands), [""; 0], "decided, and not in force yet");
    tier.apply(&range(&log, 1, 2, 3)).unwrap();
    tier.apply(&range(&log, 1, 3, 5)).unwrap();
    let brought = Change::Enter(Some(Brought::Counter(2))).write();
    let brought = String::from_utf8(brought).unwrap();
    assert_eq!(
        follow(&tier, &mut stands),
        [format!("3 a {brought}"), r#"4 a {"add":1}"#.to_owned()]
    );
    // After a restart the set is the same; who stands before it begins anew.
    drop(tier);
    let tier = open(&table);
    assert_eq!(tier.hot_next(P, stands).unwrap(), HotNext::Wait);
    let lagged = HotNext::Lagged { next: Seq(4), oldest: Seq(6) };
    assert_eq!(tier.hot_next(P, at(1, 3)).unwrap(), lagged);
    let (position, hot) = tier.hot_snapshot(P).unwrap();
    let entry = HotEntry { key: "a".into(), has: Some(Has::Counter(3)), at: Seq(4) };
    assert_eq!((position, hot), (at(1, 5), vec![entry]));
    tier.apply(&range(&log, 1, 5, 6)).unwrap();
    assert_eq!(follow(&tier, &mut stands), [r#"6 a {"add":1}"#]);
    let other = Position { incarnation: Incarnation(6), ..stands };
    assert!(matches!(tier.hot_next(P, other).unwrap(), HotNext::Recreated { .. }));
}

#[test]
fn a_reader_of_hot_keys_on_a_lost_tail_is_told_so() {
    let tier = open(&Arc::default());
    let log: Log = (0..20).map(|_| add("a")).collect();
    tier.apply(&range(&log, 1, 0, 5)).unwrap();
    tier.apply(&range(&log, 3, 5, 10)).unwrap();
    assert!(matches!(tier.hot_next(P, at(1, 5)).unwrap(), HotNext::Frame(_)));
    assert_eq!(tier.hot_next(P, at(1, 7)).unwrap(), HotNext::Diverged);
    assert_eq!(tier.hot_next(P, at(3, 12)).unwrap(), HotNext::Wait, "it was here before");
}

/// Two tiers that were asked for the same keys at the same places hand on the
/// same, however the ranges that they got were cut between those places.
#[test]
fn the_topic_of_hot_keys_is_the_same_on_two_hosts() {
    let log: Log = (0..60).map(|n| add(["a", "b", "c"][n % 3])).collect();
    let digest = |cut: u64| {
        let tier = open(&Arc::default());
        let (mut through, mut digest) = (0, Digest::default());
        for (to, hot) in [(12, "a"), (30, "b"), (42, "c"), (60, "c")] {
            while through < to {
                let next = (through + cut).min(to);
                if next == to {
                    heat(&tier, hot);
                }
                tier.apply(&range(&log, 1, through, next)).unwrap();
                through = next;
            }
        }
        let mut stands = at(1, 0);
        while let HotNext::Frame(bytes) = tier.hot_next(P, stands).unwrap() {
            let frame = Frame::parse(bytes).unwrap();
            frame.records().for_each(|record| digest.add(&record));
            stands = frame.through();
        }
        assert_eq!(stands.seq, Seq(60));
        assert!(digest.records() > 10);
        digest.to_string()
    };
    assert_eq!(digest(6), digest(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A snapshot is read page by page while ranges are applied, and becomes
    /// whole by the tail from where it began.
    #[test]
    fn a_snapshot_of_a_moving_tier_is_whole_with_its_tail(
        changes in prop::collection::vec((0_u8..12, -3_i64..4), 20..80),
        cuts in prop::collection::vec(1_u64..6, 40),
        limit in 1_usize..4,
    ) {
        // A change of nothing is a deletion.
        let change = |(key, by): (u8, i64)| {
            let change = if by == 0 { Change::Delete(true) } else { Change::Add(by) };
            (format!("k{key}"), change)
        };
        let log: Log = changes.into_iter().map(change).collect();
        let (from, to) = (open(&Arc::default()), open(&Arc::default()));
        let last = log.len() as u64;
        let mut cuts = cuts.into_iter().cycle();
        let mut through = 0;
        let mut more = |through: &mut u64| {
            let next = (*through + cuts.next().unwrap()).min(last);
            if next > *through {
                from.apply(&range(&log, 1, *through, next)).unwrap();
                *through = next;
            }
        };
        more(&mut through);
        let begun = through;
        to.wipe(P, at(1, begun)).unwrap();
        let mut at_key: Option<Bytes> = None;
        loop {
            let (_, entries) = from.page(P, at_key.as_deref(), limit).unwrap();
            let Some(end) = entries.last().map(|entry| entry.key.clone()) else { break };
            to.load(P, entries).unwrap();
            at_key = Some(end);
            more(&mut through);
        }
        to.loaded(P, Seq(through)).unwrap();
        let mut stands = begun;
        while stands < last {
            let next = (stands + 2).min(last);
            to.apply(&range(&log, 1, stands, next)).unwrap();
            stands = next;
            if stands >= through {
                prop_assert_eq!(all(&to), (stands, model(&log, stands)));
            } else {
                prop_assert!(to.get(b"k1").is_err(), "answers before it is whole");
            }
        }
        prop_assert_eq!(all(&to), (last, model(&log, last)));
    }
}
