//! What is due to be looked at by a moderator, of all videos.

use axum::response::Response;
use tideline_danmaku::CommentId;
use tideline_wire::json::{push_str, push_string, push_u64};

use super::danmaku::{comment_json, id_of};
use super::door::{self, Call};
use crate::Gateway;
use crate::problem::Problem;

/// Comments in one answer, at most.
const ROWS_MAX: usize = 100;

/// A page may be shorter than asked for, and not be the last: what has been
/// looked at meanwhile is left out.
pub(super) async fn list(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&["after", "limit"])?;
    gateway.site_moderator(&call.caller)?;
    let after = call.query.one("after")?.map(place_of).transpose()?;
    let limit = call.query.number("limit")?.unwrap_or(ROWS_MAX as u64);
    if !(1..=ROWS_MAX as u64).contains(&limit) {
        return Err(Problem::invalid(format!("limit: must be 1 to {ROWS_MAX}")));
    }
    let danmaku = &gateway.inner.danmaku;
    let due = danmaku.due(after, limit as usize).await?;
    let mut out = b"{\"items\":[".to_vec();
    let mut first = true;
    for due in &due {
        let Some(comment) = danmaku.find(&due.video, due.id).await? else { continue };
        if !comment.index.state.is_due() {
            continue;
        }
        push_str(&mut out, if first { "{\"video\":" } else { ",{\"video\":" });
        first = false;
        push_string(&mut out, &due.video);
        push_str(&mut out, ",\"reports\":");
        push_u64(&mut out, comment.index.reports.into());
        out.push(b',');
        out.extend_from_slice(&comment_json(&gateway, &due.video, &comment)[1..]);
    }
    push_str(&mut out, "],\"next\":");
    match due.last().filter(|_| due.len() == limit as usize) {
        Some(last) => push_string(&mut out, &format!("{}:{}", last.id, last.video)),
        None => push_str(&mut out, "null"),
    }
    out.push(b'}');
    Ok(door::json(out))
}

/// The comment, and the video, that a page ended with.
fn place_of(text: &str) -> Result<(&str, CommentId), Problem> {
    let bad = || Problem::invalid("after: must be `next` of the page before");
    let (id, video) = text.split_once(':').ok_or_else(bad)?;
    Ok((video, id_of("after", id)?))
}
