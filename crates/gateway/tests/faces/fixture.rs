//! A gateway over the memory engines, and short ways to call it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tideline_catalogue::Catalogue;
use tideline_danmaku::Danmaku;
use tideline_gateway::options::AuthMode;
use tideline_gateway::{Gateway, OpenError, Options, Parts};
use tideline_history::History;
use tideline_history::kinds::Kind;
use tideline_queue::Queue;
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{Clock, RealClock, Table};
use tower::ServiceExt as _;

/// A whole site, without sockets.
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) router: Router,
    pub(crate) history: History,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body, if the status is as it should be.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status.as_u16(), status, "{text}");
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// `code: detail` of a problem, if the status is as it should be.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem["status"], status);
        assert!(problem["title"].is_string() && problem["type"].is_string());
        let text = |name: &str| problem[name].as_str().unwrap().to_owned();
        format!("{}: {}", text("code"), text("detail"))
    }
}

pub(crate) fn kind(name: &str) -> Kind {
    Kind {
        name: name.into(),
        declared: true,
        retention_days: 90,
        max_records: 1000,
        max_per_day: 0,
        daily_first: true,
    }
}

pub(crate) fn open(options: Options) -> Result<Site, OpenError> {
    open_with(options, tideline_danmaku::Options::default())
}

/// The same, with other rules of comments.
pub(crate) fn open_with(
    options: Options,
    comments: tideline_danmaku::Options,
) -> Result<Site, OpenError> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let table: Arc<dyn Table> = Arc::new(MemTable::new());
    let journal = Arc::new(MemJournal::new());
    let queue =
        Queue::open(journal, table.clone(), clock.clone(), tideline_queue::Options::default())
            .unwrap();
    let kinds = ["article", "live", "product", "video"].map(kind).to_vec();
    let rules = tideline_history::prepare(&*table, kinds, jiff::tz::TimeZone::UTC).unwrap();
    let history = History::open(
        queue.clone(),
        table.clone(),
        clock.clone(),
        Arc::new(rules),
        tideline_history::Options::default(),
        4,
    )
    .unwrap();
    let danmaku = Danmaku::open(queue.clone(), table.clone(), clock.clone(), comments, 4).unwrap();
    let catalogue =
        Catalogue::open(table.clone(), tideline_catalogue::Options::default(), clock.clone())
            .unwrap();
    let parts = Parts { history: history.clone(), danmaku, queue, catalogue, table, clock };
    let gateway = Gateway::open(parts, options)?;
    Ok(Site { router: gateway.http(), gateway, history })
}

/// A site where everyone may do everything.
pub(crate) fn site() -> Site {
    open(Options::default()).unwrap()
}

/// A site that asks for tokens, and its first one.
pub(crate) fn token_site() -> (Site, String) {
    let mut options = Options::default();
    options.auth.mode = AuthMode::Token;
    let site = open(options).unwrap();
    let token = site.gateway.first_token().unwrap().unwrap();
    (site, token)
}

impl Site {
    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        Reply { status: parts.status, headers: parts.headers, bytes }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> Reply {
        self.call_with(method, path, body, &[]).await
    }

    pub(crate) async fn call_with(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        self.call("POST", path, body).await
    }
}

/// Now, in ms since the epoch.
pub(crate) fn now() -> i64 {
    RealClock::new().now().0
}
