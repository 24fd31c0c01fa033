//! Shapes on the wire: gRPC messages, JSON bodies, cursors, exports, comments.
//!
//! Conversions only. What comes from a caller is parsed into borrowed fields
//! and checked against the limits; what is wrong is a [`Fault`] that names the
//! field. Knows nothing of users' rows, rules, status codes or sockets.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
pub mod cursor;
pub mod danmaku;
mod fault;
#[doc(hidden)]
pub mod fuzz;
pub mod json;
pub mod live;
mod mark;
mod position;

pub use batch::{BadMessage, BatchHead, RawRecord, batch_user, read_batch};
pub use fault::{Code, Fault};
pub use mark::MarkFields;

/// The messages and the client of `tideline.history.v1`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod history_v1 {
    include!(concat!(env!("OUT_DIR"), "/client/tideline.history.v1.rs"));
}

/// The server's side of `tideline.history.v1`: requests that carry marks come
/// as [`RawRecord`].
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod history_v1_server {
    include!(concat!(env!("OUT_DIR"), "/server/tideline.history.v1.rs"));
}

/// What the services of topics, of metadata and of tiers share.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod common_v1 {
    include!(concat!(env!("OUT_DIR"), "/both/tideline.common.v1.rs"));
}

/// The messages, the client and the server's side of `tideline.queue.v1`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod queue_v1 {
    include!(concat!(env!("OUT_DIR"), "/both/tideline.queue.v1.rs"));
}

/// The messages, the client and the server's side of `tideline.meta.v1`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod meta_v1 {
    include!(concat!(env!("OUT_DIR"), "/both/tideline.meta.v1.rs"));
}

/// The messages, the client and the server's side of `tideline.tier.v1`, which
/// tiers speak, and the server does not.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod tier_v1 {
    include!(concat!(env!("OUT_DIR"), "/both/tideline.tier.v1.rs"));
}

/// The frames of `tideline.live.v1`, for clients.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod live_v1 {
    include!(concat!(env!("OUT_DIR"), "/live/tideline.live.v1.rs"));
}

/// The messages of `tideline.danmaku.v1`. The code writes and reads them one
/// element at a time ([`danmaku::proto`]); these are for clients and tests.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)]
pub mod danmaku_v1 {
    include!(concat!(env!("OUT_DIR"), "/client/tideline.danmaku.v1.rs"));
}

/// All `.proto` files, as a serialized `FileDescriptorSet`; for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
