//! Deletes, clears, the recording switch and erase.
//!
//! A delete stands as long as an event of its age can be accepted; what no
//! event can meet any more is forgotten when something new is added, and the
//! outcome says so.

use tideline_types::limits::{
    BLOCK_DAYS_WITHOUT_RETENTION, BLOCKS_PER_USER_MAX, PAUSES_PER_USER_MAX, RECORD_VALUE_BYTES_MAX,
};
use tideline_types::{DAY_MS, Millis};

use super::{Rules, TooMany};
use crate::facts::Block;
use crate::id::{IdBuf, PackedId};
use crate::kinds::KindId;
use crate::outcome::{Clear, Cut, Delete, Erase, OutcomeRef, Switch};
use crate::query::{ClearFilter, Filter, ObjectKey};
use crate::timeline::Timeline;

impl Rules {
    /// Deletes objects; each delete holds against events up to `now`, whether
    /// or not there is a row. Answers how many rows were shown and are not.
    pub fn delete(
        &self,
        user: &Timeline,
        keys: &[ObjectKey],
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Result<u64, TooMany> {
        let mut keys: Vec<&ObjectKey> = keys.iter().collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(0);
        }
        let packed: Vec<(KindId, IdBuf)> =
            keys.iter().map(|key| (key.kind, IdBuf::pack(&key.id))).collect();
        let shown =
            |(kind, id): &&(KindId, IdBuf)| user.shown(*kind, id.borrow(), self, now).is_some();
        let deleted = packed.iter().filter(shown).count() as u64;
        self.delete_packed(user, &packed, now, out)?;
        Ok(deleted)
    }

    /// Keys distinct, at least one.
    fn delete_packed(
        &self,
        user: &Timeline,
        keys: &[(KindId, IdBuf)],
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Result<(), TooMany> {
        let cut = self.blocks_cut(user, now);
        let old =
            |(kind, id): &&(KindId, IdBuf)| user.facts().has_object(*kind, &id.borrow().text());
        let stands = |block: &&Block| self.stands(block, now);
        let standing = user.facts().blocks().filter(stands).count();
        if standing + keys.len() > BLOCKS_PER_USER_MAX {
            let replaced = keys.iter().filter(old).count();
            if standing + keys.len() - replaced > BLOCKS_PER_USER_MAX {
                return Err(TooMany::Blocks);
            }
        }
        let keys: Vec<(&str, PackedId<'_>)> =
            keys.iter().map(|(kind, id)| (self.kinds.name(*kind), id.borrow())).collect();
        append(&OutcomeRef::Delete(Delete { taken_ms: now, cut, keys }), out)
    }

    /// Clears what `filter` matches: with `finished`, each finished row that is
    /// shown as if deleted by its key; else the whole of the filter, against
    /// late events too. Answers how many rows were shown and are not.
    pub fn clear(
        &self,
        user: &Timeline,
        filter: &ClearFilter,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Result<u64, TooMany> {
        let rows = Filter {
            kinds: filter.kind.into_iter().collect(),
            after_ms: filter.after_ms,
            before_ms: filter.before_ms,
            unfinished: false,
        };
        let wanted = filter.id.as_deref().map(IdBuf::pack);
        let matched: Vec<(KindId, IdBuf)> = user
            .shown_rows(&rows, self, now)
            .filter(|(_, row)| wanted.as_ref().is_none_or(|id| id.borrow() == row.id))
            .filter(|(_, row)| !filter.finished || row.finished)
            .map(|(kind, row)| (kind, IdBuf::of(row.id)))
            .collect();
        let cleared = matched.len() as u64;
        if filter.finished {
            if !matched.is_empty() {
                self.delete_packed(user, &matched, now, out)?;
            }
            return Ok(cleared);
        }
        let block = Block::of_clear(filter, now);
        let stands = |own: &&Block| self.stands(own, now) && !block.swallows(own);
        if user.facts().blocks().filter(stands).count() >= BLOCKS_PER_USER_MAX {
            return Err(TooMany::Blocks);
        }
        let clear = Clear {
            taken_ms: now,
            cut: self.blocks_cut(user, now),
            kind: filter.kind.map(|kind| self.kinds.name(kind)),
            id: wanted.as_ref().map(IdBuf::borrow),
            after_ms: filter.after_ms,
            before_ms: filter.before_ms,
        };
        append(&OutcomeRef::Clear(clear), out)?;
        Ok(cleared)
    }

    /// Switches recording on or off; answers whether that changed anything.
    pub fn switch(
        &self,
        user: &Timeline,
        on: bool,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Result<bool, TooMany> {
        if user.recording() == on {
            return Ok(false);
        }
        let retention = self.kinds.iter().map(|(_, kind)| kind.retention_ms());
        let longest = retention.collect::<Option<Vec<i64>>>().and_then(|all| all.into_iter().max());
        let cut_ms = longest.map(|retention| now.plus(-retention));
        let old = |cut: Millis| user.facts().pauses().iter().any(|pause| pause.to_ms <= cut);
        let pauses = cut_ms.filter(|&cut| cut.0 > 0 && old(cut));
        let standing = user.facts().pauses().iter();
        let standing = standing.filter(|pause| pauses.is_none_or(|cut| pause.to_ms > cut));
        if !on && standing.count() >= PAUSES_PER_USER_MAX {
            return Err(TooMany::Pauses);
        }
        let cut = Cut { blocks: Vec::new(), pauses };
        append(&OutcomeRef::Switch(Switch { taken_ms: now, cut, on }), out)?;
        Ok(true)
    }

    /// Erases the user: everything up to `now` is gone and stays out,
    /// recording is on, and only the rewards of the day are kept.
    pub fn erase(&self, _user: &Timeline, now: Millis, out: &mut Vec<u8>) {
        OutcomeRef::Erase(Erase { taken_ms: now, day: self.day_of(now) }).encode(out);
    }

    /// For how long a delete of `kind` (`None`: of no single kind) stands.
    fn block_life_ms(&self, kind: Option<KindId>) -> i64 {
        let life = |kind: KindId| {
            let retention = self.kinds.get(kind).retention_ms();
            retention.unwrap_or(BLOCK_DAYS_WITHOUT_RETENTION * DAY_MS)
        };
        match kind {
            Some(kind) => life(kind),
            None => self.kinds.iter().map(|(kind, _)| life(kind)).max().unwrap_or(0),
        }
    }

    /// Whether an event that the block holds against could still be accepted.
    pub(crate) fn stands(&self, block: &Block, now: Millis) -> bool {
        block.until_ms >= now.plus(-self.block_life_ms(block.kind))
    }

    /// What of the user's deletes may be forgotten.
    fn blocks_cut<'a>(&'a self, user: &Timeline, now: Millis) -> Cut<'a> {
        let mut kinds: Vec<Option<KindId>> = user
            .facts()
            .blocks()
            .filter(|block| !self.stands(block, now))
            .map(|block| block.kind)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let blocks = kinds
            .into_iter()
            .map(|kind| {
                let name = kind.map(|kind| self.kinds.name(kind));
                (name, now.plus(-self.block_life_ms(kind)))
            })
            .collect();
        Cut { blocks, pauses: None }
    }
}

/// Appends the outcome, if it fits in a record.
fn append(outcome: &OutcomeRef<'_>, out: &mut Vec<u8>) -> Result<(), TooMany> {
    let start = out.len();
    outcome.encode(out);
    if out.len() - start > RECORD_VALUE_BYTES_MAX {
        out.truncate(start);
        return Err(TooMany::Bytes);
    }
    Ok(())
}
