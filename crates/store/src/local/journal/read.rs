//! Reading: segments first, then the stream's own frames in the journal.
//!
//! Every batch is verified before it is given away. A place in a file may be
//! out of date by the time it is read, because the batch has moved on to a
//! segment or was rewritten: then the state is asked again.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tideline_types::{Seq, StreamId};

use super::Shared;
use super::manifest::{SegmentMeta, journal_path, segment_path};
use super::segment::Span;
use super::state::{Frame, State, Stream};
use crate::disk::DiskFile;
use crate::{ReadError, ReadLimits, StoreError};
use tideline_record::batch::{BatchRef, Header};

/// A place that moved this often while it was read is a mistake of ours.
const TRIES: usize = 100;

/// Where the next batch of a stream is.
enum Source {
    End,
    Segment { meta: SegmentMeta, near: Option<(Seq, u64)> },
    Frames(Vec<(Frame, Arc<dyn DiskFile>)>),
}

impl Shared {
    pub(super) fn read(
        &self,
        stream: StreamId,
        from: Seq,
        limits: ReadLimits,
    ) -> Result<Vec<Bytes>, ReadError> {
        let (mut out, mut next, mut tries) = (Vec::new(), from, 0);
        let (mut records, mut bytes) = (0, 0);
        loop {
            if !out.is_empty() && (records >= limits.records_max || bytes >= limits.bytes_max) {
                return Ok(out);
            }
            let before = out.len();
            let left = ReadLimits {
                records_max: limits.records_max - records,
                bytes_max: limits.bytes_max - bytes,
            };
            match self.locate(stream, next, left, !out.is_empty())? {
                Source::End => return Ok(out),
                Source::Segment { meta, near } => {
                    match self.read_segment(stream, &meta, near, next, left, &mut out) {
                        Ok(true) => {}
                        Ok(false) => {
                            tries += 1;
                            if tries == TRIES {
                                let path = segment_path(&self.dir, stream, &meta);
                                return Err(missing(path).into());
                            }
                            continue;
                        }
                        Err(error) if out.len() == before => return Err(error.into()),
                        // What lies before the damage is whole.
                        Err(_) => return Ok(out),
                    }
                }
                Source::Frames(frames) => match self.read_frames(stream, &frames, &mut out) {
                    Ok(()) => {}
                    Err(error) if out.len() == before => return Err(error.into()),
                    Err(_) => return Ok(out),
                },
            }
            if out.len() == before {
                return Ok(out);
            }
            for header in out[before..].iter().filter_map(|batch| Header::peek(batch).ok()) {
                records += header.count as usize;
                bytes += header.len;
                next = header.last().next();
            }
        }
    }

    fn locate(
        &self,
        id: StreamId,
        from: Seq,
        limits: ReadLimits,
        some: bool,
    ) -> Result<Source, ReadError> {
        let state = self.state();
        let stream = state.streams.get(&id).ok_or(ReadError::NoStream(id))?;
        if from < stream.bounds.start {
            return Err(ReadError::Truncated { start: stream.bounds.start });
        }
        if from > stream.bounds.synced {
            return Ok(Source::End);
        }
        let at = stream.segments.partition_point(|s| s.meta.through < from);
        if let Some(segment) = stream.segments.get(at) {
            return Ok(Source::Segment { meta: segment.meta.clone(), near: segment.near(from) });
        }
        Ok(Source::Frames(frames(&state, stream, from, limits, some)))
    }

    /// False if the segment is no longer there.
    fn read_segment(
        &self,
        id: StreamId,
        meta: &SegmentMeta,
        near: Option<(Seq, u64)>,
        from: Seq,
        limits: ReadLimits,
        out: &mut Vec<Bytes>,
    ) -> Result<bool, StoreError> {
        let path = segment_path(&self.dir, id, meta);
        let file = match self.disk.open(&path, false) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(StoreError::io(format!("open {}", path.display()), &e)),
        };
        let span = |(first, offset)| Span {
            file: &*file,
            path: &path,
            stream: id,
            first,
            offset,
            end: meta.bytes,
        };
        let near = match near {
            Some(near) => near,
            None => {
                let index = span((meta.first, 0)).index()?;
                let mut state = self.state();
                let found = segment_mut(&mut state, id, meta);
                let near = found.and_then(|segment| {
                    segment.index.get_or_insert(index);
                    segment.near(from)
                });
                near.unwrap_or((meta.first, 0))
            }
        };
        let hint = span(near).read(from, limits, out)?;
        if let Some(segment) = segment_mut(&mut self.state(), id, meta) {
            segment.hint = hint;
        }
        Ok(true)
    }

    fn read_frames(
        &self,
        id: StreamId,
        frames: &[(Frame, Arc<dyn DiskFile>)],
        out: &mut Vec<Bytes>,
    ) -> Result<(), StoreError> {
        let mut rest = frames;
        while let Some((first, file)) = rest.first() {
            let run = run_of(rest);
            let bytes: usize = rest[..run].iter().map(|(f, _)| f.bytes as usize).sum();
            let path = || journal_path(&self.dir, first.file);
            let mut buffer = BytesMut::zeroed(bytes);
            file.read_at(u64::from(first.offset), &mut buffer)
                .map_err(|e| StoreError::io(format!("read {}", path().display()), &e))?;
            let mut buffer = buffer.freeze();
            for (frame, _) in &rest[..run] {
                let batch = buffer.split_to(frame.bytes as usize);
                let whole = BatchRef::parse(&batch);
                let is_it = |b: &BatchRef<'_>| b.stream() == id && b.header().first == frame.first;
                let what = match whole {
                    Ok(parsed) if is_it(&parsed) => {
                        out.push(batch);
                        continue;
                    }
                    Ok(_) => "another batch than was written here".into(),
                    Err(error) => error.to_string(),
                };
                let offset = u64::from(frame.offset);
                return Err(StoreError::Damaged { file: path(), offset, what });
            }
            rest = &rest[run..];
        }
        Ok(())
    }
}

/// The frames from the one that contains `from` on, within `limits`; none may
/// be too much if there is `some` batch already.
fn frames(
    state: &State,
    stream: &Stream,
    from: Seq,
    limits: ReadLimits,
    some: bool,
) -> Vec<(Frame, Arc<dyn DiskFile>)> {
    let skip = stream.frames.partition_point(|f| f.last() < from);
    let (mut records, mut bytes, mut found) = (0, 0, Vec::new());
    for frame in stream.frames.range(skip..) {
        records += frame.count as usize;
        bytes += frame.bytes as usize;
        let any = some || !found.is_empty();
        if any && (records > limits.records_max || bytes > limits.bytes_max) {
            break;
        }
        let Some(file) = state.files.get(&frame.file) else { break };
        found.push((*frame, file.file.clone()));
    }
    found
}

/// How many frames at the front lie back to back in one file.
fn run_of(frames: &[(Frame, Arc<dyn DiskFile>)]) -> usize {
    let joins = |pair: &[(Frame, Arc<dyn DiskFile>)]| {
        let (a, b) = (&pair[0].0, &pair[1].0);
        a.file == b.file && a.offset + a.bytes == b.offset
    };
    1 + frames.windows(2).take_while(|pair| joins(pair)).count()
}

fn segment_mut<'a>(
    state: &'a mut State,
    id: StreamId,
    meta: &SegmentMeta,
) -> Option<&'a mut super::state::Segment> {
    let segments = &mut state.streams.get_mut(&id)?.segments;
    let same = |s: &&mut super::state::Segment| {
        s.meta.first == meta.first && s.meta.rewrites == meta.rewrites
    };
    segments.iter_mut().find(same)
}

fn missing(file: PathBuf) -> StoreError {
    StoreError::Damaged { file, offset: 0, what: "the segment's file is gone".into() }
}
