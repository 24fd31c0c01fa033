//! Producers that number their records: each is in the log once, whatever is
//! sent again.

use std::time::Duration;

use tideline_queue::{From, ProduceError, StampError, TopicSpec};
use tideline_record::batch::Stamp;
use tideline_store::Clock;
use tideline_types::{Position, Seq, TopicName};

use crate::{ALL, House, NO_WAIT, P0, name, record};

fn stamp(epoch: u32, number: u64) -> Stamp {
    Stamp { producer: 42, epoch, number }
}

async fn send(
    house: &House,
    topic: &TopicName,
    stamp: Stamp,
    values: &[&str],
) -> Result<Vec<Position>, ProduceError> {
    let records = values.iter().map(|v| record(v)).collect();
    house.queue.send_once(topic, P0, stamp, records).await?.synced().await
}

/// A range is of one epoch: all of them, one after the other.
async fn values(house: &House, topic: &TopicName) -> Vec<String> {
    let (mut values, mut from) = (Vec::new(), From::Earliest);
    loop {
        let got = house.queue.fetch(topic, P0, from, ALL, NO_WAIT).await.unwrap();
        if got.records.is_empty() {
            return values;
        }
        let texts = got.records.iter().map(|r| String::from_utf8(r.value.to_vec()).unwrap());
        values.extend(texts);
        let (incarnation, epoch) = (got.incarnation, got.epoch);
        from = From::After(Position { incarnation, epoch, seq: got.range.through });
    }
}

#[tokio::test]
async fn a_batch_whose_acknowledgement_was_lost_is_not_there_twice() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let first = send(&house, &topic, stamp(0, 1), &["a", "b"]).await.unwrap();
    house.say(&topic, &["of another"]).await;
    let second = send(&house, &topic, stamp(0, 3), &["c"]).await.unwrap();
    assert_eq!(send(&house, &topic, stamp(0, 1), &["a", "b"]).await.unwrap(), first);
    assert_eq!(send(&house, &topic, stamp(0, 3), &["c"]).await.unwrap(), second);
    assert_eq!(values(&house, &topic).await, ["a", "b", "of another", "c"]);
}

#[tokio::test]
async fn it_is_told_again_where_it_stands_after_a_restart() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let first = send(&house, &topic, stamp(0, 1), &["a", "b"]).await.unwrap();
    let house = house.reopened();
    assert_eq!(send(&house, &topic, stamp(0, 1), &["a", "b"]).await.unwrap(), first);
    send(&house, &topic, stamp(0, 3), &["c"]).await.unwrap();
    assert_eq!(values(&house, &topic).await, ["a", "b", "c"]);
}

/// Queue fault 17: the retry comes after the log no longer holds the batch.
#[tokio::test]
async fn it_is_told_again_where_it_stood_after_its_records_were_freed() {
    for restarted in [false, true] {
        let house = House::new();
        let mut spec = TopicSpec::new(name("chat"));
        spec.retention = Some(Duration::from_secs(60));
        let topic = house.queue.create_topic(spec).unwrap().name;
        let first = send(&house, &topic, stamp(0, 1), &["a", "b"]).await.unwrap();
        house.clock.advance(120_000);
        let now = house.clock.now();
        let house = if restarted { house.reopened() } else { house };
        house.queue.run_retention(now).unwrap();
        assert_eq!(house.queue.topic(&topic).unwrap().bounds[0].start, Seq(3));
        let house = house.reopened();
        assert_eq!(send(&house, &topic, stamp(0, 1), &["a", "b"]).await.unwrap(), first);
        assert!(send(&house, &topic, stamp(0, 3), &["c"]).await.is_ok());
    }
}

#[tokio::test]
async fn a_gap_an_older_life_and_an_unknown_producer_are_told_apart() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let why = |result| match result {
        Err(ProduceError::Stamp(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(send(&house, &topic, stamp(0, 2), &["b"]).await), StampError::Forgotten);
    send(&house, &topic, stamp(1, 1), &["a"]).await.unwrap();
    let gap = StampError::Gap { given: 3, expected: 2 };
    assert_eq!(why(send(&house, &topic, stamp(1, 3), &["c"]).await), gap);
    let fenced = StampError::Fenced { given: 0, known: 1 };
    assert_eq!(why(send(&house, &topic, stamp(0, 1), &["old"]).await), fenced);
    assert_eq!(why(send(&house, &topic, stamp(1, 0), &["a"]).await), StampError::Range);
    assert_eq!(why(send(&house, &topic, stamp(1, 2), &[]).await), StampError::Range);
    assert_eq!(values(&house, &topic).await, ["a"]);
}

#[tokio::test]
async fn a_topic_made_anew_remembers_no_producer_of_the_one_before() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    send(&house, &topic, stamp(0, 1), &["a"]).await.unwrap();
    house.queue.run_retention(house.clock.now()).unwrap();
    house.queue.delete_topic(&topic).unwrap();
    let topic = house.topic("chat", 1);
    let again = send(&house, &topic, stamp(0, 1), &["other"]).await.unwrap();
    assert_eq!(again[0].seq, Seq(1));
    assert_eq!(values(&house, &topic).await, ["other"]);
}

#[tokio::test]
async fn what_is_remembered_of_a_batch_that_was_freed_has_its_epoch_and_its_time() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let first = send(&house, &topic, stamp(0, 1), &["a"]).await.unwrap();
    let time = house.clock.now();
    let house = house.reopened();
    house.clock.jump(-3_600_000);
    send(&house, &topic, stamp(0, 2), &["b"]).await.unwrap();
    house.queue.trim(&topic, P0, Seq(2)).unwrap();
    assert_eq!(send(&house, &topic, stamp(0, 1), &["a"]).await.unwrap(), first, "its own epoch");
    let house = house.reopened();
    house.clock.jump(-7_200_000);
    assert_eq!(send(&house, &topic, stamp(0, 1), &["a"]).await.unwrap(), first);
    send(&house, &topic, stamp(0, 3), &["c"]).await.unwrap();
    let got = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    assert!(got.records[0].time >= time, "times never fall, also where all was freed");
}

#[tokio::test]
async fn freeing_into_the_middle_of_a_batch_leaves_what_a_start_can_read() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    send(&house, &topic, stamp(0, 1), &["a"]).await.unwrap();
    let second = send(&house, &topic, stamp(0, 2), &["b", "c"]).await.unwrap();
    house.queue.trim(&topic, P0, Seq(2)).unwrap();
    let house = house.reopened();
    assert_eq!(send(&house, &topic, stamp(0, 2), &["b", "c"]).await.unwrap(), second);
}
