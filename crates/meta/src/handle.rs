//! The handle: what there is, and the ways in. Paths are from the top of the
//! whole tree.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tideline_queue::Queue;
use tideline_store::{Clock, StoreError, Table};
use tideline_types::limits::META_ROOT_BYTES_MAX;
use tideline_types::{Incarnation, Position};

use crate::ask::{Answer, Ask, Expect, Op, Refusal, Subtree, Txn};
use crate::commit::{OpId, Quota, SessionId};
use crate::done::Written;
use crate::kept;
use crate::namespace;
use crate::options::Options;
use crate::path::Path;
use crate::task::{Begun, Driver};
use crate::tree::Node;

/// The metadata tree of a data folder. Cheap to clone; clones are the same
/// tree.
#[derive(Clone)]
pub struct Meta {
    pub(crate) driver: Arc<Driver>,
}

/// One look at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The root of its subtree.
    pub root: Path,
    /// The node, if it is there.
    pub node: Option<Node>,
    /// Where the subtree was.
    pub at: Position,
}

/// One page of a node's children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The root of the subtree.
    pub root: Path,
    /// In order of their names.
    pub children: Vec<(Path, Node)>,
    /// There are more, after the last of these.
    pub more: bool,
    /// Where the subtree was.
    pub at: Position,
}

/// A transaction that was handed over.
#[must_use = "nothing is acknowledged before `written`"]
pub struct Submitted {
    root: Path,
    answer: Begun,
}

impl Submitted {
    /// What it made, once that is synced.
    pub async fn written(self) -> Result<Written, Refusal> {
        match self.answer.answer().await {
            Answer::Written(written) => full(&self.root, written),
            other => Err(refusal(other)),
        }
    }
}

impl Meta {
    /// Opens the tree over topic `meta`. Blocks while it reads what was
    /// changed since the last snapshots; must be called within a tokio runtime.
    pub fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, StoreError> {
        Ok(Self { driver: Driver::open(queue, table, clock, options)? })
    }

    /// Refuses new calls, brings everything to rest within `limit`, and joins
    /// the threads. What does not come to rest in time is in the log. Blocks.
    pub fn close(&self, limit: Duration) {
        self.driver.close(limit);
    }

    /// Does all of `txn` or nothing of it, in one subtree: where its
    /// operations lie, and its session and operation id belong.
    pub async fn apply(&self, txn: Txn) -> Result<Written, Refusal> {
        self.submit(txn)?.written().await
    }

    /// Hands `txn` over as [`Meta::apply`] does, and waits for nothing: what is
    /// handed over later is applied after it.
    pub fn submit(&self, mut txn: Txn) -> Result<Submitted, Refusal> {
        let Some(first) = txn.ops.first().map(|op| op.path().clone()) else {
            return Err(Refusal::Limit { what: "operations of a transaction", given: 0, max: 0 });
        };
        let mut root: Option<Path> = None;
        for op in &mut txn.ops {
            let (door, below) = self.driver.resolve(op.path())?;
            let of_first = root.get_or_insert_with(|| door.root.clone());
            if *of_first != door.root {
                return Err(Refusal::CrossSubtree(first, op.path().clone()));
            }
            *op.path_mut() = below;
        }
        let root = root.expect("there is a first operation");
        let answer = self.driver.begin(&root, Ask::Apply(txn));
        Ok(Submitted { root, answer })
    }

    /// One node.
    pub async fn get(&self, path: &Path) -> Result<Found, Refusal> {
        let (door, below) = self.driver.resolve(path)?;
        match self.driver.ask(&door.root, Ask::Get(below)).await {
            Answer::Node(node, at) => Ok(Found { root: door.root.clone(), node, at }),
            other => Err(refusal(other)),
        }
    }

    /// The children of a node, those after the one of the name `after`; at
    /// most 1,000 and 2 MiB of their values at a time.
    pub async fn list(
        &self,
        path: &Path,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, Refusal> {
        let (door, below) = self.driver.resolve(path)?;
        let after = after.map(|name| below.child(name)).transpose()?;
        let ask = Ask::List { path: below, after, limit };
        match self.driver.ask(&door.root, ask).await {
            Answer::Children(children, more, at) => {
                let root = door.root.clone();
                let children = children.into_iter().map(|(at, node)| Ok((root.join(&at)?, node)));
                let children = children.collect::<Result<_, Refusal>>()?;
                Ok(Page { root, children, more, at })
            }
            other => Err(refusal(other)),
        }
    }

    /// Where the subtree of `path` is: a copy that is there has seen all that
    /// was acknowledged before this call.
    pub async fn sync(&self, path: &Path) -> Result<(Path, Position), Refusal> {
        let (door, _) = self.driver.resolve(path)?;
        match self.driver.ask(&door.root, Ask::Sync).await {
            Answer::At(at) => Ok((door.root.clone(), at)),
            other => Err(refusal(other)),
        }
    }

    /// Begins a session of the subtree of `path`; its id is a fencing token.
    pub async fn begin(
        &self,
        path: &Path,
        lease_ms: u32,
        op: Option<OpId>,
    ) -> Result<SessionId, Refusal> {
        let (door, _) = self.driver.resolve(path)?;
        if door.root.is_root() {
            return Err(Refusal::Valueless(door.root.clone()));
        }
        match self.driver.ask(&door.root, Ask::Begin { lease_ms, op }).await {
            Answer::Session(id, _) => Ok(id),
            other => Err(refusal(other)),
        }
    }

    /// Renews a session of the subtree of `path`. After `Expired` all its
    /// nodes are gone or going.
    pub async fn keep_alive(&self, path: &Path, id: SessionId) -> Result<(), Refusal> {
        let (door, _) = self.driver.resolve(path)?;
        match self.driver.ask(&door.root, Ask::KeepAlive(id)).await {
            Answer::Session(..) => Ok(()),
            other => Err(refusal(other)),
        }
    }

    /// Ends a session, and removes its nodes.
    pub async fn end(&self, path: &Path, id: SessionId) -> Result<Written, Refusal> {
        let (door, _) = self.driver.resolve(path)?;
        self.write(&door.root, Ask::End(id)).await
    }

    /// Declares that a subtree begins at `path`, and makes the places above it
    /// that are missing. Answers when it can be used.
    pub async fn declare(&self, path: &Path, quota: Quota) -> Result<Incarnation, Refusal> {
        namespace::check_quota(&quota)?;
        let (given, max) = (path.as_str().len(), META_ROOT_BYTES_MAX);
        if given > max {
            let (given, max) = (given as u64, max as u64);
            return Err(Refusal::Limit { what: "bytes of a subtree's path", given, max });
        }
        let mut ops = Vec::new();
        let mut above = path.parent();
        while let Some(place) = above.filter(|place| !place.is_root()) {
            let Answer::Node(found, _) = self.ask_top(Ask::Get(place.clone())).await else {
                return Err(Refusal::Overloaded("the places above cannot be read"));
            };
            above = place.parent();
            ops.push(match found {
                Some(node) if !node.value.is_empty() => return Err(Refusal::Subtree(place)),
                Some(node) => Op::Check { path: place, expect: Expect::Created(node.created) },
                None => make(place, Bytes::new()),
            });
        }
        ops.reverse();
        ops.push(make(path.clone(), namespace::declaration(quota)));
        let declare = Ask::Declare(Txn { ops, session: None, op: None });
        let written = self.write(&Path::root(), declare).await?;
        let incarnation = Incarnation(written.seq.0 + 1);
        match self.driver.ask(path, Ask::Open { incarnation, quota }).await {
            Answer::Refused(refusal) => Err(refusal),
            _ => Ok(incarnation),
        }
    }

    /// Drops the subtree at `path`, with all that is in it. Its numbers begin
    /// anew if it is declared again, so those in which the queue keeps something
    /// stay: the token of an owner is a number of one of them.
    pub async fn drop_subtree(&self, path: &Path) -> Result<(), Refusal> {
        if kept::is_kept(path) {
            return Err(Refusal::Kept(path.clone()));
        }
        let Answer::Node(Some(node), _) = self.ask_top(Ask::Get(path.clone())).await else {
            return Err(Refusal::NoSubtree(path.clone()));
        };
        let declared = namespace::declared(&node).map_err(|bad| Refusal::Store(bad.to_string()))?;
        let (life, _) = declared.ok_or_else(|| Refusal::NoSubtree(path.clone()))?;
        let ops = vec![Op::Delete { path: path.clone(), modified: Some(node.modified) }];
        let drop = Ask::Declare(Txn { ops, session: None, op: None });
        self.write(&Path::root(), drop).await?;
        match self.driver.ask(path, Ask::Shut(life)).await {
            Answer::Refused(refusal) => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Every subtree, by path; the first is what lies above the others.
    pub fn subtrees(&self) -> Vec<Subtree> {
        self.driver.subtrees()
    }

    async fn ask_top(&self, ask: Ask) -> Answer {
        self.driver.ask(&Path::root(), ask).await
    }

    async fn write(&self, root: &Path, ask: Ask) -> Result<Written, Refusal> {
        match self.driver.ask(root, ask).await {
            Answer::Written(written) => Ok(written),
            other => Err(refusal(other)),
        }
    }
}

fn make(path: Path, value: Bytes) -> Op {
    Op::Create { path, value, ephemeral: false, sequential: false }
}

fn full(root: &Path, written: Written) -> Result<Written, Refusal> {
    let created = written.created.iter().map(|path| root.join(path));
    let created = created.collect::<Result<_, _>>().map_err(Refusal::from)?;
    Ok(Written { seq: written.seq, created })
}

fn refusal(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused(refusal) => refusal,
        _ => unreachable!("each call has its kind of answer"),
    }
}
