//! gRPC with as little client as there can be: HTTP/2 frames by hand.
//!
//! A usual gRPC client costs as much as the server that it measures, and would
//! be the bottleneck on a core of its own. This one keeps to the protocol
//! (settings, flow control both ways, pings, header compression as a usual
//! client uses it: whole on the first request, by index after it) and leaves
//! out what a measurement does not need: it does not decode response headers.
//! A call counts as good when it ended with a message; a refused one has none.
//!
//! Messages come encoded. See [`crate::drive`] for who calls this.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::BenchError;
use crate::drive::{Codec, Done};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEAD: usize = 9;
/// What we grant the server, per stream and in all.
const OUR_WINDOW: u32 = (1 << 31) - 1;
/// What a connection starts with.
const FIRST_WINDOW: i64 = 65_535;

/// What is counted in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// `accepted` of a `RecordResponse` (field 2).
    Accepted,
    /// The items of a `ListResponse` (field 1).
    Items,
    /// One where an `ApplyResponse` has a number (field 1).
    Written,
    /// Nothing; an answer is good as long as it reads.
    Nothing,
}

/// One HTTP/2 connection that calls one method.
#[derive(Debug)]
pub(crate) struct Grpc {
    path: &'static str,
    count: Count,
    /// All requests on one bidirectional stream, answered in order; else a
    /// call for each.
    streaming: bool,
    /// The first request on a stream is its last.
    asks_once: bool,
    next_stream: u32,
    /// Stream to request, for calls under way.
    calls: HashMap<u32, Call>,
    sent: u64,
    answered: u64,
    /// Bytes that wait for the server's windows, in order.
    waiting: VecDeque<Upload>,
    window: i64,
    stream_window_first: i64,
    frame_max: usize,
    /// Of ours: bytes received since the last update.
    received: u32,
    /// Part of a message, on the stream of a streaming connection.
    partial: Vec<u8>,
}

#[derive(Debug)]
struct Call {
    number: u64,
    window: i64,
    counted: Option<u64>,
    partial: Vec<u8>,
}

#[derive(Debug)]
struct Upload {
    stream: u32,
    head: [u8; 5],
    payload: Bytes,
    at: usize,
    end: bool,
}

impl Grpc {
    /// A connection for calls of `path`, such as
    /// `/tideline.history.v1.HistoryService/List`.
    pub(crate) fn new(path: &'static str, count: Count, streaming: bool) -> Self {
        Self {
            path,
            count,
            streaming,
            asks_once: !streaming,
            next_stream: 1,
            calls: HashMap::new(),
            sent: 0,
            answered: 0,
            waiting: VecDeque::new(),
            window: FIRST_WINDOW,
            stream_window_first: FIRST_WINDOW,
            frame_max: 16_384,
            received: 0,
            partial: Vec::new(),
        }
    }

    /// A connection that asks once, by `path`, and is answered for ever.
    pub(crate) fn listening(path: &'static str) -> Self {
        Self { asks_once: true, ..Self::new(path, Count::Nothing, true) }
    }

    /// Opens a stream with its request headers.
    fn call(&mut self, number: u64, out: &mut Vec<u8>) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut block = Vec::with_capacity(128);
        if stream == 1 {
            block.extend_from_slice(&[0x83, 0x86]);
            literal(&[0x44], self.path, &mut block);
            literal(&[0x41], "127.0.0.1", &mut block);
            literal(&[0x5f], "application/grpc", &mut block);
            block.push(0x40);
            text("te", &mut block);
            text("trailers", &mut block);
        } else {
            // As the four above now stand in the dynamic table, newest first.
            block.extend_from_slice(&[0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe]);
        }
        frame_head(block.len(), HEADERS, END_HEADERS, stream, out);
        out.extend_from_slice(&block);
        let window = self.stream_window_first;
        self.calls.insert(stream, Call { number, window, counted: None, partial: Vec::new() });
        stream
    }

    /// Sends what the windows let through.
    fn pump(&mut self, out: &mut Vec<u8>) {
        while let Some(upload) = self.waiting.front_mut() {
            let Some(call) = self.calls.get_mut(&upload.stream) else {
                self.waiting.pop_front();
                continue;
            };
            let whole = upload.head.len() + upload.payload.len();
            let room = self.window.min(call.window).max(0) as usize;
            let count = (whole - upload.at).min(room).min(self.frame_max);
            if count == 0 {
                return;
            }
            let last = upload.at + count == whole;
            let flags = if last && upload.end { END_STREAM } else { 0 };
            frame_head(count, DATA, flags, upload.stream, out);
            let (from, to) = (upload.at, upload.at + count);
            let head = upload.head.len();
            out.extend_from_slice(&upload.head[from.min(head)..to.min(head)]);
            out.extend_from_slice(&upload.payload[from.max(head) - head..to.max(head) - head]);
            upload.at = to;
            self.window -= count as i64;
            call.window -= count as i64;
            if last {
                self.waiting.pop_front();
            }
        }
    }

    fn data(&mut self, stream: u32, payload: &[u8], out: &mut Vec<u8>, done: &mut Vec<Done>) {
        self.received += payload.len() as u32;
        if self.received > OUR_WINDOW / 2 {
            window_update(0, self.received, out);
            if self.streaming {
                window_update(stream, self.received, out);
            }
            self.received = 0;
        }
        if self.streaming {
            self.partial.extend_from_slice(payload);
            let mut at = 0;
            while let Some(message) = message(&self.partial[at..]) {
                at += 5 + message.len();
                let counted = count(message, self.count);
                done.push(Done { number: self.answered, counted: counted.0, good: counted.1 });
                self.answered += 1;
            }
            self.partial.drain(..at);
        } else if let Some(call) = self.calls.get_mut(&stream) {
            // Most answers are one frame; only the others are put together.
            let whole = match message(payload).filter(|_| call.partial.is_empty()) {
                Some(whole) => Some(whole),
                None => {
                    call.partial.extend_from_slice(payload);
                    message(&call.partial)
                }
            };
            if let Some(whole) = whole {
                let (counted, good) = count(whole, self.count);
                call.counted = good.then_some(counted);
            }
        }
    }

    fn ended(&mut self, stream: u32, done: &mut Vec<Done>) -> Result<(), BenchError> {
        if self.streaming {
            return Err(BenchError::Protocol("the server ended the stream"));
        }
        if let Some(call) = self.calls.remove(&stream) {
            let counted = call.counted.unwrap_or(0);
            done.push(Done { number: call.number, counted, good: call.counted.is_some() });
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) {
        for setting in payload.chunks_exact(6) {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match u16::from_be_bytes([setting[0], setting[1]]) {
                4 => {
                    let change = i64::from(value) - self.stream_window_first;
                    self.stream_window_first += change;
                    self.calls.values_mut().for_each(|call| call.window += change);
                }
                5 => self.frame_max = (value as usize).min(1 << 20),
                _ => {}
            }
        }
    }
}

impl Codec for Grpc {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        // No push; a window as large as there is.
        let settings = [(2u16, 0u32), (4, OUR_WINDOW)];
        frame_head(settings.len() * 6, SETTINGS, 0, 0, out);
        for (name, value) in settings {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        window_update(0, OUR_WINDOW - FIRST_WINDOW as u32, out);
    }

    fn send(&mut self, payload: &Bytes, out: &mut Vec<u8>) {
        let number = self.sent;
        self.sent += 1;
        let stream = if self.streaming && number > 0 { 1 } else { self.call(number, out) };
        let length = (payload.len() as u32).to_be_bytes();
        self.waiting.push_back(Upload {
            stream,
            head: [0, length[0], length[1], length[2], length[3]],
            payload: payload.clone(),
            at: 0,
            end: self.asks_once,
        });
        self.pump(out);
    }

    fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError> {
        let mut used = 0;
        while let Some((head, rest)) = input[used..].split_first_chunk::<FRAME_HEAD>() {
            let length =
                usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let Some(payload) = rest.get(..length) else { break };
            let (kind, flags) = (head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & OUR_WINDOW;
            match kind {
                DATA => self.data(stream, payload, out, done),
                SETTINGS if flags & ACK == 0 => {
                    self.settings(payload);
                    frame_head(0, SETTINGS, ACK, 0, out);
                    self.pump(out);
                }
                PING if flags & ACK == 0 => {
                    frame_head(length, PING, ACK, 0, out);
                    out.extend_from_slice(payload);
                }
                WINDOW_UPDATE => {
                    let bytes = payload.first_chunk().ok_or(BenchError::Protocol("short frame"))?;
                    let more = i64::from(u32::from_be_bytes(*bytes) & OUR_WINDOW);
                    if stream == 0 {
                        self.window += more;
                    } else if let Some(call) = self.calls.get_mut(&stream) {
                        call.window += more;
                    }
                    self.pump(out);
                }
                GOAWAY => return Err(BenchError::Protocol("the server sent GOAWAY")),
                _ => {}
            }
            let ends = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
            if ends || kind == RST_STREAM {
                self.ended(stream, done)?;
            }
            used += FRAME_HEAD + length;
        }
        Ok(used)
    }
}

fn frame_head(length: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

fn window_update(stream: u32, more: u32, out: &mut Vec<u8>) {
    frame_head(4, WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&more.to_be_bytes());
}

/// A header with a name from the static table, to be remembered.
fn literal(name: &[u8], value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    text(value, out);
}

/// A string of at most 126 bytes, not Huffman-coded.
fn text(value: &str, out: &mut Vec<u8>) {
    debug_assert!(value.len() < 127);
    out.push(value.len() as u8);
    out.extend_from_slice(value.as_bytes());
}

/// The first whole message of a gRPC body.
fn message(body: &[u8]) -> Option<&[u8]> {
    let (head, rest) = body.split_first_chunk::<5>()?;
    rest.get(..u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize)
}

/// What `count` asks for in a message, and whether the message could be read
/// and was not a refusal.
fn count(mut message: &[u8], count: Count) -> (u64, bool) {
    let mut counted = 0;
    while !message.is_empty() {
        let Some(key) = varint(&mut message) else { return (counted, false) };
        let Some(value) = varint(&mut message) else { return (counted, false) };
        match (count, key) {
            (Count::Accepted, 0x10) => counted = value,
            // Field 10 says that the whole request was refused.
            (Count::Accepted, 0x52) => return (counted, false),
            (Count::Items, 0x0a) => counted += 1,
            (Count::Written, 0x08) => counted = 1,
            // Field 3 says why it was refused.
            (Count::Written, 0x1a) => return (counted, false),
            _ => {}
        }
        match key & 7 {
            0 => {}
            2 => match message.get(value as usize..) {
                Some(rest) => message = rest,
                None => return (counted, false),
            },
            _ => return (counted, false),
        }
    }
    (counted, true)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame_head(payload.len(), kind, flags, stream, &mut out);
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn an_upload_stops_at_the_window_and_goes_on_when_it_grows() {
        let mut grpc = Grpc::new("/a/B", Count::Accepted, true);
        let (mut out, mut done) = (Vec::new(), Vec::new());
        grpc.send(&Bytes::from(vec![7; 100_000]), &mut out);
        let sent: usize = FIRST_WINDOW as usize;
        assert!(out.len() > sent && out.len() < sent + 200, "{}", out.len());
        out.clear();
        let more = [
            frame(WINDOW_UPDATE, 0, 0, &200_000u32.to_be_bytes()),
            frame(WINDOW_UPDATE, 0, 1, &200_000u32.to_be_bytes()),
        ]
        .concat();
        assert_eq!(grpc.receive(&more, &mut out, &mut done).unwrap(), more.len());
        assert!(out.len() > 100_005 - sent && out.len() < 100_205 - sent);
        assert!(grpc.waiting.is_empty() && done.is_empty());
    }

    #[test]
    fn a_call_is_done_at_its_trailers_and_good_with_a_message_only() {
        let mut grpc = Grpc::new("/a/B", Count::Items, false);
        let (mut out, mut done) = (Vec::new(), Vec::new());
        grpc.send(&Bytes::new(), &mut out);
        grpc.send(&Bytes::new(), &mut out);
        let message = [0, 0, 0, 0, 7, 0x0a, 1, 9, 0x0a, 2, 9, 9];
        let answer = [
            frame(HEADERS, END_HEADERS | END_STREAM, 3, b"refused"),
            frame(DATA, 0, 1, &message[..6]),
            frame(DATA, 0, 1, &message[6..]),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, b"trailers"),
        ]
        .concat();
        let used = grpc.receive(&answer, &mut out, &mut done).unwrap();
        assert_eq!(used, answer.len());
        let refused = Done { number: 1, counted: 0, good: false };
        assert_eq!(done, [refused, Done { number: 0, counted: 2, good: true }]);
    }

    #[test]
    fn answers_of_a_stream_are_cut_anywhere() {
        let mut grpc = Grpc::new("/a/B", Count::Accepted, true);
        let (mut out, mut done) = (Vec::new(), Vec::new());
        grpc.send(&Bytes::new(), &mut out);
        grpc.send(&Bytes::new(), &mut out);
        let body = [0, 0, 0, 0, 2, 0x10, 5, 0, 0, 0, 0, 2, 0x10, 6];
        let bytes: Vec<u8> = body.iter().flat_map(|b| frame(DATA, 0, 1, &[*b])).collect();
        assert_eq!(grpc.receive(&bytes, &mut out, &mut done).unwrap(), bytes.len());
        assert_eq!(done.iter().map(|d| d.counted).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn a_refused_batch_is_not_good() {
        assert_eq!(count(&[0x52, 0], Count::Accepted), (0, false));
        assert_eq!(count(&[0x10, 3, 0x18, 1], Count::Accepted), (3, true));
    }
}
