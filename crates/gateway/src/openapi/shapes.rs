//! The shapes that requests and answers carry, for the API document alone.
#![allow(dead_code, reason = "described, never made")]

use utoipa::ToSchema;
use utoipa::openapi::ComponentsBuilder;

/// One thing a user did to one object.
#[derive(ToSchema)]
struct Mark {
    /// Whose; only in `history:batch`.
    user: Option<String>,
    /// A declared kind.
    kind: String,
    /// Which object: 1 to 64 bytes. A number is taken and kept exactly.
    id: String,
    /// Which part of it: 1 to 64 bytes.
    part: Option<String>,
    /// How far.
    position_ms: Option<u64>,
    /// Of how much; 0 is none.
    duration_ms: Option<u64>,
    /// When, in ms since the Unix epoch; greater than 0, once put right by
    /// `x-client-now-ms`.
    event_ms: Option<i64>,
    /// Where: 1 to 64 bytes.
    device: Option<String>,
    /// Of which group: 1 to 64 bytes.
    group: Option<String>,
    /// Declared finished; `false` says nothing.
    finished: Option<bool>,
    /// Your name for this mark, for retries: 1 to 64 bytes.
    event_id: Option<String>,
}

/// One mark, or an array of at most 10,000.
#[derive(ToSchema)]
#[serde(untagged)]
enum Marks {
    One(Mark),
    Many(Vec<Mark>),
}

/// Marks of many users; or one mark a line, as `application/x-ndjson`.
#[derive(ToSchema)]
struct Batch {
    marks: Vec<Mark>,
}

/// A mark that was refused.
#[derive(ToSchema)]
struct Rejected {
    /// Its place in the request, from 0.
    index: u32,
    /// The stable code.
    code: String,
    /// Which field, which limit.
    detail: String,
}

/// Counts that add up to what was sent.
#[derive(ToSchema)]
struct Written {
    accepted: u32,
    stale: u32,
    paused: u32,
    duplicate: u32,
    over_cap: u32,
    rejected: Vec<Rejected>,
    /// Opaque; may be sent back in `x-day-flag`.
    day_flag: String,
    /// Kinds of which the first mark of the user's day was among these.
    first_today: Vec<String>,
}

/// The first mark of a kind in a user's day.
#[derive(ToSchema)]
struct First {
    user: String,
    kind: String,
}

/// Counts that add up to what was sent.
#[derive(ToSchema)]
struct BatchWritten {
    accepted: u32,
    stale: u32,
    paused: u32,
    duplicate: u32,
    over_cap: u32,
    rejected: Vec<Rejected>,
    day_flag: String,
    first_today: Vec<First>,
}

/// A row; with `enrich=true`, what the catalogue knows stands beside.
#[derive(ToSchema)]
struct Row {
    kind: String,
    id: String,
    part: Option<String>,
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    /// 0 to 100, rounded down; null without a position or a duration.
    percent: Option<u8>,
    event_ms: i64,
    device: Option<String>,
    group: Option<String>,
    finished: bool,
    plays: u32,
    title: Option<String>,
    cover: Option<String>,
    url: Option<String>,
    work: Option<String>,
    owner: Option<String>,
    order: Option<i64>,
    /// The catalogue's duration.
    item_duration_ms: Option<u64>,
}

/// A page of rows, newest first.
#[derive(ToSchema)]
struct List {
    items: Vec<Row>,
    /// Where to go on, with the same filters; null at the end.
    next_cursor: Option<String>,
    /// All rows of the filter, where `page` was asked for.
    total: Option<u64>,
    /// True if something from the catalogue came too late and was left out.
    partial: Option<bool>,
}

/// How many.
#[derive(ToSchema)]
struct Count {
    count: u64,
}

/// How many rows on one day.
#[derive(ToSchema)]
struct Day {
    /// As 2026-11-30, in the server's time zone.
    day: String,
    count: u64,
}

/// Days that have rows, newest first.
#[derive(ToSchema)]
struct Days(Vec<Day>);

/// A row, with `found` true; or `found` false, the kind and the id.
#[derive(ToSchema)]
struct Progress {
    found: bool,
    kind: String,
    id: String,
    part: Option<String>,
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    percent: Option<u8>,
    event_ms: Option<i64>,
    device: Option<String>,
    group: Option<String>,
    finished: Option<bool>,
    plays: Option<u32>,
}

/// In the order of the keys.
#[derive(ToSchema)]
struct ProgressList {
    items: Vec<Progress>,
}

/// One object.
#[derive(ToSchema)]
struct Key {
    kind: String,
    id: String,
    /// That part only.
    part: Option<String>,
}

/// At most 1,000.
#[derive(ToSchema)]
struct Keys {
    keys: Vec<Key>,
}

/// Rows that were shown before.
#[derive(ToSchema)]
struct Deleted {
    deleted: u64,
}

/// A user's switches.
#[derive(ToSchema)]
struct Settings {
    /// Whether marks are recorded.
    recording: bool,
}

/// What became of an export's rows.
#[derive(ToSchema)]
struct Restored {
    accepted: u64,
    stale: u64,
}

/// What is known of an object.
#[derive(ToSchema)]
struct Item {
    /// At most 256 characters.
    title: Option<String>,
    cover: Option<String>,
    url: Option<String>,
    group: Option<String>,
    work: Option<String>,
    owner: Option<String>,
    duration_ms: Option<u64>,
    order: Option<i64>,
}

/// An item and its object.
#[derive(ToSchema)]
struct KeyedItem {
    kind: String,
    id: String,
    #[serde(flatten)]
    item: Item,
}

/// At most 10,000.
#[derive(ToSchema)]
struct Items {
    items: Vec<KeyedItem>,
}

/// How many items were put.
#[derive(ToSchema)]
struct Stored {
    stored: u64,
}

/// What a partition holds.
#[derive(ToSchema)]
struct PartitionBounds {
    partition: u16,
    epoch: u32,
    /// The first number that can be read.
    start: u64,
    /// The last number that survives power loss.
    synced: u64,
}

/// A topic as it is.
#[derive(ToSchema)]
struct Topic {
    name: String,
    incarnation: u64,
    partitions: u16,
    /// `source` or `derived`.
    kind: String,
    source: Option<String>,
    /// What declares the operator of a derived topic.
    operator: Option<Operator>,
    read_only: bool,
    retention_ms: u64,
    bounds: Vec<PartitionBounds>,
}

/// All topics, by name.
#[derive(ToSchema)]
struct Topics {
    topics: Vec<Topic>,
}

/// Who follows a topic.
#[derive(ToSchema)]
struct TopicReaders {
    readers: Vec<TopicReader>,
    /// There are more than these.
    more: bool,
}

/// One open subscription.
#[derive(ToSchema)]
struct TopicReader {
    partition: u16,
    /// The id of a token, a `sub`, or `anyone`.
    caller: String,
    since_ms: i64,
    /// The last number it was handed; 0 before the first.
    covered: u64,
    /// Records on disk beyond that.
    behind: u64,
    /// Bytes it was handed.
    bytes: u64,
}

/// A topic to be.
#[derive(ToSchema)]
struct NewTopic {
    /// 1 to 1024; fixed from then on.
    partitions: Option<u16>,
    retention_hours: Option<u32>,
    /// The topic that it is derived from; it has its partitions and retention.
    source: Option<String>,
    /// Another one for a topic that is there takes effect at the next record of
    /// each partition.
    operator: Option<Operator>,
    /// `skip` (a record that says why) or `halt`.
    on_error: Option<String>,
}

/// What a derived topic keeps of each record, and makes of it. Expressions are
/// in CEL, over `key`, `value`, `time_ms` and `seq`.
#[derive(ToSchema)]
struct Operator {
    /// Records whose value has this kind.
    kind: Option<String>,
    sample: Option<Sample>,
    /// Records for which this is true.
    filter: Option<String>,
    /// The key that is handed on.
    key: Option<String>,
    /// The value: an expression, or one for each field.
    value: Option<std::collections::HashMap<String, String>>,
    counter: Option<Counter>,
    /// Hands on `{"set": ...}` with the value of this.
    set: Option<String>,
}

/// One key in so many.
#[derive(ToSchema)]
struct Sample {
    one_in: u64,
}

/// Hands on `{"add": n}` with the number of this.
#[derive(ToSchema)]
struct Counter {
    add: String,
}

/// A record to be: `value` as text, or `value_base64`.
#[derive(ToSchema)]
struct NewRecord {
    /// Chooses the partition, where none is named.
    key: Option<String>,
    value: Option<String>,
    value_base64: Option<String>,
}

/// Records to be.
#[derive(ToSchema)]
struct NewRecords {
    partition: Option<u16>,
    records: Vec<NewRecord>,
}

/// Where a consumer goes on.
#[derive(ToSchema)]
struct Checkpoint {
    /// In answers.
    consumer: Option<String>,
    partitions: Vec<CheckpointPlace>,
}

/// Where it goes on in one partition.
#[derive(ToSchema)]
struct CheckpointPlace {
    partition: u16,
    /// incarnation-epoch-seq of the record that is next: what `covered.to` says.
    next: String,
    /// In answers: how many numbers come from there to the end.
    lag: Option<u64>,
}

/// Every consumer of a topic, and who owns a partition of it.
#[derive(ToSchema)]
struct Checkpoints {
    checkpoints: Vec<Checkpoint>,
    owners: Vec<Owner>,
}

/// Who writes a partition by a lease.
#[derive(ToSchema)]
struct Owner {
    owner: String,
    partition: u16,
    /// Grows from each owner to the next.
    token: u64,
}

/// Where the records stand, in order, each as incarnation-epoch-seq.
#[derive(ToSchema)]
struct Positions {
    positions: Vec<String>,
}

/// The subtrees of the metadata tree.
#[derive(ToSchema)]
struct MetaSubtrees {
    subtrees: Vec<MetaSubtree>,
}

/// A part of the metadata tree with numbers of its own.
#[derive(ToSchema)]
struct MetaSubtree {
    path: String,
    incarnation: u64,
    /// The last change that is on disk.
    seq: u64,
    /// Its root not counted.
    nodes: u64,
    bytes: u64,
    sessions: u64,
    /// Observers that wait for a change.
    observers: u64,
}

/// A node, if it is there, and children of it.
#[derive(ToSchema)]
struct MetaPage {
    /// The root of its subtree.
    subtree: String,
    /// Where the subtree was, as incarnation-epoch-seq.
    at: String,
    node: Option<MetaNode>,
    /// By name, without their values.
    children: Vec<MetaNode>,
    /// There are children after the last of these.
    more: bool,
}

/// A node: `value` where it is text, else `value_base64`.
#[derive(ToSchema)]
struct MetaNode {
    path: String,
    created: u64,
    modified: u64,
    children: u32,
    ephemeral: bool,
    /// Of the value.
    bytes: u64,
    value: Option<String>,
    value_base64: Option<String>,
}

/// A ticket for one call within a minute.
#[derive(ToSchema)]
struct Ticket {
    ticket: String,
    good_ms: u64,
}

/// A token to be.
#[derive(ToSchema)]
struct NewToken {
    /// `admin`, `service`, `moderator`, `read`, `user:<id>`.
    scopes: Vec<String>,
    note: Option<String>,
    until_ms: Option<i64>,
}

/// A token; its text only when it is made.
#[derive(ToSchema)]
struct Token {
    token: Option<String>,
    id: String,
    scopes: Vec<String>,
    note: String,
    made_ms: i64,
    until_ms: Option<i64>,
}

/// All tokens, without their text.
#[derive(ToSchema)]
struct Tokens {
    tokens: Vec<Token>,
}

/// A user.
#[derive(ToSchema)]
struct UserLine {
    user: String,
}

/// Where a backup goes.
#[derive(ToSchema)]
struct BackupTo {
    /// An absolute path; the folder must be empty, or not there.
    into: String,
}

/// An answer that is no success (RFC 9457).
#[derive(ToSchema)]
struct Problem {
    r#type: String,
    title: String,
    status: u16,
    /// Stable: `invalid_argument`, `unknown_kind`, `not_found`, …
    code: String,
    /// The field and the limit.
    detail: String,
    /// For 429: `method`, `caller` or `user`.
    limit: Option<String>,
}

pub(super) fn add(components: ComponentsBuilder) -> ComponentsBuilder {
    macro_rules! all {
        ($($shape:ident)*) => { components$(.schema_from::<$shape>())* };
    }
    all!(
        Mark Marks Batch Rejected Written First BatchWritten Row List Count Day Days Progress
        ProgressList Key Keys Deleted Settings Restored Item KeyedItem Items Stored PartitionBounds
        Topic Topics TopicReader TopicReaders NewTopic Operator Sample Counter NewRecord NewRecords Checkpoint CheckpointPlace Checkpoints Owner Positions MetaSubtrees MetaSubtree MetaPage MetaNode Ticket NewToken Token Tokens UserLine BackupTo
        Problem
    )
}
