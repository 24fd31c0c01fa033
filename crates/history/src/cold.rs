//! What a partition keeps at rest, besides a user's own rows: erased users,
//! and erases whose bytes are still in files.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | history | the user | see `rows` | their rows, facts, applied (epoch, seq) |
//! | history | the erased user's hash | facts | the facts row of a user of whom nothing else is left |
//! | meta | `history/erasing` | partition, hash, the erase's seq | version, `taken_ms`; stands until no file holds a byte of theirs |
//!
//! A user's rows and the note of their erase lie under different keys, so no
//! write covers both. The note is written first and carries the erase's seq:
//! rows that have applied less than it are void.

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::{Epoch, Millis, PartitionId, Seq};

use crate::kinds::Kinds;
use crate::outcome::OutcomeRef;
use crate::owner::Owner;
use crate::rows;
use crate::rules::Rules;
use crate::timeline::{Timeline, Touched};

/// What the tables hold of one user.
#[derive(Clone, Debug, Default)]
pub struct ColdUser {
    /// One scan of the user's partition key.
    pub rows: Vec<(Bytes, Bytes)>,
    /// One scan of the partition key under the user's hash: what stays of an
    /// erase, if there ever was one.
    pub erased: Vec<(Bytes, Bytes)>,
}

/// A user as they are to be at rest.
pub(crate) struct Image<'a> {
    pub(crate) user: &'a str,
    pub(crate) timeline: &'a Timeline,
    pub(crate) touched: &'a Touched,
    /// The last erase among what `touched` speaks of.
    pub(crate) erased: Option<Seq>,
    pub(crate) applied: (Epoch, Seq),
}

/// An erase of which some file may still hold bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Erasing {
    /// The user's partition.
    pub partition: PartitionId,
    /// Which user.
    pub hash: [u8; 16],
    /// Records of the user at or below this are to become empty.
    pub through: Seq,
    /// When the erase was taken.
    pub taken_ms: Millis,
}

/// Reads what is at rest of `user`.
pub fn read(table: &dyn Table, user: &str, hash: &[u8; 16]) -> Result<ColdUser, StoreError> {
    let key = rows::partition_key(user);
    let rows = table.scan(TableName::History, &key, &[], None, false, usize::MAX)?;
    let key = rows::erased_key(*hash);
    let erased = table.scan(TableName::History, &key, &[], None, false, usize::MAX)?;
    Ok(ColdUser { rows, erased })
}

/// A user as the tables say.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) timeline: Timeline,
    /// The last outcome that the rows have applied.
    pub(crate) applied: Seq,
    /// Rows that an erase made void and that still stand: the next image has
    /// to delete them, or they would mingle with what it writes.
    pub(crate) void: Touched,
}

/// The user as their rows say.
pub(crate) fn load(cold: &ColdUser, kinds: &Kinds) -> Result<Loaded, StoreError> {
    let damaged = |error: rows::BadRow| StoreError::Damaged {
        file: "tables/history".into(),
        offset: 0,
        what: error.to_string(),
    };
    let own = rows::load(&cold.rows, kinds).map_err(damaged)?;
    let mut void = Touched::default();
    if cold.erased.is_empty() {
        return Ok(Loaded { timeline: own.0, applied: own.1.seq, void });
    }
    let erased = rows::load(&cold.erased, kinds).map_err(damaged)?;
    let newer = if own.1.seq > erased.1.seq {
        own
    } else {
        void = rows::touched(&cold.rows, kinds).map_err(damaged)?;
        erased
    };
    Ok(Loaded { timeline: newer.0, applied: newer.1.seq, void })
}

/// The writes that bring `image` to rest, in order.
pub(crate) fn commits(
    image: &Image<'_>,
    partition: PartitionId,
    rules: &Rules,
    now: Millis,
) -> Vec<Commit> {
    let (epoch, seq) = image.applied;
    let applied = rows::Applied { epoch, seq };
    let mut ops = rows::plan(image.timeline, image.touched, applied, &rules.kinds, now);
    let mut commits = Vec::with_capacity(1);
    if let Some(erase) = image.erased {
        let hash = rules.user_hash(image.user);
        commits.push(note_erasing(&Erasing { partition, hash, through: erase, taken_ms: now }));
        if image.timeline.is_erased_only() {
            let (puts, mut deletes): (Vec<Op>, Vec<Op>) =
                ops.into_iter().partition(|op| matches!(op, Op::Put { .. }));
            deletes.extend(puts.iter().map(|op| match op {
                Op::Put { sort_key, .. } | Op::Delete { sort_key } => {
                    Op::Delete { sort_key: sort_key.clone() }
                }
            }));
            let partition_key = rows::erased_key(hash).into();
            commits.push(Commit { table: TableName::History, partition_key, ops: puts });
            ops = deletes;
        }
    }
    let partition_key: Bytes = rows::partition_key(image.user).into();
    if broken!(AppliedApart)
        && let Some(facts) = ops.pop()
    {
        let (table, partition_key) = (TableName::History, partition_key.clone());
        commits.push(Commit { table, partition_key, ops: vec![facts] });
    }
    commits.push(Commit { table: TableName::History, partition_key, ops });
    commits
}

/// Brings an erase of a user of whom nothing else is known to rest.
pub(crate) fn rest_erase<W>(
    table: &dyn Table,
    owner: &Owner<W>,
    hash: [u8; 16],
    seq: Seq,
    outcome: &[u8],
) -> Result<(), StoreError> {
    let bad = |what: String| StoreError::Damaged { file: "history".into(), offset: seq.0, what };
    let (rules, partition) = (owner.rules(), owner.stream().partition);
    let key = rows::erased_key(hash);
    let erased = table.scan(TableName::History, &key, &[], None, false, usize::MAX)?;
    let outcome = OutcomeRef::decode(outcome).map_err(|error| bad(error.to_string()))?;
    let taken_ms = outcome.taken_ms();
    // Noted again even where the rest is there: nothing says that the note,
    // under a key of its own, came through the same crash.
    let note = note_erasing(&Erasing { partition, hash, through: seq, taken_ms });
    let Loaded { mut timeline, applied, .. } =
        load(&ColdUser { rows: Vec::new(), erased }, &rules.kinds)?;
    if seq <= applied {
        return table.commit(&[note]);
    }
    let mut touched = Touched::default();
    let done = timeline.apply(&outcome, &rules.kinds, &mut touched);
    done.map_err(|error| bad(error.to_string()))?;
    let applied = rows::Applied { epoch: owner.epoch(), seq };
    let ops = rows::plan(&timeline, &touched, applied, &rules.kinds, taken_ms);
    let rest = Commit { table: TableName::History, partition_key: key.into(), ops };
    table.commit(&[note, rest])
}

/// Erases whose bytes may still be in files, by partition, hash and number.
/// One scan of all partitions.
pub fn erasing(table: &dyn Table) -> Result<Vec<Erasing>, StoreError> {
    let rows = table.scan(TableName::Meta, ERASING_KEY, &[], None, false, usize::MAX)?;
    let read = rows.iter().map(|(key, value)| {
        decode_erasing(key, value).ok_or_else(|| StoreError::Damaged {
            file: "tables/meta".into(),
            offset: 0,
            what: "note of an erase".into(),
        })
    });
    read.collect()
}

/// The write that notes an erase. Each has a note of its own: a user who is
/// erased again while files are being emptied is not forgotten with the first.
fn note_erasing(erasing: &Erasing) -> Commit {
    let value = [&[ERASING_VERSION], erasing.taken_ms.0.to_be_bytes().as_slice()].concat();
    let op = Op::Put { sort_key: erasing_sort_key(erasing), value: value.into() };
    Commit { table: TableName::Meta, partition_key: ERASING_KEY.into(), ops: vec![op] }
}

/// The write that forgets notes of erases that are done.
pub(crate) fn forget_erasing(done: &[Erasing]) -> Commit {
    let ops = done.iter().map(|e| Op::Delete { sort_key: erasing_sort_key(e) });
    Commit { table: TableName::Meta, partition_key: ERASING_KEY.into(), ops: ops.collect() }
}

fn erasing_sort_key(erasing: &Erasing) -> Bytes {
    let (partition, seq) = (erasing.partition.0.to_be_bytes(), erasing.through.0.to_be_bytes());
    [partition.as_slice(), &erasing.hash, &seq].concat().into()
}

fn decode_erasing(key: &[u8], value: &[u8]) -> Option<Erasing> {
    let (partition, rest) = key.split_first_chunk()?;
    let (hash, seq) = rest.split_first_chunk()?;
    let taken = value.strip_prefix(&[ERASING_VERSION])?;
    Some(Erasing {
        partition: PartitionId(u16::from_be_bytes(*partition)),
        hash: *hash,
        through: Seq(u64::from_be_bytes(seq.try_into().ok()?)),
        taken_ms: Millis(i64::from_be_bytes(taken.try_into().ok()?)),
    })
}

const ERASING_KEY: &[u8] = b"history/erasing";
const ERASING_VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erase_is_noted_by_its_number_so_that_a_later_one_outlives_the_first() {
        let table = tideline_store::mem::MemTable::new();
        let erase = |seq| Erasing {
            partition: PartitionId(258),
            hash: [7; 16],
            through: Seq(seq),
            taken_ms: Millis(9),
        };
        table.commit(&[note_erasing(&erase(3)), note_erasing(&erase(5))]).unwrap();
        assert_eq!(erasing(&table).unwrap(), [erase(3), erase(5)]);
        table.commit(&[forget_erasing(&[erase(3)])]).unwrap();
        assert_eq!(erasing(&table).unwrap(), [erase(5)]);
        let Op::Put { sort_key, value } = &note_erasing(&erase(3)).ops[0] else { panic!() };
        let golden = [&[1, 2][..], &[7; 16], &[0, 0, 0, 0, 0, 0, 0, 3]].concat();
        assert_eq!(
            (sort_key.as_ref(), value.as_ref()),
            (&golden[..], &[1, 0, 0, 0, 0, 0, 0, 0, 9][..])
        );
        assert_eq!(decode_erasing(&golden[1..], value), None);
        assert_eq!(decode_erasing(&golden, &value[1..]), None);
    }
}
