//! Engines on the machine's own disk: the default.

mod table;
mod table_files;
mod table_key;
mod table_purge;

pub use table::{LsmOptions, LsmTable};
