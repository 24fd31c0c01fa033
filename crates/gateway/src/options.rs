//! What an operator may set about the faces.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Addresses and bounds of the faces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerOptions {
    /// Where HTTP and WebSocket listen.
    pub http: SocketAddr,
    /// Where gRPC listens.
    pub grpc: SocketAddr,
    /// Origins that browsers may call from, as `https://app.example`, or `*`.
    /// None named = those of this machine alone (loopback, any port).
    pub cors_origins: Vec<String>,
    /// Bytes in the body of an HTTP request or a gRPC message; at most 8 MiB.
    pub body_bytes_max: usize,
    /// Calls under way at once, over all faces; more are answered 503.
    pub requests_max: usize,
    /// Connections at once, on each face; more wait to be accepted.
    pub connections_max: usize,
    /// A call that takes longer is answered 504; long polls have this beyond
    /// their own wait. In ms.
    pub deadline_ms: u64,
    /// How long a client may take to send the head of a request, in ms.
    pub head_ms: u64,
    /// How long calls under way may take to end when the server stops, in ms.
    pub stop_ms: u64,
    /// How long a list waits for titles and covers before it goes without, in
    /// ms.
    pub enrich_ms: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            http: SocketAddr::from(([127, 0, 0, 1], 7766)),
            grpc: SocketAddr::from(([127, 0, 0, 1], 7767)),
            cors_origins: Vec::new(),
            body_bytes_max: tideline_types::limits::BODY_BYTES_MAX,
            requests_max: 4096,
            connections_max: 16_384,
            deadline_ms: 30_000,
            head_ms: 30_000,
            stop_ms: 10_000,
            enrich_ms: 150,
        }
    }
}

/// How callers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// `none` on a loopback address, else `token`.
    #[default]
    Auto,
    /// Everyone may do everything. Only on loopback addresses.
    None,
    /// Bearer tokens that the server made.
    Token,
    /// Bearer tokens that someone else signed.
    Jwt,
}

/// Who may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthOptions {
    /// How callers are told apart: `auto`, `none`, `token` or `jwt`.
    pub mode: AuthMode,
    /// Where mode is `jwt`.
    pub jwt: JwtOptions,
}

/// Algorithms that a key file may be for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JwtAlgorithm {
    /// A shared secret.
    #[default]
    HS256,
    /// An RSA public key, PEM.
    RS256,
    /// An Ed25519 public key, PEM.
    EdDSA,
}

/// Which signed tokens are good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtOptions {
    /// The algorithm of the key in `key_file`; a token that says another is
    /// refused.
    pub algorithm: JwtAlgorithm,
    /// A file that holds the secret (white space around it is cut) or the
    /// public key.
    pub key_file: Option<PathBuf>,
    /// Or an address that gives a JWKS (RSA and Ed25519 keys); read again when
    /// a token names a key that is not in it.
    pub jwks_url: Option<String>,
    /// If set, `iss` must be this.
    pub issuer: Option<String>,
    /// If set, `aud` must hold this.
    pub audience: Option<String>,
    /// The claim that lists roles: a string (words between spaces) or an
    /// array of strings.
    pub roles_claim: String,
    /// The role that makes a caller a service.
    pub service_role: String,
    /// The role that makes a caller a moderator.
    pub moderator_role: String,
    /// The role that makes a caller an administrator.
    pub admin_role: String,
    /// By how much clocks may differ, in seconds.
    pub leeway_seconds: u32,
    /// At least so long between two reads of the JWKS, in ms.
    pub jwks_pause_ms: u64,
}

impl Default for JwtOptions {
    fn default() -> Self {
        Self {
            algorithm: JwtAlgorithm::HS256,
            key_file: None,
            jwks_url: None,
            issuer: None,
            audience: None,
            roles_claim: "roles".into(),
            service_role: "service".into(),
            moderator_role: "moderator".into(),
            admin_role: "admin".into(),
            leeway_seconds: 60,
            jwks_pause_ms: 10_000,
        }
    }
}

/// Calls in a second; 0 = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateOptions {
    /// By everyone.
    pub method_per_second: u32,
    /// By one caller (a token, a `sub`).
    pub caller_per_second: u32,
    /// About one user.
    pub user_per_second: u32,
}

/// Limits of rate; each holds for one method at a time. 0 = no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Calls of one method that change one user, in a second.
    pub user_writes_per_second: u32,
    /// Calls of one method that read one user, in a second.
    pub user_reads_per_second: u32,
    /// Calls of one method by one caller (a token, a `sub`), in a second.
    pub caller_requests_per_second: u32,
    /// Calls of one method by everyone, in a second.
    pub method_requests_per_second: u32,
    /// After a rest, so many seconds' worth may come at once; at least 1.
    pub burst_seconds: u32,
    /// Other limits for a method, by its name as `/metrics` shows it
    /// (`history_list`).
    pub methods: BTreeMap<String, RateOptions>,
    /// Buckets kept in memory; the one that was idle longest goes first, and
    /// its caller starts afresh.
    pub buckets_max: usize,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self {
            user_writes_per_second: 5_000,
            user_reads_per_second: 5_000,
            caller_requests_per_second: 200_000,
            method_requests_per_second: 0,
            burst_seconds: 2,
            methods: BTreeMap::new(),
            buckets_max: 100_000,
        }
    }
}

impl LimitOptions {
    /// What holds for the method of that name.
    pub(crate) fn of(&self, name: &str, writes: bool) -> RateOptions {
        let user = if writes { self.user_writes_per_second } else { self.user_reads_per_second };
        let every = RateOptions {
            method_per_second: self.method_requests_per_second,
            caller_per_second: self.caller_requests_per_second,
            user_per_second: user,
        };
        self.methods.get(name).copied().unwrap_or(every)
    }
}

/// How comments are handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommentOptions {
    /// Whether who says no name may read comments.
    pub public_read: bool,
    /// The least time between two pushes of a room, in ms.
    pub batch_ms: u64,
    /// Comments of one viewer in a minute, and at once after a rest; 0 = no
    /// limit.
    pub sender_per_minute: u32,
    /// Bytes of ready bodies of segments in memory; an eighth more, at most
    /// 32 MiB, for those that are read often.
    pub bodies_bytes_max: u64,
    /// Who is asked about comments, if anyone; then they must wait for it, see
    /// `look_first` of danmaku.
    pub hook: Option<HookOptions>,
}

impl Default for CommentOptions {
    fn default() -> Self {
        Self {
            public_read: true,
            batch_ms: 100,
            sender_per_minute: 60,
            bodies_bytes_max: 256 << 20,
            hook: None,
        }
    }
}

/// Who is asked about each comment of a viewer before it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookOptions {
    /// Where to POST: http or https.
    pub url: String,
    /// Sent as `authorization: Bearer …`, if given. Never logged.
    pub token: Option<String>,
    /// A request that takes longer has failed.
    pub deadline: Duration,
    /// Comments in one request, at most.
    pub batch_max: usize,
    /// Requests at a time, at most.
    pub in_flight_max: usize,
    /// Comments that wait for a request in memory, at most; what is more is
    /// found again later.
    pub waiting_max: usize,
    /// What becomes of comments whose request failed.
    pub on_failure: OnFailure,
    /// How often it is looked for comments that wait and nobody asked about.
    pub look_every: Duration,
}

/// What becomes of comments when nobody says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// They wait for the next answer, or for a person.
    #[default]
    Hold,
    /// They are shown.
    Pass,
}

impl Default for HookOptions {
    fn default() -> Self {
        Self {
            url: String::new(),
            token: None,
            deadline: Duration::from_secs(2),
            batch_max: 50,
            in_flight_max: 4,
            waiting_max: 10_000,
            on_failure: OnFailure::Hold,
            look_every: Duration::from_secs(60),
        }
    }
}

impl std::fmt::Debug for HookOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookOptions")
            .field("deadline", &self.deadline)
            .field("batch_max", &self.batch_max)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// All that may be set about the faces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Addresses and bounds.
    pub server: ServerOptions,
    /// Who may call.
    pub auth: AuthOptions,
    /// How often.
    pub limits: LimitOptions,
    /// How comments are handed out.
    pub danmaku: CommentOptions,
}
