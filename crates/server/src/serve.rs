//! `tideline serve`.

use crate::cli::{Failure, ServeArgs};

pub(crate) async fn run(args: ServeArgs) -> Result<(), Failure> {
    let _ = args;
    Err(Failure::Failed("the engines are not wired in yet".into()))
}
