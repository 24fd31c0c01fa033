//! One video in memory: everything that is shown, what may come back next, and
//! the latest changes for live rooms.
//!
//! Changes through [`Video::apply`] alone, which reads no clock, no setting that
//! decides, and no row; what must come to rest is collected in [`Rest`]. Memory
//! is bounded by the limits, however many comments are hidden.

mod apply;
mod rest;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tideline_types::Seq;

pub use rest::Rest;

use crate::comment::Comment;
use crate::filters::Filters;
use crate::id::{CommentId, STRETCH_MS};
use crate::options::Options;
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

/// A user's comments that are looked at for a retry.
pub(crate) const LATEST_MAX: usize = 64;
/// Writers of a video that are known, at most.
const WRITERS_MAX: usize = 4_096;
/// What a writer with some comments takes, about.
const WRITER_BYTES: usize = 512;
const FEED_BYTES: usize = 48;
