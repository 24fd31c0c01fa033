//! Comments across a video, out: segments and packs.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tideline_danmaku::segment::Format;
use tideline_wire::Code;

use super::door::{self, Call};
use super::personal;
use crate::Gateway;
use crate::packing::Packing;
use crate::player::Form;
use crate::problem::Problem;
use crate::shelf::{Found, Kind};

/// How long browsers and networks of caches may hold a body.
pub(super) const CACHE_CONTROL: &str = "public, max-age=5";
/// A player that has just sent a comment looks for it.
const CACHE_CONTROL_OF_PLAYERS: &str = "no-cache";

static X_CACHE: HeaderName = HeaderName::from_static("x-cache");
static X_TIDELINE_SEQ: HeaderName = HeaderName::from_static("x-tideline-seq");

/// About as many headers as an answer has.
const HEADERS: usize = 12;

/// The forms, by the ending of a path.
const ENDINGS: [(&str, Kind); 4] = [
    ("json", Kind::Body(Format::Json)),
    ("pb", Kind::Body(Format::Proto)),
    ("xml", Kind::Body(Format::Xml)),
    ("ass", Kind::Subtitles),
];

pub(super) async fn segment(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let name = call.param("n").unwrap_or_default();
    let (number, ending) = name.split_once('.').map_or((name, None), |(n, e)| (n, Some(e)));
    let number = number.parse().ok().filter(|n| (1..=u32::MAX).contains(n));
    let number = number.ok_or_else(|| Problem::invalid("segment: must be a number from 1"))?;
    let kind = match ending {
        Some("smart") => {
            return personal::smart(&gateway, call, number).await;
        }
        Some(ending) => of_ending(ending)?,
        None => of_accept(&call.parts.headers),
    };
    send(&gateway, Asked::of(&gateway, call)?, number, kind).await
}

/// Scripts and BAS, which are passed on and never run.
pub(super) async fn special(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    gateway.may_read_comments(&call.caller)?;
    let name = call.param("pack").unwrap_or_default();
    let pack = name.strip_suffix(".pb").and_then(|number| number.parse().ok());
    let pack = pack.ok_or_else(|| Problem::invalid("pack: must be a number from 1 and .pb"))?;
    let video = call.param("video").unwrap_or_default();
    let found = gateway.inner.danmaku.special(video, pack).await?;
    let found = found.ok_or_else(outside)?;
    let body = gateway.inner.danmaku.bodies(video).build(Format::Proto, &found);
    Ok(door::typed("application/x-protobuf", body.bytes().to_vec()))
}

/// What of a call is needed once it is let in.
pub(super) struct Asked {
    pub(super) video: String,
    pub(super) headers: HeaderMap,
}

impl Asked {
    pub(super) fn of(gateway: &Gateway, call: Call) -> Result<Self, Problem> {
        call.query.only(&[])?;
        gateway.may_read_comments(&call.caller)?;
        let video = call.param("video").unwrap_or_default().to_owned();
        Ok(Self { video, headers: call.parts.headers })
    }
}

/// Sends what the shelf has of a segment, or of all of them (0).
pub(super) async fn send(
    gateway: &Gateway,
    asked: Asked,
    segment: u32,
    kind: Kind,
) -> Result<Response, Problem> {
    let headers = &asked.headers;
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let packing = Packing::of(accepted.unwrap_or_default());
    let found = gateway.inner.shelf.get(gateway, &asked.video, segment, kind, packing).await?;
    let found = found.ok_or_else(outside)?;
    let ready = found.ready.clone();
    let mut response = answer(headers, kind, packing, found);
    if response.status() == StatusCode::OK
        && let Some(filed) = gateway.inner.shelf.filed(&ready)
    {
        response.extensions_mut().insert(filed);
    }
    Ok(response)
}

pub(super) fn outside() -> Problem {
    Problem::new(Code::NotFound, "the video has no such segment")
}

fn answer(asked: &HeaderMap, kind: Kind, packing: Packing, found: Found) -> Response {
    let Found { ready, hit } = found;
    let known = asked.get_all(header::IF_NONE_MATCH).iter().any(|value| names(value, &ready.etag));
    let mut response = match known {
        true => Response::default(),
        false => Response::new(Body::from(ready.bytes.clone())),
    };
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::ETAG, ready.etag.clone());
    let cached = match kind {
        Kind::Player(_) => CACHE_CONTROL_OF_PLAYERS,
        _ => CACHE_CONTROL,
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cached));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    headers.insert(&X_CACHE, HeaderValue::from_static(if hit { "HIT-1" } else { "MISS" }));
    headers.insert(&X_TIDELINE_SEQ, HeaderValue::from(ready.seq().0));
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(type_of(kind)));
    if let Some(name) = packing.name() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    response
}

/// Whether `If-None-Match` names the tag; a weak one names it as well.
pub(super) fn names(asked: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(asked), Ok(etag)) = (asked.to_str(), etag.to_str()) else { return false };
    asked
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == etag)
}

pub(super) fn of_ending(ending: &str) -> Result<Kind, Problem> {
    let known = ENDINGS.iter().find(|(own, _)| *own == ending);
    let unknown = || Problem::new(Code::NotFound, "there are .json, .pb, .xml and .ass");
    known.map(|(_, kind)| *kind).ok_or_else(unknown)
}

pub(super) fn of_accept(headers: &HeaderMap) -> Kind {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let accepted = accepted.unwrap_or_default();
    let known = ENDINGS.iter().find(|(_, kind)| {
        let plain = type_of(*kind).split(';').next().unwrap_or_default();
        accepted.contains(plain)
    });
    match known {
        Some((_, kind)) => *kind,
        None if accepted.contains("text/xml") => Kind::Body(Format::Xml),
        None if accepted.contains("protobuf") => Kind::Body(Format::Proto),
        None => Kind::Body(Format::Json),
    }
}

pub(super) fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Body(Format::Json) | Kind::Player(Form::DPlayer | Form::ArtPlayer) => {
            "application/json"
        }
        Kind::Body(Format::Proto) => "application/x-protobuf",
        Kind::Body(Format::Xml) | Kind::Player(Form::ArtPlayerXml) => {
            "application/xml; charset=utf-8"
        }
        Kind::Subtitles => "text/x-ssa; charset=utf-8",
    }
}
