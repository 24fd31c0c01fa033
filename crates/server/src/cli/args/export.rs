//! What `tideline export` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ServerArgs;

/// `tideline export`
#[derive(Clone, Debug, Args)]
#[command(
    group(clap::ArgGroup::new("who").required(true).args(["user", "all"])),
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tideline export --user 1001                      to standard output
  tideline export --user 1001 --out u.ndjson
  tideline export --all --out everybody.ndjson
  tideline import history --format tideline everybody.ndjson
  tideline export danmaku --video 7 --format ass --out 7.ass

Each user is a header line, with every fact that is no row, and then one line a row, newest
first."
)]
pub struct ExportArgs {
    /// Something else than histories.
    #[command(subcommand)]
    pub what: Option<ExportCommand>,
    /// One user
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Every user, one after the other
    #[arg(long)]
    pub all: bool,
    /// Write into this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where from.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The nouns of `tideline export`, besides histories.
#[derive(Clone, Debug, Subcommand)]
pub enum ExportCommand {
    /// What a video shows of its comments
    Danmaku(ExportDanmakuArgs),
}

/// The formats that comments are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The list of <d> that most players and tools read
    Xml,
    /// The elements of a segment, all in one
    Protobuf,
    /// Our own, which loses nothing
    Json,
    /// Subtitles
    Ass,
}

/// `tideline export danmaku`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline export danmaku --video 7 --format xml > 7.xml
  tideline export danmaku --video 7 --format ass --out 7.ass --json
  tideline export danmaku --video 7 | tideline import danmaku --video 8 -

Comments, subtitles, scripts and BAS that are shown. What a format cannot carry is told on
standard error: how many comments were kept whole, changed and dropped, and how.")]
pub struct ExportDanmakuArgs {
    /// The video
    #[arg(long, value_name = "VIDEO")]
    pub video: String,
    /// How to write them
    #[arg(long, value_enum, default_value = "json")]
    pub format: ExportFormat,
    /// Exit with status 1 if any comment was changed or dropped
    #[arg(long)]
    pub strict: bool,
    /// Tell what was lost as a line of JSON: on standard output with --out, else on standard error
    #[arg(long)]
    pub json: bool,
    /// Write into this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
