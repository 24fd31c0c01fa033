//! A topic of operations on keys, followed into caches: one for each partition.
//!
//! ```text
//!   topic  ──Follower──▶ Cache of the partition ◀──get── callers
//!                             ▲
//!   tier   ──fills, and the snapshot of hot keys
//! ```
//!
//! What a stop asks for is done here, for a cache may be thrown away: it is
//! begun anew where the topic goes on, and filled again. Callers see that it
//! happened by [`Standing::begun_anew`], and that a partition does not go on by
//! [`Standing::trouble`]; what is held then is as old as the place that goes with
//! each answer says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tideline_record::frame::Frame;
use tideline_types::{
    Epoch, Incarnation, Millis, PartitionId, Position, Seq, TopicName, partition_of,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cache::{Cache, Change, Filled, Filling, Found, Refused};
use crate::follower::{Follower, Next, Options};
use crate::source::Source;
use crate::tier::{Piece, Tier, TierError};
use crate::track::{From, Stopped};

/// What is followed, and into how much memory.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Whom the topic is read from: a server, or a tier for its hot keys.
    pub source: Source,
    /// A topic of operations on keys.
    pub topic: TopicName,
    /// How many partitions it has.
    pub partitions: u16,
    /// Who is asked for a key that is not held.
    pub tier: Tier,
    /// The topic has the hot keys of `tier` alone.
    pub hot: bool,
    /// Bytes of each partition's cache, about.
    pub cache_bytes: usize,
    /// How each partition is followed.
    pub follower: Options,
}

/// A value, and how old it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    /// `None` for nothing.
    pub value: Option<Filled>,
    /// The key has it at this number of its partition, or a later one.
    pub at: Seq,
    /// Whether it was held here.
    pub held: bool,
}

/// How a partition stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Everything up to here was pushed.
    pub covered: Seq,
    /// What the source last said that it has.
    pub head: Seq,
    /// The time of the newest record that was pushed, as its writer gave it.
    pub newest: Millis,
    /// Keys held.
    pub keys: usize,
    /// Keys that are hot.
    pub hot_keys: usize,
    /// Bytes taken, about.
    pub bytes: usize,
    /// How often the cache was thrown away, because of what the source said.
    pub begun_anew: u64,
    /// Records that are no operation on a key.
    pub odd: u64,
    /// Why the partition does not go on; `None` if it does.
    pub trouble: Option<String>,
}

/// A topic in caches. Dropping it ends its tasks.
pub struct Follow {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    options: FollowOptions,
    parts: Vec<Mutex<Part>>,
}

struct Part {
    cache: Cache,
    incarnation: Incarnation,
    epoch: Epoch,
    standing: Standing,
    /// Keys that were found since the tier was told, and how often.
    touched: BTreeMap<Vec<u8>, u32>,
}

/// A fill that a store behind its readers refused is tried again this often.
const FILLS_MAX: u32 = 5;
/// How long to wait in between.
const FILL_PAUSE: Duration = Duration::from_millis(20);
/// How long a partition waits for a tier that does not answer.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(200);
/// How long a partition waits for another operator.
const HALT_PAUSE: Duration = Duration::from_secs(1);
/// The tier is told this often what was found here.
const TOUCH_EVERY: Duration = Duration::from_millis(500);
/// Keys of a partition in what it is told, at most.
const TOUCHED_MAX: usize = 1_000;

impl Follow {
    /// Begins to follow. Needs a runtime.
    pub fn start(options: FollowOptions) -> Self {
        let cache = || match options.hot {
            true => Cache::of_hot_keys(Seq::ZERO, options.cache_bytes),
            false => Cache::new(Seq::ZERO, options.cache_bytes),
        };
        let part = || Part {
            cache: cache(),
            incarnation: Incarnation::default(),
            epoch: Epoch::default(),
            standing: Standing::default(),
            touched: BTreeMap::new(),
        };
        let parts = (0..options.partitions).map(|_| Mutex::new(part())).collect();
        let shared = Arc::new(Shared { options, parts });
        let mut tasks = JoinSet::new();
        for partition in 0..shared.options.partitions {
            tasks.spawn(shared.clone().run(PartitionId(partition)));
        }
        if shared.options.hot {
            tasks.spawn(shared.clone().tell_touched());
        }
        Self { shared, tasks }
    }

    /// What a key has: held here, or asked of the tier.
    ///
    /// # Errors
    /// Of the tier, where the key is not held.
    pub async fn get(&self, key: &[u8]) -> Result<Got, TierError> {
        self.shared.get(key).await
    }

    /// What a key has, if it is held here, and the number of it. Does not count as
    /// asked for.
    pub fn held(&self, key: &[u8]) -> Option<(Option<Filled>, Seq)> {
        self.shared.part_of(key).held(key).map(|got| (got.value, got.at))
    }

    /// The partition of a key.
    pub fn partition_of(&self, key: &[u8]) -> PartitionId {
        partition_of(key, self.shared.options.partitions)
    }

    /// How each partition stands, by number.
    pub fn standing(&self) -> Vec<Standing> {
        self.shared.parts.iter().map(|part| lock(part).standing()).collect()
    }

    /// Ends the following, and waits until it has.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Shared {
    fn part_of(&self, key: &[u8]) -> MutexGuard<'_, Part> {
        lock(&self.parts[usize::from(partition_of(key, self.options.partitions).0)])
    }

    async fn get(&self, key: &[u8]) -> Result<Got, TierError> {
        for tried in 1.. {
            let (filling, incarnation, epoch) = {
                let mut part = self.part_of(key);
                if let Some(got) = part.held(key) {
                    part.touch(key);
                    return Ok(got);
                }
                let filling =
                    (part.incarnation != Incarnation::default()).then(|| part.cache.begin(key));
                (filling, part.incarnation, part.epoch)
            };
            // A call that is given up would leave its fill: it says so when dropped.
            let mut guard = Abandon { shared: self, key, filling };
            let found = self.options.tier.get(&[key]).await?.pop();
            let found = found.ok_or(TierError::Odd("no answer for the key"))?;
            let got = Got { value: found.value, at: found.applied.seq, held: false };
            let Some(filling) = guard.filling.take() else { return Ok(got) };
            // Of another life, or of a tail that was lost: not to be compared.
            let fits = found.applied.incarnation == incarnation && found.applied.epoch >= epoch;
            // One that is not taken is one that the key had, and says of when.
            if self.finish(filling, fits, &got) || tried == FILLS_MAX {
                return Ok(got);
            }
            sleep(FILL_PAUSE * tried).await;
        }
        Err(TierError::Odd("no answer"))
    }

    /// Takes an answer of the tier into the cache; false if another may be newer.
    fn finish(&self, filling: Filling, fits: bool, got: &Got) -> bool {
        let mut part = self.part_of(filling.key());
        if !fits {
            part.cache.abandon(filling);
            return false;
        }
        let taken = part.cache.finish(filling, got.value.clone(), got.at);
        !matches!(taken, Err(Refused::Behind { .. }))
    }

    /// Follows one partition for ever.
    async fn run(self: Arc<Self>, partition: PartitionId) {
        let options = &self.options;
        let follower = |from| {
            let (source, topic) = (options.source.clone(), options.topic.clone());
            Follower::new(source, topic, partition, from, options.follower.clone())
        };
        let mut follower = follower(self.begin(partition).await);
        loop {
            match follower.next().await {
                Ok(Next::Range(frame)) => self.part(partition).push(&frame),
                Ok(Next::Head { synced }) => {
                    let mut part = self.part(partition);
                    part.standing.head = synced;
                    if let Some(stands) = follower.stands() {
                        part.place(stands);
                    }
                }
                Ok(Next::Stopped(why)) => {
                    let from = self.go_on(partition, &follower, &why).await;
                    follower.go_on(from);
                }
                Err(refused) => self.part(partition).standing.trouble = Some(refused.to_string()),
            }
        }
    }

    fn part(&self, partition: PartitionId) -> MutexGuard<'_, Part> {
        lock(&self.parts[usize::from(partition.0)])
    }

    /// What a stop asks for: a cache holds nothing that cannot be had again.
    async fn go_on(&self, partition: PartitionId, follower: &Follower, why: &Stopped) -> From {
        match why {
            Stopped::Halted { .. } => {
                self.part(partition).standing.trouble = Some(why.to_string());
                sleep(HALT_PAUSE).await;
                follower.stands().map_or(From::Latest, From::After)
            }
            Stopped::Truncated { .. }
            | Stopped::Recreated { .. }
            | Stopped::Lagged { .. }
            | Stopped::Diverged { .. } => {
                self.part(partition).standing.begun_anew += 1;
                self.begin(partition).await
            }
        }
    }

    /// Begins a partition's cache: with the hot keys, or empty, at the end of
    /// the topic.
    async fn begin(&self, partition: PartitionId) -> From {
        if !self.options.hot {
            let mut part = self.part(partition);
            part.cache.begin_anew(Seq::ZERO);
            // Until it is known where this stands, nothing is kept.
            part.incarnation = Incarnation::default();
            return From::Latest;
        }
        loop {
            match self.load(partition).await {
                Ok(position) => return From::After(position),
                Err(error) => {
                    self.part(partition).standing.trouble = Some(error.to_string());
                    sleep(SNAPSHOT_PAUSE).await;
                }
            }
        }
    }

    /// The hot keys of a partition, from the tier.
    async fn load(&self, partition: PartitionId) -> Result<Position, TierError> {
        let mut snapshot = self.options.tier.snapshot(partition, true).await?;
        let (mut after, mut whole, mut entries) = (None, false, Vec::new());
        while let Some(piece) = snapshot.next().await? {
            match piece {
                Piece::After(position) => after = Some(position),
                Piece::Entries(more) => entries.extend(more),
                Piece::Through(position) => whole = after == Some(position),
            }
        }
        let Some(position) = after.filter(|_| whole) else {
            return Err(TierError::Odd("a snapshot of hot keys that is not of one place"));
        };
        let mut part = self.part(partition);
        part.cache.begin_anew(position.seq);
        part.incarnation = position.incarnation;
        part.epoch = position.epoch;
        part.standing.trouble = None;
        for entry in entries {
            part.cache.load(&entry.key, entry.value);
        }
        Ok(position)
    }

    /// Says to the tier what is found here, for it would think it cold.
    async fn tell_touched(self: Arc<Self>) {
        loop {
            sleep(TOUCH_EVERY).await;
            for part in &self.parts {
                let touched = std::mem::take(&mut lock(part).touched);
                if !touched.is_empty() {
                    // Lost if the tier is away: it is a measure, not a count.
                    let _ = self.options.tier.touch(touched.into_iter().collect()).await;
                }
            }
        }
    }
}

impl Part {
    fn held(&mut self, key: &[u8]) -> Option<Got> {
        let value = match self.cache.get(key) {
            Found::Unknown => return None,
            Found::Nothing => None,
            Found::Counter(n) => Some(Filled::Counter(n)),
            Found::Value(bytes) => Some(Filled::Bytes(bytes.to_vec())),
        };
        let at = self.cache.covered().max(self.cache.seq_of(key).unwrap_or_default());
        Some(Got { value, at, held: true })
    }

    /// The next range begins after `stands`.
    fn place(&mut self, stands: Position) {
        let known = self.incarnation == stands.incarnation;
        if !known || self.cache.covered() != stands.seq {
            self.cache.begin_anew(stands.seq);
        }
        self.incarnation = stands.incarnation;
        self.epoch = stands.epoch;
    }

    fn push(&mut self, frame: &Frame) {
        self.place(Position { seq: frame.range().after, ..frame.through() });
        for record in frame.records().filter(|record| !record.erased) {
            self.standing.newest = self.standing.newest.max(record.time);
            match Change::read(record.value).filter(|_| !record.skipped) {
                Some(change) => self.cache.push(record.seq, record.sub, record.key, &change),
                None => self.standing.odd += 1,
            }
        }
        let through = frame.through();
        self.cache.advance(through.seq);
        self.standing.trouble = None;
        self.standing.head = self.standing.head.max(through.seq);
    }

    /// Counts a key that was found here, for the tier.
    fn touch(&mut self, key: &[u8]) {
        let room = self.touched.len() < TOUCHED_MAX;
        if self.cache.is_hot(key) && (room || self.touched.contains_key(key)) {
            let times = self.touched.entry(key.to_vec()).or_default();
            *times = times.saturating_add(1);
        }
    }

    fn standing(&self) -> Standing {
        Standing {
            covered: self.cache.covered(),
            keys: self.cache.len(),
            hot_keys: self.cache.hot_keys(),
            bytes: self.cache.bytes(),
            ..self.standing.clone()
        }
    }
}

/// Gives a fill up when it is dropped before its answer came.
struct Abandon<'a> {
    shared: &'a Shared,
    key: &'a [u8],
    filling: Option<Filling>,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if let Some(filling) = self.filling.take() {
            self.shared.part_of(self.key).cache.abandon(filling);
        }
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
