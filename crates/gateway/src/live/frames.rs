//! What the frames of a live connection say, in either encoding.

use axum::extract::ws::Message;
use tideline_danmaku::ask::Posted;
use tideline_danmaku::comment::{Draft, State};
use tideline_history::mark::Path;
use tideline_types::UserId;
use tideline_types::limits::VIDEO_BYTES_MAX;
use tideline_wire::danmaku::{Item, Mode, Pool, proto};
use tideline_wire::json::{self, SayJson, UpJson, push_str, push_string, push_u64};
use tideline_wire::live::{self, Up};
use tideline_wire::live_v1 as v1;

use super::rooms::{Member, video_of};
use crate::Gateway;
use crate::auth::Caller;
use crate::grpc::record;
use crate::http::{ack_of, comment_json, draft_of};
use crate::intake::{Intake, day_flag};
use crate::op::Op;
use crate::problem::Problem;

/// Bytes of a room's name: `video:` and the video's id.
const ROOM_BYTES_MAX: usize = 6 + VIDEO_BYTES_MAX;
/// Bytes of a mark in JSON, about; to guess how many a frame holds.
const MARK_BYTES: usize = 100;

/// How frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Text frames, one object each.
    Json,
    /// Binary frames, one message each.
    Protobuf,
}

/// What a frame came to.
pub(super) enum Done {
    /// This is the answer.
    Answer(Message),
    /// A room was joined, which answers itself; with the frame's id.
    Joined(u64, Member),
    /// The room of this video was left; of none: all.
    Left(Option<Box<str>>),
}

/// What did not work.
pub(super) struct Refused {
    /// The frame's (0 = none).
    pub(super) id: u64,
    /// That was not joined.
    pub(super) room: Option<String>,
    pub(super) problem: Problem,
}

type Taken = Result<Done, Refused>;

impl Refused {
    /// A frame of that id.
    pub(super) fn frame(id: u64, problem: Problem) -> Self {
        Self { id, room: None, problem }
    }

    /// A frame of that id, which was to join `room`.
    pub(super) fn room(id: u64, room: &str, problem: Problem) -> Self {
        // One that is too long is none.
        let room = Some(room.to_owned()).filter(|room| room.len() <= ROOM_BYTES_MAX);
        Self { id, room, problem }
    }
}

impl Encoding {
    pub(super) const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    /// The name of the subprotocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Json => "tideline.v1.json",
            Self::Protobuf => "tideline.v1.pb",
        }
    }

    /// Does what `frame` says.
    pub(super) async fn take(self, gateway: &Gateway, caller: &Caller, frame: &[u8]) -> Taken {
        match self {
            Self::Json => take_json(gateway, caller, frame).await,
            Self::Protobuf => take_protobuf(gateway, caller, frame).await,
        }
    }

    /// The frame that tells what did not work.
    pub(super) fn error(self, Refused { id, room, problem }: Refused) -> Message {
        let code = problem.code.as_str();
        let retry_after_ms = problem.retry_after.map_or(0, |wait| wait.as_millis() as u64);
        if self == Self::Protobuf {
            let detail = problem.detail.clone().into_owned();
            let (code, room) = (code.into(), room.unwrap_or_default());
            let error = v1::Error { id, code, detail, retry_after_ms, room };
            return down(v1::down::What::Error(error));
        }
        let mut out = b"{\"type\":\"error\"".to_vec();
        push_id(&mut out, id);
        if let Some(room) = room {
            push_str(&mut out, ",\"room\":");
            push_string(&mut out, &room);
        }
        push_str(&mut out, ",\"code\":");
        push_string(&mut out, code);
        push_str(&mut out, ",\"detail\":");
        push_string(&mut out, &problem.detail);
        if retry_after_ms > 0 {
            push_str(&mut out, ",\"retry_after_ms\":");
            push_u64(&mut out, retry_after_ms);
        }
        out.push(b'}');
        text(out)
    }
}

async fn take_json(gateway: &Gateway, caller: &Caller, frame: &[u8]) -> Taken {
    let UpJson { id, say } =
        json::read_up(frame).map_err(|fault| Refused::frame(0, fault.into()))?;
    let id = id.unwrap_or(0);
    match say {
        SayJson::Progress(progress) => {
            let taken =
                marks_json(gateway, caller, progress).await.map_err(|no| Refused::frame(id, no))?;
            let mut out = b"{\"type\":\"ack\"".to_vec();
            push_id(&mut out, id);
            out.push(b',');
            out.extend_from_slice(&taken[1..]);
            Ok(Done::Answer(text(out)))
        }
        SayJson::Join { room, from_seq } => {
            let joined = Member::join(gateway, caller, &room, from_seq, Encoding::Json).await;
            Ok(Done::Joined(id, joined.map_err(|no| Refused::room(id, &room, no))?))
        }
        SayJson::Leave { room } => leave(id, room.as_deref()),
        SayJson::Post { room, post } => {
            let posted = speak(gateway, caller, &room, draft_of(&post)).await;
            let (video, posted) = posted.map_err(|no| Refused::frame(id, no))?;
            let mut out = b"{\"type\":\"said\"".to_vec();
            push_id(&mut out, id);
            push_str(&mut out, ",\"room\":");
            push_string(&mut out, &room);
            push_str(&mut out, ",\"seq\":");
            push_u64(&mut out, posted.seq.0);
            push_str(&mut out, ",\"comment\":");
            out.extend_from_slice(&comment_json(gateway, video, &posted.comment));
            out.push(b'}');
            Ok(Done::Answer(text(out)))
        }
    }
}

/// The counts, as over HTTP: an object.
async fn marks_json(
    gateway: &Gateway,
    caller: &Caller,
    progress: json::ProgressJson<'_>,
) -> Result<Vec<u8>, Problem> {
    let user = caller.user.as_ref();
    admit(gateway, caller, user)?;
    let ack = ack_of(progress.ack.as_deref())?;
    let shift_ms = gateway.shift_ms(progress.client_now_ms);
    let before = progress.day_flag.clone();
    let kinds = gateway.inner.history.kinds();
    let mut intake = match user {
        Some(user) => Intake::of_user(kinds, user, 4),
        None => Intake::of_many(kinds, MARK_BYTES),
    };
    progress.read(|mark| intake.take(mark))?;
    let taken = intake.write(gateway, shift_ms, Path::Live, ack).await?;
    let flag = match user {
        Some(_) => day_flag(gateway, &taken, before.as_deref()),
        None => String::new(),
    };
    Ok(taken.json(kinds, &flag, user.is_none()))
}

async fn take_protobuf(gateway: &Gateway, caller: &Caller, frame: &[u8]) -> Taken {
    let bad = |what: String| Refused::frame(0, Problem::invalid(format!("frame: {what}")));
    let up = live::read_up(frame).map_err(|error| bad(error.to_string()))?;
    match up {
        Up::Progress(batch) => {
            let taken = record::take(gateway, caller, Op::Live, batch, caller.user.as_ref()).await;
            let id = || tideline_wire::read_batch(batch, |_| ()).map_or(0, |head| head.id);
            let taken = taken.map_err(|no| Refused::frame(id(), no))?;
            Ok(Done::Answer(down(v1::down::What::Ack(taken))))
        }
        Up::Join(join) => {
            let encoding = Encoding::Protobuf;
            let joined = Member::join(gateway, caller, &join.room, join.from_seq, encoding).await;
            Ok(Done::Joined(0, joined.map_err(|no| Refused::room(0, &join.room, no))?))
        }
        Up::Leave(left) => leave(0, Some(&*left.room).filter(|room| !room.is_empty())),
        Up::Post(post) => {
            let draft = draft_of_protobuf(&post).map_err(|no| Refused::frame(post.id, no))?;
            let said = speak(gateway, caller, &post.room, draft).await;
            let (video, posted) = said.map_err(|no| Refused::frame(post.id, no))?;
            let mut element = Vec::new();
            proto::put_item(&mut element, &gateway.inner.danmaku.item(video, &posted.comment));
            let state = posted.comment.index.state;
            let reason = if state == State::Shown { "" } else { state.name() };
            Ok(Done::Answer(down(v1::down::What::Said(v1::Said {
                id: post.id,
                room: post.room.clone(),
                seq: posted.seq.0,
                comment: live::segment_of(&element),
                reason: reason.into(),
            }))))
        }
        Up::Nothing => Err(bad("says nothing that this server knows".into())),
    }
}

/// One's own marks, or as a service those of many.
fn admit(gateway: &Gateway, caller: &Caller, user: Option<&UserId>) -> Result<(), Problem> {
    let need = if user.is_some() { Op::Record.need() } else { Op::RecordBatch.need() };
    caller.may(need, user)?;
    gateway.inner.rates.check(Op::Live, &caller.name, user.map(UserId::as_str))
}

fn leave(id: u64, room: Option<&str>) -> Taken {
    let video = room.map(video_of).transpose().map_err(|no| Refused::frame(id, no))?;
    Ok(Done::Left(video.map(Into::into)))
}

/// Posts as over HTTP.
async fn speak<'a>(
    gateway: &Gateway,
    caller: &Caller,
    room: &'a str,
    draft: Draft,
) -> Result<(&'a str, Posted), Problem> {
    let video = video_of(room)?;
    let user = gateway.acting_user(caller)?;
    gateway.admit(Op::PostComment, caller, Some(&user))?;
    Ok((video, gateway.post_comment(caller, video, draft, user).await?))
}

fn draft_of_protobuf(say: &v1::Say) -> Result<Draft, Problem> {
    let mode = match say.mode {
        0 => Some(Mode::Scroll),
        number => Mode::from_number(number.into()),
    };
    let size = u8::try_from(say.size).map_err(|_| Problem::invalid("size: at most 255"))?;
    Ok(Draft {
        text: say.text.clone(),
        progress_ms: say.progress_ms,
        mode: mode.ok_or_else(|| Problem::invalid("mode: is none"))?,
        size: if size == 0 { Item::SIZE } else { size },
        color: say.color.unwrap_or(Item::WHITE),
        pool: Pool::from_number(say.pool.into())
            .ok_or_else(|| Problem::invalid("pool: is none"))?,
        client_id: Some(say.client_id.clone()).filter(|id| !id.is_empty()),
    })
}

fn push_id(out: &mut Vec<u8>, id: u64) {
    if id > 0 {
        push_str(out, ",\"id\":");
        push_u64(out, id);
    }
}

fn text(json: Vec<u8>) -> Message {
    let text = String::from_utf8(json).expect("JSON is written from texts and numbers alone");
    Message::Text(text.into())
}

fn down(what: v1::down::What) -> Message {
    Message::Binary(live::write_down(what).into())
}
