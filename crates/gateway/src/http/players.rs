//! What real players ask for, as they ask for it.
//!
//! DPlayer is given `api: '/players/dplayer/'`; ArtPlayer's plugin a URL, which
//! it parses as XML, or a function that fetches the JSON. Each gets only what
//! it can show.

use axum::response::Response;
use tideline_danmaku::comment::Draft;
use tideline_wire::Code;
use tideline_wire::danmaku::{Item, dplayer};
use tideline_wire::json::{push_str, push_string, push_u64};

use super::door::{self, Call};
use super::segments::{self, Asked};
use crate::Gateway;
use crate::op::Op;
use crate::player::Form;
use crate::problem::Problem;
use crate::shelf::Kind;

/// The codes of DPlayer's answers: 0 is success, anything else shows `msg`.
const DPLAYER_OK: &str = "{\"code\":0}";

pub(super) async fn dplayer(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    gateway.may_read_comments(&call.caller)?;
    let video = call.query.one("id")?.unwrap_or_default().to_owned();
    let max = call.query.number("max")?;
    let headers = call.parts.headers;
    let danmaku = &gateway.inner.danmaku;
    if let Some(max) = max
        && danmaku.view(&video).await?.shown > max
    {
        let all = danmaku.all(&video).await?;
        return Ok(door::json(Form::DPlayer.body(danmaku, &video, &all, max as usize)));
    }
    let kind = Kind::Player(Form::DPlayer);
    segments::send(&gateway, Asked { video, headers }, 0, kind).await
}

/// A comment from DPlayer. What goes wrong is told in the body, with status
/// 200, as the player shows it.
pub(super) async fn dplayer_post(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let body = call.body(&gateway).await?;
    let auth = &gateway.inner.auth;
    let post = dplayer::read_post(&body)?;
    let caller = match call.caller.is_nobody() && !post.token.is_empty() {
        true => {
            let header = format!("Bearer {}", post.token);
            auth.caller(Some(header.as_bytes()), None).await
        }
        false => Ok(call.caller.clone()),
    };
    drop(call);
    let posted = async {
        let caller = caller?;
        let user = gateway.acting_user(&caller)?;
        gateway.admit(Op::PostComment, &caller, Some(&user))?;
        let Item { progress_ms, mode, size, color, pool, .. } = post.item;
        let text = post.item.text.clone().into_owned();
        let draft = Draft { text, progress_ms, mode, size, color, pool, client_id: None };
        gateway.post_comment(&caller, &post.video, draft, user).await
    };
    Ok(door::json(match posted.await {
        Ok(_) => DPLAYER_OK.into(),
        Err(problem) => {
            let code = match problem.code {
                Code::RateLimited | Code::Overloaded => 2,
                Code::Unauthenticated => 4,
                Code::PermissionDenied => 5,
                Code::Internal => -1,
                _ => 3,
            };
            let mut out = format!("{{\"code\":{code},\"msg\":").into_bytes();
            push_string(&mut out, &problem.detail);
            out.push(b'}');
            out
        }
    }))
}

pub(super) async fn artplayer(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    gateway.may_read_comments(&call.caller)?;
    let name = call.param("video").unwrap_or_default().to_owned();
    let headers = call.parts.headers;
    let form = match name.rsplit_once('.') {
        Some((video, "json")) => Some((video, Form::ArtPlayer)),
        Some((video, "xml")) => Some((video, Form::ArtPlayerXml)),
        _ => None,
    };
    let no_form = || Problem::new(Code::NotFound, "there are .json and .xml");
    let (video, form) = form.ok_or_else(no_form)?;
    let asked = Asked { video: video.to_owned(), headers };
    segments::send(&gateway, asked, 0, Kind::Player(form)).await
}

/// What an import came to.
pub(super) fn tally_json(lines: &[(&str, u64)], report: &[String]) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for (name, count) in lines {
        push_string(&mut out, name);
        out.push(b':');
        push_u64(&mut out, *count);
        out.push(b',');
    }
    push_str(&mut out, "\"report\":[");
    for (at, line) in report.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_string(&mut out, line);
    }
    push_str(&mut out, "]}");
    out
}
