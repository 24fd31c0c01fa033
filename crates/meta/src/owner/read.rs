//! What a partition answers without changing anything, and what it tells of
//! its subtrees to whoever brings them to rest.

use std::sync::Arc;

use tideline_types::limits::{META_LIST_BYTES_MAX, META_LIST_MAX};
use tideline_types::{Incarnation, Position, Seq};

use super::Owner;
use crate::ask::{Answer, Ask, Refusal, Subtree};
use crate::path::Path;
use crate::tree::Node;

/// Which subtrees are to be brought to rest.
#[derive(Clone, Copy, Debug)]
pub struct RestWhen {
    /// From so many bytes of changes on.
    pub bytes: u64,
    /// Or after so many ms.
    pub age_ms: u64,
}

impl RestWhen {
    /// All of them.
    pub(crate) const NOW: Self = Self { bytes: 0, age_ms: 0 };
}

impl<W> Owner<W> {
    /// Reads see what was decided, and wait until it is synced.
    pub(super) fn read(&mut self, root: &Path, ask: Ask) -> Result<(Seq, Answer), Refusal> {
        let lane = self.lane(root)?;
        let answer = match ask {
            Ask::Get(path) => Answer::Node(lane.tree.get(&path).cloned(), lane.position()),
            Ask::List { path, after, limit } => {
                if lane.tree.get(&path).is_none() {
                    return Err(Refusal::NoNode(path));
                }
                let limit = limit.clamp(1, META_LIST_MAX);
                let mut children = lane.tree.children(&path, after.as_ref()).peekable();
                let mut page: Vec<(Path, Node)> = Vec::new();
                let mut room = META_LIST_BYTES_MAX;
                while page.len() < limit
                    && let Some((path, node)) =
                        children.next_if(|(_, node)| node.value.len() <= room)
                {
                    room -= node.value.len();
                    page.push((path.clone(), node.clone()));
                }
                Answer::Children(page, children.peek().is_some(), lane.position())
            }
            Ask::Picture => Answer::Image(Arc::new(lane.image())),
            Ask::Image => {
                let answer = Answer::Image(Arc::new(lane.image()));
                #[cfg(feature = "sabotage")]
                if crate::sabotage::is(crate::sabotage::Broken::RestAheadOfSync) {
                    return Ok((Seq::ZERO, answer));
                }
                answer
            }
            _ => Answer::At(lane.position()),
        };
        Ok((lane.log, answer))
    }

    /// The subtrees there are, each with its life and the last seq that
    /// observers may see.
    pub fn subtrees(&self) -> impl Iterator<Item = (&Path, Incarnation, Seq)> {
        self.lanes.iter().map(|(root, lane)| (root, lane.tree.incarnation(), lane.synced))
    }

    /// The subtrees there are, in figures.
    pub fn describe(&self) -> impl Iterator<Item = Subtree> {
        self.lanes.iter().map(|(root, lane)| Subtree {
            root: root.clone(),
            incarnation: lane.tree.incarnation(),
            seq: lane.synced,
            nodes: lane.tree.count(),
            bytes: lane.tree.bytes(),
            sessions: lane.tree.sessions().count() as u64,
            observers: 0,
            unrested_bytes: lane.rest.bytes,
        })
    }

    /// Where the subtree is, unsynced changes and all.
    pub fn position(&self, root: &Path) -> Option<Position> {
        self.lanes.get(root).map(|lane| lane.position())
    }

    /// Subtrees whose changes are due to be brought to rest, and are not on
    /// their way there.
    pub fn due(&self, when: RestWhen, ticks: u64) -> Vec<Path> {
        let due = |lane: &crate::lane::Lane| {
            let old = ticks.saturating_sub(lane.rest.since) >= when.age_ms;
            let rest = &lane.rest;
            rest.dirty.is_some() && !rest.is_under_way() && (rest.bytes >= when.bytes || old)
        };
        let due = self.lanes.iter().filter(|(_, lane)| due(lane));
        due.map(|(root, _)| root.clone()).collect()
    }

    /// An image of the subtree is about to be asked for, to be brought to
    /// rest. In the same step as the question.
    pub fn resting(&mut self, root: &Path) {
        if let Some(lane) = self.lanes.get_mut(root) {
            lane.rest.begins();
        }
    }

    /// It is at rest, or cannot be.
    pub fn rested(&mut self, root: &Path, life: Incarnation, done: bool, ticks: u64) {
        // One that others follow stays at the place that was kept.
        let lane = self.lanes.get_mut(root).filter(|lane| lane.tree.incarnation() == life);
        if let Some(lane) = lane.filter(|_| self.failed.is_none()) {
            lane.rest.ended(done, ticks);
        }
    }

    /// Every entry up to here is at rest, or need not be. The log may be freed
    /// up to it once the place is itself durable.
    pub fn place(&self) -> Seq {
        let dirty = self.lanes.values().filter_map(|lane| lane.rest.dirty).min();
        dirty.map_or(self.synced, Seq::prev).min(self.synced)
    }

    /// Lets the oldest `count` changes of a subtree go that are kept for
    /// observers.
    pub fn compact(&mut self, root: &Path, count: usize) {
        if let Some(lane) = self.lanes.get_mut(root) {
            let synced = lane.tree.seq().0 - lane.synced.0;
            lane.tail.compact(count, synced as usize);
        }
    }

    /// Whether [`Owner::over`] would tell of any.
    pub fn is_over(&self, place: Seq) -> bool {
        self.over.front().is_some_and(|(log, _)| *log <= place)
    }

    /// The lives that are over, and of which nothing above `place` speaks:
    /// their rows may go.
    pub fn over(&mut self, place: Seq) -> Vec<Incarnation> {
        let mut over = Vec::new();
        while let Some((_, life)) = self.over.pop_front_if(|(log, _)| *log <= place) {
            over.push(life);
        }
        over
    }
}
