//! Where reading begins, and how frames join.

use tideline_queue::{FetchError, From};
use tideline_store::Journal;
use tideline_store::ReadLimits;
use tideline_types::{Millis, Position, Seq, StreamId};

use crate::{ALL, House, NO_WAIT, NOW, P0};

#[tokio::test]
async fn a_time_finds_the_first_record_that_is_not_before_it() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    for n in 0..4 {
        house.say(&topic, &[&n.to_string()]).await;
        house.clock.advance(10);
    }
    house.clock.jump(-1_000_000);
    house.say(&topic, &["after the clock fell"]).await;
    for (time, expected) in [(0, 1), (NOW + 1, 2), (NOW + 30, 4), (NOW + 31, 6)] {
        let from = From::Time(Millis(time));
        let got = house.queue.fetch(&topic, P0, from, ALL, NO_WAIT).await.unwrap();
        assert_eq!(got.range.after.next(), Seq(expected), "at {time}");
    }
}

#[tokio::test]
async fn records_are_cut_to_the_limits_within_a_batch() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["a", "b", "c", "d", "e"]).await;
    let two = ReadLimits { records_max: 2, ..ALL };
    let (mut from, mut seen) = (From::Earliest, Vec::new());
    loop {
        let got = house.queue.fetch(&topic, P0, from, two, NO_WAIT).await.unwrap();
        if got.records.is_empty() {
            break;
        }
        assert_eq!(got.range.count(), got.records.len() as u64);
        seen.extend(got.records.iter().map(|r| r.seq.0));
        let position =
            Position { incarnation: got.incarnation, epoch: got.epoch, seq: got.range.through };
        from = From::After(position);
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn frames_join_without_gap_or_double() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let mut subscription = house.queue.subscribe(&topic, P0, From::Earliest);
    let mut through = Seq(0);
    for n in 0..20 {
        house.say(&topic, &["x"; 3][..1 + n % 3]).await;
        let frame = subscription.next().await.unwrap();
        assert_eq!(frame.range.after, through);
        through = frame.range.through;
    }
    assert_eq!(through, house.queue.topic(&topic).unwrap().bounds[0].synced);
}

#[tokio::test]
async fn freed_records_are_told_as_truncated() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    for value in ["a", "b", "c"] {
        house.say(&topic, &[value]).await;
    }
    assert_eq!(house.queue.trim(&topic, P0, Seq(2)).unwrap(), Seq(3));
    let info = house.queue.topic(&topic).unwrap();
    let at = |seq| Position {
        incarnation: info.incarnation,
        epoch: info.bounds[0].epoch,
        seq: Seq(seq),
    };
    let fetch = |from| house.queue.fetch(&topic, P0, from, ALL, NO_WAIT);
    let truncated = fetch(From::After(at(1))).await;
    assert!(matches!(truncated, Err(FetchError::Truncated { start: Seq(3) })));
    assert_eq!(fetch(From::After(at(2))).await.unwrap().records.len(), 1);
    assert_eq!(fetch(From::Earliest).await.unwrap().range.after, Seq(2));
}

#[tokio::test]
async fn erased_records_are_covered_and_not_shown() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["keep", "gone", "keep"]).await;
    let stream =
        StreamId { incarnation: house.queue.topic(&topic).unwrap().incarnation, partition: P0 };
    let all = house.journal.bounds(stream).unwrap();
    let range = tideline_types::SeqRange::new(Seq(0), all.synced);
    let report = house.queue.erase(&topic, P0, range, &mut |_, _, v| v == b"gone").unwrap();
    assert_eq!((report.seen, report.erased), (3, 1));
    let got = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    let seqs: Vec<_> = got.records.iter().map(|r| r.seq.0).collect();
    assert_eq!((seqs, got.range.through), (vec![1, 3], Seq(3)));
}
