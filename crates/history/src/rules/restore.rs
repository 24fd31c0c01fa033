//! An export put back.
//!
//! Rows follow "newest wins" alone, whatever deletes, pauses and floors say;
//! facts are added to those that stand. A large export becomes several
//! outcomes, the facts in the first: stopped between two, it is simply put
//! back again.

use tideline_types::Millis;
use tideline_types::limits::{
    BLOCKS_PER_USER_MAX, FIELD_BYTES_MAX, PAUSES_PER_USER_MAX, RECORD_VALUE_BYTES_MAX,
};

use super::{Rules, TooMany};
use crate::facts::{Block, ExportDoc, ExportFacts};
use crate::id::IdBuf;
use crate::outcome::{BlockRef, OutcomeRef, Restore};
use crate::row::RowRef;
use crate::timeline::Timeline;

/// An outcome is closed when its rows reach this many bytes.
const PART_BYTES: usize = 256 << 10;
/// A row with every field at its limit, and what an outcome adds around rows.
const ROW_BYTES_MAX: usize = 1024;
/// A delete with an id at its limit.
const BLOCK_BYTES_MAX: usize = 128;

const _: () = assert!(PART_BYTES + ROW_BYTES_MAX < RECORD_VALUE_BYTES_MAX);

/// What became of an export's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Rows put back.
    pub accepted: u64,
    /// Rows that were older than the one there.
    pub stale: u64,
}

/// An export that cannot be put back. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It holds more facts than may stand at a time.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// It says something that no export says.
    #[error("not an export: {0}")]
    Bad(&'static str),
}

impl Rules {
    /// Puts an export back. Appends the outcomes to `out`, each whole, in the
    /// order in which they must be logged; none if there is nothing in it.
    pub fn restore(
        &self,
        user: &Timeline,
        doc: &ExportDoc,
        now: Millis,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<RestoreReport, RestoreError> {
        check(doc)?;
        self.check_room(user, &doc.facts, now)?;
        self.restore_facts(&doc.facts, now, out);
        let mut report = RestoreReport::default();
        let mut rest = doc.rows.as_slice();
        while !rest.is_empty() {
            let ids: Vec<IdBuf> = rest.iter().take(1000).map(|row| IdBuf::pack(&row.id)).collect();
            let (part, later) = rest.split_at(ids.len());
            rest = later;
            let mut restore = Restore { taken_ms: now, ..Restore::default() };
            let mut bytes = 0;
            for (row, id) in part.iter().zip(&ids) {
                let old = user.kept(row.kind, id.borrow());
                if old.is_some_and(|old| old.event_ms > row.event_ms) {
                    report.stale += 1;
                    continue;
                }
                report.accepted += 1;
                let row_ref = RowRef::of(row, id);
                restore.rows.push((self.kinds.name(row.kind), row_ref));
                bytes += row_ref.bytes_about();
                if bytes >= PART_BYTES {
                    push(&mut restore, out);
                    bytes = 0;
                }
            }
            push(&mut restore, out);
        }
        Ok(report)
    }

    fn check_room(&self, user: &Timeline, facts: &ExportFacts, now: Millis) -> Result<(), TooMany> {
        let stands = |block: &&Block| self.stands(block, now);
        let blocks = user.facts().blocks().count() + facts.deletes.iter().filter(stands).count();
        if blocks > BLOCKS_PER_USER_MAX {
            return Err(TooMany::Blocks);
        }
        if user.facts().pauses().len() + facts.pauses.len() > PAUSES_PER_USER_MAX {
            return Err(TooMany::Pauses);
        }
        Ok(())
    }

    fn restore_facts(&self, facts: &ExportFacts, now: Millis, out: &mut Vec<Vec<u8>>) {
        let floors: Vec<IdBuf> = facts.floors.iter().map(|floor| IdBuf::pack(&floor.id)).collect();
        let mut restore = Restore {
            taken_ms: now,
            pauses: facts.pauses.iter().map(|pause| (pause.from_ms, pause.to_ms)).collect(),
            off_since: facts.off_since,
            floors: facts
                .floors
                .iter()
                .zip(&floors)
                .map(|(floor, id)| (self.kinds.name(floor.kind), floor.event_ms, id.borrow()))
                .collect(),
            rewards: facts
                .rewards
                .iter()
                .map(|reward| (self.kinds.name(reward.kind), reward.day))
                .collect(),
            ..Restore::default()
        };
        let standing: Vec<&Block> =
            facts.deletes.iter().filter(|block| self.stands(block, now)).collect();
        for part in standing.chunks(PART_BYTES / BLOCK_BYTES_MAX) {
            let ids: Vec<Option<IdBuf>> =
                part.iter().map(|block| block.id.as_deref().map(IdBuf::pack)).collect();
            let mut with_deletes = std::mem::take(&mut restore);
            with_deletes.taken_ms = now;
            with_deletes.deletes.extend(part.iter().zip(&ids).map(|(block, id)| BlockRef {
                kind: block.kind.map(|kind| self.kinds.name(kind)),
                id: id.as_ref().map(IdBuf::borrow),
                after_ms: block.after_ms,
                before_ms: block.before_ms,
                until_ms: block.until_ms,
            }));
            push(&mut with_deletes, out);
        }
        restore.taken_ms = now;
        push(&mut restore, out);
    }
}

/// Whether everything in it is something that an outcome may hold.
fn check(doc: &ExportDoc) -> Result<(), RestoreError> {
    let text =
        |text: Option<&str>| text.is_none_or(|text| (1..=FIELD_BYTES_MAX).contains(&text.len()));
    for row in &doc.rows {
        let texts =
            [Some(&*row.id), row.part.as_deref(), row.device.as_deref(), row.group.as_deref()];
        if !texts.into_iter().all(text) {
            return Err(RestoreError::Bad("a text is empty or over 64 bytes"));
        }
        if row.event_ms.0 <= 0 || row.facts.part_since.0 < 0 {
            return Err(RestoreError::Bad("a row's time is not after 0"));
        }
        let id = IdBuf::pack(&row.id);
        RowRef::of(row, &id).check().map_err(|bad| RestoreError::Bad(bad.0))?;
    }
    let ids = doc.facts.deletes.iter().map(|block| block.id.as_deref());
    if !ids.chain(doc.facts.floors.iter().map(|floor| Some(&*floor.id))).all(text) {
        return Err(RestoreError::Bad("an id is empty or over 64 bytes"));
    }
    if doc.facts.floors.iter().any(|floor| floor.event_ms.0 <= 0) {
        return Err(RestoreError::Bad("a floor's time is not after 0"));
    }
    if doc.facts.pauses.iter().any(|pause| pause.from_ms >= pause.to_ms) {
        return Err(RestoreError::Bad("a recording interval ends before it begins"));
    }
    Ok(())
}

/// Encodes what `restore` holds, if it holds anything, and empties it.
fn push(restore: &mut Restore<'_>, out: &mut Vec<Vec<u8>>) {
    let empty = Restore { taken_ms: restore.taken_ms, ..Restore::default() };
    let full = std::mem::replace(restore, empty);
    if full != *restore {
        let mut bytes = Vec::new();
        OutcomeRef::Restore(full).encode(&mut bytes);
        out.push(bytes);
    }
}
