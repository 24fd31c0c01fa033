//! The recent commits of a subtree, for observers that follow it, and the
//! point before which they are gone.
//!
//! ```text
//!  compacted        after                 synced          end
//!  ......................|[ kept, shown ][ kept, unsynced ]
//! ```
//!
//! An observer within what is kept is given the next frame; one below it is
//! told to take a snapshot. None is ever moved over a commit it has not seen.
//!
//! ```text
//! frame: version (1), incarnation, epoch, after, count, commits each with its
//!        length before it, CRC-32C of all before it (u32, little-endian)
//! ```
//!
//! A frame covers `(after, after + count]` of one epoch.

use std::collections::VecDeque;

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Reader, put_varint};
use tideline_types::limits::{
    META_FRAME_BYTES, META_TAIL_BYTES_MAX, META_TAIL_MAX, RECORD_VALUE_BYTES_MAX,
};
use tideline_types::{Epoch, Incarnation, Position, Seq, SeqRange};

use crate::commit::{Commit, Entry, put_bytes, read_bytes};
use crate::snapshot::checked;

/// Why an observer must take the subtree anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Resync {
    /// It has no place yet.
    #[error("from the beginning")]
    New,
    /// What follows its place is kept no more.
    #[error("changes up to {after} are kept no more")]
    Compacted {
        /// What is kept begins after this.
        after: Seq,
    },
    /// The subtree was dropped and declared again.
    #[error("the subtree was declared anew (incarnation {incarnation})")]
    Recreated {
        /// Its present life.
        incarnation: Incarnation,
    },
    /// Its place is on a history that is not this one.
    #[error("the place is on another history; here {seq} is of epoch {}", .epoch.0)]
    Diverged {
        /// Who wrote `seq` here.
        epoch: Epoch,
        /// The place's number, or the last one there is.
        seq: Seq,
    },
}

/// What is kept.
#[derive(Clone, Debug)]
pub struct Tail {
    incarnation: Incarnation,
    after: Seq,
    after_epoch: Epoch,
    kept: VecDeque<(Epoch, Bytes)>,
    bytes: usize,
}

impl Tail {
    /// Nothing is kept after `at`.
    pub fn new(at: Position) -> Self {
        let (incarnation, after, after_epoch) = (at.incarnation, at.seq, at.epoch);
        Self { incarnation, after, after_epoch, kept: VecDeque::new(), bytes: 0 }
    }

    /// The last commit there is.
    pub fn end(&self) -> Seq {
        self.after.plus(self.kept.len() as u64)
    }

    /// Keeps the next commit, and lets the oldest go over the limits.
    pub fn push(&mut self, epoch: Epoch, commit: Bytes) {
        self.bytes += commit.len();
        self.kept.push_back((epoch, commit));
        while self.kept.len() > META_TAIL_MAX || self.bytes > META_TAIL_BYTES_MAX {
            self.compact(1, 0);
        }
    }

    /// Lets the oldest `count` go, but none of the last `keep`.
    pub fn compact(&mut self, count: usize, keep: usize) {
        let count = count.min(self.kept.len().saturating_sub(keep));
        #[cfg(feature = "sabotage")]
        if crate::sabotage::is(crate::sabotage::Broken::CompactionSkipsDelete) {
            return self.compact_wrongly(count);
        }
        for (epoch, commit) in self.kept.drain(..count) {
            self.after = self.after.next();
            self.after_epoch = epoch;
            self.bytes -= commit.len();
        }
    }

    /// The next frame for an observer at `from`, of what is at or below
    /// `synced`; `None` where it has seen all.
    pub fn frame(&self, from: Position, synced: Seq) -> Result<Option<Bytes>, Resync> {
        if from.incarnation != self.incarnation {
            return Err(Resync::Recreated { incarnation: self.incarnation });
        }
        if from.seq < self.after {
            return Err(Resync::Compacted { after: self.after });
        }
        let at = (from.seq.0 - self.after.0) as usize;
        let epoch = match at.checked_sub(1) {
            None => self.after_epoch,
            Some(before) => self.kept.get(before).map_or(Epoch(u32::MAX), |(epoch, _)| *epoch),
        };
        if from.seq > synced || epoch != from.epoch {
            let epoch = self.kept.back().map_or(self.after_epoch, |(epoch, _)| *epoch);
            return Err(Resync::Diverged { epoch, seq: from.seq.min(synced) });
        }
        let visible = synced.0.saturating_sub(self.after.0) as usize;
        let mut next = self.kept.range(at..visible.max(at)).peekable();
        let Some(&&(epoch, _)) = next.peek() else { return Ok(None) };
        let (mut bytes, mut commits) = (0, Vec::new());
        while let Some((_, commit)) = next.next_if(|(of, _)| *of == epoch) {
            bytes += commit.len();
            commits.push(commit);
            if bytes >= META_FRAME_BYTES {
                break;
            }
        }
        Ok(Some(encode(self.incarnation, epoch, from.seq, &commits)))
    }

    #[cfg(feature = "sabotage")]
    fn compact_wrongly(&mut self, count: usize) {
        let empty = |commit: &Bytes| match Entry::decode(commit) {
            Ok(Entry::Commit(mut commit)) => {
                commit.changes.retain(|c| !matches!(c, crate::commit::Change::Delete { .. }));
                Some(Bytes::from(commit.encode()))
            }
            _ => None,
        };
        for (_, commit) in self.kept.iter_mut().take(count) {
            *commit = empty(commit).unwrap_or_default();
        }
        self.bytes = self.kept.iter().map(|(_, commit)| commit.len()).sum();
        while self.kept.len() > META_TAIL_MAX {
            self.kept.pop_front();
            self.after = self.after.next();
        }
    }
}

const VERSION: u8 = 1;

fn encode(incarnation: Incarnation, epoch: Epoch, after: Seq, commits: &[&Bytes]) -> Bytes {
    let mut out = vec![VERSION];
    put_varint(&mut out, incarnation.0);
    put_varint(&mut out, u64::from(epoch.0));
    put_varint(&mut out, after.0);
    put_varint(&mut out, commits.len() as u64);
    commits.iter().for_each(|commit| put_bytes(&mut out, commit));
    out.extend(crc32c::crc32c(&out).to_le_bytes());
    out.into()
}

/// Commits in a row, as an observer is given them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which life of the subtree.
    pub incarnation: Incarnation,
    /// Who wrote them.
    pub epoch: Epoch,
    /// The numbers that are covered.
    pub range: SeqRange,
    /// One for each number, in order.
    pub commits: Vec<Commit>,
}

impl Frame {
    /// Reads what [`Tail::frame`] wrote.
    pub fn decode(bytes: &Bytes) -> Result<Self, BadBytes> {
        let body = checked(bytes)?;
        let mut reader = Reader::new(&body);
        if reader.u8()? != VERSION {
            return Err(BadBytes("a frame of another version"));
        }
        let incarnation = Incarnation(reader.varint()?);
        let (epoch, after) = (Epoch(reader.varint32()?), Seq(reader.varint()?));
        let count = reader.varint()?;
        let through = after.0.checked_add(count).ok_or(BadBytes("a seq over 64 bits"))?;
        let mut commits = Vec::with_capacity((count as usize).min(reader.left().len()));
        for seq in after.0..through {
            let bytes = body.slice_ref(read_bytes(&mut reader, RECORD_VALUE_BYTES_MAX)?);
            match Entry::decode(&bytes)? {
                Entry::Commit(commit)
                    if commit.incarnation == incarnation && commit.seq.0 == seq + 1 =>
                {
                    commits.push(commit);
                }
                _ => return Err(BadBytes("a frame with something else in it")),
            }
        }
        if !reader.is_empty() {
            return Err(BadBytes("bytes after a frame"));
        }
        Ok(Self { incarnation, epoch, range: SeqRange::new(after, Seq(through)), commits })
    }

    /// Where an observer is that has applied it.
    pub fn end(&self) -> Position {
        let (incarnation, epoch) = (self.incarnation, self.epoch);
        Position { incarnation, epoch, seq: self.range.through }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(epoch: u32, seq: u64) -> Position {
        Position { incarnation: Incarnation(1), epoch: Epoch(epoch), seq: Seq(seq) }
    }

    /// Commits 6..=9 after 5; epoch 2 wrote 6 and 7, epoch 3 the rest.
    fn tail() -> Tail {
        let mut tail = Tail::new(at(1, 5));
        for seq in 6..10 {
            let (incarnation, op, changes) = (Incarnation(1), None, Vec::new());
            let commit = Commit { incarnation, seq: Seq(seq), op, changes };
            tail.push(Epoch(if seq < 8 { 2 } else { 3 }), commit.encode().into());
        }
        tail
    }

    fn told(tail: &Tail, from: Position, synced: u64) -> String {
        match tail.frame(from, Seq(synced)) {
            Ok(None) => "all seen".into(),
            Ok(Some(bytes)) => {
                let frame = Frame::decode(&bytes).unwrap();
                assert_eq!(frame.commits.len() as u64, frame.range.count());
                format!("{} of {}", frame.range, frame.epoch)
            }
            Err(resync) => resync.to_string(),
        }
    }

    #[test]
    fn frames_join_and_each_is_of_one_epoch_and_synced() {
        assert_eq!(told(&tail(), at(1, 5), 9), "(5, 7] of 2");
        assert_eq!(told(&tail(), at(2, 7), 9), "(7, 9] of 3");
        assert_eq!(told(&tail(), at(2, 7), 8), "(7, 8] of 3");
        assert_eq!(told(&tail(), at(2, 7), 7), "all seen");
        assert_eq!(told(&tail(), at(3, 9), 9), "all seen");
    }

    #[test]
    fn an_observer_is_never_moved_over_what_it_has_not_seen() {
        let mut tail = tail();
        tail.compact(2, 0);
        assert_eq!(told(&tail, at(2, 6), 9), "changes up to 7 are kept no more");
        assert_eq!(told(&tail, at(2, 7), 9), "(7, 9] of 3");
        tail.compact(9, 0);
        assert_eq!(told(&tail, at(3, 9), 9), "all seen");
        assert_eq!(told(&tail, at(3, 8), 9), "changes up to 9 are kept no more");
    }

    #[test]
    fn a_place_on_another_history_is_told_apart() {
        let other = "the place is on another history; here";
        assert_eq!(told(&tail(), at(3, 7), 9), format!("{other} 7 is of epoch 3"));
        assert_eq!(told(&tail(), at(3, 12), 9), format!("{other} 9 is of epoch 3"));
        assert_eq!(told(&tail(), at(2, 5), 9), format!("{other} 5 is of epoch 3"));
        let again = Position { incarnation: Incarnation(2), ..at(2, 7) };
        let told = told(&tail(), again, 9);
        assert_eq!(told, "the subtree was declared anew (incarnation 1)");
    }

    #[test]
    fn the_bytes_of_a_frame_never_change() {
        let frame = tail().frame(at(1, 5), Seq(6)).unwrap().unwrap();
        assert_eq!(frame[..frame.len() - 4], [1, 1, 2, 5, 1, 6, 1, 3, 1, 6, 0, 0]);
        let mut bad = frame.to_vec();
        bad[3] ^= 1;
        assert!(Frame::decode(&bad.into()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            crate::fuzz::meta_frame(&bytes);
        }
    }
}
