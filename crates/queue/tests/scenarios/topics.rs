//! Making, deleting and deriving topics.

use std::sync::Arc;

use tideline_queue::{
    CreateError, DeleteError, FetchError, From, TopicKind, TopicSpec, topics_at_rest,
};
use tideline_types::Incarnation;

use crate::{ALL, House, LONG, NO_WAIT, P0, name};

#[tokio::test]
async fn a_topic_and_its_records_are_there_after_a_restart() {
    let house = House::new();
    let topic = house.topic("chat", 2);
    house.say(&topic, &["a", "b"]).await;
    let house = house.reopened();
    let info = house.queue.topic(&topic).unwrap();
    assert_eq!((info.partitions, info.kind), (2, TopicKind::Source));
    house.say(&topic, &["c"]).await;
    let got = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    let values: Vec<_> = got.records.iter().map(|r| &r.value[..]).collect();
    assert_eq!(values, [b"a", b"b"], "a fetch holds one epoch");
    let at = tideline_types::Position {
        incarnation: got.incarnation,
        epoch: got.epoch,
        seq: got.range.through,
    };
    let got = house.queue.fetch(&topic, P0, From::After(at), ALL, NO_WAIT).await.unwrap();
    assert_eq!(&got.records[0].value[..], b"c");
    assert!(got.epoch > at.epoch);
}

#[tokio::test]
async fn a_topic_made_anew_is_another_life() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["a"]).await;
    let old = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    house.queue.delete_topic(&topic).unwrap();
    let gone = house.queue.fetch(&topic, P0, From::Earliest, ALL, NO_WAIT).await;
    assert!(matches!(gone, Err(FetchError::NoTopic(_))));
    let house = house.reopened();
    assert!(house.queue.topics().is_empty());
    house.topic("chat", 1);
    let place = tideline_types::Position {
        incarnation: old.incarnation,
        epoch: old.epoch,
        seq: old.range.through,
    };
    let anew = house.queue.fetch(&topic, P0, From::After(place), ALL, NO_WAIT).await;
    let Err(FetchError::Recreated { incarnation }) = anew else { panic!("{anew:?}") };
    assert_eq!(incarnation, Incarnation(old.incarnation.0 + 1));
}

#[tokio::test]
async fn a_reader_that_waits_hears_that_its_topic_is_deleted() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let (queue, of) = (house.queue.clone(), topic.clone());
    let mut subscription = queue.subscribe(&of, P0, From::Earliest);
    let waits = tokio::spawn(async move { subscription.next().await });
    let fetches = tokio::spawn(async move { queue.fetch(&of, P0, From::Latest, ALL, LONG).await });
    tokio::task::yield_now().await;
    house.queue.delete_topic(&topic).unwrap();
    assert!(matches!(waits.await.unwrap(), Err(FetchError::NoTopic(_))));
    assert!(matches!(fetches.await.unwrap(), Err(FetchError::NoTopic(_))));
}

#[tokio::test]
async fn what_cannot_be_made_or_deleted_says_why() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    let create = |spec: TopicSpec| house.queue.create_topic(spec);
    assert!(matches!(create(TopicSpec::new(topic.clone())), Err(CreateError::Exists(_))));
    let mut spec = TopicSpec::new(name("wide"));
    spec.partitions = Some(2_000);
    assert!(matches!(create(spec), Err(CreateError::Partitions { given: 2_000, max: 1_024 })));
    let mut spec = TopicSpec::new(name("history"));
    spec.read_only = true;
    assert_eq!(create(spec.clone()).unwrap().partitions, 64);
    assert!(house.queue.ensure_topic(spec).unwrap().read_only);
    let refused = house.queue.delete_topic(&name("history"));
    assert!(matches!(refused, Err(DeleteError::ReadOnly(_))));
    assert!(matches!(house.queue.delete_topic(&name("x")), Err(DeleteError::NoTopic(_))));
}

#[tokio::test]
async fn a_derived_topic_keeps_the_numbers_and_advances_over_what_it_leaves_out() {
    let house = House::new();
    let source = house.topic("history", 1);
    let loud = name("loud");
    house
        .queue
        .register_derived(
            loud.clone(),
            source.clone(),
            Arc::new(|r| r.value.ends_with(b"!").then(|| (r.key.to_vec(), r.value.to_vec()))),
        )
        .unwrap();
    house.say(&source, &["a", "b!"]).await;
    house.say(&source, &["c", "d"]).await;
    let info = house.queue.topic(&loud).unwrap();
    assert_eq!(info.kind, TopicKind::Derived { source: source.clone(), operator: None });
    let got = house.queue.fetch(&loud, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    let seqs: Vec<_> = got.records.iter().map(|r| r.seq.0).collect();
    assert_eq!((seqs, got.range.through.0), (vec![2], 4));
    let at = |seq| tideline_types::Position { incarnation: got.incarnation, epoch: got.epoch, seq };
    let rest = From::After(at(tideline_types::Seq(2)));
    let got = house.queue.fetch(&loud, P0, rest, ALL, NO_WAIT).await.unwrap();
    assert_eq!((got.records.len(), got.range.after.0, got.range.through.0), (0, 2, 4));
    let frame = house.queue.subscribe(&loud, P0, From::Earliest).next().await.unwrap();
    assert_eq!((frame.batches.len(), frame.range.through.0), (1, 4));
}

#[tokio::test]
async fn a_check_reads_the_topics_from_the_table_alone() {
    let house = House::new();
    let chat = house.queue.topic(&house.topic("chat", 2)).unwrap();
    let gone = house.topic("gone", 1);
    house.queue.delete_topic(&gone).unwrap();
    let at_rest = topics_at_rest(&*house.table).unwrap();
    assert_eq!(at_rest, [(chat.name, chat.incarnation, 2)]);
}
