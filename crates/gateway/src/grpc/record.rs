//! Marks over gRPC: one message, or many under way at once on a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt as _;
use tideline_history::mark::{Ack, Path};
use tideline_types::UserId;
use tideline_wire::history_v1 as v1;
use tideline_wire::{BatchHead, RawRecord, read_batch};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::Gateway;
use crate::auth::Caller;
use crate::intake::{Intake, Taken, day_flag};
use crate::op::Op;
use crate::problem::Problem;

/// Requests of one stream under way at once; more wait with the client.
const UNDER_WAY_MAX: usize = 64;
/// Bytes of a mark, about; to guess how many a message holds.
const MARK_BYTES: usize = 64;

/// Takes the marks of one message.
pub(super) async fn one(
    gateway: &Gateway,
    op: Op,
    caller: Arc<Caller>,
    message: RawRecord,
) -> Result<v1::RecordResponse, Problem> {
    take(gateway, &caller, op, &message.0, None).await
}

/// Takes the marks of each message, in order, and answers in order. A message
/// that is refused whole is answered with `refused`; the stream goes on.
pub(super) fn stream(
    gateway: Gateway,
    caller: Arc<Caller>,
    messages: Streaming<RawRecord>,
) -> Pin<Box<dyn Stream<Item = Result<v1::RecordResponse, Status>> + Send>> {
    let stopping = {
        let gateway = gateway.clone();
        async move { gateway.stopping().await }
    };
    // What was taken before the stop is answered, then the stream ends.
    let answers = messages.take_until(stopping).map(move |message| {
        let (gateway, caller) = (gateway.clone(), caller.clone());
        async move {
            let message = message?;
            let started = Instant::now();
            let taken = match gateway.enter() {
                Err(problem) => Err(problem),
                Ok(_under_way) => take(&gateway, &caller, Op::RecordStream, &message.0, None).await,
            };
            let code = taken.as_ref().err().map(|problem| problem.code);
            gateway.inner.meters.count(Op::RecordStream, started.elapsed(), code);
            Ok(taken.unwrap_or_else(|problem| refused(&message, problem)))
        }
    });
    Box::pin(answers.buffered(UNDER_WAY_MAX))
}

fn refused(message: &RawRecord, problem: Problem) -> v1::RecordResponse {
    let id = read_batch(&message.0, |_| ()).map_or(0, |head| head.id);
    v1::RecordResponse {
        id,
        refused: Some(v1::Rejected {
            index: 0,
            code: problem.code.as_str().into(),
            detail: problem.detail.into(),
        }),
        ..v1::RecordResponse::default()
    }
}

/// Takes the marks of a `RecordRequest`; where it names no user they are
/// `own`'s, and if that is none either, each mark names its own.
pub(crate) async fn take(
    gateway: &Gateway,
    caller: &Caller,
    op: Op,
    message: &[u8],
    own: Option<&UserId>,
) -> Result<v1::RecordResponse, Problem> {
    let kinds = gateway.inner.history.kinds();
    let room = message.len() / MARK_BYTES + 1;
    // The user may stand behind the marks, so it is looked for first; it is
    // the first field wherever a client writes it in order.
    let user = user_of(message)?;
    let user = if user.is_empty() { own.cloned() } else { Some(gateway.user(caller, user)?) };
    admit(gateway, caller, op, user.as_ref())?;
    let mut intake = match &user {
        Some(user) => Intake::of_user(kinds, user, room),
        None => Intake::of_many(kinds, room),
    };
    let head = read_batch(message, |mark| intake.take(Ok(mark))).map_err(bad_message)?;
    let ack = if head.ack == v1::Ack::Fast as i32 { Ack::Fast } else { Ack::Durable };
    let shift_ms = gateway.shift_ms(head.client_now_ms);
    let path = if op == Op::Merge { Path::Merge } else { Path::Live };
    let taken = intake.write(gateway, shift_ms, path, ack).await?;
    let flag = match user {
        Some(_) => day_flag(gateway, &taken, Some(head.day_flag)),
        None => String::new(),
    };
    Ok(answer(gateway, &head, &taken, flag))
}

/// Many users at once are for services; one's own marks are for its user.
fn admit(gateway: &Gateway, caller: &Caller, op: Op, user: Option<&UserId>) -> Result<(), Problem> {
    let need = if user.is_some() { Op::Record.need() } else { Op::RecordBatch.need() };
    caller.may(need, user)?;
    gateway.inner.rates.check(op, &caller.name, user.map(UserId::as_str))
}

fn user_of(message: &[u8]) -> Result<&str, Problem> {
    tideline_wire::batch_user(message).map_err(bad_message)
}

fn bad_message(bad: tideline_wire::BadMessage) -> Problem {
    Problem::invalid(format!("message: {bad}"))
}

fn answer(
    gateway: &Gateway,
    head: &BatchHead<'_>,
    taken: &Taken,
    day_flag: String,
) -> v1::RecordResponse {
    let kinds = gateway.inner.history.kinds();
    let rejected = taken.rejected.iter().map(|(index, fault)| v1::Rejected {
        index: *index as u32,
        code: fault.code.as_str().into(),
        detail: fault.detail.clone().into_owned(),
    });
    let first = |(user, kind): (&str, _)| v1::FirstToday {
        user: user.into(),
        kind: kinds.name(kind).into(),
    };
    v1::RecordResponse {
        id: head.id,
        accepted: taken.accepted,
        stale: taken.stale,
        paused: taken.paused,
        duplicate: taken.duplicate,
        over_cap: taken.over_cap,
        rejected: rejected.collect(),
        first_today: taken.firsts().map(first).collect(),
        day_flag,
        refused: None,
    }
}
