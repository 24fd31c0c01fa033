//! `tideline meta`: the metadata tree of a running server, over gRPC.

mod call;
mod import;
mod own;
mod watch;
mod zookeeper;

use std::io::{Read as _, Write as _};

use serde_json::json;
use tideline_wire::meta_v1 as v1;

use crate::cli::{Failure, MetaArgs, MetaCommand, SubtreeCommand};
use call::Client;
pub(crate) use zookeeper::fuzz_answer;

/// Does what `args` say.
pub(crate) async fn run(args: MetaArgs) -> Result<(), Failure> {
    let mut client = Client::new(&args)?;
    match args.command {
        MetaCommand::Ls { path, json } => ls(&mut client, path, json).await,
        MetaCommand::Get { path, json } => get(&mut client, path, json).await,
        MetaCommand::Set { path, value, if_modified } => {
            let set = v1::Set { path, value: value_of(value)?, if_modified };
            client.apply(v1::op::Op::Set(set)).await.map(|_| ())
        }
        MetaCommand::Create { path, value, sequential } => {
            let value = value.map_or(Ok(bytes::Bytes::new()), value_of)?;
            let create = v1::Create { path, value, ephemeral: false, sequential };
            let made = client.apply(v1::op::Op::Create(create)).await?;
            made.created.iter().for_each(|path| println!("{path}"));
            Ok(())
        }
        MetaCommand::Delete { path, if_modified } => {
            let delete = v1::Delete { path, if_modified };
            client.apply(v1::op::Op::Delete(delete)).await.map(|_| ())
        }
        MetaCommand::Watch { path } => watch::run(&mut client, path).await,
        MetaCommand::Import { zookeeper, into } => {
            import::run(&mut client, &zookeeper, &into).await
        }
        MetaCommand::Own(own) => own::run(&mut client, own).await,
        MetaCommand::Subtree { command } => subtree(&mut client, command).await,
    }
}

/// The text, or standard input for `-`.
fn value_of(value: String) -> Result<bytes::Bytes, Failure> {
    if value != "-" {
        return Ok(value.into());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed("standard input", error))?;
    Ok(bytes.into())
}

async fn ls(client: &mut Client, path: String, as_json: bool) -> Result<(), Failure> {
    let mut after = String::new();
    let mut first = true;
    loop {
        let request = v1::ListRequest { path: path.clone(), after, limit: 0 };
        let page = client.call(request, async |tree, request| tree.list(request).await).await?;
        if std::mem::take(&mut first) && !as_json {
            describe(client, &page.subtree).await?;
        }
        for child in &page.children {
            let node = child.node.clone().unwrap_or_default();
            match as_json {
                true => println!("{}", described(&child.path, &node)),
                false => println!(
                    "{:<40} {:>10} bytes {:>7} below  created {} modified {}{}",
                    child.path,
                    node.value.len(),
                    node.children,
                    node.created,
                    node.modified,
                    if node.session > 0 { "  ephemeral" } else { "" }
                ),
            }
        }
        let last = page.children.last().and_then(|child| child.path.rsplit('/').next());
        match last.filter(|_| page.more) {
            Some(last) => after = last.to_owned(),
            None => return Ok(()),
        }
    }
}

/// Says on standard error what the subtree is like that is listed.
async fn describe(client: &mut Client, root: &str) -> Result<(), Failure> {
    let all = v1::ListSubtreesRequest {};
    let all = client.call(all, async |tree, request| tree.list_subtrees(request).await).await?;
    if let Some(one) = all.subtrees.iter().find(|one| one.path == root) {
        eprintln!(
            "subtree {root} at {}: {} nodes, {} bytes, {} sessions, {} observers",
            one.seq, one.nodes, one.bytes, one.sessions, one.observers
        );
    }
    Ok(())
}

async fn get(client: &mut Client, path: String, as_json: bool) -> Result<(), Failure> {
    let node = client.node(&path).await?;
    let node = node.ok_or_else(|| Failure::Failed(format!("{path} does not exist")))?;
    if as_json {
        println!("{}", described(&path, &node));
        return Ok(());
    }
    let written = std::io::stdout().lock().write_all(&node.value);
    written.map_err(|error| Failure::failed("standard output", error))
}

/// A node as JSON; its value as text, where it is one.
fn described(path: &str, node: &v1::Node) -> serde_json::Value {
    let mut json = json!({
        "path": path,
        "created": node.created,
        "modified": node.modified,
        "children": node.children,
        "ephemeral": node.session > 0,
    });
    match std::str::from_utf8(&node.value) {
        Ok(text) => json["value"] = text.into(),
        Err(_) => {
            let hex: String = node.value.iter().map(|byte| format!("{byte:02x}")).collect();
            json["value_hex"] = hex.into();
        }
    }
    json
}

async fn subtree(client: &mut Client, command: SubtreeCommand) -> Result<(), Failure> {
    match command {
        SubtreeCommand::Ls => {
            let request = v1::ListSubtreesRequest {};
            let all = client.call(request, async |tree, request| tree.list_subtrees(request).await);
            println!(
                "{:<40} {:>12} {:>10} {:>12} {:>9} {:>9}",
                "SUBTREE", "SEQ", "NODES", "BYTES", "SESSIONS", "OBSERVERS"
            );
            for one in all.await?.subtrees {
                println!(
                    "{:<40} {:>12} {:>10} {:>12} {:>9} {:>9}",
                    one.path, one.seq, one.nodes, one.bytes, one.sessions, one.observers
                );
            }
            Ok(())
        }
        SubtreeCommand::Create { path, nodes_max, bytes_max } => {
            client.declare(&path, nodes_max, bytes_max).await?;
            eprintln!("subtree {path} declared");
            Ok(())
        }
        SubtreeCommand::Rm { path } => {
            let request = v1::DropSubtreeRequest { path: path.clone() };
            client.call(request, async |tree, request| tree.drop_subtree(request).await).await?;
            eprintln!("subtree {path} dropped");
            Ok(())
        }
    }
}
