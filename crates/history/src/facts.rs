//! What stands about a user besides rows: deletes, recording intervals, cap
//! floors, days already rewarded.
//!
//! Knows no clock and no configuration: what may be forgotten is told to it.

use tideline_types::Millis;

use crate::kinds::KindId;
use crate::query::{ClearFilter, Row};

/// A delete or clear that stands: it holds against events up to `until_ms`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// This kind alone; `None` = all.
    pub kind: Option<KindId>,
    /// This id alone; `None` = all.
    pub id: Option<Box<str>>,
    /// Events at or after.
    pub after_ms: Option<Millis>,
    /// Events before.
    pub before_ms: Option<Millis>,
    /// Events up to and including this server time.
    pub until_ms: Millis,
}

impl Block {
    /// A block against everything up to `until_ms`.
    pub fn all(until_ms: Millis) -> Self {
        Self { kind: None, id: None, after_ms: None, before_ms: None, until_ms }
    }

    /// A block against one object.
    pub fn of(kind: KindId, id: &str, until_ms: Millis) -> Self {
        Self { id: Some(id.into()), kind: Some(kind), ..Self::all(until_ms) }
    }

    /// Whether it names this object and this instant lies in its range,
    /// whatever its server time.
    pub fn matches(&self, kind: KindId, id: &str, at: Millis) -> bool {
        self.kind.is_none_or(|own| own == kind)
            && self.id.as_deref().is_none_or(|own| own == id)
            && self.after_ms.is_none_or(|after| after <= at)
            && self.before_ms.is_none_or(|before| at < before)
    }

    /// Whether it holds against an event.
    pub fn covers(&self, kind: KindId, id: &str, at: Millis) -> bool {
        at <= self.until_ms && self.matches(kind, id, at)
    }

    /// Whether it is about all ids and all times.
    fn is_whole(&self) -> bool {
        self.id.is_none() && self.after_ms.is_none() && self.before_ms.is_none()
    }

    /// Whether this one makes `old` needless: it is whole, no older, and about
    /// at least the same kinds.
    pub(crate) fn swallows(&self, old: &Self) -> bool {
        self.is_whole()
            && (self.kind.is_none() || self.kind == old.kind)
            && old.until_ms <= self.until_ms
    }

    /// Whether both say the same but for their server time.
    fn same_place(&self, other: &Self) -> bool {
        (self.kind, &self.id, self.after_ms, self.before_ms)
            == (other.kind, &other.id, other.after_ms, other.before_ms)
    }

    /// What a clear that is not limited to finished rows leaves behind.
    pub(crate) fn of_clear(filter: &ClearFilter, until_ms: Millis) -> Self {
        Self {
            kind: filter.kind,
            id: filter.id.clone(),
            after_ms: filter.after_ms,
            before_ms: filter.before_ms,
            until_ms,
        }
    }
}

/// An interval in which recording was off: `from_ms <= t < to_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    /// Switched off.
    pub from_ms: Millis,
    /// Switched on again.
    pub to_ms: Millis,
}

/// What fell off over a kind's cap, and all below it in order, stays off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Of which kind.
    pub kind: KindId,
    /// The highest row that fell off.
    pub event_ms: Millis,
    /// Its id.
    pub id: Box<str>,
}

/// The last day on which a kind was rewarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reward {
    /// Which kind.
    pub kind: KindId,
    /// Days since the Unix epoch, in the time zone of that moment.
    pub day: i32,
}

/// Facts as they are exported: sorted, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportFacts {
    /// Deletes and clears that stand.
    pub deletes: Vec<Block>,
    /// Intervals in which recording was off.
    pub pauses: Vec<Pause>,
    /// Since when recording is off, if it is.
    pub off_since: Option<Millis>,
    /// Floors, at most one a kind.
    pub floors: Vec<Floor>,
    /// Rewards, at most one a kind.
    pub rewards: Vec<Reward>,
}

/// A user's history as it is exported and restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportDoc {
    /// Newest first, with every fact.
    pub rows: Vec<Row>,
    /// What stands besides rows.
    pub facts: ExportFacts,
}

/// The rare facts of a user. Most users have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Of one object each, sorted by (kind, id).
    objects: Vec<Block>,
    /// All others, in order of arrival.
    ranges: Vec<Block>,
    /// Sorted, apart.
    pauses: Vec<Pause>,
    off_since: Option<Millis>,
    /// Sorted by kind.
    floors: Vec<Floor>,
}

impl Facts {
    /// No facts.
    pub const NONE: Self = Self {
        objects: Vec::new(),
        ranges: Vec::new(),
        pauses: Vec::new(),
        off_since: None,
        floors: Vec::new(),
    };

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Whether one delete of everything is all there is.
    pub(crate) fn is_only_an_erase(&self) -> bool {
        let [all] = self.ranges.as_slice() else { return false };
        *all == Block::all(all.until_ms)
            && *self == Self { ranges: vec![all.clone()], ..Self::NONE }
    }

    /// How many deletes and clears stand.
    pub fn blocks_len(&self) -> usize {
        self.objects.len() + self.ranges.len()
    }

    /// All deletes and clears.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.objects.iter().chain(&self.ranges)
    }

    /// The recording intervals that are over.
    pub fn pauses(&self) -> &[Pause] {
        &self.pauses
    }

    /// Since when recording is off, if it is.
    pub fn off_since(&self) -> Option<Millis> {
        self.off_since
    }

    /// The floors, sorted by kind.
    pub fn floors(&self) -> &[Floor] {
        &self.floors
    }

    /// The floor of a kind.
    pub fn floor(&self, kind: KindId) -> Option<&Floor> {
        self.floors.iter().find(|floor| floor.kind == kind)
    }

    fn object_at(&self, kind: KindId, id: &str) -> Result<usize, usize> {
        self.objects.binary_search_by(|block| {
            block.kind.cmp(&Some(kind)).then_with(|| block.id.as_deref().cmp(&Some(id)))
        })
    }

    /// Whether a delete of this one object stands.
    pub fn has_object(&self, kind: KindId, id: &str) -> bool {
        self.object_at(kind, id).is_ok()
    }

    /// The latest server time of a delete that holds against the event.
    pub fn covered_until(&self, kind: KindId, id: &str, at: Millis) -> Option<Millis> {
        let object = self.object_at(kind, id).ok().map(|found| &self.objects[found]);
        object
            .into_iter()
            .chain(&self.ranges)
            .filter(|block| block.covers(kind, id, at))
            .map(|block| block.until_ms)
            .max()
    }

    /// Whether recording was, or is, off at `at`.
    pub fn paused_at(&self, at: Millis) -> bool {
        let next = self.pauses.partition_point(|pause| pause.to_ms <= at);
        self.pauses.get(next).is_some_and(|pause| pause.from_ms <= at)
            || self.off_since.is_some_and(|since| since <= at)
    }

    /// Adds a delete or clear. A newer one of the same place replaces the
    /// older; a whole one swallows those that it covers.
    pub fn add_block(&mut self, block: Block) {
        self.objects.retain(|old| !block.swallows(old));
        self.ranges.retain(|old| !block.swallows(old));
        self.restore_block(block);
    }

    /// Adds a delete or clear and lets those that it covers stand beside it.
    pub fn restore_block(&mut self, block: Block) {
        if let (Some(kind), Some(id), None, None) =
            (block.kind, block.id.as_deref(), block.after_ms, block.before_ms)
        {
            match self.object_at(kind, id) {
                Ok(at) => {
                    let until = &mut self.objects[at].until_ms;
                    *until = block.until_ms.max(*until);
                }
                Err(at) => self.objects.insert(at, block),
            }
        } else if let Some(old) = self.ranges.iter_mut().find(|old| old.same_place(&block)) {
            old.until_ms = old.until_ms.max(block.until_ms);
        } else {
            self.ranges.push(block);
        }
    }

    /// Forgets deletes of `kind` (`None`: those of no single kind) that hold
    /// only against events before `cut`.
    pub fn cut_blocks(&mut self, kind: Option<KindId>, cut: Millis) {
        self.objects.retain(|block| block.kind != kind || block.until_ms >= cut);
        self.ranges.retain(|block| block.kind != kind || block.until_ms >= cut);
    }

    /// Forgets recording intervals that ended at or before `cut`.
    pub fn cut_pauses(&mut self, cut: Millis) {
        self.pauses.retain(|pause| pause.to_ms > cut);
    }

    /// Switches recording on or off at `now`.
    pub fn switch(&mut self, on: bool, now: Millis) {
        match (self.off_since, on) {
            (None, false) => self.off_since = Some(now),
            (Some(from_ms), true) => {
                self.off_since = None;
                self.add_pause(Pause { from_ms, to_ms: now });
            }
            _ => {}
        }
    }

    /// Adds an interval, melting it with those it touches.
    pub fn add_pause(&mut self, pause: Pause) {
        if pause.from_ms >= pause.to_ms {
            return;
        }
        let first = self.pauses.partition_point(|old| old.to_ms < pause.from_ms);
        let last = self.pauses.partition_point(|old| old.from_ms <= pause.to_ms);
        let melted = self.pauses[first..last].iter().fold(pause, |sum, old| Pause {
            from_ms: sum.from_ms.min(old.from_ms),
            to_ms: sum.to_ms.max(old.to_ms),
        });
        self.pauses.splice(first..last, [melted]);
    }

    /// Says that recording is off since `since`, or since earlier.
    pub fn off_from(&mut self, since: Millis) {
        self.off_since = Some(self.off_since.map_or(since, |own| own.min(since)));
    }

    /// Raises the floor of its kind; a lower one changes nothing.
    pub fn raise_floor(&mut self, floor: Floor) {
        match self.floors.binary_search_by_key(&floor.kind, |own| own.kind) {
            Ok(at) => {
                let own = &mut self.floors[at];
                if (own.event_ms, &own.id) < (floor.event_ms, &floor.id) {
                    *own = floor;
                }
            }
            Err(at) => self.floors.insert(at, floor),
        }
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        let ids = self.blocks().filter_map(|block| block.id.as_deref()).map(|id| id.len() + 16);
        (self.objects.capacity() + self.ranges.capacity()) * size_of::<Block>()
            + self.pauses.capacity() * size_of::<Pause>()
            + self.floors.capacity() * size_of::<Floor>()
            + ids.sum::<usize>()
            + self.floors.iter().map(|floor| floor.id.len() + 16).sum::<usize>()
    }
}

/// Which kinds were rewarded on which day, in little space: the newest day and
/// the one before it. An older day cannot be rewarded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewards {
    /// The newest day on which one of the first kinds was rewarded.
    day: i32,
    /// Bit n stands for kind n: rewarded on `day`.
    today: u32,
    /// The same for the day before; never a kind that is in `today`.
    before: u32,
    /// The last days of kinds that have no bit.
    #[allow(clippy::box_collection)] // a word in every user, not three
    far: Option<Box<Vec<Reward>>>,
}

impl Default for Rewards {
    fn default() -> Self {
        Self { day: i32::MIN, today: 0, before: 0, far: None }
    }
}

/// The bit of one of the first kinds.
fn bit_of(kind: KindId) -> Option<u32> {
    1u32.checked_shl(u32::from(kind.0))
}

impl Rewards {
    /// Whether a mark of `kind` on `day` would be the first.
    pub fn is_first(&self, kind: KindId, day: i32) -> bool {
        let Some(bit) = bit_of(kind) else {
            let last = self.far.iter().flat_map(|far| far.iter()).find(|far| far.kind == kind);
            return last.is_none_or(|last| last.day < day);
        };
        if day > self.day {
            return true;
        }
        match self.day.saturating_sub(day) {
            0 => self.today & bit == 0,
            1 => (self.today | self.before) & bit == 0,
            _ => false,
        }
    }

    /// Notes a reward; an older day than is kept changes nothing.
    pub fn add(&mut self, kind: KindId, day: i32) {
        let Some(bit) = bit_of(kind) else {
            let far = self.far.get_or_insert_default();
            match far.binary_search_by_key(&kind, |far| far.kind) {
                Ok(at) => far[at].day = far[at].day.max(day),
                Err(at) => far.insert(at, Reward { kind, day }),
            }
            return;
        };
        if day > self.day {
            let next = self.day.checked_add(1) == Some(day);
            self.before = if next { self.today } else { 0 };
            self.today = 0;
            self.day = day;
        }
        match self.day.saturating_sub(day) {
            0 => {
                self.today |= bit;
                self.before &= !bit;
            }
            1 => self.before |= bit & !self.today,
            _ => {}
        }
    }

    /// Forgets the days before `day`.
    pub fn cut(&mut self, day: i32) {
        if self.day < day {
            (self.day, self.today, self.before) = (i32::MIN, 0, 0);
        } else if self.day == day {
            self.before = 0;
        }
        if let Some(far) = &mut self.far {
            far.retain(|reward| reward.day >= day);
        }
        self.far = self.far.take().filter(|far| !far.is_empty());
    }

    /// The last reward of each kind, by kind.
    pub fn iter(&self) -> impl Iterator<Item = Reward> {
        let near = (0..32).filter_map(|at| {
            let (kind, bit) = (KindId(at), 1u32 << at);
            if self.today & bit != 0 {
                Some(Reward { kind, day: self.day })
            } else if self.before & bit != 0 {
                Some(Reward { kind, day: self.day - 1 })
            } else {
                None
            }
        });
        near.chain(self.far.iter().flat_map(|far| far.iter().copied()))
    }

    /// The kinds rewarded on `day`.
    pub fn on(&self, day: i32) -> impl Iterator<Item = KindId> {
        self.iter().filter(move |reward| reward.day == day).map(|reward| reward.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_rewarded_once_a_day_also_where_the_day_steps_back() {
        for kind in [KindId(3), KindId(200)] {
            let mut rewards = Rewards::default();
            assert!(rewards.is_first(kind, 20_000));
            rewards.add(kind, 20_000);
            rewards.add(KindId(1), 20_001);
            rewards.add(KindId(201), 20_001);
            assert!(!rewards.is_first(kind, 20_000) && rewards.is_first(kind, 20_001));
            rewards.add(kind, 20_001);
            assert!(!rewards.is_first(kind, 20_000) && !rewards.is_first(kind, 20_001));
            assert!(rewards.on(20_001).any(|own| own == kind));
            rewards.cut(20_002);
            assert_eq!(rewards, Rewards::default());
        }
    }

    #[test]
    fn pauses_that_touch_are_one() {
        let pause = |from, to| Pause { from_ms: Millis(from), to_ms: Millis(to) };
        let mut facts = Facts::default();
        for (from, to) in [(10, 20), (40, 50), (5, 5), (30, 35), (20, 30)] {
            facts.add_pause(pause(from, to));
        }
        assert_eq!(facts.pauses(), [pause(10, 35), pause(40, 50)]);
        let paused: Vec<i64> = (0..60).filter(|&at| facts.paused_at(Millis(at))).collect();
        assert!(paused.into_iter().eq((10..35).chain(40..50)));
    }

    #[test]
    fn a_whole_clear_swallows_what_it_covers_and_a_newer_delete_its_older() {
        let (video, live) = (KindId(1), KindId(2));
        let mut facts = Facts::default();
        facts.add_block(Block::of(video, "a", Millis(10)));
        facts.add_block(Block::of(video, "a", Millis(20)));
        facts.add_block(Block::of(live, "a", Millis(20)));
        facts.add_block(Block { after_ms: Some(Millis(5)), ..Block::all(Millis(20)) });
        assert_eq!(facts.blocks_len(), 3);
        facts.add_block(Block { kind: Some(video), ..Block::all(Millis(30)) });
        assert_eq!(facts.blocks_len(), 3);
        assert_eq!(facts.covered_until(video, "z", Millis(30)), Some(Millis(30)));
        facts.add_block(Block::all(Millis(30)));
        assert_eq!(facts.blocks_len(), 1);
    }
}
