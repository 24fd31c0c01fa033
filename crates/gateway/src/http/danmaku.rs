//! Comments across a video: in, changed, and one's own.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use tideline_danmaku::CommentId;
use tideline_danmaku::ask::{Action, Posted, Refusal, SettingsPatch};
use tideline_danmaku::comment::{Actor, Comment, Draft, Rank, Role, State};
use tideline_types::{PartitionId, Position, UserId};
use tideline_wire::Code;
use tideline_wire::danmaku::json::put_fields;
use tideline_wire::danmaku::{Mode, Pool};
use tideline_wire::json::{
    self as wire, PatchJson, PostJson, RankJson, StateJson, push_str, push_string, push_u64,
};

use super::door::{self, Call};
use crate::Gateway;
use crate::auth::Caller;
use crate::problem::Problem;

/// Rows in one answer of one's own comments, at most.
const OWN_MAX: usize = 100;

pub(super) async fn post(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let post = wire::read_post(&body)?;
    let video = call.param("video").unwrap_or_default();
    let user = writer(&gateway, &call, post.user.as_deref())?;
    let posted = gateway.post_comment(&call.caller, video, draft_of(&post), user).await?;
    let mut response = door::json(posted_json(&gateway, video, &posted));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// A post as it is to be admitted.
pub(crate) fn draft_of(post: &PostJson<'_>) -> Draft {
    Draft {
        text: post.text.clone().into_owned(),
        progress_ms: post.progress_ms,
        mode: post.mode,
        size: post.size,
        color: post.color,
        pool: post.pool,
        client_id: post.client_id.as_deref().map(Into::into),
    }
}

/// In whose name: the caller's own, or whom a service names.
fn writer(gateway: &Gateway, call: &Call, named: Option<&str>) -> Result<UserId, Problem> {
    match named {
        Some(name) => {
            let user = gateway.user(&call.caller, name)?;
            call.caller.may(crate::op::Need::WriteUser, Some(&user))?;
            Ok(user)
        }
        None => gateway.acting_user(&call.caller),
    }
}

pub(super) async fn change(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let action = match wire::read_patch(&body)? {
        PatchJson::Rank(RankJson::Protected) => Action::Rank(Rank::Protected),
        PatchJson::Rank(RankJson::Recommended) => Action::Rank(Rank::Recommended),
        PatchJson::Rank(RankJson::Plain) => Action::Rank(Rank::Plain),
        PatchJson::State(StateJson::Hidden) => Action::Hide,
        PatchJson::State(StateJson::Blocked) => Action::Block,
        PatchJson::State(StateJson::Shown) => Action::Restore,
        PatchJson::Pool(pool) => Action::Move(pool),
    };
    let (video, id) = (call.param("video").unwrap_or_default(), comment_id(&call)?);
    let actor = moderator(&gateway, &call.caller, video).await?;
    let danmaku = &gateway.inner.danmaku;
    let moderated = danmaku.moderate(video, id, action, actor).await?;
    let place = moderated.seq.map(|seq| danmaku.place_of(video, seq));
    let mut out = comment_json(&gateway, video, &moderated.comment);
    out.pop();
    push_str(&mut out, ",\"audit\":");
    match place {
        Some((partition, at)) => put_place(&mut out, partition, at),
        None => push_str(&mut out, "null"),
    }
    out.push(b'}');
    Ok(door::json(out))
}

/// The place of a record, as a line of its topic says it.
fn put_place(out: &mut Vec<u8>, partition: PartitionId, at: Position) {
    for (name, number) in [
        ("{\"partition\":", u64::from(partition.0)),
        (",\"incarnation\":", at.incarnation.0),
        (",\"epoch\":", u64::from(at.epoch.0)),
        (",\"seq\":", at.seq.0),
    ] {
        push_str(out, name);
        push_u64(out, number);
    }
    out.push(b'}');
}

/// What of a video is hidden for another reason than room, for who may show it.
pub(super) async fn hidden(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&["after", "limit"])?;
    let video = call.param("video").unwrap_or_default();
    moderator(&gateway, &call.caller, video).await?;
    let after = call.query.one("after")?.map(|text| id_of("after", text)).transpose()?;
    let limit = call.query.number("limit")?.unwrap_or(OWN_MAX as u64);
    if !(1..=OWN_MAX as u64).contains(&limit) {
        return Err(Problem::invalid(format!("limit: must be 1 to {OWN_MAX}")));
    }
    let comments = gateway.inner.danmaku.hidden(video, after, limit as usize).await?;
    let mut out = comments_json(&gateway, video, &comments);
    push_str(&mut out, ",\"next\":");
    match comments.last().filter(|_| comments.len() == limit as usize) {
        Some(last) => push_string(&mut out, &last.id.to_string()),
        None => push_str(&mut out, "null"),
    }
    out.push(b'}');
    Ok(door::json(out))
}

/// By its writer: taken back; by the owner or a moderator: hidden.
pub(super) async fn remove(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (video, id) = (call.param("video").unwrap_or_default(), comment_id(&call)?);
    let danmaku = &gateway.inner.danmaku;
    let own = Actor { user: gateway.acting_user(&call.caller)?, role: Role::Viewer };
    let recalled = danmaku.recall(video, id, own).await;
    match recalled {
        Ok(_) => Ok(door::nothing()),
        Err(refusal @ (Refusal::NotYours | Refusal::TooLate { .. } | Refusal::NotFound)) => {
            let Ok(actor) = moderator(&gateway, &call.caller, video).await else {
                return Err(refusal.into());
            };
            danmaku.moderate(video, id, Action::Hide, actor).await?;
            Ok(door::nothing())
        }
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) async fn like(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (video, id) = (call.param("video").unwrap_or_default(), comment_id(&call)?);
    let actor = Actor { user: gateway.acting_user(&call.caller)?, role: Role::Viewer };
    once(gateway.inner.danmaku.like(video, id, actor).await)
}

pub(super) async fn report(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let reason = wire::read_report(&call.body(&gateway).await?)?;
    let (video, id) = (call.param("video").unwrap_or_default(), comment_id(&call)?);
    let actor = Actor { user: gateway.acting_user(&call.caller)?, role: Role::Viewer };
    once(gateway.inner.danmaku.report(video, id, actor, reason).await)
}

/// A second time changes nothing, and is no error.
fn once<T>(done: Result<T, Refusal>) -> Result<Response, Problem> {
    match done {
        Ok(_) | Err(Refusal::Again) => Ok(door::nothing()),
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) async fn set(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let asked = wire::read_video_settings(&body)?;
    let video = call.param("video").unwrap_or_default();
    let actor = moderator(&gateway, &call.caller, video).await?;
    let patch =
        SettingsPatch { duration_ms: asked.duration_ms, limit: asked.limit, closed: asked.closed };
    gateway.inner.danmaku.set(video, patch, actor).await?;
    view_json(&gateway, video).await
}

pub(super) async fn view(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    gateway.may_read_comments(&call.caller)?;
    view_json(&gateway, call.param("video").unwrap_or_default()).await
}

async fn view_json(gateway: &Gateway, video: &str) -> Result<Response, Problem> {
    let view = gateway.inner.danmaku.view(video).await?;
    let number = |number: Option<u32>| number.map_or("null".into(), |n| n.to_string());
    let mut out = b"{\"video\":".to_vec();
    push_string(&mut out, video);
    for (name, value) in [
        ("segments", view.segments.to_string()),
        ("segment_ms", gateway.inner.danmaku.options().segment_ms().to_string()),
        ("total", view.total.to_string()),
        ("shown", view.shown.to_string()),
        ("counted", view.counted.to_string()),
        ("overflow", view.overflow.to_string()),
        ("limit", view.limit.to_string()),
        ("limit_set", number(view.settings.limit)),
        ("duration_ms", number(view.settings.duration_ms)),
        ("state", if view.settings.closed { "\"closed\"" } else { "\"open\"" }.into()),
        ("special_packs", view.special_packs.to_string()),
        ("seq", view.seq.0.to_string()),
    ] {
        push_str(&mut out, ",\"");
        push_str(&mut out, name);
        push_str(&mut out, "\":");
        push_str(&mut out, &value);
    }
    out.push(b'}');
    Ok(door::json(out))
}

/// What the videos of a work have together.
pub(super) async fn work(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    gateway.may_read_comments(&call.caller)?;
    let work = call.param("work").unwrap_or_default();
    let sum = gateway.inner.danmaku.work(work).await?;
    let mut out = b"{\"work\":".to_vec();
    push_string(&mut out, work);
    for (name, count) in [("videos", sum.videos), ("total", sum.total), ("shown", sum.shown)] {
        push_str(&mut out, ",\"");
        push_str(&mut out, name);
        push_str(&mut out, "\":");
        push_u64(&mut out, count);
    }
    out.push(b'}');
    Ok(door::json(out))
}

pub(super) async fn own(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&["video", "below", "limit"])?;
    let video = call.query.one("video")?.ok_or_else(|| Problem::invalid("video: is required"))?;
    let below = call.query.one("below")?.map(|text| id_of("below", text)).transpose()?;
    let limit = call.query.number("limit")?.unwrap_or(OWN_MAX as u64);
    if !(1..=OWN_MAX as u64).contains(&limit) {
        return Err(Problem::invalid(format!("limit: must be 1 to {OWN_MAX}")));
    }
    let comments = gateway.inner.danmaku.own(video, &user, below, limit as usize).await?;
    let mut out = comments_json(&gateway, video, &comments);
    out.push(b'}');
    Ok(door::json(out))
}

/// Comments as the first field of an object that goes on.
fn comments_json(gateway: &Gateway, video: &str, comments: &[Arc<Comment>]) -> Vec<u8> {
    let mut out = b"{\"items\":[".to_vec();
    for (at, comment) in comments.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&comment_json(gateway, video, comment));
    }
    out.push(b']');
    out
}

/// The caller as one who may change others' comments.
pub(super) async fn moderator(
    gateway: &Gateway,
    caller: &Caller,
    video: &str,
) -> Result<Actor, Problem> {
    let user = gateway.acting_user(caller)?;
    let role = gateway.role_of(caller, video).await;
    match role {
        Role::Viewer => {
            let detail = "for the owner of the video, moderators and services";
            Err(Problem::new(Code::PermissionDenied, detail))
        }
        role => Ok(Actor { user, role }),
    }
}

fn comment_id(call: &Call) -> Result<CommentId, Problem> {
    id_of("id", call.param("id").unwrap_or_default())
}

pub(super) fn id_of(name: &str, text: &str) -> Result<CommentId, Problem> {
    let id = text.parse().ok().and_then(CommentId::new);
    id.ok_or_else(|| Problem::invalid(format!("{name}: must be the id of a comment")))
}

/// A comment as its writer and moderators see it.
pub(crate) fn comment_json(gateway: &Gateway, video: &str, comment: &Comment) -> Vec<u8> {
    let mut out = b"{".to_vec();
    put_fields(&mut out, &gateway.inner.danmaku.item(video, comment));
    push_str(&mut out, ",\"rank\":\"");
    push_str(&mut out, comment.index.rank.name());
    match comment.index.state {
        State::Shown => push_str(&mut out, "\",\"state\":\"shown\""),
        state => {
            push_str(&mut out, "\",\"state\":\"hidden\",\"reason\":\"");
            push_str(&mut out, state.name());
            out.push(b'"');
        }
    }
    out.push(b'}');
    out
}

fn posted_json(gateway: &Gateway, video: &str, posted: &Posted) -> Vec<u8> {
    let mut out = comment_json(gateway, video, &posted.comment);
    out.pop();
    push_str(&mut out, ",\"seq\":");
    push_u64(&mut out, posted.seq.0);
    out.push(b'}');
    out
}

/// Whether a draft is for the owner, moderators and services alone.
pub(crate) fn is_privileged(draft: &Draft) -> bool {
    draft.pool != Pool::Normal || matches!(draft.mode, Mode::Script | Mode::Bas)
}
