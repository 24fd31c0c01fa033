//! Our own export, put back: `tideline import history --format tideline`.
//!
//! An export is a head line for each user and then that user's rows. A user's
//! rows go back in pieces that fit a request, each under the head with its own
//! count of rows; putting a piece back twice changes nothing. Pieces travel
//! side by side.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use bytes::Bytes;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::cli::Failure;
use crate::client::{CallError, Client, read_json, segment};

use super::progress::Progress;
use super::records::{Cut, Records};
use super::tally::Tally;

/// Bytes of one line, at most: a head carries every delete that stands.
const LINE_BYTES_MAX: usize = 3 << 20;
/// Bytes of rows in one piece: with the head, less than a request's body.
const PIECE_BYTES: usize = 4 << 20;
/// Pieces under way at the same time.
const IN_FLIGHT: usize = 8;

/// Some rows of one user, as a body of `…/history:restore`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whose.
    pub(crate) user: String,
    /// How many rows.
    pub(crate) rows: u64,
    /// The head line and the rows.
    pub(crate) body: Vec<u8>,
}

/// Why a file is no export.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadExport {
    /// A line that cannot stand there.
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A user's rows are not all there.
    #[error(
        "line {line}: {user} should have {promised} rows, and {found} came: the file is cut off"
    )]
    Rows {
        /// The line of the head.
        line: u64,
        /// Whose.
        user: String,
        /// As the head says.
        promised: u64,
        /// As were found.
        found: u64,
    },
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

struct Head {
    line: u64,
    value: Value,
    user: String,
    promised: u64,
    found: u64,
}

/// Reads an export piece by piece.
pub(crate) struct Pieces<R> {
    records: Records<R>,
    head: Option<Head>,
    rows: Vec<u8>,
    count: u64,
    /// Read up to here.
    pub(crate) offset: u64,
    ended: bool,
}

impl<R: BufRead> Pieces<R> {
    pub(crate) fn new(input: R) -> Self {
        let records = Records::new(input, Cut::Lines, 0, 1).with_limit(LINE_BYTES_MAX);
        Self { records, head: None, rows: Vec::new(), count: 0, offset: 0, ended: false }
    }

    /// The next piece. A user without rows is a piece all the same: the head
    /// has facts of its own.
    pub(crate) fn read(&mut self) -> Result<Option<Piece>, BadExport> {
        while !self.ended {
            let Some(record) = self.records.read()? else {
                self.ended = true;
                return self.close(None);
            };
            let line = record.line;
            let bad = |why: &str| BadExport::Line { line, why: why.into() };
            self.offset = record.end;
            let bytes = record.bytes.ok_or_else(|| bad("longer than 3 MiB"))?;
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let value: Value = serde_json::from_slice(bytes).map_err(|e| bad(&e.to_string()))?;
            if value.get("tideline_export").is_some() {
                let user = value["user"].as_str().ok_or_else(|| bad("the head names no user"))?;
                let promised = value["rows"].as_u64().ok_or_else(|| bad("the head has no rows"))?;
                let user = user.to_owned();
                let head = Head { line, value, user, promised, found: 0 };
                if let Some(piece) = self.close(Some(head))? {
                    return Ok(Some(piece));
                }
                continue;
            }
            let head = self.head.as_mut().ok_or_else(|| bad("this is no export of ours"))?;
            head.found += 1;
            self.rows.extend_from_slice(bytes);
            self.rows.push(b'\n');
            self.count += 1;
            if self.rows.len() >= PIECE_BYTES {
                return Ok(self.cut());
            }
        }
        Ok(None)
    }

    /// Ends the present user and goes on with `next`.
    fn close(&mut self, next: Option<Head>) -> Result<Option<Piece>, BadExport> {
        if let Some(Head { line, user, promised, found, .. }) = &self.head
            && promised != found
        {
            let (line, promised, found) = (*line, *promised, *found);
            return Err(BadExport::Rows { line, user: user.clone(), promised, found });
        }
        let piece = self.cut();
        self.head = next;
        Ok(piece)
    }

    /// What was gathered of the present user.
    fn cut(&mut self) -> Option<Piece> {
        let head = self.head.as_mut()?;
        head.value["rows"] = self.count.into();
        let mut body = head.value.to_string().into_bytes();
        body.push(b'\n');
        body.append(&mut self.rows);
        let rows = std::mem::take(&mut self.count);
        Some(Piece { user: head.user.clone(), rows, body })
    }
}

#[derive(Deserialize)]
struct Answer {
    accepted: u64,
    stale: u64,
}

/// Restores every user of the file at `path` (`-` is standard input).
pub(crate) async fn file(client: &Client, path: &Path) -> Result<Tally, Failure> {
    let failed = |e: io::Error| Failure::failed(path.display(), e);
    if path == Path::new("-") {
        let progress = Progress::new("stdin", None, 0);
        return all(client, BufReader::new(io::stdin()), "stdin", progress).await;
    }
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let name = path.display().to_string();
    let progress = Progress::new(&name, Some(bytes), 0);
    all(client, BufReader::new(file), &name, progress).await
}

async fn all(
    client: &Client,
    input: impl BufRead,
    name: &str,
    mut progress: Progress,
) -> Result<Tally, Failure> {
    let mut pieces = Pieces::new(input);
    let mut under_way = JoinSet::new();
    let mut tally = Tally::default();
    loop {
        let piece = pieces.read().map_err(|e| Failure::failed(name, e))?;
        let last = piece.is_none();
        while under_way.len() >= IN_FLIGHT || (last && !under_way.is_empty()) {
            if let Some(done) = under_way.join_next().await {
                let done: Tally = done.expect("sending does not panic")?;
                progress.advance(pieces.offset, done.sent);
                tally += done;
            }
        }
        let Some(piece) = piece else { break };
        let client = client.clone();
        under_way.spawn(async move { send(&client, piece).await });
    }
    progress.finish();
    Ok(tally)
}

async fn send(client: &Client, piece: Piece) -> Result<Tally, CallError> {
    let path = format!("/v1/users/{}/history:restore", segment(&piece.user));
    let body = Bytes::from(piece.body);
    let request = || {
        client
            .request(Method::POST, &path)
            .header(reqwest::header::CONTENT_TYPE, "application/x-ndjson")
            .body(body.clone())
    };
    let answer: Answer = read_json(client.send_patiently(request).await?).await?;
    Ok(Tally {
        sent: piece.rows,
        accepted: answer.accepted,
        stale: answer.stale,
        ..Tally::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, u64, String)>, String> {
        let mut pieces = Pieces::new(text.as_bytes());
        let mut out = Vec::new();
        while let Some(piece) = pieces.read().map_err(|e| e.to_string())? {
            out.push((piece.user, piece.rows, String::from_utf8(piece.body).unwrap()));
        }
        Ok(out)
    }

    #[test]
    fn each_user_is_a_piece_and_a_user_without_rows_too() {
        let text = "{\"tideline_export\":1,\"user\":\"ann\",\"rows\":2,\"facts\":{}}\n\
                    {\"id\":\"1\"}\n{\"id\":\"2\"}\n\
                    {\"tideline_export\":1,\"user\":\"ben\",\"rows\":0,\"facts\":{\"x\":1}}\n";
        let pieces = read(text).unwrap();
        assert_eq!(pieces.len(), 2);
        assert_eq!((&*pieces[0].0, pieces[0].1), ("ann", 2));
        assert!(pieces[0].2.ends_with("}\n{\"id\":\"1\"}\n{\"id\":\"2\"}\n"));
        assert_eq!((&*pieces[1].0, pieces[1].1), ("ben", 0));
    }

    #[test]
    fn a_large_user_goes_in_pieces_that_each_count_their_own_rows() {
        let row = format!("{{\"id\":\"{}\"}}\n", "x".repeat(1000));
        let rows = 2 * PIECE_BYTES / row.len();
        let text = format!(
            "{{\"tideline_export\":1,\"user\":\"ann\",\"rows\":{rows},\"facts\":{{}}}}\n{}",
            row.repeat(rows)
        );
        let pieces = read(&text).unwrap();
        assert!(pieces.len() >= 2);
        assert_eq!(pieces.iter().map(|p| p.1).sum::<u64>(), rows as u64);
        for (_, rows, body) in pieces {
            let head: Value = serde_json::from_str(body.lines().next().unwrap()).unwrap();
            assert_eq!(head["rows"], rows);
            assert_eq!(body.lines().count() as u64, rows + 1);
        }
    }

    #[test]
    fn a_file_that_was_cut_off_or_is_none_of_ours_is_refused() {
        let told = read("{\"tideline_export\":1,\"user\":\"ann\",\"rows\":2,\"facts\":{}}\n{}\n");
        assert!(told.unwrap_err().contains("ann should have 2 rows, and 1 came"));
        assert_eq!(read("{\"id\":1}\n").unwrap_err(), "line 1: this is no export of ours");
        assert!(read("userId,movieId\n").unwrap_err().starts_with("line 1: expected value"));
    }
}
