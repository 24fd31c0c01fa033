//! As much of a table as topics need.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;
use tideline_store::{Commit, Op, Row, StoreError, Table, TableName};

#[derive(Default)]
pub(crate) struct MetaRows(Mutex<BTreeMap<(Bytes, Bytes), Bytes>>);

impl Table for MetaRows {
    fn get(&self, _: TableName, part: &[u8], sort: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let key = (Bytes::copy_from_slice(part), Bytes::copy_from_slice(sort));
        Ok(self.0.lock().unwrap().get(&key).cloned())
    }

    fn scan(
        &self,
        _: TableName,
        part: &[u8],
        from: &[u8],
        _: Option<&[u8]>,
        _: bool,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        let rows = self.0.lock().unwrap();
        let found = rows.iter().filter(|((p, s), _)| p == part && &s[..] >= from);
        Ok(found.take(limit).map(|((_, s), v)| (s.clone(), v.clone())).collect())
    }

    fn walk(
        &self,
        _: TableName,
        _: &[u8],
        _: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        let mut rows = self.0.lock().unwrap();
        for commit in commits {
            for op in &commit.ops {
                let part = commit.partition_key.clone();
                match op.clone() {
                    Op::Put { sort_key, value } => drop(rows.insert((part, sort_key), value)),
                    Op::Delete { sort_key } => drop(rows.remove(&(part, sort_key))),
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn purge(&self, _: TableName) -> Result<(), StoreError> {
        Ok(())
    }

    fn backup(&self, _: &Path) -> Result<(), StoreError> {
        Ok(())
    }

    fn verify(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}
