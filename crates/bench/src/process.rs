//! Programs under measurement: started on a core of their own, frozen while
//! another one is measured, and weighed by what `/proc` says of them.
//!
//! Linux only, as is `taskset`.

use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::BenchError;

/// A running program. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts `program` on `core`, its output in `log`.
    pub(crate) fn start<S: AsRef<OsStr>>(
        core: usize,
        program: &Path,
        args: &[S],
        env: &[(&str, String)],
        log: &Path,
    ) -> Result<Self, BenchError> {
        let name = program.display().to_string();
        let file = File::create(log).map_err(|e| BenchError::io("create log", &e))?;
        let both = file.try_clone().map_err(|e| BenchError::io("create log", &e))?;
        let child = Command::new("taskset")
            .arg("-c")
            .arg(core.to_string())
            .arg(program)
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(both)
            .spawn()
            .map_err(|e| BenchError::io(format!("start {name} by taskset"), &e))?;
        Ok(Self { child, name })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` says so; an error if the program ends before, or
    /// is not ready within `patience`.
    pub(crate) fn wait_ready(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<Duration, BenchError> {
        let start = Instant::now();
        loop {
            if ready() {
                return Ok(start.elapsed());
            }
            let ended = self.child.try_wait().map_err(|e| BenchError::io("wait", &e))?;
            if ended.is_some() || start.elapsed() > patience {
                return Err(BenchError::NotReady(self.name.clone()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops it from running at all, as if the machine were not there.
    pub(crate) fn freeze(&self) -> Result<(), BenchError> {
        self.signal("-STOP")
    }

    /// Lets it run on.
    pub(crate) fn thaw(&self) -> Result<(), BenchError> {
        self.signal("-CONT")
    }

    /// Kills it as power loss would, as far as the program can tell.
    pub(crate) fn kill(&mut self) -> Result<(), BenchError> {
        self.child.kill().map_err(|e| BenchError::io("kill", &e))?;
        self.child.wait().map_err(|e| BenchError::io("wait", &e))?;
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&mut self) -> Result<(), BenchError> {
        self.signal("-TERM")?;
        self.child.wait().map(|_| ()).map_err(|e| BenchError::io("wait", &e))
    }

    fn signal(&self, signal: &str) -> Result<(), BenchError> {
        let pid = self.pid().to_string();
        let status = Command::new("kill").args([signal, &pid]).status();
        status.map(|_| ()).map_err(|e| BenchError::io("kill", &e))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps this process, with all its threads, on `core`.
pub(crate) fn pin_self(core: usize) -> Result<(), BenchError> {
    let pid = std::process::id().to_string();
    let status = Command::new("taskset")
        .args(["-acp", &core.to_string(), &pid])
        .stdout(Stdio::null())
        .status()
        .map_err(|e| BenchError::io("taskset", &e))?;
    if status.success() { Ok(()) } else { Err(BenchError::Core(core)) }
}

/// A TCP port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| BenchError::io("bind", &e))?;
    listener.local_addr().map(|a| a.port()).map_err(|e| BenchError::io("bind", &e))
}

/// What a process has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// CPU time of all its threads, in user and kernel.
    pub(crate) cpu: Duration,
    /// Resident memory, in bytes.
    pub(crate) resident: u64,
}

/// Ticks of `/proc/PID/stat` in a second; fixed on Linux.
const TICKS: u64 = 100;

/// Reads what process `pid` has used.
pub(crate) fn used(pid: u32) -> Result<Used, BenchError> {
    let read = |file: &str| {
        let path = format!("/proc/{pid}/{file}");
        std::fs::read_to_string(&path).map_err(|e| BenchError::io(path, &e))
    };
    let (stat, status) = (read("stat")?, read("status")?);
    // The name, in brackets, may hold anything; the numbers come after it.
    let numbers = stat.rsplit(')').next().unwrap_or_default();
    let tick = |at: usize| numbers.split_whitespace().nth(at).and_then(|n| n.parse().ok());
    let ticks: u64 = tick(11).unwrap_or(0) + tick(12).unwrap_or(0);
    let kib = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0)
    };
    Ok(Used { cpu: Duration::from_millis(ticks * 1000 / TICKS), resident: kib("VmRSS:") * 1024 })
}

/// Nanoseconds for which the main thread of this process has run: unlike a
/// wall clock it stands still while others have the core.
pub(crate) fn own_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Shares of a core between a start and an end.
#[derive(Debug)]
pub(crate) struct Meter {
    start: Instant,
    before: Vec<(u32, Duration)>,
    own: Duration,
}

/// What a [`Meter`] read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Share of one core that the measured processes had, 1.0 = all of it.
    pub(crate) server_core: f64,
    /// The same of this process: near 1.0, the client was the bottleneck.
    pub(crate) client_core: f64,
    /// Bytes resident in the measured processes at the end.
    pub(crate) resident: u64,
}

impl Meter {
    /// Starts to weigh `pids`.
    pub(crate) fn start(pids: &[u32]) -> Result<Self, BenchError> {
        let before = pids.iter().map(|&pid| Ok((pid, used(pid)?.cpu)));
        let before = before.collect::<Result<_, BenchError>>()?;
        Ok(Self { start: Instant::now(), before, own: used(std::process::id())?.cpu })
    }

    /// What was used since the start.
    pub(crate) fn stop(self) -> Result<Cost, BenchError> {
        let elapsed = self.start.elapsed().as_secs_f64().max(1e-9);
        let mut cost = Cost::default();
        for (pid, before) in self.before {
            let now = used(pid)?;
            cost.server_core += now.cpu.saturating_sub(before).as_secs_f64() / elapsed;
            cost.resident += now.resident;
        }
        let own = used(std::process::id())?.cpu.saturating_sub(self.own);
        cost.client_core = own.as_secs_f64() / elapsed;
        Ok(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time_that_proc_shows() {
        let used = used(std::process::id()).unwrap();
        assert!(used.resident > 1 << 20);
    }
}
