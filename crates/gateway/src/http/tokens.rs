//! Tickets for browsers, and tokens for everyone else.

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tideline_types::Millis;
use tideline_wire::Code;
use tideline_wire::json::{push_str, push_string, push_u64};

use super::door::{self, Call};
use crate::Gateway;
use crate::auth::{NewToken, TokenInfo};
use crate::problem::Problem;

pub(super) async fn ticket(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (ticket, good_ms) = gateway.inner.auth.ticket(call.caller)?;
    let mut out = b"{\"ticket\":".to_vec();
    push_string(&mut out, &ticket);
    push_str(&mut out, ",\"good_ms\":");
    push_u64(&mut out, good_ms);
    out.push(b'}');
    let mut response = door::json(out);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MakeToken {
    scopes: Vec<String>,
    #[serde(default)]
    note: String,
    until_ms: Option<i64>,
}

#[derive(Serialize)]
struct TokenLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    id: &'a str,
    scopes: &'a [String],
    note: &'a str,
    made_ms: i64,
    until_ms: Option<i64>,
}

impl<'a> TokenLine<'a> {
    fn of(info: &'a TokenInfo, token: Option<&'a str>) -> Self {
        Self {
            token,
            id: &info.id,
            scopes: &info.scopes,
            note: &info.note,
            made_ms: info.made_ms.0,
            until_ms: info.until_ms.map(|until| until.0),
        }
    }
}

#[derive(Serialize)]
struct TokenLines<'a> {
    tokens: Vec<TokenLine<'a>>,
}

pub(super) async fn make(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let asked: MakeToken = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("body: {error}")))?;
    let until_ms = asked.until_ms.map(Millis);
    let new = NewToken { scopes: asked.scopes, note: asked.note, until_ms };
    let tokens = gateway.inner.auth.tokens().clone();
    let (text, info) = tokio::task::spawn_blocking(move || tokens.make(new))
        .await
        .map_err(|_| Problem::internal())??;
    let mut response = door::json(to_json(&TokenLine::of(&info, Some(&text))));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

pub(super) async fn list(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let infos = gateway.inner.auth.tokens().list();
    let tokens = infos.iter().map(|info| TokenLine::of(info, None)).collect();
    Ok(door::json(to_json(&TokenLines { tokens })))
}

pub(super) async fn revoke(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let id = call.param("id").unwrap_or_default().to_owned();
    let tokens = gateway.inner.auth.tokens().clone();
    let was = tokio::task::spawn_blocking(move || tokens.revoke(&id))
        .await
        .map_err(|_| Problem::internal())??;
    if !was {
        return Err(Problem::new(Code::NotFound, "there is no such token"));
    }
    Ok(door::nothing())
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("these structs have only string keys")
}
