//! What Tideline is measured by.
//!
//! One bench, one question. `tideline-bench history` asks: beside what our
//! users would otherwise take (Redis with a sorted set and a string per mark,
//! alone or behind a small service), how many marks and lists does one core
//! serve, how soon, and in how many bytes? It starts the peers beside us on
//! the same machine, gives each the same core, drives them from another one
//! with the same requests, and prints ratios: medians of three rounds.
//!
//! Read in this order: [`data`] (who watched what), `encode` (as bytes of each
//! protocol), [`drive`] (many connections, and the time of every answer),
//! `grpc`, `http`, `resp` (what a connection speaks), `process` (cores, CPU,
//! memory), `ours`, `redis`, `app_over_redis` (who is measured), `beside`
//! (the lines that have a peer), `alone` (those that have none), `in_process`, `cold_size`, `engine` (no
//! network), [`report`] (the table).

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alone;
mod app_over_redis;
mod beside;
mod cold_size;
mod danmaku;
mod data;
mod drive;
mod encode;
mod engine;
mod etcd;
mod grpc;
mod http;
mod in_process;
mod mariadb;
mod mixed;
mod nginx;
mod ours;
mod process;
mod redis;
mod report;
mod resp;
mod rooms;
mod stage;
mod streams;
mod tree;
mod watch;
mod zookeeper;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Benches of Tideline.
#[derive(Debug, Parser)]
#[command(name = "tideline-bench", version)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A user's history beside Redis: writes, lists, memory, restarts
    History(HistoryArgs),
    /// Comments beside nginx and MariaDB: segments, posts, rooms, imports, opening, bytes
    Danmaku(DanmakuArgs),
    /// Streams beside NATS JetStream, metadata beside etcd and ZooKeeper
    Streams(StreamsArgs),
    /// The peer of the HTTP lines (started by `history`)
    #[command(hide = true)]
    AppOverRedis { listen: String, redis: String },
    /// Bytes and nanoseconds of the core, as JSON (started by `history`)
    #[command(hide = true)]
    Core(in_process::CoreArgs),
}

/// How any of them is run.
#[derive(Clone, Debug, ClapArgs)]
pub struct RunArgs {
    /// Less data and short rounds: for a look, not for a number
    #[arg(long)]
    quick: bool,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Rounds of each line that has a peer
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of a round that is not bound by its data
    #[arg(long)]
    seconds: Option<f64>,
    /// The server; default: `tideline` beside this program
    #[arg(long)]
    server: Option<PathBuf>,
    /// Where data folders are made and removed; default: the temporary folder
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The core of the server and its peers
    #[arg(long, default_value_t = 0)]
    server_core: usize,
    /// The core of the client
    #[arg(long, default_value_t = 1)]
    client_core: usize,
}

/// How `history` is run.
#[derive(Clone, Debug, ClapArgs)]
pub struct HistoryArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Only these parts
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Marks of the data set; fewer marks mean fewer users, each as active
    #[arg(long)]
    marks: Option<u64>,
}

/// How `danmaku` is run.
#[derive(Clone, Debug, ClapArgs)]
pub struct DanmakuArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Only these parts
    #[arg(long, value_delimiter = ',')]
    only: Vec<DanmakuPart>,
    /// Comments of the large video
    #[arg(long, default_value_t = 5_000_000)]
    comments: u64,
    /// Viewers of one room
    #[arg(long, default_value_t = 10_000)]
    viewers: usize,
}

/// How `streams` is run.
#[derive(Clone, Debug, ClapArgs)]
pub struct StreamsArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Only these parts
    #[arg(long, value_delimiter = ',')]
    only: Vec<StreamsPart>,
    /// The peer's program
    #[arg(long, default_value = "nats-server")]
    nats: PathBuf,
    /// Observers of one subtree
    #[arg(long, default_value_t = 1_000)]
    observers: usize,
}

/// A part of the bench of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StreamsPart {
    /// Records made durable
    Produce,
    /// From a record to its follower, alone and beside those who catch up
    Follow,
    /// A cache that follows many updates over the network
    Cache,
    /// Operators, without a network
    Operators,
    /// The metadata tree
    Meta,
}

impl StreamsArgs {
    /// Writes that observers are told of.
    fn writes(&self) -> usize {
        if self.run.quick { 20 } else { 200 }
    }

    fn wants(&self, part: StreamsPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// A part of the bench of comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DanmakuPart {
    /// Segments and 304s against nginx
    Segments,
    /// Posts to one video while it is read
    Posts,
    /// From a post to its arrival at every viewer of a room
    Rooms,
    /// An import, bytes at rest against MariaDB, and opening after kill -9
    Opening,
}

impl DanmakuArgs {
    fn wants(&self, part: DanmakuPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

impl RunArgs {
    fn round(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.unwrap_or(if self.quick { 1.0 } else { 5.0 }))
    }
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Batches over gRPC against pipelines of Redis
    Writes,
    /// The same with decimal ids only
    Decimal,
    /// Single marks over HTTP
    Single,
    /// The newest 20
    Lists,
    /// Reads beside writes at a fixed rate
    Mixed,
    /// From kill -9 to ready
    Restart,
    /// Lists of users that are not in memory
    Cold,
    /// Cost per write as users grow
    Scale,
    /// Without a network, and bytes per mark
    Core,
}

impl HistoryArgs {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn marks(&self) -> u64 {
        self.marks.unwrap_or(if self.run.quick { 1_000_000 } else { 10_000_000 })
    }
}

/// Why there is no number.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system said no.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        cause: String,
    },
    /// The other side does not speak as expected.
    #[error("unexpected answer: {0}")]
    Protocol(&'static str),
    /// The other side hung up.
    #[error("the connection was closed by the other side")]
    Closed,
    /// Nothing came.
    #[error("no answer within {0:?}")]
    Silent(Duration),
    /// A program did not come up; its log is in the bench's folder.
    #[error("{0} did not become ready")]
    NotReady(String),
    /// There is no such core.
    #[error("cannot run on core {0}; use --server-core and --client-core")]
    Core(usize),
    /// The peer failed.
    #[error("peer: {0}")]
    Peer(String),
    /// We failed.
    #[error("tideline: {0}")]
    Ours(String),
    /// Our own engines failed.
    #[error("store: {0}")]
    Store(#[from] tideline_store::StoreError),
}

impl BenchError {
    fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        Self::Io { what: what.into(), cause: error.to_string() }
    }
}

/// Runs what `args` name and prints what was found.
pub fn run(args: &Args) -> Result<(), BenchError> {
    match &args.what {
        What::History(args) => history(args),
        What::Danmaku(args) => {
            process::pin_self(args.run.client_core)?;
            let mut out = stage::Output::new(&args.run, None);
            danmaku::lines(args, &mut out)?;
            out.finish();
            Ok(())
        }
        What::Streams(args) => {
            process::pin_self(args.run.client_core)?;
            let mut out = stage::Output::new(&args.run, None);
            streams::lines(args, &mut out)?;
            if args.wants(StreamsPart::Meta) {
                tree::lines(args, &mut out)?;
            }
            out.finish();
            Ok(())
        }
        What::AppOverRedis { listen, redis } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|e| BenchError::io("runtime", &e))?;
            runtime.block_on(app_over_redis::serve(listen, redis))
        }
        What::Core(args) => in_process::child(args),
    }
}

fn history(args: &HistoryArgs) -> Result<(), BenchError> {
    process::pin_self(args.run.client_core)?;
    let mut out = stage::Output::new(&args.run, Some(args.marks()));
    if [Part::Writes, Part::Single, Part::Lists, Part::Mixed].iter().any(|&part| args.wants(part)) {
        beside::mixed_ids(args, &mut out)?;
    }
    if args.wants(Part::Decimal) {
        beside::decimal_ids(args, &mut out)?;
    }
    if args.wants(Part::Core) {
        in_process::lines(args, &mut out)?;
    }
    if args.wants(Part::Restart) {
        alone::restart(args, &mut out)?;
    }
    if args.wants(Part::Cold) {
        alone::cold_lists(args, &mut out)?;
    }
    if args.wants(Part::Scale) {
        alone::scale(args, &mut out)?;
    }
    out.finish();
    Ok(())
}
