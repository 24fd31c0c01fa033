//! Files, as the journal sees them: the seam where faults are put in.

mod faulty;
mod real;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use faulty::{Crash, Fault, Faults, FaultyDisk, KeepAll, Kept, LoseAll, OpKind, Operation};
pub use real::RealDisk;

/// An open file. Law: bytes written are readable at once by this process, and
/// survive power loss only after `sync` returned `Ok`; after a failed `sync`
/// nothing may be assumed about any write since the last good one.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`, extending the file where needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Fills `into` from `offset`; `UnexpectedEof` if the file ends first.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or extends (with zeroes) to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes every byte written so far, and the length, survive power loss.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of files. Law: a file that was created, renamed or removed is so
/// after power loss only once `sync_dir` of its folder returned `Ok`.
pub trait Disk: Send + Sync + 'static {
    /// Opens `path` for reading and writing; creates it if `create`.
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// The files and folders directly in `dir`, sorted by name.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes `dir` and what is above it.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Replaces `to` by `from` in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of `dir` survive power loss.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}
