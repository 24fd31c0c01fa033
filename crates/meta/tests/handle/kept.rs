//! What the queue keeps in the tree.

use std::sync::Arc;

use tideline_meta::ask::Refusal;
use tideline_meta::kept::{CHECKPOINTS, OWNERS, Places, TOPICS, TopicRows};
use tideline_meta::ownership::{Acquired, Ownership};
use tideline_queue::{Queue, TopicSpec};
use tideline_record::batch::Record;
use tideline_record::{Maker, OnError, Operator, Output};
use tideline_types::{Incarnation, PartitionId, Position, Seq, TopicName};
use tokio::runtime::Handle;

use crate::{LIMIT, Site, path};

fn name(text: &str) -> TopicName {
    TopicName::new(text).unwrap()
}

/// Hands on what it is given; a text is as good as another.
struct Same;

impl Maker for Same {
    fn make(&self, _: &TopicName, _: &str) -> Result<Arc<dyn Operator>, String> {
        Ok(Arc::new(Same))
    }
}

impl Operator for Same {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        out.push(record.key, record.value);
        Ok(())
    }
}

fn derive(queue: &Queue, topic: &str) {
    queue.declare(&name(topic), &name("clicks"), "same", OnError::Skip).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_declared_topics_move_from_the_tables_into_the_tree_once() {
    let site = Site::new();
    site.queue.create_topic(TopicSpec::new(name("clicks"))).unwrap();
    site.queue.set_maker(Arc::new(Same)).unwrap();
    derive(&site.queue, "before");
    let site = site.reopen();
    assert!(site.queue.topic(&name("before")).is_none(), "it is made again with its operator");

    for _ in 0..2 {
        site.meta.ensure_kept().await.unwrap();
        let rows = Arc::new(TopicRows::new(site.meta.clone(), Handle::current()));
        tokio::task::block_in_place(|| {
            site.queue.keep_declared_in(rows).unwrap();
            assert_eq!(site.queue.set_maker(Arc::new(Same)).unwrap(), []);
            derive(&site.queue, "after");
        });
        assert_eq!(site.names(TOPICS).await, ["/tideline/topics/after", "/tideline/topics/before"]);
        assert!(site.queue.topic(&name("before")).is_some());
    }
    let site = site.reopen();
    let rows = Arc::new(TopicRows::new(site.meta.clone(), Handle::current()));
    tokio::task::block_in_place(|| {
        site.queue.keep_declared_in(rows).unwrap();
        site.queue.set_maker(Arc::new(Same)).unwrap();
        site.queue.delete_topic(&name("before")).unwrap();
    });
    assert_eq!(site.names(TOPICS).await, ["/tideline/topics/after"]);
    assert!(site.value("/tideline/topics/after").await.is_some());
    tokio::task::block_in_place(|| site.meta.close(LIMIT));
}

fn places(places: &[(u16, u64)]) -> Places {
    let at = |seq| Position { incarnation: Incarnation(3), seq: Seq(seq), ..Position::default() };
    places.iter().map(|&(partition, seq)| (PartitionId(partition), at(seq))).collect()
}

/// The token of an owner is a number of the subtree: one that was declared again
/// would give out those that former owners had.
#[tokio::test]
async fn what_the_queue_keeps_is_never_dropped_so_tokens_never_fall() {
    let site = Site::new();
    site.meta.ensure_kept().await.unwrap();
    let owner = path("/tideline/owners/writer");
    let mut token = Seq::ZERO;
    for _ in 0..3 {
        let session = site.meta.begin(&owner, 10_000, None).await.unwrap();
        let Acquired::Ours(mine) =
            Ownership::acquire(&site.meta, &owner, session, 10_000, 0).await.unwrap()
        else {
            panic!("nobody else is there")
        };
        assert!(mine.token() > token, "{} after {token}", mine.token());
        token = mine.token();
        for kept in [TOPICS, CHECKPOINTS, OWNERS] {
            let refused = site.meta.drop_subtree(&path(kept)).await;
            assert_eq!(refused, Err(Refusal::Kept(path(kept))));
        }
        site.meta.end(&owner, session).await.unwrap();
        site.meta.ensure_kept().await.unwrap();
    }
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn a_checkpoint_is_kept_by_partition_and_never_goes_back() {
    let site = Site::new();
    site.meta.ensure_kept().await.unwrap();
    let (topic, consumer) = (name("clicks"), name("payer"));
    assert_eq!(site.meta.checkpoint(&topic, &consumer).await.unwrap(), Places::new());
    let many: Vec<(u16, u64)> = (0..300).map(|partition| (partition, 5)).collect();
    site.meta.keep_checkpoint(&topic, &consumer, &places(&many)).await.unwrap();
    site.meta.keep_checkpoint(&topic, &consumer, &places(&[(7, 9)])).await.unwrap();
    let back = site.meta.keep_checkpoint(&topic, &consumer, &places(&[(7, 8)])).await;
    assert!(matches!(back, Err(Refusal::Conflict { .. })), "{back:?}");
    site.meta.keep_checkpoint(&topic, &name("other"), &places(&[(0, 2)])).await.unwrap();

    let site = site.reopen();
    let kept = site.meta.checkpoint(&topic, &consumer).await.unwrap();
    assert_eq!((kept.len(), kept[&PartitionId(7)].seq), (300, Seq(9)));
    let all = site.meta.checkpoints(&topic).await.unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["other", "payer"]);
    assert_eq!(site.value("/tideline/checkpoints/clicks/payer/7").await, Some("3-0-9".into()));

    site.meta.forget_checkpoint(&topic, &consumer).await.unwrap();
    site.meta.forget_checkpoint(&topic, &consumer).await.unwrap();
    assert_eq!(site.meta.checkpoint(&topic, &consumer).await.unwrap(), Places::new());
    assert_eq!(
        site.meta.get(&path("/tideline/checkpoints/clicks/payer")).await.unwrap().node,
        None
    );
    site.meta.close(LIMIT);
}
