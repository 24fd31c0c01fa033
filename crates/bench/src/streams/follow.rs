//! From a record to its follower, at a steady pace: alone, and beside readers
//! who catch up: they read what was there before from the start, again and again,
//! each at a steady pace as well.
//!
//! A record carries the moment at which it was due, so a producer that is held
//! up is charged for it. Followers and producer share the client's core.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use memchr::memmem;

use super::nats::{self, Nats, publish};
use super::produce::{VALUE_BYTES, produce_stream, publisher, record, start_with_topic};
use crate::drive::{Codec, Lane, Request, drive};
use crate::encode::{put_bytes, put_number};
use crate::grpc::{Count, Grpc};
use crate::process::Meter;
use crate::report::{Line, Measure, Target};
use crate::stage::{Folder, Output, PATIENCE, closed};
use crate::{BenchError, StreamsArgs};

/// `Subscribe` of the queue service.
const SUBSCRIBE: &str = "/tideline.queue.v1.QueueService/Subscribe";
/// Records a second.
const PACE: f64 = 5_000.0;
/// Readers who catch up.
const LAGGARDS: usize = 4;
/// Records a second that each of these reads.
const LAGGARD_PACE: f64 = 25_000.0;
/// Records under way while what they read is written.
const LOAD_WINDOW: usize = 500;
/// What stands before the moment in a value.
const MARK: &[u8] = b"due:";

/// All lines of following.
pub(super) fn lines(args: &StreamsArgs, out: &mut Output) -> Result<(), BenchError> {
    out.peer(&format!("nats-server {}", Nats::version(&args.nats)?));
    let folder = Folder::new(&args.run, "follow")?;
    let ours = start_with_topic(args, &folder)?;
    let dir = folder.path().join("nats");
    std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("make a folder", &e))?;
    // Synced always it does not keep up with the pace.
    let theirs = Nats::start(args.run.server_core, &args.nats, &dir, false)?;
    // What is caught up with, in both.
    let before = if args.run.quick { 20_000 } else { 200_000 };
    out.say(&format!("{before} records to catch up with"));
    theirs.process.freeze()?;
    fill(ours.grpc, &produce_stream, record, before)?;
    ours.process.freeze()?;
    theirs.process.thaw()?;
    fill(theirs.address, &publisher, publish, before)?;
    for laggards in [0, LAGGARDS] {
        let beside = match laggards {
            0 => "alone".to_owned(),
            n => format!("beside {n} who catch up"),
        };
        let what = format!("record to follower at {PACE} records/s, {beside}: p99");
        out.say(&what);
        let (mut rounds, mut read) = (Vec::new(), Vec::new());
        for _ in 0..args.run.rounds {
            theirs.process.freeze()?;
            ours.process.thaw()?;
            let (pid, address) = (ours.process.pid(), ours.grpc);
            let (open, codec, encode): (Open, _, _) = (our_follower, &produce_stream, record);
            let side = Side { pid, address, open, codec, encode };
            let own = round(args, &side, laggards, before)?;
            ours.process.freeze()?;
            theirs.process.thaw()?;
            let (pid, address) = (theirs.process.pid(), theirs.address);
            let (open, codec, encode): (Open, _, _) = (their_follower, &publisher, publish);
            let side = Side { pid, address, open, codec, encode };
            let their = round(args, &side, laggards, before)?;
            read.push((own.1, their.1));
            rounds.push((own.0, their.0));
        }
        let name = "JetStream, its default";
        let line = Line::from_rounds(what, "ms", name, rounds, Target::Shown);
        let mut note = "lower is better: a ratio below 1 is ours".to_owned();
        if laggards > 0 {
            let all: Vec<String> =
                read.iter().map(|(own, their)| format!("{own:.0} and {their:.0}")).collect();
            note += &format!(
                "; records/s that were caught up with, ours and theirs: {}",
                all.join(", ")
            );
        }
        out.line(line.note(note));
    }
    ours.process.thaw()
}

/// Reads what comes: bytes off a connection, until told to stop.
type Follow = Box<dyn FnMut(&mut Heard) -> Result<(), BenchError> + Send>;

/// What a follower has heard.
struct Heard {
    begun: Instant,
    latency: Histogram<u64>,
    records: u64,
}

impl Heard {
    fn new(begun: Instant) -> Self {
        let latency = Histogram::new_with_bounds(1, 600_000_000_000, 3)
            .expect("the bounds and three digits are valid");
        Self { begun, latency, records: 0 }
    }

    /// Every record in some bytes that are whole.
    fn hear(&mut self, bytes: &[u8]) {
        let now = self.begun.elapsed().as_nanos() as u64;
        for at in memmem::find_iter(bytes, MARK) {
            let digits = bytes.get(at + MARK.len()..at + MARK.len() + 16).unwrap_or_default();
            let due =
                std::str::from_utf8(digits).ok().and_then(|d| u64::from_str_radix(d, 16).ok());
            self.records += 1;
            if let Some(due) = due {
                self.latency.saturating_record(now.saturating_sub(due).max(1));
            }
        }
    }
}

/// Opens a follower: of what comes, or of all there is.
type Open = fn(SocketAddr, bool) -> Result<Follow, BenchError>;

/// Who is measured, and how to speak to them.
struct Side<'a> {
    pid: u32,
    address: SocketAddr,
    open: Open,
    codec: &'a dyn Fn() -> Box<dyn Codec>,
    encode: fn(&[u8]) -> Bytes,
}

/// Writes `count` records that carry no moment.
fn fill(
    address: SocketAddr,
    codec: &dyn Fn() -> Box<dyn Codec>,
    encode: fn(&[u8]) -> Bytes,
    count: u64,
) -> Result<(), BenchError> {
    let payload = encode(&due_at(None));
    let mut left = count;
    let mut source = || {
        left = left.checked_sub(1)?;
        Some(Request { payload: payload.clone(), weight: 1 })
    };
    let lane = closed(address, (1, LOAD_WINDOW), codec, &mut source);
    match drive(&mut [lane], PATIENCE)?.remove(0).failed {
        0 => Ok(()),
        _ => Err(BenchError::Protocol("a record that was not taken")),
    }
}

/// A value that says when it was due.
fn due_at(due: Option<Duration>) -> [u8; VALUE_BYTES] {
    let mut value = [b'.'; VALUE_BYTES];
    value[..MARK.len()].copy_from_slice(MARK);
    if let Some(due) = due {
        let digits = format!("{:016x}", due.as_nanos());
        value[MARK.len()..MARK.len() + 16].copy_from_slice(digits.as_bytes());
    }
    value
}

/// Records at the pace, one follower that is measured, some that read the `before` that were there;
/// and how many of these they read a second, together.
fn round(
    args: &StreamsArgs,
    side: &Side<'_>,
    laggards: usize,
    before: u64,
) -> Result<(Measure, f64), BenchError> {
    let Side { pid, address, open, codec, encode } = *side;
    let begun = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::new(AtomicU64::new(0));
    let live = run(open(address, false)?, begun, &stop, &heard);
    let others: Vec<_> =
        (0..laggards).map(|_| catch_up(open, address, before, begun, &stop)).collect();
    let meter = Meter::start(&[pid])?;
    let (first, limit) = (begun.elapsed(), args.run.round());
    let mut number = 0_u64;
    let mut source = || {
        let due = first + Duration::from_secs_f64(number as f64 / PACE);
        if due > first + limit {
            return None;
        }
        number += 1;
        Some(Request { payload: encode(&due_at(Some(due))), weight: 1 })
    };
    let lane = Lane {
        address,
        connections: 1,
        depth: 4_096,
        codec,
        source: &mut source,
        pace: Some(PACE),
    };
    let sent = drive(&mut [lane], PATIENCE)?.remove(0).requests;
    wait_until_heard(&heard, sent);
    let cost = meter.stop()?;
    stop.store(true, Ordering::Relaxed);
    let (took, mut caught_up) = (begun.elapsed().as_secs_f64(), 0);
    for other in others {
        caught_up += join(other)?.records;
    }
    let live = join(live)?;
    if live.records < sent {
        return Err(BenchError::Protocol("a follower has missed records"));
    }
    Ok((Measure::p99(&live.latency).at(&cost), caught_up as f64 / took))
}

/// Waits until a follower has heard so much, or will not.
pub(super) fn wait_until_heard(heard: &AtomicU64, all: u64) {
    let patience = Instant::now();
    while heard.load(Ordering::Relaxed) < all && patience.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

type Thread = JoinHandle<Result<Heard, BenchError>>;

fn run(
    mut follow: Follow,
    begun: Instant,
    stop: &Arc<AtomicBool>,
    told: &Arc<AtomicU64>,
) -> Thread {
    let (stop, told) = (stop.clone(), told.clone());
    std::thread::spawn(move || {
        let mut heard = Heard::new(begun);
        while !stop.load(Ordering::Relaxed) {
            follow(&mut heard)?;
            told.store(heard.records, Ordering::Relaxed);
        }
        Ok(heard)
    })
}

/// Reads what was there from the start, at its pace, and begins again when it has read `before`.
fn catch_up(
    open: Open,
    address: SocketAddr,
    before: u64,
    begun: Instant,
    stop: &Arc<AtomicBool>,
) -> Thread {
    let stop = stop.clone();
    std::thread::spawn(move || {
        let mut heard = Heard::new(begun);
        let (start, mut until, mut follow) = (Instant::now(), before, open(address, true)?);
        while !stop.load(Ordering::Relaxed) {
            follow(&mut heard)?;
            if heard.records >= until {
                (until, follow) = (heard.records + before, open(address, true)?);
            }
            let due = Duration::from_secs_f64(heard.records as f64 / LAGGARD_PACE);
            // At a time no longer than a stop may be unseen.
            std::thread::sleep(due.saturating_sub(start.elapsed()).min(GLANCE));
        }
        Ok(heard)
    })
}

fn join(thread: Thread) -> Result<Heard, BenchError> {
    thread.join().map_err(|_| BenchError::Protocol("a follower has ended"))?
}

/// What is waited for at a time, so that a stop is seen.
const GLANCE: Duration = Duration::from_millis(20);

fn read(stream: &mut TcpStream, input: &mut Vec<u8>) -> Result<(), BenchError> {
    let mut chunk = [0; 64 << 10];
    match stream.read(&mut chunk) {
        Ok(0) => Err(BenchError::Closed),
        Ok(count) => {
            input.extend_from_slice(&chunk[..count]);
            Ok(())
        }
        Err(e)
            if matches!(
                e.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ) =>
        {
            Ok(())
        }
        Err(e) => Err(BenchError::io("a follower", &e)),
    }
}

fn our_follower(address: SocketAddr, all: bool) -> Result<Follow, BenchError> {
    let failed = |e: std::io::Error| BenchError::io("a follower", &e);
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(GLANCE)).map_err(failed)?;
    let mut codec = Grpc::new(SUBSCRIBE, Count::Items, true);
    let mut out = Vec::new();
    codec.open(&mut out);
    codec.send(&follow_request(all), &mut out);
    stream.write_all(&out).map_err(failed)?;
    let (mut input, mut body) = (Vec::new(), Vec::new());
    Ok(Box::new(move |heard| {
        read(&mut stream, &mut input)?;
        let (mut out, mut done) = (Vec::new(), Vec::new());
        let used = codec.receive(&input, &mut out, &mut done)?;
        data_of(&input[..used], &mut body);
        input.drain(..used);
        while let Some(length) = body
            .first_chunk::<5>()
            .map(|head| 5 + u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize)
            && body.len() >= length
        {
            heard.hear(&body[5..length]);
            body.drain(..length);
        }
        stream.write_all(&out).map_err(|e| BenchError::io("a follower", &e))
    }))
}

/// The payloads of the data frames in whole HTTP/2 frames.
fn data_of(mut frames: &[u8], body: &mut Vec<u8>) {
    while let Some((head, rest)) = frames.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (payload, after) = rest.split_at(length.min(rest.len()));
        if head[3] == 0 {
            body.extend_from_slice(payload);
        }
        frames = after;
    }
}

/// A `SubscribeRequest` for what comes, or all there is, with credit for a run.
fn follow_request(all: bool) -> Bytes {
    let (mut from, mut follow, mut request) = (Vec::new(), Vec::new(), Vec::new());
    put_number(if all { 1 } else { 2 }, 1, &mut from);
    put_bytes(1, b"bench", &mut follow);
    put_bytes(3, &from, &mut follow);
    put_number(4, 1 << 30, &mut follow);
    put_bytes(1, &follow, &mut request);
    request.into()
}

fn their_follower(address: SocketAddr, all: bool) -> Result<Follow, BenchError> {
    let mut stream = Nats::follow(address, all)?;
    let set = stream.set_read_timeout(Some(GLANCE));
    set.map_err(|e| BenchError::io("a follower", &e))?;
    let mut input = Vec::new();
    Ok(Box::new(move |heard| {
        read(&mut stream, &mut input)?;
        let mut used = 0;
        while let Some((message, length)) = nats::next(&input[used..])? {
            used += length;
            match message {
                nats::Message::Payload(payload) => heard.hear(payload),
                nats::Message::Ping => {
                    let pong = stream.write_all(b"PONG\r\n");
                    pong.map_err(|e| BenchError::io("a follower", &e))?;
                }
                nats::Message::Other => {}
            }
        }
        input.drain(..used);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tideline_wire::queue_v1::SubscribeRequest;
    use tideline_wire::queue_v1::from::Place;
    use tideline_wire::queue_v1::subscribe_request::Request;

    use super::*;

    #[test]
    fn a_request_is_what_the_server_reads() {
        for (all, place) in [(true, Place::Earliest(true)), (false, Place::Latest(true))] {
            let request = SubscribeRequest::decode(follow_request(all)).unwrap();
            let Some(Request::Follow(follow)) = request.request else { panic!("{request:?}") };
            assert_eq!((&*follow.topic, follow.credit), ("bench", 1 << 30));
            assert_eq!(follow.from.and_then(|from| from.place), Some(place));
        }
    }

    #[test]
    fn each_record_is_heard_with_the_moment_at_which_it_was_due() {
        let mut heard = Heard::new(Instant::now());
        heard.hear(b"..due:0000000000000001....due:00000000000000ff..");
        assert_eq!((heard.records, heard.latency.len()), (2, 2));
    }
}
