//! Engines on the machine's own disk: the default.

mod journal;
mod lock;
mod table;
mod table_files;
mod table_key;
mod table_purge;
mod table_tail;

pub use journal::{
    Finding, JournalOptions, LocalJournal, Recovered, Verified, fuzz_manifest, fuzz_rounds,
    verify_journal,
};
pub use lock::FolderLock;
pub use table::{LsmOptions, LsmTable, fuzz_table_files};
