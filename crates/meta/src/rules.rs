//! What the owner of a subtree decides: each call becomes a commit, or is
//! refused and changes nothing.
//!
//! A decision changes the tree by the same code that applies commits, so a
//! replay of what was decided ends in the same tree. Limits that never move
//! act first, then the session, then each operation in order.

use tideline_types::limits::{
    META_CHILDREN_MAX, META_CLOSE_NODES, META_LEASE_MS_MAX, META_LEASE_MS_MIN, META_SESSIONS_MAX,
    META_TXN_BYTES_MAX, META_TXN_OPS_MAX, META_VALUE_BYTES_MAX,
};

use crate::ask::{Expect, Op, Refusal, Txn};
use crate::commit::{Change, Commit, OpId, Quota, SessionId};
use crate::done::Written;
use crate::path::Path;
use crate::tree::{Node, Tree, Undo};

/// What a call comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This is logged; the tree holds it already.
    Log(Commit),
    /// It was done before, or there is nothing to do: nothing is logged.
    Before(Written),
}

/// Decides a transaction.
pub fn transact(tree: &mut Tree, quota: &Quota, txn: &Txn) -> Result<Decision, Refusal> {
    if let Some(written) = txn.op.and_then(|op| tree.done.find(op)) {
        return Ok(Decision::Before(written.clone()));
    }
    check_size(txn)?;
    if let Some(id) = txn.session {
        live(tree, id)?;
    }
    let seq = tree.seq().next();
    let (mut changes, mut undo) = (Vec::with_capacity(txn.ops.len()), Undo::new());
    for op in &txn.ops {
        match decide(tree, txn.session, op) {
            Ok(None) => {}
            Ok(Some(change)) => {
                let changed = tree.change(seq, &change, &mut undo);
                changed.expect("a decision fits the tree it was made on");
                changes.push(change);
            }
            Err(refusal) => {
                tree.undo(undo);
                return Err(refusal);
            }
        }
    }
    if let Err(refusal) = within(tree, quota, &changes) {
        tree.undo(undo);
        return Err(refusal);
    }
    if changes.is_empty() {
        return Ok(Decision::Before(Written { seq: tree.seq(), created: Vec::new() }));
    }
    Ok(Decision::Log(finish(tree, txn.op, changes)))
}

/// Decides that a session begins. Its id is the commit's seq.
pub fn begin(tree: &mut Tree, lease_ms: u32, op: Option<OpId>) -> Result<Decision, Refusal> {
    if let Some(written) = op.and_then(|op| tree.done.find(op)) {
        return Ok(Decision::Before(written.clone()));
    }
    let given = u64::from(lease_ms);
    if !(META_LEASE_MS_MIN..=META_LEASE_MS_MAX).contains(&lease_ms) {
        return Err(Refusal::Limit { what: "ms of a lease", given, max: META_LEASE_MS_MAX.into() });
    }
    let (given, max) = (tree.sessions().count() as u64 + 1, META_SESSIONS_MAX as u64);
    if given > max {
        return Err(Refusal::Quota { what: "sessions", given, max });
    }
    step(tree, op, vec![Change::Begin { lease_ms }])
}

/// Decides the next step of a session's end: up to 500 of its nodes go, and
/// with the last of them the session. Nothing is left to do where it is gone,
/// so that an expiry may be proposed any number of times.
pub fn end(tree: &mut Tree, id: SessionId) -> Result<Decision, Refusal> {
    let Some(session) = tree.session(id) else {
        return Ok(Decision::Before(Written { seq: tree.seq(), created: Vec::new() }));
    };
    let going = session.nodes.iter().take(META_CLOSE_NODES);
    let mut changes: Vec<Change> =
        going.map(|path| Change::Delete { path: path.clone() }).collect();
    let all = changes.len() == session.nodes.len();
    #[cfg(feature = "sabotage")]
    if crate::sabotage::is(crate::sabotage::Broken::EphemeralOutlives) {
        changes.pop();
        tree.disown(id);
    }
    match (all, tree.session(id).is_some_and(|session| session.ending)) {
        (true, _) => changes.push(Change::End { session: id }),
        (false, false) => changes.insert(0, Change::Ending { session: id }),
        (false, true) => {}
    }
    step(tree, None, changes)
}

/// The session, if it may still write.
pub fn live(tree: &Tree, id: SessionId) -> Result<u32, Refusal> {
    match tree.session(id) {
        Some(session) if !session.ending => Ok(session.lease_ms),
        _ => Err(Refusal::Expired(id)),
    }
}

fn step(tree: &mut Tree, op: Option<OpId>, changes: Vec<Change>) -> Result<Decision, Refusal> {
    let seq = tree.seq().next();
    for change in &changes {
        let changed = tree.change(seq, change, &mut Undo::new());
        changed.expect("a decision fits the tree it was made on");
    }
    Ok(Decision::Log(finish(tree, op, changes)))
}

fn finish(tree: &mut Tree, op: Option<OpId>, changes: Vec<Change>) -> Commit {
    let commit = Commit { incarnation: tree.incarnation(), seq: tree.seq().next(), op, changes };
    tree.finish(&commit);
    commit
}

fn check_size(txn: &Txn) -> Result<(), Refusal> {
    let within = |what, given: usize, max: usize| match given > max {
        true => Err(Refusal::Limit { what, given: given as u64, max: max as u64 }),
        false => Ok(()),
    };
    within("operations of a transaction", txn.ops.len(), META_TXN_OPS_MAX)?;
    let mut bytes = 0;
    for op in &txn.ops {
        let value = match op {
            Op::Create { value, .. } | Op::Set { value, .. } => value.len(),
            Op::Delete { .. } | Op::Check { .. } => 0,
        };
        within("bytes of a value", value, META_VALUE_BYTES_MAX)?;
        bytes += value + op.path().as_str().len();
    }
    within("bytes of a transaction", bytes, META_TXN_BYTES_MAX)
}

/// What one operation comes to, on the tree as those before it left it.
fn decide(tree: &Tree, session: Option<SessionId>, op: &Op) -> Result<Option<Change>, Refusal> {
    match op {
        Op::Create { path, value, ephemeral, sequential } => {
            let owner = match (ephemeral, session) {
                (true, None) => return Err(Refusal::NoSession),
                (true, session) => session,
                (false, _) => None,
            };
            let (path, counter) = create_at(tree, path, *sequential)?;
            Ok(Some(Change::Create { path, value: value.clone(), owner, counter }))
        }
        Op::Set { path, value, modified } => {
            expect(tree, path, modified.map_or(Expect::Present, Expect::Modified))?;
            Ok(Some(Change::Set { path: path.clone(), value: value.clone() }))
        }
        Op::Delete { path, modified } => {
            if path.is_root() {
                return Err(Refusal::Root);
            }
            expect(tree, path, modified.map_or(Expect::Present, Expect::Modified))?;
            if node(tree, path)?.children > 0 {
                return Err(Refusal::NotEmpty(path.clone()));
            }
            Ok(Some(Change::Delete { path: path.clone() }))
        }
        Op::Check { path, expect: how } => expect(tree, path, *how).map(|()| None),
    }
}

/// Where a node is made, and what becomes of its parent's counter.
fn create_at(tree: &Tree, path: &Path, sequential: bool) -> Result<(Path, Option<u64>), Refusal> {
    let parent = path.parent().ok_or(Refusal::Root)?;
    let above = node(tree, &parent)?;
    if above.owner.is_some() {
        return Err(Refusal::Ephemeral(parent));
    }
    if above.children >= META_CHILDREN_MAX {
        let (given, max) = (u64::from(above.children) + 1, u64::from(META_CHILDREN_MAX));
        return Err(Refusal::Quota { what: "children of a node", given, max });
    }
    let (path, counter) = match sequential {
        // One that comes with its number, as in a copy of another tree: no
        // later number repeats it, or sorts before it.
        false => (path.clone(), number(path.name()).map(|n| above.counter.max(n + 1))),
        true => {
            let name = format!("{}{:010}", path.name(), above.counter);
            (parent.child(&name)?, Some(above.counter + 1))
        }
    };
    match tree.get(&path) {
        Some(_) => Err(Refusal::Exists(path)),
        None => Ok((path, counter)),
    }
}

/// The ten digits that a sequential name ends in.
fn number(name: &str) -> Option<u64> {
    let digits = name.len().checked_sub(SEQUENCE_DIGITS)?;
    let digits = name.get(digits..)?;
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().expect("ten digits are a number"))
}

/// Digits of a sequential name.
const SEQUENCE_DIGITS: usize = 10;

fn expect(tree: &Tree, path: &Path, expect: Expect) -> Result<(), Refusal> {
    let found = tree.get(path);
    let conflict = |node: &Node| Refusal::Conflict { path: path.clone(), modified: node.modified };
    match (expect, found) {
        (Expect::Absent, None) => Ok(()),
        (Expect::Absent, Some(_)) => Err(Refusal::Exists(path.clone())),
        (_, None) => Err(Refusal::NoNode(path.clone())),
        (Expect::Present, Some(_)) => Ok(()),
        (Expect::Modified(seq), Some(node)) if node.modified != seq => Err(conflict(node)),
        (Expect::Created(seq), Some(node)) if node.created != seq => Err(conflict(node)),
        (Expect::Modified(_) | Expect::Created(_), Some(_)) => Ok(()),
    }
}

fn node<'a>(tree: &'a Tree, path: &Path) -> Result<&'a Node, Refusal> {
    tree.get(path).ok_or_else(|| Refusal::NoNode(path.clone()))
}

/// Whether the subtree may be as it has become. What only removes always may.
fn within(tree: &Tree, quota: &Quota, changes: &[Change]) -> Result<(), Refusal> {
    let removes = |change: &Change| matches!(change, Change::Delete { .. });
    if changes.iter().all(removes) {
        return Ok(());
    }
    let over = |what, given, max| match given > max {
        true => Err(Refusal::Quota { what, given, max }),
        false => Ok(()),
    };
    over("nodes", tree.count(), quota.nodes_max)?;
    over("bytes", tree.bytes(), quota.bytes_max)
}

#[cfg(test)]
pub(crate) mod tests;
