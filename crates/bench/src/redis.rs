//! The peer that all are measured by: Debian's `redis-server`, append-only
//! file synced every second, in a folder and on a port of its own.
//!
//! Its rewrite of the append-only file is off: the fork would cost it time
//! that says nothing about the pattern. Snapshots are off too.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::BenchError;
use crate::process::{Process, free_port};
use crate::resp::ask;

/// A running Redis.
#[derive(Debug)]
pub(crate) struct Redis {
    /// The process.
    pub(crate) process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Redis {
    /// Starts one on `core` in `dir`, which must exist.
    pub(crate) fn start(core: usize, dir: &Path) -> Result<Self, BenchError> {
        let port = free_port()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (port, folder) = (port.to_string(), dir.display().to_string());
        let args = [
            ["--port", &port],
            ["--bind", "127.0.0.1"],
            ["--dir", &folder],
            ["--appendonly", "yes"],
            ["--appendfsync", "everysec"],
            ["--auto-aof-rewrite-percentage", "0"],
            ["--save", ""],
        ];
        let program = Path::new("redis-server");
        let log = dir.join("log.txt");
        let mut process = Process::start(core, program, args.as_flattened(), &[], &log)?;
        process.wait_ready(Duration::from_secs(20), || {
            ask(address, &["PING"]).is_ok_and(|answer| answer.starts_with("+PONG"))
        })?;
        Ok(Self { process, address })
    }

    /// Its version, such as `7.0.15`.
    pub(crate) fn version(&self) -> Result<String, BenchError> {
        let info = ask(self.address, &["INFO", "server"])?;
        let line = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
        Ok(line.unwrap_or("?").trim().to_string())
    }
}
