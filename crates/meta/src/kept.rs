//! What the queue keeps in the tree.
//!
//! | node | holds |
//! |---|---|
//! | `/tideline/topics/TOPIC` | a topic that is declared: operators, and the cuts at which each takes effect; the queue's own row |
//! | `/tideline/checkpoints/TOPIC/CONSUMER/PARTITION` | where a consumer goes on, as text: `incarnation-epoch-seq` |
//! | `/tideline/owners/NAME` | ephemeral: who owns what is called so, and `TOPIC/PARTITION` (see [`crate::ownership`]) |
//!
//! The three are subtrees, which are never dropped: numbers of one that is declared
//! again would begin anew, and the tokens of owners with them. A checkpoint never goes back: of two processes that
//! call themselves the same consumer, the one that is behind is refused.
//!
//! Topics with a log have their rows beside it and not here: the log of the
//! tree itself is one of them.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_queue::Rows;
use tideline_store::StoreError;
use tideline_types::{PartitionId, Position, Seq, TopicName};
use tokio::runtime::Handle;

use crate::ask::{Op, Refusal, Txn};
use crate::commit::Quota;
use crate::handle::Meta;
use crate::path::Path;
use crate::tree::Node;

/// Declared topics.
pub const TOPICS: &str = "/tideline/topics";
/// Places of consumers.
pub const CHECKPOINTS: &str = "/tideline/checkpoints";
/// Who owns what.
pub const OWNERS: &str = "/tideline/owners";

/// Whether the subtree at `path` is one of these.
pub(crate) fn is_kept(path: &Path) -> bool {
    [TOPICS, CHECKPOINTS, OWNERS].contains(&path.as_str())
}

/// Where a consumer goes on in each partition: the number after the last that
/// it is done with.
pub type Places = BTreeMap<PartitionId, Position>;

impl Meta {
    /// Declares what this file speaks of, where it is not yet.
    pub async fn ensure_kept(&self) -> Result<(), Refusal> {
        for root in [TOPICS, CHECKPOINTS, OWNERS] {
            match self.declare(&path(root)?, Quota::default()).await {
                Ok(_) | Err(Refusal::Exists(_)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Where `consumer` goes on in `topic`; empty if it never said.
    pub async fn checkpoint(
        &self,
        topic: &TopicName,
        consumer: &TopicName,
    ) -> Result<Places, Refusal> {
        let nodes = self.children(&path_of(topic, Some(consumer), None)?).await?;
        let place = |(path, node): (Path, Node)| {
            let partition = path.name().parse().map(PartitionId);
            let at = std::str::from_utf8(&node.value).ok().and_then(|text| text.parse().ok());
            let bad = || Refusal::Store(format!("{path} holds no place"));
            Ok((partition.map_err(|_| bad())?, at.ok_or_else(bad)?))
        };
        nodes.into_iter().map(place).collect()
    }

    /// Every consumer of `topic`, and where it goes on.
    pub async fn checkpoints(
        &self,
        topic: &TopicName,
    ) -> Result<BTreeMap<String, Places>, Refusal> {
        let mut all = BTreeMap::new();
        for (path, _) in self.children(&path_of(topic, None, None)?).await? {
            // Whatever else somebody has put there is no consumer.
            let Ok(consumer) = TopicName::new(path.name()) else { continue };
            all.insert(path.name().to_owned(), self.checkpoint(topic, &consumer).await?);
        }
        Ok(all)
    }

    /// `consumer` is done with what lies before `places`. Durable on return.
    ///
    /// # Errors
    /// `Conflict` where a place would go back, within one life of the topic or
    /// to an earlier one, or where another process writes the same; then those
    /// of earlier partitions may have been kept.
    pub async fn keep_checkpoint(
        &self,
        topic: &TopicName,
        consumer: &TopicName,
        places: &Places,
    ) -> Result<(), Refusal> {
        let root = path_of(topic, Some(consumer), None)?;
        let mut ops = Vec::new();
        for at in [path_of(topic, None, None)?, root.clone()] {
            if self.get(&at).await?.node.is_none() {
                ops.push(create(at, Bytes::new()));
            }
        }
        let held: BTreeMap<Path, Node> = self.children(&root).await?.into_iter().collect();
        for (partition, place) in places {
            let at = path_of(topic, Some(consumer), Some(*partition))?;
            let value = Bytes::from(place.to_string());
            let Some(node) = held.get(&at) else {
                ops.push(create(at, value));
                continue;
            };
            let was = std::str::from_utf8(&node.value).ok().and_then(|text| text.parse().ok());
            let order = |place: &Position| (place.incarnation, place.seq);
            if was.is_some_and(|was: Position| order(&was) > order(place)) {
                return Err(Refusal::Conflict { path: at, modified: node.modified });
            }
            if value != node.value {
                ops.push(Op::Set { path: at, value, modified: Some(node.modified) });
            }
        }
        for ops in ops.chunks(OPS) {
            let txn = Txn { ops: ops.to_vec(), session: None, op: None };
            self.apply(txn).await?;
        }
        Ok(())
    }

    /// Forgets where `consumer` is in `topic`; it begins anew.
    pub async fn forget_checkpoint(
        &self,
        topic: &TopicName,
        consumer: &TopicName,
    ) -> Result<(), Refusal> {
        let root = path_of(topic, Some(consumer), None)?;
        let mut going: Vec<Path> =
            self.children(&root).await?.into_iter().map(|(path, _)| path).collect();
        going.extend(self.get(&root).await?.node.map(|_| root));
        for going in going.chunks(OPS) {
            let delete = |path: &Path| Op::Delete { path: path.clone(), modified: None };
            let ops = going.iter().map(delete).collect();
            self.apply(Txn { ops, session: None, op: None }).await?;
        }
        Ok(())
    }

    /// Who owns partitions of `topic` by a lease: name, partition, token.
    pub async fn owners(
        &self,
        topic: &TopicName,
    ) -> Result<Vec<(String, PartitionId, Seq)>, Refusal> {
        let owned = |(path, node): (Path, Node)| {
            let (of, partition) = std::str::from_utf8(&node.value).ok()?.rsplit_once('/')?;
            let partition = partition.parse().ok().filter(|_| of == topic.as_str())?;
            Some((path.name().to_owned(), PartitionId(partition), node.created))
        };
        let nodes = self.children(&path(OWNERS)?).await?;
        Ok(nodes.into_iter().filter_map(owned).collect())
    }

    /// All children of a node; none if it is not there.
    async fn children(&self, of: &Path) -> Result<Vec<(Path, Node)>, Refusal> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = match self.list(of, after.as_deref(), usize::MAX).await {
                Err(Refusal::NoNode(_)) => return Ok(all),
                page => page?,
            };
            all.extend(page.children);
            if !page.more {
                return Ok(all);
            }
            after = all.last().map(|(path, _)| path.name().to_owned());
        }
    }
}

/// The queue's rows of declared topics, in the tree.
pub struct TopicRows {
    meta: Meta,
    runtime: Handle,
}

impl TopicRows {
    /// Those of `meta`. Its calls block, on threads of `runtime` that may.
    pub fn new(meta: Meta, runtime: Handle) -> Self {
        Self { meta, runtime }
    }

    fn run<T>(&self, call: impl Future<Output = Result<T, Refusal>>) -> Result<T, StoreError> {
        let failed = |refusal: Refusal| match refusal {
            Refusal::NoSpace(what) => StoreError::NoSpace { what },
            other => StoreError::Io { what: TOPICS.into(), cause: other.to_string() },
        };
        self.runtime.block_on(call).map_err(failed)
    }
}

impl Rows for TopicRows {
    fn all(&self) -> Result<Vec<(String, Bytes)>, StoreError> {
        let nodes = self.run(async { self.meta.children(&path(TOPICS)?).await })?;
        Ok(nodes.into_iter().map(|(path, node)| (path.name().to_owned(), node.value)).collect())
    }

    fn put(&self, topic: &TopicName, row: Bytes) -> Result<(), StoreError> {
        self.run(async {
            let at = path(TOPICS)?.child(topic.as_str())?;
            let op = match self.meta.get(&at).await?.node {
                None => create(at, row),
                Some(_) => Op::Set { path: at, value: row, modified: None },
            };
            self.meta.apply(Txn { ops: vec![op], session: None, op: None }).await
        })?;
        Ok(())
    }

    fn remove(&self, topic: &TopicName) -> Result<(), StoreError> {
        self.run(async {
            let path = path(TOPICS)?.child(topic.as_str())?;
            let ops = vec![Op::Delete { path, modified: None }];
            match self.meta.apply(Txn { ops, session: None, op: None }).await {
                Ok(_) | Err(Refusal::NoNode(_)) => Ok(()),
                Err(refusal) => Err(refusal),
            }
        })
    }
}

fn path(text: &str) -> Result<Path, Refusal> {
    Ok(Path::new(text)?)
}

fn path_of(
    topic: &TopicName,
    consumer: Option<&TopicName>,
    partition: Option<PartitionId>,
) -> Result<Path, Refusal> {
    let mut at = path(CHECKPOINTS)?.child(topic.as_str())?;
    if let Some(consumer) = consumer {
        at = at.child(consumer.as_str())?;
    }
    match partition {
        Some(partition) => Ok(at.child(&partition.to_string())?),
        None => Ok(at),
    }
}

fn create(path: Path, value: Bytes) -> Op {
    Op::Create { path, value, ephemeral: false, sequential: false }
}

/// Operations of one transaction.
const OPS: usize = 100;
