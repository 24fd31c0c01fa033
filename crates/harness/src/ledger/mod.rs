//! What a server was asked, what it answered, and what it may therefore hold.
//!
//! [`Load`] asks, [`Ledger`] remembers. Kept outside the server, pure: the
//! same requests, answers and crashes give the same verdict.

mod load;
mod op;
mod person;
mod worlds;

pub use load::{Load, caps, objects};
pub use op::{Clear, Mark, Op, Request, Step, Way};
pub use person::{Became, Caps, Person, Seen};
pub use worlds::{Found, Ledger, Lie, Tally};
