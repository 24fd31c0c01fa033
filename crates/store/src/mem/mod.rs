//! Engines that keep everything in memory: for tests, for the simulator, which
//! must be able to say what a restart may legally find, and as the plainest
//! reading of the laws.

mod journal;
mod table;

pub use journal::MemJournal;
pub use table::{MemTable, TableCall};
