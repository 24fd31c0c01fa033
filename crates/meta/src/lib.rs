//! Metadata: a tree whose declared subtrees each have a queue, and numbers, of
//! their own.
//!
//! Read in this order: [`path`] (where a node stands), [`commit`] (what is
//! logged), [`tree`] (a subtree in memory), [`ask`] (what a caller says),
//! [`rules`] (what the owner decides), [`lease`] (when sessions end), [`owner`]
//! (one partition: order, acknowledgement), [`snapshot`] and [`tail`] (what
//! observers are sent), [`follower`] (an observer's own copy), [`kept`] (what the
//! queue itself keeps in it).
//!
//! Always: a subtree's numbers have no gap; a node is the seq that created it;
//! a transaction happens, and is seen, as a whole; an observer's copy at seq s
//! is what a replay up to s comes to, or it is told to take a snapshot.
//!
//! Knows nothing of topics' contents, users, HTTP, or which engine stands
//! behind a seam.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ask;
pub mod check;
pub mod cold;
pub mod commit;
mod done;
pub mod follower;
#[doc(hidden)]
pub mod fuzz;
mod handle;
pub mod kept;
mod lane;
pub mod lease;
pub mod namespace;
mod observe;
pub mod options;
pub mod owner;
pub mod ownership;
pub mod path;
pub mod recovery;
pub mod rules;
#[cfg(feature = "sabotage")]
pub mod sabotage;
pub mod snapshot;
pub mod tail;
mod task;
pub mod tree;

pub use done::Written;
pub use handle::{Found, Meta, Page, Submitted};
pub use observe::{LocalCopy, Observation};
pub use options::Options;
pub use path::{BadPath, Path};
pub use task::TOPIC;
