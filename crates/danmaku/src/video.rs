//! One video in memory: everything that is shown, what may come back next, and
//! the latest changes for live rooms.
//!
//! Changes through [`Video::apply`] alone, which reads no clock, no setting that
//! decides, and no row; what must come to rest is collected in [`Rest`]. Memory
//! is bounded by the limits, however many comments are hidden.

mod rest;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tideline_types::Seq;
use tideline_types::limits::FEED_EVENTS_MAX;

pub use rest::Rest;

use crate::comment::{Comment, Content, Index, State, Writer};
use crate::filters::Filters;
use crate::id::{CommentId, STRETCH_MS};
use crate::options::{Keys, Options};
use crate::outcome::{Change, Outcome};
use crate::rows::{self, Settings};
use crate::top::{Scope, Top, limit_by_duration};

/// What a viewer who watches sees change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A comment is shown that was not.
    Shown(Arc<Comment>),
    /// A comment that is shown has another rank, pool or number of likes.
    Changed(Arc<Comment>),
    /// A comment is shown no more.
    Hidden(CommentId),
    /// The settings.
    Settings(Settings),
}

/// A user's latest comments on a video: id, and fingerprint of the post.
pub(crate) type Latest = Vec<(CommentId, Option<u64>)>;

/// One video.
#[derive(Clone, Debug)]
pub struct Video {
    scope: Scope,
    /// Stretches of a segment, at least 1.
    segment_stretches: u16,
    /// The limit of every video, if the operator set one.
    site_limit: Option<u32>,
    settings: Settings,
    filters_json: Option<Arc<str>>,
    filters: Filters,
    work: Option<Arc<str>>,
    total: u64,
    comments: BTreeMap<(u16, CommentId), Arc<Comment>>,
    top: Top,
    subtitles: u32,
    specials: u32,
    feed: VecDeque<(Seq, Event)>,
    /// `feed` holds every event after this.
    feed_from: Seq,
    /// What is known of writers, for retries.
    writers: BTreeMap<u64, Latest>,
    comment_bytes: usize,
}

impl Video {
    /// A video of which nothing is known.
    pub fn new(options: &Options) -> Self {
        let mut video = Self {
            scope: options.limit_scope,
            segment_stretches: options.segment_stretches.max(1),
            site_limit: options.limit,
            settings: Settings::default(),
            filters_json: None,
            filters: Filters::default(),
            work: None,
            total: 0,
            comments: BTreeMap::new(),
            top: Top::new(options.limit_scope, 0),
            subtitles: 0,
            specials: 0,
            feed: VecDeque::new(),
            feed_from: Seq::ZERO,
            writers: BTreeMap::new(),
            comment_bytes: 0,
        };
        video.limit_changed();
        video
    }

    /// As its rows say, through outcome `facts.seq`.
    pub(crate) fn load(
        options: &Options,
        facts: &rows::Facts,
        filters: Option<Arc<str>>,
        work: Option<Arc<str>>,
        shown: Vec<Comment>,
    ) -> Self {
        let mut video = Self::new(options);
        video.settings = facts.settings;
        video.limit_changed();
        video.total = facts.total;
        video.feed_from = facts.seq;
        video.filters = filters.as_ref().map(Filters::of_rest).unwrap_or_default();
        video.filters_json = filters;
        video.work = work;
        for (stretch, _, hidden) in facts.queue.iter().filter(|(.., hidden)| *hidden > 0) {
            video.top.load(*stretch, *hidden);
        }
        for comment in shown {
            video.enter(comment.id, &comment.index, || Some(comment.content.clone()));
        }
        video
    }

    /// Takes an outcome into account. `rest` gets what it changes at rest, but
    /// for the facts, which every image has.
    pub fn apply(&mut self, seq: Seq, outcome: &Outcome, keys: &Keys, rest: &mut Rest) {
        for change in &outcome.changes {
            self.change(seq, change, keys, rest);
        }
    }

    /// Of an outcome that the rows have applied: what lies under other keys,
    /// which may not have come through the same crash, is to be written again.
    pub(crate) fn apply_elsewhere(seq: Seq, outcome: &Outcome, keys: &Keys, rest: &mut Rest) {
        for change in &outcome.changes {
            match change {
                Change::New { id, index, content } => {
                    rest.note_due(*id, None, Some(index));
                    if let Writer::User(user) = &content.writer {
                        rest.users.insert(keys.user(user.as_str()), true);
                    }
                }
                Change::Index { id, before, after, .. } => {
                    rest.note_due(*id, Some(before), Some(after));
                }
                Change::Gone { id, before, .. } => rest.note_due(*id, Some(before), None),
                Change::Forgotten { user } => {
                    rest.users.insert(*user, false);
                    rest.erased.insert(*user, seq);
                }
                Change::Count { .. } | Change::Work { .. } => note_work(change, rest),
                _ => {}
            }
        }
    }

    fn change(&mut self, seq: Seq, change: &Change, keys: &Keys, rest: &mut Rest) {
        match change {
            Change::New { id, index, content } => {
                self.new_rows(*id, index, content, keys, rest);
                rest.note_due(*id, None, Some(index));
                self.total += 1;
                if self.enter(*id, index, || Some(content.clone())) {
                    self.tell_shown(seq, *id);
                }
            }
            Change::Index { id, before, after, content } => {
                let (from, to) = (rows::index_key(*id, before), rows::index_key(*id, after));
                if from != to {
                    rest.delete(from);
                }
                rest.put(to, rows::encode_index(after));
                rest.note_due(*id, Some(before), Some(after));
                let was = self.leave(*id, before);
                let was_shown = was.is_some();
                let content = || content.clone().or_else(|| Some(was?.content.clone()));
                let is_shown = self.enter(*id, after, content);
                match (was_shown, is_shown) {
                    (true, true) => {
                        if before.rank > after.rank {
                            self.top.reordered();
                        }
                        if let Some(comment) = self.get(*id).cloned() {
                            self.tell(seq, Event::Changed(comment));
                        }
                    }
                    (false, true) => self.tell_shown(seq, *id),
                    (true, false) => self.tell(seq, Event::Hidden(*id)),
                    (false, false) => {}
                }
            }
            Change::Mark { kind, id, user, reason } => {
                rest.put(rows::mark_key(*kind, *id, *user), vec![*reason]);
            }
            Change::Gone { id, before, user } => {
                rest.delete(rows::index_key(*id, before));
                rest.note_due(*id, Some(before), None);
                rest.delete(rows::content_key(*id));
                rest.delete(rows::own_key(*user, *id));
                if before.is_special() {
                    rest.delete(rows::text_key(*id));
                }
                self.writers.remove(user);
                self.total = self.total.saturating_sub(1);
                if self.leave(*id, before).is_some() {
                    self.tell(seq, Event::Hidden(*id));
                }
            }
            Change::Forgotten { user } => {
                rest.users.insert(*user, false);
                rest.erased.insert(*user, seq);
            }
            Change::Settings { after, .. } => {
                self.settings = *after;
                self.limit_changed();
                self.tell(seq, Event::Settings(*after));
            }
            Change::Filters { after: list, .. } => {
                rest.put(rows::FILTERS_KEY.into(), list.as_bytes().to_vec());
                self.filters = Filters::of_rest(list);
                self.filters_json = Some(Arc::clone(list));
            }
            Change::Sent(sent) => rest.put(rows::SENT_KEY.into(), sent.encode()),
            Change::Count { .. } => note_work(change, rest),
            Change::Work { after, .. } => {
                match after {
                    Some(work) => rest.put(rows::WORK_KEY.into(), work.as_bytes().to_vec()),
                    None => rest.delete(rows::WORK_KEY.into()),
                }
                self.work.clone_from(after);
                note_work(change, rest);
            }
        }
    }

    fn new_rows(
        &mut self,
        id: CommentId,
        index: &Index,
        content: &Content,
        keys: &Keys,
        rest: &mut Rest,
    ) {
        rest.put(rows::index_key(id, index), rows::encode_index(index));
        if index.is_special() {
            rest.put(rows::text_key(id), content.text.as_bytes().to_vec());
            let apart = Content { text: Arc::from(""), ..content.clone() };
            rest.put(rows::content_key(id), rows::encode_content(id, &apart));
        } else {
            rest.put(rows::content_key(id), rows::encode_content(id, content));
        }
        if let Writer::User(user) = &content.writer {
            let hash = keys.user(user.as_str());
            let client = content.client.map(|client| client.to_be_bytes().to_vec());
            rest.put(rows::own_key(hash, id), client.unwrap_or_default());
            rest.users.insert(hash, true);
            if let Some(latest) = self.writers.get_mut(&hash) {
                latest.push((id, content.client));
                if latest.len() > LATEST_MAX {
                    latest.remove(0);
                }
            }
        }
    }

    /// A comment is of `index` from now on; answers whether it is shown.
    fn enter(
        &mut self,
        id: CommentId,
        index: &Index,
        content: impl FnOnce() -> Option<Content>,
    ) -> bool {
        match index.state {
            State::Shown => {
                let Some(mut content) = content() else { return false };
                if let Some(index) = self.get(id).map(|there| there.index) {
                    self.leave(id, &index);
                }
                match index {
                    _ if index.is_special() => {
                        content.text = Arc::from("");
                        self.specials += 1;
                    }
                    _ if index.counts() => self.top.show((index.rank, id)),
                    _ => self.subtitles += 1,
                }
                self.comment_bytes += bytes_of(&content);
                let comment = Comment { id, index: *index, content };
                self.comments.insert((id.stretch(), id), Arc::new(comment));
                true
            }
            State::Overflow => {
                self.top.overflowed((index.rank, id));
                false
            }
            State::Hidden if broken!(HiddenComesBack) => {
                self.top.overflowed((index.rank, id));
                false
            }
            _ => false,
        }
    }

    /// A comment is no longer of `index`; answers it if it was shown.
    fn leave(&mut self, id: CommentId, index: &Index) -> Option<Arc<Comment>> {
        match index.state {
            State::Shown => {
                let comment = self.comments.remove(&(id.stretch(), id))?;
                self.comment_bytes -= bytes_of(&comment.content);
                match &comment.index {
                    index if index.is_special() => self.specials -= 1,
                    index if index.counts() => self.top.unshow((index.rank, id)),
                    _ => self.subtitles -= 1,
                }
                Some(comment)
            }
            State::Overflow => {
                self.top.left_overflow((index.rank, id));
                None
            }
            State::Hidden if broken!(HiddenComesBack) => {
                self.top.left_overflow((index.rank, id));
                None
            }
            _ => None,
        }
    }

    fn limit_changed(&mut self) {
        let limit = self.limit();
        if !broken!(LimitForgotten) || limit > self.top.limit() {
            self.top.set(self.scope, limit);
        }
    }

    fn tell_shown(&mut self, seq: Seq, id: CommentId) {
        if let Some(comment) = self.get(id).cloned() {
            self.tell(seq, Event::Shown(comment));
        }
    }

    fn tell(&mut self, seq: Seq, event: Event) {
        self.feed.push_back((seq, event));
        if self.feed.len() > FEED_EVENTS_MAX
            && let Some((dropped, _)) = self.feed.pop_front()
        {
            self.feed_from = dropped;
        }
    }

    /// A comment that is shown.
    pub fn get(&self, id: CommentId) -> Option<&Arc<Comment>> {
        self.comments.get(&(id.stretch(), id))
    }

    /// Every comment that is shown, by place.
    pub fn shown(&self) -> impl Iterator<Item = &Arc<Comment>> {
        self.comments.values()
    }

    /// The stretches of segment `n`, from 1; `None` outside the video. What was
    /// posted before the end was known is shown with the last.
    pub fn stretches(&self, n: u32) -> Option<RangeInclusive<u16>> {
        let count = self.segments();
        let nth = u16::try_from(n.checked_sub(1)?).ok().filter(|_| n <= count)?;
        let first = nth.saturating_mul(self.segment_stretches);
        let last = first.saturating_add(self.segment_stretches - 1);
        Some(first..=if self.end() == Some(n) { u16::MAX } else { last })
    }

    /// What some stretches show, but for scripts and BAS: by pool, time, id.
    pub fn items(&self, stretches: &RangeInclusive<u16>) -> Vec<Arc<Comment>> {
        let (first, last) = (*stretches.start(), *stretches.end());
        let mut items: Vec<Arc<Comment>> = self
            .comments
            .range((first, CommentId::default())..)
            .take_while(|((at, _), _)| *at <= last)
            .map(|(_, comment)| comment)
            .filter(|comment| !comment.index.is_special())
            .cloned()
            .collect();
        items.sort_unstable_by_key(|c| (c.index.pool, c.index.progress_ms, c.id));
        items
    }

    /// How many segments there are, at least 1: as the duration says, or as far
    /// as the last comment that is shown.
    pub fn segments(&self) -> u32 {
        let last = || self.comments.last_key_value().map_or(0, |((at, _), _)| *at);
        let seen = || u32::from(last() / self.segment_stretches) + 1;
        self.end().unwrap_or_else(seen)
    }

    /// The last segment, where the duration is known.
    pub fn end(&self) -> Option<u32> {
        let stretches = self.settings.duration_ms?.div_ceil(STRETCH_MS).max(1);
        Some(stretches.div_ceil(self.segment_stretches.into()))
    }

    /// What happened after `since`, in order; `None` if not all of it is known.
    pub fn changes_since(&self, since: Seq) -> Option<Vec<(Seq, Event)>> {
        if since < self.feed_from {
            return None;
        }
        let known = if broken!(ToldAgain) { since.prev() } else { since };
        let at = self.feed.partition_point(|(seq, _)| *seq <= known);
        Some(self.feed.range(at..).cloned().collect())
    }

    /// What the owner set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The most that may be shown.
    pub fn limit(&self) -> u32 {
        let default = || limit_by_duration(self.settings.duration_ms);
        self.settings.limit.or(self.site_limit).unwrap_or_else(default)
    }

    /// The owner's filters, in force.
    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// The owner's filters as they were given.
    pub fn filters_json(&self) -> Option<&Arc<str>> {
        self.filters_json.as_ref()
    }

    /// The work that it belongs to.
    pub fn work(&self) -> Option<&Arc<str>> {
        self.work.as_ref()
    }

    /// The bounded queue.
    pub fn top(&self) -> &Top {
        &self.top
    }

    pub(crate) fn top_mut(&mut self) -> &mut Top {
        &mut self.top
    }

    /// Comments of any state.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Comments that are shown, of any pool.
    pub fn shown_count(&self) -> u64 {
        self.comments.len() as u64
    }

    /// Subtitles that are shown.
    pub fn subtitles(&self) -> u32 {
        self.subtitles
    }

    /// Scripts and BAS that are shown.
    pub fn specials(&self) -> u32 {
        self.specials
    }

    /// What a writer posted last, if that is known.
    pub(crate) fn latest(&self, user: u64) -> Option<&Latest> {
        self.writers.get(&user)
    }

    /// Remembers what the rows say that a writer posted, oldest first.
    pub(crate) fn remember(&mut self, user: u64, latest: Latest) {
        if self.writers.len() >= WRITERS_MAX {
            self.writers.clear();
        }
        self.writers.insert(user, latest);
    }

    /// The facts as they are to be at rest.
    pub(crate) fn facts(&self, epoch: tideline_types::Epoch, seq: Seq) -> rows::Facts {
        let queue = self.top.counts().collect();
        rows::Facts { epoch, seq, settings: self.settings, total: self.total, queue }
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.comment_bytes
            + self.top.bytes()
            + self.feed.len() * FEED_BYTES
            + self.writers.len() * WRITER_BYTES
            + self.filters_json.as_ref().map_or(0, |json| json.len() * 8)
    }
}

/// What a count, or another work, changes under the keys of works.
fn note_work(change: &Change, rest: &mut Rest) {
    match change {
        Change::Count { total, shown, work: Some(work) } => {
            rest.works.insert(Arc::clone(work), Some((*total, *shown)));
        }
        Change::Work { before: Some(work), .. } => _ = rest.works.insert(Arc::clone(work), None),
        _ => {}
    }
}

/// What a comment takes in memory, about.
fn bytes_of(content: &Content) -> usize {
    size_of::<Comment>() + 64 + content.text.len()
}

/// A user's comments that are looked at for a retry.
pub(crate) const LATEST_MAX: usize = 64;
/// Writers of a video that are known, at most.
const WRITERS_MAX: usize = 4_096;
/// What a writer with some comments takes, about.
const WRITER_BYTES: usize = 512;
const FEED_BYTES: usize = 48;
