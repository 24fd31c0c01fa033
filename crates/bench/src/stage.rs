//! Who stands on the server's core: ours, Redis, the app over Redis, one
//! running at a time; and how a run of lanes becomes a [`Measure`].

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::drive::{Codec, Lane, Request, Seen, drive};
use crate::grpc::{Count, Grpc};
use crate::ours::{Ours, RECORD_STREAM};
use crate::process::{Meter, Process, free_port};
use crate::redis::Redis;
use crate::report::{Line, Measure, Report, machine};
use crate::{BenchError, RunArgs};

/// How long a run may hear nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The report as it grows; each line is shown on stderr as it is measured.
pub(crate) struct Output {
    report: Report,
    json: bool,
}

impl Output {
    /// `marks`: of the data set, beside Redis.
    pub(crate) fn new(args: &RunArgs, marks: Option<u64>) -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let setting = format!(
            "one core for the server (and for a peer with all that it stands on), one for the \
             client; fsync on before every acknowledgement of ours{}; ratios: medians of {} rounds; \
             load average at the start {}",
            marks.map_or(String::new(), |marks| {
                format!(", Redis appendfsync everysec; {marks} marks")
            }),
            args.rounds,
            load.split(' ').next().unwrap_or("?")
        );
        let report = Report { machine: machine(), setting, lines: Vec::new() };
        Self { report, json: args.json }
    }

    /// Adds what was learnt about the peer to the head.
    pub(crate) fn peer(&mut self, peer: &str) {
        if !self.report.machine.contains(peer) {
            self.report.machine.push_str(", ");
            self.report.machine.push_str(peer);
        }
    }

    pub(crate) fn line(&mut self, line: Line) {
        let mut text = String::new();
        line.write(&mut text);
        eprintln!("{text}");
        self.report.lines.push(line);
    }

    pub(crate) fn say(&self, what: &str) {
        eprintln!("... {what}");
    }

    pub(crate) fn finish(self) {
        if self.json {
            let json = serde_json::to_string_pretty(&self.report);
            println!("{}", json.expect("a report has only strings and numbers"));
        } else {
            print!("{}", self.report.text());
        }
    }
}

/// A folder for the data of one stage, removed with it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(args: &RunArgs, name: &str) -> Result<Self, BenchError> {
        let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
        let path = base.join(format!("tideline-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| BenchError::io("make a folder", &e))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program under measurement, beside this one unless the caller says.
pub(crate) fn server_program(args: &RunArgs) -> Result<PathBuf, BenchError> {
    if let Some(path) = &args.server {
        return Ok(path.clone());
    }
    let own = std::env::current_exe().map_err(|e| BenchError::io("own path", &e))?;
    Ok(own.with_file_name("tideline"))
}

/// Starts ours alone in `folder`, with its defaults and what `more` sets.
pub(crate) fn start_ours(
    args: &RunArgs,
    folder: &Folder,
    more: &[(&'static str, String)],
) -> Result<Ours, BenchError> {
    let dir = folder.path().join("tideline");
    std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("make a folder", &e))?;
    Ours::start(&server_program(args)?, args.server_core, &dir, more)
}

/// The app in front of Redis.
pub(crate) struct App {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

/// Ours and the peers, each over a folder of its own, all on one core.
pub(crate) struct Stage {
    pub(crate) ours: Ours,
    pub(crate) redis: Redis,
    pub(crate) app: App,
    _folder: Folder,
}

/// Who runs; the others are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Ours,
    Redis,
    App,
}

impl Stage {
    pub(crate) fn start(args: &RunArgs, name: &str) -> Result<Self, BenchError> {
        let folder = Folder::new(args, name)?;
        let ours = start_ours(args, &folder, &[])?;
        let dir = folder.path().join("redis");
        std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("make a folder", &e))?;
        let redis = Redis::start(args.server_core, &dir)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let own = std::env::current_exe().map_err(|e| BenchError::io("own path", &e))?;
        let app_args =
            ["app-over-redis".into(), address.to_string(), format!("redis://{}", redis.address)];
        let log = folder.path().join("app.log");
        let mut process = Process::start(args.server_core, &own, &app_args, &[], &log)?;
        let up = || TcpStream::connect(address).is_ok();
        process.wait_ready(Duration::from_secs(20), up)?;
        Ok(Self { ours, redis, app: App { process, address }, _folder: folder })
    }

    /// Lets `who` run and freezes the rest.
    pub(crate) fn only(&self, who: Who) -> Result<(), BenchError> {
        let runs =
            |process: &Process, runs: bool| if runs { process.thaw() } else { process.freeze() };
        runs(&self.ours.process, who == Who::Ours)?;
        runs(&self.redis.process, who != Who::Ours)?;
        runs(&self.app.process, who == Who::App)
    }

    /// Runs `lanes` against `who` alone; one measure for each lane.
    pub(crate) fn measure(
        &self,
        who: Who,
        lanes: &mut [Lane<'_>],
    ) -> Result<Vec<(Measure, Seen)>, BenchError> {
        self.only(who)?;
        match who {
            Who::Ours => measure_ours(&self.ours, lanes),
            Who::Redis => measure(&[self.redis.process.pid()], lanes),
            Who::App => measure(&[self.redis.process.pid(), self.app.process.pid()], lanes),
        }
    }
}

/// Runs `lanes` against ours, with its syncs counted.
pub(crate) fn measure_ours(
    ours: &Ours,
    lanes: &mut [Lane<'_>],
) -> Result<Vec<(Measure, Seen)>, BenchError> {
    let syncs = || Ok::<_, BenchError>(ours.metrics()?.get(SYNCS).copied().unwrap_or(f64::NAN));
    let before = syncs()?;
    let mut all = measure(&[ours.process.pid()], lanes)?;
    let after = syncs()?;
    for (measure, seen) in &mut all {
        let rate = (after - before) / seen.elapsed.as_secs_f64().max(1e-9);
        measure.syncs_per_s = rate.is_finite().then_some(rate);
    }
    Ok(all)
}

/// The counter of `fsync` calls.
const SYNCS: &str = "tideline_log_syncs_total";

/// Runs `lanes` against the processes `pids`.
pub(crate) fn measure(
    pids: &[u32],
    lanes: &mut [Lane<'_>],
) -> Result<Vec<(Measure, Seen)>, BenchError> {
    let meter = Meter::start(pids)?;
    let seen = drive(lanes, PATIENCE)?;
    let cost = meter.stop()?;
    let one = |seen: Seen| {
        let measure = Measure::timed(seen.rate(), &seen.latency).at(&cost);
        let measure = Measure { failed: seen.failed, ..measure };
        (measure, seen)
    };
    Ok(seen.into_iter().map(one).collect())
}

/// Closed-loop lane over encoded requests.
pub(crate) fn closed<'a>(
    address: SocketAddr,
    (connections, depth): (usize, usize),
    codec: &'a dyn Fn() -> Box<dyn Codec>,
    source: &'a mut dyn FnMut() -> Option<Request>,
) -> Lane<'a> {
    Lane { address, connections, depth, codec, source, pace: None }
}

/// Each of `requests` once, worth `weight`, until `limit` has passed.
pub(crate) fn once(
    requests: &[Bytes],
    weight: u64,
    limit: Option<Duration>,
) -> impl FnMut() -> Option<Request> {
    let mut all = requests.iter();
    let mut until = None;
    move || {
        if let Some(limit) = limit {
            let now = std::time::Instant::now();
            if now >= *until.get_or_insert(now + limit) {
                return None;
            }
        }
        Some(Request { payload: all.next()?.clone(), weight })
    }
}

/// The requests over and over, until `limit` has passed.
pub(crate) fn again(requests: &[Bytes], limit: Duration) -> impl FnMut() -> Option<Request> {
    let mut all = requests.iter().cycle();
    let mut until = None;
    move || {
        let now = std::time::Instant::now();
        if now >= *until.get_or_insert(now + limit) {
            return None;
        }
        Some(Request { payload: all.next()?.clone(), weight: 1 })
    }
}

/// Marks in a batch over gRPC.
pub(crate) const BATCH: usize = 500;
/// Streams, and batches under way on each.
pub(crate) const STREAMS: (usize, usize) = (4, 4);

/// Speaks `RecordStream`.
pub(crate) fn record_stream() -> Box<dyn Codec> {
    Box::new(Grpc::new(RECORD_STREAM, Count::Accepted, true))
}

/// Loads encoded batches into ours as fast as it takes them.
pub(crate) fn load(ours: &Ours, batches: &[Bytes]) -> Result<(Measure, Seen), BenchError> {
    let mut source = once(batches, BATCH as u64, None);
    let lane = closed(ours.grpc, STREAMS, &record_stream, &mut source);
    Ok(measure_ours(ours, &mut [lane])?.remove(0))
}

/// The present, in ms since the epoch.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
