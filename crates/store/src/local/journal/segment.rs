//! Reading batches from a segment's file.

use std::io;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use tideline_types::{Seq, StreamId};

use super::state::{Index, note};
use crate::disk::DiskFile;
use crate::{ReadLimits, StoreError};
use tideline_record::batch::{BadBatch, BatchRef, Header};

/// The first piece that a read brings in; each further one is twice as long,
/// up to half of what the read may bring.
const PIECE_BYTES: usize = 4 << 10;
/// Pieces of a walk through a whole segment.
const WALK_BYTES: usize = 1 << 20;

/// A part of a segment's file that holds batches of one stream.
pub(super) struct Span<'a> {
    pub(super) file: &'a dyn DiskFile,
    pub(super) path: &'a Path,
    pub(super) stream: StreamId,
    /// The number of the batch at `offset`.
    pub(super) first: Seq,
    pub(super) offset: u64,
    /// Where the segment ends.
    pub(super) end: u64,
}

impl Span<'_> {
    pub(super) fn damaged(&self, offset: u64, what: impl Into<String>) -> StoreError {
        StoreError::Damaged { file: self.path.to_path_buf(), offset, what: what.into() }
    }

    fn bring(&self, offset: u64, bytes: usize) -> Result<BytesMut, StoreError> {
        let mut piece = BytesMut::zeroed(bytes);
        match self.file.read_at(offset, &mut piece) {
            Ok(()) => Ok(piece),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged(offset, "the file ends before the segment does"))
            }
            Err(e) => Err(StoreError::io(format!("read {}", self.path.display()), &e)),
        }
    }

    /// Calls `visit` with each batch, unverified but in its place: header,
    /// offset, bytes. Stops when it says false.
    fn walk(
        &self,
        mut piece_bytes: usize,
        piece_bytes_max: usize,
        visit: &mut dyn FnMut(&Header, u64, Bytes) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let (mut offset, mut expected) = (self.offset, self.first);
        let mut piece = Bytes::new();
        while offset < self.end {
            let rest = usize::try_from(self.end - offset).unwrap_or(usize::MAX);
            let need = match Header::peek(&piece) {
                Ok(header) => header.len,
                Err(BadBatch::Short { need, .. }) => need,
                Err(error) => return Err(self.damaged(offset, error.to_string())),
            };
            if need > rest {
                return Err(self.damaged(offset, "a batch runs over the segment's end"));
            }
            if piece.len() < need {
                let mut more = BytesMut::from(&piece[..]);
                let bytes = (piece_bytes.max(need) - piece.len()).min(rest - piece.len());
                more.unsplit(self.bring(offset + piece.len() as u64, bytes)?);
                piece = more.freeze();
                piece_bytes = (piece_bytes * 2).min(piece_bytes_max);
                continue;
            }
            let header = Header::peek(&piece).map_err(|e| self.damaged(offset, e.to_string()))?;
            if header.stream != self.stream || header.first != expected {
                let what = format!(
                    "batch {}/{} where {}/{expected} is due",
                    header.stream, header.first, self.stream
                );
                return Err(self.damaged(offset, what));
            }
            if !visit(&header, offset, piece.slice(..need))? {
                return Ok(());
            }
            piece = piece.slice(need..);
            offset += need as u64;
            expected = header.last().next();
        }
        Ok(())
    }

    /// Adds batches from the one that contains `from` on, within `limits`,
    /// verified; answers where the batch after the last one begins.
    pub(super) fn read(
        &self,
        from: Seq,
        limits: ReadLimits,
        out: &mut Vec<Bytes>,
    ) -> Result<(Seq, u64), StoreError> {
        let (mut records, mut bytes) = (0, 0);
        let mut next = (self.first, self.offset);
        let piece_bytes_max = (limits.bytes_max / 2).clamp(PIECE_BYTES, WALK_BYTES);
        self.walk(PIECE_BYTES, piece_bytes_max, &mut |header, offset, batch| {
            if header.last() >= from {
                records += header.count as usize;
                bytes += header.len;
                if !out.is_empty() && (records > limits.records_max || bytes > limits.bytes_max) {
                    return Ok(false);
                }
                BatchRef::parse(&batch).map_err(|e| self.damaged(offset, e.to_string()))?;
                out.push(batch);
            }
            next = (header.last().next(), offset + header.len as u64);
            // The next batch is only brought in if it may be wanted.
            Ok(out.is_empty() || records < limits.records_max && bytes < limits.bytes_max)
        })?;
        Ok(next)
    }

    /// Where batches begin, sparsely.
    pub(super) fn index(&self) -> Result<Index, StoreError> {
        let mut index = Index::new();
        self.walk(WALK_BYTES, WALK_BYTES, &mut |header, offset, _| {
            note(&mut index, header.first, offset);
            Ok(true)
        })?;
        Ok(index)
    }

    /// Calls `visit` with each batch, verified.
    pub(super) fn verify(
        &self,
        visit: &mut dyn FnMut(&BatchRef<'_>, u64, &Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.walk(WALK_BYTES, WALK_BYTES, &mut |_, offset, bytes| {
            let batch = BatchRef::parse(&bytes).map_err(|e| self.damaged(offset, e.to_string()))?;
            visit(&batch, offset, &bytes).map(|()| true)
        })
    }
}
