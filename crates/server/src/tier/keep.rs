//! Keeps one partition of a tier up to its topic, and does what stops ask for.
//!
//! | stop | done |
//! |---|---|
//! | `Truncated`, `Lagged` | a snapshot of another tier, and its tail; without one, nothing goes on, and answers stay as old as they say |
//! | `Diverged`, `Recreated` | all is removed, and followed from the first record |
//! | `Halted` | waits for another operator |

use std::time::Duration;

use tideline_client::{
    Filled, Follower, From, Next, Options, Piece, Source, Stopped, Tier as Peer, TierError,
};
use tideline_record::frame::Frame;
use tideline_store::StoreError;
use tideline_tier::{ApplyError, Has, Start, Tier, Whole};
use tideline_types::{Epoch, Incarnation, PartitionId, Position, Seq, TopicName};

use crate::cli::Failure;

/// How long to wait before what could not be done is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What every partition needs.
#[derive(Clone)]
pub(super) struct Keeper {
    pub(super) tier: Tier,
    pub(super) server: Source,
    pub(super) topic: TopicName,
    /// The topic's life when the tier was opened.
    pub(super) incarnation: Incarnation,
    /// Other tiers of the same topic.
    pub(super) peers: Vec<Source>,
    /// What is gone at the source may be missing.
    pub(super) from_earliest: bool,
}

impl Keeper {
    /// Follows a partition; ends only if the store fails, or the topic has another
    /// number of partitions.
    pub(super) async fn keep(self, partition: PartitionId) -> Result<(), Failure> {
        let from = match self.tier.start(partition) {
            Start::After(position) => From::After(position),
            Start::Fresh if self.from_earliest => From::Earliest,
            Start::Fresh => From::After(before_all(self.incarnation)),
            Start::Snapshot => self.begin_again(partition, Seq::ZERO).await?,
        };
        let (source, topic) = (self.server.clone(), self.topic.clone());
        let mut follower = Follower::new(source, topic, partition, from, Options::default());
        loop {
            match follower.next().await {
                Ok(Next::Range(frame)) => {
                    if let Some(from) = self.apply(partition, frame).await? {
                        follower.go_on(from);
                    }
                }
                Ok(Next::Head { synced }) => self.tier.heard(partition, synced),
                Ok(Next::Stopped(why)) => {
                    tracing::warn!(topic = %self.topic, %partition, %why, "stopped");
                    self.tier.stopped(partition, why.to_string());
                    let from = self.go_on(partition, &follower, why).await?;
                    follower.go_on(from);
                }
                Err(refused) => self.tier.stopped(partition, refused.to_string()),
            }
        }
    }

    /// Applies a range; answers where to go on if it does not join.
    async fn apply(&self, partition: PartitionId, frame: Frame) -> Result<Option<From>, Failure> {
        let after = frame.range().after;
        match self.run(move |tier| tier.apply(&frame)).await? {
            Ok(()) => Ok(None),
            // Only after what was gone was left out.
            Err(ApplyError::Join { .. }) => {
                self.begin_again(partition, after.next()).await.map(Some)
            }
            Err(ApplyError::Store(error)) => Err(store_failed(error)),
        }
    }

    async fn go_on(
        &self,
        partition: PartitionId,
        follower: &Follower,
        why: Stopped,
    ) -> Result<From, Failure> {
        match why {
            Stopped::Halted { .. } => {
                tokio::time::sleep(AGAIN).await;
                Ok(follower.stands().map_or(From::Earliest, From::After))
            }
            Stopped::Truncated { start, .. } => self.begin_again(partition, start).await,
            Stopped::Lagged { oldest, .. } => self.begin_again(partition, oldest).await,
            Stopped::Diverged { common } => {
                self.forget(partition, before_all(common.incarnation)).await
            }
            Stopped::Recreated { incarnation } => {
                let about = self.server.topic(&self.topic).await;
                if about.is_ok_and(|about| about.partitions != self.tier.partitions()) {
                    let why = "it was made again with other partitions; start the tier again";
                    return Err(Failure::failed(&self.topic, why));
                }
                self.forget(partition, before_all(incarnation)).await
            }
        }
    }

    /// Removes all, and begins after `position`.
    async fn forget(&self, partition: PartitionId, position: Position) -> Result<From, Failure> {
        let forgotten = self.run(move |tier| {
            tier.wipe(partition, position)?;
            tier.loaded(partition, Seq::ZERO)
        });
        forgotten.await?.map_err(store_failed)?;
        Ok(From::After(position))
    }

    /// Records before `start` are gone at the source: takes a snapshot of another
    /// tier that has them, as soon as there is one.
    async fn begin_again(&self, partition: PartitionId, start: Seq) -> Result<From, Failure> {
        loop {
            for peer in &self.peers {
                match self.load(partition, &Peer::new(peer.clone()), start).await? {
                    Ok(from) => return Ok(from),
                    Err(error) => tracing::info!(%partition, %error, "no snapshot"),
                }
            }
            if self.from_earliest {
                let position = Position { seq: start.prev(), ..before_all(self.incarnation) };
                self.forget(partition, position).await?;
                return Ok(From::Earliest);
            }
            self.tier.stopped(
                partition,
                format!(
                    "records before {start} are gone, and no other tier (--peer) has a snapshot \
                     with them; --from-earliest begins without them"
                ),
            );
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Loads the snapshot of a peer, if it reaches to `start`.
    async fn load(
        &self,
        partition: PartitionId,
        peer: &Peer,
        start: Seq,
    ) -> Result<Result<From, TierError>, Failure> {
        let mut snapshot = match peer.snapshot(partition, false).await {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(Err(error)),
        };
        let mut begun = None;
        loop {
            let piece = match snapshot.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(Err(TierError::Odd("the snapshot was cut off"))),
                Err(error) => return Ok(Err(error)),
            };
            let done = match piece {
                // Before anything is removed here: it must be of use.
                Piece::After(position) if position.seq < start.prev() => {
                    return Ok(Err(TierError::Odd("the peer is behind as well")));
                }
                Piece::After(position) => {
                    begun = Some(position);
                    self.run(move |tier| tier.wipe(partition, position)).await?
                }
                Piece::Entries(entries) => {
                    let entries = entries.into_iter().filter_map(whole).collect();
                    self.run(move |tier| tier.load(partition, entries)).await?
                }
                Piece::Through(through) => {
                    let Some(position) = begun else {
                        return Ok(Err(TierError::Odd("a snapshot without a beginning")));
                    };
                    let loaded = self.run(move |tier| tier.loaded(partition, through.seq)).await?;
                    loaded.map_err(store_failed)?;
                    tracing::info!(%partition, %position, "loaded a snapshot");
                    return Ok(Ok(From::After(position)));
                }
            };
            done.map_err(store_failed)?;
        }
    }

    /// Runs what writes rows where it holds up nobody.
    async fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Tier) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let tier = self.tier.clone();
        let run = tokio::task::spawn_blocking(move || what(&tier));
        run.await.map_err(|error| Failure::failed("the tier", error))
    }
}

fn whole(entry: tideline_client::Entry) -> Option<Whole> {
    let has = match entry.value? {
        Filled::Counter(n) => Has::Counter(n),
        Filled::Bytes(bytes) => Has::Value(bytes.into()),
    };
    Some(Whole { key: entry.key.into(), has, at: entry.at })
}

fn before_all(incarnation: Incarnation) -> Position {
    Position { incarnation, epoch: Epoch(0), seq: Seq::ZERO }
}

fn store_failed(error: StoreError) -> Failure {
    Failure::failed("the tier's rows", error)
}
