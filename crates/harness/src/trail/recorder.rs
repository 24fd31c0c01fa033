//! Runs a program and records what it does to a folder.
//!
//! One thread traces the program. Changes are let through one at a time, so
//! that their order in the trail is the order in which they happened; syncs
//! run beside them, with a begin and an end, so that a change that is made
//! during a sync is not taken for one that it covers. A thread runs on only
//! after its call stands in the trail: what it tells others comes later.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;

use libc::pid_t;

use super::calls::{self, Call, PathArg, Source};
use super::names::{Inode, Names, inode};
use super::ptrace::{self, Stop};
use super::{Entry, Event, Node, Trail};

/// A running program whose changes of a folder are recorded.
#[derive(Debug)]
pub struct Recorder {
    trail: Arc<Mutex<Trail>>,
    process: pid_t,
    tracer: JoinHandle<io::Result<ExitStatus>>,
}

/// A recording that came to its end.
#[derive(Debug)]
pub struct Ended {
    /// How the program ended.
    pub status: ExitStatus,
    /// What it did.
    pub trail: Trail,
}

type Pipes = (pid_t, Option<ChildStdout>, Option<ChildStderr>);

impl Recorder {
    /// Starts `command`, recording changes of the folder `root`, which must
    /// exist; what is in it counts as durable. Also gives the program's
    /// outputs, where they were piped. Fails where tracing is not permitted.
    pub fn start(
        mut command: Command,
        root: &Path,
    ) -> io::Result<(Self, Option<ChildStdout>, Option<ChildStderr>)> {
        let mut trail = Trail::default();
        let names = Names::read(root, &mut trail)?;
        let trail = Arc::new(Mutex::new(trail));
        let shared = trail.clone();
        let (started, start) = mpsc::sync_channel::<io::Result<Pipes>>(1);
        let tracer = std::thread::spawn(move || {
            ptrace::traced(&mut command, &calls::traced());
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return Ok(ExitStatus::from_raw(0));
                }
            };
            let process = child.id() as pid_t;
            let _ = started.send(Ok((process, child.stdout.take(), child.stderr.take())));
            Tracer::new(process, names, shared).run()
        });
        let (process, out, err) = start.recv().map_err(io::Error::other)??;
        Ok((Self { trail, process, tracer }, out, err))
    }

    /// Notes `number` after everything that has happened; returns its place.
    pub fn mark(&self, number: u64) -> usize {
        lock(&self.trail).push(Event::Mark(number))
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        lock(&self.trail).events.len()
    }

    /// The program's process id.
    pub fn pid(&self) -> u32 {
        self.process as u32
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        ptrace::signal(self.process, signal)
    }

    /// Waits for the program's end.
    pub fn wait(self) -> io::Result<Ended> {
        let status = self.tracer.join().map_err(|_| io::Error::other("the tracer panicked"))??;
        let trail = std::mem::take(&mut *lock(&self.trail));
        Ok(Ended { status, trail })
    }
}

fn lock(trail: &Mutex<Trail>) -> MutexGuard<'_, Trail> {
    trail.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A call of a thread that is on its way.
enum Running {
    Change(Change),
    Sync(u32),
}

/// A change whose target is known and whose result is not.
enum Change {
    Open { at: Entry, flags: i32 },
    Write { fd: i32, node: Node, from: Source, offset: Option<u64>, synced: bool },
    Length { node: Node, len: u64 },
    Allocate { fd: i32, node: Node },
    Rename { from: Entry, to: Entry },
    Remove { at: Entry },
    MakeFolder { at: Entry, path: PathBuf },
}

struct Tracer {
    process: pid_t,
    names: Names,
    trail: Arc<Mutex<Trail>>,
    known: HashSet<pid_t>,
    running: HashMap<pid_t, Running>,
    /// The thread whose change is on its way; others wait in order.
    changing: Option<pid_t>,
    waiting: VecDeque<pid_t>,
    memory: Option<File>,
}

impl Tracer {
    fn new(process: pid_t, names: Names, trail: Arc<Mutex<Trail>>) -> Self {
        Self {
            process,
            names,
            trail,
            known: HashSet::new(),
            running: HashMap::new(),
            changing: None,
            waiting: VecDeque::new(),
            memory: None,
        }
    }

    fn run(mut self) -> io::Result<ExitStatus> {
        let mut status = ExitStatus::from_raw(0);
        while let Some((thread, stop)) = ptrace::wait()? {
            match stop {
                Stop::Call => self.called(thread),
                Stop::Return => self.returned(thread),
                Stop::Event => ptrace::go_on(thread, 0),
                Stop::Signal(libc::SIGTRAP) if thread == self.process && self.memory.is_none() => {
                    ptrace::follow(thread)?;
                    self.known.insert(thread);
                    self.memory = Some(File::open(format!("/proc/{thread}/mem"))?);
                    ptrace::go_on(thread, 0);
                }
                // A new thread starts with a stop that nobody sent.
                Stop::Signal(libc::SIGSTOP) if self.known.insert(thread) => {
                    ptrace::go_on(thread, 0);
                }
                Stop::Signal(signal) => ptrace::go_on(thread, signal),
                Stop::Gone(raw) => {
                    self.gone(thread);
                    if thread == self.process {
                        status = ExitStatus::from_raw(raw);
                    }
                }
            }
        }
        Ok(status)
    }

    fn called(&mut self, thread: pid_t) {
        let Ok((nr, args)) = ptrace::call(thread) else { return };
        match self.target(thread, calls::decode(nr, &args)) {
            None => ptrace::go_on(thread, 0),
            Some(Running::Change(_)) if self.changing.is_some() => self.waiting.push_back(thread),
            Some(running) => self.let_run(thread, running),
        }
    }

    fn let_run(&mut self, thread: pid_t, running: Running) {
        if matches!(running, Running::Change(_)) {
            self.changing = Some(thread);
        }
        self.running.insert(thread, running);
        ptrace::until_return(thread);
    }

    fn returned(&mut self, thread: pid_t) {
        let result = ptrace::returned(thread).unwrap_or(-1);
        match self.running.remove(&thread) {
            Some(Running::Sync(call)) if result >= 0 => {
                lock(&self.trail).push(Event::SyncEnd { call });
            }
            Some(Running::Change(change)) if result >= 0 => {
                if let Err(error) = self.record(thread, change, result) {
                    lock(&self.trail).surprise(format!("a change could not be read: {error}"));
                }
            }
            _ => (),
        }
        self.release(thread);
        ptrace::go_on(thread, 0);
    }

    fn gone(&mut self, thread: pid_t) {
        self.running.remove(&thread);
        self.known.remove(&thread);
        self.waiting.retain(|&waiting| waiting != thread);
        self.release(thread);
    }

    /// If it was `thread` that changed, the next one that waits may.
    fn release(&mut self, thread: pid_t) {
        if self.changing != Some(thread) {
            return;
        }
        self.changing = None;
        while self.changing.is_none() {
            let Some(next) = self.waiting.pop_front() else { return };
            // Its target is looked up now: names may have changed meanwhile.
            match ptrace::call(next) {
                Ok((nr, args)) => match self.target(next, calls::decode(nr, &args)) {
                    Some(running) => self.let_run(next, running),
                    None => ptrace::go_on(next, 0),
                },
                Err(_) => ptrace::go_on(next, 0),
            }
        }
    }

    /// What a call is about to do to the folder; `None` if nothing.
    fn target(&self, thread: pid_t, call: Call) -> Option<Running> {
        let fd_node = |fd| self.names.node(inode_of(thread, fd)?);
        let entry = |path| self.names.entry(&self.path(thread, path)?);
        let surprise = |what: String| {
            lock(&self.trail).surprise(what);
            None
        };
        Some(Running::Change(match call {
            Call::Open { path, flags } => Change::Open { at: entry(path)?, flags },
            Call::Write { fd, from, offset, synced } => {
                Change::Write { fd, node: fd_node(fd)?, from, offset, synced }
            }
            Call::Length { fd, len } => Change::Length { node: fd_node(fd)?, len },
            Call::Allocate { fd, mode } => {
                let node = fd_node(fd)?;
                if mode & !libc::FALLOC_FL_KEEP_SIZE != 0 {
                    return surprise(format!("fallocate with mode {mode:#x}"));
                }
                Change::Allocate { fd, node }
            }
            Call::Rename { from, to, flags } => match (entry(from), entry(to)) {
                (None, None) => return None,
                (Some(from), Some(to)) if flags & libc::RENAME_EXCHANGE == 0 => {
                    Change::Rename { from, to }
                }
                (from, to) => return surprise(format!("rename of {from:?} to {to:?}")),
            },
            Call::Remove { path } => Change::Remove { at: entry(path)? },
            Call::MakeFolder { path } => {
                let path = self.path(thread, path)?;
                Change::MakeFolder { at: self.names.entry(&path)?, path }
            }
            Call::Sync { fd } => {
                return Some(Running::Sync(lock(&self.trail).sync_begin(fd_node(fd)?)));
            }
            Call::Surprise { what, fd } => {
                fd_node(fd)?;
                return surprise(format!("{what} on a file of the folder"));
            }
            Call::SurprisePath { what, path } => {
                let at = entry(path)?;
                return surprise(format!("{what} of {at:?}"));
            }
            Call::SurpriseAll { what } => return surprise(what.to_owned()),
        }))
    }

    /// Puts a change that succeeded with `result` into the trail.
    fn record(&mut self, thread: pid_t, change: Change, result: i64) -> io::Result<()> {
        match change {
            Change::Open { at, flags } => {
                let fd = result as i32;
                if flags & libc::O_TMPFILE == libc::O_TMPFILE {
                    return Err(io::Error::other("a file without a name"));
                }
                let inode = inode_of(thread, fd).ok_or_else(|| io::Error::other("no inode"))?;
                let trail = &mut *lock(&self.trail);
                match self.names.at(&at) {
                    Some(node) if flags & libc::O_TRUNC != 0 => {
                        trail.push(Event::Length { node, len: 0 });
                    }
                    Some(_) => (),
                    None => {
                        self.names.make(at, inode, false, trail);
                    }
                }
            }
            Change::Write { fd, node, from, offset, synced } => {
                let bytes = self.read_source(from, result as usize)?;
                let place = Descriptor::read(thread, fd)?;
                let offset = match offset {
                    Some(offset) if !place.appends() => offset,
                    Some(_) => return Err(io::Error::other("a placed write to an appending file")),
                    None => place.offset - result as u64,
                };
                let trail = &mut *lock(&self.trail);
                trail.write(node, offset, &bytes);
                if synced || place.syncs() {
                    trail.sync(node);
                }
            }
            Change::Length { node, len } => {
                lock(&self.trail).push(Event::Length { node, len });
            }
            Change::Allocate { fd, node } => {
                let len = fs::metadata(format!("/proc/{thread}/fd/{fd}"))?.len();
                lock(&self.trail).push(Event::Length { node, len });
            }
            Change::Rename { from, to } => {
                self.names.rename(from, to, &mut lock(&self.trail));
            }
            Change::Remove { at } => self.names.remove(at, &mut lock(&self.trail)),
            Change::MakeFolder { at, path } => {
                let inode = inode(&fs::symlink_metadata(path)?);
                self.names.make(at, inode, true, &mut lock(&self.trail));
            }
        }
        Ok(())
    }

    /// The absolute path that a call names.
    fn path(&self, thread: pid_t, path: PathArg) -> Option<PathBuf> {
        let mut text = Vec::new();
        let mut byte = [0];
        // Up to the end of a page at a time would be faster; paths are rare.
        while text.len() < 4096 {
            self.read(path.address + text.len() as u64, &mut byte).ok()?;
            if byte[0] == 0 {
                break;
            }
            text.push(byte[0]);
        }
        use std::os::unix::ffi::OsStringExt;
        let text = PathBuf::from(std::ffi::OsString::from_vec(text));
        if text.is_absolute() {
            return Some(text);
        }
        let folder = match path.folder {
            libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
            fd => format!("/proc/{thread}/fd/{fd}"),
        };
        Some(fs::read_link(folder).ok()?.join(text))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let memory = self.memory.as_ref().ok_or_else(|| io::Error::other("not started"))?;
        memory.read_exact_at(into, address)
    }

    fn read_source(&self, from: Source, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        match from {
            Source::Buffer(address) => self.read(address, &mut bytes)?,
            Source::Vectors(address, count) => {
                let mut done = 0;
                for index in 0..count {
                    let mut vector = [0; 16];
                    self.read(address + 16 * index, &mut vector)?;
                    let (base, size) = (word(&vector[..8]), word(&vector[8..]) as usize);
                    let take = size.min(len - done);
                    self.read(base, &mut bytes[done..done + take])?;
                    done += take;
                }
            }
        }
        Ok(bytes)
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes were cut out"))
}

/// The inode behind a descriptor of another process; `None` if it is no file.
fn inode_of(thread: pid_t, fd: i32) -> Option<Inode> {
    let meta = fs::metadata(format!("/proc/{thread}/fd/{fd}")).ok()?;
    (meta.is_file() || meta.is_dir()).then(|| inode(&meta))
}

/// Where a descriptor stands, and how it was opened.
struct Descriptor {
    offset: u64,
    flags: i32,
}

impl Descriptor {
    fn read(thread: pid_t, fd: i32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}"))?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).ok_or_else(|| io::Error::other("fdinfo has another form"))
        };
        let offset = field("pos:")?.parse().map_err(io::Error::other)?;
        let flags = i32::from_str_radix(field("flags:")?, 8).map_err(io::Error::other)?;
        Ok(Self { offset, flags })
    }

    fn appends(&self) -> bool {
        self.flags & libc::O_APPEND != 0
    }

    fn syncs(&self) -> bool {
        self.flags & libc::O_DSYNC != 0
    }
}
