//! Ready bodies of segments: the first level, in memory.
//!
//! The body as it is built is kept current: a read asks what happened since
//! and patches it; a player's form is made as a whole, where something has
//! happened. A compressed form is made anew at most once a second. Who finds a
//! form that is fresh enough takes it without asking anyone; of those who do
//! not, one fills and the rest wait for it. While a fill fails, what is there is
//! handed out, however old.
//!
//! Bounded by the bytes of all bodies together; a part of them, which are taken
//! often, lie a second time in files in memory.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use http::HeaderValue;
use tideline_danmaku::ask::{Changes, Refusal, Snapshot};
use tideline_danmaku::segment::{Bodies, Body, Format, Patched};
use tideline_types::Seq;
use tideline_wire::danmaku::ass;

use crate::Gateway;
use crate::packing::Packing;
use crate::player::Form;
use crate::problem::Problem;
use crate::uncopied::{Filed, Room};

/// A compressed form is this old at most, in ms.
const PACKED_MS_MAX: u64 = 1_000;
/// A form that was taken so often is put into a file as well.
const TAKEN_OFTEN: u64 = 16;
/// Of the bytes of all bodies, so many may lie in files as well.
const FILED_PART: u64 = 8;
/// Bytes that an entry takes besides its bodies, about.
const ENTRY_BYTES: u64 = 512;

/// What a reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// As the player's format has it.
    Body(Format),
    /// As subtitles.
    Subtitles,
    /// All comments, as a player takes them.
    Player(Form),
}

/// A body that can be sent.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) bytes: Bytes,
    pub(crate) etag: HeaderValue,
    /// Every change of the segment through this is in it.
    seq: AtomicU64,
    /// When that was known, in ticks.
    known: AtomicU64,
    /// Of the bytes before they were compressed.
    hash: u64,
    /// Answers that it was taken for.
    taken: AtomicU64,
    /// Once it was taken often: the file that it lies in, too.
    filed: OnceLock<Option<Arc<Filed>>>,
}

impl Ready {
    /// The file that it lies in, if it is taken often.
    fn filed(&self, room: &Room) -> Option<Arc<Filed>> {
        if self.taken.fetch_add(1, Ordering::Relaxed) < TAKEN_OFTEN {
            return None;
        }
        self.filed.get_or_init(|| Filed::new(&self.bytes, room)).clone()
    }

    pub(crate) fn seq(&self) -> Seq {
        Seq(self.seq.load(Ordering::Relaxed))
    }
}

/// Which body: a video's segment, from 1; 0 = all of them, for players.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    video: Box<str>,
    segment: u32,
}

#[derive(Hash)]
struct KeyRef<'a> {
    video: &'a str,
    segment: u32,
}

impl quick_cache::Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.segment == key.segment && *self.video == *key.video
    }
}

/// One segment.
#[derive(Default)]
struct Entry {
    ready: RwLock<BTreeMap<(Kind, Packing), Arc<Ready>>>,
    /// Held while one fills.
    bodies: tokio::sync::Mutex<BTreeMap<Format, Kept>>,
}

/// A body as it is patched, with the hash of its bytes: a read that finds
/// nothing new does not go over them again.
struct Kept {
    body: Body,
    hash: u64,
}

impl Kept {
    fn of(body: Body) -> Self {
        Self { hash: hash_of(body.bytes()), body }
    }
}

/// A segment with its bytes as they were when it was last filled: what the
/// cache reckons with may not change while it is in there.
#[derive(Clone, Default)]
struct Held {
    entry: Arc<Entry>,
    bytes: u64,
}

#[derive(Clone)]
struct Weigh;

impl quick_cache::Weighter<Key, Held> for Weigh {
    fn weight(&self, key: &Key, held: &Held) -> u64 {
        ENTRY_BYTES + key.video.len() as u64 + held.bytes
    }
}

/// All of them.
pub(crate) struct Shelf {
    entries: quick_cache::sync::Cache<Key, Held, Weigh>,
    room: Room,
}

/// A body, and whether it was there.
pub(crate) struct Found {
    pub(crate) ready: Arc<Ready>,
    pub(crate) hit: bool,
}

impl Shelf {
    /// With room for so many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let entries_about = (bytes_max / (64 << 10)).max(64) as usize;
        let entries = quick_cache::sync::Cache::with_weighter(entries_about, bytes_max, Weigh);
        Self { entries, room: Room::new(bytes_max / FILED_PART) }
    }

    /// The file that a body lies in, if it is taken often.
    pub(crate) fn filed(&self, ready: &Ready) -> Option<Arc<Filed>> {
        ready.filed(&self.room)
    }

    /// The body of a segment; `None` outside the video.
    pub(crate) async fn get(
        &self,
        gateway: &Gateway,
        video: &str,
        segment: u32,
        kind: Kind,
        packing: Packing,
    ) -> Result<Option<Found>, Problem> {
        let Held { entry, bytes } =
            self.entries.get(&KeyRef { video, segment }).unwrap_or_default();
        let now = gateway.inner.clock.ticks();
        if let Some(ready) = entry.fresh(kind, packing, now) {
            return Ok(Some(Found { ready, hit: true }));
        }
        let mut bodies = entry.bodies.lock().await;
        // Someone else has filled it meanwhile.
        let now = now.max(gateway.inner.clock.ticks());
        if let Some(ready) = entry.fresh(kind, packing, now) {
            return Ok(Some(Found { ready, hit: true }));
        }
        let filler = Filler { gateway, video, segment, entry: &entry, now };
        let filled = filler.fill(&mut bodies, kind, packing).await;
        let now_bytes = entry.bytes(&bodies);
        drop(bodies);
        match filled {
            Ok(Some(found)) => {
                if now_bytes != bytes {
                    let held = Held { entry, bytes: now_bytes };
                    self.entries.insert(Key { video: video.into(), segment }, held);
                }
                Ok(Some(found))
            }
            Ok(None) => Ok(None),
            Err(refusal) => match entry.ready(kind, packing) {
                Some(ready) => Ok(Some(Found { ready, hit: true })),
                None => Err(refusal.into()),
            },
        }
    }
}

impl Entry {
    fn ready(&self, kind: Kind, packing: Packing) -> Option<Arc<Ready>> {
        let ready = self.ready.read().unwrap_or_else(PoisonError::into_inner);
        ready.get(&(kind, packing)).cloned()
    }

    fn bytes(&self, bodies: &BTreeMap<Format, Kept>) -> u64 {
        let ready = self.ready.read().unwrap_or_else(PoisonError::into_inner);
        let ready: usize = ready.values().map(|ready| ready.bytes.len()).sum();
        let bodies: usize = bodies.values().map(|kept| kept.body.bytes().len()).sum();
        (ready + bodies) as u64
    }

    /// What may be handed out without a question.
    fn fresh(&self, kind: Kind, packing: Packing, now: u64) -> Option<Arc<Ready>> {
        let age_max = match (kind, packing) {
            // The forms that change with every change.
            (Kind::Body(_) | Kind::Player(_), Packing::Identity) => return None,
            _ => PACKED_MS_MAX,
        };
        self.ready(kind, packing)
            .filter(|ready| now.saturating_sub(ready.known.load(Ordering::Relaxed)) < age_max)
    }
}

/// One fill.
struct Filler<'a> {
    gateway: &'a Gateway,
    video: &'a str,
    segment: u32,
    entry: &'a Entry,
    now: u64,
}

impl Filler<'_> {
    async fn fill(
        &self,
        bodies: &mut BTreeMap<Format, Kept>,
        kind: Kind,
        packing: Packing,
    ) -> Result<Option<Found>, Refusal> {
        let danmaku = &self.gateway.inner.danmaku;
        let maker = danmaku.bodies(self.video);
        let format = match kind {
            Kind::Body(format) => format,
            Kind::Subtitles | Kind::Player(_) => return self.whole(kind, packing).await,
        };
        let current = match bodies.get_mut(&format) {
            Some(kept) => {
                let changes = danmaku.changes_since(self.video, kept.body.seq()).await?;
                patch(&maker, kept, changes)
            }
            None => false,
        };
        if !current {
            let Some(snapshot) = self.snapshot().await? else {
                bodies.remove(&format);
                return Ok(None);
            };
            bodies.insert(format, Kept::of(maker.build(format, &snapshot)));
        }
        let Kept { body, hash } = &bodies[&format];
        Ok(Some(self.put(kind, packing, body.bytes(), *hash, body.seq())))
    }

    /// A form that is made as a whole, unless nothing has happened to the one
    /// that is there.
    async fn whole(&self, kind: Kind, packing: Packing) -> Result<Option<Found>, Refusal> {
        let danmaku = &self.gateway.inner.danmaku;
        if let Some(ready) = self.entry.ready(kind, packing)
            && let Changes::Range { through, events, .. } =
                danmaku.changes_since(self.video, ready.seq()).await?
            && events.is_empty()
        {
            return Ok(Some(self.still(ready, through)));
        }
        let Some(snapshot) = self.snapshot().await? else { return Ok(None) };
        let bytes = match kind {
            Kind::Player(form) => form.body(danmaku, self.video, &snapshot, usize::MAX),
            _ => danmaku.bodies(self.video).subtitles(&snapshot, ass::Options::default()),
        };
        let hash = hash_of(&bytes);
        Ok(Some(self.put(kind, packing, &bytes, hash, snapshot.seq)))
    }

    async fn snapshot(&self) -> Result<Option<Snapshot>, Refusal> {
        let danmaku = &self.gateway.inner.danmaku;
        match self.segment {
            0 => danmaku.all(self.video).await.map(Some),
            n => danmaku.segment(self.video, n).await,
        }
    }

    /// A form that is there holds everything through `seq`.
    fn still(&self, ready: Arc<Ready>, seq: Seq) -> Found {
        ready.seq.fetch_max(seq.0, Ordering::Relaxed);
        ready.known.store(self.now, Ordering::Relaxed);
        Found { ready, hit: true }
    }

    /// Makes a form of `bytes`, unless the one that is there is of the same.
    fn put(&self, kind: Kind, packing: Packing, bytes: &[u8], hash: u64, seq: Seq) -> Found {
        if let Some(ready) = self.entry.ready(kind, packing).filter(|ready| ready.hash == hash) {
            return self.still(ready, seq);
        }
        let etag = format!("\"{hash:016x}{}\"", packing.suffix());
        let ready = Arc::new(Ready {
            bytes: packing.pack(bytes).into(),
            etag: HeaderValue::try_from(etag).expect("hexadecimal digits are a header's value"),
            seq: AtomicU64::new(seq.0),
            known: AtomicU64::new(self.now),
            hash,
            taken: AtomicU64::new(0),
            filed: OnceLock::new(),
        });
        let mut all = self.entry.ready.write().unwrap_or_else(PoisonError::into_inner);
        all.insert((kind, packing), ready.clone());
        Found { ready, hit: false }
    }
}

/// Takes what happened into the body; false if it must be built anew.
fn patch(maker: &Bodies, kept: &mut Kept, changes: Changes) -> bool {
    let Changes::Range { since, through, events, .. } = changes else { return false };
    if through < since {
        return false;
    }
    match maker.patch(&mut kept.body, through, &events) {
        Patched::Same => {}
        Patched::Changed => kept.hash = hash_of(kept.body.bytes()),
        Patched::Stale => return false,
    }
    true
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
