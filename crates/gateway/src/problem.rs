//! Errors as callers see them: the only file that knows status codes.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tideline_wire::{Code, Fault, json};

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which sort.
    pub code: Code,
    /// For people: the field and the limit, never a secret.
    pub detail: Cow<'static, str>,
    /// When to come back.
    pub retry_after: Option<Duration>,
    /// The name of the limit that was met, for 429.
    pub limit: Option<&'static str>,
}

impl Problem {
    /// A problem that says no time to come back.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let busy = matches!(code, Code::Overloaded | Code::RateLimited);
        let retry_after = busy.then_some(Duration::from_secs(1));
        Self { code, detail: detail.into(), retry_after, limit: None }
    }

    /// A field, parameter or body that cannot be.
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidArgument, detail)
    }

    /// Busy; come back after `wait`.
    pub fn overloaded(detail: impl Into<Cow<'static, str>>, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..Self::new(Code::Overloaded, detail) }
    }

    /// The deadline is over.
    pub fn late() -> Self {
        let detail = "the call took longer than server.deadline_ms; it may have happened";
        Self::new(Code::DeadlineExceeded, detail)
    }

    /// Our mistake; what it was stands in the log alone.
    pub fn internal() -> Self {
        Self::new(Code::Internal, "the server made a mistake; its log says which")
    }

    /// The status of HTTP.
    pub fn status(&self) -> StatusCode {
        status(self.code)
    }

    fn retry_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_millis().div_ceil(1000).max(1) as u64)
    }
}

/// The status of HTTP for a code.
pub(crate) fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument | Code::UnknownKind => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Conflict | Code::Diverged => StatusCode::CONFLICT,
        Code::Truncated => StatusCode::GONE,
        Code::Closed => StatusCode::FORBIDDEN,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn title(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument => "Something in the request cannot be",
        Code::UnknownKind => "The kind is not declared",
        Code::NotFound => "Nothing stands there",
        Code::MethodNotAllowed => "The method is not for this path",
        Code::Unauthenticated => "Who is calling is not known",
        Code::PermissionDenied => "The caller may not do this",
        Code::RateLimited => "Too many calls",
        Code::Overloaded => "The server cannot take this now",
        Code::PayloadTooLarge => "More than the limit",
        Code::Conflict => "What stands there forbids it",
        Code::Truncated => "The position is before the start of what is kept",
        Code::Diverged => "The position is of another past",
        Code::Closed => "It is closed",
        Code::DeadlineExceeded => "The call took too long",
        Code::Internal => "The server made a mistake",
    }
}

fn grpc_code(code: Code) -> tonic::Code {
    match code {
        Code::InvalidArgument | Code::UnknownKind | Code::PayloadTooLarge => {
            tonic::Code::InvalidArgument
        }
        Code::NotFound => tonic::Code::NotFound,
        Code::MethodNotAllowed => tonic::Code::Unimplemented,
        Code::Unauthenticated => tonic::Code::Unauthenticated,
        Code::PermissionDenied => tonic::Code::PermissionDenied,
        Code::RateLimited => tonic::Code::ResourceExhausted,
        Code::Overloaded => tonic::Code::Unavailable,
        Code::Conflict | Code::Closed => tonic::Code::FailedPrecondition,
        Code::Truncated => tonic::Code::OutOfRange,
        Code::Diverged => tonic::Code::DataLoss,
        Code::DeadlineExceeded => tonic::Code::DeadlineExceeded,
        Code::Internal => tonic::Code::Internal,
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, fault.detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut body = Vec::with_capacity(256);
        json::push_str(&mut body, "{\"type\":\"urn:tideline:problem:");
        json::push_str(&mut body, self.code.as_str());
        json::push_str(&mut body, "\",\"title\":");
        json::push_string(&mut body, title(self.code));
        json::push_str(&mut body, ",\"status\":");
        json::push_u64(&mut body, status.as_u16().into());
        json::push_str(&mut body, ",\"code\":");
        json::push_string(&mut body, self.code.as_str());
        json::push_str(&mut body, ",\"detail\":");
        json::push_string(&mut body, &self.detail);
        if let Some(limit) = self.limit {
            json::push_str(&mut body, ",\"limit\":");
            json::push_string(&mut body, limit);
        }
        body.push(b'}');
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(seconds) = self.retry_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Problem> for tonic::Status {
    fn from(problem: Problem) -> Self {
        let mut status = Self::new(grpc_code(problem.code), problem.detail.as_ref());
        let metadata = status.metadata_mut();
        let code = tonic::metadata::MetadataValue::from_static(problem.code.as_str());
        metadata.insert("tideline-code", code);
        if let Some(seconds) = problem.retry_seconds() {
            metadata.insert("retry-after", tonic::metadata::MetadataValue::from(seconds));
        }
        status
    }
}

impl From<tideline_history::owner::Refusal> for Problem {
    fn from(refusal: tideline_history::owner::Refusal) -> Self {
        use tideline_history::owner::Refusal;
        match &refusal {
            Refusal::Overloaded(_) => Self::overloaded(refusal.to_string(), Duration::from_secs(1)),
            Refusal::ReadOnly(_) | Refusal::NoSpace(_) => {
                tracing::error!(%refusal, "a call is refused");
                Self::overloaded(shown(&refusal), Duration::from_secs(5))
            }
            Refusal::TooMany(_) => Self::new(Code::Conflict, refusal.to_string()),
            _ => internal(&refusal),
        }
    }
}

impl From<tideline_danmaku::ask::Refusal> for Problem {
    fn from(refusal: tideline_danmaku::ask::Refusal) -> Self {
        use tideline_danmaku::ask::Refusal;
        match &refusal {
            Refusal::NotAdmitted(why) => Self::invalid(format!("{}: {why}", field_of(why))),
            Refusal::BadLimit(_) => Self::invalid(format!("limit: {refusal}")),
            Refusal::BadFilters(_) => Self::invalid(format!("filters: {refusal}")),
            Refusal::BadVideo => Self::invalid(format!("video: {refusal}")),
            Refusal::Closed => Self::new(Code::Closed, refusal.to_string()),
            Refusal::NotFound => Self::new(Code::NotFound, refusal.to_string()),
            Refusal::Forbidden | Refusal::NotYours => {
                Self::new(Code::PermissionDenied, refusal.to_string())
            }
            Refusal::OverDay { wait_ms, .. } => {
                let wait = Duration::from_millis((*wait_ms).max(0) as u64);
                let problem = Self::new(Code::RateLimited, refusal.to_string());
                Self { retry_after: Some(wait), limit: Some("sender_day"), ..problem }
            }
            Refusal::TooLate { .. }
            | Refusal::Conflict(_)
            | Refusal::Is(_)
            | Refusal::Again
            | Refusal::TooMany { .. } => Self::new(Code::Conflict, refusal.to_string()),
            Refusal::Overloaded(_) => Self::overloaded(refusal.to_string(), Duration::from_secs(1)),
            Refusal::NoSpace(_) => {
                tracing::error!(%refusal, "a call is refused");
                Self::overloaded("there is no space left for the log", Duration::from_secs(5))
            }
            Refusal::ReadOnly(_) => {
                tracing::error!(%refusal, "a call is refused");
                let detail = "the log is read-only until the server is started again";
                Self::overloaded(detail, Duration::from_secs(5))
            }
            Refusal::Damaged(_) => internal(&refusal),
        }
    }
}

/// The field of a post that is not as it must be.
fn field_of(why: &tideline_danmaku::comment::NotAdmitted) -> &'static str {
    use tideline_danmaku::comment::NotAdmitted;
    match why {
        NotAdmitted::Invisible | NotAdmitted::TooLong { .. } | NotAdmitted::NotPositioned => "text",
        NotAdmitted::NotYours { .. } | NotAdmitted::WrongPool { .. } => "pool",
        NotAdmitted::Color(_) => "color",
        NotAdmitted::BeyondEnd { .. } => "progress_ms",
        NotAdmitted::ClientId => "client_id",
    }
}

/// What callers may know of a refusal whose cause names files.
fn shown(refusal: &tideline_history::owner::Refusal) -> &'static str {
    match refusal {
        tideline_history::owner::Refusal::NoSpace(_) => "there is no space left for the log",
        _ => "the log is read-only until the server is started again",
    }
}

fn internal(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "a call failed");
    Problem::internal()
}

impl From<tideline_store::StoreError> for Problem {
    fn from(error: tideline_store::StoreError) -> Self {
        use tideline_store::StoreError;
        match &error {
            StoreError::NoSpace { .. } => {
                Self::overloaded("there is no space left", Duration::from_secs(5))
            }
            StoreError::Failed { .. } => {
                tracing::error!(%error, "a call is refused");
                let detail = "the store is read-only until the server is started again";
                Self::overloaded(detail, Duration::from_secs(5))
            }
            _ => internal(&error),
        }
    }
}

impl From<tideline_queue::CreateError> for Problem {
    fn from(error: tideline_queue::CreateError) -> Self {
        use tideline_queue::CreateError;
        match error {
            CreateError::Store(error) => error.into(),
            CreateError::Exists(_) | CreateError::Source(_) | CreateError::TooMany { .. } => {
                Self::new(Code::Conflict, error.to_string())
            }
            CreateError::Partitions { .. } => Self::invalid(format!("partitions: {error}")),
            CreateError::Operator(_) => Self::invalid(error.to_string()),
        }
    }
}

impl From<tideline_queue::DeleteError> for Problem {
    fn from(error: tideline_queue::DeleteError) -> Self {
        use tideline_queue::DeleteError;
        match error {
            DeleteError::NoTopic(_) => Self::new(Code::NotFound, error.to_string()),
            DeleteError::ReadOnly(_) => Self::new(Code::PermissionDenied, error.to_string()),
            DeleteError::Source(..) => Self::new(Code::Conflict, error.to_string()),
            DeleteError::Store(error) => error.into(),
        }
    }
}

impl From<tideline_queue::ProduceError> for Problem {
    fn from(error: tideline_queue::ProduceError) -> Self {
        use tideline_queue::ProduceError;
        match error {
            ProduceError::NoTopic(_) | ProduceError::NoPartition(..) => {
                Self::new(Code::NotFound, error.to_string())
            }
            ProduceError::ReadOnly(_) => Self::new(Code::PermissionDenied, error.to_string()),
            ProduceError::TooLarge { .. } => Self::new(Code::PayloadTooLarge, error.to_string()),
            ProduceError::Stamp(_) | ProduceError::Fenced { .. } => {
                Self::new(Code::Conflict, error.to_string())
            }
            ProduceError::Full => Self::overloaded(error.to_string(), Duration::from_secs(1)),
            ProduceError::NoSpace(_) => {
                Self::overloaded("there is no space left for the log", Duration::from_secs(5))
            }
            ProduceError::Store(error) => error.into(),
        }
    }
}

impl From<tideline_queue::FetchError> for Problem {
    fn from(error: tideline_queue::FetchError) -> Self {
        use tideline_queue::FetchError;
        match error {
            FetchError::NoTopic(_) | FetchError::NoPartition(..) => {
                Self::new(Code::NotFound, error.to_string())
            }
            FetchError::Truncated { .. } => Self::new(Code::Truncated, error.to_string()),
            FetchError::Halted { .. } => Self::new(Code::Conflict, error.to_string()),
            FetchError::Diverged { .. } | FetchError::Recreated { .. } => {
                Self::new(Code::Diverged, error.to_string())
            }
            FetchError::Store(error) => error.into(),
        }
    }
}

impl From<tideline_tier::GetError> for Problem {
    fn from(error: tideline_tier::GetError) -> Self {
        use tideline_tier::GetError;
        match error {
            GetError::NotWhole(_) => Self::overloaded(error.to_string(), Duration::from_secs(1)),
            GetError::NoPartition(_) => Self::new(Code::NotFound, error.to_string()),
            GetError::Store(error) => error.into(),
        }
    }
}

impl From<crate::auth::TokenError> for Problem {
    fn from(error: crate::auth::TokenError) -> Self {
        use crate::auth::TokenError;
        match error {
            TokenError::Scope(_) | TokenError::Scopes | TokenError::Note => {
                Self::invalid(error.to_string())
            }
            TokenError::Full => Self::new(Code::Conflict, error.to_string()),
            TokenError::Store(error) => error.into(),
            TokenError::Damaged(_) | TokenError::NoRandomness => internal(&error),
        }
    }
}

impl From<crate::export::BadExport> for Problem {
    fn from(bad: crate::export::BadExport) -> Self {
        let code = if bad.unknown_kind { Code::UnknownKind } else { Code::InvalidArgument };
        Self::new(code, format!("body: {bad}"))
    }
}

impl From<tideline_catalogue::PutError> for Problem {
    fn from(error: tideline_catalogue::PutError) -> Self {
        use tideline_catalogue::PutError;
        match error {
            PutError::Bad { .. } => Self::invalid(error.to_string()),
            PutError::TooMany { .. } => Self::new(Code::PayloadTooLarge, error.to_string()),
            PutError::Full { .. } => Self::overloaded(error.to_string(), Duration::from_secs(1)),
            PutError::Store(error) => error.into(),
        }
    }
}
