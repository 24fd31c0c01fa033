//! `tideline meta watch`: every change of a subtree, one line of JSON each.
//!
//! Keeps a copy and a place; a connection that breaks is made again, and goes
//! on where it was, so no change is left out and none is told twice.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;
use tideline_meta::follower::{Event, Follower, Seen};
use tideline_wire::common_v1;
use tideline_wire::meta_v1 as v1;

use super::call::Client;
use super::described;
use crate::cli::Failure;

/// How long it waits before it connects again.
const AGAIN: Duration = Duration::from_millis(500);

/// Prints until it is stopped, or the subtree is gone.
pub(super) async fn run(client: &mut Client, path: String) -> Result<(), Failure> {
    let request = v1::SyncRequest { path: path.clone() };
    let synced = client.call(request, async |tree, request| tree.sync(request).await).await?;
    let root = if synced.subtree == "/" { String::new() } else { synced.subtree };
    let below = path.strip_prefix(&root).unwrap_or_default().trim_end_matches('/').to_owned();
    let mut follower = Follower::default();
    loop {
        let after = follower.position().map(|at| at.into());
        match follow(client, &path, after, &mut follower, &root, &below).await? {
            Ended::Broken => tokio::time::sleep(AGAIN).await,
            Ended::Gone(why) => return Err(why),
        }
        follower.disconnected();
    }
}

enum Ended {
    Broken,
    Gone(Failure),
}

async fn follow(
    client: &mut Client,
    path: &str,
    after: Option<common_v1::Position>,
    follower: &mut Follower,
    root: &str,
    below: &str,
) -> Result<Ended, Failure> {
    let Ok(mut events) = client.observe(path.to_owned(), after).await else {
        return Ok(Ended::Broken);
    };
    loop {
        let event = match events.message().await {
            Ok(Some(event)) => event.event,
            Ok(None) => return Ok(Ended::Broken),
            Err(status) if status.code() == tonic::Code::NotFound => {
                return Ok(Ended::Gone(super::call::refused(&status)));
            }
            Err(_) => return Ok(Ended::Broken),
        };
        use v1::observe_response::Event as Sent;
        let event = match event {
            Some(Sent::Chunk(bytes)) => Event::Chunk(bytes),
            Some(Sent::Frame(bytes)) => Event::Frame(bytes),
            Some(Sent::Resync(why)) => {
                eprintln!("tideline: a snapshot follows: {why}");
                follower.disconnected();
                continue;
            }
            None => continue,
        };
        let told = follower.take(&event).map_err(|error| Failure::failed("the server", error))?;
        let seq = follower.position().map_or(0, |at| at.seq.0);
        print(&told, seq, root, below)?;
    }
}

/// One line for each change at or below the path that was asked for.
fn print(told: &[Vec<Seen>], seq: u64, root: &str, below: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for seen in told.iter().flatten() {
        let (what, path, node) = match seen {
            Seen::New(path, node) => ("new", path, node),
            Seen::Set(path, node) => ("set", path, node),
            Seen::Gone(path, node) => ("gone", path, node),
        };
        let rest = path.as_str().strip_prefix(below);
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            continue;
        }
        let shown = v1::Node {
            value: node.value.clone(),
            created: node.created.0,
            modified: node.modified.0,
            session: node.owner.map_or(0, |owner| owner.0),
            children: node.children,
        };
        let mut line = described(&format!("{root}{}", path.as_str()), &shown);
        line["seen"] = json!(what);
        line["through"] = json!(seq);
        if what == "gone" {
            line.as_object_mut().map(|line| line.remove("value"));
        }
        writeln!(out, "{line}").map_err(|error| Failure::failed("standard output", error))?;
    }
    out.flush().map_err(|error| Failure::failed("standard output", error))
}
