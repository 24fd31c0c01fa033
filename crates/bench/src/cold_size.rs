//! How many bytes does a mark take at rest?
//!
//! Users are written as the flusher writes them, 25 hours after their marks
//! were taken (no retry is remembered any more), then the table is compacted.

use std::path::Path;

use bytes::Bytes;
use tideline_history::rows::{Applied, partition_key, plan};
use tideline_history::timeline::{Timeline, Touched};
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_store::{Commit, Op, Table as _, TableName};
use tideline_types::{Epoch, HOUR_MS, Millis, Seq};

use crate::BenchError;
use crate::data::{DataSet, Fields};
use crate::in_process::{Found, Writer, rules};
use crate::ours::bytes_below;

/// Users written at a time.
const USERS_A_COMMIT: u32 = 512;

/// Writes all users of `data` to a table in `dir` and weighs it.
pub(crate) fn cold(data: &DataSet, dir: &Path) -> Result<Found, BenchError> {
    let rules = rules();
    let taken = Millis(data.options().now_ms as i64);
    let flushed = taken.plus(25 * HOUR_MS);
    let dir = dir.join("table");
    let table = LsmTable::open(&dir, &LsmOptions::default())?;
    let (mut writer, mut fields, mut keys) = (Writer::new(&rules), Fields::default(), Vec::new());
    let mut found = Found::default();
    let users = data.options().users;
    for first in (0..users).step_by(USERS_A_COMMIT as usize) {
        let mut commits = Vec::new();
        for rank in first..(first + USERS_A_COMMIT).min(users) {
            let (mut user, mut touched) = (Timeline::new(), Touched::default());
            keys.clear();
            data.keys_of(rank, &mut keys);
            for &key in &keys {
                data.fields(&data.spec(key), &mut fields);
                found.marks += u64::from(writer.write(&mut user, &fields, taken, &mut touched));
            }
            let applied = Applied { epoch: Epoch(1), seq: Seq(found.marks) };
            let ops = plan(&user, &touched, applied, &rules.kinds, flushed);
            found.values += ops.iter().map(value_bytes).sum::<u64>();
            let partition_key = Bytes::from(partition_key(&fields.user));
            commits.push(Commit { table: TableName::History, partition_key, ops });
        }
        table.commit(&commits)?;
    }
    table.sync()?;
    table.purge(TableName::History)?;
    drop(table);
    found.disk = bytes_below(&dir);
    Ok(found)
}

fn value_bytes(op: &Op) -> u64 {
    match op {
        Op::Put { value, .. } => value.len() as u64,
        Op::Delete { .. } => 0,
    }
}
