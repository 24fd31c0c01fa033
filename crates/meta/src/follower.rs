//! An observer's own copy of a subtree, and what it tells of it.
//!
//! Takes what a server sends, in order, and holds it to its promise: a frame
//! goes on exactly where the copy is, a snapshot is whole, and neither is older
//! than what was seen before. So the copy at seq s is what a replay up to s
//! comes to, and every difference between two looks is told: a node that was
//! removed and made again while the observer was away is told as gone, then as
//! new, because its identity is the seq that created it.

use std::collections::BTreeSet;

use bytes::Bytes;
use tideline_record::codec::BadBytes;
use tideline_types::{Position, Seq};

use crate::commit::{Change, Commit};
use crate::path::Path;
use crate::snapshot::Rebuild;
use crate::tail::{Frame, Resync};
use crate::tree::{Misfit, Node, Tree};

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A snapshot follows, and why.
    Resync(Resync),
    /// The next chunk of it.
    Chunk(Bytes),
    /// The next commits.
    Frame(Bytes),
}

/// What has changed in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A node that was not there.
    New(Path, Node),
    /// A node's value.
    Set(Path, Node),
    /// A node is gone; as it was.
    Gone(Path, Node),
}

/// What a server must not send. Ask again, of another server if this one says
/// so again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Bytes that are not what they should be.
    #[error("{0}")]
    Bytes(BadBytes),
    /// A frame that does not go on where the copy is.
    #[error("the copy is at {at}, the frame begins after {after}")]
    Gap {
        /// Where the copy is.
        at: Position,
        /// Where the frame begins.
        after: Seq,
    },
    /// A commit that does not fit the copy.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// A snapshot from before what was seen already: the server is behind.
    #[error("the snapshot at {given} is older than {floor}")]
    Older {
        /// Where the snapshot stands.
        given: Position,
        /// What was seen.
        floor: Position,
    },
}

impl From<BadBytes> for Broken {
    fn from(bad: BadBytes) -> Self {
        Self::Bytes(bad)
    }
}

/// An observer's copy.
#[derive(Debug, Default)]
pub struct Follower {
    copy: Option<(Tree, Position)>,
    rebuild: Option<Rebuild>,
    /// The furthest that was ever seen; kept when the copy is not.
    floor: Option<Position>,
}

impl Follower {
    /// One without a copy that has seen up to `floor` in a former life.
    pub fn with_floor(floor: Option<Position>) -> Self {
        Self { floor, ..Self::default() }
    }

    /// Where the copy is; what a server is asked to go on from.
    pub fn position(&self) -> Option<Position> {
        self.copy.as_ref().map(|(_, at)| *at)
    }

    /// The furthest that was ever seen.
    pub fn floor(&self) -> Option<Position> {
        self.floor
    }

    /// The copy; none before the first snapshot is whole.
    pub fn tree(&self) -> Option<&Tree> {
        self.copy.as_ref().map(|(tree, _)| tree)
    }

    /// The connection broke: what was on its way does not come.
    pub fn disconnected(&mut self) {
        self.rebuild = None;
    }

    /// Takes what came; tells what has changed, each commit's changes together
    /// and in order. After an error there is no copy.
    pub fn take(&mut self, event: &Event) -> Result<Vec<Vec<Seen>>, Broken> {
        let told = match event {
            Event::Resync(_) => {
                self.rebuild = None;
                Ok(Vec::new())
            }
            Event::Chunk(bytes) => self.take_chunk(bytes),
            Event::Frame(bytes) => self.take_frame(bytes),
        };
        if told.is_err() {
            (self.copy, self.rebuild) = (None, None);
        }
        told
    }

    fn take_chunk(&mut self, bytes: &Bytes) -> Result<Vec<Vec<Seen>>, Broken> {
        match Rebuild::take(self.rebuild.take(), bytes)? {
            Err(part) => {
                self.rebuild = Some(part);
                Ok(Vec::new())
            }
            Ok((mut tree, given)) => {
                self.raise(given)?;
                tree.forget_done();
                let told = differences(self.tree(), &tree);
                self.copy = Some((tree, given));
                Ok(vec![told])
            }
        }
    }

    fn take_frame(&mut self, bytes: &Bytes) -> Result<Vec<Vec<Seen>>, Broken> {
        let frame = Frame::decode(bytes)?;
        let Some((tree, at)) = &mut self.copy else {
            let at = Position::default();
            return Err(Broken::Gap { at, after: frame.range.after });
        };
        if (frame.incarnation, frame.range.after) != (at.incarnation, at.seq) {
            return Err(Broken::Gap { at: *at, after: frame.range.after });
        }
        let mut told = Vec::with_capacity(frame.commits.len());
        for commit in &frame.commits {
            let before = gone(tree, commit);
            tree.apply(commit)?;
            told.push(seen(tree, commit, before));
        }
        tree.forget_done();
        *at = frame.end();
        self.raise(frame.end())?;
        Ok(told)
    }

    /// Never goes back.
    fn raise(&mut self, given: Position) -> Result<(), Broken> {
        let order = |at: Position| (at.incarnation, at.seq);
        match self.floor {
            Some(floor) if order(given) < order(floor) => Err(Broken::Older { given, floor }),
            _ => {
                self.floor = Some(given);
                Ok(())
            }
        }
    }
}

/// The nodes that `commit` removes, as they were, each once: what it makes in the
/// same place and removes again was never there.
fn gone(tree: &Tree, commit: &Commit) -> Vec<Option<Node>> {
    let mut removed = BTreeSet::new();
    let deleted = commit.changes.iter().map(|change| match change {
        Change::Delete { path } if removed.insert(path) => tree.get(path).cloned(),
        _ => None,
    });
    deleted.collect()
}

/// What `commit` did, change by change. A node that it made and removed again
/// is told of as far as it is known.
fn seen(tree: &Tree, commit: &Commit, before: Vec<Option<Node>>) -> Vec<Seen> {
    let now = |path: &Path| Some((path.clone(), tree.get(path)?.clone()));
    let of = |(change, before): (&Change, Option<Node>)| match change {
        Change::Create { path, .. } => now(path).map(|(path, node)| Seen::New(path, node)),
        Change::Set { path, .. } => now(path).map(|(path, node)| Seen::Set(path, node)),
        Change::Delete { path } => before.map(|node| Seen::Gone(path.clone(), node)),
        _ => None,
    };
    commit.changes.iter().zip(before).filter_map(of).collect()
}

/// What lies between two copies: what is gone, children first, then what is
/// new or set, parents first.
fn differences(before: Option<&Tree>, after: &Tree) -> Vec<Seen> {
    let same_life = before.is_some_and(|before| before.incarnation() == after.incarnation());
    let same = |one: &Node, other: &Node| same_life && one.created == other.created;
    let mut told = Vec::new();
    for (path, node) in before.into_iter().flat_map(Tree::nodes) {
        let stays = after.get(path).is_some_and(|now| path.is_root() || same(node, now));
        if !stays {
            told.push(Seen::Gone(path.clone(), node.clone()));
        }
    }
    told.reverse();
    for (path, node) in after.nodes() {
        match before.and_then(|before| before.get(path)) {
            Some(was) if path.is_root() || same(was, node) => {
                if was.modified != node.modified || was.value != node.value {
                    told.push(Seen::Set(path.clone(), node.clone()));
                }
            }
            _ if path.is_root() && before.is_none() && node.value.is_empty() => {}
            _ => told.push(Seen::New(path.clone(), node.clone())),
        }
    }
    told
}

#[cfg(test)]
mod tests;
