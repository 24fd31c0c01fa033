//! Topics: described, made, removed, written and read.
//!
//! Records are read a partition at a time, by long poll: a line for each
//! record, and a last line that says what the answer covers. `covered.to` is
//! where to go on: given back as `from`, it skips and repeats nothing.

use std::time::Duration;

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use tideline_history::outcome::OutcomeRef;
use tideline_queue::{Fetched, From, OwnedRecord, TopicInfo, TopicKind};
use tideline_record::OnError;
use tideline_store::ReadLimits;
use tideline_types::limits::BATCH_MARKS_MAX;
use tideline_types::{Millis, PartitionId, Position, Seq, TopicName};
use tideline_wire::Code;
use tideline_wire::json::{push_i64, push_str, push_string, push_u64};

use super::door::{self, Call, WAIT_MAX};
use crate::Gateway;
use crate::problem::Problem;
use crate::topics::{NewTopic, Source};

/// Records in one answer, if not said, and at most.
const RECORDS_DEFAULT: u64 = 100;
const RECORDS_MAX: u64 = 10_000;
/// Bytes of records in one answer, about.
const FETCH_BYTES_MAX: usize = 4 << 20;

pub(super) async fn list(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let mut topics = gateway.inner.queue.topics();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = b"{\"topics\":[".to_vec();
    for (at, topic) in topics.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_topic(&mut out, topic);
    }
    push_str(&mut out, "]}");
    Ok(door::json(out))
}

pub(super) async fn describe(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let topic = gateway.inner.queue.topic(&name(&call)?).ok_or_else(no_topic)?;
    Ok(topic_json(&topic))
}

/// The subscriptions that are open.
pub(super) async fn readers(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let topic = gateway.inner.queue.topic(&name(&call)?).ok_or_else(no_topic)?;
    let (readers, more) = gateway.inner.readers.of(&topic.name);
    let mut out = b"{\"readers\":[".to_vec();
    for (at, reader) in readers.iter().enumerate() {
        push_str(&mut out, if at == 0 { "{\"partition\":" } else { ",{\"partition\":" });
        push_u64(&mut out, reader.partition.0.into());
        push_str(&mut out, ",\"caller\":");
        push_string(&mut out, &reader.caller);
        push_str(&mut out, ",\"since_ms\":");
        push_i64(&mut out, reader.since.0);
        push_str(&mut out, ",\"covered\":");
        push_u64(&mut out, reader.covered());
        push_str(&mut out, ",\"behind\":");
        let synced = topic.bounds.get(usize::from(reader.partition.0)).map_or(0, |b| b.synced.0);
        push_u64(&mut out, synced.saturating_sub(reader.covered()));
        push_str(&mut out, ",\"bytes\":");
        push_u64(&mut out, reader.bytes());
        out.push(b'}');
    }
    push_str(&mut out, if more { "],\"more\":true}" } else { "],\"more\":false}" });
    Ok(door::json(out))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBody {
    partitions: Option<u16>,
    retention_hours: Option<u32>,
    source: Option<String>,
    operator: Option<serde_json::Value>,
    #[serde(default)]
    on_error: OnFault,
}

/// As [`OnError`].
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnFault {
    #[default]
    Skip,
    Halt,
}

pub(super) async fn create(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let name = name(&call)?;
    let body = call.body(&gateway).await?;
    let new = if body.trim_ascii().is_empty() { NewBody::default() } else { read(&body)? };
    if new.source.is_none() && new.operator.is_some() {
        return Err(Problem::invalid("operator: needs a source"));
    }
    let operator = new.operator.unwrap_or_else(|| serde_json::json!({})).to_string();
    let on_error = match new.on_error {
        OnFault::Skip => OnError::Skip,
        OnFault::Halt => OnError::Halt,
    };
    let derives = new.source.is_some();
    let source = new.source.map(|topic| Source { topic, operator, on_error });
    let NewBody { partitions, retention_hours, .. } = new;
    let topic = gateway.make_topic(NewTopic { name, partitions, retention_hours, source }).await?;
    let mut response = topic_json(&topic);
    if !derives {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

pub(super) async fn delete(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    gateway.remove_topic(name(&call)?).await?;
    Ok(door::nothing())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Produce {
    partition: Option<u16>,
    records: Vec<NewRecord>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRecord {
    key: Option<String>,
    value: Option<String>,
    value_base64: Option<String>,
}

pub(super) async fn produce(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let name = name(&call)?;
    let body = call.body(&gateway).await?;
    let asked: Produce = read(&body)?;
    if asked.records.len() > BATCH_MARKS_MAX {
        let detail = format!("records: at most {BATCH_MARKS_MAX} in one call");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    let records = asked.records.into_iter().enumerate().map(|(at, record)| {
        let value = match (record.value, record.value_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|_| {
                Problem::invalid(format!("records[{at}].value_base64: is not base64"))
            })?,
            (None, None) => Vec::new(),
            _ => {
                let detail = format!("records[{at}]: value or value_base64, not both");
                return Err(Problem::invalid(detail));
            }
        };
        Ok((Bytes::from(record.key.unwrap_or_default()), Bytes::from(value)))
    });
    let records = records.collect::<Result<Vec<_>, _>>()?;
    let partition = asked.partition.map(PartitionId);
    let positions = gateway.inner.queue.produce(&name, partition, records).await?;
    let mut out = b"{\"positions\":[".to_vec();
    for (at, position) in positions.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_string(&mut out, &position.to_string());
    }
    push_str(&mut out, "]}");
    Ok(door::json(out))
}

pub(super) async fn fetch(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let query = &call.query;
    query.only(&["partition", "from", "limit", "wait_ms"])?;
    let name = name(&call)?;
    let partition = query.number("partition")?.unwrap_or(0);
    let partition =
        u16::try_from(partition).map_err(|_| Problem::invalid("partition: too large"))?;
    let limit = query.number("limit")?.unwrap_or(RECORDS_DEFAULT);
    if !(1..=RECORDS_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("limit: must be 1 to {RECORDS_MAX}")));
    }
    let wait = Duration::from_millis(query.number("wait_ms")?.unwrap_or(0));
    if wait > WAIT_MAX {
        return Err(Problem::invalid(format!("wait_ms: at most {}", WAIT_MAX.as_millis())));
    }
    let from = read_from(query.one("from")?.unwrap_or("earliest"))?;
    let limits = ReadLimits { records_max: limit as usize, bytes_max: FETCH_BYTES_MAX };
    let partition = PartitionId(partition);
    let fetched = tokio::select! {
        fetched = gateway.inner.queue.fetch(&name, partition, from, limits, wait) => fetched?,
        () = gateway.stopping() => {
            return Err(Problem::overloaded("the server is stopping", Duration::from_secs(5)));
        }
    };
    let shape = Shape::of(&name);
    let mut out = Vec::with_capacity(128 + fetched.records.len() * 192);
    for record in &fetched.records {
        push_record(&mut out, partition, &fetched, record, shape);
    }
    push_covered(&mut out, &fetched);
    Ok(door::lines(out))
}

/// `earliest`, `latest`, a position (`at`), `after:` and a position, or
/// milliseconds since the epoch.
fn read_from(text: &str) -> Result<From, Problem> {
    let bad = || {
        Problem::invalid(
            "from: must be earliest, latest, a position (incarnation-epoch-seq), after:<position>, \
             or milliseconds since the epoch",
        )
    };
    match text {
        "earliest" => Ok(From::Earliest),
        "latest" => Ok(From::Latest),
        _ => {
            if let Some(position) = text.strip_prefix("after:") {
                return position.parse().map(From::After).map_err(|_| bad());
            }
            if let Ok(position) = text.parse::<Position>() {
                return Ok(From::At(position));
            }
            text.parse().ok().filter(|ms| *ms >= 0).map(|ms| From::Time(Millis(ms))).ok_or_else(bad)
        }
    }
}

/// How the values of a topic are shown.
#[derive(Clone, Copy)]
enum Shape {
    /// As text, or else base64.
    Bytes,
    /// They are JSON.
    Json,
    /// They are outcomes of history.
    Outcome,
}

impl Shape {
    fn of(name: &TopicName) -> Self {
        match name.as_str() {
            tideline_history::TOPIC => Self::Outcome,
            tideline_history::DAILY_FIRST => Self::Json,
            _ => Self::Bytes,
        }
    }
}

fn push_record(
    out: &mut Vec<u8>,
    partition: PartitionId,
    fetched: &Fetched,
    record: &OwnedRecord,
    shape: Shape,
) {
    push_str(out, "{\"partition\":");
    push_u64(out, partition.0.into());
    push_str(out, ",\"incarnation\":");
    push_u64(out, fetched.incarnation.0);
    push_str(out, ",\"epoch\":");
    push_u64(out, fetched.epoch.0.into());
    push_str(out, ",\"seq\":");
    push_u64(out, record.seq.0);
    push_str(out, ",\"time_ms\":");
    push_i64(out, record.time.0);
    push_bytes(out, "key", &record.key);
    if record.skipped {
        push_str(out, ",\"skipped\":");
        push_string(out, &String::from_utf8_lossy(&record.value));
        push_str(out, "}\n");
        return;
    }
    let outcome = match shape {
        Shape::Outcome => OutcomeRef::decode(&record.value).ok(),
        _ => None,
    };
    match (outcome, shape) {
        (Some(outcome), _) => {
            let user = std::str::from_utf8(&record.key).ok();
            push_str(out, ",\"value\":");
            push_str(out, &outcome.to_json(user));
        }
        (None, Shape::Json) => {
            push_str(out, ",\"value\":");
            out.extend_from_slice(&record.value);
        }
        _ => push_bytes(out, "value", &record.value),
    }
    push_str(out, "}\n");
}

/// A field of bytes: as text where they are, else in base64.
fn push_bytes(out: &mut Vec<u8>, name: &str, bytes: &Bytes) {
    push_str(out, ",\"");
    push_str(out, name);
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            push_str(out, "\":");
            push_string(out, text);
        }
        Err(_) => {
            push_str(out, "_base64\":");
            push_string(out, &STANDARD.encode(bytes));
        }
    }
}

/// What was read, from the first to the one that is next.
fn push_covered(out: &mut Vec<u8>, fetched: &Fetched) {
    let at = |seq: Seq| Position { incarnation: fetched.incarnation, epoch: fetched.epoch, seq };
    push_str(out, "{\"covered\":{\"from\":");
    push_string(out, &at(fetched.range.after.next()).to_string());
    push_str(out, ",\"to\":");
    push_string(out, &at(fetched.range.through.next()).to_string());
    push_str(out, "}}\n");
}

fn topic_json(topic: &TopicInfo) -> Response {
    let mut out = Vec::with_capacity(512);
    push_topic(&mut out, topic);
    door::json(out)
}

fn push_topic(out: &mut Vec<u8>, topic: &TopicInfo) {
    push_str(out, "{\"name\":");
    push_string(out, topic.name.as_str());
    push_str(out, ",\"incarnation\":");
    push_u64(out, topic.incarnation.0);
    push_str(out, ",\"partitions\":");
    push_u64(out, topic.partitions.into());
    match &topic.kind {
        TopicKind::Source => push_str(out, ",\"kind\":\"source\""),
        TopicKind::Derived { source, operator } => {
            push_str(out, ",\"kind\":\"derived\",\"source\":");
            push_string(out, source.as_str());
            if let Some(operator) = operator {
                push_str(out, ",\"operator\":");
                // It is JSON by itself, or else shown as text.
                match serde_json::from_str::<serde::de::IgnoredAny>(operator) {
                    Ok(_) => push_str(out, operator),
                    Err(_) => push_string(out, operator),
                }
            }
        }
    }
    let flag = if topic.read_only { ",\"read_only\":true" } else { ",\"read_only\":false" };
    push_str(out, flag);
    push_str(out, ",\"retention_ms\":");
    push_u64(out, topic.retention.as_millis() as u64);
    push_str(out, ",\"bounds\":[");
    for (at, bounds) in topic.bounds.iter().enumerate() {
        push_str(out, if at == 0 { "{\"partition\":" } else { ",{\"partition\":" });
        push_u64(out, at as u64);
        push_str(out, ",\"epoch\":");
        push_u64(out, bounds.epoch.0.into());
        push_str(out, ",\"start\":");
        push_u64(out, bounds.start.0);
        push_str(out, ",\"synced\":");
        push_u64(out, bounds.synced.0);
        out.push(b'}');
    }
    push_str(out, "]}");
}

fn name(call: &Call) -> Result<TopicName, Problem> {
    TopicName::new(call.param("topic").unwrap_or_default()).map_err(|bad| Problem::invalid(bad.0))
}

fn no_topic() -> Problem {
    Problem::new(Code::NotFound, "there is no such topic")
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("body: {error}")))
}
