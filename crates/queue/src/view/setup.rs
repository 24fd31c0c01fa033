//! What the start of a view finds or makes: its topics, and its key.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | the view's name, `/key` | empty | version, 16 random bytes |

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::TopicName;

use super::log_error;
use crate::{Filter, Queue, TopicSpec};

/// The topic of a view's outcomes, made with `partitions` partitions if there
/// is none, and those `derived` from it. Answers how many partitions it has.
/// Blocks.
pub fn ensure_topic(
    queue: &Queue,
    view: &str,
    partitions: u16,
    derived: impl IntoIterator<Item = (&'static str, Filter)>,
) -> Result<u16, StoreError> {
    let topic = name(view);
    let spec = TopicSpec {
        partitions: Some(partitions),
        read_only: true,
        durable_view: true,
        ..TopicSpec::new(topic.clone())
    };
    let info = queue.ensure_topic(spec).map_err(|error| log_error(view, &error))?;
    for (derived, filter) in derived {
        let registered = queue.register_derived(name(derived), topic.clone(), filter);
        registered.map_err(|error| log_error(view, &error))?;
    }
    Ok(info.partitions)
}

pub(super) fn name(topic: &str) -> TopicName {
    TopicName::new(topic).expect("names of built-in topics are within their alphabet")
}

/// The key of a view's hashes in this data folder, made if there is none.
/// Durable on return. Blocks.
///
/// # Errors
/// `Damaged` if there is one that does not read.
pub fn folder_key(table: &dyn Table, view: &str) -> Result<[u8; 16], StoreError> {
    let partition_key = format!("{view}/key").into_bytes();
    if let Some(value) = table.get(TableName::Meta, &partition_key, &[])? {
        let key = value.strip_prefix(&[VERSION]).and_then(|key| key.try_into().ok());
        return key.ok_or_else(|| StoreError::Damaged {
            file: "tables/meta".into(),
            offset: 0,
            what: format!("the key of {view}"),
        });
    }
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| StoreError::Io {
        what: format!("make the key of {view}"),
        cause: error.to_string(),
    })?;
    let value = [&[VERSION], key.as_slice()].concat().into();
    let ops = vec![Op::Put { sort_key: Bytes::new(), value }];
    let partition_key = partition_key.into();
    table.commit(&[Commit { table: TableName::Meta, partition_key, ops }])?;
    table.sync()?;
    Ok(key)
}

const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use tideline_store::mem::MemTable;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_a_strange_one_is_refused() {
        let table = MemTable::new();
        let key = folder_key(&table, "marks").unwrap();
        assert_eq!(folder_key(&table, "marks").unwrap(), key);
        assert_ne!(folder_key(&table, "other").unwrap(), key);
        let stored = table.get(TableName::Meta, b"marks/key", &[]).unwrap().unwrap();
        assert_eq!(stored[..], [&[1], key.as_slice()].concat());
        let ops = vec![Op::Put { sort_key: Bytes::new(), value: stored.slice(1..) }];
        let partition_key = "marks/key".into();
        table.commit(&[Commit { table: TableName::Meta, partition_key, ops }]).unwrap();
        assert!(matches!(folder_key(&table, "marks"), Err(StoreError::Damaged { .. })));
    }
}
