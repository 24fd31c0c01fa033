//! Undoing what somebody did, by the record of it in topic `danmaku-audit`.

use axum::response::Response;
use serde::Deserialize;
use tideline_types::{Epoch, Incarnation, PartitionId, Position, Seq};
use tideline_wire::Code;

use super::danmaku::moderator;
use super::door::{self, Call};
use crate::Gateway;
use crate::problem::Problem;

/// The place of a record, as a line of the topic says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    partition: u16,
    incarnation: u64,
    epoch: u32,
    seq: u64,
}

/// For who may do the thing itself: of a video its owner as well.
pub(super) async fn undo(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let place: Place = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("body: {error}")))?;
    let at = Position {
        incarnation: Incarnation(place.incarnation),
        epoch: Epoch(place.epoch),
        seq: Seq(place.seq),
    };
    let danmaku = &gateway.inner.danmaku;
    let none = || Problem::new(Code::NotFound, "no moderation is told there");
    let audited = danmaku.audited(PartitionId(place.partition), at).await?.ok_or_else(none)?;
    let actor = match audited.video() {
        Some(video) => moderator(&gateway, &call.caller, video).await?,
        None => gateway.site_moderator(&call.caller)?,
    };
    danmaku.undo(audited, actor).await?;
    Ok(door::nothing())
}
