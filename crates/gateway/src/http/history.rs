//! What changes a user's history.

use axum::response::Response;
use http::{HeaderValue, header};
use tideline_history::mark::{Ack, Path};
use tideline_history::query::{ClearFilter, ObjectKey};
use tideline_types::limits::FIELD_BYTES_MAX;
use tideline_wire::json::{self as wire, Shape, push_str, push_u64};

use super::door::{self, Call};
use super::query::find_kind;
use crate::Gateway;
use crate::export::{read_export, write_export};
use crate::intake::{Intake, Taken, day_flag};
use crate::problem::Problem;

/// Bytes of a mark in JSON, about; to guess how many a body holds.
const MARK_BYTES: usize = 100;

pub(super) async fn record(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    one_user(gateway, call, Path::Live).await
}

pub(super) async fn merge(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    one_user(gateway, call, Path::Merge).await
}

async fn one_user(gateway: Gateway, mut call: Call, path: Path) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    let (ack, shift_ms) = how(&gateway, &call, &["ack"])?;
    let body = call.body(&gateway).await?;
    let kinds = gateway.inner.history.kinds();
    let mut intake = Intake::of_user(kinds, &user, body.len() / MARK_BYTES + 1);
    let shape = wire::read_marks(&body, |mark| intake.take(mark))?;
    if let (Shape::One, Some(fault)) = (shape, intake.first_fault()) {
        return Err(fault.clone().into());
    }
    let taken = intake.write(&gateway, shift_ms, path, ack).await?;
    if let (Shape::One, Some((_, fault))) = (shape, taken.rejected.first()) {
        return Err(fault.clone().into());
    }
    let before = call.parts.headers.get("x-day-flag").and_then(|flag| flag.to_str().ok());
    Ok(answer(&gateway, &taken, &day_flag(&gateway, &taken, before), false))
}

pub(super) async fn batch(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let (ack, shift_ms) = how(&gateway, &call, &["ack", "import"])?;
    let path = if call.query.flag("import")? { Path::Import } else { Path::Live };
    let body = call.body(&gateway).await?;
    let kinds = gateway.inner.history.kinds();
    let mut intake = Intake::of_many(kinds, body.len() / MARK_BYTES + 1);
    if is_lines(&call) {
        wire::read_lines(&body, |mark| intake.take(mark))?;
    } else {
        wire::read_batch(&body, |mark| intake.take(mark))?;
    }
    let taken = intake.write(&gateway, shift_ms, path, ack).await?;
    Ok(answer(&gateway, &taken, "", true))
}

fn how(gateway: &Gateway, call: &Call, known: &[&str]) -> Result<(Ack, i64), Problem> {
    call.query.only(known)?;
    let ack = ack_of(call.query.one("ack")?)?;
    Ok((ack, gateway.shift_ms(call.header_millis("x-client-now-ms")?)))
}

/// When a write is answered, as it was asked for.
pub(crate) fn ack_of(asked: Option<&str>) -> Result<Ack, Problem> {
    match asked {
        None | Some("durable") => Ok(Ack::Durable),
        Some("fast") => Ok(Ack::Fast),
        Some(_) => Err(Problem::invalid("ack: must be durable or fast")),
    }
}

fn is_lines(call: &Call) -> bool {
    let kind = call.parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.contains("ndjson") || kind.contains("jsonl"))
}

fn answer(gateway: &Gateway, taken: &Taken, flag: &str, users: bool) -> Response {
    let body = taken.json(gateway.inner.history.kinds(), flag, users);
    let mut response = door::json(body);
    if let Ok(flag) = HeaderValue::try_from(flag) {
        response.headers_mut().insert("x-day-flag", flag);
    }
    response
}

pub(super) async fn delete(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    let kind = call.param("kind").unwrap_or_default();
    let key = object_key(&gateway, kind, call.param("id").unwrap_or_default())?;
    gateway.inner.history.delete(&user, vec![key]).await?;
    Ok(door::nothing())
}

pub(super) async fn delete_many(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let keys = wire::read_keys(&body)?;
    let keys = keys.iter().map(|key| object_key(&gateway, &key.kind, &key.id));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let deleted = gateway.inner.history.delete(&user, keys).await?;
    Ok(deleted_json(deleted))
}

pub(super) async fn clear(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    let query = &call.query;
    query.only(&["all", "kind", "id", "after_ms", "before_ms", "finished"])?;
    let kinds = gateway.inner.history.kinds();
    let kind = query.one("kind")?.map(|name| find_kind(kinds, name)).transpose()?;
    let id = query.one("id")?.map(|id| checked_id(id).map(Into::into)).transpose()?;
    let filter = ClearFilter {
        kind,
        id,
        after_ms: query.millis("after_ms")?,
        before_ms: query.millis("before_ms")?,
        finished: query.flag("finished")?,
    };
    let all = query.flag("all")?;
    Ok(deleted_json(gateway.clear(&user, filter, all).await?))
}

fn deleted_json(deleted: u64) -> Response {
    let mut out = b"{\"deleted\":".to_vec();
    push_u64(&mut out, deleted);
    out.push(b'}');
    door::json(out)
}

pub(super) async fn settings(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    Ok(settings_json(gateway.inner.history.recording(&user).await?))
}

pub(super) async fn set_settings(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    let on = wire::read_recording(&call.body(&gateway).await?)?;
    gateway.inner.history.set_recording(&user, on).await?;
    Ok(settings_json(on))
}

fn settings_json(recording: bool) -> Response {
    let text: &[u8] = if recording { b"{\"recording\":true}" } else { b"{\"recording\":false}" };
    door::json(text.to_vec())
}

pub(super) async fn export(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    let doc = gateway.inner.history.export(&user).await?;
    Ok(door::lines(write_export(&user, &doc, gateway.inner.history.kinds())))
}

pub(super) async fn restore(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let name = call.param("user").unwrap_or_default();
    let user = gateway.user(&call.caller, name)?;
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let doc = read_export(&body, gateway.inner.history.kinds())?;
    let report = gateway.inner.history.restore(&user, doc).await?;
    let mut out = b"{\"accepted\":".to_vec();
    push_u64(&mut out, report.accepted);
    push_str(&mut out, ",\"stale\":");
    push_u64(&mut out, report.stale);
    out.push(b'}');
    Ok(door::json(out))
}

pub(super) async fn erase(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    // Comments first: if that fails, the call is made again and does both.
    gateway.inner.danmaku.erase(&user).await?;
    gateway.inner.history.erase(&user).await?;
    Ok(door::nothing())
}

/// An object by its kind's name and its id.
pub(crate) fn object_key(gateway: &Gateway, kind: &str, id: &str) -> Result<ObjectKey, Problem> {
    let kind = find_kind(gateway.inner.history.kinds(), kind)?;
    Ok(ObjectKey { kind, id: checked_id(id)?.into() })
}

pub(super) fn checked_id(id: &str) -> Result<&str, Problem> {
    if id.is_empty() || id.len() > FIELD_BYTES_MAX {
        return Err(Problem::invalid(format!("id: must be 1 to {FIELD_BYTES_MAX} bytes")));
    }
    Ok(id)
}
