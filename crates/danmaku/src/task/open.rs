//! What a start finds or makes: the topics, and the key of hashes.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `danmaku/key` | empty | version, 16 random bytes |

use std::sync::Arc;

use bytes::Bytes;
use tideline_queue::{Queue, TopicSpec};
use tideline_store::batch::Record;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::TopicName;

use super::log_error;
use crate::options::Keys;
use crate::outcome::{self, Outcome};

/// The name of the topic that holds the outcomes.
pub const TOPIC: &str = "danmaku";
/// The name of the topic of moderation, derived from it.
pub const AUDIT: &str = "danmaku-audit";
/// The name of the topic of counts, derived from it.
pub const STATS: &str = "danmaku-stats";

pub(super) fn topic() -> TopicName {
    TopicName::new(TOPIC).expect("the name is within its alphabet")
}

/// The topic of outcomes, and those derived from it; answers the number of
/// partitions.
pub(super) fn ensure_topics(
    queue: &Queue,
    topic: &TopicName,
    partitions: u16,
) -> Result<u16, StoreError> {
    let spec = TopicSpec {
        partitions: Some(partitions),
        read_only: true,
        durable_view: true,
        ..TopicSpec::new(topic.clone())
    };
    let info = queue.ensure_topic(spec).map_err(|error| log_error(&error))?;
    let derive = |name: &str, tell: fn(&str, &Outcome) -> Option<String>| {
        let name = TopicName::new(name).expect("the name is within its alphabet");
        let filter = Arc::new(move |record: &Record<'_>| {
            let video = std::str::from_utf8(record.key).ok()?;
            let said = tell(video, &Outcome::decode(record.value).ok()?)?;
            Some((record.key.to_vec(), said.into_bytes()))
        });
        queue.register_derived(name, topic.clone(), filter).map_err(|error| log_error(&error))
    };
    derive(AUDIT, outcome::audit)?;
    derive(STATS, outcome::stats)?;
    Ok(info.partitions)
}

/// The folder's key, made if there is none. Durable on return.
pub(super) fn keys(table: &dyn Table) -> Result<Keys, StoreError> {
    if let Some(value) = table.get(TableName::Meta, KEY, &[])? {
        let bytes = value.strip_prefix(&[VERSION]).and_then(|key| key.try_into().ok());
        let damaged = || StoreError::Damaged {
            file: "tables/meta".into(),
            offset: 0,
            what: "the key of danmaku".into(),
        };
        return bytes.map(Keys).ok_or_else(damaged);
    }
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| StoreError::Io {
        what: "make the key of danmaku".into(),
        cause: error.to_string(),
    })?;
    let value = [&[VERSION], key.as_slice()].concat().into();
    let ops = vec![Op::Put { sort_key: Bytes::new(), value }];
    table.commit(&[Commit { table: TableName::Meta, partition_key: KEY.into(), ops }])?;
    table.sync()?;
    Ok(Keys(key))
}

const KEY: &[u8] = b"danmaku/key";
const VERSION: u8 = 1;
