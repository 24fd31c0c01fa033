//! A local cache of what a store holds, kept right by the topic that the store
//! follows too.
//!
//! The store is slow and far; the topic pushes every change. The known trap: a
//! value is asked for, a newer one is pushed meanwhile, and the older one, which
//! arrives last, is put on top. So everything carries numbers:
//!
//! - a push has the number of its record, and is applied to a key iff that is
//!   larger than the key's;
//! - a fill has the number up to which the store had applied the topic when it
//!   read the value. It is taken iff that is not below where this cache stood
//!   when the fill began, for of what was pushed before, a cache that did not
//!   hold the key knows nothing; and what was pushed after that number is then
//!   applied on top;
//! - a deletion is a value too: it stays as a mark while a fill of the key is
//!   under way.
//!
//! A cache of hot keys follows a topic that has the operations of hot keys
//! alone: a key that enters comes with all that it has, one that leaves is
//! forgotten, and a fill of any other key is not kept, for nothing would be
//! pushed to it.
//!
//! A record of a derived topic has a number and a place among those of that
//! number; where these words say number, both are meant.
//!
//! Always: a key that is found has the value that the topic gives it at some
//! number between that of its last change and where the cache stands. Bounded in
//! bytes: what was not found for longest goes. Knows no clock and no network.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use tideline_record::kv;
use tideline_types::Seq;

/// What happens to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has this value.
    Set(Vec<u8>),
    /// It has none.
    Delete,
    /// It is a counter, and grows by so much. Only of a counter that is there
    /// does the sum follow.
    Add(i64),
    /// It is hot from now on, and this is what it has.
    Enter(Option<Filled>),
    /// It is hot no more.
    Leave,
}

impl Change {
    /// What the value of a record says; `None` if it is no operation on a key.
    pub fn read(value: &[u8]) -> Option<Self> {
        Some(match kv::Change::read(value).ok()? {
            kv::Change::Add(by) => Self::Add(by),
            kv::Change::Set(json) => Self::Set(json.to_string().into_bytes()),
            kv::Change::Delete(_) => Self::Delete,
            kv::Change::Enter(whole) => Self::Enter(whole.map(Filled::of)),
            kv::Change::Leave(_) => Self::Leave,
        })
    }
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A value.
    Value(&'a [u8]),
    /// A counter.
    Counter(i64),
    /// That there is none.
    Nothing,
    /// Nothing: ask the store, between [`Cache::begin`] and [`Cache::finish`].
    Unknown,
}

/// A fill under way. One that will not be finished must be given to
/// [`Cache::abandon`].
#[derive(Debug)]
#[must_use = "a fill that is begun is finished or abandoned"]
pub struct Filling {
    key: Vec<u8>,
    number: u64,
    life: u64,
}

impl Filling {
    /// Which key is asked for.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// Why a fill was not taken. The value may be used once all the same: it is one
/// that the key had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The store is behind this cache: it may miss what was pushed before the
    /// fill began.
    #[error("the store has applied {applied}, the cache stood at {stood}")]
    Behind {
        /// By the store.
        applied: Seq,
        /// Where the cache stood when the fill began.
        stood: Seq,
    },
    /// More was pushed to the key during the fill than is kept.
    #[error("too much was pushed to the key meanwhile")]
    Busy,
    /// The cache was begun anew meanwhile.
    #[error("the cache was begun anew meanwhile")]
    Anew,
    /// The cache holds hot keys alone, and this is none.
    #[error("the key is not hot")]
    NotHot,
}

/// A record's number, and which one of it.
type At = (Seq, u32);

/// After every record of this number.
fn after(seq: Seq) -> At {
    (seq, u32::MAX)
}

/// What tests break, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    FillIsNotBehind,
    DeletionStays,
    OnlyHotIsKept,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Bytes(Vec<u8>),
    Counter(i64),
    Nothing,
}

impl Value {
    fn of(value: Option<Filled>) -> Self {
        match value {
            None => Self::Nothing,
            Some(Filled::Bytes(bytes)) => Self::Bytes(bytes),
            Some(Filled::Counter(n)) => Self::Counter(n),
        }
    }
}

#[derive(Debug)]
struct Entry {
    value: Value,
    /// The number of the change that made it so, or of the fill.
    at: At,
    /// When it was last found: the order of finding.
    found: u64,
}

/// A key that is being asked for.
#[derive(Debug)]
struct Pending {
    /// Fills under way.
    fills: usize,
    /// What was pushed since the first of them began, in order.
    pushed: VecDeque<(At, Change)>,
    /// More was pushed than is kept.
    over: bool,
}

/// Values of one partition of a topic of changes.
#[derive(Debug)]
pub struct Cache {
    entries: HashMap<Vec<u8>, Entry>,
    /// By when they were found last.
    order: BTreeMap<u64, Vec<u8>>,
    pending: HashMap<Vec<u8>, Pending>,
    /// The keys that are hot; `None` where all may be held.
    hot: Option<HashSet<Vec<u8>>>,
    /// How often it was begun anew.
    life: u64,
    /// Where each fill began.
    begun: BTreeMap<u64, At>,
    fills: u64,
    finds: u64,
    covered: Seq,
    /// The last record that was pushed, or where all is covered.
    stands: At,
    bytes: usize,
    bytes_max: usize,
    #[cfg(test)]
    broken: Option<Rule>,
}

/// Changes that are kept for one key while it is filled.
const PUSHED_MAX: usize = 64;
/// What an entry takes beside its key, which is kept twice, and its value.
const ENTRY_BYTES: usize = 160;

impl Cache {
    /// An empty cache that follows its topic from `covered` on, and takes about
    /// `bytes_max` bytes.
    pub fn new(covered: Seq, bytes_max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            pending: HashMap::new(),
            hot: None,
            life: 0,
            begun: BTreeMap::new(),
            fills: 0,
            finds: 0,
            covered,
            stands: after(covered),
            bytes: 0,
            bytes_max,
            #[cfg(test)]
            broken: None,
        }
    }

    /// The same for a topic of hot keys, of which none is known yet.
    pub fn of_hot_keys(covered: Seq, bytes_max: usize) -> Self {
        Self { hot: Some(HashSet::new()), ..Self::new(covered, bytes_max) }
    }

    /// Forgets everything, and follows from `covered` on: what was pushed is
    /// undone, or a part of it was missed. Fills under way will not be taken.
    pub fn begin_anew(&mut self, covered: Seq) {
        let hot = self.hot.as_ref().map(|_| HashSet::new());
        let (life, bytes_max) = (self.life + 1, self.bytes_max);
        *self = Self { hot, life, ..Self::new(covered, bytes_max) };
    }

    /// A hot key of a snapshot that is of where the cache was begun, and has
    /// nothing pushed since.
    pub fn load(&mut self, key: &[u8], value: Option<Filled>) {
        self.enter(key, after(self.covered), value);
    }

    /// Whether a key is hot, of a cache that knows.
    pub fn is_hot(&self, key: &[u8]) -> bool {
        self.hot.as_ref().is_some_and(|hot| hot.contains(key))
    }

    /// Hot keys, of a cache that knows.
    pub fn hot_keys(&self) -> usize {
        self.hot.as_ref().map_or(0, HashSet::len)
    }

    /// Up to where the topic was pushed.
    pub fn covered(&self) -> Seq {
        self.covered
    }

    /// Bytes taken, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keys held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is known of a key.
    pub fn get(&mut self, key: &[u8]) -> Found<'_> {
        let Some(entry) = self.entries.get_mut(key) else { return Found::Unknown };
        self.finds += 1;
        let kept = self.order.remove(&entry.found);
        entry.found = self.finds;
        self.order.insert(entry.found, kept.unwrap_or_else(|| key.to_vec()));
        match &entry.value {
            Value::Bytes(bytes) => Found::Value(bytes),
            Value::Counter(n) => Found::Counter(*n),
            Value::Nothing => Found::Nothing,
        }
    }

    /// The number of what is known of a key; for checks against the store.
    pub fn seq_of(&self, key: &[u8]) -> Option<Seq> {
        self.entries.get(key).map(|entry| entry.at.0)
    }

    /// A change was pushed: the record `sub` of number `seq`. One that was pushed
    /// before changes nothing.
    pub fn push(&mut self, seq: Seq, sub: u32, key: &[u8], change: &Change) {
        let at = (seq, sub);
        if at <= self.stands {
            return;
        }
        self.stands = at;
        if let Some(pending) = self.pending.get_mut(key) {
            pending.over |= pending.pushed.len() == PUSHED_MAX;
            if !pending.over {
                pending.pushed.push_back((at, change.clone()));
            }
        }
        match change {
            Change::Enter(value) => self.enter(key, at, value.clone()),
            Change::Leave => {
                self.remove(key);
                if let Some(hot) = &mut self.hot {
                    hot.remove(key);
                }
            }
            _ if self.entries.get(key).is_some_and(|entry| entry.at < at) => {
                self.change(key, at, change);
            }
            _ => {}
        }
    }

    /// Everything up to `through` was pushed.
    pub fn advance(&mut self, through: Seq) {
        self.covered = self.covered.max(through);
        self.stands = self.stands.max(after(through));
    }

    /// The key will be asked for in the store; to be said before that.
    pub fn begin(&mut self, key: &[u8]) -> Filling {
        let none = || Pending { fills: 0, pushed: VecDeque::new(), over: false };
        self.pending.entry(key.to_vec()).or_insert_with(none).fills += 1;
        self.fills += 1;
        self.begun.insert(self.fills, self.stands);
        Filling { key: key.to_vec(), number: self.fills, life: self.life }
    }

    /// The store said what the key has (`None`: nothing), with everything up to
    /// `applied` in it.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn finish(
        &mut self,
        filling: Filling,
        value: Option<Filled>,
        applied: Seq,
    ) -> Result<(), Refused> {
        if filling.life != self.life {
            return Err(Refused::Anew);
        }
        let stood = self.begun.get(&filling.number).copied().unwrap_or_default();
        let (pushed, over) = match self.pending.get(&filling.key) {
            Some(pending) => (pending.pushed.clone(), pending.over),
            None => (VecDeque::new(), false),
        };
        let key = filling.key.clone();
        self.abandon(filling);
        if after(applied) < stood && self.holds(Rule::FillIsNotBehind) {
            return Err(Refused::Behind { applied, stood: stood.0 });
        }
        if over {
            return Err(Refused::Busy);
        }
        if self.hot.is_some() && !self.is_hot(&key) && self.holds(Rule::OnlyHotIsKept) {
            return Err(Refused::NotHot);
        }
        self.put(&key, Entry { value: Value::of(value), at: after(applied), found: 0 });
        for (at, change) in pushed.iter().filter(|(at, _)| *at > after(applied)) {
            if *change != Change::Delete || self.holds(Rule::DeletionStays) {
                self.change(&key, *at, change);
            }
        }
        self.shrink();
        Ok(())
    }

    /// The fill will not be finished.
    pub fn abandon(&mut self, filling: Filling) {
        if filling.life != self.life {
            return;
        }
        self.begun.remove(&filling.number);
        if let Some(pending) = self.pending.get_mut(&filling.key) {
            pending.fills -= 1;
            if pending.fills == 0 {
                self.pending.remove(&filling.key);
            }
        }
    }

    #[cfg(test)]
    fn holds(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    #[cfg(all(not(test), feature = "sabotage"))]
    fn holds(&self, rule: Rule) -> bool {
        use crate::sabotage::{Broken, is};
        match rule {
            Rule::FillIsNotBehind => !is(Broken::StaleFill),
            Rule::DeletionStays => !is(Broken::TombstoneDropped),
            Rule::OnlyHotIsKept => true,
        }
    }

    #[cfg(not(any(test, feature = "sabotage")))]
    fn holds(&self, _: Rule) -> bool {
        true
    }

    /// A key becomes hot. An entry of a later fill stays.
    fn enter(&mut self, key: &[u8], at: At, value: Option<Filled>) {
        if let Some(hot) = &mut self.hot {
            hot.insert(key.to_vec());
        }
        if self.entries.get(key).is_none_or(|entry| entry.at < at) {
            self.put(key, Entry { value: Value::of(value), at, found: 0 });
            self.shrink();
        }
    }

    /// Applies a change to a key that is held.
    fn change(&mut self, key: &[u8], at: At, change: &Change) {
        let Some(entry) = self.entries.get(key) else { return };
        let value = match (change, &entry.value) {
            (Change::Set(bytes), _) => Value::Bytes(bytes.clone()),
            (Change::Delete, _) => Value::Nothing,
            (Change::Add(by), Value::Counter(n)) => Value::Counter(n.saturating_add(*by)),
            (Change::Add(by), Value::Nothing) => Value::Counter(*by),
            (Change::Enter(value), _) => Value::of(value.clone()),
            (Change::Leave, _) => {
                self.remove(key);
                return;
            }
            // No counter: what the store makes of it is for the store to say.
            (Change::Add(_), Value::Bytes(_)) => {
                self.remove(key);
                return;
            }
        };
        let found = entry.found;
        self.put(key, Entry { value, at, found });
        self.shrink();
    }

    fn put(&mut self, key: &[u8], mut entry: Entry) {
        self.remove(key);
        if entry.found == 0 {
            self.finds += 1;
            entry.found = self.finds;
        }
        self.bytes += weight(key, &entry.value);
        self.order.insert(entry.found, key.to_vec());
        self.entries.insert(key.to_vec(), entry);
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= weight(key, &entry.value);
            self.order.remove(&entry.found);
        }
    }

    fn shrink(&mut self) {
        while self.bytes > self.bytes_max
            && let Some((_, key)) = self.order.first_key_value()
        {
            let key = key.clone();
            self.remove(&key);
        }
    }
}

/// What a store says that a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filled {
    /// A value.
    Bytes(Vec<u8>),
    /// A counter.
    Counter(i64),
}

impl Filled {
    fn of(whole: kv::Whole) -> Self {
        match whole {
            kv::Whole::Counter(n) => Self::Counter(n),
            kv::Whole::Value(json) => Self::Bytes(json.to_string().into_bytes()),
        }
    }
}

fn weight(key: &[u8], value: &Value) -> usize {
    let value = match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Counter(_) | Value::Nothing => 0,
    };
    2 * key.len() + value + ENTRY_BYTES
}

#[cfg(test)]
mod tests;
