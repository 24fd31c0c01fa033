//! A server under test: started on a folder, told apart by its port, killed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::http::Http;
use crate::ledger::caps;
use crate::trail::{Ended, Recorder};

/// How to start one.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program.
    pub binary: PathBuf,
    /// The data folder; it must exist.
    pub data: PathBuf,
    /// Settings by environment, over those that every test has.
    pub settings: Vec<(String, String)>,
}

/// One that was started.
#[derive(Debug)]
pub struct Server {
    process: Process,
    http: SocketAddr,
    said: Arc<Mutex<Vec<String>>>,
}

/// `None` once its end was asked for.
#[derive(Debug)]
struct Process(Option<Running>);

#[derive(Debug)]
enum Running {
    Plain(Child),
    Recorded(Recorder),
}

/// A start that did not come to be.
#[derive(Debug)]
pub struct NotStarted(pub String);

/// How long a start may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Setup {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data"])
            .arg(&self.data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (key, value) in base_settings().into_iter().chain(self.settings.clone()) {
            command.env(key, value);
        }
        command
    }

    /// Starts it and waits until it is ready.
    pub fn start(&self) -> Result<Server, NotStarted> {
        let spawned = self.spawn()?;
        spawned.ready()
    }

    /// Starts it and does not wait.
    pub fn spawn(&self) -> Result<Starting, NotStarted> {
        let mut child = self.command().spawn().map_err(not_started)?;
        let pipes = (child.stdout.take(), child.stderr.take());
        Ok(Starting::new(Process(Some(Running::Plain(child))), pipes.0, pipes.1))
    }

    /// Starts it, recording what it does to its folder.
    pub fn record(&self) -> Result<Server, NotStarted> {
        let (recorder, out, err) =
            Recorder::start(self.command(), &self.data).map_err(not_started)?;
        Starting::new(Process(Some(Running::Recorded(recorder))), out, err).ready()
    }

    /// Runs `tideline check` on the folder, which no server may hold.
    pub fn check(&self) -> Result<(), String> {
        let output = Command::new(&self.binary).arg("check").arg(&self.data).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!(
                "tideline check {}: {}\n{}{}",
                self.data.display(),
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The same for another folder.
    pub fn on(&self, data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), ..self.clone() }
    }
}

fn not_started(error: io::Error) -> NotStarted {
    NotStarted(error.to_string())
}

/// What every test sets: few partitions, the load's caps, no limits of rate,
/// cold rows soon, and a time zone in which no day ends while a test runs.
fn base_settings() -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = [
        ("TIDELINE__QUEUE__PARTITIONS", "4"),
        ("TIDELINE__LIMITS__USER_WRITES_PER_SECOND", "0"),
        ("TIDELINE__LIMITS__USER_READS_PER_SECOND", "0"),
        ("TIDELINE__HISTORY__FLUSH_AFTER_MS", "300"),
        ("TIDELINE__LOGGING__LEVEL", "warn"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    for (kind, cap) in caps() {
        let key = format!("TIDELINE__HISTORY__KINDS__{}__MAX_RECORDS", kind.to_uppercase());
        settings.push((key, cap.to_string()));
    }
    // Around noon: 12 hours either way. `Etc/GMT-5` is five hours ahead of UTC.
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let ahead = 12 - (seconds / 3_600 % 24) as i64;
    settings.push(("TIDELINE__HISTORY__TIMEZONE".into(), format!("Etc/GMT{:+}", -ahead)));
    settings
}

/// A process that may not be ready yet.
#[derive(Debug)]
pub struct Starting {
    process: Process,
    said: Arc<Mutex<Vec<String>>>,
    address: mpsc::Receiver<SocketAddr>,
}

impl Starting {
    fn new(
        process: Process,
        out: Option<impl Read + Send + 'static>,
        err: Option<impl Read + Send + 'static>,
    ) -> Self {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, address) = mpsc::channel();
        if let Some(out) = out {
            listen(out, said.clone(), Some(tell.clone()));
        }
        if let Some(err) = err {
            listen(err, said.clone(), Some(tell));
        }
        Self { process, said, address }
    }

    /// Waits until it answers that it is ready.
    pub fn ready(mut self) -> Result<Server, NotStarted> {
        // The channel closes when the process ends and says no more.
        let Ok(http) = self.address.recv_timeout(PATIENCE) else {
            let said = said(&self.said);
            self.process.kill();
            return Err(NotStarted(format!("it said:\n{said}")));
        };
        let server = Server { process: self.process, http, said: self.said };
        let begun = std::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            match server.connect().and_then(|mut http| http.get("/readyz")) {
                Ok(response) if response.status == 200 => return Ok(server),
                Ok(_) => std::thread::park_timeout(Duration::from_millis(2)),
                Err(_) if server.said().contains("panicked") => break,
                Err(_) => std::thread::park_timeout(Duration::from_millis(2)),
            }
        }
        let said = server.said();
        server.kill();
        Err(NotStarted(format!("it was not ready; it said:\n{said}")))
    }

    /// Kills it, ready or not.
    pub fn kill(mut self) {
        self.process.kill();
    }
}

/// Keeps what a process says, and finds the address that it names.
fn listen(
    pipe: impl Read + Send + 'static,
    said: Arc<Mutex<Vec<String>>>,
    mut address: Option<mpsc::Sender<SocketAddr>>,
) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { return };
            if let Some(tell) = &address
                && let Some(found) = http_address(&line)
            {
                let _ = tell.send(found);
                address = None;
            }
            let mut said = said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            said.push(line);
        }
    });
}

/// `http://127.0.0.1:1234` in a line.
fn http_address(line: &str) -> Option<SocketAddr> {
    let rest = line.split("http://").nth(1)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':');
    rest[..end.unwrap_or(rest.len())].parse().ok().filter(|found: &SocketAddr| found.port() != 0)
}

fn said(lines: &Mutex<Vec<String>>) -> String {
    lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join("\n")
}

impl Process {
    fn kill(&mut self) -> Option<Ended> {
        match self.0.take()? {
            Running::Plain(mut child) => {
                let _ = child.kill();
                let _ = child.wait();
                None
            }
            Running::Recorded(recorder) => {
                let _ = recorder.signal(libc::SIGKILL);
                recorder.wait().ok()
            }
        }
    }
}

/// A test that fails leaves no server behind.
impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// A new connection.
    pub fn connect(&self) -> io::Result<Http> {
        Http::connect(self.http)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.http
    }

    /// What it said so far, on both outputs.
    pub fn said(&self) -> String {
        said(&self.said)
    }

    /// The recorder, where it is recorded.
    pub fn recorder(&self) -> Option<&Recorder> {
        match &self.process.0 {
            Some(Running::Recorded(recorder)) => Some(recorder),
            _ => None,
        }
    }

    /// SIGKILL.
    pub fn kill(mut self) -> Option<Ended> {
        self.process.kill()
    }

    /// The id of the process, to be killed by another thread while this one
    /// still waits for answers.
    pub fn pid(&self) -> u32 {
        match &self.process.0 {
            Some(Running::Plain(child)) => child.id(),
            Some(Running::Recorded(recorder)) => recorder.pid(),
            None => unreachable!("what asks for the end takes the server"),
        }
    }

    /// SIGTERM, then waits for the end.
    pub fn stop(mut self) -> io::Result<(ExitStatus, Option<Ended>)> {
        match self.process.0.take() {
            Some(Running::Plain(mut child)) => {
                crate::trail::signal(child.id(), libc::SIGTERM)?;
                Ok((child.wait()?, None))
            }
            Some(Running::Recorded(recorder)) => {
                recorder.signal(libc::SIGTERM)?;
                let ended = recorder.wait()?;
                Ok((ended.status, Some(ended)))
            }
            None => unreachable!("what asks for the end takes the server"),
        }
    }
}

/// Copies a folder; long runs of zeroes become holes, as they mostly were.
pub fn copy_folder(from: &Path, into: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = into.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            copy_file(&entry.path(), &target)?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, into: &Path) -> io::Result<()> {
    let (mut from, mut into) = (File::open(from)?, File::create(into)?);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            let len = into.stream_position()?;
            return into.set_len(len);
        }
        if buffer[..count].iter().all(|&byte| byte == 0) {
            into.seek(SeekFrom::Current(count as i64))?;
        } else {
            into.write_all(&buffer[..count])?;
        }
    }
}
