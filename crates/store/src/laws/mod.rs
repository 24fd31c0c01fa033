//! The laws of the seams, as suites that every engine runs.
//!
//! A law panics where it is broken, and names itself; so the suites are called
//! from tests alone.
//!
//! ```
//! use std::sync::Arc;
//! use tideline_store::{laws, mem::MemJournal};
//!
//! laws::journal(&|| Arc::new(MemJournal::new()));
//! ```

mod disk;
mod heard;
mod journal;
pub mod table;

pub use disk::disk;
pub use heard::Heard;
pub use journal::{journal, journal_that_lasts};
