//! `tideline bench`: each bench answers one question, beside the peer that one
//! would otherwise take.

use crate::cli::{BenchArgs, Failure};

/// Name and question of every bench.
const BENCHES: &[(&str, &str)] = &[];

/// Runs the bench that `args` name, or lists what there is.
pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    let Some(what) = args.what else {
        for (name, question) in BENCHES {
            println!("{name:<12} {question}");
        }
        if BENCHES.is_empty() {
            println!("no bench is built in yet");
        }
        return Ok(());
    };
    Err(Failure::Usage(format!("no bench is called {what:?}; `tideline bench` lists them")))
}
