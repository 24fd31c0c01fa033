//! The arguments of every command, with the help that teaches them; those of
//! many words by subject.

mod example;
mod export;
mod import;
mod meta;
mod tier;
mod topic;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(super) use import::ImportCommand;

pub use example::{ExampleArgs, ExampleCommand, StreamsArgs};
pub use export::{ExportArgs, ExportCommand, ExportDanmakuArgs, ExportFormat};
pub use import::{DanmakuArgs, FlagsArgs, HistoryArgs, ImportFormat};
pub use meta::{MetaArgs, MetaCommand, OwnArgs, SubtreeCommand};
pub use tier::TierArgs;
pub use topic::{DigestArgs, TopicArgs, TopicCommand};

#[derive(Debug, Parser)]
#[command(
    name = "tideline",
    version,
    about = "Keeps what people do on a site, and hands it back at once.",
    after_help = "\
First steps:
  tideline serve --demo                 start on this machine, with a little data to look at
  curl 'http://127.0.0.1:7766/v1/users/demo/history?limit=5'
  tideline topic tail history           see every change as it happens

`tideline COMMAND --help` shows examples of each command.
Exit status: 0 done, 1 failed, 2 bad usage."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the server and run until SIGTERM or Ctrl-C
    Serve(ServeArgs),
    /// Bring files of another system, or of our own, into a running server
    Import {
        #[command(subcommand)]
        what: ImportCommand,
    },
    /// Write users' histories as NDJSON, or a video's comments in a player's format
    Export(ExportArgs),
    /// List, make, read, write and remove topics
    Topic(TopicArgs),
    /// Hold what the keys of a topic have, and answer for them
    Tier(TierArgs),
    /// Look into the metadata tree, and change it
    Meta(MetaArgs),
    /// Make, list and revoke tokens
    Token(TokenArgs),
    /// Copy a running server's data into a folder, consistently
    Backup(BackupArgs),
    /// Make a data folder from a backup
    Restore(RestoreArgs),
    /// Verify every checksum and invariant of a data folder
    Check(CheckArgs),
    /// Run a worked example on this machine
    Example(ExampleArgs),
    /// Measure, beside what you would otherwise take
    Bench(BenchArgs),
    /// Show the settings in force
    Config(ConfigArgs),
}

/// Where settings come from.
#[derive(Clone, Debug, Default, Args)]
pub struct LayerArgs {
    /// A TOML file with the keys that differ from config.default.toml
    #[arg(long, value_name = "FILE", env = "TIDELINE_CONFIG")]
    pub config: Option<PathBuf>,
    /// One key, over file and environment; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// `tideline serve`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline serve                                   loopback only, data in ./tideline-data
  tideline serve --demo                            the same, with a little data to look at
  tideline serve --data /var/lib/tideline --config /etc/tideline.toml
  tideline serve --http 0.0.0.0:7766               makes an admin token at the first start
  tideline serve --set history.kinds.video.max_records=0
  TIDELINE__HISTORY__TIMEZONE=Asia/Shanghai tideline serve")]
pub struct ServeArgs {
    /// Settings.
    #[command(flatten)]
    pub layers: LayerArgs,
    /// The data folder [key: data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address for HTTP; port 0 takes a free one [key: server.http]
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<String>,
    /// Address for gRPC; port 0 takes a free one [key: server.grpc]
    #[arg(long, value_name = "ADDRESS")]
    pub grpc: Option<String>,
    /// Put a few marks of user "demo" in, to have something to look at
    #[arg(long)]
    pub demo: bool,
}

/// A running server and who is asking.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// Address of a running server
    #[arg(
        long,
        value_name = "URL",
        env = "TIDELINE_SERVER",
        global = true,
        default_value = "http://127.0.0.1:7766"
    )]
    pub server: String,
    /// A token with the scope that the command needs
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TIDELINE_TOKEN",
        hide_env_values = true,
        global = true
    )]
    pub token: Option<String>,
}

/// `tideline token`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline token create --scope service --note importer
  tideline token create --user 1001 --days 30
  tideline token ls
  tideline token revoke 5f0c12ab90de
  tideline token --data /var/lib/tideline create --scope admin    the server must be stopped

The server keeps a hash alone: a token is shown once. All need an admin token, with --token or
in TIDELINE_TOKEN; the first one is printed by the first start of a server that needs tokens.")]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
    /// Work on this data folder, of a stopped server
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The verbs of `tideline token`.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it once
    Create {
        /// admin, service (all users, topics, items), moderator or read; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// A token of this user
        #[arg(long, value_name = "USER", required_unless_present = "scopes")]
        user: Option<String>,
        /// What it is for
        #[arg(long, default_value = "")]
        note: String,
        /// Days until it ends [default: never]
        #[arg(long, value_name = "N")]
        days: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List tokens, without what makes them valid
    Ls {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a token at once
    Revoke {
        /// Its id, as `ls` shows it
        id: String,
    },
}

/// `tideline backup`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline backup /var/backups/tideline-2026-11-30     needs an admin token where tokens are used
  tideline restore /var/backups/tideline-2026-11-30 --data /var/lib/tideline

The server itself writes the copy while it goes on serving, so DIR is a path on the server's
machine. Everything that was acknowledged before the call is in it.")]
pub struct BackupArgs {
    /// A folder that does not exist yet, or is empty, on the server's machine
    #[arg(value_name = "DIR")]
    pub into: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `tideline restore`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  tideline restore /var/backups/tideline-2026-11-30 --data /var/lib/tideline
  tideline check /var/lib/tideline")]
pub struct RestoreArgs {
    /// What `tideline backup` wrote
    #[arg(value_name = "BACKUP")]
    pub from: PathBuf,
    /// A data folder that does not exist yet, or is empty
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}

/// `tideline check`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  tideline check /var/lib/tideline

Reads every byte. The folder must not be in use by a server. Exit status 1 if anything is wrong.")]
pub struct CheckArgs {
    /// A data folder, or a backup
    #[arg(value_name = "DIR")]
    pub data: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `tideline bench`
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What to measure; without it, the list of what there is
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,
    /// Flags of the bench
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    pub flags: Vec<String>,
}

/// `tideline config`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline config print                            what is in force: defaults, environment
  tideline config print --config /etc/tideline.toml --json
  tideline config default > tideline.toml          every key, explained")]
pub struct ConfigArgs {
    /// What to show.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// The verbs of `tideline config`.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// The settings in force, as TOML
    Print {
        /// Settings.
        #[command(flatten)]
        layers: LayerArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// config.default.toml: every key, explained, with its default
    Default,
}
