//! Who owns a partition: a lease in the tree, fenced by the log's epoch.
//!
//! ```text
//!  begin a session ─▶ create `owner`, ephemeral ─▶ fence the log ─▶ serve
//!                       token = its create seq       epoch
//! ```
//!
//! The lease says who may try; the log says who has. A holder that was stopped
//! (or whose machine was) may believe for a while that it holds what another
//! has taken over, so it is the fence that makes this safe: from then on the
//! log refuses whatever the former owner appends, and it acknowledges nothing
//! that is not synced. A holder asks [`Ownership::is_sure`] before it *begins*
//! something, and looks at the log's epoch before it answers a read.

use bytes::Bytes;
use tideline_types::{Epoch, Seq};

use crate::ask::{Op, Refusal, Txn};
use crate::commit::SessionId;
use crate::handle::Meta;
use crate::path::Path;

/// A lease on something, as its holder sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    node: Path,
    session: SessionId,
    token: Seq,
    lease_ms: u32,
    /// The ticks until which nobody else can have it.
    sure_until: u64,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It is ours. Fence the log next.
    Ours(Ownership),
    /// Another has it; observe the subtree until the node is gone.
    Held {
        /// The holder's token.
        token: Seq,
        /// What the holder wrote.
        value: Bytes,
    },
}

impl Ownership {
    /// Tries to become the owner that `node` stands for. `ticks` is a monotone
    /// clock, read before the session's last renewal was sent.
    pub async fn acquire(
        meta: &Meta,
        node: &Path,
        session: SessionId,
        lease_ms: u32,
        ticks: u64,
    ) -> Result<Acquired, Refusal> {
        let create = Op::Create {
            path: node.clone(),
            value: Bytes::new(),
            ephemeral: true,
            sequential: false,
        };
        let txn = Txn { ops: vec![create], session: Some(session), op: None };
        match meta.apply(txn).await {
            Ok(written) => Ok(Acquired::Ours(Self {
                node: node.clone(),
                session,
                token: written.seq,
                lease_ms,
                sure_until: ticks + u64::from(lease_ms),
            })),
            Err(Refusal::Exists(_)) => match meta.get(node).await?.node {
                Some(held) => Ok(Acquired::Held { token: held.created, value: held.value }),
                None => Err(Refusal::Overloaded("the holder has just gone; try again")),
            },
            Err(refusal) => Err(refusal),
        }
    }

    /// Grows from each owner to the next: a store that remembers the greatest
    /// it has seen refuses all older ones.
    pub fn token(&self) -> Seq {
        self.token
    }

    /// Says under which epoch of its log this owner serves. Refused if the
    /// lease is no longer this owner's.
    pub async fn publish(&self, meta: &Meta, epoch: Epoch) -> Result<(), Refusal> {
        let held =
            Op::Check { path: self.node.clone(), expect: crate::ask::Expect::Created(self.token) };
        let value = Bytes::from(epoch.0.to_string());
        let set = Op::Set { path: self.node.clone(), value, modified: None };
        let txn = Txn { ops: vec![held, set], session: Some(self.session), op: None };
        meta.apply(txn).await.map(|_| ())
    }

    /// The session was renewed; `ticks` was read before the call was sent.
    pub fn renewed(&mut self, ticks: u64) {
        self.sure_until = self.sure_until.max(ticks + u64::from(self.lease_ms));
    }

    /// Whether nobody else can have the lease at `ticks`. Says nothing of
    /// later: only the log's fence does.
    pub fn is_sure(&self, ticks: u64) -> bool {
        ticks < self.sure_until
    }
}
