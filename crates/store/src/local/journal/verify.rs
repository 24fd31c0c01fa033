//! Checking a log that no process holds: every checksum, every place.
//!
//! Changes nothing.

use std::path::{Path, PathBuf};

use tideline_types::{Epoch, Seq, StreamId};

use super::keep::span;
use super::manifest::{Manifest, journal_number, journal_path, segment_path};
use super::recover::{advance, list, shares};
use super::round;
use crate::StoreError;
use crate::disk::Disk;

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In which file.
    pub file: PathBuf,
    /// At which byte.
    pub offset: u64,
    /// What.
    pub what: String,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Streams.
    pub streams: u64,
    /// Batches.
    pub batches: u64,
    /// Records.
    pub records: u64,
    /// Bytes of batches.
    pub bytes: u64,
    /// Each stream's present epoch and last number, in order of streams.
    pub ends: Vec<(StreamId, Epoch, Seq)>,
    /// A torn tail, which the next opening cuts: not a finding.
    pub torn: Option<Finding>,
    /// All that is wrong; empty for a sound log.
    pub findings: Vec<Finding>,
}

impl Verified {
    fn find(&mut self, error: StoreError) -> Result<(), StoreError> {
        match error {
            StoreError::Damaged { file, offset, what } => {
                self.findings.push(Finding { file, offset, what });
                Ok(())
            }
            other => Err(other),
        }
    }
}

/// Reads every batch of the log in `dir`. `Err` if it cannot be read at all;
/// damage is a finding.
pub fn verify_journal(disk: &dyn Disk, dir: &Path) -> Result<Verified, StoreError> {
    let mut out = Verified::default();
    let mut manifest = match Manifest::load(disk, dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            for part in ["journal", "streams"] {
                for file in list(disk, &dir.join(part))? {
                    let what = "the manifest is gone, and this file belongs to it".into();
                    out.findings.push(Finding { file, offset: 0, what });
                }
            }
            return Ok(out);
        }
        Err(error) => {
            out.find(error)?;
            return Ok(out);
        }
    };
    out.streams = manifest.streams.len() as u64;
    verify_segments(disk, dir, &manifest, &mut out)?;
    verify_files(disk, dir, &mut manifest, &mut out)?;
    out.ends = manifest.streams.iter().map(|(id, s)| (*id, s.epoch(), s.filled())).collect();
    Ok(out)
}

fn verify_segments(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    out: &mut Verified,
) -> Result<(), StoreError> {
    for (id, stream) in &manifest.streams {
        let mut due = stream.start;
        for meta in &stream.segments {
            let path = segment_path(dir, *id, meta);
            let finding = |what: String| Finding { file: path.clone(), offset: 0, what };
            if meta.first != due {
                out.findings.push(finding(format!("begins at {} where {due} is due", meta.first)));
            }
            due = meta.through.next();
            let file = match disk.open(&path, false) {
                Ok(file) => file,
                Err(error) => {
                    out.findings.push(finding(error.to_string()));
                    continue;
                }
            };
            let mut last = meta.first.prev();
            let (mut batches, mut records) = (0, 0);
            let walked = span(&*file, &path, *id, meta).verify(&mut |batch, _, _| {
                batches += 1;
                records += u64::from(batch.count());
                last = batch.range().through;
                Ok(())
            });
            out.batches += batches;
            out.records += records;
            out.bytes += meta.bytes;
            match walked {
                Err(error) => out.find(error)?,
                Ok(()) if last != meta.through => {
                    let what = format!("ends with {last} where {} is due", meta.through);
                    out.findings.push(finding(what));
                }
                Ok(()) => {}
            }
        }
    }
    Ok(())
}

fn verify_files(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &mut Manifest,
    out: &mut Verified,
) -> Result<(), StoreError> {
    let mut numbers: Vec<u64> =
        list(disk, &dir.join("journal"))?.iter().filter_map(|p| journal_number(p)).collect();
    numbers.sort_unstable();
    numbers.retain(|n| *n > manifest.filled);
    let mut next_round = None;
    for (n, number) in numbers.iter().enumerate() {
        let path = journal_path(dir, *number);
        let due = manifest.filled + 1 + n as u64;
        if *number != due {
            let file = journal_path(dir, due);
            out.findings.push(Finding { file, offset: 0, what: "the file is gone".into() });
        }
        let io = |e: std::io::Error| StoreError::io(format!("read {}", path.display()), &e);
        let file = disk.open(&path, false).map_err(io)?;
        let mut image = vec![0; file.len().map_err(io)? as usize];
        file.read_at(0, &mut image).map_err(io)?;
        let scan = round::scan(&image, next_round, n + 1 == numbers.len());
        next_round = Some(scan.next_round);
        if let Some(what) = scan.torn {
            let finding = Finding { file: path, offset: scan.end, what };
            if scan.damaged {
                out.findings.push(finding);
            } else {
                out.torn = Some(finding);
            }
        }
        match shares(dir, *number, manifest, &scan.batches) {
            Err(error) => out.find(error)?,
            Ok(shares) => {
                for share in shares {
                    out.batches += share.frames.len() as u64;
                    out.records += share.frames.iter().map(|f| u64::from(f.count)).sum::<u64>();
                    out.bytes += share.frames.iter().map(|f| u64::from(f.bytes)).sum::<u64>();
                    advance(manifest, &share);
                }
            }
        }
    }
    Ok(())
}
