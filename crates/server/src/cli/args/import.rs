//! What `tideline import` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ServerArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Marks of users
    History(HistoryArgs),
    /// Comments of a video
    Danmaku(DanmakuArgs),
    /// A model's flags of segments, for many viewers
    Flags(FlagsArgs),
}

/// What every import takes.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// Exit with status 1 if anything was bad, or was not taken
    #[arg(long)]
    pub strict: bool,
    /// Print what came of it as JSON
    #[arg(long)]
    pub json: bool,
    /// Where to.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// `tideline import danmaku`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline import danmaku --video 7 comments.xml
  tideline import danmaku --video 7 --format niconico-json chat.json
  curl -s https://player.example/list.json | tideline import danmaku --video 7 -

Formats, found out if not said: xml, protobuf, json and ndjson (our own), dplayer, artplayer,
dandanplay, niconico-xml, niconico-json, acfun; packed by gzip, zlib or deflate as well. Broken
files are repaired where it is clear what was meant; what was changed or dropped is told by
line. More comments than the video's limit are taken: the lowest of them wait, hidden. Importing
a file twice changes nothing.")]
pub struct DanmakuArgs {
    /// The video
    #[arg(long, value_name = "VIDEO")]
    pub video: String,
    /// What the files hold
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// What every import takes.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `tideline import flags`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  zcat flags.ndjson.gz | tideline import flags -

A line each: {\"user\":\"1001\",\"video\":\"7\",\"segment\":1,\"flags\":{\"default\":5,\"flags\":[[\"ID\",11]]}}
Flags go from 0 (hide) to 11 (always show); a player gets them as they came. What was there for
the same viewer and segment is replaced, so importing a file twice changes nothing.")]
pub struct FlagsArgs {
    /// What every import takes.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The file formats of `tideline import history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// One mark a line, as the API takes it, with "user"; "title" is welcome
    Ndjson,
    /// A header of field names (user,kind,id,event_ms,…), one mark a row
    Csv,
    /// MovieLens ratings.csv (userId,movieId,rating,timestamp)
    Movielens,
    /// Netflix ViewingActivity.csv
    Netflix,
    /// YouTube watch-history.json from Google Takeout
    Youtube,
    /// What `tideline export` wrote: restored exactly, with every fact
    Tideline,
}

/// `tideline import history`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline import history --format movielens --movies movies.csv ratings.csv
  tideline import history --format netflix --user 1001 ViewingActivity.csv
  tideline import history --format youtube --user 1001 watch-history.json
  tideline import history --format csv --kind article reads.csv
  zcat marks.ndjson.gz | tideline import history --format ndjson -
  tideline export --user 1001 > u.ndjson; tideline import history --format tideline u.ndjson

Marks of one user arrive in the order of the file. No mark is rewarded as the first of its
day. An interrupted import goes on where it stopped when the same command is given again (the
place is kept beside the file, in FILE.tideline-import). Importing a file twice changes nothing.

A line that cannot be read is reported with its number and left out. An id, part, group or
event id over 64 bytes becomes its hash: the first 16 bytes of its SHA-256 as a UUID of
version 8. Titles go to the catalogue.")]
pub struct HistoryArgs {
    /// What the files hold
    #[arg(long, value_enum)]
    pub format: ImportFormat,
    /// Whose marks these are, where the file does not say (netflix: else each profile's name)
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// The kind, where the file does not say
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// movielens: take titles from this movies.csv
    #[arg(long, value_name = "FILE")]
    pub movies: Option<PathBuf>,
    /// netflix: this profile alone
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Begin at the start of the file, also where an import was interrupted
    #[arg(long)]
    pub restart: bool,
    /// What every import takes.
    #[command(flatten)]
    pub common: CommonArgs,
}
