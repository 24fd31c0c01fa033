//! How an owner comes to know what its partition holds: the log above the
//! place, and the erases in it that name nobody.

use bytes::Bytes;
use tideline_queue::view::{self, Read};
use tideline_store::{StoreError, Table, TableName};
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
    let mut erases = Erases::new();
    let (stream, synced) = (owner.stream(), owner.synced_through());
    view::replay(TOPIC, stream, synced, table, read, |batch| {
        for (seq, time, key, value) in batch.records() {
            owner.replay(seq, time, key, value, &mut erases)?;
        }
        owner.replayed(batch.through(), batch.len(), batch.bytes());
        if within_budget && owner.is_over_budget() {
            match_erases(owner, table, std::mem::take(&mut erases))?;
            lay_to_rest(owner, table, batch.through())?;
        }
        Ok(())
    })?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::tz::TimeZone;
    use tideline_record::batch::Header;
    use tideline_store::Place;
    use tideline_store::mem::MemTable;
    use tideline_types::{Epoch, Millis, StreamId};

    use super::*;
    use crate::cold::ColdUser;
    use crate::kinds::Kind;
    use crate::owner::{Effect, Op, Options};
    use crate::rules::Rules;

    fn owner(epoch: u32, synced: Seq, lag_bytes_max: usize, table: &MemTable) -> Owner<()> {
        let kind = Kind {
            name: "video".into(),
            declared: true,
            retention_days: 90,
            max_records: 10,
            max_per_day: 0,
            daily_first: false,
        };
        let rules = Arc::new(crate::setup::prepare(table, vec![kind], TimeZone::UTC).unwrap());
        let options = Options {
            hot_bytes_max: 1 << 20,
            lag_bytes_max,
            flush_after_ms: 0,
            flights_max: 8,
            parked_max: 8,
            fast_window_ms: 0,
            pack_bytes_max: 1 << 20,
        };
        let stream = StreamId::default();
        Owner::new(stream, Epoch(epoch), synced, Place::default(), rules, options)
    }

    fn cold(rules: &Rules, table: &MemTable) -> ColdUser {
        cold::read(table, "u", &rules.user_hash("u")).unwrap()
    }

    #[test]
    fn rows_that_are_ahead_of_a_replay_stay_ahead_when_they_are_laid_to_rest() {
        let table = MemTable::new();
        let mut first = owner(1, Seq(0), 1 << 20, &table);
        recover(&mut first, &table, &mut |_| unreachable!("nothing is logged")).unwrap();
        let (mut log, now) = (Vec::new(), Millis(1_796_000_000_000));
        for op in [Some(Op::Switch(false)), Some(Op::Erase), Some(Op::Switch(false)), None] {
            let mut effects = Vec::new();
            match op {
                Some(op) => first.ask(now, "u", op, (), &mut effects),
                None => first.tick(now, 1, &mut effects),
            }
            while !effects.is_empty() {
                for effect in std::mem::take(&mut effects) {
                    match effect {
                        Effect::Load { slot, generation, .. } => {
                            let rows = Ok(cold(first.rules(), &table));
                            first.loaded(now, slot, generation, rows, &mut effects);
                        }
                        Effect::Append(batch) => {
                            log.push(batch.finish());
                            let through = Header::read(log.last().unwrap()).unwrap().last();
                            first.synced(through, &mut effects);
                        }
                        Effect::Flush(flush) => {
                            table.commit(&flush.commits).unwrap();
                            first.flushed(flush.slot, flush.generation, Ok(()));
                        }
                        Effect::Answer(..) => {}
                    }
                }
            }
        }
        let applied =
            |rules: &Rules| cold::load(&cold(rules, &table), &rules.kinds).unwrap().applied;
        assert_eq!((log.len(), applied(first.rules())), (3, Seq(3)));

        // Cut off where the log has been read up to the erase.
        let mut second = owner(2, Seq(3), 0, &table);
        let mut read = |from: Seq| match from {
            Seq(3) => Err(StoreError::Failed { what: "read".into(), cause: "told to".into() }),
            Seq(from) => Ok(vec![log[from as usize - 1].clone()]),
        };
        assert!(start(&mut second, &table, &mut read).is_err());
        assert_eq!(applied(second.rules()), Seq(3));
    }
}
