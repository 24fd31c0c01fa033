//! Files of other systems, read as marks.
//!
//! [`Records`] cuts a file into records (lines, CSV rows, JSON objects), each
//! of bounded length and with its place; a [`Format`] reads one record at a
//! time. Both are pure: bytes in, marks or a reason out. `sender` carries
//! marks to a server in order per user, `resume` remembers how far it got, and
//! `run` ties them together behind `tideline import history`. Comments are read
//! by the readers of their formats, and `comments` sends them.
//!
//! Knows nothing of the rules by which a server decides a mark.

mod cells;
pub(crate) mod comments;
mod csv;
mod entry;
pub(crate) mod flags;
mod ids;
mod movielens;
mod ndjson;
mod netflix;
mod progress;
mod records;
mod restore;
mod resume;
mod rounds;
mod run;
mod sender;
mod tally;
mod youtube;

pub use self::csv::Csv;
pub use entry::{Defaults, Entry, Format, Parsed};
pub use ids::{cut_text, fit_id};
pub use movielens::{Movielens, read_titles};
pub use ndjson::Ndjson;
pub use netflix::Netflix;
pub use records::{Cut, RECORD_BYTES_MAX, Record, Records};
pub use run::run;
pub use tally::Tally;
pub use youtube::Youtube;

/// Reads `bytes` as an export, to its end or to the first thing that is wrong.
pub(crate) fn fuzz_pieces(bytes: &[u8]) {
    let mut pieces = restore::Pieces::new(bytes);
    while let Ok(Some(_)) = pieces.read() {}
}
