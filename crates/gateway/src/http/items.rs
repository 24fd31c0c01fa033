//! Titles, covers and groups, in and out of the catalogue.

use std::borrow::Cow;

use axum::response::Response;
use tideline_catalogue::Item;
use tideline_wire::Code;
use tideline_wire::json::{self as wire, ItemJson, push_i64, push_str, push_string, push_u64};

use super::door::{self, Call};
use super::history::{checked_id, object_key};
use super::query::find_kind;
use crate::Gateway;
use crate::problem::Problem;

pub(super) async fn put(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let kind = call.param("kind").unwrap_or_default();
    let id = checked_id(call.param("id").unwrap_or_default())?;
    find_kind(gateway.inner.history.kinds(), kind)?;
    let item = wire::read_item(&body)?;
    gateway.inner.catalogue.put(vec![(kind.into(), id.into(), owned(item))]).await?;
    if kind == "video" {
        gateway.forget_work(id);
    }
    Ok(door::nothing())
}

pub(super) async fn put_many(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let kinds = gateway.inner.history.kinds();
    let items = wire::read_items(&body)?.into_iter().map(|put| {
        find_kind(kinds, &put.kind)?;
        Ok::<_, Problem>((put.kind.into_owned(), put.id.into_owned(), owned(put.item)))
    });
    let items = items.collect::<Result<Vec<_>, _>>()?;
    let stored = items.len();
    let videos = items.iter().filter(|(kind, ..)| kind == "video");
    let videos: Vec<String> = videos.map(|(_, id, _)| id.clone()).collect();
    gateway.inner.catalogue.put(items).await?;
    videos.iter().for_each(|video| gateway.forget_work(video));
    let mut out = b"{\"stored\":".to_vec();
    push_u64(&mut out, stored as u64);
    out.push(b'}');
    Ok(door::json(out))
}

pub(super) async fn get(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (kind, id) = (call.param("kind").unwrap_or_default(), call.param("id").unwrap_or_default());
    object_key(&gateway, kind, id)?;
    let joined = gateway.inner.catalogue.get_many(&[(kind, id)], gateway.enrich_wait()).await;
    let item = joined.items.into_iter().next().flatten();
    let item = item.ok_or_else(|| Problem::new(Code::NotFound, "there is no such item"))?;
    let mut out = b"{\"kind\":".to_vec();
    push_string(&mut out, kind);
    push_str(&mut out, ",\"id\":");
    push_string(&mut out, id);
    for (name, text) in [
        (",\"title\":", &item.title),
        (",\"cover\":", &item.cover),
        (",\"url\":", &item.url),
        (",\"group\":", &item.group),
        (",\"work\":", &item.work),
        (",\"owner\":", &item.owner),
    ] {
        if let Some(text) = text {
            push_str(&mut out, name);
            push_string(&mut out, text);
        }
    }
    if let Some(ms) = item.duration_ms {
        push_str(&mut out, ",\"duration_ms\":");
        push_u64(&mut out, ms);
    }
    if let Some(order) = item.order {
        push_str(&mut out, ",\"order\":");
        push_i64(&mut out, order);
    }
    out.push(b'}');
    Ok(door::json(out))
}

fn owned(item: ItemJson<'_>) -> Item {
    Item {
        title: item.title.map(Cow::into_owned),
        cover: item.cover.map(Cow::into_owned),
        url: item.url.map(Cow::into_owned),
        group: item.group.map(Cow::into_owned),
        work: item.work.map(Cow::into_owned),
        owner: item.owner.map(Cow::into_owned),
        duration_ms: item.duration_ms,
        order: item.order,
    }
}
