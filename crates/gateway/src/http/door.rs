//! The one door by which every call comes in.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{FromRequestParts as _, RawPathParams, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tideline_types::UserId;
use tideline_wire::Code;

use super::query::Query;
use crate::Gateway;
use crate::auth::Caller;
use crate::op::{Need, Op};
use crate::problem::Problem;
use crate::within::within;

/// The longest that a call may ask to wait for something to come.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// The longest that the copy of a data folder may take.
const BACKUP_MAX: Duration = Duration::from_hours(24);

/// One call, let in and named.
pub(crate) struct Call {
    pub(super) op: Op,
    pub(crate) caller: Arc<Caller>,
    pub(crate) query: Query,
    pub(crate) parts: Parts,
    params: Params,
    body: Option<Body>,
}

/// Segments of a path that have names.
pub(super) enum Params {
    /// As the router found them.
    Routed(RawPathParams),
    /// Known without it.
    Known([Option<(&'static str, Box<str>)>; 2]),
}

/// Has `handler` answer calls of `op` that come with `method`.
pub(super) fn on<F, A>(method: MethodFilter, op: Op, handler: F) -> MethodRouter<Gateway>
where
    F: Fn(Gateway, Call) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    axum::routing::on(method, move |State(gateway): State<Gateway>, request: Request| {
        door(gateway, op, request, None, handler)
    })
}

/// Answers one call of `op`; `params` where the router was not asked.
pub(super) async fn door<F, A>(
    gateway: Gateway,
    op: Op,
    request: Request,
    params: Option<Params>,
    handler: F,
) -> Response
where
    F: Fn(Gateway, Call) -> A + Send,
    A: Future<Output = Result<Response, Problem>> + Send,
{
    let started = Instant::now();
    let result = match gateway.enter() {
        Err(problem) => Err(problem),
        Ok(_under_way) => {
            // Pinned where it is made: it is large, and would be copied at each
            // layer around it.
            let run = pin!(async {
                let call = Call::open(&gateway, op, request, params).await?;
                handler(gateway.clone(), call).await
            });
            let run = AssertUnwindSafe(run).catch_unwind();
            let wait = match op {
                Op::Fetch => WAIT_MAX,
                Op::Backup => BACKUP_MAX,
                _ => Duration::ZERO,
            };
            match within(gateway.deadline() + wait, run).await {
                Ok(Ok(result)) => result,
                Ok(Err(_panic)) => Err(Problem::internal()),
                Err(_late) => Err(Problem::late()),
            }
        }
    };
    let code = result.as_ref().err().map(|problem| problem.code);
    gateway.inner.meters.count(op, started.elapsed(), code);
    result.unwrap_or_else(|problem| problem.into_response())
}

impl Call {
    async fn open(
        gateway: &Gateway,
        op: Op,
        request: Request,
        params: Option<Params>,
    ) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let params = match params {
            Some(params) => params,
            None => RawPathParams::from_request_parts(&mut parts, &())
                .await
                .map(Params::Routed)
                .map_err(|_| Problem::invalid("path: is not UTF-8 in percent encoding"))?,
        };
        let query = Query::of(&parts.uri)?;
        let authorization = parts.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let (auth, ticket) = (&gateway.inner.auth, query.one("ticket")?);
        let caller = match op.need() {
            Need::Nothing => auth.caller_or_nobody(authorization, ticket).await?,
            _ => auth.caller(authorization, ticket).await?,
        };
        let call = Self { op, caller, query, parts, params, body: Some(body) };
        if !matches!(op.need(), Need::ReadUser | Need::WriteUser) {
            gateway.admit(op, &call.caller, None)?;
        }
        Ok(call)
    }

    /// A segment of the path, decoded.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        match &self.params {
            Params::Routed(params) => {
                params.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
            Params::Known(params) => {
                let mut known = params.iter().flatten();
                known.find(|(known, _)| *known == name).map(|(_, value)| &**value)
            }
        }
    }

    /// The user in the path, whom the caller may ask about.
    pub(super) fn user(&self, gateway: &Gateway) -> Result<UserId, Problem> {
        let name = self.param("user").unwrap_or_default();
        let user = gateway.user(&self.caller, name)?;
        gateway.admit(self.op, &self.caller, Some(&user))?;
        Ok(user)
    }

    /// The whole body, within the limit.
    pub(super) async fn body(&mut self, gateway: &Gateway) -> Result<Bytes, Problem> {
        let bytes_max = gateway.inner.options.server.body_bytes_max;
        let encoding = self.parts.headers.get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(Problem::invalid("content-encoding: send the body as it is"));
        }
        let body = self.body.take().unwrap_or_default();
        match Limited::new(body, bytes_max).collect().await {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(Problem::new(Code::PayloadTooLarge, format!("body: at most {bytes_max} bytes")))
            }
            Err(_) => Err(Problem::invalid("body: ended before it was whole")),
        }
    }

    /// A header that holds a time, in ms since the epoch.
    pub(super) fn header_millis(&self, name: &'static str) -> Result<Option<i64>, Problem> {
        let Some(value) = self.parts.headers.get(name) else { return Ok(None) };
        let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        let bad = || Problem::invalid(format!("{name}: must be milliseconds since the epoch"));
        number.filter(|ms| *ms > 0).map(Some).ok_or_else(bad)
    }
}

/// An answer in JSON.
pub(super) fn json(body: Vec<u8>) -> Response {
    typed("application/json", body)
}

/// An answer of lines of JSON.
pub(super) fn lines(body: Vec<u8>) -> Response {
    typed("application/x-ndjson", body)
}

/// An answer of some type.
pub(super) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer without a body.
pub(super) fn nothing() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
