//! Reads a server whole, and holds its answers against each other.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Http, Response};
use crate::ledger::{Found, Request, Seen, Tally, objects};

/// A reading that failed, or that contradicts itself.
#[derive(Debug)]
pub enum Bad {
    /// No answer.
    Lost(io::Error),
    /// An answer that cannot be right.
    Wrong(String),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

fn wrong<T>(what: String) -> Result<T, Bad> {
    Err(Bad::Wrong(what))
}

/// Asks until the server is no longer too busy, for a while.
fn ask(http: &mut Http, request: &Request) -> Result<Response, Bad> {
    let begun = Instant::now();
    loop {
        let response = http.ask(request)?;
        if !matches!(response.status, 429 | 503) || begun.elapsed() > PATIENCE {
            return Ok(response);
        }
        std::thread::park_timeout(POLL);
    }
}

/// Being too busy for longer than this is being stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a busy server is asked again.
const POLL: Duration = Duration::from_millis(5);

fn get(http: &mut Http, path: String) -> Result<Value, Bad> {
    let response = ask(http, &Request { method: "GET", path: path.clone(), body: None })?;
    if response.status != 200 {
        let body = String::from_utf8_lossy(&response.body).into_owned();
        return wrong(format!("GET {path}: {} {body}", response.status));
    }
    Ok(response.json())
}

fn seen(item: &Value) -> Seen {
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    Seen {
        event_ms: item["event_ms"].as_i64().unwrap_or_default(),
        kind: text("kind").unwrap_or_default(),
        id: text("id").unwrap_or_default(),
        part: text("part"),
        position_ms: item["position_ms"].as_u64(),
        duration_ms: item["duration_ms"].as_u64(),
        device: text("device"),
        finished: item["finished"].as_bool().unwrap_or_default(),
        plays: item["plays"].as_u64().unwrap_or_default() as u32,
    }
}

/// The whole list by cursor, a few rows at a time.
fn list(http: &mut Http, user: &str, filter: &str) -> Result<Vec<Seen>, Bad> {
    let mut rows = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = get(http, format!("/v1/users/{user}/history?limit=8{filter}{cursor}"))?;
        let Some(items) = page["items"].as_array() else {
            return wrong(format!("a list of {user} is {page}"));
        };
        for item in items {
            let row = seen(item);
            let percent = match (row.position_ms, row.duration_ms) {
                (Some(position), Some(duration)) => Some((position * 100 / duration).min(100)),
                _ => None,
            };
            if item["percent"].as_u64() != percent {
                return wrong(format!("percent of {item} is due {percent:?}"));
            }
            rows.push(row);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(rows),
        }
    }
}

fn count(http: &mut Http, user: &str, filter: &str, due: usize) -> Result<(), Bad> {
    let answer = get(http, format!("/v1/users/{user}/history/count?{filter}"))?;
    if answer["count"].as_u64() != Some(due as u64) {
        return wrong(format!("the count of {user} ({filter}) is {answer}, the list holds {due}"));
    }
    Ok(())
}

/// Everything about one user: the list by cursor and by page, counts, days,
/// points, settings; each must say the same.
pub fn read_user(http: &mut Http, user: &str) -> Result<Found, Bad> {
    let rows = list(http, user, "")?;
    count(http, user, "", rows.len())?;
    for kind in ["video", "article"] {
        let due = rows.iter().filter(|row| row.kind == kind).count();
        count(http, user, &format!("kind={kind}"), due)?;
    }
    let page = get(http, format!("/v1/users/{user}/history?limit=100&page=1"))?;
    let by_page: Vec<Seen> = page["items"].as_array().into_iter().flatten().map(seen).collect();
    if by_page != rows[..rows.len().min(100)] || page["total"].as_u64() != Some(rows.len() as u64) {
        return wrong(format!("by page: {page}\nby cursor: {rows:?}"));
    }
    let days = get(http, format!("/v1/users/{user}/history/days"))?;
    let summed: u64 =
        days.as_array().into_iter().flatten().filter_map(|day| day["count"].as_u64()).sum();
    if summed != rows.len() as u64 {
        return wrong(format!("the days of {user} are {days}, the list holds {}", rows.len()));
    }
    points(http, user, &rows)?;
    let unfinished = list(http, user, "&unfinished=true")?;
    let settings = get(http, format!("/v1/users/{user}/history/settings"))?;
    let Some(recording) = settings["recording"].as_bool() else {
        return wrong(format!("the settings of {user} are {settings}"));
    };
    Ok(Found { list: rows, unfinished, recording, firsts: None })
}

fn points(http: &mut Http, user: &str, rows: &[Seen]) -> Result<(), Bad> {
    let objects = objects();
    let keys: Vec<_> =
        objects.iter().map(|(kind, id)| serde_json::json!({"kind": kind, "id": id})).collect();
    let request = Request {
        method: "POST",
        path: format!("/v1/users/{user}/progress:batchGet"),
        body: Some(serde_json::json!({"keys": keys}).to_string()),
    };
    let response = ask(http, &request)?;
    let answer = response.json();
    let items = answer["items"].as_array().map_or(&[][..], |items| items);
    if response.status != 200 || items.len() != objects.len() {
        return wrong(format!("points of {user}: {} {answer}", response.status));
    }
    for ((kind, id), item) in objects.iter().zip(items) {
        let row = rows.iter().find(|row| row.kind == *kind && row.id == *id);
        let same = match row {
            None => item["found"] == false,
            Some(row) => item["found"] == true && seen(item) == *row,
        };
        if !same {
            return wrong(format!("the point is {item}, the list holds {row:?}"));
        }
    }
    Ok(())
}

/// Topic `daily-first`, whole: for each user, kinds and ids in the order of
/// each partition.
pub fn read_firsts(http: &mut Http) -> Result<BTreeMap<String, Vec<(String, String)>>, Bad> {
    let topic = get(http, "/v1/topics/daily-first".into())?;
    let partitions = match &topic["partitions"] {
        Value::Array(list) => list.len() as u64,
        number => number.as_u64().unwrap_or(0),
    };
    let mut firsts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for partition in 0..partitions {
        let mut from = "earliest".to_owned();
        loop {
            let (records, covered) = fetch(http, partition, &from)?;
            for record in records {
                let value = match &record["value"] {
                    Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
                    value => value.clone(),
                };
                let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
                // An erased record keeps its place and says nothing.
                if !text("user").is_empty() {
                    firsts.entry(text("user")).or_default().push((text("kind"), text("id")));
                }
            }
            if covered.0 == covered.1 {
                break;
            }
            from = covered.1;
        }
    }
    Ok(firsts)
}

/// One answer of `daily-first`: records, and from where to where it covers.
fn fetch(
    http: &mut Http,
    partition: u64,
    from: &str,
) -> Result<(Vec<Value>, (String, String)), Bad> {
    let path = format!(
        "/v1/topics/daily-first/records?partition={partition}&from={from}&limit=1000&wait_ms=0"
    );
    let response = ask(http, &Request { method: "GET", path: path.clone(), body: None })?;
    let mut lines = response.lines();
    let last = lines.pop().unwrap_or_default();
    let covered = |name: &str| last["covered"][name].as_str().map(str::to_owned);
    match (response.status, covered("from"), covered("to")) {
        (200, Some(from), Some(to)) => Ok((lines, (from, to))),
        _ => wrong(format!("GET {path}: {} {last}", response.status)),
    }
}

/// The counts of a write's or a delete's answer; `None` where it has none.
pub fn tally(op_users: &[String], answer: &Value) -> Option<Tally> {
    let number = |name: &str| answer[name].as_u64().unwrap_or_default();
    if answer["deleted"].is_u64() {
        return Some(Tally { deleted: number("deleted"), ..Tally::default() });
    }
    answer["accepted"].as_u64()?;
    let first = |first: &Value| match first {
        Value::String(kind) => (op_users[0].clone(), kind.clone()),
        both => {
            let text = |name: &str| both[name].as_str().unwrap_or_default().to_owned();
            (text("user"), text("kind"))
        }
    };
    Some(Tally {
        accepted: number("accepted"),
        stale: number("stale"),
        paused: number("paused"),
        duplicate: number("duplicate"),
        deleted: 0,
        firsts: answer["first_today"].as_array().into_iter().flatten().map(first).collect(),
    })
}
