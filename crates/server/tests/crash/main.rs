//! The server is killed at random instants under a mixed load and must hold
//! what it acknowledged, and nothing else.
//!
//! `TIDELINE_SEED=n` tries another seed; `TIDELINE_SOAK=1` kills 1,000 times
//! instead of 50. A failure prints what to type to see it again: requests are
//! the same for the same seed, instants are not.

mod comments;
mod kills;
mod retry;

use std::path::PathBuf;

use tideline_harness::server::Setup;

/// Kills in all tests of this file together.
fn kills() -> u64 {
    if std::env::var_os("TIDELINE_SOAK").is_some() { 1_000 } else { 50 }
}

fn seed() -> u64 {
    std::env::var("TIDELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn setup(data: PathBuf) -> Setup {
    Setup { binary: env!("CARGO_BIN_EXE_tideline").into(), data, settings: Vec::new() }
}

/// Panics with what happened, where the folder is, and what to type.
fn fail(test: &str, seed: u64, what: &str, folder: tempfile::TempDir) -> ! {
    let kept = folder.keep();
    panic!(
        "{what}\nfolder kept: {}\nagain: TIDELINE_SEED={seed} cargo test -p tideline-server --test crash {test}",
        kept.display()
    );
}
