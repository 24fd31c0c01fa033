//! The declared kinds and their rules.

use tideline_types::DAY_MS;

/// A kind's place in [`Kinds`]: valid in one process only, never stored.
/// Orders as the kinds' names do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub u8);

/// One kind and what holds for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name: 1 to 32 bytes.
    pub name: Box<str>,
    /// Whether marks of it are taken. A kind that was declared once and is no
    /// longer keeps its rows readable.
    pub declared: bool,
    /// Days for which a row is shown and a mark is taken; 0 = for ever.
    pub retention_days: u32,
    /// Rows kept of one user; 0 = no cap.
    pub max_records: u32,
    /// Ids of one user and event day; 0 = no cap.
    pub max_per_day: u32,
    /// Whether the first mark of a day goes to topic `daily-first`.
    pub daily_first: bool,
}

impl Kind {
    /// Retention in ms, if there is one.
    pub fn retention_ms(&self) -> Option<i64> {
        (self.retention_days > 0).then(|| i64::from(self.retention_days) * DAY_MS)
    }
}

/// All kinds of this process, sorted by name, at most
/// [`tideline_types::limits::KINDS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    kinds: Box<[Kind]>,
}

impl Kinds {
    /// Sorts by name. Names must be distinct and at most `KINDS_MAX`.
    pub fn new(mut kinds: Vec<Kind>) -> Self {
        kinds.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(kinds.len() <= tideline_types::limits::KINDS_MAX, "too many kinds");
        assert!(kinds.windows(2).all(|w| w[0].name != w[1].name), "a kind is named twice");
        Self { kinds: kinds.into() }
    }

    /// The kind of that name, declared or not.
    pub fn find(&self, name: &str) -> Option<KindId> {
        let at = self.kinds.binary_search_by(|k| (*k.name).cmp(name)).ok()?;
        Some(KindId(at as u8))
    }

    /// The kind at `id`.
    pub fn get(&self, id: KindId) -> &Kind {
        &self.kinds[usize::from(id.0)]
    }

    /// The name of `id`.
    pub fn name(&self, id: KindId) -> &str {
        &self.get(id).name
    }

    /// All kinds, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (KindId, &Kind)> {
        self.kinds.iter().enumerate().map(|(at, kind)| (KindId(at as u8), kind))
    }
}
