//! What a reader of topics links: a local cache that is right. No server code.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cache;

pub use cache::{Cache, Change, Filled, Filling, Found, Refused};
