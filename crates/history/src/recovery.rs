//! How an owner comes to know what its partition holds: the log above the
//! place, and the erases in it that name nobody.

use bytes::Bytes;
use tideline_store::batch::BatchRef;
use tideline_store::{Place, StoreError, Table, TableName};
use tideline_types::Seq;

use crate::cold;
use crate::owner::{Erases, Owner};
use crate::rows;
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
/// holds at most what an owner lets come in, and what one `read` gives. More
/// is there only where the bounds were wider before; it is brought to rest.
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

/// Gives whole batches from a number on.
pub type Read<'a> = dyn FnMut(Seq) -> Result<Vec<Bytes>, StoreError> + 'a;

fn replay<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    read: &mut Read<'_>,
    within_budget: bool,
) -> Result<(), StoreError> {
    let (stream, synced) = (owner.stream(), owner.synced_through());
    let place = Place::read(table, TOPIC, stream.partition)?;
    let wrong = |at: Seq, what: String| StoreError::Damaged {
        file: format!("log of history/{}", stream.partition).into(),
        offset: at.0,
        what,
    };
    if place.seq > synced {
        let what = format!("the tables are at {}, the log ends at {synced}", place.seq);
        return Err(wrong(place.seq, what));
    }
    let mut erases = Erases::new();
    let mut from = place.seq.next();
    while from <= synced {
        let batches = read(from)?;
        if batches.is_empty() {
            return Err(wrong(from, format!("nothing is read, though {synced} is synced")));
        }
        for bytes in batches {
            let batch = BatchRef::parse(&bytes).map_err(|error| wrong(from, error.to_string()))?;
            if batch.range().after >= from {
                return Err(wrong(from, format!("the log goes on at {}", batch.range())));
            }
            for record in batch.records().filter(|r| r.seq >= from && !r.erased) {
                let value = bytes.slice_ref(record.value);
                owner.replay(record.seq, record.time, record.key, value, &mut erases)?;
            }
            owner.replayed(batch.range().through, batch.count() as usize, bytes.len());
            from = batch.range().through.next();
        }
        if within_budget && owner.is_over_budget() {
            match_erases(owner, table, std::mem::take(&mut erases))?;
            lay_to_rest(owner, table, from.prev())?;
        }
    }
    match_erases(owner, table, erases)?;
    owner.recovered();
    Ok(())
}

/// Brings everybody to rest of whom the log told something up to `through`.
/// The place follows later: whoever reads this part of the log again finds
/// that the rows have applied it.
fn lay_to_rest<W>(owner: &mut Owner<W>, table: &dyn Table, through: Seq) -> Result<(), StoreError> {
    for slot in owner.slots() {
        let Some(user) = owner.user(slot) else { continue };
        let cold = cold::read(table, user, &owner.rules().user_hash(user))?;
        table.commit(&owner.lay_to_rest(slot, cold, through)?)?;
    }
    table.sync()?;
    owner.laid_to_rest(through);
    Ok(())
}

/// Gives each erase to its user.
fn match_erases<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    erases: Erases,
) -> Result<(), StoreError> {
    match owner.match_erases(erases) {
        unmatched if unmatched.is_empty() => Ok(()),
        unmatched => find_erased(owner, table, unmatched),
    }
}

/// Finds the users of erases whom the log does not name: among the rows, or
/// nowhere, in which case the erase is brought to rest under its hash.
fn find_erased<W>(
    owner: &mut Owner<W>,
    table: &dyn Table,
    mut erases: Erases,
) -> Result<(), StoreError> {
    let mut last = Bytes::new();
    let mut bad = None;
    table.walk(TableName::History, &[], &mut |row| {
        if row.partition_key == last {
            return true;
        }
        last = row.partition_key;
        match rows::owner_of(&last) {
            Ok(rows::Owner::Erased(_)) => {}
            Ok(rows::Owner::User(user)) => {
                if let Some((seq, value)) = erases.remove(&owner.rules().user_hash(&user)) {
                    owner.remember_erase(&user, seq, value);
                }
            }
            Err(error) => bad = Some(error),
        }
        bad.is_none() && !erases.is_empty()
    })?;
    if let Some(error) = bad {
        let (file, what) = ("tables/history".into(), error.to_string());
        return Err(StoreError::Damaged { file, offset: 0, what });
    }
    for (hash, (seq, value)) in erases {
        cold::rest_erase(table, owner, hash, seq, &value)?;
    }
    table.sync()
}
