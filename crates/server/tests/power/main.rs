//! The power goes while the server runs; what the disk may then hold is
//! recovered and must be what was acknowledged, and nothing else.
//!
//! The server is recorded over its whole folder while it works, is stopped or
//! killed, and images are made of many moments of that run. Some images become
//! the folder of the next run, so that power also goes during recoveries.
//!
//! `TIDELINE_SEED=n` tries another seed; `TIDELINE_SOAK=1` tries 1,000 images
//! instead of 100. Requests are the same for the same seed, instants are not;
//! a failing image is kept.

mod cuts;

use std::path::PathBuf;

use tideline_harness::server::Setup;

/// Runs, and images of each.
fn runs_and_images() -> (u64, usize) {
    if std::env::var_os("TIDELINE_SOAK").is_some() { (25, 40) } else { (4, 25) }
}

fn seed() -> u64 {
    std::env::var("TIDELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn setup(data: PathBuf) -> Setup {
    Setup { binary: env!("CARGO_BIN_EXE_tideline").into(), data, settings: Vec::new() }
}
