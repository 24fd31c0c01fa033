//! The arguments of every command, with the help that teaches them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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

#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Marks of users
    History(HistoryArgs),
    /// Comments of a video
    Danmaku(DanmakuArgs),
    /// A model's flags of segments, for many viewers
    Flags(FlagsArgs),
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
    /// Exit with status 1 if any comment was not taken
    #[arg(long)]
    pub strict: bool,
    /// Print a line of JSON for each file
    #[arg(long)]
    pub json: bool,
    /// Where to.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
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
    /// Exit with status 1 if any line was not taken
    #[arg(long)]
    pub strict: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Where to.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
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
    /// Exit with status 1 if any line was bad or any mark refused
    #[arg(long)]
    pub strict: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Where to.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

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

/// `tideline topic`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline topic ls
  tideline topic tail history                      every change of every user, as it happens
  tideline topic tail daily-first --from earliest --limit 10
  tideline topic create clicks --partitions 8 --retention-hours 24
  echo '{\"page\":7}' | tideline topic produce clicks --key ann
  tideline topic create finished --source history \
    --operator '{\"filter\":\"value.finished\",\"key\":\"value.id\",\"counter\":{\"add\":\"1\"}}'
  tideline topic follow finished --into finished.ndjson
  tideline topic rm clicks")]
pub struct TopicArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TopicCommand,
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The verbs of `tideline topic`.
#[derive(Clone, Debug, Subcommand)]
pub enum TopicCommand {
    /// List topics
    Ls {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one topic and the positions of its partitions
    Describe {
        /// Its name
        topic: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a topic, or derive one from another
    Create {
        /// Its name: 1 to 64 of a-z, 0-9, '.', '_', '-'
        topic: String,
        /// How many partitions, for good [default: queue.partitions]
        #[arg(long, value_name = "N")]
        partitions: Option<u16>,
        /// Hours for which records are kept [default: queue.retention_hours]
        #[arg(long, value_name = "N")]
        retention_hours: Option<u32>,
        /// Derive it from this topic
        #[arg(long, value_name = "TOPIC", conflicts_with_all = ["partitions", "retention_hours"])]
        source: Option<String>,
        /// What is kept of each record and made of it, as JSON
        #[arg(long, value_name = "JSON", requires = "source", default_value = "{}")]
        operator: String,
        /// Stop at a record on which the operator fails, instead of saying so there
        #[arg(long, requires = "source")]
        halt_on_error: bool,
    },
    /// Print records as NDJSON, and go on as they come
    Tail {
        /// Its name
        topic: String,
        /// This partition alone
        #[arg(long, value_name = "N")]
        partition: Option<u16>,
        /// earliest, latest, a position (incarnation-epoch-seq) or a time in ms
        #[arg(long, value_name = "PLACE", default_value = "latest")]
        from: String,
        /// End after so many records
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// End when everything that is there has been printed
        #[arg(long)]
        no_follow: bool,
    },
    /// Append records to a file as they come; begun again, go on where it ended
    Follow {
        /// Its name
        topic: String,
        /// The file: a line of JSON for each record, as `tail` prints them, and
        /// lines that say how far the ones before them go. Synced. What was cut
        /// off by a kill is taken away and read again
        #[arg(long, value_name = "FILE")]
        into: std::path::PathBuf,
        /// Where a new file begins: earliest, latest, or a time in ms
        #[arg(long, value_name = "PLACE", default_value = "earliest")]
        from: String,
    },
    /// Write the lines of standard input, or one value, as records
    Produce {
        /// Its name
        topic: String,
        /// The key of every record; the same key goes to the same partition
        #[arg(long, default_value = "")]
        key: String,
        /// Write this one value instead of reading lines
        #[arg(long)]
        value: Option<String>,
        /// This partition, instead of the key's
        #[arg(long, value_name = "N")]
        partition: Option<u16>,
    },
    /// Remove a topic and all its records
    Rm {
        /// Its name
        topic: String,
    },
}

/// `tideline meta`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline meta subtree create /apps/feed
  tideline meta create /apps/feed/limit 100
  tideline meta get /apps/feed/limit
  tideline meta ls /apps/feed
  tideline meta watch /apps/feed                   every change, as it happens
  tideline meta import --zookeeper 127.0.0.1:2181/feed /apps/feed")]
pub struct MetaArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: MetaCommand,
    /// gRPC address of a running server
    #[arg(
        long,
        value_name = "URL",
        env = "TIDELINE_GRPC",
        global = true,
        default_value = "http://127.0.0.1:7767"
    )]
    pub grpc: String,
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

/// The verbs of `tideline meta`.
#[derive(Clone, Debug, Subcommand)]
pub enum MetaCommand {
    /// List the children of a node
    Ls {
        /// The node
        #[arg(default_value = "/")]
        path: String,
        /// As JSON, one line each
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a node
    Get {
        /// The node
        path: String,
        /// As JSON, with its numbers
        #[arg(long)]
        json: bool,
    },
    /// Write a node that is there
    Set {
        /// The node
        path: String,
        /// The value; - is standard input
        value: String,
        /// Only if this seq wrote it last
        #[arg(long, value_name = "SEQ")]
        if_modified: Option<u64>,
    },
    /// Make a node
    Create {
        /// The node
        path: String,
        /// The value; - is standard input
        value: Option<String>,
        /// Ten digits of the parent's counter follow the name
        #[arg(long)]
        sequential: bool,
    },
    /// Remove a node that has no children
    Delete {
        /// The node
        path: String,
        /// Only if this seq wrote it last
        #[arg(long, value_name = "SEQ")]
        if_modified: Option<u64>,
    },
    /// Print what is there and every change from then on, as NDJSON
    Watch {
        /// A subtree, or a node of one
        path: String,
    },
    /// Bring a subtree of a ZooKeeper into one of ours
    Import {
        /// Where it is
        #[arg(long, value_name = "HOST:PORT/PATH")]
        zookeeper: String,
        /// Where it goes; declared if it is not
        into: String,
    },
    /// List, declare and drop subtrees
    Subtree {
        /// What to do
        #[command(subcommand)]
        command: SubtreeCommand,
    },
}

/// The verbs of `tideline meta subtree`.
#[derive(Clone, Debug, Subcommand)]
pub enum SubtreeCommand {
    /// List subtrees with their figures
    Ls,
    /// Declare that a subtree begins at a path
    Create {
        /// Where
        path: String,
        /// Nodes that it may hold; 0 for 100,000
        #[arg(long, value_name = "N", default_value_t = 0)]
        nodes_max: u64,
        /// Bytes that it may hold; 0 for 64 MiB
        #[arg(long, value_name = "N", default_value_t = 0)]
        bytes_max: u64,
    },
    /// Drop a subtree with all that is in it
    Rm {
        /// Where
        path: String,
    },
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
