//! One of the readers: holds the hot keys of each tier, asks for items as
//! people would, and says what it holds.

use std::io::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tideline_client::{Filled, Follow, FollowOptions, Options, Source, Tier};
use tideline_types::TopicName;
use tokio::time::Instant;

use super::{item, mix};
use crate::cli::Failure;

/// An item is asked for this often.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// What it holds is said this often.
const SAY_EVERY: Duration = Duration::from_millis(500);
/// Keys in what it says, of each topic.
const SAID_KEYS: usize = 20;
/// How long to wait for a tier that is not there yet.
const AGAIN: Duration = Duration::from_millis(200);

/// What a reader says, one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) reader: u32,
    pub(super) topics: Vec<Held>,
}

/// What it holds of a topic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Held {
    pub(super) topic: String,
    pub(super) keys: usize,
    pub(super) hot: usize,
    pub(super) bytes: usize,
    /// Of each partition.
    pub(super) covered: Vec<u64>,
    pub(super) begun_anew: u64,
    /// Lookups that were answered here, and all.
    pub(super) hits: u64,
    pub(super) asked: u64,
    /// Keys, their counters, and the number of their partition of which that is.
    pub(super) shown: Vec<(String, Option<i64>, u64)>,
}

struct Of {
    topic: String,
    follow: Follow,
    hits: u64,
    asked: u64,
}

/// Follows and says until it is killed, or nobody listens.
pub(super) async fn run(number: u32, tiers: &[String]) -> Result<(), Failure> {
    let mut all = Vec::new();
    for url in tiers {
        all.push(begin(url).await?);
    }
    let (mut n, mut said) = (u64::from(number) << 32, Instant::now());
    loop {
        n += 1;
        for of in &mut all {
            of.asked += 1;
            let key = item(mix(n));
            // A tier that is away is asked another time.
            of.hits += of.follow.get(key.as_bytes()).await.map_or(0, |got| got.held.into());
        }
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            let topics = all.iter().map(Of::held).collect();
            let line = serde_json::to_string(&Said { reader: number, topics })
                .map_err(|e| Failure::failed("what is held", e))?;
            let mut out = std::io::stdout().lock();
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                return Ok(());
            }
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

async fn begin(url: &str) -> Result<Of, Failure> {
    let source = Source::new(url, None).map_err(|e| Failure::failed("--tier", e))?;
    let tier = Tier::new(source.clone());
    let about = loop {
        match tier.describe().await {
            Ok(about) => break about,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    let topic = TopicName::new(&format!("{}.hot", about.topic));
    let follow = Follow::start(FollowOptions {
        source,
        topic: topic.map_err(|e| Failure::failed("the topic", e))?,
        partitions: about.parts.len() as u16,
        tier,
        hot: true,
        cache_bytes: 1 << 20,
        follower: Options { credit_bytes: 1 << 20, ..Options::default() },
    });
    Ok(Of { topic: about.topic, follow, hits: 0, asked: 0 })
}

impl Of {
    fn held(&self) -> Held {
        let standing = self.follow.standing();
        let sum = |of: fn(&tideline_client::Standing) -> usize| standing.iter().map(of).sum();
        let shown = (0..)
            .map(|n| format!("item-{n:03}"))
            .take(super::ITEMS as usize)
            .filter_map(|key| {
                let (value, at) = self.follow.held(key.as_bytes())?;
                let counter = match value {
                    Some(Filled::Counter(n)) => Some(n),
                    _ => None,
                };
                Some((key, counter, at.0))
            })
            .take(SAID_KEYS);
        Held {
            topic: self.topic.clone(),
            keys: sum(|part| part.keys),
            hot: sum(|part| part.hot_keys),
            bytes: sum(|part| part.bytes),
            shown: shown.collect(),
            covered: standing.iter().map(|part| part.covered.0).collect(),
            begun_anew: standing.iter().map(|part| part.begun_anew).sum(),
            hits: self.hits,
            asked: self.asked,
        }
    }
}
