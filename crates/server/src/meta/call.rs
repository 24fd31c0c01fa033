//! Calls to `MetaService`, with the token.

use tideline_wire::common_v1;
use tideline_wire::meta_v1 as v1;
use tideline_wire::meta_v1::meta_service_client::MetaServiceClient;
use tideline_wire::queue_v1 as queue;
use tideline_wire::queue_v1::queue_service_client::QueueServiceClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use crate::cli::{Failure, MetaArgs};

/// Bytes of one answer, at most: a page of values is large.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// A running server.
#[derive(Clone)]
pub(super) struct Client {
    tree: MetaServiceClient<Channel>,
    topics: QueueServiceClient<Channel>,
    token: Option<MetadataValue<Ascii>>,
}

impl Client {
    /// Connects with the first call.
    pub(super) fn new(args: &MetaArgs) -> Result<Self, Failure> {
        let bad = |why: String| Failure::Usage(format!("--grpc {}: {why}", args.grpc));
        let endpoint = Endpoint::from_shared(args.grpc.clone()).map_err(|e| bad(e.to_string()))?;
        let bearer = args.token.as_ref().map(|token| format!("Bearer {token}").parse());
        let token =
            bearer.transpose().map_err(|_| Failure::Usage("--token: not a token".into()))?;
        let channel = endpoint.connect_lazy();
        let topics = QueueServiceClient::new(channel.clone());
        let tree = MetaServiceClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        Ok(Self { tree, topics, token })
    }

    /// One call.
    pub(super) async fn call<Q, A>(
        &mut self,
        message: Q,
        run: impl AsyncFnOnce(
            &mut MetaServiceClient<Channel>,
            Request<Q>,
        ) -> Result<Response<A>, Status>,
    ) -> Result<A, Failure> {
        self.try_call(message, run).await.map_err(|status| refused(&status))
    }

    /// One call, for who can do something about a refusal.
    pub(super) async fn try_call<Q, A>(
        &mut self,
        message: Q,
        run: impl AsyncFnOnce(
            &mut MetaServiceClient<Channel>,
            Request<Q>,
        ) -> Result<Response<A>, Status>,
    ) -> Result<A, Status> {
        let request = self.request(message);
        run(&mut self.tree, request).await.map(Response::into_inner)
    }

    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    /// The node at `path`.
    pub(super) async fn node(&mut self, path: &str) -> Result<Option<v1::Node>, Failure> {
        let request = v1::GetRequest { path: path.to_owned() };
        let found = self.call(request, async |tree, request| tree.get(request).await).await?;
        Ok(found.node)
    }

    /// Appends records.
    pub(super) async fn produce(
        &mut self,
        message: queue::ProduceRequest,
    ) -> Result<queue::ProduceResponse, Status> {
        let request = self.request(message);
        self.topics.produce(request).await.map(Response::into_inner)
    }

    /// One operation.
    pub(super) async fn apply(&mut self, op: v1::op::Op) -> Result<v1::ApplyResponse, Failure> {
        self.apply_all(vec![v1::Op { op: Some(op) }]).await
    }

    /// Operations of one subtree, all of them or none.
    pub(super) async fn apply_all(
        &mut self,
        ops: Vec<v1::Op>,
    ) -> Result<v1::ApplyResponse, Failure> {
        let mut op_id = [0; 16];
        getrandom::fill(&mut op_id).map_err(|error| Failure::failed("random bytes", error))?;
        let op_id = bytes::Bytes::copy_from_slice(&op_id);
        let request = v1::ApplyRequest { ops, session: 0, op_id };
        self.call(request, async |tree, request| tree.apply(request).await).await
    }

    /// Declares a subtree.
    pub(super) async fn declare(
        &mut self,
        path: &str,
        nodes_max: u64,
        bytes_max: u64,
    ) -> Result<(), Failure> {
        let request = v1::DeclareSubtreeRequest { path: path.into(), nodes_max, bytes_max };
        self.call(request, async |tree, request| tree.declare_subtree(request).await).await?;
        Ok(())
    }

    /// Follows a subtree from a place on.
    pub(super) async fn observe(
        &mut self,
        path: String,
        after: Option<common_v1::Position>,
    ) -> Result<Streaming<v1::ObserveResponse>, Failure> {
        let request = v1::ObserveRequest { path, after };
        self.call(request, async |tree, request| tree.observe(request).await).await
    }
}

/// What the server said, for people.
pub(super) fn refused(status: &Status) -> Failure {
    let code = status.metadata().get("tideline-code").and_then(|code| code.to_str().ok());
    match code {
        Some(code) => Failure::Failed(format!("the server answered {code}: {}", status.message())),
        None => {
            Failure::Failed(format!("no answer: {} (is a server running there?)", status.message()))
        }
    }
}
