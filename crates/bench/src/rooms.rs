//! From a post to its arrival: ten thousand viewers of one room, one post a
//! second.
//!
//! Sketch: a room gathers for `batch_ms`, writes its frame once, and copies it
//! into each socket: at 10 us a socket the last of 10,000 has it 100 ms later.
//! Client and server have a core each, so the client's reading is in it. While
//! it waits for a post it looks without a pause: a client that sleeps has to be
//! woken by the server's core, frame by frame, as viewers elsewhere do not.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::BenchError;
use crate::danmaku::{call, request};
use crate::ours::Ours;
use crate::process::used;
use crate::report::Measure;
use crate::stage::PATIENCE;

/// Handshakes under way at a time.
const OPENING: usize = 64;
/// How long a look waits for something to come while viewers join.
const LOOK: Duration = Duration::from_millis(100);

/// What was measured.
pub(crate) struct Arrivals {
    /// From post to arrival, every viewer of every post; the value is the p99.
    pub(crate) measure: Measure,
    /// KiB that the server's memory grew by for each viewer.
    pub(crate) kib_per_viewer: f64,
}

/// One viewer. Holds what came of a frame that is not whole.
struct Viewer {
    stream: TcpStream,
    input: Vec<u8>,
    joined: bool,
    /// Posts that arrived.
    arrived: usize,
}

/// Lets `viewers` join one room and posts into it once a second, `posts` times.
pub(crate) fn arrivals(ours: &Ours, viewers: usize, posts: usize) -> Result<Arrivals, BenchError> {
    let before = used(ours.process.pid())?.resident;
    let mut room = Room::open(ours.http, viewers)?;
    let resident = used(ours.process.pid())?.resident;
    let mut latency = Histogram::<u64>::new_with_bounds(1, 600_000_000_000, 3)
        .expect("the bounds and three digits are valid");
    for number in 0..posts {
        let text = format!("post-{number:06}-");
        let body = format!("{{\"text\":\"{text}\",\"progress_ms\":1000}}");
        let posted = Instant::now();
        let answer =
            call(ours.http, &request("POST", "/v1/videos/room/danmaku", &[], body.as_bytes()))?;
        if answer.status != 201 {
            return Err(BenchError::Ours(answer.text()));
        }
        room.hear(number, &text, posted, &mut latency)?;
        std::thread::sleep(Duration::from_secs(1).saturating_sub(posted.elapsed()));
    }
    let measure = Measure {
        resident_mib: Some(resident as f64 / f64::from(1 << 20)),
        ..Measure::p99(&latency)
    };
    let grown = resident.saturating_sub(before) as f64;
    Ok(Arrivals { measure, kib_per_viewer: grown / 1024.0 / viewers as f64 })
}

struct Room {
    poll: Poll,
    events: Events,
    chunk: Vec<u8>,
    viewers: Vec<Viewer>,
}

impl Room {
    /// Everybody connects and joins; a few at a time.
    fn open(address: SocketAddr, count: usize) -> Result<Self, BenchError> {
        let poll = Poll::new().map_err(|e| BenchError::io("poll", &e))?;
        let (events, chunk) = (Events::with_capacity(1_024), vec![0; 16 << 10]);
        let mut room = Self { poll, events, chunk, viewers: Vec::with_capacity(count) };
        while room.viewers.len() < count {
            let first = room.viewers.len();
            for at in first..count.min(first + OPENING) {
                let viewer = Viewer::open(address, at, &room.poll)?;
                room.viewers.push(viewer);
            }
            let begun = Instant::now();
            while room.viewers[first..].iter().any(|viewer| !viewer.joined) {
                room.read(LOOK, begun, &mut |_, _, _| ())?;
            }
        }
        Ok(room)
    }

    /// Waits until a post has arrived everywhere.
    fn hear(
        &mut self,
        number: usize,
        text: &str,
        posted: Instant,
        latency: &mut Histogram<u64>,
    ) -> Result<(), BenchError> {
        let needle = memchr::memmem::Finder::new(text);
        let mut left = self.viewers.len();
        while left > 0 {
            self.read(Duration::ZERO, posted, &mut |viewer, frame, now| {
                if viewer.arrived == number && needle.find(frame).is_some() {
                    viewer.arrived += 1;
                    left -= 1;
                    let nanos = now.saturating_duration_since(posted).as_nanos() as u64;
                    latency.saturating_record(nanos.max(1));
                }
            })?;
        }
        Ok(())
    }

    /// Reads what has come or comes within `wait`; it began at most [`PATIENCE`]
    /// ago.
    fn read(
        &mut self,
        wait: Duration,
        begun: Instant,
        told: &mut dyn FnMut(&mut Viewer, &[u8], Instant),
    ) -> Result<(), BenchError> {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other.map_err(|e| BenchError::io("poll", &e))?,
        }
        for event in &self.events {
            self.viewers[event.token().0].read(&mut self.chunk, told)?;
        }
        if begun.elapsed() > PATIENCE { Err(BenchError::Silent(PATIENCE)) } else { Ok(()) }
    }
}

impl Viewer {
    fn open(address: SocketAddr, at: usize, poll: &Poll) -> Result<Self, BenchError> {
        let failed = |e: io::Error| BenchError::io("a viewer", &e);
        let mut stream = std::net::TcpStream::connect(address).map_err(failed)?;
        let hello = "GET /v1/live HTTP/1.1\r\nhost: bench\r\nconnection: upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: tideline.v1.json\r\n\r\n";
        stream.write_all(hello.as_bytes()).map_err(failed)?;
        stream.set_nonblocking(true).map_err(failed)?;
        let mut stream = TcpStream::from_std(stream);
        let registry = poll.registry();
        registry.register(&mut stream, Token(at), Interest::READABLE).map_err(failed)?;
        Ok(Self { stream, input: Vec::new(), joined: false, arrived: 0 })
    }

    fn read(
        &mut self,
        chunk: &mut [u8],
        told: &mut dyn FnMut(&mut Self, &[u8], Instant),
    ) -> Result<(), BenchError> {
        loop {
            match self.stream.read(chunk) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(count) => self.input.extend_from_slice(&chunk[..count]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(BenchError::io("a viewer", &e)),
            }
        }
        let now = Instant::now();
        if self.input.starts_with(b"HTTP/") {
            let Some(end) = memchr::memmem::find(&self.input, b"\r\n\r\n") else { return Ok(()) };
            if !self.input.starts_with(b"HTTP/1.1 101") {
                return Err(BenchError::Protocol("no WebSocket"));
            }
            self.input.drain(..end + 4);
            self.say(1, br#"{"type":"join","room":"video:room"}"#)?;
        }
        while let Some((opcode, from, to)) = frame(&self.input) {
            let payload: Vec<u8> = self.input[from..to].to_vec();
            self.input.drain(..to);
            match opcode {
                9 => self.say(10, &payload)?,
                8 => return Err(BenchError::Closed),
                _ => {
                    // The first frame says what happened up to the join.
                    self.joined = true;
                    told(self, &payload, now);
                }
            }
        }
        // Nothing is kept between frames: the client's memory is not asked for.
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        Ok(())
    }

    /// Sends a short frame, masked with zeroes.
    fn say(&mut self, opcode: u8, payload: &[u8]) -> Result<(), BenchError> {
        let mut out = vec![0x80 | opcode, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        out.extend_from_slice(payload);
        self.stream.write_all(&out).map_err(|e| BenchError::io("a viewer", &e))
    }
}

/// The first whole frame: its opcode, and where its payload lies.
fn frame(input: &[u8]) -> Option<(u8, usize, usize)> {
    let (&first, &second) = (input.first()?, input.get(1)?);
    let (from, length) = match second & 0x7f {
        126 => (4, usize::from(u16::from_be_bytes(input.get(2..4)?.try_into().ok()?))),
        127 => (10, u64::from_be_bytes(input.get(2..10)?.try_into().ok()?) as usize),
        length => (2, usize::from(length)),
    };
    (input.len() >= from + length).then_some((first & 0x0f, from, from + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_by_their_length() {
        assert_eq!(frame(&[0x81, 2, b'a', b'b', 0x89]), Some((1, 2, 4)));
        assert_eq!(frame(&[0x81, 2, b'a']), None);
        let long = [&[0x82, 126, 1, 0][..], &[7; 256]].concat();
        assert_eq!(frame(&long), Some((2, 4, 260)));
        assert_eq!(frame(&long[..100]), None);
    }
}
