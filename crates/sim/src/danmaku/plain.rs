//! A video's comments as one would write them down: all of them in one list,
//! every rule by looking at each.
//!
//! Follows the log's outcomes, and says of each whether it may be. Shares no
//! code with the queue it is held against.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tideline_danmaku::comment::{Actor, Comment, Index, Rank, State, Writer};
use tideline_danmaku::outcome::{Act, Change, Outcome};
use tideline_danmaku::rows::Settings;
use tideline_danmaku::top::Scope;
use tideline_danmaku::video::Event;
use tideline_danmaku::{CommentId, STRETCH_MS};

/// Rank, then id; the greater stays longer.
type Order = (Rank, CommentId);

/// What an operator set, as far as the queue is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) limit: u32,
    pub(crate) scope: Scope,
    pub(crate) reports: u32,
}

/// One video.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plain {
    pub(crate) comments: BTreeMap<CommentId, Arc<Comment>>,
    pub(crate) settings: Settings,
    /// Ids that were there and are not: these never come back.
    gone: BTreeSet<CommentId>,
    /// Who liked or reported what.
    marks: BTreeSet<(u8, CommentId, u64)>,
}

/// What the queue must do next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Rest,
    /// Hide the first of these that it comes to.
    Hide(Vec<Order>),
    Return(Order),
}

/// What becomes of a comment that comes in.
#[derive(Debug, PartialEq, Eq)]
enum Arrives {
    Hidden,
    Shown(Option<Order>),
}

impl Plain {
    /// Takes an outcome in; answers what viewers see of it. Panics if it may
    /// not be.
    pub(crate) fn take(&mut self, setup: &Setup, outcome: &Outcome) -> Vec<Event> {
        self.judge(setup, outcome);
        let mut events = Vec::new();
        for change in &outcome.changes {
            self.change(change, &mut events);
        }
        events
    }

    fn change(&mut self, change: &Change, events: &mut Vec<Event>) {
        match change {
            Change::New { id, index, content } => {
                assert!(!self.gone.contains(id), "the deleted {id} is back");
                let comment = Comment { id: *id, index: *index, content: content.clone() };
                let comment = Arc::new(comment);
                if index.is_shown() {
                    events.push(Event::Shown(comment.clone()));
                }
                assert!(self.comments.insert(*id, comment).is_none(), "{id} is there twice");
            }
            Change::Index { id, before, after, content } => {
                let old = self.at(*id).clone();
                assert_eq!(old.index, *before, "the index of {id} as it was");
                if let Some(content) = content {
                    assert_eq!(old.content, *content, "the content of {id} never changes");
                }
                let now = Arc::new(Comment { index: *after, ..Comment::clone(&old) });
                match (before.is_shown(), after.is_shown()) {
                    (true, true) => events.push(Event::Changed(now.clone())),
                    (false, true) => {
                        assert!(content.is_some(), "{id} comes back without its content");
                        events.push(Event::Shown(now.clone()));
                    }
                    (true, false) => events.push(Event::Hidden(*id)),
                    (false, false) => {}
                }
                self.comments.insert(*id, now);
            }
            Change::Mark { kind, id, user, .. } => {
                let new = self.marks.insert((*kind as u8, *id, *user));
                assert!(new, "a user said the same of {id} twice");
            }
            Change::Gone { id, before, .. } => {
                assert_eq!(self.at(*id).index, *before, "the index of {id} that goes");
                self.comments.remove(id);
                self.gone.insert(*id);
                if before.is_shown() {
                    events.push(Event::Hidden(*id));
                }
            }
            Change::Settings { before, after } => {
                assert_eq!(self.settings, *before, "settings as they were");
                self.settings = *after;
                events.push(Event::Settings(*after));
            }
            Change::Forgotten { .. }
            | Change::Filters { .. }
            | Change::Sent(_)
            | Change::Work { .. } => {}
            Change::Count { total, shown, .. } => {
                assert_eq!((*total, *shown), (self.total(), self.shown()), "counts and lists");
            }
        }
    }

    /// Whether the outcome may be, as things are.
    fn judge(&self, setup: &Setup, outcome: &Outcome) {
        let first = outcome.changes.first();
        match (outcome.act, first) {
            (Act::Queue, Some(Change::Index { id, before, after, .. })) => {
                return self.judge_queue(setup, *id, before, after);
            }
            (Act::Count, _) => return,
            _ => {}
        }
        assert_eq!(self.next(setup), Next::Rest, "{outcome:?} while the queue is not at rest");
        let evicted = match outcome.changes.get(1) {
            Some(Change::Index { id, before, after, .. }) => {
                assert_eq!((before.state, after.state), (State::Shown, State::Overflow));
                Some((before.rank, *id))
            }
            _ => None,
        };
        match (outcome.act, first) {
            (Act::Post | Act::Import, Some(Change::New { id, index, content })) => {
                let same = self.comments.values().find(|there| {
                    content.client.is_some()
                        && there.content.client == content.client
                        && there.content.writer == content.writer
                });
                assert!(same.is_none(), "a retry became another comment: {same:?} and {id}");
                self.judge_arrival(setup, *id, index, evicted);
            }
            (Act::Moderate, Some(Change::Index { id, before, after, .. })) => {
                self.judge_moderation(setup, *id, before, after, evicted);
            }
            (Act::Recall, Some(Change::Index { id, after, .. })) => {
                assert_eq!(after.state, State::Recalled);
                let writer = &self.at(*id).content.writer;
                let actor = outcome.actor.as_ref().map(|actor: &Actor| &actor.user);
                assert!(matches!((writer, actor), (Writer::User(a), Some(b)) if a == b));
            }
            (Act::Like, Some(Change::Index { before, after, .. })) => {
                assert_eq!(Index { likes: before.likes + 1, ..*before }, *after);
            }
            (Act::Report, Some(Change::Index { before, after, .. })) => {
                let reports = before.reports + 1;
                let hides = reports >= setup.reports && !before.reviewed;
                let state = if hides { State::Reported } else { State::Shown };
                assert_eq!(Index { reports, state, ..*before }, *after);
            }
            (Act::Erase, Some(Change::Forgotten { .. })) => {
                // Who it was is a hash: `Oracle` compares what is left of them.
            }
            _ => {}
        }
    }

    fn judge_queue(&self, setup: &Setup, id: CommentId, before: &Index, after: &Index) {
        assert_eq!(Index { state: after.state, ..*before }, *after, "the queue moves, no more");
        let order = (before.rank, id);
        match (before.state, after.state, self.next(setup)) {
            (State::Shown, State::Overflow, Next::Hide(any)) if any.contains(&order) => {}
            (State::Overflow, State::Shown, Next::Return(best)) if best == order => {}
            (from, to, next) => panic!("{order:?} goes from {from:?} to {to:?}, due is {next:?}"),
        }
    }

    fn judge_arrival(&self, setup: &Setup, id: CommentId, index: &Index, evicted: Option<Order>) {
        let came = match (index.counts(), index.state) {
            (false, state) => return assert_eq!((state, evicted), (State::Shown, None)),
            (true, State::Shown) => Arrives::Shown(evicted),
            (true, State::Overflow) => Arrives::Hidden,
            (true, other) => panic!("{id} comes in {other:?}"),
        };
        assert_eq!(came, self.arrive(setup, (index.rank, id)), "how {id} comes in");
    }

    fn judge_moderation(
        &self,
        setup: &Setup,
        id: CommentId,
        before: &Index,
        after: &Index,
        evicted: Option<Order>,
    ) {
        let (from, to) = (before.state, after.state);
        assert!(from != State::Recalled || !after.is_shown(), "a recalled comment is back");
        let in_queue = before.counts() && matches!(from, State::Shown | State::Overflow);
        if before.rank != after.rank {
            let order = (after.rank, id);
            if in_queue && from == State::Overflow && after.rank > before.rank {
                assert!(evicted.is_none_or(|(rank, _)| rank < after.rank), "a conflict is refused");
                return self.judge_arrival(setup, id, after, evicted);
            }
            let outranked = self.peers(setup, id.stretch(), State::Overflow).any(|o| o > order);
            let falls = in_queue && from == State::Shown && outranked;
            assert_eq!((to, evicted), (if falls { State::Overflow } else { from }, None));
        } else if before.pool != after.pool {
            match from {
                State::Shown | State::Overflow => self.judge_arrival(setup, id, after, evicted),
                _ => assert_eq!((to, evicted), (from, None)),
            }
        } else if matches!(to, State::Hidden | State::Blocked) {
            assert_eq!(evicted, None);
        } else {
            let undone = matches!(from, State::Hidden | State::Blocked | State::Reported);
            assert!(undone, "{id} goes from {from:?} to {to:?}");
            self.judge_arrival(setup, id, after, evicted);
        }
    }

    fn at(&self, id: CommentId) -> &Arc<Comment> {
        self.comments.get(&id).unwrap_or_else(|| panic!("{id} is not there"))
    }

    /// Those in the queue that are in `state`.
    fn queue(&self, state: State) -> impl Iterator<Item = Order> + '_ {
        let of = move |c: &&Arc<Comment>| c.index.counts() && c.index.state == state;
        self.comments.values().filter(of).map(|c| (c.index.rank, c.id))
    }

    /// Those that are compared with one of stretch `at`.
    fn peers(&self, setup: &Setup, at: u16, state: State) -> impl Iterator<Item = Order> + '_ {
        let whole = setup.scope == Scope::Video;
        self.queue(state).filter(move |(_, id)| whole || id.stretch() == at)
    }

    fn count(&self, at: u16) -> usize {
        self.queue(State::Shown).filter(|(_, id)| id.stretch() == at).count()
    }

    /// The one to hide if there were one too many, with `also` shown.
    fn gives(&self, setup: &Setup, also: Option<Order>) -> Option<Order> {
        let shown = || self.queue(State::Shown).chain(also);
        if setup.scope == Scope::Video {
            return shown().min();
        }
        let mut sizes = BTreeMap::<u16, usize>::new();
        shown().for_each(|(_, id)| *sizes.entry(id.stretch()).or_default() += 1);
        let fullest = sizes.into_iter().max_by_key(|(at, size)| (*size, *at))?.0;
        shown().filter(|(_, id)| id.stretch() == fullest).min()
    }

    fn arrive(&self, setup: &Setup, order: Order) -> Arrives {
        let others = |o: &Order| o.1 != order.1;
        let mut hidden = self.peers(setup, order.1.stretch(), State::Overflow).filter(others);
        if hidden.any(|best| best > order) {
            return Arrives::Hidden;
        }
        if self.queue(State::Shown).count() < self.limit(setup) as usize {
            return Arrives::Shown(None);
        }
        match self.gives(setup, Some(order)) {
            Some(low) if low != order => Arrives::Shown(Some(low)),
            _ => Arrives::Hidden,
        }
    }

    fn next(&self, setup: &Setup) -> Next {
        let (shown, limit) = (self.queue(State::Shown).count(), self.limit(setup) as usize);
        if shown > limit {
            return Next::Hide(self.gives(setup, None).into_iter().collect());
        }
        let mut best = BTreeMap::<u16, Order>::new();
        for order in self.queue(State::Overflow) {
            let at = if setup.scope == Scope::Video { 0 } else { order.1.stretch() };
            let there = best.entry(at).or_insert(order);
            *there = order.max(*there);
        }
        let mut lows = BTreeMap::<u16, Order>::new();
        for order in self.queue(State::Shown) {
            let at = if setup.scope == Scope::Video { 0 } else { order.1.stretch() };
            let there = lows.entry(at).or_insert(order);
            *there = order.min(*there);
        }
        let is_below = |(at, low): &(&u16, &Order)| best.get(at).is_some_and(|best| best > *low);
        let misplaced: Vec<Order> = lows.iter().filter(is_below).map(|(_, low)| *low).collect();
        if !misplaced.is_empty() {
            return Next::Hide(misplaced);
        }
        if shown == limit {
            return Next::Rest;
        }
        let emptiest = best.iter().min_by_key(|(at, _)| (self.count(**at), **at));
        emptiest.map_or(Next::Rest, |(_, order)| Next::Return(*order))
    }

    /// The most that may be shown.
    pub(crate) fn limit(&self, setup: &Setup) -> u32 {
        self.settings.limit.unwrap_or(setup.limit)
    }

    /// Comments of any state.
    pub(crate) fn total(&self) -> u64 {
        self.comments.len() as u64
    }

    /// Comments that are shown.
    pub(crate) fn shown(&self) -> u64 {
        self.comments.values().filter(|c| c.index.is_shown()).count() as u64
    }

    /// Comments that are shown and count.
    pub(crate) fn counted(&self) -> u32 {
        self.queue(State::Shown).count() as u32
    }

    /// Comments that are hidden for want of room.
    pub(crate) fn overflow(&self) -> u64 {
        self.queue(State::Overflow).count() as u64
    }

    /// How many segments there are.
    pub(crate) fn segments(&self) -> u32 {
        let last = self.comments.values().filter(|c| c.index.is_shown());
        match self.settings.duration_ms {
            Some(duration) => duration.div_ceil(STRETCH_MS).max(1),
            None => last.map(|c| u32::from(c.id.stretch()) + 1).max().unwrap_or(1),
        }
    }

    /// The stretches of a segment; what lies behind the end belongs to the
    /// last.
    pub(crate) fn stretches(&self, n: u32) -> Option<RangeInclusive<u16>> {
        let first = (n - 1) as u16;
        let is_last = n == self.segments() && self.settings.duration_ms.is_some();
        let last = if is_last { u16::MAX } else { first };
        (n <= self.segments()).then_some(first..=last)
    }

    /// What some stretches show, by pool, time, id.
    pub(crate) fn items(&self, stretches: &RangeInclusive<u16>) -> Vec<Arc<Comment>> {
        let of = |c: &&Arc<Comment>| c.index.is_shown() && stretches.contains(&c.id.stretch());
        let mut items: Vec<_> = self.comments.values().filter(of).cloned().collect();
        items.sort_by_key(|c| (c.index.pool, c.index.progress_ms, c.id));
        items
    }

    /// What a user wrote, newest first.
    pub(crate) fn of(&self, user: &str) -> Vec<Arc<Comment>> {
        let of = |c: &&Arc<Comment>| matches!(&c.content.writer, Writer::User(own) if own.as_str() == user);
        self.comments.values().rev().filter(of).cloned().collect()
    }
}
