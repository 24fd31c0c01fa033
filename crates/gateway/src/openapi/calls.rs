//! Every call over HTTP, in one table.

use utoipa::openapi::HttpMethod;
use utoipa::openapi::schema::Type;

/// One call.
pub(crate) struct Entry {
    /// Its name, for clients that are made from the document.
    pub(crate) id: &'static str,
    pub(crate) method: HttpMethod,
    pub(crate) path: &'static str,
    pub(super) says: &'static str,
    /// Name, type, meaning.
    pub(super) query: &'static [(&'static str, Type, &'static str)],
    /// Name, meaning.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Content type, shape.
    pub(super) body: Option<(&'static str, &'static str)>,
    /// Status; content type and shape.
    pub(super) answer: (&'static str, Option<(&'static str, &'static str)>),
}

impl Entry {
    /// What it belongs to.
    pub(super) fn tag(&self) -> &'static str {
        match self.path.split('/').nth(2) {
            Some("users" | "history:batch") => "history",
            Some("videos" | "works" | "danmaku" | "dplayer" | "artplayer" | "live") => "danmaku",
            Some("items" | "items:batch") => "catalogue",
            Some("topics") => "topics",
            Some(_) => "access",
            None => "operations",
        }
    }
}

pub(super) const ABOUT: &str = "What people watched, read or browsed, and how far they got. Times are \
    milliseconds since the Unix epoch; ids are strings and compared as text; unknown request fields \
    are refused by name. Errors are application/problem+json with a stable code.";

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

const NO_QUERY: &[(&str, Type, &str)] = &[];
const NO_HEADERS: &[(&str, &str)] = &[];

const WRITE_QUERY: &[(&str, Type, &str)] =
    &[("ack", Type::String, "`durable` (default): survives power loss. `fast`: decided.")];
const BATCH_QUERY: &[(&str, Type, &str)] = &[
    ("ack", Type::String, "`durable` (default): survives power loss. `fast`: decided."),
    ("import", Type::Boolean, "Marks of another system: as recorded, but no reward."),
];
const WRITE_HEADERS: &[(&str, &str)] = &[
    ("x-client-now-ms", "The device's clock, to put every event_ms right."),
    ("x-day-flag", "As an earlier answer gave it."),
];
const LENIENT: &[(&str, Type, &str)] = &[(
    "lenient",
    Type::Boolean,
    "Takes what can be read of the list, and answers 200 with what could not.",
)];
const ETAG_HEADERS: &[(&str, &str)] =
    &[("if-none-match", "An ETag that is held: 304 if it still stands.")];
const KIND: (&str, Type, &str) = ("kind", Type::String, "Repeatable, or with commas.");
const AFTER: (&str, Type, &str) = ("after_ms", Type::Integer, "At or after.");
const BEFORE: (&str, Type, &str) = ("before_ms", Type::Integer, "Before.");
const UNFINISHED: (&str, Type, &str) = (
    "unfinished",
    Type::Boolean,
    "Only what has a position, is not at the end, nor declared finished.",
);
const GROUP: (&str, Type, &str) = ("group", Type::Boolean, "One per kind and group, the newest.");

macro_rules! calls {
    ($($id:literal $method:ident $path:literal $says:literal, $query:expr, $headers:expr, $body:expr, $answer:expr;)*) => {
        pub(crate) const CALLS: &[Entry] = &[$(Entry {
            id: $id, method: HttpMethod::$method, path: $path, says: $says, query: $query,
            headers: $headers, body: $body, answer: $answer,
        },)*];
    };
}

calls! {
    "record" Post "/v1/users/{user}/history" "Marks of one user: one, or an array.",
        WRITE_QUERY, WRITE_HEADERS, Some((JSON, "Marks")), ("200", Some((JSON, "Written")));
    "recordBatch" Post "/v1/history:batch" "Marks of many users (service).",
        BATCH_QUERY, WRITE_HEADERS, Some((JSON, "Batch")), ("200", Some((JSON, "BatchWritten")));
    "merge" Post "/v1/users/{user}/history:merge" "Marks kept offline on a device; no reward.",
        WRITE_QUERY, WRITE_HEADERS, Some((JSON, "Marks")), ("200", Some((JSON, "Written")));
    "list" Get "/v1/users/{user}/history" "Rows, newest first.",
        &[KIND, ("limit", Type::Integer, "1 to 100; 20 if not said."),
          ("cursor", Type::String, "As an earlier answer gave it, with the same filters."),
          ("page", Type::Integer, "From 1; answered with the total. Not together with cursor."),
          AFTER, BEFORE, UNFINISHED, GROUP, ("enrich", Type::Boolean, "With titles and covers.")],
        NO_HEADERS, None, ("200", Some((JSON, "List")));
    "count" Get "/v1/users/{user}/history/count" "How many rows, exactly.",
        &[KIND, AFTER, BEFORE, UNFINISHED, GROUP], NO_HEADERS, None, ("200", Some((JSON, "Count")));
    "days" Get "/v1/users/{user}/history/days" "How many rows on each day, newest first.",
        &[KIND, AFTER, BEFORE, UNFINISHED], NO_HEADERS, None, ("200", Some((JSON, "Days")));
    "progress" Get "/v1/users/{user}/progress/{kind}/{id}" "One row, or that there is none.",
        &[("part", Type::String, "That part only.")], NO_HEADERS, None, ("200", Some((JSON, "Progress")));
    "progressByQuery" Get "/v1/users/{user}/progress" "The same, for ids that a path holds badly.",
        &[("kind", Type::String, "Required."), ("id", Type::String, "Required."),
          ("part", Type::String, "That part only.")],
        NO_HEADERS, None, ("200", Some((JSON, "Progress")));
    "progressBatch" Post "/v1/users/{user}/progress:batchGet" "Up to 1,000 rows, in order.",
        NO_QUERY, NO_HEADERS, Some((JSON, "Keys")), ("200", Some((JSON, "ProgressList")));
    "delete" Delete "/v1/users/{user}/history/{kind}/{id}" "Removes one row; also when absent.",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "deleteMany" Post "/v1/users/{user}/history:delete" "Removes up to 1,000 rows.",
        NO_QUERY, NO_HEADERS, Some((JSON, "Keys")), ("200", Some((JSON, "Deleted")));
    "clear" Delete "/v1/users/{user}/history" "Removes what a filter matches.",
        &[("all", Type::Boolean, "Everything, said on purpose."), ("kind", Type::String, "This kind."),
          ("id", Type::String, "This id."), AFTER, BEFORE,
          ("finished", Type::Boolean, "Only finished rows.")],
        NO_HEADERS, None, ("200", Some((JSON, "Deleted")));
    "settings" Get "/v1/users/{user}/history/settings" "Whether marks are recorded.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Settings")));
    "setSettings" Put "/v1/users/{user}/history/settings" "Switches recording on or off.",
        NO_QUERY, NO_HEADERS, Some((JSON, "Settings")), ("200", Some((JSON, "Settings")));
    "export" Get "/v1/users/{user}/history/export" "Everything, as lines; the first holds the facts.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((LINES, "Text")));
    "restore" Post "/v1/users/{user}/history:restore" "Puts an export back (service).",
        NO_QUERY, NO_HEADERS, Some((LINES, "Text")), ("200", Some((JSON, "Restored")));
    "postComment" Post "/v1/videos/{video}/danmaku" "A comment across a video. Hidden at once where it ranks below a full queue: see `state` and `reason`.",
        NO_QUERY, NO_HEADERS, Some((JSON, "NewComment")), ("201", Some((JSON, "PostedComment")));
    "comments" Get "/v1/videos/{video}/danmaku" "All that is shown; also as `danmaku.json`, `.xml`, `.ass`.",
        NO_QUERY, ETAG_HEADERS, None, ("200", Some((JSON, "Comments")));
    "commentsJson" Get "/v1/videos/{video}/danmaku.json" "All that is shown, in JSON.",
        NO_QUERY, ETAG_HEADERS, None, ("200", Some((JSON, "Comments")));
    "commentsXml" Get "/v1/videos/{video}/danmaku.xml" "All that is shown, in XML.",
        NO_QUERY, ETAG_HEADERS, None, ("200", Some(("application/xml", "Text")));
    "commentsAss" Get "/v1/videos/{video}/danmaku.ass" "All that is shown, as subtitles.",
        NO_QUERY, ETAG_HEADERS, None, ("200", Some(("text/x-ssa", "Text")));
    "segment" Get "/v1/videos/{video}/danmaku/segments/{n}" "Six minutes, from 1: `1.json`, `1.pb`, `1.xml`, `1.ass`, or by `Accept`.",
        NO_QUERY, ETAG_HEADERS, None, ("200", Some((JSON, "Comments")));
    "smartSegment" Get "/v1/videos/{video}/danmaku/segments/{n}.smart" "A viewer's flags, then the segment: four bytes of length (big-endian), the flags as JSON, the XML in gzip; where protobuf is accepted, one message whose field 3 is the flags.",
        &[("user", Type::String, "Whose flags, for who may read that user; the caller's own if not said.")],
        NO_HEADERS, None, ("200", Some(("application/octet-stream", "Text")));
    "special" Get "/v1/videos/{video}/danmaku/special/{pack}" "Scripts and BAS, which are never run here: `1.pb` and on.",
        NO_QUERY, NO_HEADERS, None, ("200", Some(("application/x-protobuf", "Text")));
    "video" Get "/v1/videos/{video}/danmaku/view" "Figures and settings of a video.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Video")));
    "setVideo" Put "/v1/videos/{video}/danmaku/settings" "Settings of a video (its owner, moderators, services).",
        NO_QUERY, NO_HEADERS, Some((JSON, "VideoSettings")), ("200", Some((JSON, "Video")));
    "filters" Get "/v1/videos/{video}/danmaku/filters" "What its owner does not want to see (as above).",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Filters")));
    "setFilters" Put "/v1/videos/{video}/danmaku/filters" "Sets it; the list is what others exchange as well.",
        LENIENT, NO_HEADERS, Some((JSON, "Filters")), ("204", None);
    "importComments" Post "/v1/videos/{video}/danmaku:import" "Comments of a file, whatever the limit; twice changes nothing (as above).",
        &[("format", Type::String, "As the command line names it; found out if not said.")],
        NO_HEADERS, Some(("application/octet-stream", "Text")), ("200", Some((JSON, "Imported")));
    "changeComment" Patch "/v1/videos/{video}/danmaku/{id}" "Protects, recommends, hides, blocks, restores or moves a comment (as above).",
        NO_QUERY, NO_HEADERS, Some((JSON, "CommentChange")), ("200", Some((JSON, "ChangedComment")));
    "hiddenComments" Get "/v1/videos/{video}/danmaku/hidden" "What of a video is hidden for another reason than room, by where in the video (its owner, moderators, services, admins).",
        &[("after", Type::String, "`next` of the page before."), ("limit", Type::Integer, "1 to 100; 100 if not said.")],
        NO_HEADERS, None, ("200", Some((JSON, "HiddenComments")));
    "removeComment" Delete "/v1/videos/{video}/danmaku/{id}" "By its writer within two minutes: taken back. By the owner or a moderator: hidden.",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "likeComment" Post "/v1/videos/{video}/danmaku/{id}/like" "Once; again changes nothing.",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "reportComment" Post "/v1/videos/{video}/danmaku/{id}/report" "Once; again changes nothing. Enough of them hide it until somebody has looked.",
        NO_QUERY, NO_HEADERS, Some((JSON, "CommentReport")), ("204", None);
    "ownComments" Get "/v1/users/{user}/danmaku" "A user's own comments of a video, newest first, with what became of them.",
        &[("video", Type::String, "Required."), ("below", Type::String, "The id of the last one of the page before."),
          ("limit", Type::Integer, "1 to 100; 100 if not said.")],
        NO_HEADERS, None, ("200", Some((JSON, "OwnComments")));
    "viewerFilters" Get "/v1/users/{user}/danmaku/filters" "What a viewer does not want to see.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Filters")));
    "setViewerFilters" Put "/v1/users/{user}/danmaku/filters" "Sets it; the list is what others exchange as well.",
        LENIENT, NO_HEADERS, Some((JSON, "Filters")), ("204", None);
    "siteFilters" Get "/v1/danmaku/filters" "What no viewer may post under any video (moderators, services, admins).",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Filters")));
    "setSiteFilters" Put "/v1/danmaku/filters" "Sets it; the list is what others exchange as well (as above).",
        LENIENT, NO_HEADERS, Some((JSON, "Filters")), ("204", None);
    "work" Get "/v1/works/{work}/danmaku" "How many comments the videos of a work have together; which these are says `work` in the catalogue. Some minutes behind.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Work")));
    "review" Get "/v1/danmaku/review" "Comments that wait for somebody to look at them, or that reports have hidden, of all videos (moderators, services, admins). Some minutes behind.",
        &[("after", Type::String, "`next` of the page before."), ("limit", Type::Integer, "1 to 100; 100 if not said.")],
        NO_HEADERS, None, ("200", Some((JSON, "Review")));
    "undo" Post "/v1/danmaku/audit:undo" "Puts back what was there before a record of topic `danmaku-audit`, where nobody has changed it since; 409 else. For who may do the thing itself.",
        NO_QUERY, NO_HEADERS, Some((JSON, "AuditPlace")), ("204", None);
    "setFlags" Put "/v1/users/{user}/danmaku/flags" "A model's flags of one segment for a viewer: `{\"default\":f,\"flags\":[[\"id\",flag],…]}`, which go out as they came in front of `segments/{n}.smart`.",
        &[("video", Type::String, "Required."), ("segment", Type::Integer, "Required, from 1.")],
        NO_HEADERS, Some((JSON, "Object")), ("204", None);
    "putFlags" Post "/v1/danmaku/flags:batch" "A model's flags for many viewers (service), a line each: `{\"user\",\"video\",\"segment\",\"flags\":{…}}`, the flags as above. The same lines may be written to topic `danmaku-flags`.",
        NO_QUERY, NO_HEADERS, Some((LINES, "Text")), ("200", Some((JSON, "FlagsPut")));
    "dplayer" Get "/players/dplayer/v3/" "What DPlayer asks for, with `api: '/players/dplayer/'`.",
        &[("id", Type::String, "The video."), ("max", Type::Integer, "At most so many.")],
        NO_HEADERS, None, ("200", Some((JSON, "Object")));
    "dplayerPost" Post "/players/dplayer/v3/" "What DPlayer sends; `token` is a bearer token.",
        NO_QUERY, NO_HEADERS, Some((JSON, "Object")), ("200", Some((JSON, "Object")));
    "artplayer" Get "/players/artplayer/{video}" "What artplayer-plugin-danmuku asks for: the video and `.json` or `.xml`.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Object")));
    "erase" Delete "/v1/users/{user}" "Removes everything about the user.",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "putItem" Put "/v1/items/{kind}/{id}" "What is known of an object (service).",
        NO_QUERY, NO_HEADERS, Some((JSON, "Item")), ("204", None);
    "getItem" Get "/v1/items/{kind}/{id}" "What is known of an object.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "KeyedItem")));
    "putItems" Post "/v1/items:batch" "What is known of many objects (service).",
        NO_QUERY, NO_HEADERS, Some((JSON, "Items")), ("200", Some((JSON, "Stored")));
    "topics" Get "/v1/topics" "All topics, by name.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Topics")));
    "topic" Get "/v1/topics/{topic}" "One topic.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Topic")));
    "readers" Get "/v1/topics/{topic}/readers" "Who follows the topic over this server's connections: up to 1,000, the oldest first.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "TopicReaders")));
    "createTopic" Put "/v1/topics/{topic}" "Makes a topic, or derives one from another (service).",
        NO_QUERY, NO_HEADERS, Some((JSON, "NewTopic")), ("201", Some((JSON, "Topic")));
    "deleteTopic" Delete "/v1/topics/{topic}" "Removes a topic and its records (service).",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "produce" Post "/v1/topics/{topic}/records" "Adds records; durable when answered (service).",
        NO_QUERY, NO_HEADERS, Some((JSON, "NewRecords")), ("200", Some((JSON, "Positions")));
    "fetch" Get "/v1/topics/{topic}/records" "Records of one partition, by long poll (service): a line each, then what the answer covers.",
        &[("partition", Type::Integer, "0 if not said."),
          ("from", Type::String, "`earliest` (default), `latest`, a position, `after:` and a position, or milliseconds since the epoch."),
          ("limit", Type::Integer, "1 to 10,000; 100 if not said."),
          ("wait_ms", Type::Integer, "How long to wait for a record; at most 60,000. Where all that come are left out, the answer comes sooner and says how far it covers.")],
        NO_HEADERS, None, ("200", Some((LINES, "Text")));
    "metaSubtrees" Get "/v1/meta/subtrees" "The subtrees of the metadata tree, by path (service).",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "MetaSubtrees")));
    "metaNode" Get "/v1/meta/nodes" "A node of the metadata tree and a page of its children (service). Changes are made over gRPC.",
        &[("path", Type::String, "`/` if not said."),
          ("after", Type::String, "The name of the child after which the page begins."),
          ("limit", Type::Integer, "Children, 1 to 1,000; 100 if not said.")],
        NO_HEADERS, None, ("200", Some((JSON, "MetaPage")));
    "checkpoints" Get "/v1/topics/{topic}/checkpoints" "Consumers of a topic that have their places kept, where each goes on, and how far that is from the end; and who owns a partition by a lease.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Checkpoints")));
    "checkpoint" Get "/v1/topics/{topic}/checkpoints/{consumer}" "One of them.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Checkpoint")));
    "keepCheckpoint" Put "/v1/topics/{topic}/checkpoints/{consumer}" "Keeps where a consumer goes on (service); durable when answered. Partitions that are not named stay; one that would go back is refused (409).",
        NO_QUERY, NO_HEADERS, Some((JSON, "Checkpoint")), ("204", None);
    "forgetCheckpoint" Delete "/v1/topics/{topic}/checkpoints/{consumer}" "Forgets it; the consumer begins anew (service).",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "live" Get "/v1/live" "A WebSocket for heartbeats up and what happens down: frames in JSON \
        (subprotocol `tideline.v1.json`, the default) or protobuf (`tideline.v1.pb`).",
        &[("ticket", Type::String, "Where a header cannot be set.")],
        NO_HEADERS, None, ("101", None);
    "ticket" Post "/v1/tickets" "A ticket in the caller's name: for one call, within 60 s, as `?ticket=`.",
        NO_QUERY, NO_HEADERS, None, ("201", Some((JSON, "Ticket")));
    "tokens" Get "/v1/tokens" "All tokens, without their text (admin).",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Tokens")));
    "makeToken" Post "/v1/tokens" "Makes a token; its text is shown once (admin).",
        NO_QUERY, NO_HEADERS, Some((JSON, "NewToken")), ("201", Some((JSON, "Token")));
    "revokeToken" Delete "/v1/tokens/{id}" "Takes a token back (admin).",
        NO_QUERY, NO_HEADERS, None, ("204", None);
    "users" Get "/v1/users" "Every user there is, a line each (service).",
        NO_QUERY, NO_HEADERS, None, ("200", Some((LINES, "UserLine")));
    "backup" Post "/v1/backup" "Writes a copy of everything into a folder of the server's machine (admin).",
        NO_QUERY, NO_HEADERS, Some((JSON, "BackupTo")), ("200", Some((JSON, "BackupTo")));
    "healthz" Get "/healthz" "The process answers.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Object")));
    "readyz" Get "/readyz" "Writes are taken; else 503.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Object")));
    "metrics" Get "/metrics" "In the text format of Prometheus.",
        NO_QUERY, NO_HEADERS, None, ("200", Some(("text/plain", "Text")));
    "openapi" Get "/openapi.json" "This document.",
        NO_QUERY, NO_HEADERS, None, ("200", Some((JSON, "Object")));
}
