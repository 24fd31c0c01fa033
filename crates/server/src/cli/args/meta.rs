//! What `tideline meta` takes.

use clap::{Args, Subcommand};

/// `tideline meta`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline meta subtree create /apps/feed
  tideline meta create /apps/feed/limit 100
  tideline meta get /apps/feed/limit
  tideline meta ls /apps/feed
  tideline meta watch /apps/feed                   every change, as it happens
  ./events | tideline meta own feed --topic clicks  a writer that others stand by for
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
    /// Append lines of standard input to a partition, as its only owner
    Own(OwnArgs),
    /// List, declare and drop subtrees
    Subtree {
        /// What to do
        #[command(subcommand)]
        command: SubtreeCommand,
    },
}

/// `tideline meta own`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Waits until nobody else holds NAME, begins with a record that shuts out those
before, and prints each line with its place once it is on disk. One that was
stopped and wakes up after it was taken over acknowledges nothing, and fails.")]
pub struct OwnArgs {
    /// The name of the lease, under /tideline/owners
    pub name: String,
    /// The topic
    #[arg(long)]
    pub topic: String,
    /// The partition
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub partition: u16,
    /// The key of every record
    #[arg(long, default_value = "")]
    pub key: String,
    /// Another may take over when this one was silent for so long
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub lease_ms: u32,
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
