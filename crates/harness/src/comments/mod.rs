//! Comments across a video under kills: what was asked and answered, and what a
//! server may therefore hold.
//!
//! Each connection has a video of its own, so the order of what happens there
//! is known. [`Ledger`] is pure: the same requests, answers and crashes give
//! the same verdict. What the queue of a full video hides is not foretold, but
//! compared: lists with counts, and bodies with lists.

mod ledger;
mod session;

pub use ledger::{Fate, Ledger, Reading, Row};
pub use session::Talk;
