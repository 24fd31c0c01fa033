//! Danmaku: comments across a video, bounded whatever happens.
//!
//! Read in this order: [`comment`] (what a comment is, and what is admitted),
//! [`top`] (which are shown), [`ask`] (what a caller says), [`rules`] (what the
//! owner decides), [`outcome`] (what is logged), [`video`] (a video in memory),
//! [`rows`] (at rest), [`owner`] (one partition: order, acknowledgement, tiers),
//! `task` (the threads and waits around owners), [`Danmaku`] (the handle). Beside
//! these: [`segment`] (ready bytes), [`filters`] and [`flag`] (what a viewer
//! wants), [`sent`] (how much a sender posts), [`due`] (what is to be looked
//! at), [`erase`] (what leaves the files), [`check`] (whether what lies at rest
//! makes sense).
//!
//! Knows nothing of HTTP, sockets, titles or which engine stands behind a seam.

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

mod apart;
pub mod ask;
pub mod check;
pub mod cold;
pub mod comment;
pub mod due;
pub mod erase;
pub mod filters;
pub mod flag;
#[doc(hidden)]
pub mod fuzz;
mod handle;
mod id;
mod item;
pub mod options;
pub mod outcome;
pub mod owner;
mod personal;
pub mod reads;
pub mod recovery;
pub mod rows;
pub mod rules;
#[cfg(feature = "sabotage")]
pub mod sabotage;
pub mod scores;
pub mod segment;
pub mod sent;
mod task;
pub mod top;
pub mod video;
pub mod works;

pub use handle::{Audited, Danmaku};
pub use id::{CommentId, STRETCH_MS, stretch_of};
pub use item::{MANY_LIKES, item};
pub use options::Options;
pub use task::{AUDIT, FLAGS, STATS, TOPIC, Watch};
