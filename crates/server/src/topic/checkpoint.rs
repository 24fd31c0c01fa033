//! `tideline topic follow --checkpoint`: a topic on standard output, with its
//! place kept in the server's metadata tree.
//!
//! A place is kept after what lies before it was written, also where every
//! record was filtered out. So what is begun again prints every record that
//! was not printed, and some a second time if it was killed; what stands apart
//! from the data can promise no more (a file can: `--into`).

use std::collections::BTreeMap;
use std::io::Write as _;

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::follow::{Answer, read_all};
use super::path;
use crate::cli::Failure;
use crate::client::{CallError, Client, segment};

/// How long an answer may take in which every record is filtered out: at most
/// so much is read again after a kill.
const WAIT_MS: u64 = 2_000;

#[derive(Deserialize)]
struct Kept {
    partitions: Vec<Place>,
}

#[derive(Deserialize)]
struct Place {
    partition: u16,
    next: String,
}

/// Prints for ever, or until nobody reads on.
pub(super) async fn run(
    client: Client,
    topic: &str,
    consumer: &str,
    from: &str,
) -> Result<(), Failure> {
    let kept = format!("{}/checkpoints/{}", path(topic), segment(consumer));
    let places = match client.send_patiently(|| client.request(Method::GET, &kept)).await {
        Ok(answer) => {
            let kept: Kept = answer.json().await.map_err(|e| Failure::failed("checkpoint", e))?;
            kept.partitions.into_iter().map(|place| (place.partition, place.next)).collect()
        }
        // It has kept none; or there is no topic, which is said next.
        Err(CallError::Refused { status: StatusCode::NOT_FOUND, .. }) => BTreeMap::new(),
        Err(error) => return Err(error.into()),
    };
    let mut told = read_all(&client, topic, &places, from, WAIT_MS).await?;
    eprintln!("following {topic} as {consumer}");
    while let Some(answer) = told.recv().await {
        let mut places = BTreeMap::new();
        let mut printed = print(answer?, &mut places);
        // What else has come shares the call.
        while let Ok(answer) = told.try_recv() {
            printed &= print(answer?, &mut places);
        }
        if !printed || std::io::stdout().lock().flush().is_err() {
            return Ok(()); // Nobody reads on.
        }
        let place = |(partition, next)| json!({ "partition": partition, "next": next });
        let places: Vec<_> = places.into_iter().map(place).collect();
        let body = json!({ "partitions": places });
        client.send_patiently(|| client.request(Method::PUT, &kept).json(&body)).await?;
    }
    Ok(())
}

/// Prints the records of an answer, and notes where to go on. Whether somebody
/// read them.
fn print(answer: Answer, places: &mut BTreeMap<u16, String>) -> bool {
    let mut out = std::io::stdout().lock();
    places.insert(answer.partition, answer.to);
    answer.records.iter().all(|record| writeln!(out, "{record}").is_ok())
}
