//! Log lines on standard error, for people or for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::Failure;
use crate::config::{LogFormat, Logging};

/// Starts logging for this process. A bad level is bad usage. A plain level is
/// ours; libraries are heard from `warn` on.
pub(crate) fn start(options: &Logging) -> Result<(), Failure> {
    let level = match options.level.contains(['=', ',']) {
        true => options.level.clone(),
        false => format!("warn,tideline={}", options.level),
    };
    let filter = EnvFilter::builder().parse(level).map_err(|e| {
        Failure::Usage(format!("`logging.level`: {:?} is no level: {e}", options.level))
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match options.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|e| Failure::failed("cannot start logging", e))
}
