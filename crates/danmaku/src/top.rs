//! The bounded queue of one video: which of its counted comments are shown.
//!
//! Comments are ordered by rank, then by id. Always, when [`Top::step`] says
//! that there is nothing to do:
//!
//! - at most `limit` are shown;
//! - if fewer are, none is hidden as overflow;
//! - with [`Scope::Video`], everything shown is above everything hidden as
//!   overflow; with [`Scope::Segment`] this holds within each stretch of six
//!   minutes, and over the limit the fullest stretch gives (the later one where
//!   two are as full), while with room the emptiest that has overflow gets (the
//!   earlier one).
//!
//! ```text
//!  a stretch   shown (whole, in memory)   | overflow (at rest, best first)
//!              lowest .......... highest  | reserve (in memory) | the rest
//!                                         | highest .... floor  | ... lowest
//! ```
//!
//! Memory is bounded by the limit and by [`RESERVE`] a stretch, however many are
//! hidden: where a reserve runs out, [`Step::Fill`] asks for the next of them.
//! Knows orders alone: no texts, no times, no tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::comment::Rank;
use crate::id::CommentId;

/// Where a comment stands in the queue; the greater stays longer.
pub type Order = (Rank, CommentId);

/// Overflow comments of a stretch that are known in memory, at most.
pub const RESERVE: usize = 256;

/// What the limit is shared out over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The video as a whole: the newest stay.
    Video,
    /// Each six minutes: late comments on one do not empty the rest.
    #[default]
    Segment,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Hide this one, which is shown, as overflow.
    Hide(Order),
    /// Show this one, which is hidden as overflow.
    Return(Order),
    /// Look up the best overflow comments of this stretch, then [`Top::fill`].
    Fill(u16),
}

/// What becomes of a comment that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is hidden as overflow at once.
    Hidden,
    /// It is shown, and another one, if named, is hidden for it.
    Shown(Option<Order>),
}

#[derive(Clone, Debug, Default)]
struct Stretch {
    shown: BTreeSet<Order>,
    /// The best overflow comments, unless `unknown`: all that are not below
    /// `floor`.
    reserve: BTreeSet<Order>,
    /// `None`: all of them are in `reserve`.
    floor: Option<Order>,
    /// Which comments are hidden has to be looked up.
    unknown: bool,
    overflow: u64,
}

/// The queue of one video.
#[derive(Clone, Debug)]
pub struct Top {
    scope: Scope,
    limit: u32,
    reserve_max: usize,
    stretches: BTreeMap<u16, Stretch>,
    shown: u32,
    overflow: u64,
    /// Something changed that a look at the counts does not tell.
    restless: bool,
}

impl Top {
    /// An empty queue.
    pub fn new(scope: Scope, limit: u32) -> Self {
        Self::with_reserve(scope, limit, RESERVE)
    }

    fn with_reserve(scope: Scope, limit: u32, reserve_max: usize) -> Self {
        let stretches = BTreeMap::new();
        Self { scope, limit, reserve_max, stretches, shown: 0, overflow: 0, restless: false }
    }

    /// Comments that are shown.
    pub fn shown(&self) -> u32 {
        self.shown
    }

    /// Comments that are hidden as overflow.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Whether more are shown than may be: [`Top::step`] hides one, and needs no
    /// row to say which.
    pub fn is_over(&self) -> bool {
        self.shown > self.limit
    }

    /// The most that may be shown.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Sets limit and scope; [`Top::step`] follows up.
    pub fn set(&mut self, scope: Scope, limit: u32) {
        self.restless |= self.scope != scope;
        (self.scope, self.limit) = (scope, limit);
    }

    /// Comments of each stretch that has any, in order: shown, and overflow.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u32, u64)> + '_ {
        self.stretches.iter().map(|(at, s)| (*at, s.shown.len() as u32, s.overflow))
    }

    /// The lowest comment of a stretch that is shown; its overflow is below.
    pub fn lowest(&self, at: u16) -> Option<Order> {
        self.stretches.get(&at)?.shown.first().copied()
    }

    /// What becomes of `order` if it comes in now; nothing is changed. To be
    /// asked when there is no other step to take.
    pub fn arrive(&self, order: Order) -> Arrival {
        if self.is_outranked(order) {
            return Arrival::Hidden;
        }
        if self.shown < self.limit || (self.shown == self.limit && broken!(OneTooMany)) {
            return Arrival::Shown(None);
        }
        match self.gives(Some(order)) {
            Some(low) if low != order => Arrival::Shown(Some(low)),
            _ => Arrival::Hidden,
        }
    }

    /// Whether a comment that is hidden as overflow, and compared with `order`,
    /// is above it. To be asked when there is no other step to take.
    pub fn is_outranked(&self, order: Order) -> bool {
        let below = |stretch: &Stretch| stretch.reserve.last().is_some_and(|best| order < *best);
        match self.scope {
            Scope::Video => self.stretches.values().any(below),
            Scope::Segment => self.stretches.get(&order.1.stretch()).is_some_and(below),
        }
    }

    /// The next thing to do; ask again after it was done.
    pub fn step(&mut self) -> Step {
        if self.is_over() {
            return self.gives(None).map_or(Step::Rest, Step::Hide);
        }
        let room = self.shown < self.limit && self.overflow > 0;
        if !room && !self.restless {
            return Step::Rest;
        }
        if let Some(at) = self.unfilled().next() {
            return Step::Fill(at);
        }
        if let Some(order) = self.misplaced() {
            return Step::Hide(order);
        }
        if room && let Some(order) = self.best() {
            return Step::Return(order);
        }
        self.restless = false;
        Step::Rest
    }

    /// `order` is shown from now on.
    pub fn show(&mut self, order: Order) {
        let stretch = self.stretches.entry(order.1.stretch()).or_default();
        if stretch.shown.insert(order) {
            self.shown += 1;
        }
    }

    /// `order` is no longer shown.
    pub fn unshow(&mut self, order: Order) {
        if let Some(stretch) = self.stretches.get_mut(&order.1.stretch())
            && stretch.shown.remove(&order)
        {
            self.shown -= 1;
            self.tidy(order.1.stretch());
        }
    }

    /// `order` is hidden as overflow from now on.
    pub fn overflowed(&mut self, order: Order) {
        let stretch = self.stretches.entry(order.1.stretch()).or_default();
        stretch.overflow += 1;
        self.overflow += 1;
        if stretch.unknown || stretch.floor.is_some_and(|floor| order < floor) {
            return;
        }
        stretch.reserve.insert(order);
        if stretch.reserve.len() > self.reserve_max {
            stretch.reserve.pop_first();
            stretch.floor = stretch.reserve.first().copied();
        }
    }

    /// `order` is no longer hidden as overflow.
    pub fn left_overflow(&mut self, order: Order) {
        let at = order.1.stretch();
        let Some(stretch) = self.stretches.get_mut(&at) else { return };
        stretch.overflow = stretch.overflow.saturating_sub(1);
        self.overflow = self.overflow.saturating_sub(1);
        stretch.reserve.remove(&order);
        if stretch.reserve.is_empty() {
            stretch.unknown = stretch.overflow > 0;
            stretch.floor = None;
            self.restless |= stretch.unknown;
        }
        self.tidy(at);
    }

    /// A comment that is shown was given another rank, or limit and scope were
    /// others when it came: [`Top::step`] is to look whether all stand right.
    pub fn reordered(&mut self) {
        self.restless = true;
    }

    /// As after a start: `count` comments of stretch `at` are hidden as
    /// overflow, none of which is known yet.
    pub fn load(&mut self, at: u16, count: u64) {
        let stretch = self.stretches.entry(at).or_default();
        self.overflow = self.overflow - stretch.overflow + count;
        stretch.overflow = count;
        stretch.reserve.clear();
        stretch.floor = None;
        stretch.unknown = count > 0;
        self.restless = true;
    }

    /// The best overflow comments of stretch `at`: `whole` if these are all.
    pub fn fill(&mut self, at: u16, orders: impl IntoIterator<Item = Order>, whole: bool) {
        let Some(stretch) = self.stretches.get_mut(&at) else { return };
        stretch.reserve = orders.into_iter().collect();
        stretch.unknown = false;
        let mut cut = !whole;
        while stretch.reserve.len() > self.reserve_max {
            stretch.reserve.pop_first();
            cut = true;
        }
        stretch.floor = stretch.reserve.first().copied().filter(|_| cut);
        self.restless = true;
    }

    /// The stretches of which nothing is known that they hide, though they do.
    pub fn unfilled(&self) -> impl Iterator<Item = u16> + '_ {
        self.stretches.iter().filter(|(_, s)| s.unknown).map(|(at, _)| *at)
    }

    /// The best known overflow comments of a stretch, best first.
    pub fn reserve(&self, at: u16) -> impl Iterator<Item = Order> + '_ {
        self.stretches.get(&at).into_iter().flat_map(|s| s.reserve.iter().rev().copied())
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        let reserved: usize = self.stretches.values().map(|s| s.reserve.len()).sum();
        (self.shown as usize + reserved) * ENTRY_BYTES + self.stretches.len() * STRETCH_BYTES
    }

    /// The one to hide if there were one too many, with `also` shown as well.
    fn gives(&self, also: Option<Order>) -> Option<Order> {
        match self.scope {
            Scope::Video => {
                let lows = self.stretches.values().filter_map(|s| s.shown.first().copied());
                lows.chain(also).min()
            }
            Scope::Segment => {
                let also_in = |at: u16| also.filter(|order| order.1.stretch() == at);
                let size = |at: u16| self.shown_in(at) + usize::from(also_in(at).is_some());
                let all = self.stretches.keys().copied().chain(also.map(|order| order.1.stretch()));
                let at = all.max_by_key(|at| (size(*at), *at))?;
                let low = self.stretches.get(&at).and_then(|s| s.shown.first().copied());
                low.into_iter().chain(also_in(at)).min()
            }
        }
    }

    fn shown_in(&self, at: u16) -> usize {
        self.stretches.get(&at).map_or(0, |stretch| stretch.shown.len())
    }

    /// A shown comment that an overflow comment stands above.
    fn misplaced(&self) -> Option<Order> {
        if broken!(OverflowReversed) {
            return None;
        }
        let pairs = self.stretches.values();
        match self.scope {
            Scope::Video => {
                let best = self.stretches.values().filter_map(|s| s.reserve.last()).max()?;
                let low = pairs.filter_map(|s| s.shown.first()).min()?;
                (low < best).then_some(*low)
            }
            Scope::Segment => pairs
                .filter_map(|s| Some((s.shown.first()?, s.reserve.last()?)))
                .find(|(low, best)| low < best)
                .map(|(low, _)| *low),
        }
    }

    /// The overflow comment that returns first.
    fn best(&self) -> Option<Order> {
        let waiting = self.stretches.iter().filter(|(_, s)| !s.reserve.is_empty());
        if broken!(OverflowReversed) {
            return waiting.filter_map(|(_, s)| s.reserve.first().copied()).min();
        }
        match self.scope {
            Scope::Video => waiting.filter_map(|(_, s)| s.reserve.last().copied()).max(),
            Scope::Segment => {
                let (_, stretch) = waiting.min_by_key(|(at, s)| (s.shown.len(), **at))?;
                stretch.reserve.last().copied()
            }
        }
    }

    fn tidy(&mut self, at: u16) {
        if self.stretches.get(&at).is_some_and(|s| s.shown.is_empty() && s.overflow == 0) {
            self.stretches.remove(&at);
        }
    }
}

/// What an order takes in a set, about.
const ENTRY_BYTES: usize = 24;
/// What a stretch takes, about.
const STRETCH_BYTES: usize = size_of::<Stretch>() + 32;

/// The limit of a video of this length, in ms, where nobody set one; `None`:
/// nobody knows how long it is.
pub fn limit_by_duration(duration_ms: Option<u32>) -> u32 {
    const MINUTE: u32 = 60_000;
    match duration_ms {
        None => 3_000,
        Some(ms) if ms <= MINUTE / 2 => 100,
        Some(ms) if ms <= MINUTE => 300,
        Some(ms) if ms <= 3 * MINUTE => 500,
        Some(ms) if ms <= 15 * MINUTE => 1_500,
        Some(ms) if ms <= 40 * MINUTE => 3_000,
        Some(ms) if ms <= 60 * MINUTE => 6_000,
        Some(_) => 8_000,
    }
}

/// The limits that may be set.
pub const LIMITS: [u32; 9] = [100, 300, 500, 1_500, 3_000, 6_000, 8_000, 16_000, 32_000];

const _: () = assert!(LIMITS[8] == tideline_types::limits::SHOWN_PER_VIDEO_MAX);

#[cfg(test)]
mod tests;
