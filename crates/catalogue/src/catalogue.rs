//! The handle: puts items, and finds many at once within a deadline.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tideline_store::{Clock, Table, TableName};
use tokio::time::{Instant, timeout_at};

use crate::item::{self, Item};
use crate::shelf::{Known, Shelf};
use crate::source::{Fetch, Promise, Source, SourceOptions};
use crate::write::{self, PutError, Writer};

/// How the catalogue uses memory, and whom it asks.
#[derive(Clone, Debug)]
pub struct Options {
    /// Items kept in memory, in bytes, keys and all. Default 64 MiB.
    pub cache_bytes: u64,
    /// The owner's service of a kind, by the kind's name. Default none.
    pub sources: BTreeMap<String, SourceOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, sources: BTreeMap::new() }
    }
}

/// Why the catalogue cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// An owner's service cannot be asked.
    #[error("source of kind {kind}: url {cause}")]
    Source {
        /// Whose.
        kind: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// What was found in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// One for each key, in order; none where there is none, or it was late.
    pub items: Vec<Option<Item>>,
    /// Whether anything was late, or could not be read.
    pub partial: bool,
}

/// Counts since the catalogue was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Keys found in memory, also as absent.
    pub hits: u64,
    /// Keys that were not in memory.
    pub misses: u64,
    /// Keys that were late.
    pub late: u64,
    /// Requests to owners' services that were answered.
    pub requests_answered: u64,
    /// Requests that failed or timed out.
    pub requests_failed: u64,
    /// Ids in all these requests.
    pub ids_asked: u64,
    /// Bytes of items in memory.
    pub cache_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    late: AtomicU64,
    requests_answered: AtomicU64,
    requests_failed: AtomicU64,
    ids_asked: AtomicU64,
}

fn count(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn asked(&self, ids: usize, answered: bool) {
        count(if answered { &self.requests_answered } else { &self.requests_failed }, 1);
        count(&self.ids_asked, ids);
    }
}

struct Inner {
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    shelf: Arc<Shelf>,
    counters: Arc<Counters>,
    writer: Writer,
    sources: BTreeMap<String, Source>,
}

/// What objects are called and look like. Cheap to clone.
#[derive(Clone)]
pub struct Catalogue {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogue").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Catalogue {
    /// Opens the catalogue in `table` and starts one task for each source,
    /// which ends with the last handle. Must be called within a tokio runtime.
    pub fn open(
        table: Arc<dyn Table>,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let shelf = Arc::new(Shelf::new(options.cache_bytes));
        let counters = Arc::new(Counters::default());
        let mut sources = BTreeMap::new();
        for (kind, source) in options.sources {
            let started =
                Source::start(&kind, source, shelf.clone(), counters.clone(), clock.clone());
            let source =
                started.map_err(|cause| OpenError::Source { kind: kind.clone(), cause })?;
            sources.insert(kind, source);
        }
        let writer = Writer::new(table.clone(), shelf.clone());
        Ok(Self { inner: Arc::new(Inner { table, clock, shelf, counters, writer, sources }) })
    }

    /// Puts items under (kind, id), each in place of what was there; durable
    /// on return. At most 10,000 at a time. All of them are checked first.
    pub async fn put(&self, items: Vec<(String, String, Item)>) -> Result<(), PutError> {
        let rows = write::rows(&items)?;
        drop(items);
        if rows.is_empty() { Ok(()) } else { self.inner.writer.write(rows).await }
    }

    /// The items of `keys`, each (kind, id), as far as they come within
    /// `deadline`. A failing store or owner makes the answer partial, not an
    /// error: what is late now is there for who asks next.
    pub async fn get_many(&self, keys: &[(&str, &str)], deadline: Duration) -> Joined {
        let until = Instant::now() + deadline;
        let mut lookup = Lookup::new(keys);
        self.look_in_memory(&mut lookup);
        let mut partial = !self.look_in_table(&mut lookup, until).await;
        partial |= !self.ask_owners(&mut lookup, until).await;
        lookup.joined(partial)
    }

    /// Stops asking owners and waits until their tasks are gone. What was put
    /// can still be read.
    pub async fn close(&self) {
        for source in self.inner.sources.values() {
            source.stop().await;
        }
    }

    /// Counts since it was opened.
    pub fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.inner.counters;
        Stats {
            hits: read(&counters.hits),
            misses: read(&counters.misses),
            late: read(&counters.late),
            requests_answered: read(&counters.requests_answered),
            requests_failed: read(&counters.requests_failed),
            ids_asked: read(&counters.ids_asked),
            cache_bytes: self.inner.shelf.bytes(),
        }
    }

    fn look_in_memory(&self, lookup: &mut Lookup<'_>) {
        let now = self.inner.clock.ticks();
        for wanted in lookup.wanted.iter_mut().filter(|wanted| wanted.state == State::Missing) {
            match self.inner.shelf.get(&wanted.key, now) {
                Some(known) => wanted.state = State::Known(known),
                None => lookup.misses += 1,
            }
        }
        count(&self.inner.counters.hits, lookup.wanted.len() - lookup.misses);
        count(&self.inner.counters.misses, lookup.misses);
    }

    /// Reads what is still missing from the table. `false` if some could not
    /// be read in time.
    async fn look_in_table(&self, lookup: &mut Lookup<'_>, until: Instant) -> bool {
        if lookup.misses == 0 {
            return true;
        }
        let missing: Vec<(usize, Vec<u8>, bool)> = (lookup.wanted.iter().enumerate())
            .filter(|(_, wanted)| wanted.state == State::Missing)
            .map(|(place, wanted)| {
                (place, wanted.key.clone(), self.inner.sources.contains_key(wanted.kind))
            })
            .collect();
        let inner = self.inner.clone();
        let read = tokio::task::spawn_blocking(move || inner.read_rows(missing));
        let Ok(Ok((found, whole))) = timeout_at(until, read).await else {
            for wanted in &mut lookup.wanted {
                if wanted.state == State::Missing {
                    wanted.state = State::Late;
                    count(&self.inner.counters.late, 1);
                }
            }
            return false;
        };
        for (place, state) in found {
            lookup.wanted[place].state = state;
        }
        whole
    }

    /// Asks the owners for what has no row. `false` if some were late.
    async fn ask_owners(&self, lookup: &mut Lookup<'_>, until: Instant) -> bool {
        let mut whole = true;
        let mut waits = Vec::new();
        for (kind, source) in &self.inner.sources {
            let mine =
                |wanted: &Wanted<'_>| wanted.state == State::NoRow && wanted.kind == kind.as_str();
            let (places, ids): (Vec<usize>, Vec<&str>) = (lookup.wanted.iter().enumerate())
                .filter(|(_, wanted)| mine(wanted))
                .map(|(place, wanted)| (place, wanted.id))
                .unzip();
            if !ids.is_empty() {
                waits.extend(places.into_iter().zip(source.want(&ids)));
            }
        }
        for (place, promise) in waits {
            let state = match promise {
                Promise::Kept(known) => State::Known(known),
                Promise::Never => State::Late,
                Promise::Soon(mut receiver) => {
                    let told = receiver.wait_for(|fate| *fate != Fetch::Pending);
                    match timeout_at(until, told).await.map(|fate| fate.map(|fate| fate.clone())) {
                        Ok(Ok(Fetch::Found(item))) => State::Known(Some(item)),
                        Ok(Ok(Fetch::Absent)) => State::Known(None),
                        Ok(Ok(Fetch::Late | Fetch::Pending) | Err(_)) | Err(_) => State::Late,
                    }
                }
            };
            if state == State::Late {
                whole = false;
                count(&self.inner.counters.late, 1);
            }
            lookup.wanted[place].state = state;
        }
        whole
    }
}

impl Inner {
    /// Reads rows and keeps them. Keys with a source and no row are left for
    /// the source. The flag says whether every key could be read.
    fn read_rows(&self, missing: Vec<(usize, Vec<u8>, bool)>) -> (Vec<(usize, State)>, bool) {
        let mut whole = true;
        let mut found = Vec::with_capacity(missing.len());
        for (place, key, has_source) in missing {
            let since = self.shelf.looking();
            let state = match self.table.get(TableName::Catalogue, &key, b"") {
                Ok(Some(value)) => match item::decode(&value) {
                    Some(item) => State::Known(Some(Arc::new(item))),
                    None => {
                        tracing::error!(?key, "a row of the catalogue cannot be read");
                        State::Late
                    }
                },
                Ok(None) if has_source => State::NoRow,
                Ok(None) => State::Known(None),
                Err(error) => {
                    tracing::warn!(%error, "the catalogue cannot be read");
                    State::Late
                }
            };
            match &state {
                State::Known(known) => self.shelf.keep(since, &key, known.clone(), u64::MAX),
                State::Late => whole = false,
                State::NoRow | State::Missing => {}
            }
            found.push((place, state));
        }
        (found, whole)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Not looked for yet.
    Missing,
    /// There is no row, but there is a source.
    NoRow,
    /// Found, or known to be absent.
    Known(Known),
    /// Not found in time.
    Late,
}

/// One key, however often it was asked for.
struct Wanted<'a> {
    kind: &'a str,
    id: &'a str,
    key: Vec<u8>,
    state: State,
}

/// The keys of one call, each once, and where each is wanted.
struct Lookup<'a> {
    wanted: Vec<Wanted<'a>>,
    places: Vec<usize>,
    misses: usize,
}

impl<'a> Lookup<'a> {
    fn new(keys: &[(&'a str, &'a str)]) -> Self {
        let mut wanted: Vec<Wanted<'a>> = Vec::with_capacity(keys.len());
        let mut seen: HashMap<(&str, &str), usize> = HashMap::with_capacity(keys.len());
        let places = (keys.iter())
            .map(|&(kind, id)| {
                *seen.entry((kind, id)).or_insert_with(|| {
                    // A key over its limits cannot have been put.
                    let possible = item::check_key(kind, id).is_ok();
                    let key = if possible { item::key(kind, id) } else { Vec::new() };
                    let state = if possible { State::Missing } else { State::Known(None) };
                    wanted.push(Wanted { kind, id, key, state });
                    wanted.len() - 1
                })
            })
            .collect();
        Self { wanted, places, misses: 0 }
    }

    fn joined(self, partial: bool) -> Joined {
        let item = |place: &usize| match &self.wanted[*place].state {
            State::Known(Some(item)) => Some(Item::clone(item)),
            State::Known(None) | State::Missing | State::NoRow | State::Late => None,
        };
        Joined { items: self.places.iter().map(item).collect(), partial }
    }
}
