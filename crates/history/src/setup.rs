//! What a data folder remembers of its history from its first start on: the
//! names of every kind it ever declared, and the key of its hashes, which
//! [`view::folder_key`] keeps.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `history/kinds` | a kind's name | version |

use std::sync::Arc;

use bytes::Bytes;
use jiff::tz::TimeZone;
use tideline_queue::view;
use tideline_store::{Commit, Op, StoreError, Table, TableName};

use crate::kinds::{Kind, Kinds};
use crate::rules::Rules;
use crate::task::TOPIC;

/// The rules for this start: the `declared` kinds, those that only the folder
/// remembers (readable, not writable), and the folder's key, which is made at
/// the first start. Durable on return. Blocks.
///
/// `declared` and what is remembered together must be at most
/// [`tideline_types::limits::KINDS_MAX`].
pub fn prepare(
    table: &dyn Table,
    declared: Vec<Kind>,
    zone: TimeZone,
) -> Result<Rules, StoreError> {
    let remembered = table.scan(TableName::Meta, KINDS, &[], None, false, usize::MAX)?;
    let mut kinds = declared;
    let mut ops = Vec::new();
    for kind in &kinds {
        if !remembered.iter().any(|(name, _)| name.as_ref() == kind.name.as_bytes()) {
            let sort_key = Bytes::copy_from_slice(kind.name.as_bytes());
            ops.push(Op::Put { sort_key, value: Bytes::from_static(&[VERSION]) });
        }
    }
    for (name, _) in &remembered {
        let name = std::str::from_utf8(name).map_err(|_| damaged("the name of a kind"))?;
        if !kinds.iter().any(|kind| &*kind.name == name) {
            kinds.push(Kind {
                name: name.into(),
                declared: false,
                retention_days: 0,
                max_records: 0,
                max_per_day: 0,
                daily_first: false,
            });
        }
    }
    if !ops.is_empty() {
        table.commit(&[Commit { table: TableName::Meta, partition_key: KINDS.into(), ops }])?;
        table.sync()?;
    }
    Ok(Rules { kinds: Arc::new(Kinds::new(kinds)), zone, key: view::folder_key(table, TOPIC)? })
}

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged { file: "tables/meta".into(), offset: 0, what: what.into() }
}

const KINDS: &[u8] = b"history/kinds";
const VERSION: u8 = 1;
