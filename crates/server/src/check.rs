//! `tideline check`.

use crate::cli::{CheckArgs, Failure};

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let _ = args;
    Err(Failure::Failed("the engines are not wired in yet".into()))
}
