//! From a write to all who watch: each on a connection of its own, one write at
//! a time.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::BenchError;
use crate::drive::{Codec, Done};
use crate::process::{Meter, used};
use crate::report::Measure;
use crate::stage::PATIENCE;

/// Connections that are opened at a time.
const OPENING: usize = 50;

/// What is watched, and how.
pub(crate) struct Scene<'a> {
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
    /// One for each who watches.
    pub(crate) watcher: &'a dyn Fn() -> Box<dyn Codec>,
    /// What each asks for.
    pub(crate) watch: Bytes,
    /// Messages that each is sent before anything is written.
    pub(crate) greetings: u64,
    /// The connection that writes.
    pub(crate) writer: &'a dyn Fn() -> Box<dyn Codec>,
    /// What it writes, one after the other.
    pub(crate) writes: Vec<Bytes>,
}

/// What was measured.
pub(crate) struct Told {
    /// Observers told in a second while they are being told; times are from the
    /// write to each of them.
    pub(crate) measure: Measure,
    /// Bytes that the server's memory grew by for each.
    pub(crate) bytes_each: f64,
}

/// Opens `count` watchers and writes while they listen.
pub(crate) fn told(scene: &Scene<'_>, count: usize) -> Result<Told, BenchError> {
    let before = used(scene.pid)?.resident;
    let mut crowd = Crowd::new()?;
    while crowd.conns.len() < count {
        let until = count.min(crowd.conns.len() + OPENING);
        while crowd.conns.len() < until {
            crowd.open(scene.address, (scene.watcher)(), Some(&scene.watch))?;
        }
        let begun = Instant::now();
        while crowd.conns.iter().any(|conn| conn.heard < scene.greetings) {
            crowd.read(begun, &mut |_, _| ())?;
        }
    }
    let resident = used(scene.pid)?.resident;
    crowd.open(scene.address, (scene.writer)(), None)?;
    let mut latency = Histogram::<u64>::new_with_bounds(1, 600_000_000_000, 3)
        .expect("the bounds and three digits are valid");
    let (mut all, meter) = (Duration::ZERO, Meter::start(&[scene.pid])?);
    for write in &scene.writes {
        let written = Instant::now();
        crowd.conns[count].ask(write)?;
        // Each watcher, and the answer to the write.
        let mut left = count + 1;
        while left > 0 {
            crowd.read(written, &mut |at, heard| {
                left = left.saturating_sub(heard);
                if at < count {
                    let nanos = written.elapsed().as_nanos() as u64;
                    latency.saturating_record(nanos.max(1));
                }
            })?;
        }
        all += written.elapsed();
    }
    let cost = meter.stop()?;
    let told = (count * scene.writes.len()) as f64;
    let rate = told / all.as_secs_f64().max(1e-9);
    let measure = Measure::timed(rate, &latency).at(&cost);
    let measure = Measure { resident_mib: Some(resident as f64 / f64::from(1 << 20)), ..measure };
    let grown = resident.saturating_sub(before) as f64;
    Ok(Told { measure, bytes_each: grown / count as f64 })
}

/// One connection.
struct Conn {
    stream: TcpStream,
    codec: Box<dyn Codec>,
    input: Vec<u8>,
    /// Messages that came.
    heard: u64,
}

struct Crowd {
    poll: Poll,
    conns: Vec<Conn>,
}

impl Crowd {
    fn new() -> Result<Self, BenchError> {
        let poll = Poll::new().map_err(|e| BenchError::io("poll", &e))?;
        Ok(Self { poll, conns: Vec::new() })
    }

    fn open(
        &mut self,
        address: SocketAddr,
        mut codec: Box<dyn Codec>,
        first: Option<&Bytes>,
    ) -> Result<(), BenchError> {
        let failed = |e: io::Error| BenchError::io("a watcher", &e);
        let mut stream = std::net::TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let mut out = Vec::new();
        codec.open(&mut out);
        if let Some(first) = first {
            codec.send(first, &mut out);
        }
        stream.write_all(&out).map_err(failed)?;
        stream.set_nonblocking(true).map_err(failed)?;
        let mut stream = TcpStream::from_std(stream);
        let token = Token(self.conns.len());
        let registered = self.poll.registry().register(&mut stream, token, Interest::READABLE);
        registered.map_err(failed)?;
        self.conns.push(Conn { stream, codec, input: Vec::new(), heard: 0 });
        Ok(())
    }

    /// Reads what has come, since `begun` at most [`PATIENCE`] ago; `told` is
    /// given who heard how many messages.
    fn read(
        &mut self,
        begun: Instant,
        told: &mut dyn FnMut(usize, usize),
    ) -> Result<(), BenchError> {
        let mut events = Events::with_capacity(1_024);
        match self.poll.poll(&mut events, Some(Duration::from_millis(100))) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other.map_err(|e| BenchError::io("poll", &e))?,
        }
        let (mut chunk, mut done) = ([0; 16 << 10], Vec::new());
        for event in &events {
            let at = event.token().0;
            self.conns[at].read(&mut chunk, &mut done)?;
            if done.iter().any(|done| !done.good) {
                return Err(BenchError::Protocol("a refusal"));
            }
            if !done.is_empty() {
                told(at, done.len());
            }
            done.clear();
        }
        if begun.elapsed() > PATIENCE { Err(BenchError::Silent(PATIENCE)) } else { Ok(()) }
    }
}

impl Conn {
    fn ask(&mut self, payload: &Bytes) -> Result<(), BenchError> {
        let mut out = Vec::new();
        self.codec.send(payload, &mut out);
        self.stream.write_all(&out).map_err(|e| BenchError::io("a writer", &e))
    }

    fn read(&mut self, chunk: &mut [u8], done: &mut Vec<Done>) -> Result<(), BenchError> {
        loop {
            match self.stream.read(chunk) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(count) => self.input.extend_from_slice(&chunk[..count]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(BenchError::io("a watcher", &e)),
            }
        }
        let mut out = Vec::new();
        let read = self.codec.receive(&self.input, &mut out, done)?;
        self.input.drain(..read);
        self.heard += done.len() as u64;
        if !out.is_empty() {
            self.stream.write_all(&out).map_err(|e| BenchError::io("a watcher", &e))?;
        }
        Ok(())
    }
}
