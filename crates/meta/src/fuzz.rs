//! Entries for fuzzing: bytes from the log, from tables and from a server,
//! whatever they hold, are an error or a value, never a panic.

use bytes::Bytes;
use tideline_types::{Incarnation, Seq};

use crate::commit::{Commit, Entry};
use crate::follower::{Event, Follower};
use crate::tail::Frame;
use crate::tree::Tree;

/// The value of a record. What decodes must encode to the same again and may
/// be applied to any tree.
pub fn meta_entry(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let Ok(entry) = Entry::decode(&bytes) else { return };
    assert_eq!(entry.encode(), bytes, "an entry has two forms");
    if let Entry::Commit(commit) = entry {
        let mut tree = Tree::new(Incarnation(1));
        let as_next = Commit { incarnation: Incarnation(1), seq: Seq(1), ..commit };
        _ = tree.apply(&as_next);
    }
}

/// A chunk of a snapshot, without its checksum: an observer takes it, and
/// again after itself.
pub fn meta_snapshot(bytes: &[u8]) {
    let chunk = Event::Chunk(sealed(bytes));
    let mut follower = Follower::default();
    for _ in 0..2 {
        _ = follower.take(&chunk);
    }
}

/// A frame, without its checksum.
pub fn meta_frame(bytes: &[u8]) {
    let bytes = sealed(bytes);
    if Frame::decode(&bytes).is_ok() {
        _ = Follower::default().take(&Event::Frame(bytes));
    }
}

/// The row that names a subtree's snapshot.
pub fn meta_row(bytes: &[u8]) {
    crate::cold::fuzz_header(bytes);
}

/// With the checksum that it would have: a fuzzer does not guess one.
fn sealed(bytes: &[u8]) -> Bytes {
    [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat().into()
}
