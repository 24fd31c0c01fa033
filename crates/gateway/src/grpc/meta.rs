//! `tideline.meta.v1.MetaService`: the metadata tree.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tideline_meta::ask::{Expect, Op as MetaOp, Txn};
use tideline_meta::commit::{OpId, Quota, SessionId};
use tideline_meta::follower::Event;
use tideline_meta::tree::Node;
use tideline_meta::{Meta, Observation, Path, Submitted};
use tideline_types::{Position, Seq};
use tideline_wire::meta_v1::meta_service_server::MetaService;
use tideline_wire::{common_v1, meta_v1 as v1};
use tonic::{Request, Status, Streaming};

use super::pipelined::{Pipelined, pipelined};
use super::service::{Answer, Lines};
use crate::Gateway;
use crate::auth::Caller;
use crate::op::Op;
use crate::problem::Problem;

/// The service.
pub(crate) struct Tree {
    pub(super) gateway: Gateway,
}

/// A call of one message.
macro_rules! plain {
    ($self:ident, $request:ident, $op:expr, $run:expr) => {{
        let (metadata, _, message) = $request.into_parts();
        let gateway = &$self.gateway;
        let run = async |caller: Arc<Caller>| {
            gateway.admit($op, &caller, None)?;
            $run(gateway.meta()?, message).await
        };
        gateway.grpc($op, &metadata, run).await
    }};
}

#[tonic::async_trait]
impl MetaService for Tree {
    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Answer<v1::ApplyResponse> {
        plain!(self, request, Op::MetaWrite, async |meta: &Meta, asked: v1::ApplyRequest| {
            Apply::end(meta.submit(txn(asked)?)?).await
        })
    }

    type ApplyStreamStream = Lines<v1::ApplyResponse>;

    async fn apply_stream(
        &self,
        request: Request<Streaming<v1::ApplyRequest>>,
    ) -> Answer<Self::ApplyStreamStream> {
        pipelined::<Apply>(&self.gateway, request).await
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Answer<v1::GetResponse> {
        plain!(self, request, Op::MetaRead, async |meta: &Meta, asked: v1::GetRequest| {
            let found = meta.get(&path(&asked.path)?).await?;
            let (subtree, at) = (found.root.to_string(), Some(found.at.into()));
            Ok(v1::GetResponse { subtree, at, node: found.node.map(node) })
        })
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Answer<v1::ListResponse> {
        plain!(self, request, Op::MetaRead, async |meta: &Meta, asked: v1::ListRequest| {
            let limit = if asked.limit == 0 { usize::MAX } else { asked.limit as usize };
            let after = Some(&*asked.after).filter(|after| !after.is_empty());
            let page = meta.list(&path(&asked.path)?, after, limit).await?;
            let child = |(path, found): (Path, Node)| v1::Child {
                path: path.to_string(),
                node: Some(node(found)),
            };
            Ok(v1::ListResponse {
                subtree: page.root.to_string(),
                at: Some(page.at.into()),
                children: page.children.into_iter().map(child).collect(),
                more: page.more,
            })
        })
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Answer<v1::SyncResponse> {
        plain!(self, request, Op::MetaRead, async |meta: &Meta, asked: v1::SyncRequest| {
            let (root, at) = meta.sync(&path(&asked.path)?).await?;
            Ok(v1::SyncResponse { subtree: root.to_string(), at: Some(at.into()) })
        })
    }

    type ObserveStream = Lines<v1::ObserveResponse>;

    async fn observe(&self, request: Request<v1::ObserveRequest>) -> Answer<Self::ObserveStream> {
        let stopping = {
            let gateway = self.gateway.clone();
            async move { gateway.stopping().await }
        };
        plain!(self, request, Op::MetaObserve, async |meta: &Meta, asked: v1::ObserveRequest| {
            let from = asked.after.map(Position::from);
            let events = events(meta.observe(&path(&asked.path)?, from)?);
            let events: Self::ObserveStream = Box::pin(events.take_until(stopping));
            Ok(events)
        })
    }

    async fn open_session(
        &self,
        request: Request<v1::OpenSessionRequest>,
    ) -> Answer<v1::OpenSessionResponse> {
        plain!(self, request, Op::MetaWrite, async |meta: &Meta, asked: v1::OpenSessionRequest| {
            let op = op_id(&asked.op_id)?;
            let session = meta.begin(&path(&asked.path)?, asked.lease_ms, op).await?;
            Ok(v1::OpenSessionResponse { session: session.0 })
        })
    }

    async fn keep_alive(
        &self,
        request: Request<v1::KeepAliveRequest>,
    ) -> Answer<v1::KeepAliveResponse> {
        plain!(self, request, Op::MetaWrite, async |meta: &Meta, asked: v1::KeepAliveRequest| {
            meta.keep_alive(&path(&asked.path)?, SessionId(asked.session)).await?;
            Ok(v1::KeepAliveResponse {})
        })
    }

    async fn close_session(
        &self,
        request: Request<v1::CloseSessionRequest>,
    ) -> Answer<v1::CloseSessionResponse> {
        plain!(self, request, Op::MetaWrite, async |meta: &Meta, asked: v1::CloseSessionRequest| {
            let written = meta.end(&path(&asked.path)?, SessionId(asked.session)).await?;
            Ok(v1::CloseSessionResponse { seq: written.seq.0 })
        })
    }

    async fn declare_subtree(
        &self,
        request: Request<v1::DeclareSubtreeRequest>,
    ) -> Answer<v1::DeclareSubtreeResponse> {
        let run = async |meta: &Meta, asked: v1::DeclareSubtreeRequest| {
            let default = Quota::default();
            let given = |given, default| if given == 0 { default } else { given };
            let quota = Quota {
                nodes_max: given(asked.nodes_max, default.nodes_max),
                bytes_max: given(asked.bytes_max, default.bytes_max),
            };
            let life = meta.declare(&path(&asked.path)?, quota).await?;
            Ok(v1::DeclareSubtreeResponse { incarnation: life.0 })
        };
        plain!(self, request, Op::MetaDeclare, run)
    }

    async fn drop_subtree(
        &self,
        request: Request<v1::DropSubtreeRequest>,
    ) -> Answer<v1::DropSubtreeResponse> {
        plain!(
            self,
            request,
            Op::MetaDeclare,
            async |meta: &Meta, asked: v1::DropSubtreeRequest| {
                meta.drop_subtree(&path(&asked.path)?).await?;
                Ok(v1::DropSubtreeResponse {})
            }
        )
    }

    async fn list_subtrees(
        &self,
        request: Request<v1::ListSubtreesRequest>,
    ) -> Answer<v1::ListSubtreesResponse> {
        plain!(self, request, Op::MetaRead, async |meta: &Meta, _: v1::ListSubtreesRequest| {
            let subtrees = meta.subtrees().into_iter().map(|subtree| v1::Subtree {
                path: subtree.root.to_string(),
                incarnation: subtree.incarnation.0,
                seq: subtree.seq.0,
                nodes: subtree.nodes,
                bytes: subtree.bytes,
                sessions: subtree.sessions,
                observers: subtree.observers,
            });
            Ok(v1::ListSubtreesResponse { subtrees: subtrees.collect() })
        })
    }
}

/// Transactions, applied in order.
#[derive(Clone, Copy)]
struct Apply;

impl Pipelined for Apply {
    type Request = v1::ApplyRequest;
    type Begun = Submitted;
    type Response = v1::ApplyResponse;
    const OP: Op = Op::MetaWrite;

    async fn begin(gateway: &Gateway, asked: v1::ApplyRequest) -> Result<Submitted, Problem> {
        Ok(gateway.meta()?.submit(txn(asked)?)?)
    }

    async fn end(submitted: Submitted) -> Result<v1::ApplyResponse, Problem> {
        let written = submitted.written().await?;
        let created = written.created.iter().map(Path::to_string).collect();
        Ok(v1::ApplyResponse { seq: written.seq.0, created, error: None })
    }

    fn refused(error: common_v1::Error) -> v1::ApplyResponse {
        v1::ApplyResponse { error: Some(error), ..v1::ApplyResponse::default() }
    }
}

fn txn(asked: v1::ApplyRequest) -> Result<Txn, Problem> {
    let ops = asked.ops.into_iter().map(op_of).collect::<Result<_, _>>()?;
    let session = Some(asked.session).filter(|&id| id > 0).map(SessionId);
    Ok(Txn { ops, session, op: op_id(&asked.op_id)? })
}

/// What an observer is sent, as the caller takes it. Ends with the error, if
/// there is one.
fn events(
    observation: Observation,
) -> impl futures_util::Stream<Item = Result<v1::ObserveResponse, Status>> + Send {
    stream::unfold(Some(observation), async |observation| {
        let mut observation = observation?;
        let event = match observation.next().await {
            Ok(Event::Resync(why)) => v1::observe_response::Event::Resync(why.to_string()),
            Ok(Event::Chunk(bytes)) => v1::observe_response::Event::Chunk(bytes),
            Ok(Event::Frame(bytes)) => v1::observe_response::Event::Frame(bytes),
            Err(refusal) => return Some((Err(Problem::from(refusal).into()), None)),
        };
        Some((Ok(v1::ObserveResponse { event: Some(event) }), Some(observation)))
    })
}

fn path(text: &str) -> Result<Path, Problem> {
    Path::new(text).map_err(|bad| Problem::invalid(format!("path: {bad}")))
}

fn op_id(bytes: &[u8]) -> Result<Option<OpId>, Problem> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes = bytes.try_into().map_err(|_| Problem::invalid("op_id: has 16 bytes, or none"))?;
    Ok(Some(OpId(u128::from_le_bytes(bytes))))
}

fn op_of(op: v1::Op) -> Result<MetaOp, Problem> {
    use v1::op::Op as Given;
    Ok(match op.op.ok_or_else(|| Problem::invalid("ops: one is empty"))? {
        Given::Create(create) => MetaOp::Create {
            path: path(&create.path)?,
            value: create.value,
            ephemeral: create.ephemeral,
            sequential: create.sequential,
        },
        Given::Set(set) => MetaOp::Set {
            path: path(&set.path)?,
            value: set.value,
            modified: set.if_modified.map(Seq),
        },
        Given::Delete(delete) => {
            MetaOp::Delete { path: path(&delete.path)?, modified: delete.if_modified.map(Seq) }
        }
        Given::Check(check) => {
            use v1::check::Expect as How;
            let expect = match check.expect {
                Some(How::Absent(_)) => Expect::Absent,
                Some(How::Present(_)) | None => Expect::Present,
                Some(How::Modified(seq)) => Expect::Modified(Seq(seq)),
                Some(How::Created(seq)) => Expect::Created(Seq(seq)),
            };
            MetaOp::Check { path: path(&check.path)?, expect }
        }
    })
}

fn node(node: Node) -> v1::Node {
    v1::Node {
        value: node.value,
        created: node.created.0,
        modified: node.modified.0,
        session: node.owner.map_or(0, |owner| owner.0),
        children: node.children,
    }
}
