//! What everything stands on: the clock, the journal, the tables, in a folder
//! that this process holds.

use std::path::Path;
use std::sync::Arc;

use tideline_store::local::{JournalOptions, LocalJournal, LsmOptions, LsmTable};
use tideline_store::{Clock, Journal, RealClock, StoreError, Table};

use crate::folder::{self, DataFolder, FolderError};

/// Why the engines do not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnginesError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// What is in it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The default engines. The folder is free again when the last of them is
/// dropped.
pub(crate) struct Engines {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) table: Arc<dyn Table>,
    _folder: DataFolder,
}

impl Engines {
    /// Opens both in `folder`; makes them where it is new. Blocks.
    pub(crate) fn open(
        folder: DataFolder,
        journal: JournalOptions,
        tables: &LsmOptions,
    ) -> Result<Self, EnginesError> {
        let journal = LocalJournal::open(&folder.log(), journal)?;
        let table = LsmTable::open(&folder.tables(), tables)?;
        Ok(Self {
            clock: Arc::new(RealClock::new()),
            journal: Arc::new(journal),
            table: Arc::new(table),
            _folder: folder,
        })
    }
}

/// Writes a copy of everything into `into`, which must be empty or not there.
///
/// The tables go first: what they have applied is in the log that is copied
/// after them, as long as nothing is freed meanwhile, which the caller sees
/// to.
pub(crate) fn backup(
    journal: &dyn Journal,
    table: &dyn Table,
    into: &Path,
) -> Result<(), EnginesError> {
    folder::make_empty(into)?;
    for part in ["tables", "log"] {
        folder::make_empty(&into.join(part))?;
    }
    table.backup(&into.join("tables"))?;
    journal.backup(&into.join("log"))?;
    folder::write_format(into)?;
    Ok(())
}

/// Makes a data folder `into` of the backup `from`; answers the bytes copied.
///
/// The source may go on, and then epochs rise there one by one. In the copy
/// they go on from far above, and from elsewhere in every copy, so that what
/// is written from here on has places that no other copy has.
pub(crate) fn restore(from: &Path, into: &Path) -> Result<u64, EnginesError> {
    let bytes = folder::copy(from, into)?;
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| StoreError::Io { what: "restore".into(), cause: error.to_string() })?;
    let by = EPOCHS_APART_MIN + u32::from_le_bytes(random) % EPOCHS_APART;
    let journal = LocalJournal::open(&into.join("log"), JournalOptions::default())?;
    journal.raise_epochs(by)?;
    journal.close()?;
    folder::write_format(into)?;
    Ok(bytes)
}

/// A source that is started again so often after a backup has not caught up
/// with what was restored from it.
const EPOCHS_APART_MIN: u32 = 1 << 12;
/// Where in so many epochs above that a copy goes on is drawn by lot: two are
/// hardly ever near each other, and a thousand restores of restores still
/// leave epochs to come.
const EPOCHS_APART: u32 = 1 << 21;
