//! gRPC, for services: the calls of history, of topics and of
//! metadata, under the same rules.
//!
//! Requests that carry marks come as raw bytes and are read straight into the
//! set that history decides; everything else is plain messages.

mod checkpoints;
mod follow;
mod meta;
mod pipelined;
mod queue;
mod reads;
pub(crate) mod record;
mod service;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, header};
use tideline_wire::Code;
use tideline_wire::history_v1_server::history_service_server::HistoryServiceServer;
use tideline_wire::meta_v1::meta_service_server::MetaServiceServer;
use tideline_wire::queue_v1::checkpoint_service_server::CheckpointServiceServer;
use tideline_wire::queue_v1::queue_service_server::QueueServiceServer;
use tonic::Status;
use tonic::service::Routes;

use crate::Gateway;
use crate::problem::Problem;

/// All services, with health and reflection.
pub(crate) async fn routes(gateway: Gateway) -> Routes {
    let bytes_max = gateway.inner.options.server.body_bytes_max;
    let topics = QueueServiceServer::new(queue::Topics { gateway: gateway.clone() })
        .max_decoding_message_size(bytes_max)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
    let tree = MetaServiceServer::new(meta::Tree { gateway: gateway.clone() })
        .max_decoding_message_size(bytes_max)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
    let places =
        CheckpointServiceServer::new(checkpoints::Checkpoints { gateway: gateway.clone() })
            .max_decoding_message_size(bytes_max)
            .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
    let history = HistoryServiceServer::new(Service { gateway })
        .max_decoding_message_size(bytes_max)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<HistoryServiceServer<Service>>().await;
    reporter.set_serving::<QueueServiceServer<queue::Topics>>().await;
    reporter.set_serving::<MetaServiceServer<meta::Tree>>().await;
    reporter.set_serving::<CheckpointServiceServer<checkpoints::Checkpoints>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tideline_wire::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the build made the descriptors");
    Routes::new(history)
        .add_service(topics)
        .add_service(tree)
        .add_service(places)
        .add_service(health)
        .add_service(reflection)
}

/// A call that there is not: to gRPC its own status, to anything else 404.
pub(crate) async fn no_call(headers: HeaderMap) -> Response {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    if kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
        return Status::unimplemented("there is no such call").into_http();
    }
    Problem::new(Code::NotFound, "there is no such path").into_response()
}

/// `tideline.history.v1.HistoryService`.
pub(crate) struct Service {
    gateway: Gateway,
}
