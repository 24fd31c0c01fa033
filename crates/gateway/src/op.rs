//! The calls there are: the names that limits, metrics and the API document
//! share, and what a caller must be for each.

/// What a caller must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Anyone.
    Nothing,
    /// Anyone who is known.
    Known,
    /// May read the user in the path.
    ReadUser,
    /// May change the user in the path.
    WriteUser,
    /// May read what is not about one user.
    Read,
    /// Acts for the app.
    Service,
    /// Runs the server.
    Admin,
}

macro_rules! ops {
    ($($(#[$doc:meta])* $op:ident $name:literal $need:ident,)*) => {
        /// One call, on whichever face.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub(crate) enum Op { $($(#[$doc])* $op,)* }

        impl Op {
            /// All of them, in order.
            pub(crate) const ALL: &[Self] = &[$(Self::$op,)*];

            /// The stable name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$op => $name,)* }
            }

            /// What a caller must be.
            pub(crate) fn need(self) -> Need {
                match self { $(Self::$op => Need::$need,)* }
            }
        }
    };
}

ops! {
    /// Marks of one user.
    Record "history_record" WriteUser,
    /// Marks of many users.
    RecordBatch "history_batch" Service,
    /// Batches on one stream, each counted as a call.
    RecordStream "history_stream" Known,
    /// Marks kept offline.
    Merge "history_merge" WriteUser,
    /// A list.
    List "history_list" ReadUser,
    /// A count.
    Count "history_count" ReadUser,
    /// Counts by day.
    Days "history_days" ReadUser,
    /// One row.
    Progress "progress_get" ReadUser,
    /// Many rows.
    ProgressBatch "progress_batch" ReadUser,
    /// Removes rows.
    Delete "history_delete" WriteUser,
    /// Removes what a filter matches.
    Clear "history_clear" WriteUser,
    /// Reads switches.
    Settings "settings_get" ReadUser,
    /// Sets switches.
    SetSettings "settings_put" WriteUser,
    /// A comment, in.
    PostComment "danmaku_post" Known,
    /// Comments, out, and figures of a video.
    ReadComments "danmaku_get" Nothing,
    /// Changes, hides or takes back a comment.
    ChangeComment "danmaku_change" Known,
    /// What of a video is hidden.
    HiddenComments "danmaku_hidden" Known,
    /// Likes a comment.
    LikeComment "danmaku_like" Known,
    /// Reports a comment.
    ReportComment "danmaku_report" Known,
    /// Settings and filters of a video.
    SetVideo "danmaku_settings" Known,
    /// Filters of the site, and undoing what the audit tells.
    SetSite "danmaku_site" Known,
    /// Comments that are due to be looked at.
    Review "danmaku_review" Known,
    /// One's own comments.
    OwnComments "danmaku_own" ReadUser,
    /// A viewer's filters and flags.
    SetViewer "danmaku_viewer" WriteUser,
    /// Flags of many viewers.
    PutFlags "danmaku_flags" Service,
    /// Comments of a file.
    ImportComments "danmaku_import" Known,
    /// One connection, and each frame on it.
    Live "live" Known,
    /// Everything of a user, to keep.
    Export "history_export" ReadUser,
    /// And back.
    Restore "history_restore" Service,
    /// Removes everything about a user.
    Erase "user_erase" WriteUser,
    /// Titles and covers, in.
    PutItems "items_put" Service,
    /// One title and cover, out.
    GetItem "items_get" Known,
    /// Topics, described.
    Topics "topics_get" Read,
    /// Makes or removes a topic.
    ChangeTopic "topics_change" Service,
    /// Records into a topic.
    Produce "topics_produce" Service,
    /// Records out of a topic.
    Fetch "topics_fetch" Service,
    /// Follows a topic.
    Follow "topics_follow" Service,
    /// Where a consumer goes on: kept, forgotten.
    Checkpoint "topics_checkpoint" Service,
    /// Nodes of the metadata tree, out.
    MetaRead "meta_read" Service,
    /// Nodes and sessions, in.
    MetaWrite "meta_write" Service,
    /// Follows a subtree.
    MetaObserve "meta_observe" Service,
    /// Declares or drops a subtree.
    MetaDeclare "meta_declare" Service,
    /// A ticket for a browser.
    Ticket "tickets_post" Known,
    /// Makes, lists, removes tokens.
    Tokens "tokens" Admin,
    /// Every user there is.
    Users "users_list" Service,
    /// A copy of everything.
    Backup "backup" Admin,
    /// Health, metrics, the API document.
    Operate "operate" Nothing,
}
