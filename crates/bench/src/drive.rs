//! Load: many connections, one thread, and the time of every answer.
//!
//! A [`Lane`] is a stream of requests of one kind over connections of its own.
//! A closed lane keeps a fixed number of requests under way and measures each
//! from the moment it is sent. A paced lane has a timetable: a request is
//! measured from the moment it was due, whether or not it could be sent then,
//! so that a server that stops for a second is charged for all who would have
//! come in that second (no coordinated omission).
//!
//! Several lanes run at once on one thread, which spins only while a paced
//! lane is due within a millisecond. Knows protocols only as [`Codec`]s.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::BenchError;

/// What one side of a connection speaks.
pub(crate) trait Codec {
    /// Bytes that open the connection; most protocols have none.
    fn open(&mut self, _out: &mut Vec<u8>) {}

    /// Appends one request. Requests are numbered from 0 in the order of the
    /// calls; the answer names that number.
    fn send(&mut self, payload: &Bytes, out: &mut Vec<u8>) {
        out.extend_from_slice(payload);
    }

    /// Reads what came, answers the protocol's own questions into `out`, puts
    /// finished requests into `done`, and says how many bytes it has used up.
    fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError>;
}

/// A request that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Its number on its connection.
    pub(crate) number: u64,
    /// What was counted in the answer: marks accepted, rows listed.
    pub(crate) counted: u64,
    /// Whether it was a success.
    pub(crate) good: bool,
}

/// One request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The bytes for the codec.
    pub(crate) payload: Bytes,
    /// How many marks (or lists) it is worth.
    pub(crate) weight: u64,
}

/// A stream of requests over connections of its own.
pub(crate) struct Lane<'a> {
    /// Where to.
    pub(crate) address: SocketAddr,
    /// How many connections.
    pub(crate) connections: usize,
    /// Requests under way on each connection, at most.
    pub(crate) depth: usize,
    /// One for each connection.
    pub(crate) codec: &'a dyn Fn() -> Box<dyn Codec>,
    /// The requests; `None` ends the lane.
    pub(crate) source: &'a mut dyn FnMut() -> Option<Request>,
    /// Requests a second; `None` = as fast as they are answered.
    pub(crate) pace: Option<f64>,
}

/// What a lane saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Nanoseconds from due (paced) or sent (closed) to answered.
    pub(crate) latency: Histogram<u64>,
    /// Requests answered well.
    pub(crate) requests: u64,
    /// Their weight.
    pub(crate) weight: u64,
    /// Sum of what was counted in the answers.
    pub(crate) counted: u64,
    /// Requests answered badly.
    pub(crate) failed: u64,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
}

impl Seen {
    fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, 600_000_000_000, 3)
            .expect("the bounds and three digits are valid");
        Self { latency, requests: 0, weight: 0, counted: 0, failed: 0, elapsed: Duration::ZERO }
    }

    /// Weight a second.
    pub(crate) fn rate(&self) -> f64 {
        self.weight as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Runs the lanes until all have ended; `patience` without any answer while
/// some are awaited is an error.
pub(crate) fn drive(lanes: &mut [Lane<'_>], patience: Duration) -> Result<Vec<Seen>, BenchError> {
    Driver::connect(lanes)?.run(lanes, patience)
}

/// A request under way.
struct Sent {
    from: Instant,
    weight: u64,
    answered: bool,
}

struct Conn {
    lane: usize,
    stream: TcpStream,
    codec: Box<dyn Codec>,
    out: Vec<u8>,
    input: Vec<u8>,
    filled: usize,
    /// Requests from number `base` on.
    sent: VecDeque<Sent>,
    base: u64,
    under_way: usize,
}

struct State {
    seen: Seen,
    ended: bool,
    issued: u64,
    under_way: usize,
    first: Option<Instant>,
    last: Instant,
    /// Where the next paced request looks for room first.
    turn: usize,
    members: Vec<usize>,
}

struct Driver {
    poll: Poll,
    conns: Vec<Conn>,
    states: Vec<State>,
    done: Vec<Done>,
}

const INPUT_BYTES: usize = 256 << 10;

impl Driver {
    fn connect(lanes: &[Lane<'_>]) -> Result<Self, BenchError> {
        let poll = Poll::new().map_err(|e| BenchError::io("poll", &e))?;
        let mut conns = Vec::new();
        let mut states = Vec::new();
        for (at, lane) in lanes.iter().enumerate() {
            let mut members = Vec::new();
            for _ in 0..lane.connections {
                let stream = std::net::TcpStream::connect(lane.address)
                    .map_err(|e| BenchError::io(format!("connect to {}", lane.address), &e))?;
                let ready = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
                ready.map_err(|e| BenchError::io("socket options", &e))?;
                let mut stream = TcpStream::from_std(stream);
                let both = Interest::READABLE | Interest::WRITABLE;
                poll.registry()
                    .register(&mut stream, Token(conns.len()), both)
                    .map_err(|e| BenchError::io("register", &e))?;
                let mut codec = (lane.codec)();
                let mut out = Vec::new();
                codec.open(&mut out);
                members.push(conns.len());
                conns.push(Conn {
                    lane: at,
                    stream,
                    codec,
                    out,
                    input: vec![0; INPUT_BYTES],
                    filled: 0,
                    sent: VecDeque::new(),
                    base: 0,
                    under_way: 0,
                });
            }
            states.push(State {
                seen: Seen::new(),
                ended: false,
                issued: 0,
                under_way: 0,
                first: None,
                last: Instant::now(),
                turn: 0,
                members,
            });
        }
        Ok(Self { poll, conns, states, done: Vec::new() })
    }

    fn run(mut self, lanes: &mut [Lane<'_>], patience: Duration) -> Result<Vec<Seen>, BenchError> {
        let mut events = Events::with_capacity(256);
        let start = Instant::now();
        let mut heard = start;
        for conn in 0..self.conns.len() {
            self.refill(conn, lanes);
            self.flush(conn)?;
        }
        while self.states.iter().any(|s| !s.ended || s.under_way > 0) {
            let now = Instant::now();
            let due = self.issue_due(lanes, start, now)?;
            let wait = match due {
                Some(next) if next < now + Duration::from_millis(2) => Duration::ZERO,
                Some(next) => (next - now - Duration::from_millis(1)).min(patience),
                None => Duration::from_millis(100),
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(|e| BenchError::io("poll", &e))?,
            }
            if wait.is_zero() && events.is_empty() {
                // Followers that share this core come first.
                std::thread::yield_now();
            }
            for event in &events {
                let conn = event.token().0;
                if event.is_readable() && self.read(conn)? {
                    heard = Instant::now();
                    self.refill(conn, lanes);
                }
                self.flush(conn)?;
            }
            let awaited = self.states.iter().any(|s| s.under_way > 0);
            if awaited && heard.elapsed() > patience {
                return Err(BenchError::Silent(patience));
            }
            if !awaited {
                heard = Instant::now();
            }
        }
        let finish = |mut state: State| {
            let first = state.first.unwrap_or(state.last);
            state.seen.elapsed = state.last.saturating_duration_since(first);
            state.seen
        };
        Ok(self.states.into_iter().map(finish).collect())
    }

    /// Sends what is due on paced lanes; says when the next one is.
    fn issue_due(
        &mut self,
        lanes: &mut [Lane<'_>],
        start: Instant,
        now: Instant,
    ) -> Result<Option<Instant>, BenchError> {
        let mut next: Option<Instant> = None;
        for (at, lane) in lanes.iter_mut().enumerate() {
            let Some(pace) = lane.pace else { continue };
            while !self.states[at].ended {
                let due = start + Duration::from_secs_f64(self.states[at].issued as f64 / pace);
                if due > now {
                    next = Some(next.map_or(due, |other| other.min(due)));
                    break;
                }
                // Without room it waits, and its time runs from when it was due.
                let Some(conn) = self.roomy(at, lane.depth) else { break };
                self.issue(conn, lane, due);
                self.flush(conn)?;
            }
        }
        Ok(next)
    }

    /// A connection of lane `at` that takes one more request.
    fn roomy(&mut self, at: usize, depth: usize) -> Option<usize> {
        let state = &mut self.states[at];
        for _ in 0..state.members.len() {
            let conn = state.members[state.turn];
            state.turn = (state.turn + 1) % state.members.len();
            if self.conns[conn].under_way < depth {
                return Some(conn);
            }
        }
        None
    }

    /// Fills a closed lane's connection up to its depth.
    fn refill(&mut self, conn: usize, lanes: &mut [Lane<'_>]) {
        let at = self.conns[conn].lane;
        let lane = &mut lanes[at];
        if lane.pace.is_some() {
            return;
        }
        let now = Instant::now();
        while self.conns[conn].under_way < lane.depth && !self.states[at].ended {
            self.issue(conn, lane, now);
        }
    }

    fn issue(&mut self, conn: usize, lane: &mut Lane<'_>, from: Instant) {
        let conn = &mut self.conns[conn];
        let state = &mut self.states[conn.lane];
        let Some(request) = (lane.source)() else {
            state.ended = true;
            return;
        };
        conn.codec.send(&request.payload, &mut conn.out);
        conn.sent.push_back(Sent { from, weight: request.weight, answered: false });
        conn.under_way += 1;
        state.under_way += 1;
        state.issued += 1;
        state.first.get_or_insert(from);
    }

    /// Reads until there is no more; whether something was answered.
    fn read(&mut self, conn: usize) -> Result<bool, BenchError> {
        let conn = &mut self.conns[conn];
        let state = &mut self.states[conn.lane];
        let mut answered = false;
        loop {
            if conn.filled == conn.input.len() {
                conn.input.resize(conn.input.len() * 2, 0);
            }
            let room = conn.input.len() - conn.filled;
            let count = match conn.stream.read(&mut conn.input[conn.filled..]) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(answered),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(BenchError::io("read", &e)),
            };
            conn.filled += count;
            let input = &conn.input[..conn.filled];
            let used = conn.codec.receive(input, &mut conn.out, &mut self.done)?;
            conn.input.copy_within(used..conn.filled, 0);
            conn.filled -= used;
            let now = Instant::now();
            for done in self.done.drain(..) {
                answered = true;
                let sent = (done.number.checked_sub(conn.base))
                    .and_then(|at| conn.sent.get_mut(at as usize))
                    .filter(|sent| !sent.answered)
                    .ok_or(BenchError::Protocol("an answer to no request"))?;
                sent.answered = true;
                let nanos = now.saturating_duration_since(sent.from).as_nanos() as u64;
                state.seen.latency.saturating_record(nanos.max(1));
                if done.good {
                    state.seen.requests += 1;
                    state.seen.weight += sent.weight;
                    state.seen.counted += done.counted;
                } else {
                    state.seen.failed += 1;
                }
                conn.under_way -= 1;
                state.under_way -= 1;
                state.last = now;
                while conn.sent.front().is_some_and(|sent| sent.answered) {
                    conn.sent.pop_front();
                    conn.base += 1;
                }
            }
            // A read that did not fill the buffer has emptied the socket.
            if count < room {
                return Ok(answered);
            }
        }
    }

    fn flush(&mut self, conn: usize) -> Result<(), BenchError> {
        let conn = &mut self.conns[conn];
        let mut at = 0;
        while at < conn.out.len() {
            match conn.stream.write(&conn.out[at..]) {
                Ok(count) => at += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(BenchError::io("write", &e)),
            }
        }
        conn.out.drain(..at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte sent is a request; each byte that comes back answers one.
    struct Echo(u64);

    impl Codec for Echo {
        fn receive(
            &mut self,
            input: &[u8],
            _: &mut Vec<u8>,
            done: &mut Vec<Done>,
        ) -> Result<usize, BenchError> {
            for _ in input {
                done.push(Done { number: self.0, counted: 1, good: true });
                self.0 += 1;
            }
            Ok(input.len())
        }
    }

    fn echo_server() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut buffer = [0; 1024];
                    while let Ok(count @ 1..) = stream.read(&mut buffer) {
                        if stream.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        address
    }

    fn counted(count: u64) -> impl FnMut() -> Option<Request> {
        let mut left = count;
        move || {
            left = left.checked_sub(1)?;
            Some(Request { payload: Bytes::from_static(b"x"), weight: 3 })
        }
    }

    #[test]
    fn a_closed_lane_sends_every_request_once_and_times_each() {
        let (address, mut source) = (echo_server(), counted(500));
        let codec = || Box::new(Echo(0)) as Box<dyn Codec>;
        let mut lanes = [Lane {
            address,
            connections: 3,
            depth: 4,
            codec: &codec,
            source: &mut source,
            pace: None,
        }];
        let seen = drive(&mut lanes, Duration::from_secs(10)).unwrap().remove(0);
        assert_eq!((seen.requests, seen.weight, seen.failed), (500, 1500, 0));
        assert_eq!(seen.latency.len(), 500);
    }

    #[test]
    fn a_paced_lane_charges_the_wait_for_room_to_the_server() {
        let (address, mut source) = (echo_server(), counted(200));
        let codec = || Box::new(Echo(0)) as Box<dyn Codec>;
        // All are due at once, and only one may be under way: the last one
        // waits for all the others, and its time says so.
        let mut lanes = [Lane {
            address,
            connections: 1,
            depth: 1,
            codec: &codec,
            source: &mut source,
            pace: Some(1e12),
        }];
        let seen = drive(&mut lanes, Duration::from_secs(10)).unwrap().remove(0);
        assert_eq!(seen.requests, 200);
        let (whole, longest) = (seen.elapsed.as_nanos() as u64, seen.latency.max());
        assert!(longest * 10 >= whole * 9, "{longest} of {whole} ns");
    }
}
