//! A tier over the network, from a server of which records are freed.

use std::sync::Arc;
use std::time::Duration;

use tideline_catalogue::Catalogue;
use tideline_client::{Filled, Follow, FollowOptions, Source, Tier as Asked};
use tideline_danmaku::Danmaku;
use tideline_gateway::{Gateway, Parts, bind_tier};
use tideline_history::History;
use tideline_queue::{Queue, TopicSpec};
use tideline_record::OnError;
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{Clock, RealClock, Table};
use tideline_tier::{Options, Tier};
use tideline_types::{PartitionId, Seq, TopicName};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::keep::Keeper;

const P: PartitionId = PartitionId(0);

fn name(text: &str) -> TopicName {
    TopicName::new(text).unwrap()
}

/// A server with one topic of actions, and one of counters derived from it.
struct House {
    queue: Queue,
    source: Source,
    _stop: oneshot::Sender<()>,
}

impl House {
    async fn start() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let table: Arc<dyn Table> = Arc::new(MemTable::new());
        let journal = Arc::new(MemJournal::new());
        let queue = Queue::open(journal, table.clone(), clock.clone(), Default::default()).unwrap();
        let zone = jiff::tz::TimeZone::UTC;
        let rules = Arc::new(tideline_history::prepare(&*table, Vec::new(), zone).unwrap());
        let (history, danmaku) = (
            History::open(
                queue.clone(),
                table.clone(),
                clock.clone(),
                rules,
                Default::default(),
                1,
            ),
            Danmaku::open(queue.clone(), table.clone(), clock.clone(), Default::default(), 1),
        );
        let catalogue = Catalogue::open(table.clone(), Default::default(), clock.clone()).unwrap();
        let (history, danmaku) = (history.unwrap(), danmaku.unwrap());
        let parts = Parts { history, danmaku, queue: queue.clone(), catalogue, table, clock };
        let mut options = tideline_gateway::Options::default();
        options.server.http = "127.0.0.1:0".parse().unwrap();
        options.server.grpc = "127.0.0.1:0".parse().unwrap();
        let faces = Gateway::open(parts, options).unwrap().bind().await.unwrap();
        let source = Source::new(&format!("http://{}", faces.grpc()), None).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(faces.serve(async {
            let _ = stopped.await;
        }));
        queue.set_maker(Arc::new(crate::serve::operators(Vec::new()))).unwrap();
        let house = Self { queue, source, _stop: stop };
        house.make();
        house
    }

    fn make(&self) {
        let spec = TopicSpec { partitions: Some(1), ..TopicSpec::new(name("actions")) };
        self.queue.create_topic(spec).unwrap();
        let text = r#"{"counter":{"add":"value.n"}}"#;
        self.queue.declare(&name("counts"), &name("actions"), text, OnError::Skip).unwrap();
    }

    async fn add(&self, key: &str, n: i64) {
        let value = format!("{{\"n\":{n}}}");
        let records = vec![(key.as_bytes().to_vec().into(), value.into_bytes().into())];
        let topic = name("actions");
        let sent = self.queue.send(&topic, None, records.into_iter().collect());
        sent.await.unwrap().synced().await.unwrap();
    }
}

/// A tier that runs, and its address.
struct Running {
    tier: Tier,
    url: Source,
    address: String,
    keeps: JoinHandle<Result<(), crate::cli::Failure>>,
    _stop: oneshot::Sender<()>,
}

impl Running {
    async fn start(house: &House, table: &Arc<MemTable>, peers: &[&Running]) -> Self {
        let options = Options { hot_keys_max: 1, hot_least: 1, ..Options::default() };
        let tier = Tier::open(table.clone(), name("counts"), 1, &options).unwrap();
        let bound = bind_tier(tier.clone(), "127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let address = format!("http://{}", bound.address());
        let url = Source::new(&address, None).unwrap();
        let about = house.source.topic(&name("counts")).await.unwrap();
        let keeper = Keeper {
            tier: tier.clone(),
            server: house.source.clone(),
            topic: name("counts"),
            incarnation: about.incarnation,
            peers: peers.iter().map(|peer| peer.url.clone()).collect(),
            from_earliest: false,
        };
        let keeps = tokio::spawn(keeper.keep(P));
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(bound.serve(async {
            let _ = stopped.await;
        }));
        Self { tier, url, address, keeps, _stop: stop }
    }

    async fn until(&self, what: impl Fn(&tideline_tier::Standing) -> bool) {
        let until = async {
            while !what(&self.tier.standing()[0]) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(30), until).await.expect("it comes to that");
    }

    async fn until_applied(&self, seq: u64) {
        self.until(|part| part.whole && part.applied.seq == Seq(seq)).await;
    }

    async fn count(&self, key: &str) -> (Option<Filled>, u64) {
        let found = Asked::new(self.url.clone()).get(&[key.as_bytes()]).await.unwrap();
        (found[0].value.clone(), found[0].applied.seq.0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.keeps.abort();
    }
}

fn counter(n: i64) -> Option<Filled> {
    Some(Filled::Counter(n))
}

/// Queue fault 11: a place older than what is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_tier_away_for_longer_than_records_are_kept_takes_a_snapshot_and_the_tail() {
    let house = House::start().await;
    let (table, other) = (Arc::new(MemTable::new()), Arc::new(MemTable::new()));
    let lasting = Running::start(&house, &other, &[]).await;
    let away = Running::start(&house, &table, &[]).await;
    house.add("a", 1).await;
    house.add("b", 10).await;
    away.until_applied(2).await;
    drop(away);
    house.add("a", 2).await;
    house.add("c", 5).await;
    lasting.until_applied(4).await;
    house.queue.trim(&name("actions"), P, Seq(4)).unwrap();
    // Without a peer it says so, and answers as of where it stands.
    let back = Running::start(&house, &table, &[]).await;
    back.until(|part| part.stopped.as_ref().is_some_and(|why| why.contains("are gone"))).await;
    assert_eq!(back.count("a").await, (counter(1), 2));
    drop(back);
    let back = Running::start(&house, &table, &[&lasting]).await;
    back.until_applied(4).await;
    house.add("a", 3).await;
    back.until_applied(5).await;
    for (key, n) in [("a", 6), ("b", 10), ("c", 5)] {
        assert_eq!(back.count(key).await, (counter(n), 5), "{key}");
    }
    // A fresh one has no place at all, and gets there as well.
    let fresh = Running::start(&house, &Arc::default(), &[&back]).await;
    fresh.until_applied(5).await;
    assert_eq!(fresh.count("a").await, (counter(6), 5));
}

/// Queue fault 10: a topic that was deleted and made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_was_made_again_is_counted_anew() {
    let house = House::start().await;
    let tier = Running::start(&house, &Arc::default(), &[]).await;
    house.add("a", 7).await;
    tier.until_applied(1).await;
    let first = tier.tier.standing()[0].applied.incarnation;
    house.queue.delete_topic(&name("counts")).unwrap();
    house.queue.delete_topic(&name("actions")).unwrap();
    house.make();
    house.add("a", 1).await;
    tier.until(|part| part.applied.incarnation != first && part.applied.seq == Seq(1)).await;
    assert_eq!(tier.count("a").await, (counter(1), 1));
}

/// A cache of all keys, which follows the topic itself and is filled from the tier.
#[tokio::test(flavor = "multi_thread")]
async fn a_cache_is_filled_from_the_tier_and_kept_right_by_the_topic() {
    let house = House::start().await;
    let tier = Running::start(&house, &Arc::default(), &[]).await;
    house.add("a", 1).await;
    house.add("b", 1).await;
    let follow = Follow::start(FollowOptions {
        source: house.source.clone(),
        topic: name("counts"),
        partitions: 1,
        tier: Asked::new(tier.url.clone()),
        hot: false,
        cache_bytes: 1 << 20,
        follower: Default::default(),
    });
    // It begins at the end, wherever that is when it comes to it: with the next range
    // it knows where it stands, and keeps what it is told from then on.
    let until = async || {
        let mut seq = 2;
        while follow.standing()[0].covered == Seq::ZERO {
            seq += 1;
            house.add("b", 1).await;
            sleep(Duration::from_millis(5)).await;
        }
        while follow.standing()[0].covered != Seq(seq) {
            sleep(Duration::from_millis(5)).await;
        }
        seq
    };
    let seq = timeout(Duration::from_secs(30), until()).await.expect("it follows");
    tier.until_applied(seq).await;
    let first = follow.get(b"a").await.unwrap();
    assert_eq!((first.value, first.at, first.held), (counter(1), Seq(seq), false));
    house.add("a", 5).await;
    let until = async {
        while follow.standing()[0].covered != Seq(seq + 1) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), until).await.expect("it follows");
    let then = follow.get(b"a").await.unwrap();
    assert_eq!((then.value, then.at, then.held), (counter(6), Seq(seq + 1), true));
    follow.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_holds_the_hot_key_live_and_asks_for_others() {
    let house = House::start().await;
    let tier = Running::start(&house, &Arc::default(), &[]).await;
    house.add("hot", 1).await;
    house.add("cold", 1).await;
    tier.until_applied(2).await;
    let follow = Follow::start(FollowOptions {
        source: tier.url.clone(),
        topic: name("counts.hot"),
        partitions: 1,
        tier: Asked::new(tier.url.clone()),
        hot: true,
        cache_bytes: 1 << 20,
        follower: Default::default(),
    });
    tier.tier.touch(b"hot", 100);
    tier.tier.look(false);
    house.add("cold", 1).await;
    let until = async |seq: u64| {
        while follow.standing()[0].covered != Seq(seq) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), until(3)).await.expect("it follows");
    house.add("hot", 5).await;
    timeout(Duration::from_secs(30), until(4)).await.expect("it follows");
    assert_eq!(follow.held(b"hot"), Some((counter(6), Seq(4))));
    assert_eq!(follow.held(b"cold"), None);
    let cold = follow.get(b"cold").await.unwrap();
    assert_eq!((cold.value, cold.at, cold.held), (counter(2), Seq(4), false));
    // The only TLS provider that is built in; another call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let over_http = http.get(format!("{}/v1/keys/cold", tier.address)).send().await.unwrap();
    let answer: serde_json::Value = over_http.json().await.unwrap();
    assert_eq!(answer["counter"], 2);
    assert!(answer["applied"].as_str().unwrap().ends_with("-4"), "{answer}");
    let other = http.get(format!("{}/v1/nothing", tier.address)).send().await.unwrap();
    assert_eq!((other.status().as_u16(), other.headers().get("grpc-status")), (404, None));
    let call = http.post(format!("{}/tideline.none.v1.None/Call", tier.address));
    let call = call.header("content-type", "application/grpc").send().await.unwrap();
    assert_eq!(
        (call.status().as_u16(), &call.headers()["grpc-status"]),
        (200, &"12".parse().unwrap())
    );
    assert_eq!(follow.held(b"cold"), None, "nothing would be pushed to it");
    assert_eq!(follow.standing()[0].keys, 1);
    follow.stop().await;
}
