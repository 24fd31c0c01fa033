//! Rounds of marks, carried to a server.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;

use super::rounds::{Lane, Round};
use super::tally::Tally;
use crate::client::{CallError, Client, read_json};

/// The answer to a batch of marks.
#[derive(Debug, Deserialize)]
struct Answer {
    accepted: u64,
    stale: u64,
    paused: u64,
    duplicate: u64,
    over_cap: u64,
    rejected: Vec<Rejected>,
}

#[derive(Debug, Deserialize)]
struct Rejected {
    index: usize,
    code: String,
    detail: String,
}

/// What became of a round.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// In numbers.
    pub tally: Tally,
    /// Lines that the server refused, in order, and why.
    pub refused: Vec<(u64, String)>,
}

/// Sends the lanes of `round` side by side and waits for all of them.
pub(super) async fn send(client: &Client, round: Round) -> Result<Sent, CallError> {
    let mut sent = Sent::default();
    sent.tally.bad_lines = round.bad.len() as u64;
    sent.tally.left_out = round.left_out;
    sent.refused = round.bad;
    let lanes = round.lanes.into_iter().filter(|lane| !lane.lines.is_empty());
    let tasks: Vec<_> = lanes
        .map(|lane| {
            let client = client.clone();
            tokio::spawn(async move { send_lane(&client, lane).await })
        })
        .collect();
    for task in tasks {
        let (tally, refused) = task.await.expect("sending does not panic")?;
        sent.tally += tally;
        sent.refused.extend(refused);
    }
    sent.refused.sort();
    Ok(sent)
}

/// Puts titles into the catalogue.
pub(super) async fn send_items(client: &Client, items: Vec<u8>) -> Result<(), CallError> {
    post(client, "/v1/items:batch", items.into()).await.map(|_| ())
}

async fn send_lane(client: &Client, lane: Lane) -> Result<(Tally, Vec<(u64, String)>), CallError> {
    let response = post(client, "/v1/history:batch?import=true", lane.body.into()).await?;
    let answer: Answer = read_json(response).await?;
    let tally = Tally {
        sent: lane.lines.len() as u64,
        accepted: answer.accepted,
        stale: answer.stale,
        paused: answer.paused,
        duplicate: answer.duplicate,
        over_cap: answer.over_cap,
        rejected: answer.rejected.len() as u64,
        ..Tally::default()
    };
    let refused = answer
        .rejected
        .into_iter()
        .map(|r| {
            let line = lane.lines.get(r.index).copied().unwrap_or_default();
            (line, format!("refused, {}: {}", r.code, r.detail))
        })
        .collect();
    Ok((tally, refused))
}

async fn post(client: &Client, path: &str, body: Bytes) -> Result<reqwest::Response, CallError> {
    let request = || {
        client
            .request(Method::POST, path)
            .header(CONTENT_TYPE, "application/json")
            .body(body.clone())
    };
    client.send_patiently(request).await
}
