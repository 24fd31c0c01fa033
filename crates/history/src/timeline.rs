//! One user in memory: rows in a compact form, and the rare facts beside them.
//!
//! All change goes through [`Timeline::apply`], which reads no clock and no
//! configuration. Reads take `now` and the rules: retention and a lowered cap
//! act when something is read.

mod block;
mod read;
mod record;
mod store;

use tideline_types::Millis;
use tideline_types::limits::RETRY_WINDOW_MS;

use crate::facts::{Block, ExportDoc, ExportFacts, Facts, Floor, Pause, Rewards};
use crate::id::{IdBuf, PackedId};
use crate::kinds::{KindId, Kinds};
use crate::outcome::{BlockRef, Clear, Cut, Delete, OutcomeRef, Put, Restore};
use crate::query::Retry;
use crate::retry::Retries;
use crate::row::RowRef;
use crate::rules::Rules;
use store::{Head, Store};

/// A kind's name that no declared kind has. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kind {0:?} is unknown")]
pub struct UnknownKind(pub Box<str>);

/// What must be rewritten at rest since the last flush. Facts always must.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Day rows, sorted: (kind, day of UTC).
    days: Vec<(KindId, i32)>,
    /// Whether the row of remembered retries must.
    retries: bool,
    /// Whether anything was applied.
    any: bool,
    last: Last,
}

/// The day that was touched last, which the next mark mostly touches too: so
/// the list of days stays out of the cache. Says nothing that `days` does not.
#[derive(Clone, Copy, Debug, Default)]
struct Last(Option<(KindId, i32)>);

impl PartialEq for Last {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Last {}

impl Touched {
    /// Everything there is of a user with marks on `days`.
    pub(crate) fn all(days: impl Iterator<Item = (KindId, i32)>) -> Self {
        let mut all = Self { retries: true, any: true, ..Self::default() };
        days.for_each(|(kind, day)| all.day(kind, day));
        all
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// The day rows that changed, sorted.
    pub fn days(&self) -> &[(KindId, i32)] {
        &self.days
    }

    /// Whether remembered retries changed.
    pub fn retries(&self) -> bool {
        self.retries
    }

    /// Reads a little of the days; the result says nothing.
    pub(crate) fn peek(&self) -> u8 {
        self.days.last().map_or(0, |(_, day)| *day as u8)
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.days.capacity() * size_of::<(KindId, i32)>()
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        other.days.iter().for_each(|&(kind, day)| self.day(kind, day));
        self.retries |= other.retries;
        self.any |= other.any;
    }

    fn day(&mut self, kind: KindId, day: i32) {
        if self.last.0 == Some((kind, day)) {
            return;
        }
        if let Err(at) = self.days.binary_search(&(kind, day)) {
            self.days.insert(at, (kind, day));
        }
        self.last.0 = Some((kind, day));
    }

    /// A row goes. Its retries may stand at rest even where they were
    /// forgotten here.
    fn gone(&mut self, kind: KindId, row: &RowRef<'_>) {
        self.day(kind, row.event_ms.utc_day());
        self.retries = true;
    }

    fn row(&mut self, kind: KindId, row: &RowRef<'_>) {
        self.day(kind, row.event_ms.utc_day());
        self.retries |= !row.retries.is_empty();
    }
}

/// One user's history.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    store: Store,
    facts: Option<Box<Facts>>,
    rewards: Rewards,
}

impl Timeline {
    /// A user of whom nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows kept, shown or not.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.store.len() == 0
    }

    /// Whether nothing at all is known of the user.
    pub fn is_blank(&self) -> bool {
        self.is_empty() && self.facts.is_none() && self.rewards == Rewards::default()
    }

    /// Whether all that is known is what an erase leaves: one delete of
    /// everything, and the kinds rewarded on its day.
    pub(crate) fn is_erased_only(&self) -> bool {
        self.is_empty() && self.facts().is_only_an_erase()
    }

    /// Whether recording is on.
    pub fn recording(&self) -> bool {
        self.facts().off_since().is_none()
    }

    /// The rare facts.
    pub(crate) fn facts(&self) -> &Facts {
        static NONE: Facts = Facts::NONE;
        self.facts.as_deref().unwrap_or(&NONE)
    }

    /// The days rewarded.
    pub(crate) fn rewards(&self) -> &Rewards {
        &self.rewards
    }

    /// The kinds already rewarded on a local day.
    pub fn rewarded_on(&self, day: i32) -> impl Iterator<Item = KindId> {
        self.rewards.on(day)
    }

    /// Reads a little of what deciding a mark reads, so that it is in the
    /// cache when that begins; the result says nothing.
    pub(crate) fn peek(&self) -> u8 {
        self.store.peek()
    }

    /// Heap bytes, with an estimate of what the allocator adds.
    pub fn bytes(&self) -> usize {
        let facts = self.facts.as_ref().map_or(0, |facts| facts.bytes() + size_of::<Facts>() + 16);
        self.store.bytes() + facts
    }

    /// Everything, as an export carries it: rows that are shown, newest first.
    pub fn export(&self, rules: &Rules, now: Millis) -> ExportDoc {
        let facts = self.facts();
        let mut deletes: Vec<Block> = facts.blocks().cloned().collect();
        deletes.sort();
        ExportDoc {
            rows: self.export_rows(rules, now),
            facts: ExportFacts {
                deletes,
                pauses: facts.pauses().to_vec(),
                off_since: facts.off_since(),
                floors: facts.floors().to_vec(),
                rewards: self.rewards.iter().collect(),
            },
        }
    }

    /// Takes over what was decided. On an unknown kind nothing changes.
    pub fn apply(
        &mut self,
        outcome: &OutcomeRef<'_>,
        kinds: &Kinds,
        touched: &mut Touched,
    ) -> Result<(), UnknownKind> {
        match outcome {
            OutcomeRef::Put(put) => self.put(put, kinds, touched)?,
            OutcomeRef::Delete(delete) => self.delete(delete, kinds, touched)?,
            OutcomeRef::Clear(clear) => self.clear(clear, kinds, touched)?,
            OutcomeRef::Switch(switch) => {
                let cut = known_cut(&switch.cut, kinds)?;
                let facts = self.facts_mut();
                facts.switch(switch.on, switch.taken_ms);
                apply_cut(facts, &cut);
            }
            OutcomeRef::Erase(erase) => {
                self.all_kept().for_each(|(kind, row)| touched.gone(kind, &row));
                touched.retries = true;
                self.store = Store::default();
                self.facts = None;
                self.facts_mut().add_block(Block::all(erase.taken_ms));
                self.rewards.cut(erase.day);
            }
            OutcomeRef::Restore(restore) => self.restore(restore, kinds, touched)?,
        }
        if self.facts.as_ref().is_some_and(|facts| facts.is_empty()) {
            self.facts = None;
        }
        touched.any = true;
        Ok(())
    }

    fn facts_mut(&mut self) -> &mut Facts {
        self.facts.get_or_insert_default()
    }

    fn put(
        &mut self,
        put: &Put<'_>,
        kinds: &Kinds,
        touched: &mut Touched,
    ) -> Result<(), UnknownKind> {
        let kind = known(put.kind, kinds)?;
        self.put_row(kind, &put.row, touched);
        if let Some((event_ms, id)) = put.floor {
            let falls = |store: &Store, head: &Head| {
                head.kind == kind
                    && (head.event_ms < event_ms
                        || (head.event_ms == event_ms && store.id(head.place).cmp_text(id).is_le()))
            };
            self.store.remove_where(event_ms, falls, |own, row| touched.gone(own, row));
            if !broken!(FloorForgotten) {
                self.facts_mut().raise_floor(Floor { kind, event_ms, id: id.text() });
            }
        }
        if let Some(day) = put.first_of {
            self.rewards.add(kind, day);
        }
        Ok(())
    }

    fn put_row(&mut self, kind: KindId, row: &RowRef<'_>, touched: &mut Touched) {
        touched.row(kind, row);
        self.store.put(kind, row, |old| touched.row(kind, old));
    }

    fn delete(
        &mut self,
        delete: &Delete<'_>,
        kinds: &Kinds,
        touched: &mut Touched,
    ) -> Result<(), UnknownKind> {
        let keys = delete.keys.iter().map(|(kind, id)| Ok((known(kind, kinds)?, *id)));
        let keys: Vec<(KindId, PackedId<'_>)> = keys.collect::<Result<_, _>>()?;
        let cut = known_cut(&delete.cut, kinds)?;
        let facts = self.facts.get_or_insert_default();
        apply_cut(facts, &cut);
        for (kind, id) in keys {
            self.store.remove(kind, id, |old| touched.gone(kind, old));
            facts.add_block(Block::of(kind, &id.text(), delete.taken_ms));
        }
        Ok(())
    }

    fn clear(
        &mut self,
        clear: &Clear<'_>,
        kinds: &Kinds,
        touched: &mut Touched,
    ) -> Result<(), UnknownKind> {
        let kind = clear.kind.map(|kind| known(kind, kinds)).transpose()?;
        let cut = known_cut(&clear.cut, kinds)?;
        let block = Block {
            kind,
            id: clear.id.map(PackedId::text),
            after_ms: clear.after_ms,
            before_ms: clear.before_ms,
            until_ms: clear.taken_ms,
        };
        let goes = |store: &Store, head: &Head| {
            kind.is_none_or(|kind| kind == head.kind)
                && clear.after_ms.is_none_or(|after| after <= head.event_ms)
                && clear.before_ms.is_none_or(|before| head.event_ms < before)
                && clear.id.is_none_or(|id| id == store.id(head.place))
        };
        self.store.remove_where(Millis(i64::MAX), goes, |own, row| touched.gone(own, row));
        let facts = self.facts_mut();
        apply_cut(facts, &cut);
        facts.add_block(block);
        Ok(())
    }

    fn restore(
        &mut self,
        restore: &Restore<'_>,
        kinds: &Kinds,
        touched: &mut Touched,
    ) -> Result<(), UnknownKind> {
        let names = restore.rows.iter().map(|row| row.0);
        let names = names.chain(restore.floors.iter().map(|floor| floor.0));
        let names = names.chain(restore.rewards.iter().map(|reward| reward.0));
        let names = names.chain(restore.deletes.iter().filter_map(|block| block.kind));
        names.map(|name| known(name, kinds)).collect::<Result<Vec<_>, _>>()?;
        let facts = self.facts.get_or_insert_default();
        for block in &restore.deletes {
            facts.restore_block(known_block(block, kinds)?);
        }
        for &(from_ms, to_ms) in &restore.pauses {
            facts.add_pause(Pause { from_ms, to_ms });
        }
        if let Some(since) = restore.off_since {
            facts.off_from(since);
        }
        for &(kind, event_ms, id) in &restore.floors {
            facts.raise_floor(Floor { kind: known(kind, kinds)?, event_ms, id: id.text() });
        }
        for &(kind, day) in &restore.rewards {
            self.rewards.add(known(kind, kinds)?, day);
        }
        for (kind, row) in &restore.rows {
            self.put_row(known(kind, kinds)?, row, touched);
        }
        Ok(())
    }

    /// Takes a row as it was at rest, with nothing noted as touched; true if
    /// one of the same key was there.
    pub(crate) fn load_row(&mut self, kind: KindId, row: &RowRef<'_>) -> bool {
        let mut twice = false;
        self.store.put(kind, row, |_| twice = true);
        twice
    }

    /// Gives a row the retries that it had at rest; nothing where the row is
    /// not there.
    pub(crate) fn load_retries(&mut self, kind: KindId, id: PackedId<'_>, retries: Retries<'_>) {
        let Some(row) = self.store.find(kind, id) else { return };
        let owned = row.to_row(kind);
        let id = IdBuf::of(id);
        let row = RowRef { retries, ..RowRef::of(&owned, &id) };
        self.store.put(kind, &row, |_| ());
    }

    /// Takes facts as they were at rest.
    pub(crate) fn load_facts(&mut self, facts: Facts, rewards: Rewards) {
        self.facts = (!facts.is_empty()).then(|| Box::new(facts));
        self.rewards = rewards;
    }

    /// Forgets retries that are over a day old. No decision can tell.
    pub fn drop_retries(&mut self, now: Millis) {
        let stands = |retry: &Retry| retry.taken_ms > now.plus(-RETRY_WINDOW_MS);
        self.store.rewrite(|row| {
            let mut row = *row;
            row.retries.retain(stands);
            Some(row)
        });
    }

    /// Drops rows that retention hides and retries that are over a day old,
    /// noting what must be rewritten at rest. No read and no decision can
    /// tell: it frees space, and may happen at any time.
    pub fn drop_expired(&mut self, rules: &Rules, now: Millis, touched: &mut Touched) -> usize {
        self.drop_retries(now);
        touched.retries = true;
        let before = self.store.len();
        let goes = |_: &Store, head: &Head| rules.is_expired(head.kind, head.event_ms, now);
        self.store.remove_where(Millis(i64::MAX), goes, |kind, row| {
            touched.gone(kind, row);
            touched.any = true;
        });
        before - self.store.len()
    }
}

fn known(name: &str, kinds: &Kinds) -> Result<KindId, UnknownKind> {
    kinds.find(name).ok_or_else(|| UnknownKind(name.into()))
}

fn known_block(block: &BlockRef<'_>, kinds: &Kinds) -> Result<Block, UnknownKind> {
    Ok(Block {
        kind: block.kind.map(|kind| known(kind, kinds)).transpose()?,
        id: block.id.map(PackedId::text),
        after_ms: block.after_ms,
        before_ms: block.before_ms,
        until_ms: block.until_ms,
    })
}

/// A [`Cut`] whose kinds are known.
type KnownCut = (Vec<(Option<KindId>, Millis)>, Option<Millis>);

fn known_cut(cut: &Cut<'_>, kinds: &Kinds) -> Result<KnownCut, UnknownKind> {
    let one = |&(kind, at): &(Option<&str>, Millis)| {
        Ok((kind.map(|kind| known(kind, kinds)).transpose()?, at))
    };
    Ok((cut.blocks.iter().map(one).collect::<Result<_, _>>()?, cut.pauses))
}

fn apply_cut(facts: &mut Facts, (blocks, pauses): &KnownCut) {
    blocks.iter().for_each(|&(kind, cut)| facts.cut_blocks(kind, cut));
    pauses.iter().for_each(|&cut| facts.cut_pauses(cut));
}
