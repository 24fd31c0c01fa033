//! `tideline import danmaku`: comments of files, into one video.
//!
//! A file is read here, however broken, and sent as our own lines, a few MiB
//! at a time; what could not be kept is told by line. The server takes each
//! comment once, so an import that was interrupted is simply run again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use tideline_wire::danmaku::json::put_item;
use tideline_wire::danmaku::read::{self, FileFormat, Limits, Report};

use crate::cli::{DanmakuArgs, Failure};
use crate::client::{Client, read_json, segment};

/// Bytes of lines in one request, about.
const PIECE_BYTES: usize = 2 << 20;
/// Lines of a file's report that are printed.
const LINES_PRINTED_MAX: usize = 20;

/// What a server did with comments.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Taken {
    taken: u64,
    overflow: u64,
    duplicates: u64,
    refused: u64,
    #[serde(skip_serializing)]
    report: Vec<String>,
}

/// What became of one file.
#[derive(Debug, Serialize)]
struct Summary {
    file: String,
    format: &'static str,
    read: u64,
    kept: u64,
    changed: u64,
    dropped: u64,
    #[serde(flatten)]
    server: Taken,
}

/// Imports each file, and says what became of it.
pub(crate) async fn run(args: DanmakuArgs) -> Result<(), Failure> {
    let format = args.format.as_deref().map(|name| {
        let names = FileFormat::ALL.map(FileFormat::name).join(", ");
        let unknown = || Failure::Usage(format!("--format {name}: must be one of {names}"));
        FileFormat::from_name(name).ok_or_else(unknown)
    });
    let format = format.transpose()?;
    let client = Client::new(&args.common.server)?;
    let mut clean = true;
    for path in &args.common.files {
        let (summary, report) = one(&client, &args.video, path, format).await?;
        clean &= summary.dropped + summary.server.refused == 0;
        if args.common.json {
            println!("{}", serde_json::to_string(&summary).expect("texts and numbers alone"));
        } else {
            tell(&summary, &report);
        }
    }
    match args.common.strict && !clean {
        true => Err(Failure::Failed("some comments were not taken".into())),
        false => Ok(()),
    }
}

async fn one(
    client: &Client,
    video: &str,
    path: &Path,
    named: Option<FileFormat>,
) -> Result<(Summary, Report), Failure> {
    let name = path.display().to_string();
    let failed = |why: String| Failure::failed(&name, why);
    let file: Box<dyn Read + Send> = match path == Path::new("-") {
        true => Box::new(stdin()),
        false => Box::new(File::open(path).map_err(|e| failed(e.to_string()))?),
    };
    let packed = read::inflated(BufReader::new(file)).map_err(|e| failed(e.to_string()))?;
    let mut input = BufReader::new(packed);
    let head = input.fill_buf().map_err(|e| failed(e.to_string()))?;
    let unknown = || failed("of no format that is known; say which with --format".into());
    let format = named.or_else(|| read::sniff(head)).ok_or_else(unknown)?;
    let (mut report, mut sum, mut piece) = (Report::default(), Taken::default(), Vec::new());
    let mut entries = read::open(format, input, Limits::default());
    loop {
        let entry = entries.next().transpose().map_err(|e| failed(e.to_string()))?;
        let ended = entry.is_none();
        if let Some(entry) = entry {
            report.note(&entry);
            if let Ok((item, _)) = entry.outcome {
                put_item(&mut piece, &item);
                piece.push(b'\n');
            }
        }
        if piece.len() >= PIECE_BYTES || (ended && !piece.is_empty()) {
            let taken = send(client, video, std::mem::take(&mut piece)).await?;
            sum.taken += taken.taken;
            sum.overflow += taken.overflow;
            sum.duplicates += taken.duplicates;
            sum.refused += taken.refused;
            sum.report.extend(taken.report.into_iter().filter(|line| line.starts_with("refused")));
        }
        if ended {
            break;
        }
    }
    let summary = Summary {
        file: name,
        format: format.name(),
        read: report.total(),
        kept: report.kept,
        changed: report.changed,
        dropped: report.dropped,
        server: sum,
    };
    Ok((summary, report))
}

async fn send(client: &Client, video: &str, lines: Vec<u8>) -> Result<Taken, Failure> {
    let path = format!("/v1/videos/{}/danmaku:import?format=ndjson", segment(video));
    let lines = bytes::Bytes::from(lines);
    let request = || {
        let request = client.request(Method::POST, &path);
        request.header(CONTENT_TYPE, "application/x-ndjson").body(lines.clone())
    };
    Ok(read_json(client.send_patiently(request).await?).await?)
}

fn tell(summary: &Summary, report: &Report) {
    let Summary { file, format, server, .. } = summary;
    let lines = report.lines().iter().chain(&server.report);
    let all = report.lines().len() + server.report.len();
    lines.take(LINES_PRINTED_MAX).for_each(|line| eprintln!("{file}: {line}"));
    if all > LINES_PRINTED_MAX {
        eprintln!("{file}: {} more lines; --json counts them", all - LINES_PRINTED_MAX);
    }
    println!("{file} ({format}): {report}");
    println!(
        "{file}: {} taken ({} of them over the limit), {} there already, {} refused",
        server.taken, server.overflow, server.duplicates, server.refused
    );
}
