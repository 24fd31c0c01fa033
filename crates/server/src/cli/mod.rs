//! What can be typed, and which function answers it.
//!
//! Exit status: 0 done, 1 failed, 2 bad usage. Data goes to standard output,
//! everything else to standard error.

mod args;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tideline_record::Operator;

use crate::{
    backup, bench, check, example, export, import, meta, serve, settings, tier, token, topic,
};
use args::{Cli, Command, ImportCommand};

pub use args::{
    BackupArgs, BenchArgs, CheckArgs, ConfigArgs, ConfigCommand, DanmakuArgs, DigestArgs,
    ExampleArgs, ExampleCommand, ExportArgs, ExportCommand, ExportDanmakuArgs, ExportFormat,
    FlagsArgs, HistoryArgs, ImportFormat, LayerArgs, MetaArgs, MetaCommand, OwnArgs, RestoreArgs,
    ServeArgs, ServerArgs, StreamsArgs, SubtreeCommand, TierArgs, TokenArgs, TokenCommand,
    TopicArgs, TopicCommand,
};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What was typed makes no sense: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// It was tried and did not work: exit status 1.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// A failure that says what was being done and why it did not work.
    pub fn failed(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {why}"))
    }
}

/// Operators in Rust, by the names that texts have for them: `{"native": "name"}`.
pub type Natives = Vec<(String, Arc<dyn Operator>)>;

/// Reads the command line, does what it says, and says how it went.
pub fn run() -> ExitCode {
    run_with(Vec::new())
}

/// The same as a program that brings operators of its own.
pub fn run_with(natives: Natives) -> ExitCode {
    // The only TLS provider that is built in; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    // On one core threads only take turns; and answers that become ready
    // together leave together when nothing runs in between.
    let one = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
    let mut builder = match one {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::failed("cannot start threads", error)),
    };
    match runtime.block_on(dispatch(cli.command, natives)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}

/// Does what blocks on the caller's thread: for starts, when nothing else has
/// to be done meanwhile.
pub(crate) fn here<T>(what: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(what),
        _ => what(),
    }
}

async fn dispatch(command: Command, natives: Natives) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(args, natives).await,
        Command::Import { what: ImportCommand::History(args) } => import::run(args).await,
        Command::Import { what: ImportCommand::Danmaku(args) } => import::comments::run(args).await,
        Command::Import { what: ImportCommand::Flags(args) } => import::flags::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Topic(args) => topic::run(args, natives).await,
        Command::Tier(args) => tier::run(args).await,
        Command::Meta(args) => meta::run(args).await,
        Command::Token(args) => token::run(args).await,
        Command::Backup(args) => backup::run(args).await,
        Command::Restore(args) => backup::restore(&args),
        Command::Check(args) => check::run(&args),
        Command::Example(args) => example::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Config(args) => settings::run(&args),
    }
}

fn report(failure: &Failure) -> ExitCode {
    eprintln!("tideline: {failure}");
    match failure {
        Failure::Usage(_) => ExitCode::from(2),
        Failure::Failed(_) => ExitCode::from(1),
    }
}
