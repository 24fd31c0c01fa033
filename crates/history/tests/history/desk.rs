//! A desk at which one user is served: decides, logs and applies as an owner
//! does, and reads the answers.

use std::sync::Arc;

use tideline_history::facts::ExportDoc;
use tideline_history::kinds::{Kind, KindId, Kinds};
use tideline_history::mark::{Mark, Path, Verdict};
use tideline_history::outcome::OutcomeRef;
use tideline_history::query::{
    ClearFilter, Filter, List, ListQuery, ObjectKey, PageAt, Row, RowOrder,
};
use tideline_history::rules::{RestoreReport, Rules};
use tideline_history::timeline::{Timeline, Touched};
use tideline_types::Millis;

/// Some moment in late 2026.
pub(crate) const NOW: i64 = 1_796_000_000_000;

/// The default kinds, as the server declares them.
pub(crate) fn default_kinds() -> Kinds {
    let kind = |name: &str| {
        let shop = matches!(name, "shop" | "product");
        Kind {
            name: name.into(),
            declared: true,
            retention_days: if shop { 62 } else { 90 },
            max_records: if shop { 200 } else { 1000 },
            max_per_day: 0,
            daily_first: true,
        }
    };
    let names = ["video", "article", "comic", "live", "audio", "course", "shop", "product"];
    Kinds::new(names.into_iter().map(kind).collect())
}

/// One user, and all that was logged of them.
pub(crate) struct Desk {
    pub(crate) rules: Rules,
    pub(crate) now: i64,
    pub(crate) user: Timeline,
    pub(crate) touched: Touched,
    pub(crate) log: Vec<Vec<u8>>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(default_kinds())
    }

    pub(crate) fn with(kinds: Kinds) -> Self {
        let rules = Rules { kinds: Arc::new(kinds), zone: jiff::tz::TimeZone::UTC, key: [3; 16] };
        let (user, touched) = (Timeline::new(), Touched::default());
        Self { rules, now: NOW, user, touched, log: Vec::new() }
    }

    pub(crate) fn kind(&self, name: &str) -> KindId {
        self.rules.kinds.find(name).unwrap()
    }

    pub(crate) fn mark(&self, kind: &str, id: &'static str) -> Mark<'static> {
        Mark {
            user: "u",
            kind: self.kind(kind),
            id,
            part: None,
            position_ms: None,
            duration_ms: None,
            sent_ms: None,
            device: None,
            group: None,
            finished: false,
            event_id: None,
        }
    }

    /// Takes an outcome as the owner does: from its bytes, once logged.
    pub(crate) fn take(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            let outcome = OutcomeRef::decode(&bytes).unwrap();
            self.user.apply(&outcome, &self.rules.kinds, &mut self.touched).unwrap();
            self.log.push(bytes);
        }
    }

    pub(crate) fn send(&mut self, mark: &Mark<'_>, shift_ms: i64, path: Path) -> Verdict {
        let mut out = Vec::new();
        let verdict = self.rules.mark(&self.user, mark, shift_ms, Millis(self.now), path, &mut out);
        assert_eq!(matches!(verdict, Verdict::Accepted { .. }), !out.is_empty());
        self.take(out);
        verdict
    }

    pub(crate) fn delete(&mut self, keys: &[(&str, &str)]) -> u64 {
        let keys: Vec<ObjectKey> = keys
            .iter()
            .map(|(kind, id)| ObjectKey { kind: self.kind(kind), id: (*id).into() })
            .collect();
        let mut out = Vec::new();
        let deleted = self.rules.delete(&self.user, &keys, Millis(self.now), &mut out).unwrap();
        self.take(out);
        deleted
    }

    pub(crate) fn clear(&mut self, filter: &ClearFilter) -> u64 {
        let mut out = Vec::new();
        let cleared = self.rules.clear(&self.user, filter, Millis(self.now), &mut out).unwrap();
        self.take(out);
        cleared
    }

    pub(crate) fn switch(&mut self, on: bool) -> bool {
        let mut out = Vec::new();
        let changed = self.rules.switch(&self.user, on, Millis(self.now), &mut out).unwrap();
        self.take(out);
        changed
    }

    pub(crate) fn erase(&mut self) {
        let mut out = Vec::new();
        self.rules.erase(&self.user, Millis(self.now), &mut out);
        self.take(out);
    }

    pub(crate) fn restore(&mut self, doc: &ExportDoc) -> RestoreReport {
        let mut out = Vec::new();
        let report = self.rules.restore(&self.user, doc, Millis(self.now), &mut out).unwrap();
        out.into_iter().for_each(|bytes| self.take(bytes));
        report
    }

    pub(crate) fn export(&self) -> ExportDoc {
        self.user.export(&self.rules, Millis(self.now))
    }

    pub(crate) fn row(&self, kind: &str, id: &str) -> Option<Row> {
        self.user.row(self.kind(kind), id, &self.rules, Millis(self.now))
    }

    pub(crate) fn rows(&self, filter: &Filter) -> Vec<Row> {
        self.user.rows(filter, &self.rules, Millis(self.now))
    }

    pub(crate) fn count(&self, filter: &Filter) -> usize {
        self.user.count(filter, &self.rules, Millis(self.now))
    }

    pub(crate) fn days(&self, filter: &Filter) -> Vec<(i32, u32)> {
        self.user.days(filter, &self.rules, Millis(self.now))
    }

    pub(crate) fn page(&self, filter: &Filter, page: PageAt, limit: usize) -> List {
        let query = ListQuery { filter: filter.clone(), page, limit };
        self.user.list(&query, &self.rules, Millis(self.now))
    }

    /// The whole list by cursor, `limit` at a time.
    pub(crate) fn by_cursor(&self, filter: &Filter, limit: usize) -> Vec<Row> {
        let (mut rows, mut below) = (Vec::new(), None);
        loop {
            let list = self.page(filter, PageAt::Below(below), limit);
            rows.extend(list.rows);
            below = rows.last().map(|row: &Row| RowOrder {
                event_ms: row.event_ms,
                kind: row.kind,
                id: row.id.clone(),
            });
            if !list.more {
                return rows;
            }
        }
    }

    /// The ids of the whole list, newest first.
    pub(crate) fn ids(&self, filter: &Filter) -> Vec<String> {
        self.rows(filter).iter().map(|row| row.id.to_string()).collect()
    }
}
