//! A user's history: what they watched, read or browsed, and how far they got.
//!
//! Read in this order: [`mark`] (what a caller says), `rules` (what the owner
//! decides), `outcome` (what is logged), `timeline` (a user in memory), `rows`
//! (a user at rest), `owner` (one partition: order, acknowledgement, tiers),
//! `task` (the threads and waits around owners), [`History`] (the handle).
//!
//! Knows nothing of HTTP, JSON, titles or which engine stands behind a seam.

#![cfg_attr(test, allow(clippy::unwrap_used))]

/// Whether a rule is broken on purpose: never, but in a simulator's build.
macro_rules! broken {
    ($rule:ident) => {{
        #[cfg(feature = "sabotage")]
        let broken = crate::sabotage::is(crate::sabotage::Broken::$rule);
        #[cfg(not(feature = "sabotage"))]
        let broken = false;
        broken
    }};
}

pub mod cold;
pub mod facts;
#[doc(hidden)]
pub mod fuzz;
mod handle;
mod id;
pub mod kinds;
pub mod mark;
pub mod outcome;
pub mod owner;
pub mod pack;
mod peek;
pub mod query;
pub mod recovery;
mod retry;
mod row;
pub mod rows;
pub mod rules;
#[cfg(feature = "sabotage")]
pub mod sabotage;
#[cfg(test)]
mod samples;
mod setup;
mod task;
pub mod timeline;

pub use handle::History;
pub use id::{IdBuf, PackedId};
pub use retry::{Retries, fingerprint};
pub use row::RowRef;
pub use setup::prepare;
pub use task::{DAILY_FIRST, Options, TOPIC};
use tideline_record::codec;
pub use tideline_record::codec::BadBytes;
