//! Comments beside nginx, the same bytes from our memory and from its files;
//! and beside MariaDB, the same rows at rest.
//!
//! Posts while a video is read, rooms, imports, and the first read of a video
//! after a restart, large beside small, have no peer.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::drive::{Codec, Lane};
use crate::http::Http;
use crate::mariadb::MariaDb;
use crate::nginx::Nginx;
use crate::ours::Ours;
use crate::report::{Line, Measure, Target};
use crate::stage::{Folder, Output, PATIENCE, again, closed, measure, measure_ours, start_ours};
use crate::{BenchError, DanmakuArgs, DanmakuPart, rooms};

/// Kept-alive connections, one request under way on each.
const HTTP: (usize, usize) = (64, 1);
/// Comments of the segment that is read.
const SEGMENT: u32 = 3_000;
/// Posts a second to one video, and reads of it beside them.
const POSTS_PER_S: f64 = 10_000.0;
const READS_PER_S: f64 = 2_000.0;
/// How long the videos are that are opened, in ms.
const LENGTH_MS: u64 = 3_500_000;
/// Comments of the small video.
const SMALL: u64 = 8_000;
/// Comments in one request of an import.
const PIECE: u64 = 20_000;
/// Restarts after each of which both videos are opened.
const OPENINGS: usize = 5;
/// Memory of a connection that is in a room, at most, in KiB.
const CONNECTION_KIB: f64 = 24.0;
/// Posts to a room, a second apart.
const POSTS_TO_A_ROOM: usize = 10;
/// Comments that are weighed beside MariaDB's.
const WEIGHED: u64 = 1_000_000;

/// All lines.
pub(crate) fn lines(args: &DanmakuArgs, out: &mut Output) -> Result<(), BenchError> {
    if args.wants(DanmakuPart::Segments) || args.wants(DanmakuPart::Posts) {
        let folder = Folder::new(&args.run, "danmaku")?;
        let ours = start_ours(&args.run, &folder, &[])?;
        if args.wants(DanmakuPart::Segments) {
            segments(args, out, &ours, &folder)?;
        }
        if args.wants(DanmakuPart::Posts) {
            posts(args, out, &ours)?;
        }
    }
    if args.wants(DanmakuPart::Rooms) {
        for (batch_ms, most_ms) in [(100, 250.0), (20, 100.0)] {
            room(args, out, batch_ms, most_ms)?;
        }
    }
    if args.wants(DanmakuPart::Opening) {
        // A server whose changes come to rest at once.
        let folder = Folder::new(&args.run, "opening")?;
        let soon = [("TIDELINE__DANMAKU__FLUSH_AFTER_MS", "1000".to_owned())];
        opening(args, out, &mut start_ours(&args.run, &folder, &soon)?, &folder)?;
    }
    Ok(())
}

fn segments(
    args: &DanmakuArgs,
    out: &mut Output,
    ours: &Ours,
    folder: &Folder,
) -> Result<(), BenchError> {
    out.say("posting a segment, and giving its bytes to nginx");
    import(ours, "v", 0, u64::from(SEGMENT), 359_000)?;
    let segment = "/v1/videos/v/danmaku/segments/1.pb";
    let body = get(ours.http, segment, &["accept-encoding: gzip"])?;
    let nginx = Nginx::start(args.run.server_core, folder.path(), "1.pb", &body.body)?;
    out.peer(&format!("nginx {}", nginx.version()?));
    reads(args, out, ours, &nginx, segment, &body)
}

/// One room, full of viewers, and a post a second.
fn room(
    args: &DanmakuArgs,
    out: &mut Output,
    batch_ms: u32,
    most_ms: f64,
) -> Result<(), BenchError> {
    let folder = Folder::new(&args.run, "room")?;
    let batch = [("TIDELINE__DANMAKU__BATCH_MS", batch_ms.to_string())];
    let ours = start_ours(&args.run, &folder, &batch)?;
    out.say(&format!("{} viewers join a room", args.viewers));
    let posts = if args.run.quick { 3 } else { POSTS_TO_A_ROOM };
    let arrivals = rooms::arrivals(&ours, args.viewers, posts)?;
    let what = format!(
        "post to arrival, {} viewers of one room, a post a second, batch_ms = {batch_ms}: p99",
        args.viewers
    );
    out.line(Line::ours(what, "ms", arrivals.measure, Target::AtMost(most_ms)));
    let memory = Measure { value: arrivals.kib_per_viewer, ..Measure::default() };
    let what = format!("memory of the server for each of {} connections", args.viewers);
    out.line(Line::ours(what, "KiB", memory, Target::AtMost(CONNECTION_KIB)));
    Ok(())
}

fn reads(
    args: &DanmakuArgs,
    out: &mut Output,
    ours: &Ours,
    nginx: &Nginx,
    segment: &str,
    body: &Answer,
) -> Result<(), BenchError> {
    let theirs = get(nginx.address, "/1.pb", &[])?;
    let (mut full, mut same) = (Vec::new(), Vec::new());
    for _ in 0..args.run.rounds {
        let one = |mine: bool, held: bool| -> Result<Measure, BenchError> {
            let (path, etag) = if mine { (segment, &body.etag) } else { ("/1.pb", &theirs.etag) };
            let mut headers = vec!["accept-encoding: gzip".to_owned()];
            if held {
                headers.push(format!("if-none-match: {etag}"));
            }
            let requests = [request("GET", path, &headers, b"")];
            let codec = || -> Box<dyn Codec> { Box::new(Http::counting("\u{0}")) };
            let mut source = again(&requests, args.run.round());
            let (address, running, resting) = match mine {
                true => (ours.http, &ours.process, &nginx.process),
                false => (nginx.address, &nginx.process, &ours.process),
            };
            resting.freeze()?;
            running.thaw()?;
            let mut lanes = [closed(address, HTTP, &codec, &mut source)];
            Ok(measure(&[running.pid()], &mut lanes)?.remove(0).0)
        };
        full.push((one(true, false)?, one(false, false)?));
        same.push((one(true, true)?, one(false, true)?));
    }
    ours.process.thaw()?;
    let what = format!(
        "segment reads, {SEGMENT} comments, protobuf gzip ({} bytes), {} connections",
        body.body.len(),
        HTTP.0
    );
    out.line(Line::from_rounds(what, "reads/s", "nginx", full, Target::Ratio(0.7)));
    let what = format!("304 for a body that is held, {} connections", HTTP.0);
    out.line(Line::from_rounds(what, "reads/s", "nginx", same, Target::Ratio(0.8)));
    Ok(())
}

/// Posts to one video at a fixed rate, while it is read.
fn posts(args: &DanmakuArgs, out: &mut Output, ours: &Ours) -> Result<(), BenchError> {
    let count = (args.run.round().as_secs_f64() * POSTS_PER_S) as u32;
    let posts: Vec<Bytes> = (0..count)
        .map(|n| {
            let at = n % 359_000;
            let body = format!("{{\"text\":\"post number {n}\",\"progress_ms\":{at}}}");
            request("POST", "/v1/videos/busy/danmaku", &[], body.as_bytes())
        })
        .collect();
    let read = request(
        "GET",
        "/v1/videos/busy/danmaku/segments/1.pb",
        &["accept-encoding: gzip".into()],
        b"",
    );
    let codec = || -> Box<dyn Codec> { Box::new(Http::counting("\"state\"")) };
    let (mut post, mut get) =
        (crate::stage::once(&posts, 1, None), again(std::slice::from_ref(&read), args.run.round()));
    let mut lanes = [
        Lane { pace: Some(POSTS_PER_S), ..closed(ours.http, HTTP, &codec, &mut post) },
        Lane { pace: Some(READS_PER_S), ..closed(ours.http, (16, 1), &codec, &mut get) },
    ];
    let mut measured = measure_ours(ours, &mut lanes)?;
    let (reads, _) = measured.remove(1);
    let (posts, _) = measured.remove(0);
    let what =
        format!("posts to one video, {POSTS_PER_S}/s asked for, {READS_PER_S} reads/s beside them");
    out.line(Line::ours(what, "posts/s", posts, Target::Shown));
    out.line(Line::ours("the reads beside them, protobuf gzip", "reads/s", reads, Target::Shown));
    Ok(())
}

/// An import, what it takes at rest, and reads of a video after a restart,
/// large beside small.
fn opening(
    args: &DanmakuArgs,
    out: &mut Output,
    ours: &mut Ours,
    folder: &Folder,
) -> Result<(), BenchError> {
    import(ours, "small", 0, SMALL, LENGTH_MS)?;
    let weighed = WEIGHED.min(args.comments);
    import_all(ours, "weighed", weighed)?;
    at_rest(ours)?;
    bytes(args, out, ours, folder, weighed)?;
    let began = Instant::now();
    import_all(ours, "large", args.comments)?;
    let seconds = began.elapsed().as_secs_f64();
    let rate = Measure { value: args.comments as f64 / seconds, ..Measure::default() };
    let what = format!("import of {} comments into one video", args.comments);
    out.line(Line::ours(what, "comments/s", rate, Target::Shown));
    at_rest(ours)?;
    let (mut first, mut warm) = (Vec::new(), Vec::new());
    for round in 0..OPENINGS {
        ours.kill_and_restart()?;
        let open = |video: &str, ending: &str| -> Result<Measure, BenchError> {
            let path = format!("/v1/videos/{video}/danmaku/segments/1.{ending}");
            let start = Instant::now();
            get(ours.http, &path, &["accept-encoding: gzip"])?;
            Ok(Measure { value: start.elapsed().as_secs_f64() * 1e3, ..Measure::default() })
        };
        // The first of all calls warms the process up, and is not counted.
        open("weighed", "json")?;
        // Whoever comes first may have it harder, so they take turns.
        for (ending, pairs) in [("pb", &mut first), ("xml", &mut warm)] {
            pairs.push(match round % 2 {
                0 => (open("large", ending)?, open("small", ending)?),
                _ => {
                    let small = open("small", ending)?;
                    (open("large", ending)?, small)
                }
            });
        }
    }
    for (when, rounds) in [("first segment after kill -9", first), ("in memory", warm)] {
        let comments = args.comments;
        let what = format!("{when}: a video of {comments} comments beside one of {SMALL}");
        let line = Line::from_rounds(what, "ms", "the small one", rounds, Target::Shown);
        let note = match line.ratio {
            Some(ratio) if ratio <= 1.2 => "target: at most 1.2x: met",
            _ => "target: at most 1.2x: MISSED",
        };
        out.line(line.note(note));
    }
    Ok(())
}

/// Bytes of a stored comment, beside two tables of MariaDB with the same rows.
fn bytes(
    args: &DanmakuArgs,
    out: &mut Output,
    ours: &mut Ours,
    folder: &Folder,
    count: u64,
) -> Result<(), BenchError> {
    let tables = ours.tables_at_rest()? as f64 / (count + SMALL) as f64;
    let theirs = MariaDb::start(args.run.server_core, folder.path())?;
    out.peer(&format!("mariadb {}", theirs.version()?));
    let theirs = theirs.bytes_per_comment(count, &|n| {
        let comment = Comment::of(n, LENGTH_MS);
        let id = (comment.sent_ms << 22) | (n % 512);
        let Comment { at, sent_ms, sender, text } = comment;
        (
            format!("1,{id},0,0,1,{at},0,0"),
            format!("1,{id},{sender},16777215,25,{sent_ms},'{text}'"),
        )
    })?;
    let value = |value: f64| Measure { value, ..Measure::default() };
    let what = format!("bytes at rest of a comment, {count} of them");
    let rounds = vec![(value(tables), value(theirs))];
    let line = Line::from_rounds(what, "bytes", "MariaDB", rounds, Target::Shown);
    out.line(line.note(
        "InnoDB, ROW_FORMAT=DYNAMIC, index and content apart, one secondary key; ours after \
         a stop in good order",
    ));
    Ok(())
}

/// All comments of a video, a piece at a time.
fn import_all(ours: &Ours, video: &str, count: u64) -> Result<(), BenchError> {
    let mut done = 0;
    while done < count {
        let piece = PIECE.min(count - done);
        import(ours, video, done, piece, LENGTH_MS)?;
        done += piece;
    }
    Ok(())
}

/// Waits until nothing of any video is to be written.
fn at_rest(ours: &Ours) -> Result<(), BenchError> {
    let patience = Instant::now() + Duration::from_secs(600);
    while ours.metrics()?.get("tideline_danmaku_videos_dirty").is_none_or(|dirty| *dirty > 0.0) {
        if Instant::now() > patience {
            return Err(BenchError::Ours("the videos do not come to rest".into()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// What differs between comments.
struct Comment {
    at: u64,
    sent_ms: u64,
    sender: u64,
    text: String,
}

impl Comment {
    /// Number `n` of a video of this length.
    fn of(n: u64, length_ms: u64) -> Self {
        Self {
            at: n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % length_ms,
            sent_ms: 1_600_000_000_000 + n * 1_000,
            sender: n % 50_000,
            text: format!("comment number {n} of many"),
        }
    }
}

/// Comments `from..from + count` of a video, spread over `length_ms`.
fn import(
    ours: &Ours,
    video: &str,
    from: u64,
    count: u64,
    length_ms: u64,
) -> Result<(), BenchError> {
    let mut lines = String::with_capacity(count as usize * 160);
    for n in from..from + count {
        let Comment { at, sent_ms, sender, text } = Comment::of(n, length_ms);
        let id = n + 1;
        lines += &format!(
            "{{\"id\":\"{id}\",\"progress_ms\":{at},\"mode\":\"scroll\",\"size\":25,\"color\":\"#ffffff\",\
             \"sent_ms\":{sent_ms},\"pool\":\"normal\",\"sender\":\"{sender:x}\",\"weight\":5,\"attr\":0,\"likes\":0,\
             \"text\":\"{text}\"}}\n",
        );
    }
    let path = format!("/v1/videos/{video}/danmaku:import?format=ndjson");
    let request = request("POST", &path, &[], lines.as_bytes());
    let patience = Instant::now() + Duration::from_secs(600);
    loop {
        let answer = call(ours.http, &request)?;
        match answer.status {
            200 => return Ok(()),
            // As `tideline import` does: what waits for the tables is bounded.
            503 if Instant::now() < patience => std::thread::sleep(Duration::from_millis(200)),
            _ => return Err(BenchError::Ours(answer.text())),
        }
    }
}

/// An answer, whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    etag: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &[String], body: &[u8]) -> Bytes {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\n");
    for header in headers {
        text += header;
        text += "\r\n";
    }
    if !body.is_empty() {
        text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    text += "\r\n";
    [text.as_bytes(), body].concat().into()
}

fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Result<Answer, BenchError> {
    let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
    let answer = call(address, &request("GET", path, &headers, b""))?;
    if answer.status == 200 { Ok(answer) } else { Err(BenchError::Ours(answer.text())) }
}

/// One call over a connection of its own.
pub(crate) fn call(address: SocketAddr, request: &[u8]) -> Result<Answer, BenchError> {
    let failed = |e: std::io::Error| BenchError::io("a call", &e);
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.write_all(request).map_err(failed)?;
    let mut input = Vec::new();
    let mut chunk = [0; 64 << 10];
    loop {
        if let Some(answer) = whole(&input) {
            return Ok(answer);
        }
        let read = stream.read(&mut chunk).map_err(failed)?;
        if read == 0 {
            return Err(BenchError::Closed);
        }
        input.extend_from_slice(&chunk[..read]);
    }
}

fn whole(input: &[u8]) -> Option<Answer> {
    let end = memchr::memmem::find(input, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&input[..end]).ok()?;
    let header = |name: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let length: usize = header("content-length")?.parse().ok()?;
    let body = input.get(end + 4..end + 4 + length)?.to_vec();
    let status = head.get(9..12)?.parse().ok()?;
    Some(Answer { status, etag: header("etag").unwrap_or_default().to_owned(), body })
}

/// Where a peer listens.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Whether anyone answers there.
pub(crate) fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// Writes `bytes` into a new file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), BenchError> {
    std::fs::write(path, bytes).map_err(|e| BenchError::io(path.display().to_string(), &e))
}
