//! Our side: the `tideline` program as a user would run it, with its defaults,
//! on one core and over a folder of its own.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::BenchError;
use crate::process::{Process, free_port};

/// A running `tideline serve`.
#[derive(Debug)]
pub(crate) struct Ours {
    /// The process.
    pub(crate) process: Process,
    /// HTTP.
    pub(crate) http: SocketAddr,
    /// gRPC.
    pub(crate) grpc: SocketAddr,
    program: PathBuf,
    dir: PathBuf,
    core: usize,
    env: Vec<(&'static str, String)>,
}

/// `RecordStream` of the history service.
pub(crate) const RECORD_STREAM: &str = "/tideline.history.v1.HistoryService/RecordStream";
/// `RecordBatch` of the history service.
pub(crate) const RECORD_BATCH: &str = "/tideline.history.v1.HistoryService/RecordBatch";
/// `Apply` of the metadata service.
pub(crate) const APPLY: &str = "/tideline.meta.v1.MetaService/Apply";
/// `ApplyStream` of the metadata service.
pub(crate) const APPLY_STREAM: &str = "/tideline.meta.v1.MetaService/ApplyStream";
/// `DeclareSubtree` of the metadata service.
pub(crate) const DECLARE: &str = "/tideline.meta.v1.MetaService/DeclareSubtree";
/// `Observe` of the metadata service.
pub(crate) const OBSERVE: &str = "/tideline.meta.v1.MetaService/Observe";
/// `List` of the history service.
pub(crate) const LIST: &str = "/tideline.history.v1.HistoryService/List";

impl Ours {
    /// Starts `program` on `core` over `dir`; `env` are settings such as
    /// `TIDELINE__HISTORY__HOT_BUDGET_BYTES`.
    pub(crate) fn start(
        program: &Path,
        core: usize,
        dir: &Path,
        env: &[(&'static str, String)],
    ) -> Result<Self, BenchError> {
        let (process, http, grpc) = launch(program, core, dir, env)?;
        let (program, dir, env) = (program.to_path_buf(), dir.to_path_buf(), env.to_vec());
        let mut ours = Self { process, http, grpc, program, dir, core, env };
        ours.wait_ready()?;
        Ok(ours)
    }

    /// Kills it without warning and starts it over the same folder; from the
    /// start of the new process to ready.
    pub(crate) fn kill_and_restart(&mut self) -> Result<Duration, BenchError> {
        self.process.kill()?;
        let start = Instant::now();
        self.start_again()?;
        Ok(start.elapsed())
    }

    fn start_again(&mut self) -> Result<(), BenchError> {
        let env = self.env.clone();
        (self.process, self.http, self.grpc) = launch(&self.program, self.core, &self.dir, &env)?;
        self.wait_ready()
    }

    /// Stops it in good order: everything comes to rest.
    pub(crate) fn stop(mut self) -> Result<(), BenchError> {
        self.process.end()
    }

    /// Stops it in good order and starts it over the same folder; answers the
    /// bytes of its tables in between.
    pub(crate) fn tables_at_rest(&mut self) -> Result<u64, BenchError> {
        self.process.end()?;
        let bytes = bytes_below(&self.dir.join("tables"));
        self.start_again()?;
        Ok(bytes)
    }

    fn wait_ready(&mut self) -> Result<(), BenchError> {
        let http = self.http;
        let ready = || get(http, "/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"));
        self.process.wait_ready(Duration::from_secs(300), ready).map(|_| ())
    }

    /// All counters and gauges of `/metrics`, summed over their labels.
    pub(crate) fn metrics(&self) -> Result<BTreeMap<String, f64>, BenchError> {
        let text = get(self.http, "/metrics")?;
        let mut sums = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let name = name.split('{').next().unwrap_or(name);
            if let Ok(value) = value.trim().parse::<f64>() {
                *sums.entry(name.to_string()).or_insert(0.0) += value;
            }
        }
        Ok(sums)
    }

    /// Bytes of all files in its folder.
    pub(crate) fn disk_bytes(&self) -> u64 {
        bytes_below(&self.dir)
    }
}

fn launch(
    program: &Path,
    core: usize,
    dir: &Path,
    env: &[(&'static str, String)],
) -> Result<(Process, SocketAddr, SocketAddr), BenchError> {
    let address = || Ok::<_, BenchError>(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
    let (http, grpc) = (address()?, address()?);
    let (data, h, g) = (dir.display().to_string(), http.to_string(), grpc.to_string());
    let args = ["serve", "--data", &data, "--http", &h, "--grpc", &g];
    let log = dir.with_extension("log");
    Ok((Process::start(core, program, &args, env, &log)?, http, grpc))
}

/// One GET over a connection of its own; the whole answer as text.
fn get(address: SocketAddr, path: &str) -> Result<String, BenchError> {
    let patience = Duration::from_secs(10);
    let failed = |e: std::io::Error| BenchError::io(format!("GET {path}"), &e);
    let mut stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Bytes that the files below `dir` take on the disk (a hole takes none).
pub(crate) fn bytes_below(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.blocks() * 512),
    });
    bytes.sum()
}
