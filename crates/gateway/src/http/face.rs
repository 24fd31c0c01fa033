//! Around all paths: names for requests, browsers' preflights, compression.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::Gateway;

/// Answers smaller than this are not compressed: it would cost more than it
/// saves.
const COMPRESS_BYTES_MIN: u64 = 1400;
/// Longer names of requests are replaced.
const REQUEST_ID_BYTES_MAX: usize = 128;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const HEX: &[u8; 16] = b"0123456789abcdef";
const ALLOWED_METHODS: &str = "GET, POST, PUT, DELETE, PATCH";
const ALLOWED_HEADERS: &str = "authorization, content-type, if-none-match, x-client-now-ms, \
                               x-day-flag, x-request-id";
const EXPOSED_HEADERS: &str =
    "ETag, X-Cache, x-tideline-seq, x-day-flag, x-request-id, Retry-After";

pub(super) fn around(router: Router, gateway: Gateway) -> Router {
    router.layer(compression()).layer(from_fn_with_state(gateway, face))
}

/// Compresses what is worth it.
pub(super) fn compression() -> CompressionLayer<impl Predicate> {
    let worth = SizeAbove::new(COMPRESS_BYTES_MIN)
        // Compressed in themselves, and asked for in ranges.
        .and(NotForContentType::const_new("video/"))
        .and(is_untold);
    CompressionLayer::new().compress_when(worth)
}

/// Bytes that are known by a tag are sent as they are: packed, they are others.
fn is_untold(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    headers.get(header::ETAG).is_none_or(|tag| tag.as_bytes().starts_with(b"W/"))
}

async fn face(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let asked = Asked::of(&gateway, request.headers());
    let preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let response = if preflight { allowed() } else { next.run(request).await };
    asked.answered(&gateway, response)
}

/// What of a request its answer goes back to.
pub(super) struct Asked {
    id: HeaderValue,
    origin: Option<HeaderValue>,
}

impl Asked {
    pub(super) fn of(gateway: &Gateway, headers: &HeaderMap) -> Self {
        let origin = headers.get(header::ORIGIN).cloned();
        Self { id: request_id(gateway, headers), origin }
    }

    /// The answer with the request's name, and with what a page of another
    /// origin may see of it.
    pub(super) fn answered(self, gateway: &Gateway, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if let Some(origin) = self.origin {
            headers.append(header::VARY, HeaderValue::from_static("origin"));
            if welcome(&gateway.inner.options.server.cors_origins, &origin) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
                headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            }
        }
        headers.insert(&REQUEST_ID, self.id);
        response
    }
}

/// What browsers may send; whether an origin may is said by another header.
fn allowed() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, "7200"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether pages of `origin` may call.
fn welcome(origins: &[String], origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    if origins.is_empty() {
        return is_loopback(origin);
    }
    origins.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(origin))
}

fn is_loopback(origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_is_one = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    matches!(scheme, "http" | "https")
        && matches!(name, "localhost" | "127.0.0.1" | "::1")
        && port_is_one
}

fn request_id(gateway: &Gateway, headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(&REQUEST_ID);
    if let Some(given) = given.filter(|id| (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())) {
        return given.clone();
    }
    let name = gateway.inner.meters.name_request();
    let digits: [u8; 16] = std::array::from_fn(|at| HEX[(name >> (60 - 4 * at)) as usize & 15]);
    HeaderValue::from_bytes(&digits).expect("hexadecimal digits are a header's value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_list_only_pages_of_this_machine_may_call() {
        let may = |origins: &[&str], origin: &'static str| {
            let origins: Vec<String> = origins.iter().map(|o| (*o).into()).collect();
            welcome(&origins, &HeaderValue::from_static(origin))
        };
        for good in ["http://localhost", "http://localhost:3000", "https://127.0.0.1:8443"] {
            assert!(may(&[], good), "{good}");
        }
        assert!(may(&[], "http://[::1]:5"));
        for bad in ["https://evil.example", "http://localhost.evil.example", "null", "http://[::1"]
        {
            assert!(!may(&[], bad), "{bad}");
        }
        assert!(!may(&[], "http://localhost:x.evil.example"));
        assert!(may(&["https://app.example"], "https://app.example"));
        assert!(!may(&["https://app.example"], "http://localhost"));
        assert!(may(&["*"], "https://any.example"));
    }
}
