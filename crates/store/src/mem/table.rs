//! A table in memory that knows what of it is synced.
//!
//! Always: `synced` with `unsynced` applied in order is `rows`. A restart may
//! legally show, for each partition key, `synced` and any prefix of its
//! unsynced commits; [`MemTable::crash`] lets the caller choose which. Keeps
//! every unsynced commit until the next `sync`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use crate::table::check_commit;
use crate::{Commit, Op, Row, StoreError, Table, TableName};

type Key = (TableName, Bytes, Bytes);
type Rows = BTreeMap<Key, Bytes>;

/// A call about to be made on a [`MemTable`], as its fault hook sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableCall {
    /// `get`.
    Get,
    /// `scan`.
    Scan,
    /// `walk`.
    Walk,
    /// `commit`.
    Commit,
    /// `sync`.
    Sync,
    /// `purge`.
    Purge,
    /// `backup`.
    Backup,
    /// `verify`.
    Verify,
}

/// Asked before each call: may refuse it with an error, or hold it up.
type FaultHook = Arc<dyn Fn(TableCall) -> Result<(), StoreError> + Send + Sync>;

#[derive(Default)]
struct State {
    rows: Rows,
    synced: Rows,
    unsynced: Vec<Commit>,
}

/// A [`Table`] in memory.
#[derive(Default)]
pub struct MemTable {
    state: Mutex<State>,
    fault: Mutex<Option<FaultHook>>,
}

impl MemTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table that [`Table::backup`] wrote into `dir`.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let file = dir.join(FILE);
        let bytes = fs::read(&file).map_err(|e| StoreError::io("read table copy", &e))?;
        let rows = load(&bytes).ok_or_else(|| StoreError::Damaged {
            file,
            offset: 0,
            what: "not a table copy".into(),
        })?;
        let state = State { synced: rows.clone(), rows, unsynced: Vec::new() };
        Ok(Self { state: Mutex::new(state), fault: Mutex::default() })
    }

    /// Asks `hook` before each call from now on. It is called without a lock
    /// held, so it may block the call for as long as it likes.
    pub fn set_fault(
        &self,
        hook: impl Fn(TableCall) -> Result<(), StoreError> + Send + Sync + 'static,
    ) {
        *self.fault.lock().expect("no call panics while it holds the hook") = Some(Arc::new(hook));
    }

    /// Every call succeeds at once again.
    pub fn clear_fault(&self) {
        *self.fault.lock().expect("no call panics while it holds the hook") = None;
    }

    /// What a restart after power loss finds: all that is synced and, for each
    /// partition key in order, its first `keep(table, partition key, unsynced
    /// commits)` unsynced commits. This table stays as it is.
    pub fn crash(&self, mut keep: impl FnMut(TableName, &[u8], usize) -> usize) -> Self {
        let state = self.lock();
        let mut unsynced: BTreeMap<(TableName, &Bytes), Vec<&Commit>> = BTreeMap::new();
        for commit in &state.unsynced {
            unsynced.entry((commit.table, &commit.partition_key)).or_default().push(commit);
        }
        let mut rows = state.synced.clone();
        for ((table, partition_key), commits) in unsynced {
            let kept = keep(table, partition_key, commits.len());
            commits.iter().take(kept).for_each(|commit| apply(&mut rows, commit));
        }
        let state = State { synced: rows.clone(), rows, unsynced: Vec::new() };
        Self { state: Mutex::new(state), fault: Mutex::default() }
    }

    fn begin(&self, call: TableCall) -> Result<(), StoreError> {
        let hook = self.fault.lock().expect("no call panics while it holds the hook").clone();
        hook.map_or(Ok(()), |hook| hook(call))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no call panics while it holds the rows")
    }
}

impl fmt::Debug for MemTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let (rows, unsynced) = (state.rows.len(), state.unsynced.len());
        f.debug_struct("MemTable").field("rows", &rows).field("unsynced", &unsynced).finish()
    }
}

fn apply(rows: &mut Rows, commit: &Commit) {
    for op in &commit.ops {
        match op {
            Op::Put { sort_key, value } => {
                let key = (commit.table, commit.partition_key.clone(), sort_key.clone());
                rows.insert(key, value.clone());
            }
            Op::Delete { sort_key } => {
                rows.remove(&(commit.table, commit.partition_key.clone(), sort_key.clone()));
            }
        }
    }
}

impl State {
    fn sync(&mut self) {
        for commit in self.unsynced.drain(..) {
            apply(&mut self.synced, &commit);
        }
    }
}

impl Table for MemTable {
    fn get(
        &self,
        table: TableName,
        partition_key: &[u8],
        sort_key: &[u8],
    ) -> Result<Option<Bytes>, StoreError> {
        self.begin(TableCall::Get)?;
        let copy = Bytes::copy_from_slice;
        Ok(self.lock().rows.get(&(table, copy(partition_key), copy(sort_key))).cloned())
    }

    fn scan(
        &self,
        table: TableName,
        partition_key: &[u8],
        from: &[u8],
        to: Option<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        self.begin(TableCall::Scan)?;
        if to.is_some_and(|to| to <= from) {
            return Ok(Vec::new());
        }
        let low = (table, Bytes::copy_from_slice(partition_key), Bytes::copy_from_slice(from));
        let mine = |key: &Key| {
            key.0 == table && key.1 == partition_key && to.is_none_or(|to| key.2.as_ref() < to)
        };
        let state = self.lock();
        let mut found: Vec<_> = (state.rows.range(low..).take_while(|(key, _)| mine(key)))
            .map(|(key, value)| (key.2.clone(), value.clone()))
            .collect();
        if reverse {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }

    fn walk(
        &self,
        table: TableName,
        prefix: &[u8],
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), StoreError> {
        self.begin(TableCall::Walk)?;
        let low = (table, Bytes::copy_from_slice(prefix), Bytes::new());
        let rows: Vec<Row> = (self.lock().rows)
            .range((Bound::Included(low), Bound::Unbounded))
            .take_while(|(key, _)| key.0 == table && key.1.starts_with(prefix))
            .map(|(key, value)| Row {
                partition_key: key.1.clone(),
                sort_key: key.2.clone(),
                value: value.clone(),
            })
            .collect();
        let _ = rows.into_iter().all(visit);
        Ok(())
    }

    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        self.begin(TableCall::Commit)?;
        let mut state = self.lock();
        for commit in commits {
            check_commit(commit);
            apply(&mut state.rows, commit);
            state.unsynced.push(commit.clone());
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.begin(TableCall::Sync)?;
        self.lock().sync();
        Ok(())
    }

    fn purge(&self, _table: TableName) -> Result<(), StoreError> {
        self.begin(TableCall::Purge)?;
        self.lock().sync();
        Ok(())
    }

    fn backup(&self, into: &Path) -> Result<(), StoreError> {
        self.begin(TableCall::Backup)?;
        let bytes = save(&self.lock().rows);
        fs::write(into.join(FILE), bytes).map_err(|e| StoreError::io("write table copy", &e))
    }

    fn verify(&self) -> Result<u64, StoreError> {
        self.begin(TableCall::Verify)?;
        Ok(self.lock().rows.len() as u64)
    }

    fn disk_bytes(&self) -> u64 {
        let row = |(key, value): (&Key, &Bytes)| key.1.len() + key.2.len() + value.len();
        self.lock().rows.iter().map(row).sum::<usize>() as u64
    }
}

const FILE: &str = "rows";

/// Table, then length (u32, little-endian) and bytes of partition key, sort
/// key and value, row after row; a CRC-32C over all of it at the end.
fn save(rows: &Rows) -> Vec<u8> {
    let mut out = Vec::new();
    for ((table, partition_key, sort_key), value) in rows {
        out.push(*table as u8);
        for field in [partition_key, sort_key, value] {
            out.extend_from_slice(&(field.len() as u32).to_le_bytes());
            out.extend_from_slice(field);
        }
    }
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out
}

fn load(bytes: &[u8]) -> Option<Rows> {
    let (mut rest, sum) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(rest) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut rows = Rows::new();
    while let Some((&table, after)) = rest.split_first() {
        rest = after;
        let table = *TableName::ALL.get(usize::from(table))?;
        let mut field = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (field, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            Some(Bytes::copy_from_slice(field))
        };
        rows.insert((table, field()?, field()?), field()?);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::table as laws;

    struct Mem {
        table: Arc<MemTable>,
    }

    impl laws::Engine for Mem {
        fn table(&self) -> Arc<dyn Table> {
            self.table.clone()
        }

        fn reopen(&mut self) {
            self.table = Arc::new(self.table.crash(|_, _, unsynced| unsynced));
        }

        fn open_copy(&self, dir: &Path) -> Arc<dyn Table> {
            Arc::new(MemTable::open(dir).unwrap())
        }
    }

    #[test]
    fn the_laws_hold() {
        laws::run(&|| Box::new(Mem { table: Arc::new(MemTable::new()) }));
    }

    fn put(partition_key: &'static str, value: &'static str) -> Commit {
        Commit {
            table: TableName::Meta,
            partition_key: partition_key.into(),
            ops: vec![Op::Put { sort_key: Bytes::new(), value: value.into() }],
        }
    }

    #[test]
    fn a_crash_keeps_what_is_synced_and_the_chosen_prefix_of_each_partition_key() {
        let table = MemTable::new();
        table.commit(&[put("a", "1"), put("b", "1")]).unwrap();
        table.sync().unwrap();
        table.commit(&[put("a", "2"), put("b", "2"), put("b", "3"), put("c", "1")]).unwrap();
        let mut asked = Vec::new();
        let after = table.crash(|_, partition_key, unsynced| {
            asked.push((partition_key.to_vec(), unsynced));
            usize::from(partition_key == b"b")
        });
        assert_eq!(asked, [(b"a".to_vec(), 1), (b"b".to_vec(), 2), (b"c".to_vec(), 1)]);
        let get = |key: &str| after.get(TableName::Meta, key.as_bytes(), b"").unwrap();
        assert_eq!(get("a").as_deref(), Some(&b"1"[..]));
        assert_eq!(get("b").as_deref(), Some(&b"2"[..]));
        assert_eq!(get("c"), None);
    }

    #[test]
    fn a_fault_refuses_the_call_and_changes_nothing() {
        let table = MemTable::new();
        let full = || StoreError::NoSpace { what: "told to".into() };
        table.set_fault(move |call| if call == TableCall::Commit { Err(full()) } else { Ok(()) });
        assert!(table.commit(&[put("a", "1")]).is_err());
        assert_eq!(table.verify().unwrap(), 0);
        table.clear_fault();
        table.commit(&[put("a", "1")]).unwrap();
        assert_eq!(table.verify().unwrap(), 1);
    }

    #[test]
    fn a_copy_with_a_changed_byte_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let table = MemTable::new();
        table.commit(&[put("a", "1")]).unwrap();
        table.backup(dir.path()).unwrap();
        let mut bytes = fs::read(dir.path().join(FILE)).unwrap();
        bytes[6] ^= 1;
        fs::write(dir.path().join(FILE), bytes).unwrap();
        assert!(matches!(MemTable::open(dir.path()), Err(StoreError::Damaged { .. })));
    }
}
