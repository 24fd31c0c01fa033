//! How an owner comes to know what its partition holds: the log above the
//! place.

use tideline_queue::view::{self, Read};
use tideline_store::{StoreError, Table};
use tideline_types::Seq;

use crate::cold;
use crate::owner::Owner;
use crate::task::TOPIC;

/// Replays what the log holds above the partition's place into a fresh owner,
/// which takes calls from then on. `read` gives whole batches, of which the
/// first contains the number asked for. Blocks.
///
/// # Errors
/// `Damaged` if the tables are ahead of the log, if records between the two
/// are gone, or if something does not read; what the engines say otherwise.
pub fn recover<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    read: &mut Read<'_>,
) -> Result<(), StoreError> {
    replay(owner, table, read, false)
}

/// As [`recover`], for a start, when nobody else writes the partition's rows:
/// holds at most what an owner lets come in, and one batch more. More is there
/// only where the bounds were wider before; it is brought to rest.
///
/// # Errors
/// As [`recover`].
pub fn start<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    read: &mut Read<'_>,
) -> Result<(), StoreError> {
    replay(owner, table, read, true)
}

fn replay<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    read: &mut Read<'_>,
    within_budget: bool,
) -> Result<(), StoreError> {
    let (stream, synced) = (owner.stream(), owner.synced_through());
    view::replay(TOPIC, stream, synced, table, read, |batch| {
        for (seq, time, key, value) in batch.records() {
            owner.replay(seq, time, key, value)?;
        }
        owner.replayed(batch.through(), batch.len(), batch.bytes());
        match within_budget && owner.is_over_budget() {
            true => lay_to_rest(owner, table, batch.through()),
            false => Ok(()),
        }
    })?;
    owner.recovered();
    Ok(())
}

/// Brings every video to rest of which the log told something up to `through`.
/// The place follows later: whoever reads this part of the log again finds
/// that the rows have applied it.
fn lay_to_rest<W>(owner: &mut Owner<W>, table: &dyn Table, through: Seq) -> Result<(), StoreError> {
    for video in owner.replayed_videos() {
        let cold = cold::read(table, &video)?;
        table.commit(&owner.lay_to_rest(&video, cold, through)?)?;
    }
    table.sync()?;
    owner.laid_to_rest(through);
    Ok(())
}
