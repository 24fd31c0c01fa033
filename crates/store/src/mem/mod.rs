//! Engines that keep everything in memory: for tests, simulations and as the
//! plainest reading of the laws.

mod journal;

pub use journal::MemJournal;
