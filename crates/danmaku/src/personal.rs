//! What is a user's alone: their filters, and the scores that a model gave the
//! comments of a segment for them.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | danmaku | `u` + user | `x` | the user's filters, as JSON |
//! | danmaku | `u` + user | `f` + video + ff + segment | scores, as they came |
//!
//! Written whole and not through the log: the last write stands, and what is
//! answered is durable. Scores are bytes that nobody here reads.

use std::collections::BTreeMap;

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};

use crate::rows;
use crate::scores::Scores;

const FILTERS: &[u8] = b"x";
const SCORES: u8 = b'f';

/// The user's filters, as JSON.
pub(crate) fn filters(table: &dyn Table, user: u64) -> Result<Option<Bytes>, StoreError> {
    table.get(TableName::Danmaku, &rows::user_key(user), FILTERS)
}

/// The scores of a segment, from 1.
pub(crate) fn scores(
    table: &dyn Table,
    user: u64,
    video: &str,
    segment: u32,
) -> Result<Option<Bytes>, StoreError> {
    table.get(TableName::Danmaku, &rows::user_key(user), &scores_key(video, segment))
}

/// Sets the user's filters. Durable on return.
pub(crate) fn set_filters(table: &dyn Table, user: u64, json: String) -> Result<(), StoreError> {
    write(table, user, vec![Op::Put { sort_key: Bytes::from_static(FILTERS), value: json.into() }])
}

/// Sets scores of segments. Durable on return.
pub(crate) fn set_scores(
    table: &dyn Table,
    user: u64,
    scores: Vec<(String, u32, Bytes)>,
) -> Result<(), StoreError> {
    let put = |(video, segment, value): (String, u32, Bytes)| Op::Put {
        sort_key: scores_key(&video, segment),
        value,
    };
    write(table, user, scores.into_iter().map(put).collect())
}

/// Sets scores of many users, each as a keyed hash; of two for one segment the
/// later stands. Durable on return.
pub(crate) fn put_scores(table: &dyn Table, scores: Vec<(u64, Scores)>) -> Result<(), StoreError> {
    if scores.is_empty() {
        return Ok(());
    }
    let mut users: BTreeMap<u64, Vec<Op>> = BTreeMap::new();
    for (user, Scores { video, segment, flags, .. }) in scores {
        let op = Op::Put { sort_key: scores_key(&video, segment), value: flags };
        users.entry(user).or_default().push(op);
    }
    let commit = |(user, ops)| {
        let partition_key = rows::user_key(user).into();
        Commit { table: TableName::Danmaku, partition_key, ops }
    };
    table.commit(&users.into_iter().map(commit).collect::<Vec<_>>())?;
    table.sync()
}

/// Removes all that is the user's alone. Durable on return.
pub(crate) fn erase(table: &dyn Table, user: u64) -> Result<(), StoreError> {
    let mut found = Vec::new();
    for kind in [FILTERS, &[SCORES]] {
        let to = [kind[0] + 1];
        let rows = table.scan(
            TableName::Danmaku,
            &rows::user_key(user),
            kind,
            Some(&to),
            false,
            usize::MAX,
        )?;
        found.extend(rows.into_iter().map(|(sort_key, _)| Op::Delete { sort_key }));
    }
    if found.is_empty() { Ok(()) } else { write(table, user, found) }
}

fn write(table: &dyn Table, user: u64, ops: Vec<Op>) -> Result<(), StoreError> {
    let partition_key = rows::user_key(user).into();
    table.commit(&[Commit { table: TableName::Danmaku, partition_key, ops }])?;
    table.sync()
}

fn scores_key(video: &str, segment: u32) -> Bytes {
    [&[SCORES], video.as_bytes(), &[0xff], &segment.to_be_bytes()].concat().into()
}

#[cfg(test)]
mod tests {
    use tideline_store::mem::MemTable;

    use super::*;

    #[test]
    fn scores_come_back_byte_for_byte_and_go_with_their_user() {
        let table = MemTable::new();
        let blob = Bytes::from_static(b"\0\xffnot json");
        let scores = vec![("v".into(), 1, blob.clone()), ("v1".into(), 1, Bytes::new())];
        set_scores(&table, 7, scores).unwrap();
        set_filters(&table, 7, "[]".into()).unwrap();
        table.commit(&[rows::note_user(7, "v", true)]).unwrap();
        assert_eq!(super::scores(&table, 7, "v", 1).unwrap(), Some(blob));
        assert_eq!(super::scores(&table, 7, "v", 2).unwrap(), None);
        assert_eq!(super::scores(&table, 8, "v", 1).unwrap(), None);
        assert_eq!(filters(&table, 7).unwrap().as_deref(), Some(&b"[]"[..]));
        erase(&table, 7).unwrap();
        assert_eq!(super::scores(&table, 7, "v", 1).unwrap(), None);
        assert_eq!(filters(&table, 7).unwrap(), None);
        let left = table.scan(TableName::Danmaku, &rows::user_key(7), &[], None, false, 9).unwrap();
        assert_eq!(rows::wrote_on(&left[0].0), Some("v"), "the note of the video stays");
    }
}
