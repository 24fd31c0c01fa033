//! What one viewer wants of comments: flags beside the bytes that all share.

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use tideline_danmaku::filters::{self, Filters};
use tideline_danmaku::flag::{FLAG_DEFAULT, Viewer};
use tideline_danmaku::scores::Scores;
use tideline_danmaku::segment::Format;
use tideline_types::UserId;
use tideline_types::limits::SCORES_BATCH_MAX;
use tideline_wire::Code;
use tideline_wire::danmaku::smart::{Flags, put_frame_head};

use super::door::{self, Call};
use super::players::tally_json;
use super::segments::outside;
use crate::Gateway;
use crate::op::Need;
use crate::packing::Packing;
use crate::problem::Problem;
use crate::shelf::Kind;

/// Flags in one body, at most.
const FLAGS_MAX: usize = 32_000;
/// Lines that are told as rejected, at most.
const LINES_MAX: usize = 1_000;

/// A model's scores of one segment, which go out as they came.
pub(super) async fn set_flags(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&["video", "segment"])?;
    let video = call.query.one("video")?.ok_or_else(|| Problem::invalid("video: is required"))?;
    let (video, segment) = (video.to_owned(), call.query.number("segment")?);
    let segment = segment.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let segment = segment.ok_or_else(|| Problem::invalid("segment: must be a number from 1"))?;
    let body = call.body(&gateway).await?;
    // Looked at once, so that no player is given what it cannot read.
    Flags::from_json(&body, FLAGS_MAX).map_err(|bad| Problem::invalid(format!("body: {bad}")))?;
    gateway.inner.danmaku.set_scores(&user, vec![(video, segment, body)]).await?;
    Ok(door::nothing())
}

/// A model's scores of many viewers, a line each. A bad line stops no other.
pub(super) async fn put_flags(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let lines = body.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let (mut scores, mut rejected) = (Vec::new(), Vec::new());
    for (at, line) in lines {
        if scores.len() + rejected.len() == SCORES_BATCH_MAX {
            let detail = format!("body: at most {SCORES_BATCH_MAX} lines");
            return Err(Problem::new(Code::PayloadTooLarge, detail));
        }
        match Scores::read(line) {
            Ok(one) => scores.push(one),
            Err(why) => rejected.push(format!("line {}: {why}", at + 1)),
        }
    }
    let counts = [("taken", scores.len() as u64), ("rejected", rejected.len() as u64)];
    gateway.inner.danmaku.put_scores(scores).await?;
    rejected.truncate(LINES_MAX);
    Ok(door::json(tally_json(&counts, &rejected)))
}

/// This viewer's flags, then the shared XML in gzip; or both as one protobuf
/// message. Whose: the caller's, or
/// those of a user whom they may read, by name.
pub(super) async fn smart(
    gateway: &Gateway,
    call: Call,
    segment: u32,
) -> Result<Response, Problem> {
    call.query.only(&["user"])?;
    gateway.may_read_comments(&call.caller)?;
    let user = match call.query.one("user")? {
        Some(_) if call.caller.is_nobody() => {
            return Err(Problem::new(Code::Unauthenticated, "a bearer token is due for this"));
        }
        Some(name) => {
            let user = gateway.user(&call.caller, name)?;
            call.caller.may(Need::ReadUser, Some(&user))?;
            Some(user)
        }
        None => call.caller.user.clone(),
    };
    let video = call.param("video").unwrap_or_default();
    let (kind, packing, name) = match accepts_protobuf(&call.parts.headers) {
        true => (Kind::Body(Format::Proto), Packing::Identity, "application/x-protobuf"),
        false => (Kind::Body(Format::Xml), Packing::Gzip, "application/octet-stream"),
    };
    let shared = gateway.inner.shelf.get(gateway, video, segment, kind, packing).await?;
    let shared = shared.ok_or_else(outside)?.ready;
    let flags = flags(gateway, user, video, segment).await?;
    let mut out = Vec::with_capacity(4 + flags.len() + shared.bytes.len());
    match kind {
        Kind::Body(Format::Proto) => {
            // They were looked at when they came.
            Flags::from_json(&flags, FLAGS_MAX).unwrap_or_default().put_proto(&mut out);
        }
        _ => put_frame_head(&mut out, &flags),
    }
    out.extend_from_slice(&shared.bytes);
    let mut response = door::typed(name, out);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=5"));
    headers.insert(header::VARY, HeaderValue::from_static("accept, authorization"));
    headers.insert("x-tideline-seq", HeaderValue::from(shared.seq().0));
    Ok(response)
}

fn accepts_protobuf(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("protobuf"))
}

/// The scores that a model gave, as they came; else what the viewer's filters
/// and own comments say.
async fn flags(
    gateway: &Gateway,
    user: Option<UserId>,
    video: &str,
    segment: u32,
) -> Result<Bytes, Problem> {
    let danmaku = &gateway.inner.danmaku;
    let mut viewer = Viewer::default();
    if let Some(user) = user {
        if let Some(scores) = danmaku.scores(&user, video, segment).await? {
            return Ok(scores);
        }
        if let Some(json) = danmaku.user_filters(&user).await? {
            let list = filters::parse(&json).unwrap_or_default();
            viewer.filters = Filters::new(&list).unwrap_or_default();
        }
        viewer.user = Some(user);
    }
    let snapshot = danmaku.segment(video, segment).await?.ok_or_else(outside)?;
    let flags = danmaku.flags(video, &viewer, &snapshot.items);
    let flags = flags.into_iter().map(|(id, flag)| (id.number(), flag)).collect();
    let mut out = Vec::new();
    Flags { default: FLAG_DEFAULT, flags }.put_json(&mut out);
    Ok(out.into())
}
