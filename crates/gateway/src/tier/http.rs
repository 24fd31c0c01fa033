//! What a key has, over HTTP: one call.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tideline_tier::Has;
use tideline_wire::json::{push_i64, push_str, push_string};

use super::Face;
use crate::problem::Problem;

/// `GET /v1/keys/{key}`.
pub(super) fn routes(face: Face) -> Router {
    Router::new().route("/v1/keys/{key}", get(key)).with_state(face)
}

/// `{"key", "counter" | "value", "applied"}`; with neither, the key has nothing.
async fn key(State(face): State<Face>, headers: HeaderMap, Path(key): Path<String>) -> Response {
    match found(&face, &headers, key).await {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn found(face: &Face, headers: &HeaderMap, key: String) -> Result<Vec<u8>, Problem> {
    face.admit(headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()))?;
    let asked = key.clone();
    let (has, applied) = face.run(move |tier| tier.get(asked.as_bytes())).await??;
    let mut out = Vec::with_capacity(128);
    push_str(&mut out, "{\"key\":");
    push_string(&mut out, &key);
    match has {
        None => {}
        Some(Has::Counter(n)) => {
            push_str(&mut out, ",\"counter\":");
            push_i64(&mut out, n);
        }
        Some(Has::Value(json)) => {
            push_str(&mut out, ",\"value\":");
            out.extend_from_slice(&json);
        }
    }
    push_str(&mut out, ",\"applied\":");
    push_string(&mut out, &applied.to_string());
    out.push(b'}');
    Ok(out)
}
