//! Opening: finds what was kept, names what is damaged, and brings what is
//! left in journal files into segments before anything is served.
//!
//! The last round of the last journal file may be torn, and is cut to its last
//! whole batch. Everything before it was synced, so that anything amiss there
//! is damage: the log is not opened, and nothing is cut.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tideline_types::{Seq, StreamId};

use super::fill::{Share, fill, segment_bytes};
use super::manifest::{
    Manifest, StreamMeta, journal_number, journal_path, segment_path, stream_dir,
};
use super::round;
use super::state::{Frame, State, Stream};
use crate::StoreError;
use crate::disk::Disk;

/// What an opening found at the end of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Batches that were in journal files, and are in segments now.
    pub batches: u64,
    /// The torn tail that was cut: file, from which byte, what was there.
    pub torn: Option<(PathBuf, u64, String)>,
}

pub(super) fn open(
    disk: &dyn Disk,
    dir: &Path,
    file_bytes: u64,
) -> Result<(Manifest, State, Recovered), StoreError> {
    let io = |e: std::io::Error| StoreError::io(format!("open {}", dir.display()), &e);
    let mut manifest = load(disk, dir)?;
    for (id, stream) in &manifest.streams {
        check_stream(disk, dir, *id, stream)?;
    }
    let mut recovered = Recovered::default();
    let mut numbers: Vec<u64> =
        list(disk, &dir.join("journal"))?.iter().filter_map(|p| journal_number(p)).collect();
    numbers.sort_unstable();
    let greatest = numbers.last().copied().unwrap_or(0).max(manifest.filled);
    let (void, live): (Vec<_>, Vec<_>) = numbers.iter().partition(|n| **n <= manifest.filled);
    let mut next_round = None;
    let images = live.iter().enumerate().map(|(n, number)| (*number, n + 1 == live.len()));
    // First all are read, so that damage anywhere leaves all as it was; a
    // second pass holds one file's bytes at a time.
    let mut expected = None;
    let mut check = manifest.clone();
    for (n, (number, last)) in images.clone().enumerate() {
        let due = manifest.filled + 1 + n as u64;
        if number != due {
            let file = journal_path(dir, due);
            return Err(StoreError::Damaged { file, offset: 0, what: "the file is gone".into() });
        }
        let (_, scan) = scan_file(disk, dir, number, expected, last)?;
        expected = Some(scan.next_round);
        for share in shares(dir, number, &check, &scan.batches)? {
            advance(&mut check, &share);
        }
    }
    for (number, last) in images {
        let (image, scan) = scan_file(disk, dir, number, next_round, last)?;
        next_round = Some(scan.next_round);
        let shares = shares(dir, number, &manifest, &scan.batches)?;
        recovered.batches += shares.iter().map(|s| s.frames.len() as u64).sum::<u64>();
        if let Some(what) = scan.torn {
            recovered.torn = Some((journal_path(dir, number), scan.end, what));
        }
        let read = |at: u64, bytes: &mut [u8]| {
            let at = at as usize;
            bytes.copy_from_slice(&image[at..at + bytes.len()]);
            Ok(())
        };
        fill(disk, dir, &mut manifest, &read, &shares, file_bytes)?;
    }
    manifest.filled = greatest;
    manifest.next_round = manifest.next_round.max(next_round.unwrap_or(0));
    let manifest_bytes = manifest.store(disk, dir).map_err(io)?;
    for number in void.into_iter().chain(live) {
        disk.remove_file(&journal_path(dir, number)).map_err(io)?;
    }
    disk.sync_dir(&dir.join("journal")).map_err(io)?;
    sweep(disk, dir, &manifest)?;
    let state = State {
        writer_wants: usize::MAX,
        streams: manifest.streams.iter().map(|(id, s)| (*id, Stream::found(s))).collect(),
        next_file: greatest + 1,
        next_round: manifest.next_round,
        segment_bytes: segment_bytes(&manifest),
        manifest_bytes,
        ..State::default()
    };
    Ok((manifest, state, recovered))
}

/// The manifest, or that of an empty log where there is nothing at all.
fn load(disk: &dyn Disk, dir: &Path) -> Result<Manifest, StoreError> {
    if let Some(manifest) = Manifest::load(disk, dir)? {
        return Ok(manifest);
    }
    let io = |e: std::io::Error| StoreError::io(format!("make {}", dir.display()), &e);
    for part in ["journal", "streams"] {
        if let Some(file) = list(disk, &dir.join(part))?.into_iter().next() {
            let what = "the manifest is gone, and this file belongs to it".into();
            return Err(StoreError::Damaged { file, offset: 0, what });
        }
        disk.create_dir_all(&dir.join(part)).map_err(io)?;
    }
    let manifest = Manifest::default();
    manifest.store(disk, dir).map_err(io)?;
    if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
        disk.sync_dir(above).map_err(io)?;
    }
    Ok(manifest)
}

pub(super) fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match disk.list(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(|e| StoreError::io(format!("list {}", dir.display()), &e)),
    }
}

/// Every segment is there and long enough; what a filling left behind the last
/// one's end is cut.
fn check_stream(
    disk: &dyn Disk,
    dir: &Path,
    id: StreamId,
    stream: &StreamMeta,
) -> Result<(), StoreError> {
    for meta in &stream.segments {
        let path = segment_path(dir, id, meta);
        let io = |e: &std::io::Error| StoreError::io(format!("open {}", path.display()), e);
        let damaged = |what: &str| StoreError::Damaged {
            file: path.clone(),
            offset: 0,
            what: what.to_owned(),
        };
        let file = match disk.open(&path, false) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(damaged("the file is gone"));
            }
            opened => opened.map_err(|e| io(&e))?,
        };
        let bytes = file.len().map_err(|e| io(&e))?;
        if bytes < meta.bytes {
            return Err(damaged(&format!("{bytes} of {} bytes are left", meta.bytes)));
        }
        if bytes > meta.bytes {
            file.set_len(meta.bytes).and_then(|()| file.sync()).map_err(|e| io(&e))?;
        }
    }
    Ok(())
}

/// A journal file's bytes and what they are; damage is an error.
fn scan_file(
    disk: &dyn Disk,
    dir: &Path,
    number: u64,
    first_round: Option<u64>,
    last: bool,
) -> Result<(Vec<u8>, round::Scan), StoreError> {
    let path = journal_path(dir, number);
    let io = |e: std::io::Error| StoreError::io(format!("read {}", path.display()), &e);
    let file = disk.open(&path, false).map_err(io)?;
    let mut image = vec![0; file.len().map_err(io)? as usize];
    file.read_at(0, &mut image).map_err(io)?;
    let mut scan = round::scan(&image, first_round, last);
    if let Some(what) = scan.torn.take_if(|_| scan.damaged) {
        return Err(StoreError::Damaged { file: path, offset: scan.end, what });
    }
    Ok((image, scan))
}

/// What of a journal file's batches is not in segments yet, by stream. A hole
/// in a stream's numbers, or an epoch from nowhere, is damage.
pub(super) fn shares(
    dir: &Path,
    number: u64,
    manifest: &Manifest,
    batches: &[round::Found],
) -> Result<Vec<Share>, StoreError> {
    let mut shares = std::collections::BTreeMap::<StreamId, Share>::new();
    for found in batches {
        let header = &found.header;
        let Some(meta) = manifest.streams.get(&header.stream) else { continue };
        let share = shares
            .entry(header.stream)
            .or_insert_with(|| Share { stream: header.stream, frames: Vec::new() });
        let filled: Seq = share.frames.last().map_or(meta.filled(), Frame::last);
        if header.last() <= filled {
            continue;
        }
        if header.first != filled.next() || header.epoch > meta.epoch() {
            let what = format!(
                "batch {}/{} of epoch {} where {} of at most epoch {} is due",
                header.stream,
                header.first,
                header.epoch,
                filled.next(),
                meta.epoch()
            );
            let file = journal_path(dir, number);
            return Err(StoreError::Damaged { file, offset: found.offset, what });
        }
        share.frames.push(Frame {
            first: header.first,
            newest: header.newest,
            file: number,
            offset: found.offset as u32,
            bytes: header.len as u32,
            count: header.count,
        });
    }
    Ok(shares.into_values().filter(|share| !share.frames.is_empty()).collect())
}

/// Lets `check` stand where filling `share` would leave it.
pub(super) fn advance(check: &mut Manifest, share: &Share) {
    let last = share.frames.last().map(Frame::last);
    if let (Some(meta), Some(last)) = (check.streams.get_mut(&share.stream), last) {
        meta.segments.clear();
        meta.start = last.next();
    }
}

/// Removes what the manifest does not name.
fn sweep(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    let io = |e: std::io::Error| StoreError::io(format!("sweep {}", dir.display()), &e);
    let mut named = std::collections::BTreeSet::new();
    for (id, stream) in &manifest.streams {
        named.insert(stream_dir(dir, *id));
        named.extend(stream.segments.iter().map(|s| segment_path(dir, *id, s)));
    }
    for life in list(disk, &dir.join("streams"))? {
        for partition in list(disk, &life)? {
            let mut removed = false;
            for file in list(disk, &partition)? {
                if !named.contains(&file) {
                    disk.remove_file(&file).map_err(io)?;
                    removed = true;
                }
            }
            if !named.contains(&partition) {
                let _ = disk.remove_dir(&partition);
            } else if removed {
                disk.sync_dir(&partition).map_err(io)?;
            }
        }
        // Only goes if it is empty.
        let _ = disk.remove_dir(&life);
    }
    Ok(())
}
