//! Topics: named logs of a fixed number of partitions, each with numbers that
//! have no gap.
//!
//! ```text
//!  create, delete ─▶ topics ──▶ Table (Meta)     what exists
//!  own, produce ───▶ writer ──▶ Journal          numbers, syncs, fences
//!               producers ──▶ Table (Meta)     whose retries are told apart
//!  fetch, subscribe ─ reader ◀─ Journal          ranges (a, b] of records
//!                       ▲
//!                       └ record::derive         pure operators over a source
//! ```
//!
//! Always: what is acknowledged is synced; what is read is synced; a range
//! covers every number between its ends, so that an empty one still advances;
//! a place of a deleted topic, of a lost tail or of freed records is told
//! apart from every other. Subscribers hold no part of the log.
//!
//! Beside these, [`view`] drives whoever decides what a topic holds and folds
//! it into rows.
//!
//! Knows nothing of users, marks, HTTP or what values mean.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cursor;
mod declared;
mod error;
mod fetch;
mod filter;
#[doc(hidden)]
pub mod fuzz;
mod options;
mod partition;
mod produce;
mod producers;
mod queue;
mod remember;
mod retention;
#[cfg(feature = "sabotage")]
pub mod sabotage;
mod still;
mod subscription;
mod topic;
mod topics;
pub mod view;
mod writer;

pub use cursor::From;
pub use declared::Rows;
pub use error::{CreateError, DeleteError, FetchError, OpenError, OwnError, ProduceError};
pub use fetch::{Fetched, OwnedRecord};
pub use filter::Filter;
pub use options::Options;
pub use produce::{Records, Sent};
pub use producers::StampError;
pub use queue::Queue;
pub use still::Still;
pub use subscription::{RangeFrame, Subscription};
pub use topic::{TopicInfo, TopicKind, TopicSpec};
pub use topics::topics_at_rest;
pub use writer::PartitionWriter;
