//! Danmaku: comments across a video.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ask;
pub mod cold;
pub mod comment;
pub mod filters;
#[doc(hidden)]
pub mod fuzz;
mod id;
pub mod options;
pub mod outcome;
pub mod owner;
pub mod reads;
pub mod recovery;
pub mod rows;
pub mod rules;
pub mod top;
pub mod video;

pub use id::{CommentId, STRETCH_MS, stretch_of};
