//! Calls about one video, and what they come to.

mod refusal;

use std::ops::RangeInclusive;
use std::sync::Arc;

use tideline_types::{Seq, UserId};
use tideline_wire::danmaku::{Item, Pool};

pub use refusal::Refusal;

use crate::comment::{Actor, Comment, Draft, Rank};
use crate::id::CommentId;
use crate::outcome::Outcome;
use crate::rows::Settings;
use crate::video::Event;

/// A call about one video.
#[derive(Clone, Debug)]
pub enum Op {
    /// Post a comment.
    Post {
        /// As given.
        draft: Draft,
        /// By whom.
        actor: Actor,
    },
    /// Count a post of a sender; asked under the sender's own name.
    Send {
        /// The post's fingerprint, if it has one: counted once.
        post: Option<u64>,
    },
    /// Take comments of a file.
    Import {
        /// In order.
        items: Vec<ImportItem>,
        /// By whom.
        actor: Actor,
    },
    /// Take one's own comment back.
    Recall {
        /// Which.
        id: CommentId,
        /// By whom.
        actor: Actor,
    },
    /// Change what viewers get of a comment.
    Moderate {
        /// Which.
        id: CommentId,
        /// How.
        action: Action,
        /// By whom.
        actor: Actor,
    },
    /// Say of a comment that waits whether it is shown; nothing if it does not
    /// wait.
    Judge {
        /// Which.
        id: CommentId,
        /// Or blocked.
        shown: bool,
    },
    /// Like a comment, once.
    Like {
        /// Which.
        id: CommentId,
        /// By whom.
        actor: Actor,
    },
    /// Report a comment, once.
    Report {
        /// Which.
        id: CommentId,
        /// By whom.
        actor: Actor,
        /// Why, as the caller numbers it.
        reason: u8,
    },
    /// Change the settings.
    Set {
        /// What of them.
        patch: SettingsPatch,
        /// By whom.
        actor: Actor,
    },
    /// Undo what somebody did, as far as it still stands.
    Undo {
        /// What was logged then.
        outcome: Box<Outcome>,
        /// By whom.
        actor: Actor,
    },
    /// Say which work the video belongs to.
    Belong {
        /// Its id; `None`: to none.
        work: Option<Arc<str>>,
    },
    /// Set the owner's filters.
    SetFilters {
        /// The list, as JSON.
        json: String,
        /// By whom.
        actor: Actor,
    },
    /// Remove every comment of a user for good.
    Erase {
        /// Whose.
        user: UserId,
    },
    /// A user's own comments, newest first.
    Own {
        /// Whose.
        user: UserId,
        /// Below this one; `None`: from the newest.
        below: Option<CommentId>,
        /// At most so many, 1 to 100.
        limit: usize,
    },
    /// What is hidden for another reason than room, by where in the video.
    Hidden {
        /// Behind this one; `None`: from the first.
        after: Option<CommentId>,
        /// At most so many, 1 to 100.
        limit: usize,
    },
    /// One comment, of whatever state, whole.
    Find {
        /// Which.
        id: CommentId,
    },
    /// Script and BAS comments: a pack of a few, from 1.
    Special {
        /// Which pack.
        pack: u32,
    },
    /// Figures and settings.
    View,
    /// What a segment shows, from 1.
    Segment(u32),
    /// What all segments show.
    All,
    /// What happened after a number.
    Changes {
        /// The number.
        since: Seq,
    },
}

impl Op {
    /// Whether it changes nothing.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Own { .. }
            | Self::Hidden { .. }
            | Self::Find { .. }
            | Self::Special { .. }
            | Self::View
            | Self::Segment(_)
            | Self::All
            | Self::Changes { .. } => true,
            Self::Post { .. }
            | Self::Send { .. }
            | Self::Import { .. }
            | Self::Recall { .. }
            | Self::Moderate { .. }
            | Self::Judge { .. }
            | Self::Like { .. }
            | Self::Report { .. }
            | Self::Set { .. }
            | Self::Undo { .. }
            | Self::Belong { .. }
            | Self::SetFilters { .. }
            | Self::Erase { .. } => false,
        }
    }

    /// Whether what it misses can be told before its turn.
    pub(crate) fn is_foreseeable(&self) -> bool {
        matches!(
            self,
            Self::Post { .. } | Self::Like { .. } | Self::Report { .. } | Self::Find { .. }
        )
    }

    /// Whether it is answered from memory alone.
    pub(crate) fn reads_memory(&self) -> bool {
        matches!(self, Self::View | Self::Segment(_) | Self::All | Self::Changes { .. })
    }
}

/// A comment of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportItem {
    /// As the file has it.
    pub item: Item<'static>,
    /// How many like it, in everything, came before it in the file. So two that
    /// are meant to be two stay two, and a file imported again changes nothing.
    pub nth: u32,
}

/// What the owner or a moderator does about a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give it this rank.
    Rank(Rank),
    /// Show it to nobody.
    Hide,
    /// Show it to nobody: it breaks rules.
    Block,
    /// Undo hiding, blocking or what reports did.
    Restore,
    /// Between the normal pool and subtitles.
    Move(Pool),
}

/// What of the settings is to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingsPatch {
    /// How long the video is; `Some(None)`: nobody knows.
    pub duration_ms: Option<Option<u32>>,
    /// One of [`crate::top::LIMITS`]; `Some(None)`: by the duration.
    pub limit: Option<Option<u32>>,
    /// Whether viewers may post.
    pub closed: Option<bool>,
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Of `Post`.
    Posted(Posted),
    /// Of `Import`.
    Imported(Tally),
    /// Of `Recall`, `Judge`, `Like`, `Report`: the comment as it is now.
    Comment(Arc<Comment>),
    /// Of `Moderate`.
    Moderated(Moderated),
    /// Of `Set`.
    Settings(Settings),
    /// Of `Send`, `Undo`, `Belong`, `SetFilters`.
    Done,
    /// Of `Erase`: comments that were there.
    Erased(u64),
    /// Of `Own` and `Hidden`: in the order asked for.
    Own(Vec<Arc<Comment>>),
    /// Of `Find`.
    Found(Option<Arc<Comment>>),
    /// Of `View`.
    View(View),
    /// Of `Segment`, `All` and `Special`; `None` outside the video.
    Snapshot(Option<Snapshot>),
    /// Of `Changes`.
    Changes(Changes),
    /// Of anything.
    Refused(Refusal),
}

/// A comment that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// As it is now.
    pub comment: Arc<Comment>,
    /// Everything through this number holds it.
    pub seq: Seq,
    /// It had been posted before: this was a retry.
    pub again: bool,
}

/// A comment that was moderated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moderated {
    /// As it is now.
    pub comment: Arc<Comment>,
    /// The number of what was done; `None`: it was so already.
    pub seq: Option<Seq>,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Comments that were not there.
    pub taken: u32,
    /// Of these, hidden at once for want of room.
    pub overflow: u32,
    /// Comments that were there already.
    pub duplicates: u32,
    /// Those not taken: their place in the list, and why.
    pub refused: Vec<(u32, Refusal)>,
}

/// Figures of a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What the owner set.
    pub settings: Settings,
    /// Segments, at least 1.
    pub segments: u32,
    /// The limit in force.
    pub limit: u32,
    /// Comments of any state.
    pub total: u64,
    /// Shown, of any pool.
    pub shown: u64,
    /// Shown, and counted against the limit.
    pub counted: u32,
    /// Hidden for want of room.
    pub overflow: u64,
    /// Packs of script and BAS comments.
    pub special_packs: u32,
    /// The owner's filters, as JSON.
    pub filters: Option<Arc<str>>,
    /// All this is as of this number.
    pub seq: Seq,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Holds every change through this number.
    pub seq: Seq,
    /// Of these stretches of the video.
    pub stretches: RangeInclusive<u16>,
    /// The limit in force.
    pub limit: u32,
    /// Whether viewers may not post.
    pub closed: bool,
    /// By pool, time and id.
    pub items: Vec<Arc<Comment>>,
}

/// What happened to a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Everything that happened after `since` and through `through`, in order.
    Range {
        /// The number that was asked for.
        since: Seq,
        /// At least `since`, or the caller knows a future that never was.
        through: Seq,
        /// The last segment, where the duration is known: it shows what lies
        /// behind its end, too.
        end: Option<u32>,
        /// Each with its number.
        events: Vec<(Seq, Event)>,
    },
    /// Too long ago: load a snapshot of at least this number.
    Lagged {
        /// Where a snapshot is now.
        through: Seq,
    },
}
