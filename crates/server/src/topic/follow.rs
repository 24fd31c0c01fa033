//! `tideline topic follow --into`: a topic in a file, each record once.
//!
//! The file is a view of the topic: a first line that says of which, records, and
//! after each run of them a line that says how far a partition is covered. Both come to rest together, for
//! what stands after the last such line is cut off when the file is opened. So
//! whoever is killed, the follower, the server or both, there is no gap and no
//! double.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{Covered, Partitions, TAIL_WAIT_MS, path, range, records_of};
use crate::cli::Failure;
use crate::client::{CallError, Client};

/// Answers that wait to be written.
const WAITING_MAX: usize = 64;
/// How long to wait for a server that went away in the middle of an answer.
const PAUSE: Duration = Duration::from_millis(200);

/// One answer.
pub(super) struct Answer {
    pub(super) partition: u16,
    /// As they are printed.
    pub(super) records: Vec<String>,
    /// What is to be asked for next.
    pub(super) to: String,
}

/// How far a partition is covered: what is to be asked for next.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    partition: u16,
    next: String,
}

/// Follows for ever.
pub(super) async fn run(
    client: Client,
    topic: &str,
    into: &Path,
    from: &str,
) -> Result<(), Failure> {
    let (mut file, places) = open(topic, into)?;
    let mut told = read_all(&client, topic, &places, from, TAIL_WAIT_MS).await?;
    eprintln!("following {topic} into {}", into.display());
    while let Some(answer) = told.recv().await {
        let mut lines = String::new();
        put(&mut lines, answer?);
        // What else has come shares the sync.
        while let Ok(answer) = told.try_recv() {
            put(&mut lines, answer?);
        }
        let written = file.write_all(lines.as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|e| Failure::failed(into.display(), e))?;
    }
    Ok(())
}

/// Reads every partition from its place on, or from `from`; an answer comes at
/// the latest after `wait_ms`, also if there is no record in it.
pub(super) async fn read_all(
    client: &Client,
    topic: &str,
    places: &BTreeMap<u16, String>,
    from: &str,
    wait_ms: u64,
) -> Result<mpsc::Receiver<Result<Answer, Failure>>, Failure> {
    let request = || client.request(Method::GET, &path(topic));
    let answer = client.send_patiently(request).await?;
    let found: Partitions = answer.json().await.map_err(|e| Failure::failed("topic", e))?;
    let (tell, told) = mpsc::channel(WAITING_MAX);
    for partition in 0..found.partitions {
        let from = places.get(&partition).cloned().unwrap_or_else(|| from.to_owned());
        let base = records_of(topic, partition);
        let (client, tell) = (client.clone(), tell.clone());
        let reader = Reader { client, partition, base, from, wait_ms, tell };
        tokio::spawn(reader.read());
    }
    Ok(told)
}

fn put(lines: &mut String, answer: Answer) {
    for record in answer.records {
        lines.push_str(&record);
        lines.push('\n');
    }
    let mark = Mark { partition: answer.partition, next: answer.to };
    lines.push_str(&serde_json::to_string(&mark).expect("texts and a number"));
    lines.push('\n');
}

/// Opens the file for this process alone, cuts off what no mark covers, and
/// tells where each partition goes on.
fn open(topic: &str, path: &Path) -> Result<(File, BTreeMap<u16, String>), Failure> {
    let failed = |e: std::io::Error| Failure::failed(path.display(), e);
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).read(true).write(true).open(path);
    let mut file = file.map_err(failed)?;
    if file.try_lock().is_err() {
        return Err(Failure::Failed(format!("{}: another follower writes it", path.display())));
    }
    let first = format!("{}\n", serde_json::json!({ "follows": topic }));
    let mut lines = BufReader::new(&file);
    let mut line = Vec::new();
    lines.read_until(b'\n', &mut line).map_err(failed)?;
    if line != first.as_bytes() {
        // A file that was just made, and then a kill.
        if !first.as_bytes().starts_with(&line) {
            let what = format!("{}: does not begin with {first}", path.display());
            return Err(Failure::Failed(what));
        }
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(failed)?;
        file.write_all(first.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        return Ok((file, BTreeMap::new()));
    }
    let mut good = line.len() as u64;
    let (mut places, mut at) = (BTreeMap::new(), good);
    line.clear();
    while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        at += line.len() as u64;
        if line.ends_with(b"\n")
            && let Ok(mark) = serde_json::from_slice::<Mark>(&line)
        {
            places.insert(mark.partition, mark.next);
            good = at;
        }
        line.clear();
    }
    file.set_len(good).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
    Ok((file, places))
}

/// Reads one partition.
struct Reader {
    client: Client,
    partition: u16,
    base: String,
    from: String,
    wait_ms: u64,
    tell: mpsc::Sender<Result<Answer, Failure>>,
}

impl Reader {
    async fn read(mut self) {
        loop {
            let said = match self.once().await {
                Ok(Some((records, covered))) => {
                    let to = covered.to;
                    // Nothing came, and nothing was left out.
                    if records.is_empty() && covered.from == to {
                        self.from = to;
                        continue;
                    }
                    self.from.clone_from(&to);
                    Ok(Answer { partition: self.partition, records, to })
                }
                Ok(None) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(failure) => Err(failure),
            };
            let ends = said.is_err();
            if self.tell.send(said).await.is_err() || ends {
                return;
            }
        }
    }

    /// One answer; `None` if the server was away, or went away.
    async fn once(&self) -> Result<Option<(Vec<String>, Covered)>, Failure> {
        match range(&self.client, &self.base, &self.from, self.wait_ms).await {
            Ok(range) => Ok(range),
            Err(CallError::Unreachable { .. }) => Ok(None),
            Err(CallError::Refused { status, .. }) if is_for_later(status) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_for_later(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Result<(String, BTreeMap<u16, String>), String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, text).unwrap();
        match open("chat", &path) {
            Ok((_, places)) => Ok((std::fs::read_to_string(&path).unwrap(), places)),
            Err(failure) => Err(failure.to_string()),
        }
    }

    const WHOLE: &str =
        "{\"follows\":\"chat\"}\n{\"seq\":1}\n{\"partition\":3,\"next\":\"1-1-2\"}\n";

    #[test]
    fn what_no_mark_covers_is_cut_off_at_every_byte() {
        let places = BTreeMap::from([(3, "1-1-2".to_owned())]);
        let more = "{\"seq\":2}\n{\"partition\":3,\"next\":\"1-1-3\"}";
        for len in 0..=more.len() {
            let text = format!("{WHOLE}{}", &more[..len]);
            assert_eq!(at(&text), Ok((WHOLE.to_owned(), places.clone())), "{len}");
        }
        let (_, places) = at(&format!("{WHOLE}{more}\n")).unwrap();
        assert_eq!(places[&3], "1-1-3");
    }

    #[test]
    fn another_file_is_left_as_it_is() {
        for text in ["something else\n".to_owned(), WHOLE.replace("chat", "other")] {
            assert!(at(&text).unwrap_err().contains("does not begin with"));
        }
        let first = &WHOLE[..WHOLE.find('\n').unwrap() + 1];
        for len in 0..=first.len() {
            assert_eq!(at(&first[..len]), Ok((first.to_owned(), BTreeMap::new())), "{len}");
        }
    }
}
