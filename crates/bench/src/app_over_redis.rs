//! The plainest thing a team would write instead: axum in front of Redis, the
//! usual three commands per mark, JSON in and out.
//!
//! It checks nothing, keeps no rule and loses up to a second at a crash. One
//! connection, shared by all requests, pipelines them; one thread, as it has
//! one core.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};

use crate::BenchError;

/// What is kept under a mark's own key; the sorted set has the rest.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

/// A mark, in and out.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    kind: String,
    id: String,
    event_ms: u64,
    #[serde(flatten)]
    kept: Kept,
}

#[derive(Debug, Serialize)]
struct Written {
    accepted: u32,
}

#[derive(Debug, Serialize)]
struct Listed {
    items: Vec<Mark>,
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: Option<isize>,
}

/// Marks are kept for as long as by default on our side.
const KEEP_SECONDS: u64 = 90 * 86_400;

async fn record(
    State(mut redis): State<MultiplexedConnection>,
    Path(user): Path<String>,
    Json(mark): Json<Mark>,
) -> Result<Json<Written>, StatusCode> {
    let set = format!("h:{user}");
    let member = format!("{}:{}", mark.kind, mark.id);
    let value = serde_json::to_string(&mark.kept).map_err(|_| StatusCode::BAD_REQUEST)?;
    let _: () = redis::pipe()
        .zadd(&set, &member, mark.event_ms)
        .ignore()
        .set_ex(format!("{set}:{member}"), value, KEEP_SECONDS)
        .ignore()
        .zremrangebyrank(&set, 0, -1001)
        .ignore()
        .query_async(&mut redis)
        .await
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(Json(Written { accepted: 1 }))
}

async fn list(
    State(mut redis): State<MultiplexedConnection>,
    Path(user): Path<String>,
    Query(limit): Query<Limit>,
) -> Result<Json<Listed>, StatusCode> {
    let set = format!("h:{user}");
    let last = limit.limit.unwrap_or(20) - 1;
    let unavailable = |_| StatusCode::SERVICE_UNAVAILABLE;
    let members: Vec<(String, f64)> =
        redis.zrevrange_withscores(&set, 0, last).await.map_err(unavailable)?;
    let keys: Vec<String> = members.iter().map(|(member, _)| format!("{set}:{member}")).collect();
    let values: Vec<Option<String>> =
        if keys.is_empty() { Vec::new() } else { redis.mget(&keys).await.map_err(unavailable)? };
    let items = members.into_iter().zip(values).filter_map(|((member, score), value)| {
        let (kind, id) = member.split_once(':')?;
        let kept = serde_json::from_str(&value?).ok()?;
        Some(Mark { kind: kind.into(), id: id.into(), event_ms: score as u64, kept })
    });
    Ok(Json(Listed { items: items.collect() }))
}

/// Serves on `listen` until the process is ended.
pub(crate) async fn serve(listen: &str, redis: &str) -> Result<(), BenchError> {
    let failed = |e: redis::RedisError| BenchError::Peer(e.to_string());
    let client = redis::Client::open(redis).map_err(failed)?;
    let connection = client.get_multiplexed_async_connection().await.map_err(failed)?;
    let app = Router::new()
        .route("/v1/users/{user}/history", post(record).get(list))
        .with_state(connection);
    let listener = tokio::net::TcpListener::bind(listen)
        .await
        .map_err(|e| BenchError::io(format!("bind {listen}"), &e))?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await.map_err(|e| BenchError::io("serve", &e))
}
