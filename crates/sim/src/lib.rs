//! The simulator: whole products on one thread, in virtual time, with every
//! fault there is, against an oracle.
//!
//! A seed decides everything: the same seed gives the same trace, and that is
//! the first test. `cargo run -p tideline-sim -- history SEED` runs one again,
//! and with `TIDELINE_SIM_SHOW=1` prints what happens.
//!
//! | module | what |
//! |---|---|
//! | `machine` | the disk that fails, the log on it, a table, clocks |
//! | `run` | what happens next, what goes wrong, and the quiet after it |
//! | [`history`] | marks of users |
//! | [`danmaku`] | comments of videos, with those who watch |
//! | [`metadata`] | the metadata tree, with observers |
//! | [`streams`] | producers, derived topics, and who follows them |
//!
//! A product is what its clients and its threads do (`act`), and an oracle.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a simulator ends where it is wrong")]

pub mod danmaku;
pub mod history;
mod machine;
pub mod metadata;
mod rng;
mod run;
pub mod streams;

pub use run::Report;
