//! What the log says of each subtree, entry by entry, and what must follow.
//!
//! Knows the rules of nothing: it reads what is durable, and holds answers and
//! copies to it. An answer says at which seq it was true; it must have been,
//! and that seq must be no lower than any that was answered before the call.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_meta::Path;
use tideline_meta::Written;
use tideline_meta::commit::{Change, Commit, Entry, OpId, SessionId};
use tideline_meta::tree::{Node, Tree};
use tideline_types::{Position, Seq};

/// One subtree.
#[derive(Default)]
struct Lane {
    /// As it was at each seq.
    past: Vec<Tree>,
    /// What each operation id came to.
    done: BTreeMap<OpId, Written>,
    /// When each session was last known to be renewed, and for how long.
    renewed: BTreeMap<SessionId, (u64, u64)>,
    /// Sessions that a client asked to end.
    ended: Vec<SessionId>,
    /// The highest seq that was answered.
    answered: Seq,
}

/// All of them.
#[derive(Default)]
pub(super) struct Oracle {
    lanes: BTreeMap<Path, Lane>,
    /// The last entry of the log that was read.
    pub(super) end: Seq,
}

impl Oracle {
    /// The next entry of the log is durable, at `time`.
    pub(super) fn entry(&mut self, log: Seq, key: &[u8], value: &Bytes, time: u64) {
        assert_eq!(log, self.end.next(), "the log has a gap");
        self.end = log;
        let root = Path::new(std::str::from_utf8(key).unwrap()).unwrap();
        match Entry::decode(value).unwrap() {
            Entry::Open { incarnation, .. } => {
                let lane = Lane { past: vec![Tree::new(incarnation)], ..Lane::default() };
                self.lanes.insert(root, lane);
            }
            Entry::Shut { .. } => _ = self.lanes.remove(&root),
            Entry::Commit(commit) => self.lane(&root).commit(&root, &commit, time),
        }
    }

    fn lane(&mut self, root: &Path) -> &mut Lane {
        self.lanes.get_mut(root).expect("a subtree that was opened")
    }

    /// The subtree as it is, as far as it is durable.
    pub(super) fn now(&self, root: &Path) -> &Tree {
        self.lanes[root].past.last().unwrap()
    }

    /// The subtree as it was.
    pub(super) fn at(&self, root: &Path, seq: Seq) -> &Tree {
        let past = &self.lanes[root].past;
        past.get(seq.0 as usize).unwrap_or_else(|| panic!("{root} never was at {seq}"))
    }

    /// What every later call must have seen.
    pub(super) fn answered(&self, root: &Path) -> Seq {
        self.lanes[root].answered
    }

    /// A client is told where the subtree was; it called when `floor` had been
    /// answered.
    pub(super) fn told(&mut self, root: &Path, at: Position, floor: Seq) {
        assert!(at.seq >= floor, "{root}: told {} after {floor} had been answered", at.seq);
        assert!(at.seq <= self.now(root).seq(), "{root}: told {}, which is not durable", at.seq);
        let lane = self.lane(root);
        lane.answered = lane.answered.max(at.seq);
    }

    /// A client is told what a node was.
    pub(super) fn node(&mut self, root: &Path, path: &Path, node: Option<&Node>, at: Position) {
        let was = self.at(root, at.seq).get(path);
        assert_eq!(node, was, "{root}{path} at {}", at.seq);
    }

    /// A client is told what its write came to.
    pub(super) fn written(&mut self, root: &Path, op: Option<OpId>, written: &Written) {
        let now = self.now(root).seq();
        assert!(written.seq <= now, "{root}: {} is acknowledged and not durable", written.seq);
        let lane = self.lane(root);
        // What changed nothing is in no log.
        if let Some(done) = op.and_then(|op| lane.done.get(&op)) {
            assert_eq!(done, written, "{root}: a retry was told something else");
        }
        lane.answered = lane.answered.max(written.seq);
    }

    /// A session was renewed no earlier than `time`.
    pub(super) fn renewed(&mut self, root: &Path, id: SessionId, time: u64, lease_ms: u32) {
        let entry = self.lane(root).renewed.entry(id).or_default();
        *entry = (entry.0.max(time), lease_ms.into());
    }

    /// A client asks that a session ends.
    pub(super) fn asked_to_end(&mut self, root: &Path, id: SessionId) {
        self.lane(root).ended.push(id);
    }

    /// A client is told that its session has ended.
    pub(super) fn expired(&self, root: &Path, id: SessionId) {
        let held = self.now(root).session(id);
        assert!(held.is_none_or(|held| held.ending), "{root}: session {} goes on", id.0);
    }
}

impl Lane {
    fn commit(&mut self, root: &Path, commit: &Commit, time: u64) {
        let mut tree = self.past.last().unwrap().clone();
        tree.apply(commit).unwrap_or_else(|misfit| panic!("{root}: {misfit}"));
        for (path, node) in tree.nodes() {
            let owner = node.owner.map(|owner| tree.session(owner).is_some());
            assert_ne!(owner, Some(false), "{root}{path} outlives its session");
        }
        let mut created = Vec::new();
        for change in &commit.changes {
            match change {
                Change::Create { path, .. } => created.push(path.clone()),
                Change::Begin { lease_ms } => {
                    let renewed = (0, u64::from(*lease_ms));
                    self.renewed.insert(SessionId(commit.seq.0), renewed);
                }
                Change::Ending { session } | Change::End { session } => {
                    let (renewed, lease_ms) = self.renewed[session];
                    let early = !self.ended.contains(session) && time < renewed + lease_ms;
                    assert!(!early, "{root}: session {} ends before its lease", session.0);
                }
                _ => {}
            }
        }
        if let Some(op) = commit.op {
            let written = Written { seq: commit.seq, created };
            let before = self.done.insert(op, written);
            assert!(before.is_none(), "{root}: operation {} is done twice", op.0);
        }
        self.past.push(tree);
    }
}
