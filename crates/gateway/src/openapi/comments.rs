//! The shapes of comments, for the API document alone.
#![allow(dead_code, reason = "described, never made")]

use utoipa::ToSchema;
use utoipa::openapi::ComponentsBuilder;

/// A comment as it is posted.
#[derive(ToSchema)]
struct NewComment {
    /// Up to 300 characters; for `positioned` a JSON array.
    text: String,
    /// When in the video.
    progress_ms: u32,
    /// `scroll` (default), `reverse`, `top`, `bottom`, `positioned`, `script`, `bas`.
    mode: Option<String>,
    /// 1 to 255; 25 if not said.
    size: Option<u8>,
    /// `#rrggbb`; white if not said.
    color: Option<String>,
    /// `normal` (default), `subtitle`, `special`; the last two not for viewers.
    pool: Option<String>,
    /// Your name for it, for retries: 1 to 64 bytes.
    client_id: Option<String>,
    /// In whose name; for services.
    user: Option<String>,
}

/// A comment.
#[derive(ToSchema)]
struct Comment {
    /// 63 bits, as text.
    id: String,
    progress_ms: u32,
    mode: String,
    size: u8,
    color: String,
    sent_ms: i64,
    pool: String,
    /// The same for the same sender under this video, and no more.
    sender: String,
    weight: u8,
    /// Bit 0 protected, 1 from live, 2 many likes.
    attr: u32,
    likes: u32,
    text: String,
}

/// What is shown.
#[derive(ToSchema)]
struct Comments {
    items: Vec<Comment>,
}

/// A comment as its writer and moderators see it.
#[derive(ToSchema)]
struct OwnComment {
    #[schema(inline)]
    #[serde(flatten)]
    comment: Comment,
    /// `plain`, `recommended`, `protected`.
    rank: String,
    /// `shown` or `hidden`.
    state: String,
    /// Why hidden: `overflow`, `recalled`, `hidden`, `blocked`, `reported`, `waiting`.
    reason: Option<String>,
}

/// A comment that was posted.
#[derive(ToSchema)]
struct PostedComment {
    #[schema(inline)]
    #[serde(flatten)]
    comment: OwnComment,
    /// Everything through this number holds it.
    seq: u64,
}

/// A comment that was changed.
#[derive(ToSchema)]
struct ChangedComment {
    #[schema(inline)]
    #[serde(flatten)]
    comment: OwnComment,
    /// Where topic `danmaku-audit` tells of it, for an undo; null where it was so
    /// already.
    audit: Option<AuditPlace>,
}

/// What of a video is hidden.
#[derive(ToSchema)]
struct HiddenComments {
    items: Vec<OwnComment>,
    /// Where to go on; null at the end.
    next: Option<String>,
}

/// One's own comments.
#[derive(ToSchema)]
struct OwnComments {
    items: Vec<OwnComment>,
}

/// What is to become of a comment: exactly one field.
#[derive(ToSchema)]
struct CommentChange {
    /// `protected`, `recommended`, `plain`.
    rank: Option<String>,
    /// `hidden`, `blocked`, or `shown`, which undoes both and what reports did.
    state: Option<String>,
    /// `normal` or `subtitle`.
    pool: Option<String>,
}

/// Why a comment is reported.
#[derive(ToSchema)]
struct CommentReport {
    /// As you number them; 0 if not said.
    reason: Option<u8>,
}

/// Figures and settings of a video.
#[derive(ToSchema)]
struct Video {
    video: String,
    segments: u32,
    segment_ms: u32,
    /// Comments of any state.
    total: u64,
    shown: u64,
    /// Shown, and counted against the limit.
    counted: u32,
    /// Hidden for want of room.
    overflow: u64,
    /// In force.
    limit: u32,
    /// As set; null: by the duration.
    limit_set: Option<u32>,
    duration_ms: Option<u32>,
    /// `open` or `closed`.
    state: String,
    /// Packs of scripts and BAS.
    special_packs: u32,
    seq: u64,
}

/// Settings of a video; what is absent stays, null: nobody knows.
#[derive(ToSchema)]
struct VideoSettings {
    duration_ms: Option<u32>,
    /// 100, 300, 500, 1500, 3000, 6000, 8000, 16000 or 32000; null: by the duration.
    limit: Option<u32>,
    closed: Option<bool>,
}

/// One of the things that somebody does not want to see.
#[derive(ToSchema)]
struct Filter {
    /// 0 keyword, 1 regular expression, 2 sender.
    r#type: u8,
    filter: String,
    opened: bool,
    id: Option<i64>,
}

/// All of them.
#[derive(ToSchema)]
struct Filters(Vec<Filter>);

/// What the videos of a work have together.
#[derive(ToSchema)]
struct Work {
    work: String,
    /// With any comment.
    videos: u64,
    /// Comments of any state.
    total: u64,
    shown: u64,
}

/// A comment that is due to be looked at.
#[derive(ToSchema)]
struct DueComment {
    video: String,
    reports: u32,
    #[schema(inline)]
    #[serde(flatten)]
    comment: OwnComment,
}

/// What is due to be looked at.
#[derive(ToSchema)]
struct Review {
    items: Vec<DueComment>,
    /// Where to go on; null at the end.
    next: Option<String>,
}

/// The place of a record of topic `danmaku-audit`, as its line says it.
#[derive(ToSchema)]
struct AuditPlace {
    partition: u16,
    incarnation: u64,
    epoch: u32,
    seq: u64,
}

/// What came of a batch of flags.
#[derive(ToSchema)]
struct FlagsPut {
    taken: u64,
    rejected: u64,
    /// Which lines and why: the first thousand.
    report: Vec<String>,
}

/// What an import came to.
#[derive(ToSchema)]
struct Imported {
    read: u64,
    kept: u64,
    changed: u64,
    dropped: u64,
    /// Not there before.
    taken: u64,
    /// Of these, hidden at once for want of room.
    overflow: u64,
    /// There before.
    duplicates: u64,
    refused: u64,
    /// What was changed, dropped or refused: the first thousand, a line each.
    report: Vec<String>,
}

pub(super) fn add(components: ComponentsBuilder) -> ComponentsBuilder {
    macro_rules! all {
        ($($shape:ident)*) => { components$(.schema_from::<$shape>())* };
    }
    all!(
        NewComment Comment Comments OwnComment PostedComment OwnComments CommentChange CommentReport
        ChangedComment HiddenComments
        Video VideoSettings Filter Filters Work DueComment Review AuditPlace FlagsPut Imported
    )
}
