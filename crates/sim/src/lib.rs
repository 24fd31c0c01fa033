//! The simulator: whole products on one thread, in virtual time, with every
//! fault there is, against an oracle.
//!
//! A seed decides everything: the same seed gives the same trace, and that is
//! the first test. `cargo run -p tideline-sim -- history SEED` runs one again.
//!
//! | module | what |
//! |---|---|
//! | `machine` | the disk that fails, and the log on it, for all products |
//! | `run` | history: what happens next, and what goes wrong |
//! | `world` | its machine: log, table, owners, driven by hand |
//! | `workload` | what its clients do |
//! | `oracle` | what must be so after it, and after a crash |
//! | `expect` | what an answer must say |
//! | [`danmaku`] | the same of comments, with those who watch |
//! | [`metadata`] | the same of the metadata tree, with observers |
//!
//! The model that history is held against is [`tideline_harness::model`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a simulator ends where it is wrong")]

pub mod danmaku;
mod expect;
mod machine;
pub mod metadata;
mod oracle;
mod rng;
mod run;
mod workload;
mod world;

pub use run::{Report, run};
pub use tideline_history::sabotage;
