//! Every bound that a caller, a disk or a peer can run into, in one place.
//!
//! A bound that callers meet is answered with an error that names it; the
//! table in `docs/data-model.md` is held equal to this file by a test.

/// Bytes in a user id, at most.
pub const USER_BYTES_MAX: usize = 128;
/// Bytes in an id, part, group, device or `event_id`, at most.
pub const FIELD_BYTES_MAX: usize = 64;
/// Bytes in the name of a kind, at most.
pub const KIND_BYTES_MAX: usize = 32;
/// Declared kinds, at most, over the life of a data folder.
pub const KINDS_MAX: usize = 250;
/// Characters in a title, at most.
pub const TITLE_CHARS_MAX: usize = 256;
/// Bytes in a cover or page address, at most.
pub const URL_BYTES_MAX: usize = 2048;
/// Bytes in the body of an HTTP request, at most.
pub const BODY_BYTES_MAX: usize = 8 << 20;
/// Marks in one write, at most.
pub const BATCH_MARKS_MAX: usize = 10_000;
/// Keys in one batch read or delete, at most.
pub const BATCH_KEYS_MAX: usize = 1_000;
/// Bytes in one frame of a live connection, at most.
pub const LIVE_FRAME_BYTES_MAX: usize = 1 << 20;
/// Rows in one page of a list, at most.
pub const PAGE_ROWS_MAX: usize = 100;
/// The largest position or duration, in ms (about 285 years).
pub const LENGTH_MS_MAX: u64 = (1 << 53) - 1;
/// Fingerprints of retries that a row remembers.
pub const RETRIES_PER_ROW: usize = 8;
/// For how long a row remembers a fingerprint, in ms of the owner's time.
pub const RETRY_WINDOW_MS: i64 = crate::DAY_MS;
/// Deletes and clears that stand against one user at a time, at most.
pub const BLOCKS_PER_USER_MAX: usize = 16_384;
/// Recording intervals kept for one user, at most.
pub const PAUSES_PER_USER_MAX: usize = 1_024;
/// How long a delete stands where the kind has no retention, in days.
pub const BLOCK_DAYS_WITHOUT_RETENTION: i64 = 400;
/// How far ahead of the server's clock an event may be, in ms.
pub const AHEAD_MS_MAX: i64 = crate::DAY_MS;

/// Bytes in the id of a video, at most.
pub const VIDEO_BYTES_MAX: usize = 64;
/// The latest time of a comment in its video, in ms (24 days).
pub const PROGRESS_MS_MAX: u32 = i32::MAX as u32;
/// The greatest colour.
pub const COLOR_MAX: u32 = 0x00ff_ffff;
/// Characters (Unicode scalars) in a comment, at most; of a positioned one, in
/// what viewers read.
pub const COMMENT_CHARS_MAX: usize = 300;
/// Bytes in a positioned comment, at most.
pub const POSITIONED_BYTES_MAX: usize = 4 << 10;
/// Bytes in a script or BAS comment, at most.
pub const SPECIAL_BYTES_MAX: usize = 1_000_000;
/// Bytes in the `client_id` of a post, at most.
pub const CLIENT_ID_BYTES_MAX: usize = 64;
/// Comments of one video that are shown and count, at most, whatever is set.
pub const SHOWN_PER_VIDEO_MAX: u32 = 32_000;
/// Subtitles of one video, at most.
pub const SUBTITLES_PER_VIDEO_MAX: u32 = 32_000;
/// Script and BAS comments of one video, at most.
pub const SPECIALS_PER_VIDEO_MAX: u32 = 1_000;
/// Filters in one list, at most.
pub const FILTERS_MAX: usize = 5_000;
/// Bytes in one list of filters, at most: a record holds two, the one before
/// and the one after.
pub const FILTERS_BYTES_MAX: usize = 500_000;
/// Bytes in one filter, at most.
pub const FILTER_BYTES_MAX: usize = 1 << 10;
/// Changes that a video keeps for live rooms, at most.
pub const FEED_EVENTS_MAX: usize = 2_048;
/// Rows in one page of a user's own comments, at most.
pub const OWN_ROWS_MAX: usize = 100;
/// Comments in one import, at most.
pub const IMPORT_ITEMS_MAX: usize = 1_000;
/// Scores of segments that are set at a time for one viewer, at most.
pub const SCORES_MAX: usize = 1_000;
/// Scores of segments in one batch for many viewers, at most.
pub const SCORES_BATCH_MAX: usize = 10_000;
/// Bytes in the scores of a viewer and a segment, at most.
pub const SCORES_BYTES_MAX: usize = 64 << 10;
/// Bytes of texts in one import, at most.
pub const IMPORT_BYTES_MAX: usize = 4 << 20;

/// Bytes in a topic's name, at most.
pub const TOPIC_NAME_BYTES_MAX: usize = 64;
/// Partitions of a topic, at most.
pub const PARTITIONS_MAX: u16 = 1024;
/// Topics in a data folder, at most.
pub const TOPICS_MAX: usize = 1_000;
/// Bytes in the key of a record, at most.
pub const RECORD_KEY_BYTES_MAX: usize = 1 << 10;
/// Bytes in the value of a record, at most.
pub const RECORD_VALUE_BYTES_MAX: usize = 1 << 20;
/// Records in one batch of the log, at most.
pub const BATCH_RECORDS_MAX: usize = 65_536;
/// Bytes in one batch of the log, header and all, at most.
pub const BATCH_BYTES_MAX: usize = 8 << 20;
/// Records that an operator may make of one record, at most.
pub const DERIVED_RECORDS_MAX: usize = 1_000;
/// Bytes of keys and values that an operator may make of one record, at most.
pub const DERIVED_BYTES_MAX: usize = 1 << 20;
/// Derived topics, at most.
pub const DERIVED_TOPICS_MAX: usize = 1_000;
/// How many derived topics may stand one on the other, at most.
pub const DERIVED_DEPTH_MAX: usize = 8;
/// Versions of a derived topic's operator that are kept, at most.
pub const OPERATOR_VERSIONS_MAX: usize = 100;
/// Bytes of the text that declares an operator, at most.
pub const OPERATOR_BYTES_MAX: usize = 16 << 10;
/// Bytes in a key that a tier holds, at most.
pub const TIER_KEY_BYTES_MAX: usize = 500;
/// Hot keys of a partition of a tier, at most.
pub const TIER_HOT_KEYS_MAX: usize = 1_000;
/// Keys in one call to a tier, at most.
pub const TIER_CALL_KEYS_MAX: usize = 1_000;
/// Bytes of one piece of a tier's snapshot, from which on the next is begun.
pub const TIER_PIECE_BYTES: usize = 256 << 10;
/// Producers that a partition remembers, at most; who wrote longest ago is
/// forgotten first.
pub const PRODUCERS_MAX: usize = 1_024;
/// Batches of one producer that a partition remembers, at most: how many may be
/// under way at once.
pub const PRODUCER_RUNS_MAX: usize = 16;
/// Bytes of appended batches that wait to be written, at most.
pub const LOG_WAITING_BYTES_MAX: u64 = 64 << 20;
/// Bytes that one write of the log carries, at most (and one batch more).
pub const LOG_WRITE_BYTES_MAX: usize = 8 << 20;
/// Bytes of a journal file or a segment, from which on the next is begun.
pub const LOG_FILE_BYTES: u64 = 64 << 20;
/// Epochs that a stream remembers, at most.
pub const EPOCHS_KEPT_MAX: usize = 1_024;
/// Bytes of journal files that segments may lag behind, at most.
pub const UNFILLED_BYTES_MAX: u64 = 256 << 20;

/// Bytes in the partition key or the sort key of a table's row, at most.
pub const TABLE_KEY_BYTES_MAX: usize = 512;
/// Bytes in the value of a table's row, at most.
pub const TABLE_VALUE_BYTES_MAX: usize = 4 << 20;

/// Bytes in the name of a node of the metadata tree, at most.
pub const META_NAME_BYTES_MAX: usize = 255;
/// Bytes in a node's path, slashes and all, at most.
pub const META_PATH_BYTES_MAX: usize = 1 << 10;
/// Bytes in the path of a declared subtree, at most.
pub const META_ROOT_BYTES_MAX: usize = 256;
/// Bytes in a node's value, at most.
pub const META_VALUE_BYTES_MAX: usize = 512 << 10;
/// Operations in one transaction of a subtree, at most.
pub const META_TXN_OPS_MAX: usize = 128;
/// Bytes of paths and values in one transaction, at most.
pub const META_TXN_BYTES_MAX: usize = 640 << 10;
/// Children of one node, at most.
pub const META_CHILDREN_MAX: u32 = 100_000;
/// Nodes of a subtree, at most, whatever is declared.
pub const META_NODES_MAX: u64 = 1_000_000;
/// Bytes of a subtree, at most, whatever is declared.
pub const META_BYTES_MAX: u64 = 256 << 20;
/// What a node counts beside its path and value, in bytes.
pub const META_NODE_BYTES: u64 = 64;
/// Subtrees, at most.
pub const META_SUBTREES_MAX: u64 = 10_000;
/// Sessions of a subtree, at most.
pub const META_SESSIONS_MAX: usize = 10_000;
/// The shortest lease of a session, in ms.
pub const META_LEASE_MS_MIN: u32 = 500;
/// The longest lease of a session, in ms.
pub const META_LEASE_MS_MAX: u32 = 3_600_000;
/// Ephemeral nodes that go in one step when a session ends.
pub const META_CLOSE_NODES: usize = 500;
/// Writes with an operation id that a subtree remembers.
pub const META_RETRIES_KEPT: usize = 4_096;
/// Children in one answer, at most.
pub const META_LIST_MAX: usize = 1_000;
/// Bytes of their values in one answer, at most: with their paths it fits what
/// clients of gRPC take if nobody tells them otherwise, 4 MiB.
pub const META_LIST_BYTES_MAX: usize = 2 << 20;
/// Calls that wait in one partition of the tree, at most.
pub const META_WAITING_MAX: usize = 16_384;
/// Bytes of one subtree's recent changes that are kept for observers, at most.
pub const META_TAIL_BYTES_MAX: usize = 4 << 20;
/// Recent changes of one subtree that are kept for observers, at most.
pub const META_TAIL_MAX: usize = 16_384;
/// Bytes of a chunk of a snapshot, from which on the next is begun.
pub const META_CHUNK_BYTES: usize = 256 << 10;
/// Bytes of changes in one frame to an observer (and one change more).
pub const META_FRAME_BYTES: usize = 256 << 10;

/// Items of the catalogue that wait to be written, at most.
pub const ITEMS_WAITING_MAX: usize = 100_000;
/// Ids that wait for or are with one source of a kind, at most.
pub const SOURCE_IDS_MAX: usize = 10_000;
/// Ids in one request to a source, at most.
pub const SOURCE_BATCH_MAX: usize = 1_000;
/// Bytes in the answer of a source, at most.
pub const SOURCE_BODY_BYTES_MAX: usize = 8 << 20;

/// Bytes of one comment in a file that is imported, at most, with all that
/// belongs to it. Scripts of two megabytes exist.
pub const DANMAKU_ELEMENT_BYTES_MAX: usize = 4 << 20;

const _: () = assert!(SPECIAL_BYTES_MAX + RECORD_KEY_BYTES_MAX < RECORD_VALUE_BYTES_MAX);
const _: () = assert!(2 * FILTERS_BYTES_MAX + RECORD_KEY_BYTES_MAX < RECORD_VALUE_BYTES_MAX);
const _: () = assert!(SOURCE_BATCH_MAX <= SOURCE_IDS_MAX);
const _: () = assert!(RECORD_KEY_BYTES_MAX + RECORD_VALUE_BYTES_MAX < BATCH_BYTES_MAX);
const _: () = assert!(2 * LOG_FILE_BYTES + (LOG_WRITE_BYTES_MAX as u64) < UNFILLED_BYTES_MAX);
const _: () = assert!(BATCH_MARKS_MAX <= BATCH_RECORDS_MAX);
const _: () = assert!(TIER_KEY_BYTES_MAX + 2 <= TABLE_KEY_BYTES_MAX);
const _: () = assert!(TIER_HOT_KEYS_MAX * (TIER_KEY_BYTES_MAX + 4) < TABLE_VALUE_BYTES_MAX);
const _: () = assert!(META_VALUE_BYTES_MAX <= META_LIST_BYTES_MAX);
const _: () = assert!(META_LIST_BYTES_MAX + META_LIST_MAX * (META_PATH_BYTES_MAX + 64) < 4 << 20);
const _: () = assert!(META_ROOT_BYTES_MAX <= META_PATH_BYTES_MAX);
const _: () = assert!(META_ROOT_BYTES_MAX <= RECORD_KEY_BYTES_MAX);
const _: () = assert!(META_VALUE_BYTES_MAX + META_PATH_BYTES_MAX < META_TXN_BYTES_MAX);
const _: () = assert!(META_TXN_BYTES_MAX + 64 * META_TXN_OPS_MAX < RECORD_VALUE_BYTES_MAX);
const _: () = assert!(META_CLOSE_NODES * (META_PATH_BYTES_MAX + 8) < RECORD_VALUE_BYTES_MAX);
const _: () = assert!(META_CHUNK_BYTES + META_VALUE_BYTES_MAX + (8 << 10) < TABLE_VALUE_BYTES_MAX);
