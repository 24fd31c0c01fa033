//! What can be configured, as plain typed fields.
//!
//! The defaults live in `config.default.toml` at the root of the project and
//! nowhere else: [`load`] reads them from there, then lays a file, the
//! environment and flags over them. Knows nothing of what the values do.

mod layers;
mod nearest;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use layers::{ConfigError, Sources, load, merged, parse};

/// The text of `config.default.toml`: the manual and the defaults.
pub const DEFAULT_TEXT: &str = include_str!("../../../../config.default.toml");

/// Everything, with units in the names. `config.default.toml` says what each
/// field does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Config {
    pub data: PathBuf,
    pub server: Server,
    pub logging: Logging,
    pub auth: Auth,
    pub limits: Limits,
    pub log: Log,
    pub queue: Queue,
    pub history: History,
    pub danmaku: Danmaku,
    pub meta: Meta,
    pub catalogue: Catalogue,
}

/// `[server]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Server {
    pub http: String,
    pub grpc: String,
    pub cors_origins: Vec<String>,
    pub body_bytes_max: usize,
    pub requests_max: usize,
    pub connections_max: usize,
    pub deadline_ms: u64,
    pub head_ms: u64,
    pub stop_ms: u64,
}

/// `[meta]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Meta {
    pub partitions: u16,
    pub rest_bytes: u64,
    pub rest_after_ms: u64,
}

/// `[danmaku]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Danmaku {
    pub public_read: bool,
    pub limit_scope: LimitScope,
    pub limit: u32,
    pub segment_minutes: u32,
    pub recall_seconds: u32,
    pub report_threshold: u32,
    pub sender_per_minute: u32,
    pub sender_per_day: u32,
    pub hot_budget_bytes: u64,
    pub flush_after_ms: u64,
    pub batch_ms: u64,
    pub bodies_bytes_max: u64,
    pub hook: Hook,
}

/// `[danmaku.hook]`; an empty address stands for nobody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Hook {
    pub url: String,
    pub token_file: PathBuf,
    pub deadline_ms: u64,
    pub batch_max: usize,
    pub in_flight_max: usize,
    pub waiting_max: usize,
    pub on_failure: OnFailure,
}

/// What becomes of comments when nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum OnFailure {
    Hold,
    Pass,
}

/// What the limit of a video is shared out over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LimitScope {
    Video,
    Segment,
}

/// `[logging]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Logging {
    pub level: String,
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[auth]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Auth {
    pub mode: AuthMode,
    pub jwt: Jwt,
}

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// `None` on loopback addresses, else `Token`.
    Auto,
    /// Everybody, on a loopback address only.
    None,
    /// Tokens made by `tideline token`.
    Token,
    /// Tokens signed by somebody else.
    Jwt,
}

/// `[auth.jwt]`; empty texts stand for "not set".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Jwt {
    pub algorithm: String,
    pub key_file: PathBuf,
    pub jwks_url: String,
    pub issuer: String,
    pub audience: String,
    pub roles_claim: String,
    pub service_role: String,
    pub moderator_role: String,
    pub admin_role: String,
    pub leeway_seconds: u32,
    pub jwks_pause_ms: u64,
}

/// `[limits]`; 0 stands for no limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Limits {
    pub user_writes_per_second: u32,
    pub user_reads_per_second: u32,
    pub caller_requests_per_second: u32,
    pub method_requests_per_second: u32,
    pub burst_seconds: u32,
    pub buckets_max: usize,
    pub methods: BTreeMap<String, Rate>,
}

/// `[limits.methods.<method>]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Rate {
    pub user_per_second: u32,
    pub caller_per_second: u32,
    pub method_per_second: u32,
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Log {
    pub max_bytes: u64,
}

/// `[queue]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Queue {
    pub partitions: u16,
    pub retention_hours: u32,
}

/// `[history]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct History {
    pub timezone: String,
    pub hot_budget_bytes: u64,
    pub fast_window_ms: u64,
    pub flush_after_ms: u64,
    pub erase_hours: u32,
    pub daily_first: DailyFirst,
    pub kinds: BTreeMap<String, Kind>,
}

/// `[history.daily_first]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DailyFirst {
    pub kinds: Vec<String>,
}

/// `[history.kinds.<kind>]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Kind {
    pub retention_days: u32,
    pub max_records: u32,
    pub max_per_day: u32,
    pub declared: bool,
}

/// `[catalogue]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Catalogue {
    pub cache_bytes: u64,
    pub enrich_ms: u64,
    pub sources: BTreeMap<String, Source>,
}

/// `[catalogue.sources.<kind>]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Source {
    pub url: String,
    pub token_file: PathBuf,
    pub batch_max: usize,
    pub in_flight_max: usize,
    pub timeout_ms: u64,
    pub ttl_seconds: u64,
    pub negative_ttl_seconds: u64,
}
