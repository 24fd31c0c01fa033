//! A running server, as the command line calls it: over HTTP, with the token,
//! trying again where the server says when.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cli::{Failure, ServerArgs};

/// How often a call is tried before the last answer is reported.
const TRIES_MAX: u32 = 10;
/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Why a call was not answered as it should.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer at all.
    #[error("no answer from {url}: {cause} (is a server running there?)")]
    Unreachable {
        /// What was called.
        url: String,
        /// What the system said.
        cause: String,
    },
    /// The server said no.
    #[error("the server answered {status} {code}: {detail}")]
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its stable code.
        code: String,
        /// Which field, which limit.
        detail: String,
    },
    /// The answer is not what this program expects.
    #[error("cannot read the answer of {url}: {cause}")]
    Odd {
        /// What was called.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
    title: String,
}

impl Client {
    /// A client of the server that `args` name.
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let base = args.server.trim_end_matches('/').to_owned();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Failure::Usage(format!(
                "--server {base}: must start with http:// or https://"
            )));
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .build()
            .map_err(|e| Failure::failed("cannot make a client", e))?;
        Ok(Self { http, base, token: args.token.clone() })
    }

    /// A request to `path`, which starts with a slash and is already encoded.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// One try. Any answer that is no success is `Refused`.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, CallError> {
        self.try_once(request).await.map_err(|(error, _)| error)
    }

    /// Tries until the answer is neither 429 nor 503 and the server is there,
    /// waiting as long as it says; at most ten times.
    pub(crate) async fn send_patiently(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Response, CallError> {
        let mut wait = Duration::from_millis(200);
        let mut tries = 1;
        loop {
            let (error, after) = match self.try_once(request()).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            let again = match &error {
                CallError::Unreachable { .. } => true,
                CallError::Refused { status, .. } => {
                    *status == StatusCode::TOO_MANY_REQUESTS
                        || *status == StatusCode::SERVICE_UNAVAILABLE
                }
                CallError::Odd { .. } => false,
            };
            if !again || tries == TRIES_MAX {
                return Err(error);
            }
            tokio::time::sleep(after.unwrap_or(wait).min(WAIT_MAX)).await;
            wait = (wait * 2).min(WAIT_MAX);
            tries += 1;
        }
    }

    /// One try, answered with JSON.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, CallError> {
        read_json(self.send(request).await?).await
    }

    async fn try_once(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, (CallError, Option<Duration>)> {
        let response = request.send().await.map_err(|e| (self.unreachable(&e), None))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = response.text().await.unwrap_or_default();
        let problem: Problem = serde_json::from_str(&body).unwrap_or_default();
        let detail = if problem.detail.is_empty() { problem.title } else { problem.detail };
        Err((CallError::Refused { status, code: problem.code, detail }, after))
    }

    fn unreachable(&self, error: &reqwest::Error) -> CallError {
        let mut cause = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            cause = inner.to_string();
            source = inner.source();
        }
        CallError::Unreachable { url: self.base.clone(), cause }
    }
}

/// The body of `response` as JSON.
pub(crate) async fn read_json<T: DeserializeOwned>(response: Response) -> Result<T, CallError> {
    let url = response.url().to_string();
    let odd = |cause: String| CallError::Odd { url: url.clone(), cause };
    let body = response.bytes().await.map_err(|e| odd(e.to_string()))?;
    serde_json::from_slice(&body).map_err(|e| odd(e.to_string()))
}

/// `text` as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_text_is_one_segment() {
        assert_eq!(super::segment("a/ü~1.x"), "a%2F%C3%BC~1.x");
    }
}
