//! Why a call is not done: facts that a caller is told.

use tideline_store::StoreError;

use crate::comment::{NotAdmitted, State};
use crate::filters::BadFilters;

/// Why a call is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No id of a video.
    #[error("a video's id has 1 to 64 bytes")]
    BadVideo,
    /// The comment is not as it must be.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// Viewers may not post under this video.
    #[error("comments are closed")]
    Closed,
    /// A filter of the site or the owner.
    #[error("a filter refuses this text or sender")]
    Forbidden,
    /// No such comment, or not for this caller.
    #[error("there is no such comment")]
    NotFound,
    /// It is another's.
    #[error("this is not yours")]
    NotYours,
    /// The time for it is over.
    #[error("a comment can be taken back within {within_ms} ms, this one is {age_ms} ms old")]
    TooLate {
        /// Its age.
        age_ms: i64,
        /// The limit.
        within_ms: i64,
    },
    /// It does not go with what is.
    #[error("{0}")]
    Conflict(&'static str),
    /// The comment is not in a state for it.
    #[error("the comment is {}", .0.name())]
    Is(State),
    /// The comment was reported, or liked, by this user before.
    #[error("once per user")]
    Again,
    /// Over a limit.
    #[error("{what}: at most {max} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        max: u32,
    },
    /// The sender's limit of a day.
    #[error("a sender may post {max} comments in 24 hours; the next one in {} s", wait_ms / 1000 + 1)]
    OverDay {
        /// The limit.
        max: u32,
        /// Until there is room again, in ms.
        wait_ms: i64,
    },
    /// Not one of the limits that may be set.
    #[error("limit {0} is none of those that may be set")]
    BadLimit(u32),
    /// A list of filters.
    #[error(transparent)]
    BadFilters(#[from] BadFilters),
    /// A bound is reached; it passes by itself.
    #[error("overloaded: {0}")]
    Overloaded(&'static str),
    /// The log took a fault and is read-only until the server starts again.
    #[error("the log is read-only: {0}")]
    ReadOnly(String),
    /// The disk or the log's quota is full; nothing of the call was kept.
    #[error("no space: {0}")]
    NoSpace(String),
    /// The video's rows cannot be read.
    #[error("damaged rows: {0}")]
    Damaged(String),
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NoSpace { .. } => Self::NoSpace(error.to_string()),
            StoreError::Damaged { .. } => Self::Damaged(error.to_string()),
            _ => Self::ReadOnly(error.to_string()),
        }
    }
}
