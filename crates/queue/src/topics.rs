//! Making and deleting topics, so that a stop between any two steps is made
//! good by the next start.
//!
//! ```text
//! create: row "creating" │ streams │ row "active"
//! delete: row "deleting" │ streams gone │ no row
//! ```
//!
//! Each bar is a sync. All rows are under one partition key, so that a row and
//! the greatest incarnation change together.

use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::limits::{PARTITIONS_MAX, TOPICS_MAX};
use tideline_types::{Incarnation, TopicName};

use crate::filter::Filter;
use crate::queue::{Derived, Lane, Topic};
use crate::topic::{Config, State};
use crate::{CreateError, DeleteError, OpenError, Queue, TopicInfo, TopicSpec};

const TOPICS: &[u8] = b"queue/topics";
/// Sorts before every name.
const GREATEST: &[u8] = b"\0incarnation";

/// The source topics that `table` says are there, with which life and how many
/// partitions, by name; for checks of a folder that no queue has open.
pub fn topics_at_rest(table: &dyn Table) -> Result<Vec<(TopicName, Incarnation, u16)>, OpenError> {
    let rows = table.scan(TableName::Meta, TOPICS, b"", None, false, 2 * TOPICS_MAX + 1)?;
    let mut topics = Vec::new();
    for (key, row) in rows.iter().filter(|(key, _)| &key[..] != GREATEST) {
        let bad = || OpenError::Row(String::from_utf8_lossy(key).into_owned());
        let name = std::str::from_utf8(key).ok().and_then(|n| TopicName::new(n).ok());
        let config = Config::decode(row).ok_or_else(bad)?;
        if config.state == State::Active {
            topics.push((name.ok_or_else(bad)?, config.incarnation, config.partitions));
        }
    }
    Ok(topics)
}

impl Queue {
    /// Makes a topic; durable on return. Blocks.
    pub fn create_topic(&self, spec: TopicSpec) -> Result<TopicInfo, CreateError> {
        let mut greatest = self.changing();
        if self.topic(&spec.name).is_some() || self.inner.derived().contains_key(&spec.name) {
            return Err(CreateError::Exists(spec.name));
        }
        if self.inner.topics().len() >= TOPICS_MAX {
            return Err(CreateError::TooMany { max: TOPICS_MAX });
        }
        let partitions = spec.partitions.unwrap_or(self.inner.options.partitions_default);
        if partitions == 0 || partitions > PARTITIONS_MAX {
            return Err(CreateError::Partitions { given: partitions, max: PARTITIONS_MAX });
        }
        let mut config = Config {
            state: State::Creating,
            incarnation: Incarnation(*greatest + 1),
            partitions,
            retention: spec.retention.unwrap_or(self.inner.options.retention_default),
            read_only: spec.read_only,
            durable_view: spec.durable_view,
        };
        let number = Op::Put {
            sort_key: Bytes::from_static(GREATEST),
            value: Bytes::copy_from_slice(&config.incarnation.0.to_le_bytes()),
        };
        *greatest += 1;
        self.write(vec![number, put(&spec.name, &config)])?;
        self.inner.journal.create(&config.streams())?;
        config.state = State::Active;
        self.write(vec![put(&spec.name, &config)])?;
        self.activate(spec.name.clone(), config);
        self.topic(&spec.name).ok_or(CreateError::Exists(spec.name))
    }

    /// The topic as it is, or made as `spec` says. Blocks.
    pub fn ensure_topic(&self, spec: TopicSpec) -> Result<TopicInfo, CreateError> {
        let name = spec.name.clone();
        match self.create_topic(spec) {
            Err(CreateError::Exists(_)) => self.topic(&name).ok_or(CreateError::Exists(name)),
            made => made,
        }
    }

    /// Deletes a topic and frees its bytes; durable on return. Blocks.
    pub fn delete_topic(&self, name: &TopicName) -> Result<(), DeleteError> {
        let _changing = self.changing();
        let declared = self.inner.derived().get(name).map(|derived| derived.declared.is_some());
        match declared {
            Some(true) => {
                self.nothing_stands_on(name)?;
                return Ok(self.remove_declared(name)?);
            }
            Some(false) => return Err(DeleteError::ReadOnly(name.clone())),
            None => {}
        }
        let topic = self.inner.source(name).ok_or_else(|| DeleteError::NoTopic(name.clone()))?;
        if topic.config.read_only {
            return Err(DeleteError::ReadOnly(name.clone()));
        }
        self.nothing_stands_on(name)?;
        let config = Config { state: State::Deleting, ..topic.config.clone() };
        self.write(vec![put(name, &config)])?;
        self.inner.topics_mut().remove(name);
        let removed = self.finish_delete(name, &config);
        for lane in &topic.lanes {
            lane.synced.send_modify(|_| ());
            *lane.shared() = None;
        }
        Ok(removed?)
    }

    fn nothing_stands_on(&self, name: &TopicName) -> Result<(), DeleteError> {
        let derived = self.inner.derived();
        match derived.iter().find(|(_, derived)| derived.source == *name) {
            Some((other, _)) => Err(DeleteError::Source(name.clone(), other.clone())),
            None => Ok(()),
        }
    }

    /// Lets `name` be read as `filter` over `source`, with the same numbers.
    /// Lasts as long as this queue: register again after each start.
    pub fn register_derived(
        &self,
        name: TopicName,
        source: TopicName,
        filter: Filter,
    ) -> Result<(), CreateError> {
        let _changing = self.changing();
        if self.inner.source(&source).is_none() {
            return Err(CreateError::Source(source));
        }
        if self.inner.source(&name).is_some() {
            return Err(CreateError::Exists(name));
        }
        self.inner.derived_mut().insert(name, Derived::built(source, filter));
        Ok(())
    }

    /// Reads the rows, finishes what was begun.
    pub(crate) fn load(&self) -> Result<(), OpenError> {
        let rows =
            self.inner.table.scan(TableName::Meta, TOPICS, b"", None, false, 2 * TOPICS_MAX + 1)?;
        let streams = self.inner.journal.streams();
        let mut greatest = streams.iter().map(|s| s.incarnation.0).max().unwrap_or(0);
        for (key, row) in rows {
            let bad = || OpenError::Row(String::from_utf8_lossy(&key).into_owned());
            if &key[..] == GREATEST {
                let number: [u8; 8] = row[..].try_into().map_err(|_| bad())?;
                greatest = greatest.max(u64::from_le_bytes(number));
                continue;
            }
            let name = std::str::from_utf8(&key).ok().and_then(|n| TopicName::new(n).ok());
            let name = name.ok_or_else(bad)?;
            let mut config = Config::decode(&row).ok_or_else(bad)?;
            greatest = greatest.max(config.incarnation.0);
            match config.state {
                State::Deleting => {
                    self.finish_delete(&name, &config)?;
                    continue;
                }
                State::Creating => {
                    self.inner.journal.create(&config.streams())?;
                    config.state = State::Active;
                    self.write(vec![put(&name, &config)])?;
                }
                State::Active => {
                    let held = |s| streams.binary_search(s).is_ok();
                    if !config.streams().iter().all(held) {
                        return Err(OpenError::Missing(name));
                    }
                }
            }
            self.activate(name, config);
        }
        *self.changing() = greatest;
        Ok(())
    }

    fn activate(&self, name: TopicName, config: Config) {
        let lane = |stream| {
            let synced = self.inner.journal.bounds(stream).unwrap_or_default().synced;
            Lane::new(stream, synced, config.durable_view)
        };
        let lanes = config.streams().into_iter().map(lane).collect();
        let topic = Arc::new(Topic { name: name.clone(), config, lanes, egress: Arc::default() });
        self.inner.topics_mut().insert(name, topic);
    }

    fn finish_delete(&self, name: &TopicName, config: &Config) -> Result<(), StoreError> {
        self.inner.journal.remove(&config.streams())?;
        self.inner.forget_producers(&config.streams())?;
        self.write(vec![Op::Delete { sort_key: key(name) }])
    }

    fn write(&self, ops: Vec<Op>) -> Result<(), StoreError> {
        let partition_key = Bytes::from_static(TOPICS);
        self.inner.table.commit(&[Commit { table: TableName::Meta, partition_key, ops }])?;
        self.inner.table.sync()
    }

    pub(crate) fn changing(&self) -> MutexGuard<'_, u64> {
        self.inner.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(name: &TopicName) -> Bytes {
    Bytes::copy_from_slice(name.as_str().as_bytes())
}

fn put(name: &TopicName, config: &Config) -> Op {
    Op::Put { sort_key: key(name), value: config.encode().into() }
}
