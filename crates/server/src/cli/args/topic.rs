//! What `tideline topic` takes.

use clap::{Args, Subcommand};

use super::ServerArgs;

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
  tideline topic follow finished --checkpoint rewards | ./pay
  tideline topic rm clicks")]
pub struct TopicArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TopicCommand,
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `tideline topic digest`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  tideline topic digest history --every 100000
  tideline topic digest finished                    as the server derives it
  tideline topic digest history --operator '{\"filter\":\"value.finished\"}'
                                                    derived here: the same lines

Equal lines are of equal records. Where a user was erased on one host and not yet on the other,
lines differ until both have done so.")]
pub struct DigestArgs {
    /// Its name
    pub topic: String,
    /// This partition alone
    #[arg(long, value_name = "N")]
    pub partition: Option<u16>,
    /// Ranges end at multiples of this number
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// End at this number [default: what is synced now]
    #[arg(long, value_name = "SEQ")]
    pub through: Option<u64>,
    /// Digest what this operator makes of the topic, computed here
    #[arg(long, value_name = "JSON")]
    pub operator: Option<String>,
    /// Address of the server's gRPC
    #[arg(
        long,
        value_name = "URL",
        env = "TIDELINE_GRPC",
        default_value = "http://127.0.0.1:7767"
    )]
    pub grpc: String,
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
    /// Hand on records as they come; begun again, go on where it ended
    #[command(group(clap::ArgGroup::new("place").required(true).args(["into", "checkpoint"])))]
    Follow {
        /// Its name
        topic: String,
        /// The file: a line of JSON for each record, as `tail` prints them, and
        /// lines that say how far the ones before them go. Synced. What was cut
        /// off by a kill is taken away and read again
        #[arg(long, value_name = "FILE")]
        into: Option<std::path::PathBuf>,
        /// To standard output, as this consumer: the server keeps where it is. After
        /// a kill some records are printed a second time
        #[arg(long, value_name = "NAME")]
        checkpoint: Option<String>,
        /// Where a new one begins: earliest, latest, or a time in ms
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
    /// Checksums of ranges, to compare what two hosts hold or compute
    Digest(DigestArgs),
    /// Remove a topic and all its records
    Rm {
        /// Its name
        topic: String,
    },
}
