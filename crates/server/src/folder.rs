//! The data folder: who may use it, and what lies where in it.
//!
//! ```text
//! data/
//!   LOCK      held by the process that uses the folder
//!   FORMAT    says that this is a data folder, and of which version
//!   log/      the journal: the truth
//!   tables/   views at rest: day rows, catalogue, topics, tokens
//! ```
//! A backup has the same shape, and gets its FORMAT last: a folder without one
//! is no whole backup.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tideline_store::StoreError;
use tideline_store::local::FolderLock;

/// The whole of FORMAT.
const FORMAT: &str = "tideline data folder, format 1\n";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// Another process holds it.
    #[error("{0} is in use by another tideline process")]
    InUse(PathBuf),
    /// It holds something else, or half of something.
    #[error("{0} is not empty, and not a data folder of this version (no FORMAT that says so)")]
    NotOurs(PathBuf),
    /// There is nothing there.
    #[error("{0} is not a data folder")]
    Missing(PathBuf),
    /// It should be empty and is not.
    #[error("{0} is not empty")]
    NotEmpty(PathBuf),
    /// The system said no.
    #[error("{path}: {cause}")]
    Io {
        /// On what.
        path: PathBuf,
        /// What it said.
        cause: String,
    },
}

/// A data folder that this process holds until it is dropped.
#[derive(Debug)]
pub(crate) struct DataFolder {
    lock: FolderLock,
}

impl DataFolder {
    /// Takes the folder at `root`, made where there is none.
    pub(crate) fn open_or_make(root: &Path) -> Result<Self, FolderError> {
        fs::create_dir_all(root).map_err(|e| io_error(root, &e))?;
        if !has_format(root)? && !is_empty(root)? {
            return Err(FolderError::NotOurs(root.into()));
        }
        let folder = Self::take(root)?;
        if !has_format(root)? {
            write_format(root)?;
        }
        Ok(folder)
    }

    /// Takes the folder at `root`, which must be there.
    pub(crate) fn open(root: &Path) -> Result<Self, FolderError> {
        if !root.is_dir() || !has_format(root)? {
            return Err(FolderError::Missing(root.into()));
        }
        Self::take(root)
    }

    fn take(root: &Path) -> Result<Self, FolderError> {
        match FolderLock::take(root) {
            Ok(lock) => Ok(Self { lock }),
            Err(StoreError::Locked(root)) => Err(FolderError::InUse(root)),
            Err(error) => Err(FolderError::Io { path: root.into(), cause: error.to_string() }),
        }
    }

    /// Where the journal lies.
    pub(crate) fn log(&self) -> PathBuf {
        self.lock.dir().join("log")
    }

    /// Where the tables lie.
    pub(crate) fn tables(&self) -> PathBuf {
        self.lock.dir().join("tables")
    }
}

/// Refuses a `root` that holds anything; makes it where there is none.
pub(crate) fn make_empty(root: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(root).map_err(|e| io_error(root, &e))?;
    if is_empty(root)? { Ok(()) } else { Err(FolderError::NotEmpty(root.into())) }
}

/// Marks `root` as a whole data folder, durably: the last thing that is
/// written into a copy.
pub(crate) fn write_format(root: &Path) -> Result<(), FolderError> {
    let (path, fresh) = (root.join("FORMAT"), root.join("FORMAT.new"));
    let write = || -> io::Result<()> {
        let mut file = File::create(&fresh)?;
        file.write_all(FORMAT.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)?;
        File::open(root)?.sync_all()
    };
    write().map_err(|e| io_error(&path, &e))
}

/// Copies the data folder or backup `from` into the empty folder `into`, which
/// is none before [`write_format`]; every byte is on disk on return. Returns
/// the bytes copied.
pub(crate) fn copy(from: &Path, into: &Path) -> Result<u64, FolderError> {
    if !from.is_dir() || !has_format(from)? {
        return Err(FolderError::Missing(from.into()));
    }
    make_empty(into)?;
    let mut bytes = 0;
    for part in ["log", "tables"] {
        bytes += copy_tree(&from.join(part), &into.join(part))?;
    }
    Ok(bytes)
}

fn copy_tree(from: &Path, into: &Path) -> Result<u64, FolderError> {
    let failed = |e: io::Error| io_error(from, &e);
    fs::create_dir(into).map_err(|e| io_error(into, &e))?;
    let mut bytes = 0;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let target = into.join(entry.file_name());
        if entry.file_type().map_err(failed)?.is_dir() {
            bytes += copy_tree(&entry.path(), &target)?;
        } else {
            let copied = fs::copy(entry.path(), &target);
            bytes += copied.map_err(|e| io_error(&target, &e))?;
            File::open(&target).and_then(|f| f.sync_all()).map_err(|e| io_error(&target, &e))?;
        }
    }
    File::open(into).and_then(|f| f.sync_all()).map_err(|e| io_error(into, &e))?;
    Ok(bytes)
}

fn has_format(root: &Path) -> Result<bool, FolderError> {
    let path = root.join("FORMAT");
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text == FORMAT),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_error(&path, &error)),
    }
}

/// What a first start that failed leaves behind counts as nothing.
fn is_empty(root: &Path) -> Result<bool, FolderError> {
    let mut entries = fs::read_dir(root).map_err(|e| io_error(root, &e))?;
    let nothing = |name: &std::ffi::OsStr| name == "LOCK" || name == "FORMAT.new";
    Ok(entries.all(|entry| entry.is_ok_and(|entry| nothing(&entry.file_name()))))
}

fn io_error(path: &Path, error: &io::Error) -> FolderError {
    FolderError::Io { path: path.into(), cause: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_by_one_process_and_kept_apart_from_other_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("data");
        assert!(matches!(DataFolder::open(&root), Err(FolderError::Missing(_))));
        let held = DataFolder::open_or_make(&root).unwrap();
        assert!(matches!(DataFolder::open_or_make(&root), Err(FolderError::InUse(_))));
        drop(held);
        DataFolder::open(&root).unwrap();
        let other = dir.path().join("photos");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("a.jpg"), "x").unwrap();
        assert!(matches!(DataFolder::open_or_make(&other), Err(FolderError::NotOurs(_))));
    }

    #[test]
    fn a_copy_is_whole_and_goes_into_an_empty_folder_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (from, into) = (dir.path().join("a"), dir.path().join("b"));
        drop(DataFolder::open_or_make(&from).unwrap());
        fs::create_dir_all(from.join("log/0")).unwrap();
        fs::create_dir_all(from.join("tables")).unwrap();
        fs::write(from.join("log/0/x"), "12345").unwrap();
        assert_eq!(copy(&from, &into).unwrap(), 5);
        assert!(matches!(DataFolder::open(&into), Err(FolderError::Missing(_))));
        write_format(&into).unwrap();
        drop(DataFolder::open(&into).unwrap());
        assert_eq!(fs::read(into.join("log/0/x")).unwrap(), b"12345");
        assert!(matches!(copy(&from, &into), Err(FolderError::NotEmpty(_))));
        fs::remove_file(from.join("FORMAT")).unwrap();
        assert!(matches!(copy(&from, &dir.path().join("c")), Err(FolderError::Missing(_))));
    }
}
