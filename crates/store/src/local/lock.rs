//! One process per folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Holds a folder against every other process, until it is dropped or the
/// process ends, however it ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
    dir: PathBuf,
}

impl FolderLock {
    /// Takes the folder, and makes it if there is none. `Locked` if another
    /// process, or another lock of this one, has it.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        let io = |e: &std::io::Error| StoreError::io(format!("lock {}", dir.display()), e);
        fs::create_dir_all(dir).map_err(|e| io(&e))?;
        let path = dir.join("LOCK");
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let file = options.open(path).map_err(|e| io(&e))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file, dir: dir.to_path_buf() }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked(dir.to_path_buf())),
            Err(TryLockError::Error(error)) => Err(io(&error)),
        }
    }

    /// The folder that is held.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_once_and_free_again_after() {
        let dir = tempfile::tempdir().unwrap();
        let held = FolderLock::take(dir.path()).unwrap();
        assert!(matches!(FolderLock::take(dir.path()), Err(StoreError::Locked(_))));
        drop(held);
        FolderLock::take(dir.path()).unwrap();
    }
}
