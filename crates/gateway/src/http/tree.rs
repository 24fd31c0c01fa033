//! The metadata tree, to look at: its subtrees, and one node with a page of
//! its children. Changes and observers are for gRPC.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tideline_meta::Path;
use tideline_meta::tree::Node;
use tideline_types::limits::META_LIST_MAX;

use super::door::{self, Call};
use crate::Gateway;
use crate::problem::Problem;

/// Children in one answer, if not said.
const CHILDREN_DEFAULT: u64 = 100;

/// All subtrees, by path.
pub(super) async fn subtrees(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let one = |subtree: tideline_meta::ask::Subtree| {
        json!({
            "path": subtree.root.to_string(),
            "incarnation": subtree.incarnation.0,
            "seq": subtree.seq.0,
            "nodes": subtree.nodes,
            "bytes": subtree.bytes,
            "sessions": subtree.sessions,
            "observers": subtree.observers,
        })
    };
    let subtrees: Vec<Value> = gateway.meta()?.subtrees().into_iter().map(one).collect();
    Ok(door::json(json!({ "subtrees": subtrees }).to_string().into_bytes()))
}

/// The node at `path`, and its children after the one named `after`.
pub(super) async fn node(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let query = &call.query;
    query.only(&["path", "after", "limit"])?;
    let path = query.one("path")?.unwrap_or("/");
    let path = Path::new(path).map_err(|bad| Problem::invalid(format!("path: {bad}")))?;
    let limit = query.number("limit")?.unwrap_or(CHILDREN_DEFAULT);
    if !(1..=META_LIST_MAX as u64).contains(&limit) {
        return Err(Problem::invalid(format!("limit: must be 1 to {META_LIST_MAX}")));
    }
    let meta = gateway.meta()?;
    let found = meta.get(&path).await?;
    let page = meta.list(&path, query.one("after")?, limit as usize).await?;
    let children: Vec<Value> = page.children.iter().map(|(at, node)| outline(at, node)).collect();
    let answer = json!({
        "subtree": found.root.to_string(),
        "at": page.at.to_string(),
        "node": found.node.as_ref().map(|node| shown(&path, node)),
        "children": children,
        "more": page.more,
    });
    Ok(door::json(answer.to_string().into_bytes()))
}

/// A node without its value.
fn outline(path: &Path, node: &Node) -> Value {
    json!({
        "path": path.to_string(),
        "created": node.created.0,
        "modified": node.modified.0,
        "children": node.children,
        "ephemeral": node.owner.is_some(),
        "bytes": node.value.len(),
    })
}

/// A node; its value as text, where it is one.
fn shown(path: &Path, node: &Node) -> Value {
    let mut shown = outline(path, node);
    match std::str::from_utf8(&node.value) {
        Ok(text) => shown["value"] = text.into(),
        Err(_) => shown["value_base64"] = STANDARD.encode(&node.value).into(),
    }
    shown
}
