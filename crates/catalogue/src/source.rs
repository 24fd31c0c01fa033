//! An owner's HTTP service behind a kind, and the task that asks it.
//!
//! What the service must speak, at one address of its own:
//!
//! ```text
//! POST url          content-type: application/json
//! {"kind":"product","ids":["17","18","19"]}
//!
//! 200
//! {"items":{"17":{"title":"Cup","group":"cups","owner":"u7"},"18":null},"partial":false}
//! ```
//!
//! An item has the fields of [`Item`], each of which may be missing; unknown
//! fields are ignored. An id without an item does not exist, unless `partial`
//! is true: then it was not looked up, and is asked for again when it is
//! wanted. `429` and `503` may say `Retry-After` in seconds. Redirects are not
//! followed.
//!
//! Always: an id is in one request at a time, whoever wants it; what comes back
//! too late for whoever asked is kept for who asks next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tideline_store::Clock;
use tideline_types::limits::{SOURCE_BATCH_MAX, SOURCE_BODY_BYTES_MAX, SOURCE_IDS_MAX};
use tokio::sync::{Notify, watch};
use tokio::task::{Id as TaskId, JoinError, JoinHandle, JoinSet};

use crate::Item;
use crate::answer::{self, Answer};
use crate::batch::{Batcher, Outcome, Step};
use crate::catalogue::Counters;
use crate::item;
use crate::shelf::{Known, Looking, Shelf};

/// An owner's service behind a kind.
#[derive(Clone)]
pub struct SourceOptions {
    /// Where to POST: http or https.
    pub url: String,
    /// Sent as `authorization: Bearer …`, if given. Never logged.
    pub token: Option<String>,
    /// Ids in one request, at most; 1..=1000. The size in use adapts below
    /// it. Default 200.
    pub batch_max: usize,
    /// Requests at a time, at most. Default 4.
    pub in_flight_max: usize,
    /// A request that takes longer has failed. Default 2 s.
    pub timeout: Duration,
    /// How long an item is kept before it is asked for again. Default 10 min.
    pub ttl: Duration,
    /// How long it is kept that there is no item. Default 1 min.
    pub negative_ttl: Duration,
}

impl SourceOptions {
    /// The defaults, at `url`.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            batch_max: 200,
            in_flight_max: 4,
            timeout: Duration::from_secs(2),
            ttl: Duration::from_secs(600),
            negative_ttl: Duration::from_secs(60),
        }
    }
}

impl std::fmt::Debug for SourceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceOptions")
            .field("url", &self.url)
            .field("batch_max", &self.batch_max)
            .field("in_flight_max", &self.in_flight_max)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What is known of an id that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// It waits or is in flight.
    Pending,
    /// The owner has it.
    Found(Arc<Item>),
    /// The owner does not have it.
    Absent,
    /// The request failed, or did not look it up.
    Late,
}

/// The answer to who wants an id.
pub(crate) enum Promise {
    /// It is known.
    Kept(Known),
    /// It will be told.
    Soon(watch::Receiver<Fetch>),
    /// Too many are wanted already, or the source is closed.
    Never,
}

struct State {
    batcher: Batcher,
    /// One for each id that waits or is in flight.
    flights: HashMap<String, watch::Sender<Fetch>>,
    closed: bool,
}

struct Shared {
    kind: String,
    options: SourceOptions,
    shelf: Arc<Shelf>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
    /// Not held across a request.
    state: Mutex<State>,
    /// An id is wanted that was not before.
    wanted: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source with its task, which ends when this is dropped.
pub(crate) struct Source {
    shared: Arc<Shared>,
    /// Taken when it is stopped.
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Source {
    /// Starts the task; must be called within a tokio runtime.
    pub(crate) fn start(
        kind: &str,
        options: SourceOptions,
        shelf: Arc<Shelf>,
        counters: Arc<Counters>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let url = reqwest::Url::parse(&options.url).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("must be an http or https address".into());
        }
        // The process may have chosen one already; then that one stands.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(options.in_flight_max)
            .build()
            .map_err(|error| error.to_string())?;
        let batch_max = options.batch_max.clamp(1, SOURCE_BATCH_MAX);
        let state = State {
            batcher: Batcher::new(batch_max, options.in_flight_max, SOURCE_IDS_MAX),
            flights: HashMap::new(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            kind: kind.to_owned(),
            options,
            shelf,
            counters,
            clock,
            state: Mutex::new(state),
            wanted: Notify::new(),
        });
        let task = tokio::spawn(run(shared.clone(), http));
        Ok(Self { shared, task: Mutex::new(Some(task)) })
    }

    /// Asks for `ids` soon, each once; what they become is told to all who
    /// want them.
    pub(crate) fn want(&self, ids: &[&str]) -> Vec<Promise> {
        let shared = &self.shared;
        let now = shared.clock.ticks();
        let mut state = shared.lock();
        let promise = |id: &&str| {
            if let Some(flight) = state.flights.get(*id) {
                return Promise::Soon(flight.subscribe());
            }
            // It may have landed since the caller looked; it is on the shelf
            // before its flight is gone.
            if let Some(known) = shared.shelf.get(&item::key(&shared.kind, id), now) {
                return Promise::Kept(known);
            }
            if state.closed || !state.batcher.want(id) {
                return Promise::Never;
            }
            let (flight, receiver) = watch::channel(Fetch::Pending);
            state.flights.insert((*id).to_owned(), flight);
            Promise::Soon(receiver)
        };
        let promises = ids.iter().map(promise).collect();
        drop(state);
        shared.wanted.notify_one();
        promises
    }

    fn abort(&self) -> Option<JoinHandle<()>> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        task.inspect(JoinHandle::abort)
    }

    /// Stops the task and waits until it is gone; who waits is told `Late`.
    pub(crate) async fn stop(&self) {
        if let Some(task) = self.abort() {
            let _cancelled = task.await;
        }
        let mut state = self.shared.lock();
        state.closed = true;
        state.flights.clear();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _aborted = self.abort();
    }
}

/// A request under way.
struct Request {
    ids: Vec<String>,
    since: Looking,
}

/// Why a request brought nothing.
struct Failure {
    cause: String,
    stay_away: Duration,
}

impl From<String> for Failure {
    fn from(cause: String) -> Self {
        Self { cause, stay_away: Duration::ZERO }
    }
}

async fn run(shared: Arc<Shared>, http: reqwest::Client) {
    let mut tasks = JoinSet::new();
    let mut requests: HashMap<TaskId, Request> = HashMap::new();
    loop {
        let now = shared.clock.ticks();
        let step = shared.lock().batcher.step(now);
        let pause = match step {
            Step::Ask(ids) => {
                let since = shared.shelf.looking();
                let task = tasks.spawn(ask(shared.clone(), http.clone(), ids.clone()));
                requests.insert(task.id(), Request { ids, since });
                continue;
            }
            Step::WaitUntil(then) => Some(Duration::from_millis(then.saturating_sub(now))),
            Step::Idle => None,
        };
        let paused = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.wanted.notified() => {}
            () = paused => {}
            Some(ended) = tasks.join_next_with_id() => {
                let (id, answer) = ended_as(ended);
                if let Some(request) = requests.remove(&id) {
                    settle(&shared, request, answer);
                }
            }
        }
    }
}

type Ended = Result<(TaskId, Result<Answer, Failure>), JoinError>;

fn ended_as(ended: Ended) -> (TaskId, Result<Answer, Failure>) {
    ended.unwrap_or_else(|error| (error.id(), Err(error.to_string().into())))
}

async fn ask(
    shared: Arc<Shared>,
    http: reqwest::Client,
    ids: Vec<String>,
) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Body<'a> {
        kind: &'a str,
        ids: &'a [String],
    }
    let options = &shared.options;
    let mut request = http.post(&options.url).timeout(options.timeout);
    if let Some(token) = &options.token {
        request = request.bearer_auth(token);
    }
    // An address may hold a password: errors go without it.
    let said = |error: reqwest::Error| Failure::from(error.without_url().to_string());
    let body = Body { kind: &shared.kind, ids: &ids };
    let mut response = request.json(&body).send().await.map_err(said)?;
    if !response.status().is_success() {
        let after = response.headers().get(reqwest::header::RETRY_AFTER);
        let seconds = after.and_then(|after| after.to_str().ok()?.parse().ok()).unwrap_or(0);
        let cause = format!("status {}", response.status());
        return Err(Failure { cause, stay_away: Duration::from_secs(seconds) });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(said)? {
        if body.len() + chunk.len() > SOURCE_BODY_BYTES_MAX {
            return Err(format!("the answer is over {SOURCE_BODY_BYTES_MAX} bytes").into());
        }
        body.extend_from_slice(&chunk);
    }
    answer::parse(&body).map_err(|cause| format!("the answer is no answer: {cause}").into())
}

/// Keeps what came, tells who waits, and the batcher.
fn settle(shared: &Shared, request: Request, answer: Result<Answer, Failure>) {
    let now = shared.clock.ticks();
    let outcome = match &answer {
        Ok(answer) => {
            shared.counters.asked(request.ids.len(), true);
            if answer.refused > 0 {
                let (kind, refused) = (&shared.kind, answer.refused);
                tracing::warn!(%kind, refused, "items of an owner's service are over a limit");
            }
            Outcome::Answered
        }
        Err(failure) => {
            shared.counters.asked(request.ids.len(), false);
            let (kind, cause, ids) = (&shared.kind, &failure.cause, request.ids.len());
            tracing::warn!(%kind, %cause, ids, "an owner's service did not answer");
            Outcome::Failed { stay_away_ms: failure.stay_away.as_millis() as u64 }
        }
    };
    let mut answer = answer.ok();
    let mut fates = Vec::with_capacity(request.ids.len());
    for id in &request.ids {
        let fate = match &mut answer {
            None => Fetch::Late,
            Some(answer) => match answer.items.remove(id) {
                Some(item) => Fetch::Found(Arc::new(item)),
                None if answer.partial => Fetch::Late,
                None => Fetch::Absent,
            },
        };
        let keep = |known, ttl: Duration| {
            let until = now.saturating_add(ttl.as_millis() as u64);
            shared.shelf.keep(request.since, &item::key(&shared.kind, id), known, until);
        };
        match &fate {
            Fetch::Found(item) => keep(Some(item.clone()), shared.options.ttl),
            Fetch::Absent => keep(None, shared.options.negative_ttl),
            Fetch::Late | Fetch::Pending => {}
        }
        fates.push(fate);
    }
    let mut state = shared.lock();
    state.batcher.done(&request.ids, outcome, now);
    for (id, fate) in request.ids.iter().zip(fates) {
        if let Some(flight) = state.flights.remove(id) {
            let _nobody_waits = flight.send(fate);
        }
    }
}
