//! Rooms: what happens to a video's comments, told to who joined.
//!
//! ```text
//!  video changes ─▶ one task per room: gathers, asks once ─▶ broadcast ─▶ members
//! ```
//!
//! What comes alone is told at once; what comes within `batch_ms` of the push
//! before waits for the rest of that time, and goes out with what else came.
//!
//! A member first gets what happened since the number that it came with, then
//! each push that goes beyond; `follow` says which. A push is written once for
//! all. A member that falls behind by [`PUSHES_KEPT`] holds up nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::ws::Message;
use tideline_danmaku::ask::Changes;
use tideline_types::Seq;
use tideline_types::limits::VIDEO_BYTES_MAX;
use tideline_wire::Code;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::follow::{Follower, Range, Tell, Teller};
use super::frames::Encoding;
use super::push::{self, Push};
use crate::Gateway;
use crate::auth::Caller;
use crate::problem::Problem;

/// Pushes that a member may fall behind.
const PUSHES_KEPT: usize = 64;
/// A room looks so often whether anyone is in it.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// All rooms that someone is in.
#[derive(Default)]
pub(crate) struct Rooms {
    rooms: Mutex<HashMap<Arc<str>, broadcast::Sender<Arc<News>>>>,
}

/// What a room tells.
pub(super) enum News {
    /// What happened in a range.
    Push(Push),
    /// Too much happened: load again what does not hold everything through
    /// this.
    Lagged(Seq),
}

/// Someone who joined a room.
pub(super) struct Member {
    video: Arc<str>,
    encoding: Encoding,
    news: broadcast::Receiver<Arc<News>>,
    follower: Follower,
    due: VecDeque<Arc<News>>,
}

impl Rooms {
    /// Subscribes to a room, and says how many are in it; the first one opens
    /// it.
    fn enter(
        &self,
        gateway: &Gateway,
        video: &Arc<str>,
        at: Seq,
    ) -> (broadcast::Receiver<Arc<News>>, usize) {
        let mut rooms = self.lock();
        if let Some(room) = rooms.get(video) {
            let member = room.subscribe();
            return (member, room.receiver_count());
        }
        let (room, member) = broadcast::channel(PUSHES_KEPT);
        rooms.insert(video.clone(), room.clone());
        tokio::spawn(run(gateway.clone(), video.clone(), room, at));
        (member, 1)
    }

    /// Closes a room that nobody is in.
    fn close_if_empty(&self, video: &str, room: &broadcast::Sender<Arc<News>>) -> bool {
        let mut rooms = self.lock();
        let empty = room.receiver_count() == 0;
        if empty {
            rooms.remove(video);
        }
        empty
    }

    /// Members of all rooms.
    pub(crate) fn members(&self) -> usize {
        self.lock().values().map(broadcast::Sender::receiver_count).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, broadcast::Sender<Arc<News>>>> {
        self.rooms.lock().expect("nothing panics while it is held")
    }
}

/// Tells a room what happens after `at`, until nobody is in it.
async fn run(gateway: Gateway, video: Arc<str>, room: broadcast::Sender<Arc<News>>, at: Seq) {
    let danmaku = gateway.inner.danmaku.clone();
    let mut watch = danmaku.watch(&video);
    let mut teller = Teller::new(at);
    let batch = Duration::from_millis(gateway.inner.options.danmaku.batch_ms);
    let mut free_at = Instant::now();
    // What happened before the watch began is not told by it.
    let mut changed = true;
    loop {
        if !changed {
            match tokio::time::timeout(LOOK_EVERY, watch.changed()).await {
                Ok(Some(_)) => tokio::time::sleep_until(free_at).await,
                Ok(None) => return,
                Err(_) => {}
            }
        }
        if gateway.inner.rooms.close_if_empty(&video, &room) {
            return;
        }
        let changes = danmaku.changes_since(&video, teller.asked()).await;
        changed = changes.is_err();
        let news = match changes {
            Ok(Changes::Range { through, end, events, .. }) => {
                let Some(range) = teller.hear(through, !events.is_empty()) else { continue };
                let viewers = room.receiver_count();
                News::Push(Push::new(&gateway, &video, range, viewers, end, events))
            }
            Ok(Changes::Lagged { through }) => News::Lagged(teller.lag(through).through),
            // Tried again: nothing was told.
            Err(_) => {
                tokio::time::sleep(batch.max(Duration::from_millis(100))).await;
                continue;
            }
        };
        free_at = Instant::now() + batch;
        // Errs when nobody is there.
        let _ = room.send(Arc::new(news));
    }
}

impl News {
    fn range(&self) -> Range {
        match self {
            Self::Push(push) => push.range,
            Self::Lagged(through) => Range { after: *through, through: *through },
        }
    }
}

impl Member {
    /// Joins the room `video:…`, with what is known through `from`.
    pub(super) async fn join(
        gateway: &Gateway,
        caller: &Caller,
        room: &str,
        from: Option<u64>,
        encoding: Encoding,
    ) -> Result<Self, Problem> {
        gateway.may_read_comments(caller)?;
        let video: Arc<str> = video_of(room)?.into();
        let danmaku = &gateway.inner.danmaku;
        let now = danmaku.view(&video).await?.seq;
        // Subscribed before the changes are asked for: what happens in between
        // is told twice, and dropped once.
        let (news, viewers) = gateway.inner.rooms.enter(gateway, &video, now);
        let from = from.map_or(now, Seq);
        let first = match danmaku.changes_since(&video, from).await? {
            Changes::Range { through, end, events, .. } if through >= from => {
                let range = Range { after: from, through };
                News::Push(Push::new(gateway, &video, range, viewers, end, events))
            }
            // A future that never was.
            Changes::Range { through, .. } | Changes::Lagged { through } => News::Lagged(through),
        };
        let follower = Follower::new(first.range().through);
        Ok(Self { video, encoding, news, follower, due: VecDeque::from([Arc::new(first)]) })
    }

    /// The video whose room it is.
    pub(super) fn video(&self) -> &Arc<str> {
        &self.video
    }

    /// The next frame; `None` once the server stops.
    pub(super) async fn next(&mut self, gateway: &Gateway) -> Option<Message> {
        loop {
            let news = match self.due.pop_front() {
                Some(news) => return Some(self.frame(&news)),
                None => self.news.recv().await,
            };
            match news {
                Ok(news) => self.hear(gateway, news),
                // What was missed shows in the next range.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn hear(&mut self, gateway: &Gateway, news: Arc<News>) {
        let told = self.follower.hear(news.range());
        if let Tell::Lagged(from) = told {
            self.due.push_back(Arc::new(News::Lagged(from)));
        }
        match (told, &*news) {
            (Tell::Nothing, _) | (_, News::Lagged(_)) => {}
            (Tell::All | Tell::Lagged(_), News::Push(_)) => self.due.push_back(news),
            (Tell::After(seq), News::Push(push)) => {
                let rest = push.after(gateway, seq);
                self.due.push_back(Arc::new(News::Push(rest)));
            }
        }
    }

    fn frame(&self, news: &News) -> Message {
        match news {
            News::Push(push) => push.frame(self.encoding),
            News::Lagged(seq) => push::lagged(self.encoding, &self.video, *seq),
        }
    }
}

/// The video of a room's name.
pub(super) fn video_of(room: &str) -> Result<&str, Problem> {
    let video = room.strip_prefix("video:").unwrap_or_default();
    if video.is_empty() || video.len() > VIDEO_BYTES_MAX {
        let room: String = room.chars().take(64).collect();
        return Err(Problem::new(Code::NotFound, format!("room: there is no room {room:?}")));
    }
    Ok(video)
}
