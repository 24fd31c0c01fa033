//! Lists of what somebody does not want to see: of the site, of a video's
//! owner, of a viewer. Each is read as the list that others exchange, and
//! written from it: whole, or with `lenient` what of it can be read, and told
//! what could not.

use axum::response::Response;
use tideline_danmaku::filters::{export, import};

use super::danmaku::moderator;
use super::door::{self, Call};
use super::players::tally_json;
use crate::Gateway;
use crate::problem::Problem;

/// Lines of a report on a list, at most.
const LINES_MAX: usize = 100;

pub(super) async fn of_site(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    gateway.site_moderator(&call.caller)?;
    Ok(list(gateway.inner.danmaku.site_filters().await?.as_deref()))
}

pub(super) async fn set_of_site(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let given = Given::read(&gateway, &mut call).await?;
    let actor = gateway.site_moderator(&call.caller)?;
    gateway.inner.danmaku.set_site_filters(given.json.clone(), actor).await?;
    Ok(given.answer())
}

pub(super) async fn of_video(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let video = call.param("video").unwrap_or_default();
    moderator(&gateway, &call.caller, video).await?;
    Ok(list(gateway.inner.danmaku.view(video).await?.filters.as_deref()))
}

pub(super) async fn set_of_video(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let given = Given::read(&gateway, &mut call).await?;
    let video = call.param("video").unwrap_or_default();
    let actor = moderator(&gateway, &call.caller, video).await?;
    gateway.inner.danmaku.set_filters(video, given.json.clone(), actor).await?;
    Ok(given.answer())
}

pub(super) async fn of_viewer(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    call.query.only(&[])?;
    Ok(list(gateway.inner.danmaku.user_filters(&user).await?.as_deref()))
}

pub(super) async fn set_of_viewer(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    let user = call.user(&gateway)?;
    let given = Given::read(&gateway, &mut call).await?;
    gateway.inner.danmaku.set_user_filters(&user, &given.json).await?;
    Ok(given.answer())
}

fn list(json: Option<&str>) -> Response {
    door::json(json.unwrap_or("[]").as_bytes().to_vec())
}

/// A list as it was sent.
struct Given {
    json: String,
    /// Of a lenient reading: how many were kept, and why others were not.
    report: Option<(u64, Vec<String>)>,
}

impl Given {
    async fn read(gateway: &Gateway, call: &mut Call) -> Result<Self, Problem> {
        call.query.only(&["lenient"])?;
        let lenient = call.query.flag("lenient")?;
        let body = call.body(gateway).await?;
        let json =
            std::str::from_utf8(&body).map_err(|_| Problem::invalid("body: is not UTF-8"))?;
        if !lenient {
            return Ok(Self { json: json.to_owned(), report: None });
        }
        let bad = |bad| Problem::invalid(format!("filters: {bad}"));
        let (kept, dropped) = import(json).map_err(bad)?;
        let lines = dropped.iter().map(ToString::to_string).collect();
        Ok(Self { json: export(&kept), report: Some((kept.len() as u64, lines)) })
    }

    fn answer(self) -> Response {
        match self.report {
            None => door::nothing(),
            Some((kept, mut lines)) => {
                let dropped = lines.len() as u64;
                lines.truncate(LINES_MAX);
                door::json(tally_json(&[("kept", kept), ("dropped", dropped)], &lines))
            }
        }
    }
}
