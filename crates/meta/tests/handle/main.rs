//! The handle over engines in memory, with its threads.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

mod kept;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tideline_meta::ask::{Op, Refusal, Txn};
use tideline_meta::commit::{OpId, Quota, SessionId};
use tideline_meta::follower::{Event, Follower, Seen};
use tideline_meta::ownership::{Acquired, Ownership};
use tideline_meta::{Meta, Options, Path, TOPIC, Written};
use tideline_queue::Queue;
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{ManualClock, SyncWatcher};
use tideline_types::{Epoch, Millis, PartitionId, Seq, TopicName};

/// What a stop may take.
const LIMIT: Duration = Duration::from_secs(60);

struct Site {
    journal: Arc<MemJournal>,
    table: Arc<MemTable>,
    clock: Arc<ManualClock>,
    queue: Queue,
    meta: Meta,
}

fn path(text: &str) -> Path {
    Path::new(text).unwrap()
}

fn create(at: &str) -> Op {
    Op::Create { path: path(at), value: Bytes::new(), ephemeral: false, sequential: false }
}

fn set(at: &str, value: &str) -> Op {
    Op::Set { path: path(at), value: Bytes::from(value.to_owned()), modified: None }
}

fn delete(at: &str) -> Op {
    Op::Delete { path: path(at), modified: None }
}

impl Site {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Millis(1_796_000_000_000)));
        Self::open(Arc::new(MemJournal::new()), Arc::new(MemTable::new()), clock)
    }

    fn open(journal: Arc<MemJournal>, table: Arc<MemTable>, clock: Arc<ManualClock>) -> Self {
        let (j, t, c) = (journal.clone(), table.clone(), clock.clone());
        let queue = Queue::open(j, t.clone(), c.clone(), tideline_queue::Options::default());
        let queue = queue.unwrap();
        let options = Options { partitions: 3, ..Options::default() };
        let meta = Meta::open(queue.clone(), t, c, options).unwrap();
        Self { journal, table, clock, queue, meta }
    }

    fn reopen(self) -> Self {
        self.meta.close(LIMIT);
        Self::open(self.journal, self.table, self.clock)
    }

    /// Another process over the same log, while this one goes on.
    fn take_over(&self) -> Self {
        Self::open(self.journal.clone(), self.table.clone(), self.clock.clone())
    }

    async fn apply(&self, ops: Vec<Op>) -> Result<Written, Refusal> {
        self.meta.apply(Txn { ops, session: None, op: None }).await
    }

    async fn names(&self, at: &str) -> Vec<String> {
        let page = self.meta.list(&path(at), None, 1000).await.unwrap();
        page.children.into_iter().map(|(path, _)| path.to_string()).collect()
    }

    async fn value(&self, at: &str) -> Option<Bytes> {
        self.meta.get(&path(at)).await.unwrap().node.map(|node| node.value)
    }
}

#[tokio::test]
async fn what_is_above_subtrees_holds_nothing_and_a_transaction_is_of_one_subtree() {
    let site = Site::new();
    site.apply(vec![create("/apps")]).await.unwrap();
    site.meta.declare(&path("/apps/feed/config"), Quota::default()).await.unwrap();
    site.meta.declare(&path("/apps/shop"), Quota::default()).await.unwrap();
    assert_eq!(site.names("/").await, ["/apps"]);
    assert_eq!(site.names("/apps").await, ["/apps/feed", "/apps/shop"]);

    let refused = site.apply(vec![set("/apps", "x")]).await;
    assert_eq!(refused, Err(Refusal::Valueless(path("/apps"))));
    let with_value = Op::Create {
        path: path("/x"),
        value: Bytes::from_static(b"v"),
        ephemeral: false,
        sequential: false,
    };
    assert_eq!(site.apply(vec![with_value]).await, Err(Refusal::Valueless(path("/x"))));
    assert_eq!(
        site.apply(vec![delete("/apps/feed")]).await,
        Err(Refusal::NotEmpty(path("/apps/feed")))
    );
    let nested = site.meta.declare(&path("/apps/shop/inner"), Quota::default()).await;
    assert_eq!(nested, Err(Refusal::Subtree(path("/apps/shop"))));
    let again = site.meta.declare(&path("/apps/shop"), Quota::default()).await;
    assert_eq!(again, Err(Refusal::Exists(path("/apps/shop"))));

    let (one, other) = ("/apps/shop/a", "/apps/feed/config/b");
    let refused = site.apply(vec![create(one), create(other)]).await;
    assert_eq!(refused, Err(Refusal::CrossSubtree(path(one), path(other))));
    let written = site.apply(vec![create(one), set(one, "1")]).await.unwrap();
    assert_eq!((written.seq, written.created), (Seq(1), vec![path(one)]));
    assert_eq!(site.apply(vec![create(other)]).await.unwrap().seq, Seq(1), "numbers of its own");
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn a_page_of_large_children_ends_before_it_is_too_large_to_send() {
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    for name in ["/a/1", "/a/2", "/a/3", "/a/4", "/a/5", "/a/6"] {
        site.apply(vec![create(name), set(name, &"x".repeat(500 << 10))]).await.unwrap();
    }
    let first = site.meta.list(&path("/a"), None, 1000).await.unwrap();
    assert_eq!((first.children.len(), first.more), (4, true));
    let rest = site.meta.list(&path("/a"), Some("4"), 1000).await.unwrap();
    assert_eq!((rest.children.len(), rest.more), (2, false));
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn a_subtree_that_is_dropped_and_declared_again_is_another_and_empty() {
    let site = Site::new();
    let first = site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    site.apply(vec![create("/a/x")]).await.unwrap();
    site.meta.drop_subtree(&path("/a")).await.unwrap();
    assert_eq!(site.apply(vec![create("/a/x")]).await, Err(Refusal::NoNode(path("/a"))));
    let second = site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    assert!(second > first);
    assert_eq!(site.names("/a").await, [""; 0]);
    let site = site.reopen();
    assert_eq!(site.names("/a").await, [""; 0]);
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn everything_is_there_after_a_stop_and_after_a_kill() {
    let mut site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    for round in 0..3 {
        let op = Some(OpId(round));
        let ops = vec![Op::Create {
            path: path("/a/n"),
            value: Bytes::from_static(b"v"),
            ephemeral: false,
            sequential: true,
        }];
        let txn = Txn { ops, session: None, op };
        let written = site.meta.apply(txn.clone()).await.unwrap();
        // Half of the time it stops in good order.
        site = if round % 2 == 0 { site.reopen() } else { site.take_over() };
        assert_eq!(site.meta.apply(txn).await.unwrap(), written, "a retry after a restart");
        assert_eq!(site.names("/a").await.len(), round as usize + 1);
    }
    let (_, at) = site.meta.sync(&path("/a")).await.unwrap();
    assert_eq!(at.seq, Seq(3));
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn an_owner_that_was_taken_over_answers_nothing() {
    let old = Site::new();
    old.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    let new = old.take_over();
    new.apply(vec![create("/a/x")]).await.unwrap();
    assert_eq!(old.meta.get(&path("/a/x")).await, Err(Refusal::Fenced));
    assert_eq!(old.apply(vec![create("/a/y")]).await, Err(Refusal::Fenced));
    assert_eq!(new.names("/a").await, ["/a/x"]);
    new.meta.close(LIMIT);
}

#[tokio::test]
async fn an_observer_goes_on_over_a_restart_and_sees_what_was_deleted_and_made_again() {
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    site.apply(vec![create("/a/x"), create("/a/y")]).await.unwrap();
    let mut follower = Follower::default();
    let mut observation = site.meta.observe(&path("/a/x"), None).unwrap();
    while follower.tree().is_none() {
        follower.take(&observation.next().await.unwrap()).unwrap();
    }
    assert_eq!(follower.tree().unwrap().count(), 2);
    site.apply(vec![delete("/a/x")]).await.unwrap();
    let site = site.reopen();
    site.apply(vec![create("/a/x")]).await.unwrap();
    let mut observation = site.meta.observe(&path("/a"), follower.position()).unwrap();
    let mut told = Vec::new();
    while follower.position().unwrap().seq < Seq(3) {
        let event = observation.next().await.unwrap();
        assert!(matches!(event, Event::Frame(_)), "the tail is there after a restart");
        told.extend(follower.take(&event).unwrap());
    }
    assert!(matches!(told[0][..], [Seen::Gone(..)]) && matches!(told[1][..], [Seen::New(..)]));
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn a_writer_reads_its_own_write_in_a_local_copy() {
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    let copy = site.meta.follow(&path("/a"), move |seen| ear.lock().unwrap().push(seen.len()));
    let copy = copy.unwrap();
    copy.sync().await.unwrap();
    for n in 0..20 {
        let at = format!("/a/{n}");
        let written = site.apply(vec![create(&at), set(&at, "v")]).await.unwrap();
        copy.wait(written.seq).await.unwrap();
        let here = path(&format!("/{n}"));
        assert_eq!(
            copy.read(|tree| tree.get(&here).map(|node| node.value.clone())),
            Some(Some("v".into()))
        );
    }
    copy.close().await;
    assert_eq!(*heard.lock().unwrap(), [2; 20], "each transaction is told as a whole");
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn a_copy_of_a_subtree_that_is_dropped_says_so() {
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    let copy = site.meta.follow(&path("/a"), |_| ()).unwrap();
    copy.sync().await.unwrap();
    site.meta.drop_subtree(&path("/a")).await.unwrap();
    assert_eq!(copy.wait(Seq(1)).await, Err(Refusal::NoSubtree(path("/a"))));
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn a_session_ends_by_the_monotone_clock_alone() {
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    let session = site.meta.begin(&path("/a"), 5_000, None).await.unwrap();
    let ephemeral =
        Op::Create { path: path("/a/e"), value: Bytes::new(), ephemeral: true, sequential: false };
    let txn = Txn { ops: vec![ephemeral], session: Some(session), op: None };
    site.meta.apply(txn).await.unwrap();
    let copy = site.meta.follow(&path("/a"), |_| ()).unwrap();
    copy.sync().await.unwrap();
    site.clock.jump(3_600_000);
    site.meta.keep_alive(&path("/a"), session).await.unwrap();
    assert_eq!(site.names("/a").await, ["/a/e"]);
    // The ticker looks every 20 ms and counts a second at most each time.
    let (_, at) = site.meta.sync(&path("/a")).await.unwrap();
    let gone = copy.wait(at.seq.next());
    let clock = site.clock.clone();
    let pass = async {
        let mut every = tokio::time::interval(std::time::Duration::from_millis(20));
        loop {
            every.tick().await;
            clock.advance(900);
        }
    };
    tokio::select! {
        gone = gone => gone.unwrap(),
        () = pass => {}
    }
    assert_eq!(site.names("/a").await, [""; 0]);
    let late = site.meta.keep_alive(&path("/a"), session).await;
    assert_eq!(late, Err(Refusal::Expired(session)));
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn the_log_is_freed_behind_snapshots_alone() {
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    for n in 0..50 {
        site.apply(vec![create(&format!("/a/{n}"))]).await.unwrap();
    }
    let topic = TopicName::new(TOPIC).unwrap();
    let start = |site: &Site, at: u16| {
        site.queue.trim(&topic, PartitionId(at), Seq(u64::MAX)).unwrap();
        site.queue.topic(&topic).unwrap().bounds[usize::from(at)].start
    };
    assert!((0..3).all(|at| start(&site, at) == Seq(1)), "nothing is at rest yet");
    site.meta.close(LIMIT);
    assert!((0..3).any(|at| start(&site, at) > Seq(40)), "all is at rest");
    let site = Site::open(site.journal, site.table, site.clock);
    assert_eq!(site.names("/a").await.len(), 50);
    site.meta.close(LIMIT);
}

#[derive(Default)]
struct Deaf;

impl SyncWatcher for Deaf {
    fn synced(&self, _: tideline_types::StreamId, _: Seq) {}
    fn failed(&self, _: tideline_types::StreamId, _: &tideline_store::StoreError) {}
    fn dropped(&self, _: tideline_types::StreamId, _: Seq, _: &tideline_store::StoreError) {}
}

#[tokio::test]
async fn a_holder_that_slept_through_its_lease_is_fenced_by_the_log() {
    let site = Site::new();
    site.meta.declare(&path("/owners"), Quota::default()).await.unwrap();
    let node = path("/owners/p0");
    let data = TopicName::new("data").unwrap();
    site.queue.create_topic(tideline_queue::TopicSpec::new(data.clone())).unwrap();
    let own = || site.queue.own(&data, PartitionId(0), Arc::new(Deaf)).unwrap();

    let first = site.meta.begin(&node, 5_000, None).await.unwrap();
    let taken = Ownership::acquire(&site.meta, &node, first, 5_000, 0).await.unwrap();
    let Acquired::Ours(sleeper) = taken else { panic!("nobody has it") };
    let mut asleep = own();
    sleeper.publish(&site.meta, asleep.epoch()).await.unwrap();

    let second = site.meta.begin(&node, 5_000, None).await.unwrap();
    let held = Ownership::acquire(&site.meta, &node, second, 5_000, 0).await.unwrap();
    let epoch = asleep.epoch().0.to_string();
    assert_eq!(held, Acquired::Held { token: sleeper.token(), value: epoch.into() });
    site.meta.end(&node, first).await.unwrap();
    let taken = Ownership::acquire(&site.meta, &node, second, 5_000, 6_000).await.unwrap();
    let Acquired::Ours(owner) = taken else { panic!("it is free") };
    assert!(owner.token() > sleeper.token() && owner.is_sure(10_999) && !owner.is_sure(11_000));
    let mut awake = own();
    owner.publish(&site.meta, awake.epoch()).await.unwrap();

    // It wakes, and believes what it likes.
    let mut batch = asleep.builder();
    batch.push(Millis(1), b"k", b"false");
    assert!(asleep.append(batch).is_err());
    assert_ne!(asleep.log_epoch(), asleep.epoch());
    let stale = sleeper.publish(&site.meta, Epoch(1)).await;
    assert_eq!(stale, Err(Refusal::Expired(SessionId(first.0))));
    let mut batch = awake.builder();
    batch.push(Millis(1), b"k", b"true");
    awake.append(batch).unwrap();
    site.meta.close(LIMIT);
}

#[tokio::test]
async fn ten_thousand_observers_are_all_told() {
    const OBSERVERS: usize = 10_000;
    let site = Site::new();
    site.meta.declare(&path("/a"), Quota::default()).await.unwrap();
    let told: Arc<Vec<AtomicU64>> = Arc::new((0..OBSERVERS).map(|_| AtomicU64::new(0)).collect());
    let follow = |n: usize| {
        let told = told.clone();
        let count = move |seen: &[Seen]| {
            told[n].fetch_add(seen.len() as u64, Ordering::Relaxed);
        };
        site.meta.follow(&path("/a"), count).unwrap()
    };
    let copies: Vec<_> = (0..OBSERVERS).map(follow).collect();
    let mut last = Seq::ZERO;
    for n in 0..10 {
        last = site.apply(vec![create(&format!("/a/{n}"))]).await.unwrap().seq;
    }
    let wait = async |last| {
        for copy in &copies {
            copy.wait(last).await.unwrap();
        }
    };
    wait(last).await;
    // One transaction, so that no look falls between the two.
    last = site.apply(vec![delete("/a/7"), create("/a/7")]).await.unwrap().seq;
    wait(last).await;
    for (copy, told) in copies.iter().zip(told.iter()) {
        let made = copy.read(|tree| tree.get(&path("/7")).map(|node| node.created)).unwrap();
        assert_eq!(made, Some(last), "it is another node");
        assert_eq!(told.load(Ordering::Relaxed), 12, "ten, then gone and new");
    }
    assert_eq!(site.value("/a/7").await, Some(Bytes::new()));
    drop(copies);
    site.meta.close(LIMIT);
}
