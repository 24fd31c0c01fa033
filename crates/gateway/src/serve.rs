//! Sockets, and the end of them.
//!
//! Both faces are bound first, so that a caller who is told the addresses can
//! connect. Stopping: no connection is taken any more, calls under way end
//! within `server.stop_ms`, then what is left is cut.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tower::{Service, ServiceExt as _};

use crate::head_timer::HeadTimer;
use crate::http::Front;
use crate::options::ServerOptions;
use crate::uncopied::{Slot, Socket};
use crate::{Gateway, grpc};

/// Bytes that a client may send ahead on one call and on one connection, over
/// HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// A batch of marks comes in few frames, each of which costs.
const FRAME_BYTES_MAX: u32 = 256 << 10;

/// Why the faces cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address that cannot be listened on.
    #[error("{face} on {address}: {cause}")]
    Bind {
        /// Which face.
        face: &'static str,
        /// Where.
        address: SocketAddr,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// Both faces, bound and not yet answering.
pub struct Bound {
    gateway: Gateway,
    http: TcpListener,
    grpc: TcpListener,
    addresses: (SocketAddr, SocketAddr),
}

impl Gateway {
    /// Listens on both addresses.
    pub async fn bind(&self) -> Result<Bound, ServeError> {
        let options = &self.inner.options.server;
        let (http, http_address) = listen("http", options.http).await?;
        let (grpc, grpc_address) = listen("grpc", options.grpc).await?;
        let addresses = (http_address, grpc_address);
        Ok(Bound { gateway: self.clone(), http, grpc, addresses })
    }
}

pub(crate) async fn listen(
    face: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |cause| ServeError::Bind { face, address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

impl Bound {
    /// Where HTTP listens: the port is the real one, also where 0 was asked.
    pub fn http(&self) -> SocketAddr {
        self.addresses.0
    }

    /// Where gRPC listens.
    pub fn grpc(&self) -> SocketAddr {
        self.addresses.1
    }

    /// Answers until `stop` ends, then lets calls under way end. Returns true
    /// if all of them did in time.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let Self { gateway, http, grpc, .. } = self;
        let routes = grpc::routes(gateway.clone()).await.prepare().into_axum_router();
        let routes = routes.fallback(grpc::no_call);
        let stopped = gateway.inner.stopping.subscribe();
        let options = gateway.inner.options.server.clone();
        let faces = async {
            tokio::join!(
                accept(http, Front::new(gateway.clone()), &options, stopped.clone()),
                accept(grpc, routes, &options, stopped.clone()),
            )
        };
        let mut faces = pin!(faces);
        tokio::select! {
            ended = &mut faces => return ended.0 && ended.1,
            () = stop => {}
        }
        gateway.inner.stopping.send_replace(true);
        let (http, grpc) = faces.await;
        http && grpc
    }
}

/// Takes connections until `stopped` says so, then waits for them to end;
/// false if some had to be cut.
pub(crate) async fn accept<S, F>(
    listener: TcpListener,
    face: S,
    options: &ServerOptions,
    mut stopped: watch::Receiver<bool>,
) -> bool
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible, Future = F>,
    S: Clone + Send + 'static,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(options.connections_max));
    let mut connections = tokio::task::JoinSet::new();
    let graceful = GracefulShutdown::new();
    let server = server(options);
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = room.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, taken) = tokio::select! {
            next = next => next,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        match taken {
            Ok((stream, _)) => {
                // Answers are small and waited for; held back they would come late.
                let _ = stream.set_nodelay(true);
                let slot = Slot::default();
                let socket = Socket::new(stream, slot.clone());
                let face = face.clone().map_response(move |answer| slot.take(answer));
                let service = TowerToHyperService::new(face);
                let mut server = server.clone();
                server.http1().timer(HeadTimer::default());
                let served = server.serve_connection_with_upgrades(socket, service);
                let watched = graceful.watch(served.into_owned());
                connections.spawn(async move {
                    let _place = place;
                    if let Err(error) = watched.await {
                        tracing::debug!(%error, "a connection ended early");
                    }
                });
            }
            Err(error) => {
                // Out of files, most often: what is open must end first.
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    let limit = Duration::from_millis(options.stop_ms);
    let all = async {
        graceful.shutdown().await;
        while connections.join_next().await.is_some() {}
    };
    let ended = tokio::time::timeout(limit, all).await.is_ok();
    connections.shutdown().await;
    ended
}

fn server(options: &ServerOptions) -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().header_read_timeout(Duration::from_millis(options.head_ms)).keep_alive(true);
    server
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_concurrent_streams(1024)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(20));
    server
}
