//! What can be asked of a subtree, and the answers.

use std::sync::Arc;

use bytes::Bytes;
use tideline_store::{Outcome, StoreError};
use tideline_types::{Epoch, Incarnation, Position, Seq};

use crate::commit::{OpId, Quota, SessionId};
use crate::done::Written;
use crate::path::{BadPath, Path};
use crate::tree::{Node, Tree};

/// What a node must be for a transaction to go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It is not there.
    Absent,
    /// It is there.
    Present,
    /// It was last written by this seq.
    Modified(Seq),
    /// It was created by this seq, whatever was written since.
    Created(Seq),
}

/// One operation of a transaction. Paths are below the subtree's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Makes a node that is not there.
    Create {
        /// Where; of a sequential one, the name before its number.
        path: Path,
        /// What it holds.
        value: Bytes,
        /// It goes with the transaction's session.
        ephemeral: bool,
        /// Ten digits of the parent's counter follow the name.
        sequential: bool,
    },
    /// Writes a node that is there.
    Set {
        /// Which.
        path: Path,
        /// What it holds from now on.
        value: Bytes,
        /// Only if it was last written by this seq.
        modified: Option<Seq>,
    },
    /// Removes a node that has no children.
    Delete {
        /// Which.
        path: Path,
        /// Only if it was last written by this seq.
        modified: Option<Seq>,
    },
    /// Changes nothing.
    Check {
        /// Which node.
        path: Path,
        /// How it must be.
        expect: Expect,
    },
}

impl Op {
    /// The node it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. }
            | Self::Check { path, .. } => path,
        }
    }

    pub(crate) fn path_mut(&mut self) -> &mut Path {
        match self {
            Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. }
            | Self::Check { path, .. } => path,
        }
    }
}

/// Operations of one subtree that happen together or not at all. Each sees
/// those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// 1 to 128.
    pub ops: Vec<Op>,
    /// For whom; if that session has ended, nothing happens.
    pub session: Option<SessionId>,
    /// Lets it be sent again: see [`crate::Written`].
    pub op: Option<OpId>,
}

/// A call about one subtree.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Do it.
    Apply(Txn),
    /// One node.
    Get(Path),
    /// The children of a node, in order of their names.
    List {
        /// Of which.
        path: Path,
        /// Those after this child.
        after: Option<Path>,
        /// At most so many.
        limit: usize,
    },
    /// Where the subtree is.
    Sync,
    /// Begin a session.
    Begin {
        /// Ends unless it is renewed within this time.
        lease_ms: u32,
        /// Lets it be sent again.
        op: Option<OpId>,
    },
    /// Renew a session.
    KeepAlive(SessionId),
    /// End a session and remove its nodes.
    End(SessionId),
    /// The whole subtree, for an observer.
    Picture,
    /// The whole subtree, to be brought to rest.
    Image,
    /// A change of what lies above subtrees that callers may not make
    /// themselves: declarations.
    Declare(Txn),
    /// The subtree begins (empty, under a new incarnation).
    Open {
        /// Which life.
        incarnation: Incarnation,
        /// What it may hold.
        quota: Quota,
    },
    /// This life of the subtree is over.
    Shut(Incarnation),
}

impl Ask {
    /// Whether something may be logged for it.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Apply(_)
            | Self::Begin { .. }
            | Self::End(_)
            | Self::Declare(_)
            | Self::Open { .. }
            | Self::Shut(_) => true,
            Self::Get(_)
            | Self::List { .. }
            | Self::Sync
            | Self::KeepAlive(_)
            | Self::Picture
            | Self::Image => false,
        }
    }
}

/// A subtree as it was.
#[derive(Clone, Debug)]
pub struct Image {
    /// What it held.
    pub tree: Tree,
    /// Who wrote its last commit.
    pub epoch: Epoch,
    /// What it may hold.
    pub quota: Quota,
    /// It holds every entry of the partition's log up to here.
    pub log: Seq,
}

impl Image {
    /// Where it stands.
    pub fn position(&self) -> Position {
        let (incarnation, seq) = (self.tree.incarnation(), self.tree.seq());
        Position { incarnation, epoch: self.epoch, seq }
    }
}

/// A subtree, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// Where it begins.
    pub root: Path,
    /// Which life.
    pub incarnation: Incarnation,
    /// The last commit that is synced.
    pub seq: Seq,
    /// Nodes, its root not counted.
    pub nodes: u64,
    /// What they count against its quota.
    pub bytes: u64,
    /// Sessions that have not ended.
    pub sessions: u64,
    /// Observers that wait for a change.
    pub observers: u64,
    /// Bytes of changes that no durable snapshot holds.
    pub unrested_bytes: u64,
}

/// What came of a call. None is given before everything it rests on survives
/// power loss.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of `Apply` and `End`.
    Written(Written),
    /// Of `Get`: the node, and where the subtree was.
    Node(Option<Node>, Position),
    /// Of `List`: the node's children, and whether there are more.
    Children(Vec<(Path, Node)>, bool, Position),
    /// Of `Sync`.
    At(Position),
    /// Of `Begin` and `KeepAlive`: the session, and the lease it has now.
    Session(SessionId, u32),
    /// Of `Image`.
    Image(Arc<Image>),
    /// Of `Open` and `Shut`.
    Done,
    /// Nothing happened, and why.
    Refused(Refusal),
}

/// Why nothing happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No subtree is declared there.
    #[error("no subtree is declared at or above {0}")]
    NoSubtree(Path),
    /// Operations of several subtrees in one transaction.
    #[error("{0} and {1} are in different subtrees; a transaction is of one")]
    CrossSubtree(Path, Path),
    /// Above subtrees there are only nodes without values.
    #[error("{0} is above the subtrees: such nodes are created and removed, nothing else")]
    Valueless(Path),
    /// It is the root of a subtree, which is declared and dropped.
    #[error("{0} is a subtree")]
    Subtree(Path),
    /// It holds what the queue keeps there, and tokens that must never fall.
    #[error("{0} is the queue's own and is never dropped")]
    Kept(Path),
    /// The path.
    #[error("{0}")]
    Path(#[from] BadPath),
    /// No such node.
    #[error("{0} does not exist")]
    NoNode(Path),
    /// There is one.
    #[error("{0} exists")]
    Exists(Path),
    /// It was written since.
    #[error("{path} was last written by {modified}")]
    Conflict {
        /// Which.
        path: Path,
        /// By what it was written.
        modified: Seq,
    },
    /// Nodes with children stay.
    #[error("{0} has children")]
    NotEmpty(Path),
    /// An ephemeral node has no children.
    #[error("{0} is ephemeral and has no children")]
    Ephemeral(Path),
    /// A root is there as long as its subtree.
    #[error("the root of a subtree is neither created nor removed")]
    Root,
    /// An ephemeral node without a session.
    #[error("an ephemeral node needs a session")]
    NoSession,
    /// The session has ended, and its nodes are gone or going.
    #[error("session {} has ended", .0.0)]
    Expired(SessionId),
    /// Over a limit that never moves.
    #[error("{what}: {given}, at most {max} are allowed")]
    Limit {
        /// Of what.
        what: &'static str,
        /// Given.
        given: u64,
        /// The limit.
        max: u64,
    },
    /// The subtree is full.
    #[error("the subtree holds {given} {what}, {max} are allowed")]
    Quota {
        /// Of what.
        what: &'static str,
        /// What it would come to.
        given: u64,
        /// The quota.
        max: u64,
    },
    /// Too much waits: try again.
    #[error("overloaded: {0}")]
    Overloaded(&'static str),
    /// This owner is no longer the one: ask the present one.
    #[error("the partition has another owner")]
    Fenced,
    /// The log does not take it.
    #[error("no space: {0}")]
    NoSpace(String),
    /// The log failed. Whether the write was kept is unknown until it is read
    /// again.
    #[error("the log failed: {0}")]
    Unknown(String),
    /// The store cannot give it.
    #[error("{0}")]
    Store(String),
}

impl Refusal {
    /// May it have happened all the same?
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unknown(_) => Outcome::Unknown,
            _ => Outcome::NotDone,
        }
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NoSpace { what } => Self::NoSpace(what.clone()),
            StoreError::Failed { .. } => Self::Unknown(error.to_string()),
            _ => Self::Store(error.to_string()),
        }
    }
}
