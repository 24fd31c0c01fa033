//! One subtree as its owner has it: the tree, its recent commits, its leases,
//! and how much of it is at rest.

use bytes::Bytes;
use tideline_types::{Epoch, Incarnation, Position, Seq};

use crate::ask::Image;
use crate::commit::{Commit, Quota};
use crate::lease::Leases;
use crate::tail::Tail;
use crate::tree::{Misfit, Tree};

/// A subtree. Always: `tail.end() == tree.seq()`, `synced <= tree.seq()`.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) tree: Tree,
    pub(crate) quota: Quota,
    pub(crate) tail: Tail,
    pub(crate) leases: Leases,
    /// Who wrote the last commit.
    pub(crate) epoch: Epoch,
    /// The last commit that survives power loss: what observers may see.
    pub(crate) synced: Seq,
    /// The number in the log of its last entry: what calls wait for.
    pub(crate) log: Seq,
    pub(crate) rest: Rest,
    /// Commits from before the snapshot, while the log is replayed.
    refill: Option<Tail>,
}

/// What of a subtree is not at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The first entry in the log that no durable snapshot holds.
    pub(crate) dirty: Option<Seq>,
    /// Bytes of entries since.
    pub(crate) bytes: u64,
    /// When the owner looked at it first, in ticks.
    pub(crate) since: u64,
    /// A snapshot is under way, and this is the first entry that it lacks.
    later: Option<(Option<Seq>, u64)>,
}

impl Rest {
    fn note(&mut self, log: Seq, bytes: usize, ticks: u64) {
        if self.dirty.is_none() {
            (self.dirty, self.since) = (Some(log), ticks);
        }
        self.bytes += bytes as u64;
        if let Some((later, since)) = &mut self.later {
            later.get_or_insert(log);
            *since += bytes as u64;
        }
    }

    pub(crate) fn begins(&mut self) {
        self.later = Some((None, 0));
    }

    /// Whether a snapshot is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.later.is_some()
    }

    pub(crate) fn ended(&mut self, done: bool, ticks: u64) {
        let Some((later, bytes)) = self.later.take() else { return };
        if done {
            (self.dirty, self.bytes, self.since) = (later, bytes, ticks);
        }
    }
}

impl Lane {
    /// An empty one that the entry `log` opens.
    pub(crate) fn open(incarnation: Incarnation, quota: Quota, log: Seq, ticks: u64) -> Self {
        let at = Position { incarnation, ..Position::default() };
        let mut lane = Self::at(Tree::new(incarnation), quota, at.epoch, log);
        lane.rest.note(log, 1, ticks);
        lane
    }

    /// One that is at rest.
    pub(crate) fn rested(image: Image) -> Self {
        Self::at(image.tree, image.quota, image.epoch, image.log)
    }

    fn at(tree: Tree, quota: Quota, epoch: Epoch, log: Seq) -> Self {
        let (incarnation, seq) = (tree.incarnation(), tree.seq());
        Self {
            tail: Tail::new(Position { incarnation, epoch, seq }),
            synced: seq,
            leases: Leases::default(),
            rest: Rest::default(),
            refill: None,
            tree,
            quota,
            epoch,
            log,
        }
    }

    pub(crate) fn position(&self) -> Position {
        let (incarnation, seq) = (self.tree.incarnation(), self.tree.seq());
        Position { incarnation, epoch: self.epoch, seq }
    }

    pub(crate) fn image(&self) -> Image {
        let (epoch, quota, log) = (self.epoch, self.quota, self.log);
        Image { tree: self.tree.clone(), epoch, quota, log }
    }

    /// A commit that the tree holds went to the log as `log`.
    pub(crate) fn logged(&mut self, epoch: Epoch, log: Seq, commit: Bytes, ticks: u64) {
        (self.epoch, self.log) = (epoch, log);
        self.rest.note(log, commit.len(), ticks);
        self.tail.push(epoch, commit);
    }

    /// A commit is found in the log. One that the snapshot holds already is
    /// kept for observers all the same.
    pub(crate) fn replay(
        &mut self,
        epoch: Epoch,
        log: Seq,
        commit: &Commit,
        bytes: Bytes,
    ) -> Result<(), Misfit> {
        if commit.incarnation == self.tree.incarnation() && commit.seq <= self.tree.seq() {
            self.refill(
                Position { incarnation: commit.incarnation, epoch, seq: commit.seq },
                bytes,
            );
            return Ok(());
        }
        self.tree.apply(commit)?;
        self.logged(epoch, log, bytes, 0);
        self.synced = commit.seq;
        Ok(())
    }

    /// Keeps an old commit, if those from it to the snapshot come as well.
    fn refill(&mut self, at: Position, bytes: Bytes) {
        match &mut self.refill {
            Some(tail) if tail.end().next() == at.seq => tail.push(at.epoch, bytes),
            refill => *refill = Some(Tail::new(at)),
        }
        if at.seq == self.tree.seq() {
            self.tail = self.refill.take().unwrap_or_else(|| Tail::new(at));
        }
    }
}
