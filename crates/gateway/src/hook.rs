//! Moderation by somebody else: each comment of a viewer waits, hidden, until
//! an HTTP service has said what becomes of it.
//!
//! What the service must speak, at one address of its own:
//!
//! ```text
//! POST url          content-type: application/json
//! {"comments":[{"video":"v7","id":"…","progress_ms":1500,"mode":"scroll","sender":"a6216d9","text":"…"},…]}
//!
//! 200
//! {"verdicts":["show","block","wait"]}
//! ```
//!
//! One word for each comment, in order; `wait` leaves it to a person. Anything
//! else, in the deadline or not, is a failure: then by `on_failure` all of the
//! batch are shown, or they wait and are asked about again. After a failure
//! nothing is asked for a while.
//!
//! Bounded: what waits in memory, and how many requests there are at a time.
//! What does not fit, or was waiting when the process ended, is found again
//! among what is due to be looked at. Knows none of the rules of comments.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tideline_danmaku::comment::{Comment, State};
use tideline_danmaku::{CommentId, Danmaku};
use tideline_types::limits::SOURCE_BODY_BYTES_MAX;
use tideline_wire::danmaku::json::put_fields;
use tideline_wire::json::{push_str, push_string};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::options::{HookOptions, OnFailure};

/// After the first failure in a row nothing is asked for so long, after each
/// further one for twice as long, up to the second.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A comment that waits for a word.
struct Asked {
    video: Arc<str>,
    id: CommentId,
    /// As the service is told of it.
    json: Vec<u8>,
}

/// What was asked, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) shown: AtomicU64,
    pub(crate) blocked: AtomicU64,
    /// Left to a person.
    pub(crate) left: AtomicU64,
    /// Comments whose request failed.
    pub(crate) failed: AtomicU64,
    /// Comments that found no room in memory.
    pub(crate) full: AtomicU64,
}

/// The way to the service; its task ends with it.
pub(crate) struct Hook {
    asked: mpsc::Sender<Asked>,
    danmaku: Danmaku,
    pub(crate) counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Hook {
    /// Starts the task; must be called within a tokio runtime. Errs with what
    /// is wrong with the address.
    pub(crate) fn start(danmaku: Danmaku, options: HookOptions) -> Result<Self, String> {
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
        let counts = Arc::new(Counts::default());
        let (asked, waiting) = mpsc::channel(options.waiting_max.max(1));
        let asker = Arc::new(Asker {
            danmaku: danmaku.clone(),
            options,
            http,
            counts: counts.clone(),
            left: Mutex::default(),
        });
        let task = tokio::spawn(run(asker, waiting));
        Ok(Self { asked, danmaku, counts, task })
    }

    /// Asks about a comment that was posted, if it waits. Never waits itself.
    pub(crate) fn ask(&self, video: &str, comment: &Comment) {
        if comment.index.state != State::Waiting {
            return;
        }
        if self.asked.try_send(asked(&self.danmaku, video, comment)).is_err() {
            self.counts.full.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn asked(danmaku: &Danmaku, video: &str, comment: &Comment) -> Asked {
    let mut json = b"{\"video\":".to_vec();
    push_string(&mut json, video);
    json.push(b',');
    put_fields(&mut json, &danmaku.item(video, comment));
    json.push(b'}');
    Asked { video: video.into(), id: comment.id, json }
}

struct Asker {
    danmaku: Danmaku,
    options: HookOptions,
    http: reqwest::Client,
    counts: Arc<Counts>,
    /// Comments that were left to a person: not asked about again.
    left: Mutex<HashSet<(Arc<str>, CommentId)>>,
}

/// Gathers what is asked, sends batches, and looks now and then for what waits
/// and is asked about by nobody.
async fn run(asker: Arc<Asker>, mut waiting: mpsc::Receiver<Asked>) {
    let options = &asker.options;
    let (batch_max, in_flight_max) = (options.batch_max.max(1), options.in_flight_max.max(1));
    let mut requests: JoinSet<bool> = JoinSet::new();
    let mut due: VecDeque<Asked> = VecDeque::new();
    // Where the next look among what is due begins.
    let mut looked: Option<(String, CommentId)> = None;
    let (mut pause, mut quiet_until) = (PAUSE_MIN, Instant::now());
    let mut sweep = tokio::time::interval(options.look_every);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let quiet = quiet_until > Instant::now();
        if !due.is_empty() && requests.len() < in_flight_max {
            if !quiet {
                let batch = due.drain(..due.len().min(batch_max)).collect();
                requests.spawn(Asker::ask(asker.clone(), batch));
                continue;
            }
            if options.on_failure == OnFailure::Pass {
                let batch: Vec<Asked> = due.drain(..).collect();
                asker.counts.failed.fetch_add(batch.len() as u64, Ordering::Relaxed);
                asker.pass(&batch).await;
                continue;
            }
        }
        let room = due.len() < batch_max;
        tokio::select! {
            asked = waiting.recv(), if room => match asked {
                None => return,
                Some(asked) => {
                    due.push_back(asked);
                    // What is there goes with it.
                    while due.len() < batch_max && let Ok(more) = waiting.try_recv() {
                        due.push_back(more);
                    }
                }
            },
            Some(done) = requests.join_next() => match done {
                Ok(true) => pause = PAUSE_MIN,
                _ => {
                    quiet_until = Instant::now() + pause;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            },
            () = tokio::time::sleep_until(quiet_until), if quiet => {}
            _ = sweep.tick(), if due.is_empty() && requests.is_empty() && !quiet => {
                due.extend(asker.forgotten(&mut looked).await);
            }
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    verdicts: Vec<Verdict>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Show,
    Block,
    Wait,
}

impl Asker {
    /// Asks about a batch and does what is said; whether there was an answer.
    async fn ask(asker: Arc<Self>, batch: Vec<Asked>) -> bool {
        match asker.verdicts(&batch).await {
            Ok(verdicts) => {
                for (asked, verdict) in batch.iter().zip(verdicts) {
                    let counter = match verdict {
                        Verdict::Show => &asker.counts.shown,
                        Verdict::Block => &asker.counts.blocked,
                        Verdict::Wait => &asker.counts.left,
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                    match verdict {
                        Verdict::Show => asker.judge(asked, true).await,
                        Verdict::Block => asker.judge(asked, false).await,
                        Verdict::Wait => asker.leave(asked),
                    }
                }
                true
            }
            Err(cause) => {
                tracing::warn!(%cause, comments = batch.len(), "the moderation hook did not answer");
                asker.counts.failed.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if asker.options.on_failure == OnFailure::Pass {
                    asker.pass(&batch).await;
                }
                false
            }
        }
    }

    async fn verdicts(&self, batch: &[Asked]) -> Result<Vec<Verdict>, String> {
        let mut body = b"{\"comments\":[".to_vec();
        for (at, asked) in batch.iter().enumerate() {
            if at > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&asked.json);
        }
        push_str(&mut body, "]}");
        let mut request = self.http.post(&self.options.url).timeout(self.options.deadline);
        if let Some(token) = &self.options.token {
            request = request.bearer_auth(token);
        }
        // An address may hold a password: errors go without it.
        let said = |error: reqwest::Error| error.without_url().to_string();
        let request = request.header(http::header::CONTENT_TYPE, "application/json").body(body);
        let mut response = request.send().await.map_err(said)?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(said)? {
            if body.len() + chunk.len() > SOURCE_BODY_BYTES_MAX {
                return Err(format!("the answer is over {SOURCE_BODY_BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        let Answer { verdicts } =
            serde_json::from_slice(&body).map_err(|error| format!("no answer: {error}"))?;
        match verdicts.len() == batch.len() {
            true => Ok(verdicts),
            false => Err(format!("{} verdicts on {} comments", verdicts.len(), batch.len())),
        }
    }

    async fn pass(&self, batch: &[Asked]) {
        for asked in batch {
            self.judge(asked, true).await;
        }
    }

    /// Where this fails the comment goes on waiting, and is found again.
    async fn judge(&self, asked: &Asked, shown: bool) {
        if let Err(error) = self.danmaku.judge(&asked.video, asked.id, shown).await {
            let (video, id) = (&asked.video, asked.id);
            tracing::warn!(%error, %video, %id, "a verdict could not be carried out");
        }
    }

    /// Leaves a comment to a person. Of too many it is forgotten that they were.
    fn leave(&self, asked: &Asked) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= LEFT_MAX {
            left.clear();
        }
        left.insert((asked.video.clone(), asked.id));
    }

    fn is_left(&self, video: &str, id: CommentId) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.contains(&(video.into(), id))
    }

    /// Some of what waits and was asked about by nobody, or in vain, from
    /// `looked` on; at the end it begins anew.
    async fn forgotten(&self, looked: &mut Option<(String, CommentId)>) -> Vec<Asked> {
        let mut found = Vec::new();
        let limit = self.options.batch_max.max(1) * LOOKS;
        let after = looked.as_ref().map(|(video, id)| (&**video, *id));
        let due = match self.danmaku.due(after, limit).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "what is due to be looked at could not be read");
                return found;
            }
        };
        let last = due.last().filter(|_| due.len() == limit);
        *looked = last.map(|last| (last.video.clone(), last.id));
        for due in due.into_iter().filter(|due| due.state == State::Waiting) {
            if self.is_left(&due.video, due.id) {
                continue;
            }
            if let Ok(Some(comment)) = self.danmaku.find(&due.video, due.id).await
                && comment.index.state == State::Waiting
            {
                found.push(asked(&self.danmaku, &due.video, &comment));
            }
        }
        found
    }
}

/// Comments of which it is known that they were left to a person.
const LEFT_MAX: usize = 100_000;
/// Batches that one look brings, at most.
const LOOKS: usize = 4;
