//! A site over the memory engines whose clock stands still until it is moved,
//! and which can be stopped and started again.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use jiff::tz::TimeZone;
use tideline_catalogue::Catalogue;
use tideline_danmaku::Danmaku;
use tideline_gateway::{Gateway, Options, Parts};
use tideline_harness::model::{Config, DAY};
use tideline_history::History;
use tideline_history::kinds::Kind;
use tideline_queue::Queue;
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{Clock as _, ManualClock};
use tideline_types::Millis;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use crate::writes::configs;

/// When the first sequence of a site begins.
const START: i64 = 1_793_511_900_000;
/// How long a sequence may be: the next one begins so much later.
pub(crate) const WINDOW: i64 = 40 * DAY;
/// What the catalogue says: kind, id, group.
pub(crate) const CATALOGUE: [(&str, &str, &str); 2] = [("alpha", "7", "g0"), ("gamma", "z", "g1")];

pub(crate) struct Site {
    runtime: Runtime,
    journal: Arc<MemJournal>,
    table: Arc<MemTable>,
    clock: Arc<ManualClock>,
    up: Option<Up>,
    calls: RefCell<Vec<String>>,
}

struct Up {
    history: History,
    router: Router,
}

/// Where days begin.
pub(crate) fn zone() -> TimeZone {
    TimeZone::get("America/New_York").unwrap()
}

impl Site {
    pub(crate) fn new() -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let mut site = Self {
            runtime,
            journal: Arc::new(MemJournal::new()),
            table: Arc::new(MemTable::new()),
            clock: Arc::new(ManualClock::at(Millis(START))),
            up: None,
            calls: RefCell::default(),
        };
        site.open();
        for (kind, id, group) in CATALOGUE {
            let item = format!("{{\"group\":\"{group}\"}}");
            let (status, _) = site.call("PUT", &format!("/v1/items/{kind}/{id}"), &item, &[]);
            assert_eq!(status, 204);
        }
        site
    }

    fn open(&mut self) {
        let _within = self.runtime.enter();
        let (journal, table, clock) = (&self.journal, &self.table, &self.clock);
        let queue_options = tideline_queue::Options::default();
        let queue =
            Queue::open(journal.clone(), table.clone(), clock.clone(), queue_options).unwrap();
        let kind = |(name, config): (&String, &Config)| Kind {
            name: name.as_str().into(),
            declared: true,
            retention_days: config.retention_days as u32,
            max_records: config.cap as u32,
            max_per_day: config.per_day as u32,
            daily_first: config.daily_first,
        };
        let kinds = configs().iter().map(kind).collect();
        let rules = tideline_history::prepare(&**table, kinds, zone()).unwrap();
        // Little memory and quick flushes: users come, rest, go and come back.
        let tiers = tideline_history::Options {
            hot_budget_bytes: 256 << 10,
            flush_after: Duration::from_millis(500),
            ..tideline_history::Options::default()
        };
        let (t, c) = (table.clone(), clock.clone());
        let history = History::open(queue.clone(), t, c, Arc::new(rules), tiers, 4).unwrap();
        let of_items = tideline_catalogue::Options::default();
        let catalogue = Catalogue::open(table.clone(), of_items, clock.clone()).unwrap();
        let mut options = Options::default();
        // As fast as it goes, and complete however slow that is.
        options.server.enrich_ms = 600_000;
        options.server.deadline_ms = 600_000;
        options.limits.user_reads_per_second = 0;
        options.limits.user_writes_per_second = 0;
        options.limits.caller_requests_per_second = 0;
        let (t, c) = (table.clone(), clock.clone());
        let danmaku = Danmaku::open(
            queue.clone(),
            t.clone(),
            c.clone(),
            tideline_danmaku::Options::default(),
            1,
        )
        .unwrap();
        let parts =
            Parts { history: history.clone(), danmaku, queue, catalogue, table: t, clock: c };
        let gateway = Gateway::open(parts, options).unwrap();
        self.up = Some(Up { history, router: gateway.http() });
    }

    /// A sequence begins, the `nth` of this site.
    pub(crate) fn begin(&mut self, nth: u64) {
        self.calls.borrow_mut().clear();
        self.clock.advance(START + nth as i64 * WINDOW - self.now());
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().0
    }

    pub(crate) fn wait(&self, ms: i64) {
        self.calls.borrow_mut().push(format!("wait {ms}"));
        self.clock.advance(ms);
    }

    pub(crate) fn close(&mut self) {
        if let Some(up) = self.up.take() {
            up.history.close(Duration::ZERO);
        }
    }

    /// Stops and starts again. Of what the table has not synced it keeps
    /// `keep` commits.
    pub(crate) fn restart(&mut self, keep: usize) {
        self.calls.borrow_mut().push(format!("restart {keep}"));
        self.close();
        self.table = Arc::new(self.table.crash(|_, _, unsynced| keep.min(unsynced)));
        self.open();
    }

    /// The status and the text of the answer.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, String)],
    ) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let router = self.up.as_ref().unwrap().router.clone();
        let (status, text) = self.runtime.block_on(async {
            let response = router.oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(bytes.to_vec()).unwrap())
        });
        let now = self.now();
        let call = format!("{now} {method} {path} {body} {headers:?} -> {status} {text}");
        self.calls.borrow_mut().push(call);
        (status, text)
    }

    /// What was called since the sequence began, and what was answered.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }
}
