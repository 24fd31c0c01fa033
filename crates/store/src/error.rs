//! What can befall an engine.

use std::io;
use std::path::PathBuf;

/// Whether an operation that failed may have happened all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did not happen and never will: safe to try again.
    NotDone,
    /// It may be found done after a restart.
    Unknown,
}

/// A fact about the disk or the bytes on it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The device or the quota is full; nothing of the operation is kept.
    #[error("no space left: {what}")]
    NoSpace {
        /// What was being written.
        what: String,
    },
    /// A write or a sync failed. The engine answers this to every write until
    /// it is opened again: what reached the disk is unknown.
    #[error("read-only after a failed {what}: {cause}")]
    Failed {
        /// Which call failed, on which file.
        what: String,
        /// What the system said.
        cause: String,
    },
    /// Bytes that do not have the checksum they were written with.
    #[error("damaged: {file} at byte {offset}: {what}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// Another process holds the folder.
    #[error("the folder {0} is in use by another process")]
    Locked(PathBuf),
    /// An operating system error on the way in or out, with nothing changed.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        cause: String,
    },
    /// The format on disk is from another version.
    #[error("{what} has format version {found}, this build reads {known}")]
    Version {
        /// What carries the version.
        what: String,
        /// The version found.
        found: u32,
        /// The version this build knows.
        known: u32,
    },
}

impl StoreError {
    /// An `Io` fact, or `NoSpace` where the system says so.
    pub fn io(what: impl Into<String>, error: &io::Error) -> Self {
        let what = what.into();
        if is_no_space(error) {
            return Self::NoSpace { what };
        }
        Self::Io { what, cause: error.to_string() }
    }

    /// May the operation have happened all the same?
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Failed { .. } => Outcome::Unknown,
            _ => Outcome::NotDone,
        }
    }
}

pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
