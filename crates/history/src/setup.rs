//! What a data folder remembers of its history from its first start on: the
//! names of every kind it ever declared, and the key of its hashes.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `history/kinds` | a kind's name | version |
//! | meta | `history/key` | empty | version, 16 random bytes |

use std::sync::Arc;

use bytes::Bytes;
use jiff::tz::TimeZone;
use tideline_store::{Commit, Op, StoreError, Table, TableName};

use crate::kinds::{Kind, Kinds};
use crate::rules::Rules;

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
    Ok(Rules { kinds: Arc::new(Kinds::new(kinds)), zone, key: key(table)? })
}

/// The folder's key, made if there is none.
fn key(table: &dyn Table) -> Result<[u8; 16], StoreError> {
    if let Some(value) = table.get(TableName::Meta, KEY, &[])? {
        let bytes = value.strip_prefix(&[VERSION]).and_then(|key| key.try_into().ok());
        return bytes.ok_or_else(|| damaged("the key of hashes"));
    }
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| StoreError::Io {
        what: "make the key of hashes".into(),
        cause: error.to_string(),
    })?;
    let value = [&[VERSION], key.as_slice()].concat().into();
    let ops = vec![Op::Put { sort_key: Bytes::new(), value }];
    table.commit(&[Commit { table: TableName::Meta, partition_key: KEY.into(), ops }])?;
    table.sync()?;
    Ok(key)
}

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged { file: "tables/meta".into(), offset: 0, what: what.into() }
}

const KINDS: &[u8] = b"history/kinds";
const KEY: &[u8] = b"history/key";
const VERSION: u8 = 1;
