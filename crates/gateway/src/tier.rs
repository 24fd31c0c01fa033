//! The face of a tier: what keys have, and its hot keys as a topic, over gRPC.
//!
//! A process of its own serves it, beside none of the other faces. Calls are few
//! and short but for `Snapshot` and `Subscribe`, which hold nothing but a
//! place: what a reader does not take is not held for it.

mod answers;
mod hot;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tideline_tier::{GetError, Tier};
use tideline_types::{PartitionId, Position};
use tideline_wire::queue_v1::queue_service_server::QueueServiceServer;
use tideline_wire::tier_v1 as v1;
use tideline_wire::tier_v1::tier_service_server::TierServiceServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;

use crate::ServeError;

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

    /// Answers until `stop` ends. False if a connection broke the listening.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let Self { listener, face, stopping, .. } = self;
        let stop = async move {
            stop.await;
            stopping.send_replace(true);
        };
        let served = Server::builder()
            .tcp_nodelay(true)
            .http2_keepalive_interval(Some(std::time::Duration::from_secs(30)))
            .add_service(TierServiceServer::new(face.clone()))
            .add_service(QueueServiceServer::new(hot::HotTopic { face }))
            .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop);
        served.await.is_ok()
    }
}

impl Face {
    /// Whether the caller may ask.
    fn admit(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = metadata.get("authorization").map(|value| value.as_bytes());
        let shown = shown.and_then(|shown| shown.strip_prefix(b"Bearer "));
        // Hashes are compared: how long that takes says nothing of the token.
        let fits = shown.is_some_and(|shown| Sha256::digest(shown)[..] == token[..]);
        if fits { Ok(()) } else { Err(Status::unauthenticated("a token is required")) }
    }

    /// Runs what reads or writes rows where it holds up nobody.
    async fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(Tier) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let tier = self.tier.clone();
        let run = tokio::task::spawn_blocking(move || what(tier));
        run.await.map_err(|_| Status::internal("the tier failed"))
    }
}

fn refused(error: GetError) -> Status {
    match error {
        GetError::NotWhole(_) => Status::unavailable(error.to_string()),
        GetError::NoPartition(_) => Status::not_found(error.to_string()),
        GetError::Store(_) => {
            tracing::error!(%error, "a tier's rows cannot be read");
            Status::internal("the rows cannot be read")
        }
    }
}

fn partition_of(number: u32) -> Result<PartitionId, Status> {
    let number = u16::try_from(number);
    number.map(PartitionId).map_err(|_| Status::invalid_argument("partition: too large"))
}

fn position_of(position: Position) -> v1::Position {
    v1::Position {
        incarnation: position.incarnation.0,
        epoch: position.epoch.0,
        seq: position.seq.0,
    }
}
