//! `tideline topic`: topics of a running server.

mod checkpoint;
mod digest;
mod follow;

use std::io::{self, BufRead, Write};

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::cli::{Failure, Natives, TopicArgs, TopicCommand};
use crate::client::{CallError, Client, segment};

/// Records in one answer of a tail.
const TAIL_RECORDS: usize = 500;
/// How long one answer of a tail may be waited for.
const TAIL_WAIT_MS: u64 = 20_000;
/// Records in one request of a produce.
const PRODUCE_RECORDS: usize = 1_000;
/// Bytes in one request of a produce, about.
const PRODUCE_BYTES: usize = 1 << 20;

/// Does what `args` say.
pub(crate) async fn run(args: TopicArgs, natives: Natives) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    match args.command {
        TopicCommand::Ls { json } => ls(&client, json).await,
        TopicCommand::Describe { topic, json } => describe(&client, &topic, json).await,
        TopicCommand::Create {
            topic,
            partitions,
            retention_hours,
            source,
            operator,
            halt_on_error,
        } => {
            let mut body = json!({});
            if let Some(source) = source {
                body["source"] = source.into();
                let operator: Value = serde_json::from_str(&operator)
                    .map_err(|error| Failure::Usage(format!("--operator: {error}")))?;
                body["operator"] = operator;
                body["on_error"] = if halt_on_error { "halt" } else { "skip" }.into();
            }
            if let Some(partitions) = partitions {
                body["partitions"] = partitions.into();
            }
            if let Some(hours) = retention_hours {
                body["retention_hours"] = hours.into();
            }
            let request = client.request(Method::PUT, &path(&topic)).json(&body);
            client.send(request).await?;
            eprintln!("topic {topic} made");
            Ok(())
        }
        TopicCommand::Rm { topic } => {
            client.send(client.request(Method::DELETE, &path(&topic))).await?;
            eprintln!("topic {topic} removed");
            Ok(())
        }
        TopicCommand::Produce { topic, key, value, partition } => {
            produce(&client, &topic, &key, value, partition).await
        }
        TopicCommand::Follow { topic, into, checkpoint, from } => match (into, checkpoint) {
            (Some(into), _) => follow::run(client, &topic, &into, &from).await,
            (None, Some(name)) => checkpoint::run(client, &topic, &name, &from).await,
            (None, None) => unreachable!("one of the two is required"),
        },
        TopicCommand::Digest(digest) => {
            digest::run(digest, args.server.token.as_deref(), natives).await
        }
        TopicCommand::Tail { topic, partition, from, limit, no_follow } => {
            Tail { client, topic, partition, from, limit, follow: !no_follow }.run().await
        }
    }
}

fn path(topic: &str) -> String {
    format!("/v1/topics/{}", segment(topic))
}

async fn ls(client: &Client, json: bool) -> Result<(), Failure> {
    let answer: Value = client.json(client.request(Method::GET, "/v1/topics")).await?;
    let empty = Vec::new();
    let topics = answer["topics"].as_array().unwrap_or(&empty);
    if json {
        println!("{}", json!(topics));
        return Ok(());
    }
    println!("{:<24} {:>10}  {:<24} RETENTION", "TOPIC", "PARTITIONS", "KIND");
    for topic in topics {
        println!(
            "{:<24} {:>10}  {:<24} {}",
            text(&topic["name"]),
            topic["partitions"],
            kind(topic),
            retention(topic)
        );
    }
    Ok(())
}

async fn describe(client: &Client, topic: &str, json: bool) -> Result<(), Failure> {
    let mut answer: Value = client.json(client.request(Method::GET, &path(topic))).await?;
    let checkpoints = format!("{}/checkpoints", path(topic));
    let kept: Value = client.json(client.request(Method::GET, &checkpoints)).await?;
    let owners = kept["owners"].as_array().cloned().unwrap_or_default();
    let kept = kept["checkpoints"].as_array().cloned().unwrap_or_default();
    if json {
        answer["owners"] = owners.into();
        answer["checkpoints"] = kept.into();
        println!("{answer}");
        return Ok(());
    }
    println!(
        "{}: {}, {} partitions, kept {}, incarnation {}",
        text(&answer["name"]),
        kind(&answer),
        answer["partitions"],
        retention(&answer),
        answer["incarnation"]
    );
    if !answer["operator"].is_null() {
        println!("operator: {}", answer["operator"]);
    }
    println!("{:>9} {:>7} {:>14} {:>14}", "PARTITION", "EPOCH", "START", "SYNCED");
    for bounds in answer["bounds"].as_array().into_iter().flatten() {
        println!(
            "{:>9} {:>7} {:>14} {:>14}",
            bounds["partition"], bounds["epoch"], bounds["start"], bounds["synced"]
        );
    }
    print_kept(&owners, &kept);
    readers(client, topic).await
}

/// Who follows the topic over the server's connections, if anyone.
async fn readers(client: &Client, topic: &str) -> Result<(), Failure> {
    let path = format!("{}/readers", path(topic));
    let answer: Value = client.json(client.request(Method::GET, &path)).await?;
    let readers = answer["readers"].as_array().map_or(&[][..], Vec::as_slice);
    if readers.is_empty() {
        return Ok(());
    }
    println!("{:>9} {:>14} {:>14}  READER", "PARTITION", "COVERED", "BEHIND");
    for reader in readers {
        println!(
            "{:>9} {:>14} {:>14}  {}",
            reader["partition"],
            reader["covered"],
            reader["behind"],
            text(&reader["caller"])
        );
    }
    if answer["more"] == Value::Bool(true) {
        println!("and more");
    }
    Ok(())
}

/// Who owns partitions by a lease, and consumers whose places are kept.
fn print_kept(owners: &[Value], consumers: &[Value]) {
    for owner in owners {
        let (name, partition) = (text(&owner["owner"]), &owner["partition"]);
        println!("partition {partition} is owned by {name}, token {}", owner["token"]);
    }
    if !consumers.is_empty() {
        println!("{:<24} {:>9} {:>20} {:>14}", "CONSUMER", "PARTITION", "NEXT", "LAG");
    }
    for consumer in consumers {
        for place in consumer["partitions"].as_array().into_iter().flatten() {
            println!(
                "{:<24} {:>9} {:>20} {:>14}",
                text(&consumer["consumer"]),
                place["partition"],
                text(&place["next"]),
                place["lag"]
            );
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn retention(topic: &Value) -> String {
    let hours = topic["retention_ms"].as_f64().unwrap_or_default() / 3_600_000.0;
    format!("{hours} h")
}

fn kind(topic: &Value) -> String {
    let read_only = topic["read_only"] == Value::Bool(true);
    match topic["source"].as_str() {
        Some(source) => format!("derived from {source}"),
        None if read_only => "read-only".into(),
        None => "source".into(),
    }
}

async fn produce(
    client: &Client,
    topic: &str,
    key: &str,
    value: Option<String>,
    partition: Option<u16>,
) -> Result<(), Failure> {
    let path = format!("{}/records", path(topic));
    let send = async |values: &mut Vec<String>| -> Result<usize, Failure> {
        let records: Vec<_> =
            values.drain(..).map(|value| json!({ "key": key, "value": value })).collect();
        let mut body = json!({ "records": records });
        if let Some(partition) = partition {
            body["partition"] = partition.into();
        }
        client.send_patiently(|| client.request(Method::POST, &path).json(&body)).await?;
        Ok(records.len())
    };
    let mut count = 0;
    let mut values: Vec<String> = value.iter().cloned().collect();
    if value.is_none() {
        let mut bytes = 0;
        for line in io::stdin().lock().lines() {
            let line = line.map_err(|e| Failure::failed("standard input", e))?;
            bytes += line.len();
            values.push(line);
            if values.len() == PRODUCE_RECORDS || bytes > PRODUCE_BYTES {
                count += send(&mut values).await?;
                bytes = 0;
            }
        }
    }
    if !values.is_empty() {
        count += send(&mut values).await?;
    }
    eprintln!("{count} records written to {topic}");
    Ok(())
}

struct Tail {
    client: Client,
    topic: String,
    partition: Option<u16>,
    from: String,
    limit: Option<u64>,
    follow: bool,
}

#[derive(Deserialize)]
struct Partitions {
    partitions: u16,
}

#[derive(Deserialize)]
struct Last {
    covered: Option<Covered>,
}

#[derive(Deserialize)]
struct Covered {
    from: String,
    to: String,
}

impl Tail {
    /// Prints records until the limit, or for ever. Partitions are read side
    /// by side; within one the order is that of the log.
    async fn run(self) -> Result<(), Failure> {
        let request = self.client.request(Method::GET, &path(&self.topic));
        let topic: Partitions = self.client.json(request).await?;
        let wanted = match self.partition {
            Some(one) => one..one + 1,
            None => 0..topic.partitions,
        };
        let (lines, mut printed) = mpsc::channel(16);
        let readers: Vec<_> = wanted
            .map(|partition| tokio::spawn(self.reader(partition, lines.clone()).read()))
            .collect();
        drop(lines);
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut out = io::stdout().lock();
        let mut outcome = Ok(());
        while let Some(batch) = printed.recv().await {
            match batch {
                Err(failure) => {
                    outcome = Err(failure);
                    break;
                }
                Ok(batch) => {
                    for line in batch.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                        if writeln!(out, "{line}").is_err() {
                            return Ok(()); // Nobody reads on.
                        }
                    }
                    let _ = out.flush();
                    left = left.saturating_sub(batch.len() as u64);
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        for reader in readers {
            reader.abort();
        }
        outcome
    }

    fn reader(&self, partition: u16, lines: Lines) -> Reader {
        let base = records_of(&self.topic, partition);
        Reader {
            client: self.client.clone(),
            base,
            from: self.from.clone(),
            follow: self.follow,
            lines,
        }
    }
}

type Lines = mpsc::Sender<Result<Vec<String>, Failure>>;

struct Reader {
    client: Client,
    base: String,
    from: String,
    follow: bool,
    lines: Lines,
}

impl Reader {
    async fn read(mut self) {
        loop {
            match self.once().await {
                // A derived topic may advance without a record.
                Ok((_, false)) if !self.follow => return,
                Ok((lines, _)) => {
                    if !lines.is_empty() && self.lines.send(Ok(lines)).await.is_err() {
                        return;
                    }
                }
                Err(failure) => {
                    let _ = self.lines.send(Err(failure)).await;
                    return;
                }
            }
        }
    }

    /// One answer's records, and whether it covers anything; moves on to after
    /// it.
    async fn once(&mut self) -> Result<(Vec<String>, bool), Failure> {
        let wait_ms = if self.follow { TAIL_WAIT_MS } else { 0 };
        let range = range(&self.client, &self.base, &self.from, wait_ms).await?;
        let Some((lines, covered)) = range else {
            return Err(Failure::Failed("the answer was cut off".into()));
        };
        let advanced = covered.from != covered.to;
        self.from = covered.to;
        Ok((lines, advanced))
    }
}

/// Records of a partition, one a line.
fn records_of(topic: &str, partition: u16) -> String {
    format!("{}/records?partition={partition}&limit={TAIL_RECORDS}", path(topic))
}

/// One answer: its records, and what they cover; `None` if it was cut off.
async fn range(
    client: &Client,
    base: &str,
    from: &str,
    wait_ms: u64,
) -> Result<Option<(Vec<String>, Covered)>, CallError> {
    let path = format!("{base}&from={}&wait_ms={wait_ms}", segment(from));
    let response = client.send_patiently(|| client.request(Method::GET, &path)).await?;
    let Ok(body) = response.text().await else { return Ok(None) };
    let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
    let last = lines.pop().and_then(|line| serde_json::from_str::<Last>(&line).ok());
    Ok(last.and_then(|last| last.covered).map(|covered| (lines, covered)))
}
