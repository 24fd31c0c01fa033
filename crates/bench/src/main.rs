//! `tideline-bench`: see the library.

use std::process::ExitCode;

use clap::Parser as _;

// As the server does, so that sizes in memory are what it would use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = tideline_bench::Args::parse();
    match tideline_bench::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tideline-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
