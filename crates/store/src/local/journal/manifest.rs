//! What the log consists of: the one file that says which streams there are,
//! which bytes of which segments are theirs, and which journal files are
//! already in segments. Replaced as a whole; whatever it does not name is not
//! part of the log.
//!
//! ```text
//! 0 "TLJM"   4 version (1) u32   8 CRC-32C of what follows u32
//! 12 filled u64, next round u64, count of streams u32, then each stream:
//!    incarnation u64, partition u16, start u64,
//!    count of epochs u32, each: epoch u32, first u64
//!    count of segments u32, each: first u64, through u64, bytes u64,
//!                                 newest i64, rewrites u32
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, StreamId};

use crate::disk::Disk;
use crate::{EpochStart, StoreError};

const MAGIC: &[u8; 4] = b"TLJM";
const VERSION: u32 = 1;
const NAME: &str = "manifest";
/// Room for the manifest's next replacement on a full disk.
const RESERVE: &str = "reserve";
const RESERVE_PAGE: usize = 4 << 10;

/// A run of a stream's batches in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentMeta {
    /// The number of its first record.
    pub(super) first: Seq,
    /// The number of its last record.
    pub(super) through: Seq,
    /// Its bytes; what the file holds beyond is no part of it.
    pub(super) bytes: u64,
    /// The greatest time of a record.
    pub(super) newest: Millis,
    /// How often it was rewritten by an erase; part of its name.
    pub(super) rewrites: u32,
}

/// A stream at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamMeta {
    pub(super) start: Seq,
    pub(super) epochs: Vec<EpochStart>,
    pub(super) segments: Vec<SegmentMeta>,
}

impl StreamMeta {
    pub(super) fn new() -> Self {
        Self { start: Seq(1), epochs: Vec::new(), segments: Vec::new() }
    }

    /// The last number that is in a segment, or was before it was freed.
    pub(super) fn filled(&self) -> Seq {
        let last = self.segments.last().map_or(Seq::ZERO, |s| s.through);
        last.max(self.start.prev())
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epochs.last().map_or(Epoch(0), |e| e.epoch)
    }
}

/// The log at rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Journal files up to this number are in segments, and are void.
    pub(super) filled: u64,
    /// No round up to here was written by an earlier opening.
    pub(super) next_round: u64,
    pub(super) streams: BTreeMap<StreamId, StreamMeta>,
}

impl Manifest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let out = &mut body;
        put(out, self.filled);
        put(out, self.next_round);
        count(out, self.streams.len());
        for (id, stream) in &self.streams {
            put(out, id.incarnation.0);
            out.extend(id.partition.0.to_le_bytes());
            put(out, stream.start.0);
            count(out, stream.epochs.len());
            for start in &stream.epochs {
                out.extend(start.epoch.0.to_le_bytes());
                put(out, start.first.0);
            }
            count(out, stream.segments.len());
            for segment in &stream.segments {
                put(out, segment.first.0);
                put(out, segment.through.0);
                put(out, segment.bytes);
                out.extend(segment.newest.0.to_le_bytes());
                out.extend(segment.rewrites.to_le_bytes());
            }
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(crc32c::crc32c(&body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// `Err` says what is wrong, and where; a version is told apart.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, BadManifest> {
        let mut from = Reader(bytes);
        if from.take().ok() != Some(*MAGIC) {
            return Err(BadManifest::What("not a manifest"));
        }
        let version = u32::from_le_bytes(from.take()?);
        if version != VERSION {
            return Err(BadManifest::Version(version));
        }
        if u32::from_le_bytes(from.take()?) != crc32c::crc32c(from.0) {
            return Err(BadManifest::What("checksum"));
        }
        let mut manifest =
            Self { filled: from.u64()?, next_round: from.u64()?, streams: BTreeMap::new() };
        for _ in 0..from.u32()? {
            let id = StreamId {
                incarnation: Incarnation(from.u64()?),
                partition: PartitionId(u16::from_le_bytes(from.take()?)),
            };
            let mut stream = StreamMeta { start: Seq(from.u64()?), ..StreamMeta::new() };
            for _ in 0..from.u32()? {
                let (epoch, first) = (Epoch(from.u32()?), Seq(from.u64()?));
                stream.epochs.push(EpochStart { epoch, first });
            }
            for _ in 0..from.u32()? {
                stream.segments.push(SegmentMeta {
                    first: Seq(from.u64()?),
                    through: Seq(from.u64()?),
                    bytes: from.u64()?,
                    newest: Millis(i64::from_le_bytes(from.take()?)),
                    rewrites: from.u32()?,
                });
            }
            manifest.streams.insert(id, stream);
        }
        if from.0.is_empty() { Ok(manifest) } else { Err(BadManifest::What("too long")) }
    }

    /// The manifest of `dir`; `None` if there is none.
    pub(super) fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(NAME);
        let io = |e: std::io::Error| StoreError::io(format!("read {}", path.display()), &e);
        let file = match disk.open(&path, false) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io)?,
        };
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        file.read_at(0, &mut bytes).map_err(io)?;
        match Self::decode(&bytes) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(BadManifest::Version(found)) => {
                Err(StoreError::Version { what: path.display().to_string(), found, known: VERSION })
            }
            Err(BadManifest::What(what)) => {
                Err(StoreError::Damaged { file: path, offset: 0, what: what.into() })
            }
        }
    }

    /// Replaces the manifest of `dir`; durable on return. Answers its bytes
    /// and the reserve's. On a full disk it takes the room of the reserve, so that what frees bytes
    /// can be written when nothing else can.
    pub(super) fn store(&self, disk: &dyn Disk, dir: &Path) -> std::io::Result<u64> {
        let reserve = dir.join(RESERVE);
        let stored = match self.replace(disk, dir) {
            Err(e) if is_full(&e) && disk.remove_file(&reserve).is_ok() => self.replace(disk, dir),
            stored => stored,
        };
        let bytes = stored?;
        // Without room for one, the next replacement may fail, and says so.
        let _ = set_aside(disk, &reserve, 2 * bytes);
        Ok(bytes + (2 * bytes).next_multiple_of(RESERVE_PAGE as u64))
    }

    fn replace(&self, disk: &dyn Disk, dir: &Path) -> std::io::Result<u64> {
        let (bytes, temporary) = (self.encode(), dir.join("manifest.tmp"));
        let file = disk.open(&temporary, true)?;
        file.set_len(0)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        disk.rename(&temporary, &dir.join(NAME))?;
        disk.sync_dir(dir)?;
        Ok(bytes.len() as u64)
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// Has a file of at least `bytes`, in whole pages.
fn set_aside(disk: &dyn Disk, path: &Path, bytes: u64) -> std::io::Result<()> {
    let page = vec![0; RESERVE_PAGE];
    let file = disk.open(path, true)?;
    let mut len = file.len()?;
    while len < bytes {
        file.write_at(len, &page)?;
        len += page.len() as u64;
    }
    Ok(())
}

/// Why bytes are no manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadManifest {
    Version(u32),
    What(&'static str),
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

fn count(out: &mut Vec<u8>, n: usize) {
    out.extend((n as u32).to_le_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadManifest> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(BadManifest::What("too short"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, BadManifest> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadManifest> {
        self.take().map(u64::from_le_bytes)
    }
}

/// Folder of a stream's segments.
pub(super) fn stream_dir(dir: &Path, id: StreamId) -> PathBuf {
    dir.join("streams").join(id.incarnation.to_string()).join(id.partition.to_string())
}

/// File of a segment.
pub(super) fn segment_path(dir: &Path, id: StreamId, segment: &SegmentMeta) -> PathBuf {
    let name = match segment.rewrites {
        0 => format!("{:020}.seg", segment.first),
        n => format!("{:020}.{n}.seg", segment.first),
    };
    stream_dir(dir, id).join(name)
}

/// File of the journal of that number.
pub(super) fn journal_path(dir: &Path, number: u64) -> PathBuf {
    dir.join("journal").join(format!("{number:020}.log"))
}

/// The number in the name of a journal file.
pub(super) fn journal_number(path: &Path) -> Option<u64> {
    if path.extension()? != "log" {
        return None;
    }
    path.file_stem()?.to_str()?.parse().ok()
}

/// What a fuzzer feeds.
pub fn fuzz_manifest(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    // Magic, version, checksum, and what it covers.
    if let Some((head, rest)) = sealed.split_at_mut_checked(12) {
        head[8..].copy_from_slice(&crc32c::crc32c(rest).to_le_bytes());
    }
    for bytes in [bytes, &sealed] {
        if let Ok(manifest) = Manifest::decode(bytes) {
            assert_eq!(Manifest::decode(&manifest.encode()).ok(), Some(manifest));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Manifest {
        let id = StreamId { incarnation: Incarnation(7), partition: PartitionId(3) };
        let segment = SegmentMeta {
            first: Seq(2),
            through: Seq(9),
            bytes: 300,
            newest: Millis(-1),
            rewrites: 1,
        };
        let stream = StreamMeta {
            start: Seq(2),
            epochs: vec![EpochStart { epoch: Epoch(4), first: Seq(1) }],
            segments: vec![segment],
        };
        Manifest { filled: 5, next_round: 6, streams: [(id, stream)].into() }
    }

    #[test]
    fn the_bytes_of_a_manifest_never_change() {
        let hex: String = sample().encode().iter().map(|b| format!("{b:02x}")).collect();
        let golden = "544c4a4d01000000efc77db305000000000000000600000000000000010000000700000000000000030002000000000000000100000004000000010000000000000001000000020000000000000009000000000000002c01000000000000ffffffffffffffff01000000";
        assert_eq!(hex, golden);
        assert_eq!(Manifest::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&bad).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn a_segment_is_named_by_its_first_number_and_its_rewrites() {
        let (id, stream) = sample().streams.into_iter().next().unwrap();
        let path = segment_path(Path::new("/d"), id, &stream.segments[0]);
        assert_eq!(path, Path::new("/d/streams/7/3/00000000000000000002.1.seg"));
        assert_eq!(journal_number(&journal_path(Path::new("/d"), 12)), Some(12));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_manifest(&bytes);
        }
    }
}
