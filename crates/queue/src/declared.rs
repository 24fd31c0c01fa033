//! Derived topics that are declared: their operators are made from a text, and
//! the text is kept.
//!
//! ```text
//! row: version (1) u8, on error u8, source: length u8, name;
//!      count of versions, each: length of the text, text, count of cuts, cuts
//! ```
//!
//! Numbers without a type are varints. Rows lie where [`Queue::keep_declared_in`]
//! says, by the topic's name; else in the tables, under the partition key
//! `queue/derived`. A version that is added has a
//! cut for each partition: the number after the last that was synced when it
//! took effect. While that is found out, nobody reads the topic.

use std::sync::{Arc, RwLockWriteGuard};

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Reader, put_text, put_varint};
use tideline_record::derive::{Stage, Version};
use tideline_record::{Maker, OnError};
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::limits::{
    DERIVED_DEPTH_MAX, DERIVED_TOPICS_MAX, OPERATOR_BYTES_MAX, OPERATOR_VERSIONS_MAX,
    PARTITIONS_MAX, TOPIC_NAME_BYTES_MAX,
};
use tideline_types::{Seq, TopicName};

use crate::queue::{Derived, Topic};
use crate::{CreateError, OpenError, Queue, TopicInfo};

const KEY: &[u8] = b"queue/derived";
const VERSION: u8 = 1;

/// Keeps a row for each derived topic that is declared.
pub trait Rows: Send + Sync + 'static {
    /// Every row, by name. Blocks, as all of these.
    fn all(&self) -> Result<Vec<(String, Bytes)>, StoreError>;

    /// Writes the row of `topic`; durable on return.
    fn put(&self, topic: &TopicName, row: Bytes) -> Result<(), StoreError>;

    /// Removes the row of `topic`, if there is one; durable on return.
    fn remove(&self, topic: &TopicName) -> Result<(), StoreError>;
}

/// Rows in the tables.
pub(crate) struct TableRows(pub(crate) Arc<dyn Table>);

impl TableRows {
    fn write(&self, op: Op) -> Result<(), StoreError> {
        let partition_key = Bytes::from_static(KEY);
        self.0.commit(&[Commit { table: TableName::Meta, partition_key, ops: vec![op] }])?;
        self.0.sync()
    }
}

impl Rows for TableRows {
    fn all(&self) -> Result<Vec<(String, Bytes)>, StoreError> {
        let rows = self.0.scan(TableName::Meta, KEY, b"", None, false, DERIVED_TOPICS_MAX + 1)?;
        let named = |(key, row): (Bytes, Bytes)| (String::from_utf8_lossy(&key).into_owned(), row);
        Ok(rows.into_iter().map(named).collect())
    }

    fn put(&self, topic: &TopicName, row: Bytes) -> Result<(), StoreError> {
        self.write(Op::Put { sort_key: sort_key(topic), value: row })
    }

    fn remove(&self, topic: &TopicName) -> Result<(), StoreError> {
        self.write(Op::Delete { sort_key: sort_key(topic) })
    }
}

/// A derived topic at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) source: TopicName,
    pub(crate) on_error: OnError,
    /// Texts with their cuts; the first has none.
    pub(crate) versions: Vec<(String, Vec<Seq>)>,
}

impl Declared {
    /// The text in force.
    pub(crate) fn text(&self) -> &str {
        self.versions.last().map_or("", |(text, _)| text)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = vec![VERSION, self.on_error as u8];
        put_text(&mut row, self.source.as_str());
        put_varint(&mut row, self.versions.len() as u64);
        for (text, cuts) in &self.versions {
            put_varint(&mut row, text.len() as u64);
            row.extend_from_slice(text.as_bytes());
            put_varint(&mut row, cuts.len() as u64);
            cuts.iter().for_each(|cut| put_varint(&mut row, cut.0));
        }
        row
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self, BadBytes> {
        let mut row = Reader::new(row);
        if row.u8()? != VERSION {
            return Err(BadBytes("a version that this build does not read"));
        }
        let on_error = match row.u8()? {
            0 => OnError::Skip,
            1 => OnError::Halt,
            _ => return Err(BadBytes("what is done on an error")),
        };
        let source = row.text(TOPIC_NAME_BYTES_MAX)?;
        let source = TopicName::new(source).map_err(|_| BadBytes("the source's name"))?;
        let count = row.count(1, OPERATOR_VERSIONS_MAX)?;
        let versions = (0..count).map(|n| {
            let len = row.count(0, OPERATOR_BYTES_MAX)?;
            let text = std::str::from_utf8(row.bytes(len)?).map_err(|_| BadBytes("a text"))?;
            let cuts = row.count(usize::from(n > 0), usize::from(PARTITIONS_MAX))?;
            let cuts = (0..cuts).map(|_| row.varint().map(Seq)).collect::<Result<Vec<_>, _>>()?;
            if n == 0 && !cuts.is_empty() {
                return Err(BadBytes("a cut before the first version"));
            }
            Ok((text.to_owned(), cuts))
        });
        let versions = versions.collect::<Result<Vec<_>, _>>()?;
        if !row.is_empty() {
            return Err(BadBytes("bytes after the end"));
        }
        Ok(Self { source, on_error, versions })
    }

    fn stage(&self, maker: &dyn Maker) -> Result<Stage, String> {
        let versions = self.versions.iter().map(|(text, cuts)| {
            Ok(Version { cuts: cuts.clone(), operator: maker.make(&self.source, text)? })
        });
        let versions = versions.collect::<Result<Vec<_>, String>>()?;
        Ok(Stage { versions, on_error: self.on_error })
    }
}

impl Queue {
    /// Declared topics are kept in `rows` from now on: those in the tables move
    /// there. To be called before [`Queue::set_maker`]. Blocks.
    ///
    /// # Errors
    /// What either says. Nothing is lost: a row leaves the tables when the other
    /// is durable.
    pub fn keep_declared_in(&self, rows: Arc<dyn Rows>) -> Result<(), OpenError> {
        let _changing = self.changing();
        let tables = TableRows(self.inner.table.clone());
        for (name, row) in tables.all()? {
            let name = TopicName::new(&name).map_err(|_| OpenError::Row(name))?;
            rows.put(&name, row)?;
            tables.remove(&name)?;
        }
        *self.inner.rows.write().unwrap_or_else(std::sync::PoisonError::into_inner) = rows;
        Ok(())
    }

    /// From now on operators can be declared; those that were are made again.
    /// Answers what could not be made, and why: such a topic cannot be read.
    pub fn set_maker(&self, maker: Arc<dyn Maker>) -> Result<Vec<(TopicName, String)>, OpenError> {
        let _changing = self.changing();
        let mut failed = Vec::new();
        for (name, row) in self.inner.rows().all()? {
            let bad = || OpenError::Row(name.clone());
            let name = TopicName::new(&name).map_err(|_| bad())?;
            let declared = Declared::decode(&row).map_err(|_| bad())?;
            let stage = declared.stage(&*maker).unwrap_or_else(|why| {
                failed.push((name.clone(), why));
                Stage { versions: Vec::new(), on_error: OnError::Halt }
            });
            self.inner.derived_mut().insert(name, Derived::declared(declared, stage));
        }
        *self.inner.maker.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(maker);
        Ok(failed)
    }

    /// Lets `name` be read as what the operator of `text` makes of `source`; if
    /// it is declared already with another text, from the next number of each
    /// partition on. Durable on return. Blocks.
    pub fn declare(
        &self,
        name: &TopicName,
        source: &TopicName,
        text: &str,
        on_error: OnError,
    ) -> Result<TopicInfo, CreateError> {
        let _changing = self.changing();
        let maker = self.inner.maker();
        let maker = maker.ok_or_else(|| CreateError::Operator("none can be declared".into()))?;
        if text.len() > OPERATOR_BYTES_MAX {
            let why = format!("is over {OPERATOR_BYTES_MAX} bytes");
            return Err(CreateError::Operator(why));
        }
        let root = self.root_of(name, source)?;
        // Nobody reads what is derived until the cut is known and kept.
        let mut derived = self.inner.derived_mut();
        let before = derived.get(name).map(|derived| derived.declared.clone());
        let declared = match before {
            None if derived.len() >= DERIVED_TOPICS_MAX => {
                return Err(CreateError::TooMany { max: DERIVED_TOPICS_MAX });
            }
            None if self.inner.source(name).is_some() => {
                return Err(CreateError::Exists(name.clone()));
            }
            None => {
                let versions = vec![(text.to_owned(), Vec::new())];
                Declared { source: source.clone(), on_error, versions }
            }
            Some(None) => return Err(CreateError::Exists(name.clone())),
            Some(Some(before)) if before.source != *source => {
                return Err(CreateError::Source(source.clone()));
            }
            Some(Some(before)) if before.text() == text => Declared { on_error, ..before },
            Some(Some(mut before)) => {
                if before.versions.len() == OPERATOR_VERSIONS_MAX {
                    return Err(CreateError::TooMany { max: OPERATOR_VERSIONS_MAX });
                }
                before.versions.push((text.to_owned(), self.next_of(&root)));
                Declared { on_error, ..before }
            }
        };
        let stage = declared.stage(&*maker).map_err(CreateError::Operator)?;
        self.put_declared(name, &declared)?;
        Self::replace(&mut derived, name, declared, stage);
        drop(derived);
        self.topic(name).ok_or_else(|| CreateError::Source(source.clone()))
    }

    fn replace(
        derived: &mut RwLockWriteGuard<'_, std::collections::BTreeMap<TopicName, Derived>>,
        name: &TopicName,
        declared: Declared,
        stage: Stage,
    ) {
        let egress = derived.get(name).map(|derived| derived.egress.clone());
        let fresh = Derived::declared(declared, stage);
        let egress = egress.unwrap_or_else(|| fresh.egress.clone());
        derived.insert(name.clone(), Derived { egress, ..fresh });
    }

    /// The topic with a log on which `source` stands, and `name` may.
    fn root_of(&self, name: &TopicName, source: &TopicName) -> Result<Arc<Topic>, CreateError> {
        let derived = self.inner.derived();
        let mut at = source;
        for _ in 1..DERIVED_DEPTH_MAX {
            if at == name {
                break;
            }
            match derived.get(at) {
                Some(derived) => at = &derived.source,
                None => {
                    let root = self.inner.source(at);
                    return root.ok_or_else(|| CreateError::Source(source.clone()));
                }
            }
        }
        Err(CreateError::Source(source.clone()))
    }

    /// The number after the last that is synced, of each partition.
    fn next_of(&self, root: &Topic) -> Vec<Seq> {
        let bounds = |stream| self.inner.journal.bounds(stream).unwrap_or_default();
        root.lanes.iter().map(|lane| bounds(lane.stream).synced.next()).collect()
    }

    fn put_declared(&self, name: &TopicName, declared: &Declared) -> Result<(), StoreError> {
        self.inner.rows().put(name, declared.encode().into())
    }

    /// The row goes, and with it the topic. Durable on return.
    pub(crate) fn remove_declared(&self, name: &TopicName) -> Result<(), StoreError> {
        self.inner.rows().remove(name)?;
        self.inner.derived_mut().remove(name);
        Ok(())
    }
}

fn sort_key(name: &TopicName) -> Bytes {
    Bytes::copy_from_slice(name.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_of_a_row_never_change() {
        let declared = Declared {
            source: TopicName::new("chat").unwrap(),
            on_error: OnError::Halt,
            versions: vec![("a".into(), Vec::new()), ("b".into(), vec![Seq(1), Seq(300)])],
        };
        let golden = [&[1, 1, 4][..], b"chat", &[2, 1], b"a", &[0, 1], b"b", &[2, 1, 0xac, 2]];
        assert_eq!(declared.encode(), golden.concat());
        assert_eq!(Declared::decode(&declared.encode()), Ok(declared));
    }

    proptest! {
        #[test]
        fn a_row_reads_back(
            versions in prop::collection::vec(
                (".{0,20}", prop::collection::vec(any::<u64>(), 1..5)), 1..5),
            halt: bool,
        ) {
            let cuts = |n: usize, cuts: &[u64]| {
                cuts.iter().filter(|_| n > 0).map(|cut| Seq(*cut)).collect()
            };
            let versions = versions.iter().enumerate();
            let declared = Declared {
                source: TopicName::new("chat").unwrap(),
                on_error: if halt { OnError::Halt } else { OnError::Skip },
                versions: versions.map(|(n, (text, c))| (text.clone(), cuts(n, c))).collect(),
            };
            prop_assert_eq!(Declared::decode(&declared.encode()), Ok(declared));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(row in prop::collection::vec(any::<u8>(), 0..100)) {
            crate::fuzz::derived_row(&row);
        }
    }
}
