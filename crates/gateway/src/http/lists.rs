//! What reads a user's history.

use axum::response::Response;
use tideline_history::outcome::day_text;
use tideline_history::query::Row;
use tideline_types::limits::FIELD_BYTES_MAX;
use tideline_wire::json::{self as wire, RowJson, push_row, push_str, push_string, push_u64};

use super::door::{self, Call};
use super::history::object_key;
use crate::Gateway;
use crate::join::row_json;
use crate::page::{Page, PageAsk, ROWS_DEFAULT};
use crate::problem::Problem;

/// Bytes of a row in JSON, about.
const ROW_BYTES: usize = 220;

pub(super) async fn list(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    let query = &call.query;
    query.only(&[
        "kind",
        "limit",
        "cursor",
        "page",
        "after_ms",
        "before_ms",
        "unfinished",
        "group",
        "enrich",
    ])?;
    let limit = query.number("limit")?;
    let ask = PageAsk {
        filter: query.filter(gateway.inner.history.kinds())?,
        limit: limit.map_or(ROWS_DEFAULT, |limit| limit.try_into().unwrap_or(usize::MAX)),
        cursor: query.one("cursor")?,
        page: query.number("page")?,
        group: query.flag("group")?,
        enrich: query.flag("enrich")?,
    };
    let page = gateway.page(&user, ask).await?;
    Ok(door::json(page_json(&gateway, &page)))
}

fn page_json(gateway: &Gateway, page: &Page) -> Vec<u8> {
    let kinds = gateway.inner.history.kinds();
    let mut out = Vec::with_capacity(96 + page.rows.len() * ROW_BYTES);
    push_str(&mut out, "{\"items\":[");
    for (at, row) in page.rows.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let item = page.items.get(at).and_then(Option::as_ref);
        push_row(&mut out, &row_json(row, kinds, item));
    }
    push_str(&mut out, "],\"next_cursor\":");
    match &page.next_cursor {
        Some(cursor) => push_string(&mut out, cursor),
        None => push_str(&mut out, "null"),
    }
    if let Some(total) = page.total {
        push_str(&mut out, ",\"total\":");
        push_u64(&mut out, total as u64);
    }
    if page.partial {
        push_str(&mut out, ",\"partial\":true");
    }
    out.push(b'}');
    out
}

pub(super) async fn count(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&["kind", "after_ms", "before_ms", "unfinished", "group"])?;
    let filter = call.query.filter(gateway.inner.history.kinds())?;
    let count = gateway.count(&user, filter, call.query.flag("group")?).await?;
    let mut out = b"{\"count\":".to_vec();
    push_u64(&mut out, count as u64);
    out.push(b'}');
    Ok(door::json(out))
}

pub(super) async fn days(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&["kind", "after_ms", "before_ms", "unfinished"])?;
    let filter = call.query.filter(gateway.inner.history.kinds())?;
    let days = gateway.inner.history.days(&user, filter).await?;
    let mut out = Vec::with_capacity(2 + days.len() * 36);
    out.push(b'[');
    for (at, (day, count)) in days.iter().enumerate() {
        push_str(&mut out, if at == 0 { "{\"day\":" } else { ",{\"day\":" });
        push_string(&mut out, &day_text(*day));
        push_str(&mut out, ",\"count\":");
        push_u64(&mut out, (*count).into());
        out.push(b'}');
    }
    out.push(b']');
    Ok(door::json(out))
}

pub(super) async fn progress(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    let query = &call.query;
    let (kind, id) = match (call.param("kind"), call.param("id")) {
        (Some(kind), Some(id)) => {
            query.only(&["part"])?;
            (kind, id)
        }
        _ => {
            query.only(&["kind", "id", "part"])?;
            let kind = query.one("kind")?.ok_or_else(|| Problem::invalid("kind: is required"))?;
            (kind, query.one("id")?.ok_or_else(|| Problem::invalid("id: is required"))?)
        }
    };
    let key = object_key(&gateway, kind, id)?;
    let part = query.one("part")?;
    if part.is_some_and(|part| part.is_empty() || part.len() > FIELD_BYTES_MAX) {
        return Err(Problem::invalid(format!("part: must be 1 to {FIELD_BYTES_MAX} bytes")));
    }
    let row = gateway.inner.history.points(&user, vec![key]).await?.pop().flatten();
    let mut out = Vec::with_capacity(ROW_BYTES);
    push_point(&mut out, &gateway, (kind, id, part), row.as_ref());
    Ok(door::json(out))
}

pub(super) async fn progress_batch(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let asked = wire::read_keys(&body)?;
    let keys = asked.iter().map(|key| object_key(&gateway, &key.kind, &key.id));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let rows = gateway.inner.history.points(&user, keys).await?;
    let mut out = Vec::with_capacity(16 + rows.len() * ROW_BYTES);
    push_str(&mut out, "{\"items\":[");
    for (at, (key, row)) in asked.iter().zip(&rows).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let asked = (&*key.kind, &*key.id, key.part.as_deref());
        push_point(&mut out, &gateway, asked, row.as_ref());
    }
    push_str(&mut out, "]}");
    Ok(door::json(out))
}

/// The answer of a point read: the row, if it is of the part that was asked
/// for, or that there is none.
fn push_point(
    out: &mut Vec<u8>,
    gateway: &Gateway,
    (kind, id, part): (&str, &str, Option<&str>),
    row: Option<&Row>,
) {
    let row = row.filter(|row| part.is_none() || row.part.as_deref() == part);
    match row {
        Some(row) => {
            let shown = row_json(row, gateway.inner.history.kinds(), None);
            push_row(out, &RowJson { found: Some(true), ..shown });
        }
        None => {
            push_row(out, &RowJson { found: Some(false), kind, id, part, ..RowJson::default() })
        }
    }
}
