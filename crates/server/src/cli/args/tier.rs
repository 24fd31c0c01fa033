//! What `tideline tier` takes.

use std::path::PathBuf;

use clap::Args;

/// `tideline tier`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline tier ends --data ./ends-tier
  tideline tier ends --data ./ends-tier-2 --listen 127.0.0.1:7771 --peer http://127.0.0.1:7770

The topic holds operations on keys, as operators with `counter` or `set` make them. The tier has no
log: killed, it goes on where it was; away for longer than the server keeps records, it takes a
snapshot of a peer.")]
pub struct TierArgs {
    /// A topic of operations on keys
    pub topic: String,
    /// A folder of its own
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Address for gRPC; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7770")]
    pub listen: String,
    /// Address of the server's gRPC
    #[arg(
        long,
        value_name = "URL",
        env = "TIDELINE_GRPC",
        default_value = "http://127.0.0.1:7767"
    )]
    pub grpc: String,
    /// Another tier of the topic, to take snapshots from; may be repeated
    #[arg(long, value_name = "URL")]
    pub peer: Vec<String>,
    /// Begin without what the server no longer holds, where no peer has it
    #[arg(long)]
    pub from_earliest: bool,
    /// Hot keys of each partition, at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub hot_keys: usize,
    /// For the server and the peers; readers of this tier must show it too
    #[arg(long, value_name = "TOKEN", env = "TIDELINE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}
