//! What can be asked of a user's history, and what comes back.

use tideline_types::Millis;

use crate::kinds::KindId;

/// A row of a user's history, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its kind.
    pub kind: KindId,
    /// Which object.
    pub id: Box<str>,
    /// The part last named.
    pub part: Option<Box<str>>,
    /// The last position, of that part.
    pub position_ms: Option<u64>,
    /// The last duration, of that part.
    pub duration_ms: Option<u64>,
    /// When.
    pub event_ms: Millis,
    /// The device last named.
    pub device: Option<Box<str>>,
    /// The group last named.
    pub group: Option<Box<str>>,
    /// Whether the part was ever finished.
    pub finished: bool,
    /// How often.
    pub plays: u32,
    /// What the rules need next time, and no list shows.
    pub facts: RowFacts,
}

/// What the rules need of a row besides what is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFacts {
    /// Declared finished, with no position since.
    pub declared: bool,
    /// Since plays last went up, a mark was in the first half (or no play yet).
    pub began: bool,
    /// The row's last change of part; 0 if there was none.
    pub part_since: Millis,
    /// Remembered retries, oldest first, at most 8. Only exports carry them;
    /// lists and point reads leave them out.
    pub retries: Vec<Retry>,
}

/// One accepted mark that can be told when it comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Keyed hash of (`event_id`, sent `event_ms`).
    pub fingerprint: u64,
    /// When the owner took it.
    pub taken_ms: Millis,
    /// Its time was made or moved by the server: it is remembered even when
    /// the row's time moves on.
    pub made: bool,
}

impl Row {
    /// 0..=100, rounded down; `None` without a position or a duration.
    pub fn percent(&self) -> Option<u8> {
        let (position, duration) = (self.position_ms?, self.duration_ms?);
        Some((u128::from(position) * 100 / u128::from(duration)).min(100) as u8)
    }
}

/// The total order of rows, newest last: (`event_ms`, kind, id).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowOrder {
    /// When.
    pub event_ms: Millis,
    /// Kinds order as their names.
    pub kind: KindId,
    /// As bytes.
    pub id: Box<str>,
}

/// Which rows. All conditions hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these; empty = all kinds.
    pub kinds: Vec<KindId>,
    /// At or after.
    pub after_ms: Option<Millis>,
    /// Before.
    pub before_ms: Option<Millis>,
    /// Only rows with a position that are not at the end and not declared
    /// finished.
    pub unfinished: bool,
}

/// Which page of a list, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageAt {
    /// Rows below this one in order; `None` = from the newest.
    Below(Option<RowOrder>),
    /// Rows from this many on; the total is counted.
    Skip(usize),
}

/// A list, as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// Which rows.
    pub filter: Filter,
    /// Where to start.
    pub page: PageAt,
    /// How many rows at most.
    pub limit: usize,
}

/// A list, as answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Newest first.
    pub rows: Vec<Row>,
    /// Whether rows remain below the last one.
    pub more: bool,
    /// How many rows the filter lets through, where `PageAt::Skip` asked.
    pub total: Option<usize>,
}

/// Which rows a clear removes, and which events it holds against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearFilter {
    /// This kind alone.
    pub kind: Option<KindId>,
    /// This id alone.
    pub id: Option<Box<str>>,
    /// At or after.
    pub after_ms: Option<Millis>,
    /// Before.
    pub before_ms: Option<Millis>,
    /// Only finished rows; each gets a delete of its own instead of the
    /// whole range.
    pub finished: bool,
}

/// One object of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: KindId,
    /// Its id.
    pub id: Box<str>,
}
