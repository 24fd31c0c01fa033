//! What real players ask for, as they ask for it.
//!
//! DPlayer is given `api: '/players/dplayer/'`; ArtPlayer's plugin a URL, which
//! it parses as XML, or a function that fetches the JSON. Each gets only what
//! it can show.

use axum::response::Response;
use tideline_danmaku::comment::Draft;
use tideline_wire::Code;
use tideline_wire::danmaku::dplayer::Version;
use tideline_wire::danmaku::{Item, artplayer, dplayer, xml};
use tideline_wire::json::{push_str, push_string, push_u64};

use super::door::{self, Call};
use crate::Gateway;
use crate::op::Op;
use crate::problem::Problem;

/// The codes of DPlayer's answers: 0 is success, anything else shows `msg`.
const DPLAYER_OK: &str = "{\"code\":0}";

pub(super) async fn dplayer(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    gateway.may_read_comments(&call.caller)?;
    let video = call.query.one("id")?.unwrap_or_default().to_owned();
    let max = call.query.number("max")?.map_or(usize::MAX, |max| max as usize);
    drop(call);
    let mut out = Vec::new();
    dplayer::put_head(&mut out, Version::V3);
    let mut left = max;
    each(&gateway, &video, |item| {
        if left == 0 {
            return;
        }
        let end = out.len();
        if left < max {
            out.extend_from_slice(dplayer::SEPARATOR);
        }
        match dplayer::put_item(&mut out, Version::V3, item) {
            true => left -= 1,
            false => out.truncate(end),
        }
    })
    .await?;
    dplayer::put_tail(&mut out);
    Ok(door::json(out))
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
    drop(call);
    let no_form = || Problem::new(Code::NotFound, "there are .json and .xml");
    let (video, ending) = name.rsplit_once('.').ok_or_else(no_form)?;
    let mut out = Vec::new();
    match ending {
        "json" => {
            artplayer::put_head(&mut out);
            each(&gateway, video, |item| {
                let end = out.len();
                if end > 1 {
                    out.extend_from_slice(artplayer::SEPARATOR);
                }
                if !artplayer::put_item(&mut out, item) {
                    out.truncate(end);
                }
            })
            .await?;
            artplayer::put_tail(&mut out);
            Ok(door::json(out))
        }
        "xml" => {
            let view = gateway.inner.danmaku.view(video).await?;
            let (limit, closed) = (view.limit, view.settings.closed);
            xml::put_head(&mut out, &xml::Head { video, limit, closed });
            each(&gateway, video, |item| {
                if let Some(item) = artplayer::for_xml(item) {
                    xml::put_item(&mut out, &item);
                }
            })
            .await?;
            xml::put_tail(&mut out);
            Ok(door::typed("application/xml; charset=utf-8", out))
        }
        _ => Err(no_form()),
    }
}

/// Shows every comment of a video that is shown.
async fn each(
    gateway: &Gateway,
    video: &str,
    mut visit: impl FnMut(&Item<'_>),
) -> Result<(), Problem> {
    let danmaku = &gateway.inner.danmaku;
    let all = danmaku.all(video).await?;
    all.items.iter().for_each(|comment| visit(&danmaku.item(video, comment)));
    Ok(())
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
