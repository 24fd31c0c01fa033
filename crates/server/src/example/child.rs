//! The processes of the example: this program again, in other roles.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::sync::mpsc;

use crate::cli::Failure;

/// A process that is killed when it is dropped.
pub(super) struct Child(std::process::Child);

/// A running server, and where it listens.
pub(super) struct Server {
    pub(super) http: String,
    pub(super) grpc: String,
    _process: Child,
}

/// A running tier.
pub(super) struct TierProcess {
    pub(super) url: String,
    pub(super) process: Child,
}

impl Child {
    /// Power to the wall: no goodbye.
    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// This program, without what the environment would change in it.
fn program(args: &[&str]) -> Result<Command, Failure> {
    let path = std::env::current_exe().map_err(|e| Failure::failed("this program", e))?;
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TIDELINE") {
            command.env_remove(name);
        }
    }
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

fn spawn(mut command: Command) -> Result<(Child, BufReader<std::process::ChildStdout>), Failure> {
    let mut child = command.spawn().map_err(|e| Failure::failed("starting a process", e))?;
    let out = child.stdout.take().expect("it is piped");
    Ok((Child(child), BufReader::new(out)))
}

/// Starts a server, and waits until it says where it listens.
pub(super) fn server(data: &Path) -> Result<Server, Failure> {
    let mut command =
        program(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data"])?;
    command.arg(data).args(["--set", "logging.level=warn"]);
    let (process, out) = spawn(command)?;
    let (mut http, mut grpc) = (None, None);
    let mut lines = out.lines();
    for line in lines.by_ref().map_while(Result::ok) {
        let word = |mark: &str| {
            let rest = line.trim().strip_prefix(mark)?;
            rest.split_whitespace().next().map(str::to_owned)
        };
        http = http.or_else(|| word("HTTP"));
        grpc = grpc.or_else(|| word("gRPC"));
        if line.trim() == "Ctrl-C stops it." {
            break;
        }
    }
    // Its pipe stays open, and empty.
    std::thread::spawn(move || lines.for_each(drop));
    match (http, grpc) {
        (Some(http), Some(grpc)) => {
            Ok(Server { http, grpc: format!("http://{grpc}"), _process: process })
        }
        _ => Err(Failure::Failed("the server did not start".into())),
    }
}

/// Starts a tier of `topic`, and waits until it says where it listens.
pub(super) fn tier(
    topic: &str,
    data: &Path,
    grpc: &str,
    listen: &str,
) -> Result<TierProcess, Failure> {
    let mut command = program(&["tier", topic, "--grpc", grpc, "--listen", listen])?;
    command.arg("--data").arg(data).args(["--hot-keys", "25"]);
    let (process, mut out) = spawn(command)?;
    let mut line = String::new();
    let read = out.read_line(&mut line);
    match line.trim().split_once(" on ") {
        Some((_, url)) if read.is_ok() => Ok(TierProcess { url: url.to_owned(), process }),
        _ => Err(Failure::Failed(format!("the tier of {topic} did not start"))),
    }
}

/// Starts a reader; each line that it prints goes to `lines`.
pub(super) fn reader(
    number: u32,
    tiers: &[String],
    lines: mpsc::Sender<String>,
) -> Result<Child, Failure> {
    let number = number.to_string();
    let mut command = program(&["example", "reader", "--number", &number])?;
    for tier in tiers {
        command.args(["--tier", tier]);
    }
    let (process, out) = spawn(command)?;
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    Ok(process)
}
