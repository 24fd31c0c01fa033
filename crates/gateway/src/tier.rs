//! The face of a tier: what keys have, over gRPC and HTTP, and its hot keys as a topic.
//!
//! A process of its own serves it, beside none of the other faces. Calls are few
//! and short but for `Snapshot` and `Subscribe`, which hold nothing but a
//! place: what a reader does not take is not held for it.

mod answers;
mod hot;
mod http;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tideline_tier::Tier;
use tideline_types::PartitionId;
use tideline_wire::Code;
use tideline_wire::queue_v1::queue_service_server::QueueServiceServer;
use tideline_wire::tier_v1::tier_service_server::TierServiceServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::metadata::MetadataMap;
use tonic::service::Routes;

use crate::ServeError;
use crate::options::ServerOptions;
use crate::problem::Problem;
use crate::serve::accept;

/// A tier's address, bound and not yet answering.
pub struct BoundTier {
    listener: TcpListener,
    address: SocketAddr,
    face: Face,
    stopping: watch::Sender<bool>,
}

/// What both services share.
#[derive(Clone)]
struct Face {
    tier: Tier,
    /// Of the token that callers must show; none where all may ask.
    token: Option<Arc<[u8; 32]>>,
    stopping: watch::Receiver<bool>,
}

/// Listens for readers of `tier`, who must show `token`, if there is one.
///
/// # Errors
/// If the address cannot be listened on.
pub async fn bind_tier(
    tier: Tier,
    address: SocketAddr,
    token: Option<&str>,
) -> Result<BoundTier, ServeError> {
    let (listener, address) = crate::serve::listen("tier", address).await?;
    let stopping = watch::Sender::new(false);
    let token = token.map(|token| Arc::new(Sha256::digest(token).into()));
    let face = Face { tier, token, stopping: stopping.subscribe() };
    Ok(BoundTier { listener, address, face, stopping })
}

impl BoundTier {
    /// Where it listens: the port is the real one, also where 0 was asked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` ends, then lets calls under way end. Returns true if
    /// all of them did in time.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let Self { listener, face, stopping, .. } = self;
        let services = Routes::new(TierServiceServer::new(face.clone()))
            .add_service(QueueServiceServer::new(hot::HotTopic { face: face.clone() }));
        let router = services.prepare().into_axum_router().merge(http::routes(face));
        let router = router.fallback(crate::grpc::no_call);
        let options = ServerOptions::default();
        let mut taking = pin!(accept(listener, router, &options, stopping.subscribe()));
        tokio::select! {
            ended = &mut taking => return ended,
            () = stop => {}
        }
        stopping.send_replace(true);
        taking.await
    }
}

impl Face {
    /// Whether the caller, who shows `authorization`, may ask.
    fn admit(&self, authorization: Option<&[u8]>) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = authorization.and_then(|shown| shown.strip_prefix(b"Bearer "));
        // Hashes are compared: how long that takes says nothing of the token.
        let fits = shown.is_some_and(|shown| Sha256::digest(shown)[..] == token[..]);
        let refused = || Problem::new(Code::Unauthenticated, "a token is required");
        if fits { Ok(()) } else { Err(refused()) }
    }

    /// The same for a call over gRPC.
    fn admit_call(&self, metadata: &MetadataMap) -> Result<(), Problem> {
        self.admit(metadata.get("authorization").map(|value| value.as_bytes()))
    }

    /// Runs what reads or writes rows where it holds up nobody.
    async fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(Tier) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let tier = self.tier.clone();
        let run = tokio::task::spawn_blocking(move || what(tier));
        run.await.map_err(|_| Problem::internal())
    }
}

fn partition_of(number: u32) -> Result<PartitionId, Problem> {
    let number = u16::try_from(number);
    number.map(PartitionId).map_err(|_| Problem::invalid("partition: too large"))
}
