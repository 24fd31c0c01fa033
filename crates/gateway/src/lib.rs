//! The faces of Tideline: HTTP for apps, gRPC for services.
//!
//! Read in this order: [`options`] (what an operator may set), `op` (the calls
//! there are), `http` and `grpc` (the faces), `intake` (marks on their way
//! in), `page` (lists on their way out), `auth` and `rates` (who may, and how
//! often), `problem` (errors; the only file that knows status codes), `serve`
//! (sockets, and the end of them).
//!
//! Knows none of history's rules, no file and no engine: it asks the handles
//! that it is given.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod auth;
mod comments;
mod export;
#[doc(hidden)]
pub mod fuzz;
mod grpc;
mod head_timer;
mod hook;
mod http;
mod intake;
mod join;
mod live;
mod meters;
mod op;
mod openapi;
pub mod options;
mod packing;
mod page;
mod player;
mod problem;
mod rates;
mod readers;
mod serve;
mod shelf;
mod tier;
mod topics;
mod tree;
mod uncopied;
mod within;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tideline_catalogue::Catalogue;
use tideline_danmaku::Danmaku;
use tideline_history::History;
use tideline_meta::Meta;
use tideline_queue::Queue;
use tideline_store::{Clock, Table};
use tideline_types::UserId;
use tideline_wire::Code;
use tokio::sync::watch;

pub use auth::{AuthError, BadKey, NewToken, TokenError, TokenInfo, Tokens};
pub use export::{BadExport, read_export, write_export};
pub use http::PageFile;
pub use openapi::document as openapi_document;
pub use options::Options;
pub use serve::{Bound, ServeError};
pub use tier::{BoundTier, bind_tier};

use auth::{Auth, Caller};
use meters::Meters;
use op::Op;
use problem::Problem;
use rates::Rates;

/// What stands behind the faces.
pub struct Parts {
    /// Users' history.
    pub history: History,
    /// Videos' comments.
    pub danmaku: Danmaku,
    /// Topics.
    pub queue: Queue,
    /// Titles, covers, groups.
    pub catalogue: Catalogue,
    /// Where tokens are kept.
    pub table: Arc<dyn Table>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// A setting with which no server may start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Of `auth`.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// A method that there is not.
    #[error("limits.methods.{0}: there is no such method")]
    Method(String),
    /// Of the moderation hook.
    #[error("danmaku.hook.url: {0}")]
    Hook(String),
}

/// Videos of which it is known that their work was told, at most.
const WORKS_TOLD_MAX: usize = 100_000;

/// The faces; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

/// Writes a copy of everything into the folder named, which is empty or not
/// there; says why not, for people. May block.
pub type Backup = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

struct Inner {
    history: History,
    danmaku: Danmaku,
    queue: Queue,
    catalogue: Catalogue,
    clock: Arc<dyn Clock>,
    options: Options,
    auth: Auth,
    rates: Rates,
    rooms: live::Rooms,
    readers: readers::Readers,
    shelf: shelf::Shelf,
    /// Who is asked about comments, if anyone.
    hook: Option<hook::Hook>,
    /// Videos whose work danmaku was told.
    works_told: quick_cache::sync::Cache<Box<str>, ()>,
    meters: Meters,
    openapi: bytes::Bytes,
    /// Set once, before the first call.
    backup: OnceLock<Backup>,
    /// Set once, before the first call; none = no metadata.
    meta: OnceLock<Meta>,
    /// Set once, before the first call; none = the API alone.
    pages: OnceLock<http::Pages>,
    /// Set once, when stopping begins; what waits for long looks at it.
    stopping: watch::Sender<bool>,
}

impl Gateway {
    /// Checks `options`; opens no socket. Must be called within a tokio runtime
    /// where somebody is asked about comments.
    pub fn open(parts: Parts, options: Options) -> Result<Self, OpenError> {
        let addresses = [options.server.http, options.server.grpc];
        let auth = Auth::open(&options.auth, &addresses, parts.table, parts.clock.clone())?;
        let senders = options.danmaku.sender_per_minute;
        let rates = Rates::new(&options.limits, senders).map_err(OpenError::Method)?;
        let shelf = shelf::Shelf::new(options.danmaku.bodies_bytes_max);
        let hook = options.danmaku.hook.clone();
        let hook = hook.map(|hook| hook::Hook::start(parts.danmaku.clone(), hook));
        let hook = hook.transpose().map_err(OpenError::Hook)?;
        let inner = Inner {
            history: parts.history,
            danmaku: parts.danmaku,
            queue: parts.queue,
            catalogue: parts.catalogue,
            clock: parts.clock,
            options,
            auth,
            rates,
            rooms: live::Rooms::default(),
            readers: readers::Readers::default(),
            shelf,
            hook,
            works_told: quick_cache::sync::Cache::new(WORKS_TOLD_MAX),
            meters: Meters::default(),
            openapi: openapi::document().into(),
            backup: OnceLock::new(),
            meta: OnceLock::new(),
            pages: OnceLock::new(),
            stopping: watch::Sender::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Lets administrators ask for backups, which `backup` writes. The first one
    /// that is given stays.
    pub fn enable_backup(&self, backup: Backup) {
        let _ = self.inner.backup.set(backup);
    }

    /// Serves the metadata tree over gRPC. The first one that is given stays.
    pub fn serve_meta(&self, meta: Meta) {
        let _ = self.inner.meta.set(meta);
    }

    /// Shows `files` to browsers, beside the API. The first ones that are given
    /// stay.
    pub fn show_pages(&self, files: &[PageFile]) {
        let _ = self.inner.pages.set(http::Pages::of(files));
    }

    /// Makes the admin token of a first start, where tokens are asked for and
    /// there is none: its text, to be printed once.
    pub fn first_token(&self) -> Result<Option<String>, TokenError> {
        self.inner.auth.first_token()
    }

    /// The HTTP face.
    pub fn http(&self) -> axum::Router {
        http::router(self.clone())
    }

    /// Ends when the server begins to stop.
    async fn stopping(&self) {
        let mut stopping = self.inner.stopping.subscribe();
        // Errs when the gateway is gone, which is an end as well.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    /// How long a list waits for the catalogue.
    fn enrich_wait(&self) -> Duration {
        Duration::from_millis(self.inner.options.server.enrich_ms)
    }

    fn deadline(&self) -> Duration {
        Duration::from_millis(self.inner.options.server.deadline_ms)
    }

    /// Lets a call in, if not too many are under way; it is under way until
    /// the guard is dropped.
    fn enter(&self) -> Result<UnderWay, Problem> {
        let before = self.inner.meters.under_way.fetch_add(1, Ordering::Relaxed);
        let guard = UnderWay(self.clone());
        if before >= self.inner.options.server.requests_max as u64 {
            return Err(Problem::overloaded("too many calls under way", Duration::from_secs(1)));
        }
        Ok(guard)
    }

    /// Whether `caller` may do `op` about `user`, and has not done so too
    /// often.
    fn admit(&self, op: Op, caller: &Caller, user: Option<&UserId>) -> Result<(), Problem> {
        caller.may(op.need(), user)?;
        self.inner.rates.check(op, &caller.name, user.map(UserId::as_str))
    }

    /// The user that a path or a request names.
    fn user(&self, caller: &Caller, name: &str) -> Result<UserId, Problem> {
        if name == "me" {
            let no_one = || Problem::new(Code::Unauthenticated, "users/me: the caller is no user");
            return caller.user.clone().ok_or_else(no_one);
        }
        UserId::new(name).map_err(|bad| Problem::invalid(bad.0))
    }

    /// By how much a device's clock is wrong, in ms, added to its times.
    fn shift_ms(&self, client_now_ms: Option<i64>) -> i64 {
        client_now_ms.map_or(0, |client| self.inner.clock.now().0.saturating_sub(client))
    }
}

struct UnderWay(Gateway);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.inner.meters.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
