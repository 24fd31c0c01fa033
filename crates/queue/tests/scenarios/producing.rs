//! Records from anyone, and what they are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tideline_queue::{From, Options, OwnError, ProduceError, TopicSpec};
use tideline_store::mem::MemJournal;
use tideline_store::{Outcome, StoreError, SyncWatcher};
use tideline_types::{PartitionId, Seq, StreamId};

use crate::{ALL, House, LONG, NO_WAIT, P0, name};

/// A record whose key is its value.
fn record(text: &str) -> (Bytes, Bytes) {
    let text = Bytes::copy_from_slice(text.as_bytes());
    (text.clone(), text)
}

#[tokio::test]
async fn records_go_by_their_keys_and_answers_keep_their_order() {
    let house = House::new();
    let topic = house.topic("chat", 8);
    let keys = ["a", "b", "c", "a", "b"];
    let records = keys.iter().map(|k| record(k)).collect();
    let positions = house.queue.produce(&topic, None, records).await.unwrap();
    for (key, position) in keys.iter().zip(&positions) {
        let partition = tideline_types::partition_of(key.as_bytes(), 8);
        let at = From::At(*position);
        let got = house.queue.fetch(&topic, partition, at, ALL, NO_WAIT).await.unwrap();
        assert_eq!(&got.records[0].key[..], key.as_bytes());
    }
    assert_eq!(positions[3].seq, positions[0].seq.next());
}

#[tokio::test]
async fn a_long_poll_is_woken_by_the_sync() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let (queue, of) = (house.queue.clone(), topic.clone());
    let waits = tokio::spawn(async move { queue.fetch(&of, P0, From::Latest, ALL, LONG).await });
    tokio::task::yield_now().await;
    house.say(&topic, &["hello"]).await;
    house.say(&topic, &["again"]).await;
    let got = waits.await.unwrap().unwrap();
    assert!(!got.records.is_empty());
}

#[tokio::test]
async fn nothing_is_acknowledged_or_read_before_its_sync() {
    let house = House::over(Arc::new(MemJournal::manual()), Arc::default(), Options::default());
    let topic = house.topic("chat", 1);
    let (queue, of) = (house.queue.clone(), topic.clone());
    let says = tokio::spawn(async move { queue.produce(&of, Some(P0), vec![record("x")]).await });
    while house.queue.topic(&topic).unwrap().bounds[0].next != Seq(2) {
        tokio::task::yield_now().await;
    }
    assert!(!says.is_finished());
    let got = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    assert!(got.records.is_empty() && got.range.is_empty());
    assert!(house.journal.turn());
    assert_eq!(says.await.unwrap().unwrap()[0].seq, Seq(1));
}

#[tokio::test]
async fn no_space_is_an_answer_and_numbers_go_on_when_there_is_some() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["a"]).await;
    house.journal.set_fault(Some(StoreError::NoSpace { what: "memory".into() }));
    let refused = house.queue.produce(&topic, Some(P0), vec![record("b")]).await.unwrap_err();
    assert!(matches!(refused, ProduceError::NoSpace(_)));
    assert_eq!(refused.outcome(), Outcome::NotDone);
    house.journal.set_fault(None);
    let position = house.queue.produce(&topic, Some(P0), vec![record("c")]).await.unwrap()[0];
    assert_eq!(position.seq, Seq(2));
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_acknowledged() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["a"]).await;
    house.journal.set_fault(Some(StoreError::Io { what: "sync".into(), cause: "EIO".into() }));
    for _ in 0..2 {
        let error = house.queue.produce(&topic, Some(P0), vec![record("b")]).await.unwrap_err();
        assert!(matches!(error, ProduceError::Store(StoreError::Failed { .. })), "{error}");
    }
    assert!(house.queue.health().is_err());
    let got = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    assert_eq!(got.records.len(), 1);
}

#[tokio::test]
async fn what_is_over_a_limit_says_which() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let long = vec![(Bytes::from(vec![0; 2_000]), Bytes::new())];
    let error = house.queue.produce(&topic, None, long).await.unwrap_err();
    assert_eq!(error.to_string(), "a key of 2000 bytes, at most 1024 are allowed");
    let error = house.queue.produce(&topic, Some(PartitionId(1)), vec![]).await.unwrap_err();
    assert!(matches!(error, ProduceError::NoPartition(..)));
}

#[derive(Default)]
struct Counts(AtomicU64);

impl SyncWatcher for Counts {
    fn synced(&self, _: StreamId, through: Seq) {
        self.0.store(through.0, Ordering::SeqCst);
    }
    fn failed(&self, _: StreamId, _: &StoreError) {}
    fn dropped(&self, _: StreamId, _: Seq, _: &StoreError) {}
}

/// Two processes over one log: the one that was taken over says so, to every call.
#[tokio::test]
async fn a_queue_that_another_has_fenced_says_that_it_is() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["a"]).await;
    let other = House::over(house.journal.clone(), house.table.clone(), Options::default());
    other.say(&topic, &["b"]).await;
    let by = other.queue.topic(&topic).unwrap().bounds[0].epoch;
    for _ in 0..2 {
        let refused = house.queue.produce(&topic, Some(P0), vec![record("late")]).await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, ProduceError::Fenced { by: owner } if owner == by), "{refused}");
        assert_eq!(refused.outcome(), Outcome::NotDone);
    }
    other.say(&topic, &["c"]).await;
    let mut frames = other.queue.subscribe(&topic, P0, From::Earliest);
    let mut values = Vec::new();
    while values.len() < 3 {
        let frame = frames.next().await.unwrap().encode(P0);
        values.extend(frame.records().map(|record| record.value.to_vec()));
    }
    assert_eq!(values, [b"a", b"b", b"c"]);
}

#[tokio::test]
async fn an_owner_fences_the_one_before_it() {
    let house = House::new();
    let mut spec = TopicSpec::new(name("history"));
    (spec.read_only, spec.partitions) = (true, Some(1));
    let topic = house.queue.create_topic(spec).unwrap().name;
    let refused = house.queue.produce(&topic, None, vec![record("x")]).await;
    assert!(matches!(refused, Err(ProduceError::ReadOnly(_))));

    let heard = Arc::new(Counts::default());
    let mut old = house.queue.own(&topic, P0, heard.clone()).unwrap();
    let mut batch = old.builder();
    batch.push(tideline_types::Millis(7), b"k", b"v");
    old.append(batch).unwrap();
    let got = house.queue.fetch(&topic, P0, From::Earliest, ALL, LONG).await.unwrap();
    assert_eq!((got.records.len(), heard.0.load(Ordering::SeqCst)), (1, 1));

    let mut new = house.queue.own(&topic, P0, Arc::new(Counts::default())).unwrap();
    assert!(new.epoch() > old.epoch() && new.next() == Seq(2) && new.newest().0 == 7);
    let mut batch = old.builder();
    batch.push(tideline_types::Millis(8), b"k", b"late");
    assert!(old.append(batch).is_err());
    let mut batch = new.builder();
    batch.push(tideline_types::Millis(8), b"k", b"v2");
    new.append(batch).unwrap();
    assert!(matches!(house.queue.own(&name("x"), P0, heard), Err(OwnError::NoTopic(_))));
}
