//! Ordered rows: what a view keeps.

use std::path::Path;

use bytes::Bytes;

use tideline_types::limits::{TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX};

use crate::StoreError;

/// A set of rows of its own within an engine. Part of the data format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableName {
    /// Users' cold history and what stands beside it.
    History,
    /// Titles, covers, groups.
    Catalogue,
    /// Topics, kinds, tokens, secrets, places of views.
    Meta,
    /// Videos' comments and what stands beside them.
    Danmaku,
}

impl TableName {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::History, Self::Catalogue, Self::Meta, Self::Danmaku];

    /// The name on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Catalogue => "catalogue",
            Self::Meta => "meta",
            Self::Danmaku => "danmaku",
        }
    }
}

/// A row as read: its partition key, its sort key, its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is atomic with.
    pub partition_key: Bytes,
    /// Where it stands among the rows of its partition key.
    pub sort_key: Bytes,
    /// What it holds.
    pub value: Bytes,
}

/// One change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets the row.
    Put {
        /// Sort key, at most 512 bytes.
        sort_key: Bytes,
        /// Value, at most 4 MiB.
        value: Bytes,
    },
    /// Removes the row; nothing happens where there is none.
    Delete {
        /// Sort key.
        sort_key: Bytes,
    },
}

/// Changes of one partition key, which all happen or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Which rows.
    pub table: TableName,
    /// Of which partition key: 1 to 512 bytes, any bytes.
    pub partition_key: Bytes,
    /// In order.
    pub ops: Vec<Op>,
}

/// The bounds of a commit. Going over one is a mistake of the caller, who
/// knows them: it panics, in every engine alike.
pub(crate) fn check_commit(commit: &Commit) {
    let key_fits = |key: &Bytes| key.len() <= TABLE_KEY_BYTES_MAX;
    assert!(key_fits(&commit.partition_key) && !commit.partition_key.is_empty());
    for op in &commit.ops {
        match op {
            Op::Put { sort_key, value } => {
                assert!(key_fits(sort_key) && value.len() <= TABLE_VALUE_BYTES_MAX);
            }
            Op::Delete { sort_key } => assert!(key_fits(sort_key)),
        }
    }
}

/// An ordered map of (partition key, sort key) to value.
///
/// Laws:
/// - Each [`Commit`] is atomic: a reader, and a restart at any instant, sees
///   all of it or none. Two commits of one call may be seen apart.
/// - What is committed is read at once. It survives power loss when a `sync`
///   that began after it returned `Ok`; without one, a restart shows a prefix
///   of the commits of each partition key (never a later one without an
///   earlier one of the same partition key).
/// - `scan` yields the rows of one partition key in byte order of sort keys
///   and never those of another, whatever bytes the keys hold.
/// - Damaged bytes are an error that names them, never a value.
/// - Nothing is promised across partition keys: a wide-column store has no
///   more to give.
/// - A partition key has one writer at a time; who it is, the log's fence says.
pub trait Table: Send + Sync + 'static {
    /// The value of one row.
    fn get(
        &self,
        table: TableName,
        partition_key: &[u8],
        sort_key: &[u8],
    ) -> Result<Option<Bytes>, StoreError>;

    /// Rows of one partition key with `from <= sort_key` (and `< to`, if
    /// given) in order, or in reverse order, at most `limit`, each as (sort
    /// key, value).
    fn scan(
        &self,
        table: TableName,
        partition_key: &[u8],
        from: &[u8],
        to: Option<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError>;

    /// Walks all rows whose partition key starts with `prefix`, in an order
    /// that keeps a partition key's rows together, until `visit` says false.
    /// For exports, checks and restarts: a prefix may cost as much as the whole
    /// table. Sees rows of commits that were made
    /// before the call, and may see later ones.
    fn walk(
        &self,
        table: TableName,
        prefix: &[u8],
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), StoreError>;

    /// Applies each commit, in order.
    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError>;

    /// Makes all that was committed before the call survive power loss.
    fn sync(&self) -> Result<(), StoreError>;

    /// Rewrites the engine's files so that no byte of a deleted or replaced
    /// row of `table` is left in any of them. Durable on return.
    fn purge(&self, table: TableName) -> Result<(), StoreError>;

    /// Writes a copy of all rows, as of one moment after the call began, into
    /// the empty folder `into`, from where an engine of the same kind opens.
    fn backup(&self, into: &Path) -> Result<(), StoreError>;

    /// Reads every byte of every row and verifies checksums; returns the
    /// number of rows read.
    fn verify(&self) -> Result<u64, StoreError>;

    /// Bytes on disk (memory, where there is no disk).
    fn disk_bytes(&self) -> u64;
}
