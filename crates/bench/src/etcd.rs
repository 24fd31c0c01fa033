//! A peer of the metadata tree: Debian's `etcd`, one node, with its defaults: a
//! write is synced before it is answered.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;

use crate::BenchError;
use crate::encode::put_bytes;
use crate::process::{Process, free_port};

/// `Put`.
pub(crate) const PUT: &str = "/etcdserverpb.KV/Put";
/// `Watch`.
pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// A running etcd.
pub(crate) struct Etcd {
    /// The process.
    pub(crate) process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Etcd {
    /// Starts one on `core` in `dir`, which must exist.
    pub(crate) fn start(core: usize, dir: &Path) -> Result<Self, BenchError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let (client, peer) = (format!("http://{address}"), free_port()?);
        let peer = format!("http://127.0.0.1:{peer}");
        let data = dir.join("data").display().to_string();
        let initial = format!("default={peer}");
        let args = [
            ["--data-dir", &data],
            ["--listen-client-urls", &client],
            ["--advertise-client-urls", &client],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &initial],
            ["--log-level", "error"],
        ];
        let (program, log) = (Path::new("etcd"), dir.join("log.txt"));
        let mut process = Process::start(core, program, args.as_flattened(), &[], &log)?;
        let up = || TcpStream::connect(address).is_ok();
        process.wait_ready(Duration::from_secs(60), up)?;
        Ok(Self { process, address })
    }

    /// Its version, such as `3.4.23`.
    pub(crate) fn version() -> Result<String, BenchError> {
        let told = Command::new("etcd").arg("--version").output();
        let told = told.map_err(|e| BenchError::io("etcd", &e))?;
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("etcd Version: "));
        Ok(line.unwrap_or("?").to_owned())
    }
}

/// A `PutRequest`.
pub(crate) fn put(key: &str, value: &[u8]) -> Bytes {
    let mut out = Vec::new();
    put_bytes(1, key.as_bytes(), &mut out);
    put_bytes(2, value, &mut out);
    out.into()
}

/// A `WatchRequest` for all keys that begin with `prefix`, whose last byte is
/// not 255.
pub(crate) fn watch(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    let (mut create, mut out) = (Vec::new(), Vec::new());
    put_bytes(1, prefix.as_bytes(), &mut create);
    put_bytes(2, &end, &mut create);
    put_bytes(1, &create, &mut out);
    out.into()
}
