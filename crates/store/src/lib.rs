//! The seams between Tideline and what it stands on, their laws, and the
//! engines that need nothing else.
//!
//! | seam | what it is | default engine | for tests |
//! |---|---|---|---|
//! | [`Journal`] | the bytes of each partition | `local::LocalJournal` | `mem::MemJournal` |
//! | [`Table`] | ordered rows, atomic within one partition key | `local::LsmTable` | `mem::MemTable` |
//! | [`Disk`] | files, as the journal sees them | `disk::RealDisk` | `disk::FaultyDisk` |
//! | [`Clock`] | the time | `clock::RealClock` | `clock::ManualClock` |
//!
//! Each trait's documentation is its law; `laws` is the suite that every
//! engine runs. Knows nothing of marks, users, HTTP or topics' names.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod clock;
pub mod disk;
mod epochs;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod journal;
pub mod laws;
pub mod local;
pub mod mem;
mod place;
mod table;

pub use clock::{Clock, ManualClock, RealClock};
pub use disk::{Disk, DiskFile};
pub use error::{Outcome, StoreError};
pub use journal::{
    AppendError, Bounds, EpochStart, EraseReport, Extent, Journal, ReadError, ReadLimits,
    SyncWatcher, Usage,
};
pub use place::Place;
pub use table::{Commit, Op, Row, Table, TableName};
