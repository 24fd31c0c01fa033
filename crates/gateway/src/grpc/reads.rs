//! What reads a user's history over gRPC, and what removes from it.

use std::pin::Pin;
use std::sync::Arc;

use tideline_catalogue::Item;
use tideline_history::outcome::day_text;
use tideline_history::query::{ClearFilter, Filter, ObjectKey, Row};
use tideline_types::Millis;
use tideline_types::limits::{BATCH_KEYS_MAX, FIELD_BYTES_MAX};
use tideline_wire::Code;
use tideline_wire::history_v1 as v1;
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::Gateway;
use crate::auth::Caller;
use crate::export::{read_export, write_export};
use crate::http::{find_kind, object_key};
use crate::op::Op;
use crate::page::{PageAsk, ROWS_DEFAULT};
use crate::problem::Problem;

type Who = Arc<Caller>;

impl Gateway {
    /// The user that a request names, whom the caller may ask about.
    fn grpc_user(
        &self,
        op: Op,
        caller: &Caller,
        name: &str,
    ) -> Result<tideline_types::UserId, Problem> {
        let user = self.user(caller, name)?;
        self.admit(op, caller, Some(&user))?;
        Ok(user)
    }

    fn grpc_filter(
        &self,
        kinds: &[String],
        after_ms: Option<i64>,
        before_ms: Option<i64>,
        unfinished: bool,
    ) -> Result<Filter, Problem> {
        let known = self.inner.history.kinds();
        let kinds = kinds.iter().map(|name| find_kind(known, name));
        Ok(Filter {
            kinds: kinds.collect::<Result<_, _>>()?,
            after_ms: after_ms.map(Millis),
            before_ms: before_ms.map(Millis),
            unfinished,
        })
    }

    fn grpc_keys(&self, keys: &[v1::Key]) -> Result<Vec<ObjectKey>, Problem> {
        if keys.len() > BATCH_KEYS_MAX {
            let detail = format!("keys: at most {BATCH_KEYS_MAX} in one call");
            return Err(Problem::new(Code::PayloadTooLarge, detail));
        }
        keys.iter().map(|key| object_key(self, &key.kind, &key.id)).collect()
    }

    fn progress(&self, key: &v1::Key, row: Option<Row>) -> v1::Progress {
        let part = key.part.as_deref().filter(|part| !part.is_empty());
        let row = row.filter(|row| part.is_none() || row.part.as_deref() == part);
        v1::Progress { found: row.is_some(), item: row.map(|row| self.item(row, None)) }
    }

    fn item(&self, row: Row, item: Option<Item>) -> v1::Item {
        let percent = row.percent().map(Into::into);
        let group = item.as_ref().and_then(|item| item.group.clone());
        v1::Item {
            kind: self.inner.history.kinds().name(row.kind).into(),
            id: row.id.into(),
            part: row.part.map(Into::into),
            position_ms: row.position_ms,
            duration_ms: row.duration_ms,
            event_ms: row.event_ms.0,
            device: row.device.map(Into::into),
            group: group.or(row.group.map(Into::into)),
            finished: row.finished,
            plays: row.plays,
            percent,
            item: item.map(|item| v1::CatalogueItem {
                title: item.title,
                cover: item.cover,
                url: item.url,
                group: item.group,
                work: item.work,
                owner: item.owner,
                duration_ms: item.duration_ms,
                order: item.order,
            }),
        }
    }
}

pub(super) async fn list(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::ListRequest,
) -> Result<v1::ListResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let filter = gateway.grpc_filter(&ask.kinds, ask.after_ms, ask.before_ms, ask.unfinished)?;
    let page = PageAsk {
        filter,
        limit: if ask.limit == 0 { ROWS_DEFAULT } else { ask.limit as usize },
        cursor: Some(ask.cursor.as_str()).filter(|cursor| !cursor.is_empty()),
        page: Some(u64::from(ask.page)).filter(|page| *page > 0),
        group: ask.group,
        enrich: ask.enrich,
    };
    let page = gateway.page(&user, page).await?;
    let mut items = page.items.into_iter();
    let rows = page.rows.into_iter();
    Ok(v1::ListResponse {
        items: rows.map(|row| gateway.item(row, items.next().flatten())).collect(),
        next_cursor: page.next_cursor.unwrap_or_default(),
        total: page.total.map(|total| total as u64),
        partial: page.partial,
    })
}

pub(super) async fn count(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::CountRequest,
) -> Result<v1::CountResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let filter = gateway.grpc_filter(&ask.kinds, ask.after_ms, ask.before_ms, ask.unfinished)?;
    let count = gateway.count(&user, filter, ask.group).await? as u64;
    Ok(v1::CountResponse { count })
}

pub(super) async fn days(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::CountRequest,
) -> Result<v1::DaysResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    if ask.group {
        return Err(Problem::invalid("group: days are counted by row"));
    }
    let filter = gateway.grpc_filter(&ask.kinds, ask.after_ms, ask.before_ms, ask.unfinished)?;
    let days = gateway.inner.history.days(&user, filter).await?;
    let day = |(day, count): (i32, u32)| v1::Day { day: day_text(day), count: count.into() };
    Ok(v1::DaysResponse { days: days.into_iter().map(day).collect() })
}

pub(super) async fn get(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::GetRequest,
) -> Result<v1::Progress, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let key = ask.key.ok_or_else(|| Problem::invalid("key: is required"))?;
    let object = object_key(gateway, &key.kind, &key.id)?;
    let row = gateway.inner.history.points(&user, vec![object]).await?.pop().flatten();
    Ok(gateway.progress(&key, row))
}

pub(super) async fn batch_get(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::BatchGetRequest,
) -> Result<v1::BatchGetResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let rows = gateway.inner.history.points(&user, gateway.grpc_keys(&ask.keys)?).await?;
    let items = ask.keys.iter().zip(rows).map(|(key, row)| gateway.progress(key, row));
    Ok(v1::BatchGetResponse { items: items.collect() })
}

pub(super) async fn delete(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::DeleteRequest,
) -> Result<v1::DeletedResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let keys = gateway.grpc_keys(&ask.keys)?;
    let deleted = gateway.inner.history.delete(&user, keys).await?;
    Ok(v1::DeletedResponse { deleted })
}

pub(super) async fn clear(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::ClearRequest,
) -> Result<v1::DeletedResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let kind = match ask.kind.as_str() {
        "" => None,
        name => Some(find_kind(gateway.inner.history.kinds(), name)?),
    };
    if ask.id.len() > FIELD_BYTES_MAX {
        return Err(Problem::invalid(format!("id: at most {FIELD_BYTES_MAX} bytes")));
    }
    let filter = ClearFilter {
        kind,
        id: (!ask.id.is_empty()).then(|| ask.id.into()),
        after_ms: ask.after_ms.map(Millis),
        before_ms: ask.before_ms.map(Millis),
        finished: ask.finished,
    };
    let deleted = gateway.clear(&user, filter, ask.all).await?;
    Ok(v1::DeletedResponse { deleted })
}

pub(super) async fn settings(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::UserRequest,
) -> Result<v1::Settings, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let recording = gateway.inner.history.recording(&user).await?;
    Ok(v1::Settings { recording })
}

pub(super) async fn set_settings(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::SetSettingsRequest,
) -> Result<v1::Settings, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    gateway.inner.history.set_recording(&user, ask.recording).await?;
    Ok(v1::Settings { recording: ask.recording })
}

type ExportLines = Pin<Box<dyn Stream<Item = Result<v1::ExportLine, Status>> + Send>>;

pub(super) async fn export(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::UserRequest,
) -> Result<ExportLines, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    let doc = gateway.inner.history.export(&user).await?;
    let text = write_export(&user, &doc, gateway.inner.history.kinds());
    let text = String::from_utf8(text).expect("JSON is UTF-8");
    let lines: Vec<_> =
        text.lines().map(|line| Ok(v1::ExportLine { json: line.to_owned() })).collect();
    Ok(Box::pin(tokio_stream::iter(lines)))
}

pub(super) async fn restore(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    mut lines: Streaming<v1::RestoreRequest>,
) -> Result<v1::RestoreResponse, Problem> {
    let bytes_max = gateway.inner.options.server.body_bytes_max;
    gateway.admit(op, &caller, None)?;
    let (mut name, mut text) = (None, String::new());
    let ended = |_| Problem::invalid("the stream ended before it was whole");
    while let Some(line) = lines.message().await.map_err(ended)? {
        let user = name.get_or_insert(line.user);
        if user.is_empty() {
            return Err(Problem::invalid("user: the first message must say it"));
        }
        text.push_str(&line.json);
        text.push('\n');
        if text.len() > bytes_max {
            let detail = format!("an export: at most {bytes_max} bytes");
            return Err(Problem::new(Code::PayloadTooLarge, detail));
        }
    }
    let user = gateway.user(&caller, &name.unwrap_or_default())?;
    let doc = read_export(text.as_bytes(), gateway.inner.history.kinds())?;
    let report = gateway.inner.history.restore(&user, doc).await?;
    Ok(v1::RestoreResponse { accepted: report.accepted, stale: report.stale })
}

pub(super) async fn erase(
    gateway: &Gateway,
    op: Op,
    caller: Who,
    ask: v1::UserRequest,
) -> Result<v1::EraseResponse, Problem> {
    let user = gateway.grpc_user(op, &caller, &ask.user)?;
    gateway.inner.history.erase(&user).await?;
    Ok(v1::EraseResponse {})
}
