//! The live connection: one WebSocket, authenticated once, for heartbeats up
//! and what happens down.
//!
//! A frame is answered by one frame; a room that was joined is told as it
//! comes. Up to [`UNDER_WAY_MAX`] writes of a
//! connection are under way at once, answered in order; while there are as
//! many, nothing is read. A peer who does not take what is sent, or misses two
//! pings, is dropped. On a stop the connection is closed with 1001.

mod follow;
mod frames;
mod push;
mod rooms;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts as _;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::future::poll_fn;
use futures_util::stream::FuturesOrdered;
use tideline_types::limits::LIVE_FRAME_BYTES_MAX;
use tideline_wire::Code;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_stream::{Stream, StreamMap};

use crate::Gateway;
use crate::auth::Caller;
use crate::http::Call;
use crate::op::Op;
use crate::problem::Problem;
use crate::within::within;
use frames::{Done, Encoding, Refused};
pub(crate) use rooms::Rooms;

/// Writes of one connection under way at once.
const UNDER_WAY_MAX: usize = 16;
/// Rooms that one connection may be in.
const ROOMS_MAX: usize = 16;
/// A peer is asked for a sign of life this often.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Pings without an answer after which a peer is gone.
const PINGS_MISSED_MAX: u32 = 2;
/// How long a peer may take to take one frame.
const SEND_WITHIN: Duration = Duration::from_secs(20);
/// Bytes of each connection for what comes and has not been read, which are
/// written over at each look: most frames are smaller, and a larger one makes
/// room for itself.
const READ_BYTES: usize = 1 << 10;

/// Takes the handshake of `GET /v1/live`.
pub(crate) async fn connect(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&["ticket"])?;
    // Once it is upgraded, it is none of the connections that HTTP counts.
    let most = gateway.inner.options.server.connections_max;
    let open =
        gateway.inner.meters.connected(most).ok_or_else(|| {
            Problem::overloaded("too many live connections", Duration::from_secs(10))
        })?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut call.parts, &()).await;
    let upgrade =
        upgrade.map_err(|no| Problem::invalid(format!("no WebSocket handshake: {no}")))?;
    let names = Encoding::ALL.map(Encoding::name);
    let upgrade = upgrade
        .protocols(names)
        .read_buffer_size(READ_BYTES)
        // Each frame is flushed as it is sent: there is nothing to gather.
        .write_buffer_size(0)
        .max_message_size(LIVE_FRAME_BYTES_MAX)
        .max_frame_size(LIVE_FRAME_BYTES_MAX);
    let chosen = upgrade.selected_protocol().and_then(|name| name.to_str().ok());
    let encoding = Encoding::ALL.into_iter().find(|encoding| Some(encoding.name()) == chosen);
    let live = Live { encoding: encoding.unwrap_or(Encoding::Json), gateway, caller: call.caller };
    Ok(upgrade.on_upgrade(async move |socket| {
        let _open = open;
        live.run(socket).await;
    }))
}

/// One connection.
#[derive(Clone)]
struct Live {
    gateway: Gateway,
    caller: Arc<Caller>,
    encoding: Encoding,
}

/// The frames of one room.
type Pushes = Pin<Box<dyn Stream<Item = Message> + Send>>;

/// Why a connection ends.
enum End {
    /// The peer has gone, or closed.
    Gone,
    /// Something that a peer should know.
    Told(u16, &'static str),
}

/// What a connection has to see to next.
enum Next {
    /// A room tells.
    Push(Message),
    /// The peer says something, or has gone.
    Frame(Option<Result<Message, axum::Error>>),
    /// What the peer said is done.
    Done(Done),
    /// The peer is to be asked for a sign of life.
    Ping,
    Stop,
}

impl Live {
    async fn run(self, mut socket: WebSocket) {
        let mut answers = FuturesOrdered::new();
        let mut rooms: StreamMap<Arc<str>, Pushes> = StreamMap::new();
        let mut pings = interval_at((Instant::now() + PING_EVERY).into(), PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = pin!(self.gateway.stopping());
        let mut missed = 0;
        let mut pushed = false;
        let end = loop {
            // A room wakes many at once, so it is looked at before all that has
            // nothing to say; but after a push it is everyone else's turn.
            let mut rooms_first = !pushed;
            let next = poll_fn(|context| {
                for rooms_now in [true, false] {
                    if rooms_now == rooms_first {
                        if let Poll::Ready(Some((_, push))) = rooms.poll_next_unpin(context) {
                            return Poll::Ready(Next::Push(push));
                        }
                        continue;
                    }
                    if !answers.is_empty()
                        && let Poll::Ready(Some(done)) = answers.poll_next_unpin(context)
                    {
                        return Poll::Ready(Next::Done(done));
                    }
                    if pings.poll_tick(context).is_ready() {
                        return Poll::Ready(Next::Ping);
                    }
                    if stopping.as_mut().poll(context).is_ready() {
                        return Poll::Ready(Next::Stop);
                    }
                    if answers.len() < UNDER_WAY_MAX
                        && let Poll::Ready(frame) = socket.poll_next_unpin(context)
                    {
                        return Poll::Ready(Next::Frame(frame));
                    }
                }
                rooms_first = true;
                Poll::Pending
            });
            let next = next.await;
            pushed = matches!(next, Next::Push(_));
            let sent = match next {
                Next::Push(push) => send(&mut socket, push).await,
                Next::Frame(frame) => {
                    missed = 0;
                    match frame {
                        Some(Ok(Message::Text(text))) => answers.push_back(self.take(text.into())),
                        Some(Ok(Message::Binary(bytes))) => answers.push_back(self.take(bytes)),
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Close(_)) | Err(_)) | None => break End::Gone,
                    }
                    true
                }
                Next::Done(done) => self.answer(&mut socket, done, &mut rooms).await,
                Next::Ping if missed == PINGS_MISSED_MAX => break End::Gone,
                Next::Ping => {
                    missed += 1;
                    send(&mut socket, Message::Ping(bytes::Bytes::new())).await
                }
                Next::Stop => break End::Told(close_code::AWAY, "the server is stopping"),
            };
            if !sent {
                break End::Gone;
            }
        };
        // What was taken is decided and answered, if anyone still listens.
        while let Some(done) = answers.next().await {
            if matches!(end, End::Told(..)) && !self.answer(&mut socket, done, &mut rooms).await {
                return;
            }
        }
        if let End::Told(code, reason) = end {
            let close = CloseFrame { code, reason: reason.into() };
            send(&mut socket, Message::Close(Some(close))).await;
        }
    }

    /// Answers a frame; false if the peer has gone.
    async fn answer(
        &self,
        socket: &mut WebSocket,
        done: Done,
        rooms: &mut StreamMap<Arc<str>, Pushes>,
    ) -> bool {
        match done {
            Done::Answer(answer) => send(socket, answer).await,
            Done::Joined(id, member) => {
                let video = member.video().clone();
                if rooms.len() >= ROOMS_MAX && !rooms.contains_key(&video) {
                    let detail = format!("room: at most {ROOMS_MAX} on one connection");
                    let problem = Problem::new(Code::Conflict, detail);
                    let refused = Refused::room(id, &format!("video:{video}"), problem);
                    return send(socket, self.encoding.error(refused)).await;
                }
                let start = (member, self.gateway.clone());
                let pushes = futures_util::stream::unfold(start, async |(mut member, gateway)| {
                    let push = member.next(&gateway).await?;
                    Some((push, (member, gateway)))
                });
                rooms.insert(video, Box::pin(pushes));
                true
            }
            Done::Left(None) => {
                rooms.clear();
                true
            }
            Done::Left(Some(video)) => {
                rooms.remove(&*video);
                true
            }
        }
    }

    /// Does what a frame says.
    async fn take(&self, frame: bytes::Bytes) -> Done {
        let started = Instant::now();
        let taken = match self.gateway.enter() {
            Err(problem) => Err(Refused::frame(0, problem)),
            Ok(_under_way) => {
                let work = self.encoding.take(&self.gateway, &self.caller, &frame);
                let late = |_| Err(Refused::frame(0, Problem::late()));
                within(self.gateway.deadline(), work).await.unwrap_or_else(late)
            }
        };
        let code = taken.as_ref().err().map(|refused| refused.problem.code);
        self.gateway.inner.meters.count(Op::Live, started.elapsed(), code);
        taken.unwrap_or_else(|refused| Done::Answer(self.encoding.error(refused)))
    }
}

/// Whether the peer took it.
async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(within(SEND_WITHIN, socket.send(message)).await, Ok(Ok(())))
}
