//! What is logged: one decision about one video, whole.
//!
//! A record's key is the video, its value one outcome: who did what, and what
//! it comes to, as changes that need neither a clock nor a setting nor a row
//! to be applied. A comment that comes back to memory brings its content; one
//! that moves says where its row lay. So replay means apply, and any cut
//! between two outcomes is a state.
//!
//! ```text
//! version, act, taken_ms (varint), actor (0, or role + 1 and user),
//! changes: tag and body each, to the end
//! ```

use std::sync::Arc;

use tideline_types::Millis;

use crate::comment::{Actor, Content, Index};
use crate::id::CommentId;
use crate::rows::{MarkKind, Settings};
use crate::sent::Sent;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A comment was posted.
    Post,
    /// A comment came from a file.
    Import,
    /// Its writer took one back.
    Recall,
    /// Ranks, pools and states, by the owner or a moderator.
    Moderate,
    /// A user likes one.
    Like,
    /// A user reported one.
    Report,
    /// The owner set something about the video.
    Settings,
    /// The owner set the video's filters.
    Filters,
    /// The queue hid or brought back one.
    Queue,
    /// A user's comments went for good.
    Erase,
    /// How many there are, for those who count.
    Count,
    /// A post of a sender was counted.
    Send,
    /// Something of the above was undone.
    Undo,
    /// One that waited was shown or blocked.
    Judge,
    /// The video belongs to a work.
    Work,
}

impl Act {
    /// All of them, by number.
    pub const ALL: [Self; 15] = [
        Self::Post,
        Self::Import,
        Self::Recall,
        Self::Moderate,
        Self::Like,
        Self::Report,
        Self::Settings,
        Self::Filters,
        Self::Queue,
        Self::Erase,
        Self::Count,
        Self::Send,
        Self::Undo,
        Self::Judge,
        Self::Work,
    ];

    /// Its name for readers of topics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Import => "import",
            Self::Recall => "recall",
            Self::Moderate => "moderate",
            Self::Like => "like",
            Self::Report => "report",
            Self::Settings => "settings",
            Self::Filters => "filters",
            Self::Queue => "queue",
            Self::Erase => "erase",
            Self::Count => "count",
            Self::Send => "send",
            Self::Undo => "undo",
            Self::Judge => "judge",
            Self::Work => "work",
        }
    }
}

/// One change of what a video has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A comment that was not there.
    New {
        /// Which.
        id: CommentId,
        /// As it begins.
        index: Index,
        /// What it says.
        content: Content,
    },
    /// A comment's index.
    Index {
        /// Which.
        id: CommentId,
        /// As it was: says where its row lies.
        before: Index,
        /// As it becomes.
        after: Index,
        /// Where it is shown now and was not before.
        content: Option<Content>,
    },
    /// A user said something of a comment, for the first time.
    Mark {
        /// What.
        kind: MarkKind,
        /// Of which.
        id: CommentId,
        /// Who, as a keyed hash.
        user: u64,
        /// The reason of a report; 0 of a like.
        reason: u8,
    },
    /// A comment is there no more.
    Gone {
        /// Which.
        id: CommentId,
        /// As it was.
        before: Index,
        /// Its writer, as a keyed hash.
        user: u64,
    },
    /// A user, as a keyed hash, has no comment here any more.
    Forgotten {
        /// Who.
        user: u64,
    },
    /// The video's settings as they become.
    Settings {
        /// As they were.
        before: Settings,
        /// As they become.
        after: Settings,
    },
    /// The video's filters, as JSON.
    Filters {
        /// As they were, if there were any.
        before: Option<Arc<str>>,
        /// As they become.
        after: Arc<str>,
    },
    /// Nothing; how many comments there are.
    Count {
        /// Of any state.
        total: u64,
        /// Shown to everybody.
        shown: u64,
        /// The work that the video belongs to.
        work: Option<Arc<str>>,
    },
    /// The work that the video belongs to.
    Work {
        /// As it was.
        before: Option<Arc<str>>,
        /// As it becomes.
        after: Option<Arc<str>>,
    },
    /// What a sender posted, as it becomes.
    Sent(Sent),
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The owner's time; never falls within a partition.
    pub taken: Millis,
    /// What was done.
    pub act: Act,
    /// Who did it; `None`: the owner of the partition itself.
    pub actor: Option<Actor>,
    /// What it comes to, in order.
    pub changes: Vec<Change>,
}

mod bytes;
mod topics;

pub use topics::{audit, stats};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{any_outcome, sample};
