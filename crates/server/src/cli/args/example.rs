//! What `tideline example` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `tideline example`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline example streams
  tideline example streams --kill --readers 10 --seconds 20")]
pub struct ExampleArgs {
    /// Which.
    #[command(subcommand)]
    pub command: ExampleCommand,
}

/// The examples.
#[derive(Clone, Debug, Subcommand)]
pub enum ExampleCommand {
    /// User actions, two operators, counters, hot keys, and caches in 50 processes
    Streams(StreamsArgs),
    /// One of the readers
    #[command(hide = true)]
    Reader {
        /// Which one
        #[arg(long)]
        number: u32,
        /// The tiers whose hot keys it holds
        #[arg(long, value_name = "URL", required = true)]
        tier: Vec<String>,
    },
}

/// `tideline example streams`
#[derive(Clone, Debug, Args)]
pub struct StreamsArgs {
    /// Reader processes
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub readers: u32,
    /// For how long actions are written
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Actions a second
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rate: u64,
    /// Partitions of the topic of actions
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub partitions: u16,
    /// Kill a tier and a reader in the middle, with kill -9, and start them again
    #[arg(long)]
    pub kill: bool,
    /// Where everything lies [default: a folder that is removed at the end]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}
