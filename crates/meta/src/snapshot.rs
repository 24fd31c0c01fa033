//! A subtree as bytes, in chunks: at rest, and on its way to an observer.
//!
//! ```text
//! chunk: version (1), incarnation, epoch, seq, index, last (0 or 1), items,
//!        CRC-32C of all before it (u32, little-endian)
//! item:  1 session  id, lease_ms, ending
//!        2 node     path, created, modified - created, owner, counter, value
//!        3 write    operation id (16 bytes), seq, count, paths
//! ```
//!
//! Sessions come first, then nodes, each after its parent, then remembered
//! writes. A snapshot is whole only when its last chunk has come, and all of
//! them in order; whoever reads one holds it to that.

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Reader, put_varint};
use tideline_types::limits::{META_CHUNK_BYTES, META_TXN_OPS_MAX};
use tideline_types::{Epoch, Incarnation, Position, Seq};

use crate::commit::{SessionId, put_bytes, read_op, read_owner, read_path, read_value};
use crate::done::Written;
use crate::path::Path;
use crate::tree::{Node, Tree};

/// Who will read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// The next owner: everything.
    Owner,
    /// An observer: without the writes that may be asked for again.
    Observer,
}

const VERSION: u8 = 1;

/// The chunks of `tree`, whose last commit `epoch` wrote; at least one.
pub fn encode(tree: &Tree, epoch: Epoch, reader: For) -> Vec<Bytes> {
    let (incarnation, seq) = (tree.incarnation(), tree.seq());
    let mut chunks = Chunks::new(Position { incarnation, epoch, seq });
    for (id, session) in tree.sessions() {
        let out = chunks.item(1);
        put_varint(out, id.0);
        put_varint(out, u64::from(session.lease_ms));
        out.push(u8::from(session.ending));
    }
    for (path, node) in tree.nodes() {
        let out = chunks.item(2);
        put_bytes(out, path.as_str().as_bytes());
        put_varint(out, node.created.0);
        put_varint(out, node.modified.0 - node.created.0);
        put_varint(out, node.owner.map_or(0, |owner| owner.0));
        put_varint(out, node.counter);
        put_bytes(out, &node.value);
    }
    if reader == For::Owner {
        for (op, written) in tree.done.iter() {
            let out = chunks.item(3);
            out.extend(op.0.to_le_bytes());
            put_varint(out, written.seq.0);
            put_varint(out, written.created.len() as u64);
            for path in &written.created {
                put_bytes(out, path.as_str().as_bytes());
            }
        }
    }
    chunks.finish()
}

struct Chunks {
    at: Position,
    done: Vec<Bytes>,
    open: Vec<u8>,
    /// Where in `open` it says whether it is the last.
    last_at: usize,
}

impl Chunks {
    fn new(at: Position) -> Self {
        let mut chunks = Self { at, done: Vec::new(), open: Vec::new(), last_at: 0 };
        chunks.begin();
        chunks
    }

    fn begin(&mut self) {
        let out = &mut self.open;
        out.push(VERSION);
        put_varint(out, self.at.incarnation.0);
        put_varint(out, u64::from(self.at.epoch.0));
        put_varint(out, self.at.seq.0);
        put_varint(out, self.done.len() as u64);
        self.last_at = out.len();
        out.push(0);
    }

    /// Where the next item goes.
    fn item(&mut self, tag: u8) -> &mut Vec<u8> {
        if self.open.len() >= META_CHUNK_BYTES {
            self.seal();
            self.begin();
        }
        self.open.push(tag);
        &mut self.open
    }

    fn seal(&mut self) {
        let mut bytes = std::mem::take(&mut self.open);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        self.done.push(bytes.into());
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.open[self.last_at] = 1;
        self.seal();
        self.done
    }
}

/// What is left of `bytes` without the checksum at their end, if it fits.
pub(crate) fn checked(bytes: &Bytes) -> Result<Bytes, BadBytes> {
    let body = bytes.len().checked_sub(4).ok_or(BadBytes("cut short"))?;
    let stored = u32::from_le_bytes(bytes[body..].try_into().expect("four bytes were split off"));
    if crc32c::crc32c(&bytes[..body]) != stored {
        return Err(BadBytes("the checksum does not fit"));
    }
    Ok(bytes.slice(..body))
}

/// Puts a snapshot together again.
#[derive(Debug)]
pub struct Rebuild {
    at: Position,
    next: u64,
    tree: Tree,
}

impl Rebuild {
    /// Begins with the first chunk, or goes on with the next; a snapshot that
    /// is whole comes back with where it stands.
    pub fn take(
        before: Option<Self>,
        chunk: &Bytes,
    ) -> Result<Result<(Tree, Position), Self>, BadBytes> {
        let body = checked(chunk)?;
        let mut reader = Reader::new(&body);
        if reader.u8()? != VERSION {
            return Err(BadBytes("a snapshot of another version"));
        }
        let incarnation = Incarnation(reader.varint()?);
        let epoch = Epoch(reader.varint32()?);
        let at = Position { incarnation, epoch, seq: Seq(reader.varint()?) };
        let mut this = before.unwrap_or_else(|| Self {
            at,
            next: 0,
            tree: Tree::restore_at(incarnation, at.seq),
        });
        if (at, reader.varint()?) != (this.at, this.next) {
            return Err(BadBytes("not the next chunk of the snapshot"));
        }
        this.next += 1;
        let last = reader.u8()?;
        while !reader.is_empty() {
            this.item(&mut reader, &body)?;
        }
        match last {
            0 => Ok(Err(this)),
            1 => Ok(Ok((this.tree, this.at))),
            _ => Err(BadBytes("neither the last chunk nor another")),
        }
    }

    fn item(&mut self, reader: &mut Reader<'_>, whole: &Bytes) -> Result<(), BadBytes> {
        match reader.u8()? {
            1 => {
                let (id, lease_ms) = (SessionId(reader.varint()?), reader.varint32()?);
                self.tree.restore_session(id, lease_ms, reader.u8()? == 1);
            }
            2 => {
                let path = read_path(reader)?;
                let created = reader.varint()?;
                let modified = created.checked_add(reader.varint()?);
                let node = Node {
                    created: Seq(created),
                    modified: Seq(modified.ok_or(BadBytes("a seq over 64 bits"))?),
                    owner: read_owner(reader)?,
                    counter: reader.varint()?,
                    children: 0,
                    value: read_value(reader, whole)?,
                };
                self.tree.restore(path, node).map_err(BadBytes)?;
            }
            3 => {
                let (op, seq) = (read_op(reader)?, Seq(reader.varint()?));
                let created = read_paths(reader)?;
                self.tree.done.remember(op, Written { seq, created });
            }
            _ => return Err(BadBytes("an item of no known kind")),
        }
        Ok(())
    }
}

fn read_paths(reader: &mut Reader<'_>) -> Result<Vec<Path>, BadBytes> {
    let count = reader.varint()?;
    if count > META_TXN_OPS_MAX as u64 {
        return Err(BadBytes("a write that created too much"));
    }
    (0..count).map(|_| read_path(reader)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::commit::OpId;
    use crate::rules::tests::{any_steps, take};

    fn read(chunks: &[Bytes]) -> Result<(Tree, Position), BadBytes> {
        let mut before = None;
        for chunk in chunks {
            match Rebuild::take(before.take(), chunk)? {
                Ok(whole) => return Ok(whole),
                Err(part) => before = Some(part),
            }
        }
        Err(BadBytes("no last chunk"))
    }

    proptest! {
        #[test]
        fn a_snapshot_reads_back(steps in any_steps()) {
            let mut tree = Tree::new(Incarnation(5));
            steps.iter().for_each(|step| _ = take(&mut tree, step));
            let (whole, at) = read(&encode(&tree, Epoch(3), For::Owner)).unwrap();
            prop_assert_eq!(&whole, &tree);
            prop_assert_eq!((at.epoch, at.seq), (Epoch(3), tree.seq()));
            let (observed, _) = read(&encode(&tree, Epoch(3), For::Observer)).unwrap();
            tree.forget_done();
            prop_assert_eq!(&observed, &tree);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            crate::fuzz::meta_snapshot(&bytes);
        }
    }

    fn large() -> Vec<Bytes> {
        let mut tree = Tree::restore_at(Incarnation(1), Seq(9));
        let root = Node {
            value: Bytes::new(),
            created: Seq(0),
            modified: Seq(0),
            owner: None,
            children: 0,
            counter: 0,
        };
        for n in 0..40 {
            let value = Bytes::from(vec![n as u8; 30_000]);
            let path = Path::new(&format!("/{n}")).unwrap();
            tree.restore(path, Node { value, ..root.clone() }).unwrap();
        }
        encode(&tree, Epoch(1), For::Owner)
    }

    #[test]
    fn chunks_are_bounded_and_none_may_be_missing_or_out_of_order() {
        let chunks = large();
        assert!(chunks.len() > 3 && chunks.iter().all(|c| c.len() < META_CHUNK_BYTES + 40_000));
        assert_eq!(read(&chunks).unwrap().0.count(), 40);
        assert!(read(&chunks[1..]).is_err() && read(&chunks[..2]).is_err());
        let skipped = [&chunks[..1], &chunks[2..]].concat();
        assert!(read(&skipped).is_err());
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut tree = Tree::new(Incarnation(5));
        tree.restore_session(SessionId(1), 500, false);
        let chunk = encode(&tree, Epoch(1), For::Owner).remove(0);
        for bit in 0..chunk.len() * 8 {
            let mut bad = chunk.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&[bad.into()]).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_bytes_of_a_chunk_never_change() {
        let mut tree = Tree::restore_at(Incarnation(300), Seq(9));
        tree.restore_session(SessionId(7), 500, true);
        let node = Node {
            value: Bytes::from_static(b"v"),
            created: Seq(8),
            modified: Seq(9),
            owner: Some(SessionId(7)),
            children: 0,
            counter: 2,
        };
        tree.restore(Path::new("/a").unwrap(), node).unwrap();
        let created = vec![Path::new("/a").unwrap()];
        tree.done.remember(OpId(1), Written { seq: Seq(8), created });
        let chunk = encode(&tree, Epoch(2), For::Owner).remove(0);
        let golden = [
            &[1, 0xac, 2, 2, 9, 0, 1, 1, 7, 0xf4, 3, 1][..],
            &[2, 0, 0, 0, 0, 0, 0],
            b"\x02\x02/a\x08\x01\x07\x02\x01v",
            &[3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 1],
            b"\x02/a",
        ]
        .concat();
        assert_eq!(chunk[..chunk.len() - 4], golden);
        assert!(read(&[chunk]).unwrap().0.done.find(OpId(1)).is_some());
    }
}
