//! One subtree in memory: its nodes, its sessions, the writes it remembers.
//!
//! Always: every node's parent is there; `created <= modified <= seq`; a
//! session's nodes are exactly those that it owns; what a node counts is in
//! `bytes`. A commit is applied when its number is the next, by the same code
//! for the owner, for a replay and for an observer. Nothing here knows a
//! limit, a clock or a rule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use tideline_types::limits::META_NODE_BYTES;
use tideline_types::{Incarnation, Seq};

use crate::commit::{Change, Commit, SessionId};
use crate::done::{Done, Written};
use crate::path::Path;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it holds.
    pub value: Bytes,
    /// The seq that created it: its identity. Another node under the same
    /// path has another.
    pub created: Seq,
    /// The seq that last wrote it. Never used again for this path.
    pub modified: Seq,
    /// The session with which it goes.
    pub owner: Option<SessionId>,
    /// How many children it has.
    pub children: u32,
    /// The number that the next sequential child gets.
    pub counter: u64,
}

/// A session of a subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// How long its lease lasts.
    pub lease_ms: u32,
    /// It has ended, and its nodes are going.
    pub ending: bool,
    /// The ephemeral nodes that it owns.
    pub nodes: BTreeSet<Path>,
}

/// A commit that does not fit the subtree it is applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Not the next one.
    #[error("commit {given}, {expected} is next")]
    Gap {
        /// Its number.
        given: Seq,
        /// The next number.
        expected: Seq,
    },
    /// Of another life of the subtree.
    #[error("a commit of incarnation {given}, the subtree is {held}")]
    Incarnation {
        /// The commit's.
        given: Incarnation,
        /// The subtree's.
        held: Incarnation,
    },
    /// It speaks of a node or a session that is not as it says.
    #[error("commit {seq}: {what}")]
    State {
        /// Its number.
        seq: Seq,
        /// What is wrong.
        what: &'static str,
    },
}

/// A subtree. Clones share their nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    incarnation: Incarnation,
    seq: Seq,
    bytes: u64,
    nodes: BTreeMap<Path, Arc<Node>>,
    sessions: BTreeMap<SessionId, Session>,
    pub(crate) done: Done,
}

impl Tree {
    /// An empty one: its root alone, created at 0.
    pub fn new(incarnation: Incarnation) -> Self {
        let root = Node {
            value: Bytes::new(),
            created: Seq::ZERO,
            modified: Seq::ZERO,
            owner: None,
            children: 0,
            counter: 0,
        };
        let nodes = BTreeMap::from([(Path::root(), Arc::new(root))]);
        let (sessions, done) = (BTreeMap::new(), Done::default());
        Self { incarnation, seq: Seq::ZERO, bytes: 0, nodes, sessions, done }
    }

    /// Which life of the subtree.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The last commit applied.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Nodes, the root not counted.
    pub fn count(&self) -> u64 {
        self.nodes.len() as u64 - 1
    }

    /// What the nodes count against a quota.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The node at `path`.
    pub fn get(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path).map(|node| &**node)
    }

    /// All nodes, each before what is below it.
    pub fn nodes(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.nodes.iter().map(|(path, node)| (path, &**node))
    }

    /// The children of `path` in order, from the one after `after` on.
    pub fn children<'a>(
        &'a self,
        path: &Path,
        after: Option<&Path>,
    ) -> impl Iterator<Item = (&'a Path, &'a Node)> + use<'a> {
        let end = path.past();
        // Exclusive, so that it may stand for "right after all below".
        let mut after = after.map_or_else(|| path.clone(), Path::past);
        std::iter::from_fn(move || {
            use std::ops::Bound::Excluded;
            if after >= end {
                return None;
            }
            let (child, node) =
                self.nodes.range((Excluded(after.clone()), Excluded(end.clone()))).next()?;
            after = child.past();
            Some((child, &**node))
        })
    }

    /// The session of that id, if it has not ended.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    /// Applies the next commit. After an error the tree is of no more use.
    pub fn apply(&mut self, commit: &Commit) -> Result<(), Misfit> {
        if commit.incarnation != self.incarnation {
            let (given, held) = (commit.incarnation, self.incarnation);
            return Err(Misfit::Incarnation { given, held });
        }
        let (given, expected) = (commit.seq, self.seq.next());
        if given != expected {
            return Err(Misfit::Gap { given, expected });
        }
        for change in &commit.changes {
            let changed = self.change(given, change, &mut Vec::new());
            changed.map_err(|what| Misfit::State { seq: given, what })?;
        }
        self.finish(commit);
        Ok(())
    }

    /// All changes of `commit` are in: it is the last applied from now on.
    pub(crate) fn finish(&mut self, commit: &Commit) {
        self.seq = commit.seq;
        if let Some(op) = commit.op {
            self.done.remember(op, written(commit));
        }
    }

    /// One change at `seq`; what it replaces goes to `undo`.
    pub(crate) fn change(
        &mut self,
        seq: Seq,
        change: &Change,
        undo: &mut Undo,
    ) -> Result<(), &'static str> {
        match change {
            Change::Create { path, value, owner, counter } => {
                if self.nodes.contains_key(path) {
                    return Err("creates a node that is there");
                }
                let parent = path.parent().ok_or("creates the root")?;
                let mut above = self.nodes.get(&parent).cloned().ok_or("creates an orphan")?;
                if owner.is_some_and(|owner| !self.sessions.contains_key(&owner)) {
                    return Err("creates a node of no session");
                }
                let of_parent = Arc::make_mut(&mut above);
                of_parent.children += 1;
                of_parent.counter = counter.unwrap_or(of_parent.counter);
                self.put(parent, Some(above), undo);
                let node = Node {
                    value: value.clone(),
                    created: seq,
                    modified: seq,
                    owner: *owner,
                    children: 0,
                    counter: 0,
                };
                self.put(path.clone(), Some(Arc::new(node)), undo);
            }
            Change::Set { path, value } => {
                let mut node = self.nodes.get(path).cloned().ok_or("sets a node that is not")?;
                let set = Arc::make_mut(&mut node);
                set.value = value.clone();
                set.modified = seq;
                self.put(path.clone(), Some(node), undo);
            }
            Change::Delete { path } => {
                let node = self.nodes.get(path).ok_or("deletes a node that is not")?;
                if node.children > 0 {
                    return Err("deletes a node with children");
                }
                let parent = path.parent().ok_or("deletes the root")?;
                let mut above = self.nodes.get(&parent).cloned().ok_or("deletes an orphan")?;
                Arc::make_mut(&mut above).children -= 1;
                self.put(parent, Some(above), undo);
                self.put(path.clone(), None, undo);
            }
            Change::Begin { lease_ms } => {
                let begun = Session { lease_ms: *lease_ms, ending: false, nodes: BTreeSet::new() };
                self.sessions.insert(SessionId(seq.0), begun);
            }
            Change::Ending { session } => {
                self.sessions.get_mut(session).ok_or("ends a session that is not")?.ending = true;
            }
            Change::End { session } => match self.sessions.remove(session) {
                Some(ended) if ended.nodes.is_empty() => {}
                Some(_) => return Err("ends a session that still has nodes"),
                None => return Err("ends a session that is not"),
            },
        }
        Ok(())
    }

    /// Takes back what was done since `undo` was empty. Only for changes of
    /// nodes.
    pub(crate) fn undo(&mut self, mut undo: Undo) {
        while let Some((path, before)) = undo.pop() {
            self.put(path, before, &mut Vec::new());
        }
    }

    /// Puts a node in its place, or takes it away, with all that counts it.
    fn put(&mut self, path: Path, node: Option<Arc<Node>>, undo: &mut Undo) {
        let owner = node.as_ref().and_then(|node| node.owner);
        self.bytes += node.as_ref().map_or(0, |node| weight(&path, node));
        let before = match node {
            Some(node) => self.nodes.insert(path.clone(), node),
            None => self.nodes.remove(&path),
        };
        self.bytes -= before.as_ref().map_or(0, |node| weight(&path, node));
        let owned_before = before.as_ref().and_then(|node| node.owner);
        if owned_before != owner {
            if let Some(session) = owned_before.and_then(|id| self.sessions.get_mut(&id)) {
                session.nodes.remove(&path);
            }
            if let Some(session) = owner.and_then(|id| self.sessions.get_mut(&id)) {
                session.nodes.insert(path.clone());
            }
        }
        undo.push((path, before));
    }

    /// Puts back a node of a snapshot: parents come first.
    pub(crate) fn restore(&mut self, path: Path, node: Node) -> Result<(), &'static str> {
        if node.created > node.modified || node.modified > self.seq || node.children != 0 {
            return Err("a node from beyond the snapshot");
        }
        if let Some(parent) = path.parent() {
            if self.nodes.contains_key(&path) {
                return Err("a node twice");
            }
            let above = self.nodes.get_mut(&parent).ok_or("a node without its parent")?;
            Arc::make_mut(above).children += 1;
        }
        if node.owner.is_some_and(|owner| !self.sessions.contains_key(&owner)) {
            return Err("a node of no session");
        }
        self.put(path, Some(Arc::new(node)), &mut Vec::new());
        Ok(())
    }

    /// Puts back a session of a snapshot, before its nodes.
    pub(crate) fn restore_session(&mut self, id: SessionId, lease_ms: u32, ending: bool) {
        self.sessions.insert(id, Session { lease_ms, ending, nodes: BTreeSet::new() });
    }

    /// Where a snapshot was taken.
    pub(crate) fn restore_at(incarnation: Incarnation, seq: Seq) -> Self {
        Self { seq, ..Self::new(incarnation) }
    }

    /// Without the writes it remembers, which no observer needs.
    pub(crate) fn forget_done(&mut self) {
        self.done = Done::default();
    }

    #[cfg(feature = "sabotage")]
    pub(crate) fn disown(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.nodes.clear();
        }
    }
}

/// What was there before, in order.
pub(crate) type Undo = Vec<(Path, Option<Arc<Node>>)>;

/// What `node` counts; the root's path and itself are free.
fn weight(path: &Path, node: &Node) -> u64 {
    let itself = if path.is_root() { 0 } else { META_NODE_BYTES };
    itself + path.as_str().len() as u64 + node.value.len() as u64
}

/// What the asker of `commit` is told.
pub(crate) fn written(commit: &Commit) -> Written {
    let created = commit.changes.iter().filter_map(|change| match change {
        Change::Create { path, .. } => Some(path.clone()),
        _ => None,
    });
    Written { seq: commit.seq, created: created.collect() }
}
