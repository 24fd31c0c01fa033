//! `tideline meta import`: a subtree of a ZooKeeper, brought into ours.
//!
//! Nodes keep their paths below the one named and their data. What is
//! ephemeral belongs to a session over there and is left out. Versions start
//! anew. The import is a copy of a tree that may change under it: stop its
//! writers first if it must be of one moment.

use std::collections::VecDeque;

use tideline_wire::meta_v1 as v1;

use super::call::Client;
use super::zookeeper::ZooKeeper;
use crate::cli::Failure;

/// Operations of one call.
const OPS: usize = 100;
/// Bytes of one call, about.
const BYTES: usize = 512 << 10;

/// Copies `from` (`host:port/path`) to the subtree `into`, which is declared if
/// it is not there; it must be empty.
pub(super) async fn run(client: &mut Client, from: &str, into: &str) -> Result<(), Failure> {
    let (address, path) = match from.find('/') {
        Some(slash) => (&from[..slash], from[slash..].trim_end_matches('/')),
        None => (from, ""),
    };
    let failed = |error| Failure::failed(format!("ZooKeeper {address}"), error);
    let mut source = ZooKeeper::connect(address).await.map_err(failed)?;
    let root = if path.is_empty() { "/" } else { path };
    let found = source.get(root).await.map_err(failed)?;
    let found = found.ok_or_else(|| Failure::Failed(format!("{address} has no node {root}")))?;
    let synced = v1::SyncRequest { path: into.into() };
    let there = client.call(synced, async |tree, request| tree.sync(request).await).await?;
    if there.subtree != into {
        client.declare(into, 0, 0).await?;
    }
    let mut batch = Batch { client, ops: Vec::new(), bytes: 0, nodes: 0 };
    if !found.data.is_empty() {
        let set = v1::Set { path: into.into(), value: found.data.into(), if_modified: None };
        batch.push(v1::op::Op::Set(set)).await?;
    }
    let (mut waiting, mut left_out) = (VecDeque::from([String::new()]), 0_u64);
    while let Some(below) = waiting.pop_front() {
        let here = format!("{path}{below}");
        let here = if here.is_empty() { "/" } else { &here };
        let names = source.children(here).await.map_err(failed)?;
        for name in names.unwrap_or_default() {
            // The server's own.
            if here == "/" && name == "zookeeper" {
                continue;
            }
            let child = format!("{below}/{name}");
            let Some(found) = source.get(&format!("{path}{child}")).await.map_err(failed)? else {
                continue;
            };
            if found.ephemeral {
                left_out += 1;
                continue;
            }
            let create = v1::Create {
                path: format!("{into}{child}"),
                value: found.data.into(),
                ephemeral: false,
                sequential: false,
            };
            batch.push(v1::op::Op::Create(create)).await?;
            waiting.push_back(child);
        }
    }
    batch.flush().await?;
    let nodes = batch.nodes;
    source.close().await.map_err(failed)?;
    eprintln!("{nodes} nodes imported to {into}; {left_out} ephemeral ones left out");
    Ok(())
}

struct Batch<'a> {
    client: &'a mut Client,
    ops: Vec<v1::Op>,
    bytes: usize,
    nodes: u64,
}

impl Batch<'_> {
    async fn push(&mut self, op: v1::op::Op) -> Result<(), Failure> {
        let bytes = match &op {
            v1::op::Op::Create(create) => create.value.len() + create.path.len(),
            v1::op::Op::Set(set) => set.value.len(),
            _ => 0,
        };
        if self.ops.len() >= OPS || self.bytes + bytes > BYTES {
            self.flush().await?;
        }
        self.nodes += u64::from(matches!(op, v1::op::Op::Create(_)));
        self.bytes += bytes;
        self.ops.push(v1::Op { op: Some(op) });
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        match std::mem::take(&mut self.ops) {
            ops if ops.is_empty() => Ok(()),
            ops => self.client.apply_all(ops).await.map(|_| ()),
        }
    }
}
