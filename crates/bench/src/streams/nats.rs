//! The peer of streams: `nats-server` with JetStream, a stream in files, in a
//! folder and on a port of its own; synced before each answer, or by its
//! default (every two minutes).
//!
//! Its protocol is spoken by hand, so that the client costs no more than ours.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;

use crate::BenchError;
use crate::drive::{Codec, Done};
use crate::process::{Process, free_port};

/// The subject, and the name of the stream of it.
const SUBJECT: &str = "bench";
/// Where answers and records are delivered.
const INBOX: &str = "_INBOX.bench";

/// A running peer.
pub(crate) struct Nats {
    /// The process.
    pub(crate) process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Nats {
    /// Starts one on `core` in `dir`, which must exist, and makes its stream.
    pub(crate) fn start(
        core: usize,
        program: &Path,
        dir: &Path,
        syncs: bool,
    ) -> Result<Self, BenchError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let sync = if syncs { ", sync_interval: always" } else { "" };
        let config = format!(
            "listen: \"{address}\"\nmax_payload: 1MB\njetstream {{ store_dir: \"{}\"{sync} }}\n",
            dir.display()
        );
        let file = dir.with_extension("conf");
        std::fs::write(&file, config).map_err(|e| BenchError::io("the peer's settings", &e))?;
        let args = ["-c".to_owned(), file.display().to_string()];
        let log = dir.with_extension("log");
        let mut process = Process::start(core, program, &args, &[], &log)?;
        let up = || TcpStream::connect(address).is_ok();
        process.wait_ready(Duration::from_secs(20), up)?;
        let stream = format!(
            "{{\"name\":\"{SUBJECT}\",\"subjects\":[\"{SUBJECT}\"],\"storage\":\"file\",\
              \"retention\":\"limits\",\"num_replicas\":1}}"
        );
        ask(address, &format!("$JS.API.STREAM.CREATE.{SUBJECT}"), &stream)?;
        Ok(Self { process, address })
    }

    /// Its version, such as `2.10.1`.
    pub(crate) fn version(program: &Path) -> Result<String, BenchError> {
        let output = Command::new(program).arg("--version").output();
        let output = output.map_err(|e| BenchError::io("nats-server --version", &e))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.rsplit('v').next().unwrap_or("?").trim().to_owned())
    }

    /// A connection to which everything from the stream is delivered: what
    /// comes, or all there is.
    pub(crate) fn follow(address: SocketAddr, all: bool) -> Result<TcpStream, BenchError> {
        let failed = |e: std::io::Error| BenchError::io("follow the peer", &e);
        let mut stream = TcpStream::connect(address).map_err(failed)?;
        let deliver = format!("{INBOX}.{}", stream.local_addr().map_err(failed)?.port());
        let hello = format!("CONNECT {{\"verbose\":false}}\r\nSUB {deliver} 1\r\n");
        stream.write_all(hello.as_bytes()).map_err(failed)?;
        let policy = if all { "all" } else { "new" };
        let consumer = format!(
            "{{\"stream_name\":\"{SUBJECT}\",\"config\":{{\"deliver_subject\":\"{deliver}\",\
              \"deliver_policy\":\"{policy}\",\"ack_policy\":\"none\",\"replay_policy\":\"instant\"}}}}"
        );
        ask(address, &format!("$JS.API.CONSUMER.CREATE.{SUBJECT}"), &consumer)?;
        Ok(stream)
    }
}

/// One question over a connection of its own.
fn ask(address: SocketAddr, subject: &str, body: &str) -> Result<(), BenchError> {
    let failed = |e: std::io::Error| BenchError::io(format!("ask {subject}"), &e);
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
    // Of this connection: who publishes hears answers to its own records alone.
    let inbox = format!("_INBOX.ask.{}", stream.local_addr().map_err(failed)?.port());
    let text = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB {inbox} 1\r\nPUB {subject} {inbox} {}\r\n{body}\r\n",
        body.len()
    );
    stream.write_all(text.as_bytes()).map_err(failed)?;
    let (mut answer, mut chunk) = (Vec::new(), [0; 4_096]);
    loop {
        let count = stream.read(&mut chunk).map_err(failed)?;
        answer.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&answer);
        if count == 0 || text.contains("\"error\"") {
            return Err(BenchError::Peer(text.into_owned()));
        }
        if text.contains("\"config\"") || text.contains("\"did_create\"") {
            return Ok(());
        }
    }
}

/// A record as it is published.
pub(crate) fn publish(value: &[u8]) -> Bytes {
    let head = format!("PUB {SUBJECT} {INBOX} {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat().into()
}

/// Publishes, and counts the stream's answers, which come in order.
#[derive(Default)]
pub(crate) struct Publish {
    answered: u64,
}

impl Codec for Publish {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"CONNECT {\"verbose\":false}\r\n");
        out.extend_from_slice(format!("SUB {INBOX} 1\r\n").as_bytes());
    }

    fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError> {
        let mut used = 0;
        while let Some((message, length)) = next(&input[used..])? {
            used += length;
            match message {
                Message::Ping => out.extend_from_slice(b"PONG\r\n"),
                Message::Other => {}
                Message::Payload(answer) => {
                    let good = memmem::find(answer, b"\"error\"").is_none();
                    done.push(Done { number: self.answered, counted: 1, good });
                    self.answered += 1;
                }
            }
        }
        Ok(used)
    }
}

/// What the server says.
pub(crate) enum Message<'a> {
    Ping,
    Payload(&'a [u8]),
    Other,
}

/// The first whole message, and its length.
pub(crate) fn next(input: &[u8]) -> Result<Option<(Message<'_>, usize)>, BenchError> {
    let Some(end) = memmem::find(input, b"\r\n") else { return Ok(None) };
    let (line, after) = (&input[..end], end + 2);
    if line.starts_with(b"-ERR") {
        return Err(BenchError::Peer(String::from_utf8_lossy(line).into_owned()));
    }
    if line == b"PING" {
        return Ok(Some((Message::Ping, after)));
    }
    if !line.starts_with(b"MSG ") {
        return Ok(Some((Message::Other, after)));
    }
    let length = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let length = std::str::from_utf8(length).ok().and_then(|text| text.parse::<usize>().ok());
    let length = length.ok_or(BenchError::Protocol("a message without a length"))?;
    let Some(payload) = input.get(after..after + length) else { return Ok(None) };
    let whole = after + length + 2;
    Ok((input.len() >= whole).then_some((Message::Payload(payload), whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_and_pings_are_answered_wherever_the_bytes_are_cut() {
        let text = b"INFO {}\r\nMSG _INBOX.bench 1 15\r\n{\"stream\":\"b\"}x\r\nPING\r\n\
            MSG _INBOX.bench 1 11\r\n{\"error\":1}\r\n";
        for cut in 0..text.len() {
            let (mut codec, mut out, mut done) = (Publish::default(), Vec::new(), Vec::new());
            let used = codec.receive(&text[..cut], &mut out, &mut done).unwrap();
            codec.receive(&text[used..], &mut out, &mut done).unwrap();
            let good: Vec<bool> = done.iter().map(|done| done.good).collect();
            assert_eq!((good, &out[..]), (vec![true, false], &b"PONG\r\n"[..]), "cut at {cut}");
        }
    }
}
