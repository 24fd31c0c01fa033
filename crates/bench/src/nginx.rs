//! The peer of bodies: Debian's nginx with one worker, serving files whose
//! bytes are compressed already, without a log.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::BenchError;
use crate::danmaku::{answers, loopback, write};
use crate::process::{Process, free_port};

/// A running nginx.
#[derive(Debug)]
pub(crate) struct Nginx {
    /// Its worker: with one process there is no master.
    pub(crate) process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Nginx {
    /// Starts one on `core` that serves `bytes`, gzip already, as `/name`.
    pub(crate) fn start(
        core: usize,
        folder: &Path,
        name: &str,
        bytes: &[u8],
    ) -> Result<Self, BenchError> {
        let dir = folder.join("nginx");
        let files = dir.join("files");
        std::fs::create_dir_all(&files).map_err(|e| BenchError::io("make a folder", &e))?;
        write(&files.join(name), bytes)?;
        let port = free_port()?;
        let here = dir.display();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log {here}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on;\n\
             keepalive_requests 1000000000; open_file_cache max=16; etag on;\n\
             client_body_temp_path {here}; proxy_temp_path {here}; fastcgi_temp_path {here};\n\
             uwsgi_temp_path {here}; scgi_temp_path {here};\n\
             server {{ listen 127.0.0.1:{port}; root {here}/files;\n\
             location / {{ default_type application/x-protobuf; add_header Content-Encoding gzip;\n\
             add_header Cache-Control 'public, max-age=5'; add_header Vary Accept-Encoding; }} }}\n}}\n"
        );
        let path = dir.join("nginx.conf");
        write(&path, config.as_bytes())?;
        let args = ["-c".to_owned(), path.display().to_string()];
        let log = dir.join("log.txt");
        let mut process = Process::start(core, Path::new("nginx"), &args, &[], &log)?;
        let address = loopback(port);
        process.wait_ready(Duration::from_secs(20), || answers(address))?;
        Ok(Self { process, address })
    }

    /// Its version, such as `1.22.1`.
    pub(crate) fn version(&self) -> Result<String, BenchError> {
        let told = Command::new("nginx").arg("-v").output();
        let told = told.map_err(|e| BenchError::io("nginx -v", &e))?;
        let text = String::from_utf8_lossy(&told.stderr).into_owned();
        Ok(text.trim().rsplit('/').next().unwrap_or("?").to_owned())
    }
}
