//! What lies above subtrees: nodes without values, and declarations.
//!
//! It is a subtree like every other, at `/`, with a life that is always 1. A
//! node whose value is empty is a mere place; one with a value declares a
//! subtree, whose life is one more than the seq that created the node, so that
//! what is dropped and declared again is another.

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Reader, put_varint};
use tideline_types::Incarnation;
use tideline_types::limits::{META_BYTES_MAX, META_NODES_MAX, META_SUBTREES_MAX};

use crate::ask::{Op, Refusal, Txn};
use crate::commit::Quota;
use crate::path::Path;
use crate::tree::{Node, Tree};

/// The life of what lies above subtrees.
pub const LIFE: Incarnation = Incarnation(1);

/// What it may hold: as many places as subtrees, and these.
pub const QUOTA: Quota =
    Quota { nodes_max: 2 * META_SUBTREES_MAX, bytes_max: 2 * META_SUBTREES_MAX * 512 };

const VERSION: u8 = 1;

/// The value of a node that declares a subtree.
pub fn declaration(quota: Quota) -> Bytes {
    let mut out = vec![VERSION];
    put_varint(&mut out, quota.nodes_max);
    put_varint(&mut out, quota.bytes_max);
    out.into()
}

/// The life and the quota of the subtree that `node` declares; `None` of a
/// mere place.
pub fn declared(node: &Node) -> Result<Option<(Incarnation, Quota)>, BadBytes> {
    if node.value.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(&node.value);
    if reader.u8()? != VERSION {
        return Err(BadBytes("a declaration of another version"));
    }
    let quota = Quota { nodes_max: reader.varint()?, bytes_max: reader.varint()? };
    let life = Incarnation(node.created.0 + 1);
    if reader.is_empty() { Ok(Some((life, quota))) } else { Err(BadBytes("too long")) }
}

/// Whether a quota is within what any subtree may have.
pub fn check_quota(quota: &Quota) -> Result<(), Refusal> {
    let within = |what, given, max| match given > max {
        true => Err(Refusal::Limit { what, given, max }),
        false => Ok(()),
    };
    within("nodes of a subtree", quota.nodes_max, META_NODES_MAX)?;
    within("bytes of a subtree", quota.bytes_max, META_BYTES_MAX)
}

/// Callers create and remove places, and nothing else.
pub(crate) fn admit(tree: &Tree, txn: &Txn) -> Result<(), Refusal> {
    let declares = |path: &Path| tree.get(path).is_some_and(|node| !node.value.is_empty());
    for op in &txn.ops {
        match op {
            Op::Check { .. } => {}
            Op::Delete { path, .. } if declares(path) => {
                return Err(Refusal::Subtree(path.clone()));
            }
            Op::Delete { .. } => {}
            Op::Create { path, value, ephemeral: false, sequential: false } if value.is_empty() => {
                // A declaration that comes between a caller's look and its call.
                if let Some(parent) = path.parent().filter(|parent| declares(parent)) {
                    return Err(Refusal::Subtree(parent));
                }
            }
            Op::Create { path, .. } | Op::Set { path, .. } => {
                return Err(Refusal::Valueless(path.clone()));
            }
        }
    }
    Ok(())
}
