//! The peer of bytes at rest: Debian's `mariadbd` over a folder of its own,
//! reached by its socket alone, with an index and a content table as a team
//! would make them.
//!
//! InnoDB with `ROW_FORMAT=DYNAMIC`, the default; rows come in the order of the
//! primary key (video, id), so its pages are as full as they can be.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::BenchError;
use crate::ours::bytes_below;
use crate::process::Process;

/// A running server.
pub(crate) struct MariaDb {
    process: Process,
    socket: PathBuf,
    data: PathBuf,
}

/// What is shown of a comment, and where it lies, apart from what it says.
const TABLES: &str = "CREATE DATABASE bench; USE bench;
CREATE TABLE danmaku_index (video BIGINT UNSIGNED NOT NULL, id BIGINT UNSIGNED NOT NULL,
 state TINYINT UNSIGNED NOT NULL, pool TINYINT UNSIGNED NOT NULL, mode TINYINT UNSIGNED NOT NULL,
 progress_ms INT UNSIGNED NOT NULL, attr INT UNSIGNED NOT NULL, likes INT UNSIGNED NOT NULL,
 PRIMARY KEY (video, id), KEY shown (video, state, progress_ms)) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE TABLE danmaku_content (video BIGINT UNSIGNED NOT NULL, id BIGINT UNSIGNED NOT NULL,
 sender BIGINT UNSIGNED NOT NULL, color INT UNSIGNED NOT NULL, size TINYINT UNSIGNED NOT NULL,
 sent_ms BIGINT NOT NULL, content VARCHAR(300) CHARACTER SET utf8mb4 NOT NULL,
 PRIMARY KEY (video, id)) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;";

impl MariaDb {
    /// Starts one on `core` below `folder`.
    pub(crate) fn start(core: usize, folder: &Path) -> Result<Self, BenchError> {
        let dir = folder.join("mariadb");
        let data = dir.join("data");
        std::fs::create_dir_all(&data).map_err(|e| BenchError::io("make a folder", &e))?;
        let user = Command::new("id").arg("-un").output().map_err(|e| BenchError::io("id", &e))?;
        let user = format!("--user={}", String::from_utf8_lossy(&user.stdout).trim());
        let at = format!("--datadir={}", data.display());
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", &at, &user, "--auth-root-authentication-method=normal"])
            .args(["--skip-test-db"])
            .stdout(Stdio::null())
            .status();
        match made {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(BenchError::Peer(format!("mariadb-install-db: {status}"))),
            Err(error) => return Err(BenchError::io("mariadb-install-db", &error)),
        }
        let socket = dir.join("socket");
        let args = [
            "--no-defaults".to_owned(),
            at,
            user,
            format!("--socket={}", socket.display()),
            "--skip-networking".into(),
            "--innodb-buffer-pool-size=512M".into(),
            // How fast it loads is not asked.
            "--innodb-flush-log-at-trx-commit=0".into(),
            "--skip-log-bin".into(),
        ];
        let log = dir.join("log.txt");
        let process = Process::start(core, Path::new("mariadbd"), &args, &[], &log)?;
        let mut server = Self { process, socket, data };
        let asked = server.client();
        server.process.wait_ready(Duration::from_secs(60), || {
            let mut ask = Command::new(asked.0);
            ask.args(&asked.1).args(["-e", "SELECT 1"]);
            ask.stdout(Stdio::null()).stderr(Stdio::null());
            ask.status().is_ok_and(|status| status.success())
        })?;
        server.run(&mut |input| input.write_all(TABLES.as_bytes()))?;
        Ok(server)
    }

    /// Its version, such as `10.11.14`.
    pub(crate) fn version(&self) -> Result<String, BenchError> {
        let (program, args) = self.client();
        let told = Command::new(program).args(args).args(["-N", "-e", "SELECT VERSION()"]).output();
        let told = told.map_err(|e| BenchError::io("mariadb", &e))?;
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        Ok(text.split('-').next().unwrap_or("?").trim().to_owned())
    }

    /// Bytes of both tables' files for each of `count` comments, of which
    /// `row` gives what stands between the brackets of both inserts.
    pub(crate) fn bytes_per_comment(
        &self,
        count: u64,
        row: &dyn Fn(u64) -> (String, String),
    ) -> Result<f64, BenchError> {
        self.run(&mut |input| {
            input.write_all(b"USE bench;\n")?;
            for first in (0..count).step_by(1_000) {
                let rows: Vec<_> = (first..count.min(first + 1_000)).map(row).collect();
                let list = |of: &dyn Fn(&(String, String)) -> String| {
                    rows.iter().map(|row| format!("({})", of(row))).collect::<Vec<_>>().join(",")
                };
                writeln!(input, "INSERT INTO danmaku_index VALUES {};", list(&|r| r.0.clone()))?;
                writeln!(input, "INSERT INTO danmaku_content VALUES {};", list(&|r| r.1.clone()))?;
            }
            // What was written must be in the files before they are weighed.
            input.write_all(b"FLUSH TABLES danmaku_index, danmaku_content FOR EXPORT;\n")
        })?;
        Ok(bytes_below(&self.data.join("bench")) as f64 / count as f64)
    }

    fn client(&self) -> (&'static str, [String; 3]) {
        let socket = format!("--socket={}", self.socket.display());
        ("mariadb", ["--no-defaults".into(), "--user=root".into(), socket])
    }

    /// Runs what `write` says.
    fn run(
        &self,
        write: &mut dyn FnMut(&mut dyn std::io::Write) -> std::io::Result<()>,
    ) -> Result<(), BenchError> {
        let failed = |e: std::io::Error| BenchError::io("mariadb", &e);
        let (program, args) = self.client();
        let child = Command::new(program).args(args).stdin(Stdio::piped()).spawn();
        let mut child = child.map_err(failed)?;
        let input = child.stdin.take().expect("it was asked for");
        let mut input = std::io::BufWriter::with_capacity(1 << 20, input);
        write(&mut input).and_then(|()| input.flush()).map_err(failed)?;
        drop(input);
        let status = child.wait().map_err(failed)?;
        if status.success() { Ok(()) } else { Err(BenchError::Peer(format!("mariadb: {status}"))) }
    }
}
