//! The simulator: log, history and tiers on one thread, in virtual time, with
//! every fault there is, against an oracle.
//!
//! A seed decides everything: the same seed gives the same trace, and that is
//! the first test. `cargo run -p tideline-sim -- SEED` runs one again.
//!
//! | module | what |
//! |---|---|
//! | `run` | what happens next, and what goes wrong |
//! | `world` | the machine: disk, log, table, owners, driven by hand |
//! | `workload` | what clients do |
//! | `oracle` | what must be so after it, and after a crash |
//! | `expect` | what an answer must say |
//!
//! The model that it is held against is [`tideline_harness::model`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a simulator ends where it is wrong")]

mod expect;
mod oracle;
mod rng;
mod run;
mod workload;
mod world;

pub use run::{Report, run};
pub use tideline_history::sabotage;
