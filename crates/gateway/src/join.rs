//! What the catalogue adds to rows: groups, titles, covers. Late things are
//! left out, and `partial` says so.

use tideline_catalogue::Item;
use tideline_history::kinds::Kinds;
use tideline_history::query::Row;
use tideline_wire::json::{CatalogueJson, RowJson};

use crate::Gateway;

/// One item for each row, where there is one.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) items: Vec<Option<Item>>,
    pub(crate) partial: bool,
}

impl Gateway {
    /// Looks the rows up in the catalogue, in one go.
    pub(crate) async fn join(&self, rows: &[Row]) -> Joined {
        let kinds = self.inner.history.kinds();
        let keys: Vec<(&str, &str)> =
            rows.iter().map(|row| (kinds.name(row.kind), &*row.id)).collect();
        let joined = self.inner.catalogue.get_many(&keys, self.enrich_wait()).await;
        Joined { items: joined.items, partial: joined.partial }
    }
}

/// A row as it is shown; `item` where it is enriched.
pub(crate) fn row_json<'a>(row: &'a Row, kinds: &'a Kinds, item: Option<&'a Item>) -> RowJson<'a> {
    RowJson {
        found: None,
        kind: kinds.name(row.kind),
        id: &row.id,
        part: row.part.as_deref(),
        position_ms: row.position_ms,
        duration_ms: row.duration_ms,
        percent: row.percent(),
        event_ms: row.event_ms.0,
        device: row.device.as_deref(),
        group: item.and_then(|item| item.group.as_deref()).or(row.group.as_deref()),
        finished: row.finished,
        plays: row.plays,
        item: item.map(|item| CatalogueJson {
            title: item.title.as_deref(),
            cover: item.cover.as_deref(),
            url: item.url.as_deref(),
            work: item.work.as_deref(),
            owner: item.owner.as_deref(),
            order: item.order,
            duration_ms: item.duration_ms,
        }),
    }
}
