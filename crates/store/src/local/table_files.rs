//! What an [`LsmTable`](super::LsmTable) knows of its engine's files: which
//! file is damaged and where, how much disk they take, which are there.
//!
//! A tree's data file begins with blocks, one after the other:
//!
//! ```text
//! "LSM" 3 | type u8 | xxh3-128 of the data u128 | data length u32
//!         | length before compression u32 | low half of the header's hash u32 | data
//! ```
//!
//! and its whole has a checksum in the tree's manifest.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fjall::{AbstractTree, Keyspace, LsmError};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::StoreError;

/// The fact behind an engine's error.
pub(super) fn fact(dir: &Path, what: &'static str, error: fjall::Error) -> StoreError {
    let damaged = |file: &Path, what: String| StoreError::Damaged {
        file: file.to_path_buf(),
        offset: 0,
        what,
    };
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => {
            match error.kind() {
                // `InvalidInput` is a seek to where a damaged length or offset points.
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::InvalidData
                | io::ErrorKind::InvalidInput => damaged(dir, format!("{what}: {error}")),
                _ => StoreError::io(what, &error),
            }
        }
        fjall::Error::Storage(error) => {
            first_damage(dir).unwrap_or_else(|| damaged(dir, format!("{what}: {error:?}")))
        }
        fjall::Error::InvalidVersion(found) => StoreError::Version {
            what: format!("table in {}", dir.display()),
            found: found.map_or(0, |version| version as u32),
            known: 3,
        },
        fjall::Error::Poisoned => StoreError::Failed {
            what: format!("{what} (table in {})", dir.display()),
            cause: "an earlier write, sync or merge failed".into(),
        },
        fjall::Error::Locked => StoreError::Locked(dir.to_path_buf()),
        error => damaged(dir, format!("{what}: {error:?}")),
    }
}

/// Reads every data file of `space` and holds it against its checksum.
pub(super) fn verify(space: &Keyspace) -> Result<(), StoreError> {
    for table in space.tree.current_version().iter_tables() {
        let mut hash = Xxh3::new();
        let read = File::open(&*table.path).and_then(|mut file| {
            let mut chunk = vec![0; 256 << 10];
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(()),
                    n => hash.update(&chunk[..n]),
                }
            }
        });
        read.map_err(|e| StoreError::io(format!("read {}", table.path.display()), &e))?;
        if hash.digest128() != table.checksum().into_u128() {
            return Err(damage_in(&table.path).unwrap_or_else(|| StoreError::Damaged {
                file: table.path.to_path_buf(),
                offset: 0,
                what: "the file does not have its checksum".into(),
            }));
        }
    }
    Ok(())
}

/// The first damaged block of any data file, if one is found.
fn first_damage(dir: &Path) -> Option<StoreError> {
    all(dir).iter().filter(|file| is_data(file)).find_map(|file| damage_in(file))
}

fn is_data(file: &Path) -> bool {
    file.parent().is_some_and(|parent| parent.ends_with("tables"))
}

const HEADER_BYTES: usize = 33;
const MAGIC: [u8; 4] = [b'L', b'S', b'M', 3];

/// One block of a data file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    /// Its first byte in the file.
    pub(super) offset: usize,
    /// Whether header and data have their checksums.
    pub(super) sound: bool,
    /// The data as on disk.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) data: &'a [u8],
    /// The length of the data before compression.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) plain_length: usize,
}

/// The run of blocks that `file` begins with; ends after the first one whose
/// header is not sound.
pub(super) fn blocks(file: &[u8]) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some(header) = file.get(offset..offset + HEADER_BYTES) {
        if header[..4] != MAGIC {
            break;
        }
        let u32_at = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (length, plain_length) = (u32_at(21) as usize, u32_at(25) as usize);
        let header_sound = xxh3_128(&header[..29]) as u32 == u32_at(29);
        let data = file.get(offset + HEADER_BYTES..offset + HEADER_BYTES + length);
        let data_sound = data.is_some_and(|data| xxh3_128(data).to_le_bytes() == header[5..21]);
        let sound = header_sound && data_sound;
        found.push(Block { offset, sound, data: data.unwrap_or_default(), plain_length });
        if !header_sound {
            break;
        }
        offset += HEADER_BYTES + length;
    }
    found
}

fn damage_in(file: &Path) -> Option<StoreError> {
    let bytes = fs::read(file).ok()?;
    let bad = blocks(&bytes).into_iter().find(|block| !block.sound)?;
    Some(StoreError::Damaged {
        file: file.to_path_buf(),
        offset: bad.offset as u64,
        what: "a block does not have its checksum".into(),
    })
}

/// Every file below `dir`, in order; what vanishes meanwhile is left out.
pub(super) fn all(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.append(&mut all(&entry.path())),
            Ok(_) => found.push(entry.path()),
            Err(_) => {}
        }
    }
    found.sort();
    found
}

/// The journal files directly in `dir`.
pub(super) fn journals(dir: &Path) -> Vec<PathBuf> {
    let mut files = all(dir);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jnl"));
    files
}

/// Disk blocks that the files below `dir` hold, in bytes.
pub(super) fn disk_bytes(dir: &Path) -> u64 {
    let blocks = |file: PathBuf| file.metadata().map_or(0, |meta| meta.blocks());
    all(dir).into_iter().map(blocks).sum::<u64>() * 512
}

/// Makes the entry of `file` in its folder survive power loss.
pub(super) fn sync_dir_of(file: &Path) -> Result<(), StoreError> {
    file.parent().map_or(Ok(()), sync)
}

fn sync(path: &Path) -> Result<(), StoreError> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|e| StoreError::io(format!("sync {}", path.display()), &e))
}

/// Makes every file and folder entry below `dir` survive power loss.
pub(super) fn sync_dirs(dir: &Path) -> Result<(), StoreError> {
    for file in all(dir) {
        sync(&file)?;
        for parent in file.ancestors().skip(1).take_while(|parent| parent.starts_with(dir)) {
            sync(parent)?;
        }
    }
    sync_dir_of(dir)
}
