//! `tideline bench`: runs `tideline-bench`, which stands beside this program.
//!
//! The benches start peers and speak their protocols; what that takes stays
//! out of the program that serves.

use std::process::Command;

use crate::cli::{BenchArgs, Failure};

/// Runs the bench that `args` name, or lists what there is.
pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    let own = std::env::current_exe();
    let own = own.map_err(|e| Failure::Failed(format!("where is this program? {e}")))?;
    let program = own.with_file_name("tideline-bench");
    if !program.exists() {
        let what = format!("{} does not exist; `make bench` builds it", program.display());
        return Err(Failure::Failed(what));
    }
    let named = args.what.unwrap_or_else(|| "--help".into());
    let status = Command::new(&program).arg(named).args(args.flags).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed(format!("{}: {status}", program.display()))),
        Err(error) => Err(Failure::Failed(format!("{}: {error}", program.display()))),
    }
}
