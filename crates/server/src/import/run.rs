//! `tideline import history`: files, one after the other, into a server.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use crate::cli::{Failure, HistoryArgs, ImportFormat};
use crate::client::{CallError, Client};

use super::entry::Format;
use super::progress::Progress;
use super::records::{Cut, Records};
use super::resume::Place;
use super::rounds::Rounds;
use super::sender::{self, Sent};
use super::tally::Tally;
use super::{Csv, Movielens, Ndjson, Netflix, Youtube, read_titles, restore};

/// Bad lines of a file that are printed; the rest is counted.
const BAD_PRINTED_MAX: u64 = 1_000;
const READ_BYTES: usize = 256 << 10;

/// Imports each file and prints a summary.
pub async fn run(args: HistoryArgs) -> Result<(), Failure> {
    let client = Client::new(&args.common.server)?;
    let mut total = Tally::default();
    let mut files = Vec::new();
    for path in &args.common.files {
        let name = path.display().to_string();
        let tally = if args.format == ImportFormat::Tideline {
            restore::file(&client, path).await?
        } else {
            FileImport { args: &args, client: &client, path, name: &name }.run().await?
        };
        total += tally;
        if !args.common.json {
            println!("{name}: {tally}");
        }
        files.push(serde_json::json!({ "file": name, "counts": tally }));
    }
    if args.common.json {
        println!("{}", serde_json::json!({ "files": files, "total": total }));
    }
    if args.common.strict && total.bad_lines + total.rejected > 0 {
        return Err(Failure::Failed(format!(
            "{} bad lines, {} marks refused",
            total.bad_lines, total.rejected
        )));
    }
    Ok(())
}

struct FileImport<'a> {
    args: &'a HistoryArgs,
    client: &'a Client,
    path: &'a Path,
    name: &'a str,
}

impl FileImport<'_> {
    async fn run(&self) -> Result<Tally, Failure> {
        let failed = |error: io::Error| Failure::failed(self.name, error);
        if self.path == Path::new("-") {
            let progress = Progress::new("stdin", None, 0);
            let mut input = BufReader::with_capacity(READ_BYTES, io::stdin());
            let mut format = self.format()?;
            let place = header(&mut input, &mut *format).map_err(failed)?;
            return self.rounds(input, format, place, Tally::default(), progress).await;
        }
        let mut format = self.format()?;
        let mut input =
            BufReader::with_capacity(READ_BYTES, File::open(self.path).map_err(failed)?);
        let bytes = input.get_ref().metadata().map_err(failed)?.len();
        let mut place = header(&mut input, &mut *format).map_err(failed)?;
        let mut tally = Tally::default();
        if self.args.restart {
            Place::forget(self.path);
        } else if let Some(kept) = Place::find(self.path, &self.command()) {
            eprintln!("{}: going on from line {} (--restart starts over)", self.name, kept.line);
            (place, tally) = ((kept.offset, kept.line), kept.tally);
        }
        input.seek(SeekFrom::Start(place.0)).map_err(failed)?;
        let progress = Progress::new(self.name, Some(bytes), place.0);
        let tally = self.rounds(input, format, place, tally, progress).await?;
        Place::forget(self.path);
        Ok(tally)
    }

    /// Reads a round while the one before it is under way.
    async fn rounds(
        &self,
        input: impl BufRead,
        format: Box<dyn Format>,
        place: (u64, u64),
        mut tally: Tally,
        mut progress: Progress,
    ) -> Result<Tally, Failure> {
        let failed = |error: io::Error| Failure::failed(self.name, error);
        let records = Records::new(input, format.cut(), place.0, place.1);
        let mut rounds = Rounds::new(records, format, place);
        let mut titles = true;
        let mut round = rounds.read().map_err(failed)?;
        loop {
            if titles && round.titles > 0 {
                let items = std::mem::take(&mut round.items);
                titles = self.send_titles(items, &progress).await?;
            }
            let (place, last) = (round.place, round.last);
            let client = self.client.clone();
            let sending = tokio::spawn(async move { sender::send(&client, round).await });
            let next = if last { None } else { Some(rounds.read().map_err(failed)?) };
            let interrupted = tokio::signal::ctrl_c();
            let mut stop = false;
            let sent = {
                tokio::pin!(sending);
                tokio::pin!(interrupted);
                loop {
                    tokio::select! {
                        sent = &mut sending => break sent,
                        _ = &mut interrupted, if !stop => stop = true,
                    }
                }
            };
            let sent = sent.expect("sending does not panic")?;
            self.report(&sent, &mut tally, &progress);
            progress.advance(place.0, sent.tally.sent);
            self.keep(place, tally);
            if stop {
                progress.finish();
                return Err(Failure::Failed(format!(
                    "{}: interrupted; the same command goes on from line {}",
                    self.name, place.1
                )));
            }
            match next {
                Some(next) => round = next,
                None => {
                    progress.finish();
                    return Ok(tally);
                }
            }
        }
    }

    /// Whether more titles should be sent.
    async fn send_titles(&self, items: Vec<u8>, progress: &Progress) -> Result<bool, Failure> {
        match sender::send_items(self.client, items).await {
            Ok(()) => Ok(true),
            Err(error @ CallError::Refused { .. }) => {
                progress.note(&format!("{}: titles are left out: {error}", self.name));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn report(&self, sent: &Sent, tally: &mut Tally, progress: &Progress) {
        for (printed, (line, why)) in (tally.bad_lines + tally.rejected..).zip(&sent.refused) {
            if printed < BAD_PRINTED_MAX {
                progress.note(&format!("{}:{line}: {why}", self.name));
            } else if printed == BAD_PRINTED_MAX {
                progress.note(&format!("{}: more bad lines are only counted", self.name));
            }
        }
        *tally += sent.tally;
    }

    fn keep(&self, place: (u64, u64), tally: Tally) {
        if self.path == Path::new("-") {
            return;
        }
        // A folder that cannot be written costs the way back, not the import.
        let _ = Place::new(self.path, &self.command(), place.0, place.1, tally)
            .and_then(|place| place.keep(self.path));
    }

    /// What makes an interrupted import the same as this one.
    fn command(&self) -> String {
        let HistoryArgs { format, user, kind, profile, common, .. } = self.args;
        format!("{format:?} {user:?} {kind:?} {profile:?} {}", common.server.server)
    }

    fn format(&self) -> Result<Box<dyn Format>, Failure> {
        let HistoryArgs { format, user, kind, movies, profile, .. } = self.args;
        let (user, kind) = (user.clone(), kind.clone());
        Ok(match format {
            ImportFormat::Ndjson => Box::new(Ndjson::new(user, kind)),
            ImportFormat::Csv => Box::new(Csv::new(user, kind)),
            ImportFormat::Netflix => Box::new(Netflix::new(user, kind, profile.clone())),
            ImportFormat::Youtube if user.is_none() => {
                return Err(Failure::Usage("youtube: name the user with --user".into()));
            }
            ImportFormat::Youtube => Box::new(Youtube::new(user, kind)),
            ImportFormat::Movielens => {
                let titles = match movies {
                    None => Default::default(),
                    Some(path) => File::open(path)
                        .and_then(|file| read_titles(BufReader::new(file)))
                        .map_err(|e| Failure::failed(path.display(), e))?,
                };
                Box::new(Movielens::new(kind, titles))
            }
            ImportFormat::Tideline => {
                return Err(Failure::Usage("our own export has no marks to send".into()));
            }
        })
    }
}

/// Lets `format` read its header, where it has one; returns the place after it.
fn header(input: &mut impl BufRead, format: &mut dyn Format) -> io::Result<(u64, u64)> {
    if format.cut() != Cut::Csv {
        return Ok((0, 1));
    }
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut records = Records::new(input, Cut::Csv, 0, 1);
    let Some(record) = records.read()? else { return Err(bad("the file is empty".into())) };
    let bytes = record.bytes.ok_or_else(|| bad("the first row is longer than 64 KiB".into()))?;
    format.header(bytes).map_err(bad)?;
    Ok((record.end, record.next_line))
}
