//! Subtrees at rest.
//!
//! | table | partition key | sort key | value |
//! |---|---|---|---|
//! | meta | `meta/lane/`, partition u16, life u64 | 0 | version, root, log, nodes_max, bytes_max, chunks |
//! | | | 1, log u64, index u32 | a chunk of the snapshot |
//!
//! Numbers in keys are big-endian. A snapshot's chunks are written before the
//! row that names them, under the same partition key, so that a stop leaves
//! the one or the other whole.

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Reader, put_varint};
use tideline_store::{Commit, Op, StoreError, Table, TableName};
use tideline_types::limits::META_ROOT_BYTES_MAX;
use tideline_types::{Incarnation, PartitionId, Seq};

use crate::ask::Image;
use crate::commit::{Quota, put_bytes, read_bytes};
use crate::path::Path;
use crate::snapshot::{self, For, Rebuild};

const VERSION: u8 = 1;
const HEADER: &[u8] = &[0];

/// The row that names a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    root: Path,
    log: Seq,
    quota: Quota,
    chunks: u32,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_bytes(&mut out, self.root.as_str().as_bytes());
        for number in [self.log.0, self.quota.nodes_max, self.quota.bytes_max, self.chunks.into()] {
            put_varint(&mut out, number);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(BadBytes("a subtree's row of another version"));
        }
        let root = std::str::from_utf8(read_bytes(&mut reader, META_ROOT_BYTES_MAX)?);
        let root = root.ok().and_then(|root| Path::new(root).ok()).ok_or(BadBytes("no path"))?;
        let log = Seq(reader.varint()?);
        let quota = Quota { nodes_max: reader.varint()?, bytes_max: reader.varint()? };
        let header = Self { root, log, quota, chunks: reader.varint32()? };
        if reader.is_empty() { Ok(header) } else { Err(BadBytes("bytes after a subtree's row")) }
    }

    fn chunk_keys(&self) -> impl Iterator<Item = Bytes> + use<> {
        let log = self.log;
        (0..self.chunks).map(move |index| chunk_key(log, index))
    }
}

/// Puts a subtree to rest in the place of what rested of it. The caller syncs.
pub fn write(
    table: &dyn Table,
    partition: PartitionId,
    root: &Path,
    image: &Image,
) -> Result<(), StoreError> {
    let partition_key = Bytes::from(key(partition, Some(image.tree.incarnation())));
    let before = header(table, &partition_key)?;
    let chunks = snapshot::encode(&image.tree, image.epoch, For::Owner);
    let (log, quota) = (image.log, image.quota);
    let header = Header { root: root.clone(), log, quota, chunks: chunks.len() as u32 };
    let commit = |ops| {
        let partition_key = partition_key.clone();
        table.commit(&[Commit { table: TableName::Meta, partition_key, ops }])
    };
    for (sort_key, value) in header.chunk_keys().zip(chunks) {
        commit(vec![Op::Put { sort_key, value }])?;
    }
    let sort_key = Bytes::from_static(HEADER);
    let mut ops = vec![Op::Put { sort_key, value: header.encode().into() }];
    // The same log number is the same snapshot.
    let old = before.filter(|before| before.log != log);
    let old_keys = old.iter().flat_map(Header::chunk_keys);
    ops.extend(old_keys.map(|sort_key| Op::Delete { sort_key }));
    commit(ops)
}

/// Every subtree of the partition at rest.
pub fn load(table: &dyn Table, partition: PartitionId) -> Result<Vec<(Path, Image)>, StoreError> {
    let keys = keys(table, partition)?;
    keys.iter().filter_map(|key| load_one(table, key).transpose()).collect()
}

/// The partition key of each life that has rows.
pub(crate) fn keys(table: &dyn Table, partition: PartitionId) -> Result<Vec<Bytes>, StoreError> {
    let mut keys: Vec<Bytes> = Vec::new();
    table.walk(TableName::Meta, &key(partition, None), &mut |row| {
        if keys.last() != Some(&row.partition_key) {
            keys.push(row.partition_key);
        }
        true
    })?;
    Ok(keys)
}

/// What rests under one of the keys; nothing, if its first snapshot was not
/// finished: that is in the log.
pub(crate) fn load_one(table: &dyn Table, key: &[u8]) -> Result<Option<(Path, Image)>, StoreError> {
    header(table, key)?.map(|header| read(table, key, header)).transpose()
}

/// What rests under one of the keys, for people, as far as it can be read.
pub(crate) fn whose(table: &dyn Table, key: &[u8]) -> String {
    match header(table, key) {
        Ok(Some(header)) => format!("subtree {}", header.root),
        _ => {
            let life = key.last_chunk().map_or(0, |life| u64::from_be_bytes(*life));
            format!("a subtree of incarnation {life}")
        }
    }
}

fn read(table: &dyn Table, key: &[u8], header: Header) -> Result<(Path, Image), StoreError> {
    let mut before: Option<Rebuild> = None;
    for chunk_key in header.chunk_keys() {
        let chunk = table.get(TableName::Meta, key, &chunk_key)?;
        let chunk = chunk.ok_or_else(|| damaged(BadBytes("a snapshot without its chunks")))?;
        match Rebuild::take(before.take(), &chunk).map_err(damaged)? {
            Err(part) => before = Some(part),
            Ok((tree, at)) => {
                let (epoch, quota, log) = (at.epoch, header.quota, header.log);
                return Ok((header.root, Image { tree, epoch, quota, log }));
            }
        }
    }
    Err(damaged(BadBytes("a snapshot without its last chunk")))
}

/// Removes every row of a life that is over. The caller syncs.
pub fn remove(
    table: &dyn Table,
    partition: PartitionId,
    life: Incarnation,
) -> Result<(), StoreError> {
    let partition_key = Bytes::from(key(partition, Some(life)));
    loop {
        let rows = table.scan(TableName::Meta, &partition_key, &[], None, false, 64)?;
        if rows.is_empty() {
            return Ok(());
        }
        let ops = rows.into_iter().map(|(sort_key, _)| Op::Delete { sort_key }).collect();
        let partition_key = partition_key.clone();
        table.commit(&[Commit { table: TableName::Meta, partition_key, ops }])?;
    }
}

fn header(table: &dyn Table, key: &[u8]) -> Result<Option<Header>, StoreError> {
    let row = table.get(TableName::Meta, key, HEADER)?;
    row.map(|row| Header::decode(&row).map_err(damaged)).transpose()
}

fn key(partition: PartitionId, life: Option<Incarnation>) -> Vec<u8> {
    let life = life.map(|life| life.0.to_be_bytes());
    [&b"meta/lane/"[..], &partition.0.to_be_bytes()[..], life.as_ref().map_or(&[], |l| &l[..])]
        .concat()
}

fn chunk_key(log: Seq, index: u32) -> Bytes {
    [&[1][..], &log.0.to_be_bytes(), &index.to_be_bytes()].concat().into()
}

fn damaged(bad: BadBytes) -> StoreError {
    StoreError::Damaged { file: "tables/meta".into(), offset: 0, what: bad.0.into() }
}

/// For fuzzing: a subtree's row.
pub(crate) fn fuzz_header(bytes: &[u8]) {
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_store::mem::MemTable;
    use tideline_types::Epoch;

    use super::*;
    use crate::rules::tests::{any_steps, take};
    use crate::tree::Tree;

    const PARTITION: PartitionId = PartitionId(3);

    fn image(tree: &Tree, log: u64) -> Image {
        Image { tree: tree.clone(), epoch: Epoch(2), quota: Quota::default(), log: Seq(log) }
    }

    proptest! {
        #[test]
        fn a_subtree_at_rest_is_there_after_a_crash_at_any_commit(
            steps in any_steps(), more in any_steps(), kept: prop::sample::Index,
        ) {
            let (table, root) = (MemTable::new(), Path::new("/r").unwrap());
            let mut tree = Tree::new(Incarnation(7));
            steps.iter().for_each(|step| _ = take(&mut tree, step));
            write(&table, PARTITION, &root, &image(&tree, 40)).unwrap();
            table.sync().unwrap();
            let before = tree.clone();
            more.iter().for_each(|step| _ = take(&mut tree, step));
            write(&table, PARTITION, &root, &image(&tree, 50)).unwrap();
            let table = table.crash(|_, _, unsynced| kept.index(unsynced + 1));
            let lanes = load(&table, PARTITION).unwrap();
            prop_assert_eq!(lanes.len(), 1);
            let (at, found) = &lanes[0];
            prop_assert_eq!(at, &root);
            let expected = if found.log == Seq(40) { &before } else { &tree };
            prop_assert_eq!(&found.tree, expected);
            remove(&table, PARTITION, Incarnation(7)).unwrap();
            prop_assert_eq!(load(&table, PARTITION).unwrap().len(), 0);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            crate::fuzz::meta_row(&bytes);
        }
    }

    #[test]
    fn the_bytes_of_a_row_never_change() {
        let quota = Quota { nodes_max: 2, bytes_max: 300 };
        let root = Path::new("/r").unwrap();
        let header = Header { root, log: Seq(9), quota, chunks: 4 };
        assert_eq!(header.encode(), [1, 2, b'/', b'r', 9, 2, 0xac, 2, 4]);
        assert_eq!(Header::decode(&header.encode()), Ok(header));
        let life = key(PARTITION, Some(Incarnation(258)));
        assert_eq!(life, b"meta/lane/\x00\x03\x00\x00\x00\x00\x00\x00\x01\x02");
    }
}
