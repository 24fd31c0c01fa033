//! `tideline import flags`: a model's flags of segments, for many viewers, as
//! lines that the server takes as they are.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use tideline_types::limits::SCORES_BATCH_MAX;

use crate::cli::{Failure, FlagsArgs};
use crate::client::{Client, read_json};

/// Bytes of lines in one request, about.
const PIECE_BYTES: usize = 2 << 20;
/// Bytes of one line, at most: one that is longer cannot be taken.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Rejected lines that are printed.
const LINES_PRINTED_MAX: usize = 20;

/// What a server did with lines.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Taken {
    taken: u64,
    rejected: u64,
    #[serde(skip_serializing)]
    report: Vec<String>,
}

/// Imports each file, and says what became of it.
pub(crate) async fn run(args: FlagsArgs) -> Result<(), Failure> {
    let client = Client::new(&args.common.server)?;
    let mut sum = Taken::default();
    for path in &args.common.files {
        one(&client, path, &mut sum).await?;
    }
    for line in sum.report.iter().take(LINES_PRINTED_MAX) {
        eprintln!("{line}");
    }
    match args.common.json {
        true => println!("{}", serde_json::to_string(&sum).expect("numbers alone")),
        false => eprintln!("{} taken, {} rejected", sum.taken, sum.rejected),
    }
    match args.common.strict && sum.rejected > 0 {
        true => Err(Failure::Failed("some lines were not taken".into())),
        false => Ok(()),
    }
}

async fn one(client: &Client, path: &Path, sum: &mut Taken) -> Result<(), Failure> {
    let failed = |why: std::io::Error| Failure::failed(path.display(), why);
    let file: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(stdin()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    let mut input = BufReader::new(file);
    let (mut piece, mut lines, mut before) = (Vec::new(), 0, 0);
    loop {
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut piece);
        let ended = read.map_err(failed)? == 0;
        if !ended {
            if piece.last() != Some(&b'\n') {
                piece.push(b'\n');
            }
            lines += 1;
        }
        let full = piece.len() >= PIECE_BYTES || lines - before == SCORES_BATCH_MAX;
        if full || (ended && !piece.is_empty()) {
            let taken = send(client, std::mem::take(&mut piece)).await?;
            sum.taken += taken.taken;
            sum.rejected += taken.rejected;
            let placed = |line: String| placed(path, before, &line);
            sum.report.extend(taken.report.into_iter().map(placed));
            before = lines;
        }
        if ended {
            return Ok(());
        }
    }
}

/// The number that a line has in its file, not in its piece.
fn placed(path: &Path, before: usize, line: &str) -> String {
    let told = line.strip_prefix("line ").and_then(|rest| {
        let (number, why) = rest.split_once(':')?;
        let number: usize = number.parse().ok()?;
        Some(format!("{}: line {}:{why}", path.display(), before + number))
    });
    told.unwrap_or_else(|| format!("{}: {line}", path.display()))
}

async fn send(client: &Client, lines: Vec<u8>) -> Result<Taken, Failure> {
    let lines = bytes::Bytes::from(lines);
    let request = || {
        let request = client.request(Method::POST, "/v1/danmaku/flags:batch");
        request.header(CONTENT_TYPE, "application/x-ndjson").body(lines.clone())
    };
    Ok(read_json(client.send_patiently(request).await?).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_number_in_the_file() {
        let path = Path::new("f");
        assert_eq!(placed(path, 10, "line 2: user: x"), "f: line 12: user: x");
        assert_eq!(placed(path, 10, "odd"), "f: odd");
    }
}
