//! `tideline meta import`: a subtree of a ZooKeeper, brought into ours.
//!
//! Nodes keep their paths below the one named and their data; numbers of
//! sequential names go on above those that come. Left out are ephemeral nodes,
//! which belong to a session over there, and what ours would not take or theirs
//! does not show, with all that is below it; each is counted, and the first of
//! each kind are named. Versions start anew, and containers and nodes with a time
//! to live, which a server does not tell from others, stay. The import is a copy of a tree
//! that may change under it: stop its writers first if it must be of one moment.

use std::collections::VecDeque;

use tideline_meta::Path;
use tideline_types::limits::META_VALUE_BYTES_MAX;
use tideline_wire::meta_v1 as v1;

use super::call::Client;
use super::zookeeper::{Told, ZooKeeper};
use crate::cli::Failure;

/// Operations of one call.
const OPS: usize = 100;
/// Bytes of one call, about.
const BYTES: usize = 512 << 10;
/// Nodes that are named of each kind that does not come as it is.
const NAMED: usize = 5;

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
    let Told::Found(found) = source.get(root).await.map_err(failed)? else {
        return Err(Failure::Failed(format!("{address} shows no node {root}")));
    };
    let synced = v1::SyncRequest { path: into.into() };
    let there = client.call(synced, async |tree, request| tree.sync(request).await).await?;
    if there.subtree != into {
        client.declare(into, 0, 0).await?;
    }
    let mut batch = Batch { client, ops: Vec::new(), bytes: 0, nodes: 0 };
    let mut report = Report::default();
    if found.data.len() > META_VALUE_BYTES_MAX {
        report.too_large.add(root);
    } else if !found.data.is_empty() {
        let set = v1::Set { path: into.into(), value: found.data.into(), if_modified: None };
        batch.push(v1::op::Op::Set(set)).await?;
    }
    let mut waiting = VecDeque::from([String::new()]);
    while let Some(below) = waiting.pop_front() {
        let here = format!("{path}{below}");
        let here = if here.is_empty() { "/" } else { &here };
        if source.is_open(here).await.map_err(failed)? == Told::Found(false) {
            report.with_acl.add(here);
        }
        let names = match source.children(here).await.map_err(failed)? {
            Told::Found(names) => names,
            Told::Gone => continue,
            Told::Hidden => {
                report.hidden.add(&format!("{here}/*"));
                continue;
            }
        };
        for name in names {
            // The server's own.
            if here == "/" && name == "zookeeper" {
                continue;
            }
            let child = format!("{below}/{name}");
            let (there, target) = (format!("{path}{child}"), format!("{into}{child}"));
            let found = match source.get(&there).await.map_err(failed)? {
                Told::Found(found) => found,
                Told::Gone => continue,
                Told::Hidden => {
                    report.hidden.add(&there);
                    continue;
                }
            };
            if found.ephemeral {
                report.ephemeral.add(&there);
            } else if found.data.len() > META_VALUE_BYTES_MAX {
                report.too_large.add(&there);
            } else if Path::new(&target).is_err() {
                report.bad_path.add(&there);
            } else {
                let create = v1::Create {
                    path: target,
                    value: found.data.into(),
                    ephemeral: false,
                    sequential: false,
                };
                batch.push(v1::op::Op::Create(create)).await?;
                waiting.push_back(child);
            }
        }
    }
    batch.flush().await?;
    eprintln!("{} nodes imported to {into}", batch.nodes);
    report.print();
    source.close().await.map_err(failed)
}

/// What did not come, or not as it was.
#[derive(Default)]
struct Report {
    ephemeral: Kind,
    too_large: Kind,
    bad_path: Kind,
    hidden: Kind,
    with_acl: Kind,
}

/// Nodes of one kind: how many, and the first.
#[derive(Default)]
struct Kind {
    count: u64,
    first: Vec<String>,
}

impl Kind {
    fn add(&mut self, path: &str) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(path.to_owned());
        }
    }
}

impl Report {
    fn print(&self) {
        let kinds = [
            (&self.ephemeral, "left out: ephemeral"),
            (&self.too_large, "left out: over the limit of a value"),
            (&self.bad_path, "left out: no path here"),
            (&self.hidden, "left out: their ACL does not show them"),
            (&self.with_acl, "imported without their ACL"),
        ];
        for (kind, what) in kinds.into_iter().filter(|(kind, _)| kind.count > 0) {
            let more = if kind.count as usize > kind.first.len() { ", …" } else { "" };
            eprintln!("{} {what} ({}{more})", kind.count, kind.first.join(", "));
        }
    }
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
