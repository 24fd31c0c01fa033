//! Following a partition over the network.
//!
//! Keeps one subscription open, gives it credit as its ranges are taken, and
//! opens another from where the last range ended when it breaks, is silent for
//! too long, or sends what does not fit. What is handed on is what
//! [`Track`] lets through: no gap and no double, whatever the connection does.
//!
//! Holds at most the credit in bytes, and a range. Keeps no checkpoint: the
//! caller does, with what it has applied.

use std::time::Duration;

use tideline_record::frame::{FRAME_BYTES_MAX, Frame};
use tideline_types::{Epoch, Incarnation, PartitionId, Position, Seq, TopicName};
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::from::Place;
use tideline_wire::queue_v1::queue_service_client::QueueServiceClient;
use tideline_wire::queue_v1::stopped::Reason;
use tideline_wire::queue_v1::subscribe_request::Request as Asked;
use tideline_wire::queue_v1::subscribe_response::Response as Told;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::backoff::Backoff;
use crate::source::Source;
use crate::track::{From, Stopped, Track};

/// How a partition is followed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that the source may send before they are taken, 1 to 2^30. Default
    /// 4 MiB.
    pub credit_bytes: u32,
    /// Bytes of one range, about, up to 4 MiB; 0 for what the source thinks
    /// best. Default 0.
    pub range_bytes: u32,
    /// A subscription that is silent for longer is opened again. A source says
    /// something every 5 seconds. Default 15 s.
    pub silence_max: Duration,
    /// The first wait before a subscription is opened again. Default 50 ms.
    pub retry_first: Duration,
    /// The longest. Default 5 s.
    pub retry_longest: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            credit_bytes: 4 << 20,
            range_bytes: 0,
            silence_max: Duration::from_secs(15),
            retry_first: Duration::from_millis(50),
            retry_longest: Duration::from_secs(5),
        }
    }
}

/// What a follower is told.
#[derive(Clone, Debug)]
#[must_use = "a stop has to be handled"]
pub enum Next {
    /// Records, or none, that cover the range after the one before.
    Range(Frame),
    /// Nothing new: how far the partition is.
    Head {
        /// The last number that is synced.
        synced: Seq,
    },
    /// Nothing more comes until [`Follower::go_on`].
    Stopped(Stopped),
}

/// The source refuses, and asking again does not help by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source refuses: {code:?}: {detail}")]
pub struct Refused {
    /// As gRPC has it.
    pub code: Code,
    /// Which field, which name, which token.
    pub detail: String,
}

impl Refused {
    pub(crate) fn of(status: &Status) -> Self {
        Self { code: status.code(), detail: status.message().to_owned() }
    }

    /// Whether the same call will be refused again.
    pub fn is_final(&self) -> bool {
        is_final(self.code)
    }
}

/// A reader of one partition.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    topic: TopicName,
    options: Options,
    track: Track,
    link: Option<Link>,
    backoff: Backoff,
    /// Not before then.
    again: Option<Instant>,
    /// How often a subscription was opened.
    opened: u64,
}

/// An open subscription.
#[derive(Debug)]
struct Link {
    answers: Streaming<v1::SubscribeResponse>,
    credit: mpsc::Sender<v1::SubscribeRequest>,
    /// Bytes that were taken and are not given back yet.
    owed: u32,
}

impl Follower {
    /// A reader of a partition, from a place on. Opens nothing before
    /// [`Follower::next`] is called.
    pub fn new(
        source: Source,
        topic: TopicName,
        partition: PartitionId,
        from: From,
        options: Options,
    ) -> Self {
        let backoff = Backoff::new(options.retry_first, options.retry_longest);
        let track = Track::new(partition, from);
        Self { source, topic, options, track, link: None, backoff, again: None, opened: 0 }
    }

    /// What comes next; waits for it, as long as it takes. Dropping the future
    /// loses nothing. What was handed on by the call before counts as taken.
    ///
    /// # Errors
    /// When the source refuses. Another call asks again, after a while.
    pub async fn next(&mut self) -> Result<Next, Refused> {
        loop {
            if let Some(why) = self.track.stopped() {
                return Ok(Next::Stopped(why.clone()));
            }
            if self.link.is_none() {
                if let Some(again) = self.again {
                    sleep_until(again).await;
                    self.again = None;
                }
                match timeout(self.options.silence_max, self.open()).await {
                    Ok(Ok(link)) => self.link = Some(link),
                    Ok(Err(status)) => self.broken(Some(&status))?,
                    Err(_) => self.broken(None)?,
                }
                continue;
            }
            let Some(link) = &mut self.link else { continue };
            link.give_back(self.options.credit_bytes / 2);
            match timeout(self.options.silence_max, link.answers.message()).await {
                Ok(Ok(Some(told))) => {
                    if let Some(next) = self.told(told)? {
                        return Ok(next);
                    }
                }
                // It ends well, because the source stops or moves.
                Ok(Ok(None)) | Err(_) => self.broken(None)?,
                Ok(Err(status)) => self.broken(Some(&status))?,
            }
        }
    }

    /// What was asked of the caller by [`Next::Stopped`] is done: goes on there.
    pub fn go_on(&mut self, from: From) {
        self.link = None;
        self.track.go_on(from);
    }

    /// Up to where everything was handed on: the place to keep with what was
    /// applied. `None` before it is known where following began.
    pub fn stands(&self) -> Option<Position> {
        self.track.stands()
    }

    /// Which partition.
    pub fn partition(&self) -> PartitionId {
        self.track.partition()
    }

    /// How often a subscription was opened, the first included.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    async fn open(&mut self) -> Result<Link, Status> {
        let (credit, asked) = mpsc::channel(4);
        let follow = v1::Follow {
            topic: self.topic.as_str().to_owned(),
            partition: self.track.partition().0.into(),
            from: Some(from_of(self.track.from())),
            credit: self.options.credit_bytes,
            bytes_max: self.options.range_bytes,
        };
        let first = v1::SubscribeRequest { request: Some(Asked::Follow(follow)) };
        credit.try_send(first).map_err(|_| Status::internal("a new channel has room"))?;
        let mut client = QueueServiceClient::new(self.source.channel())
            .max_decoding_message_size(FRAME_BYTES_MAX + 1_024);
        let request = self.source.request(ReceiverStream::new(asked));
        let answers = client.subscribe(request).await?.into_inner();
        self.opened += 1;
        Ok(Link { answers, credit, owed: 0 })
    }

    /// What the source said, as the caller is told it.
    fn told(&mut self, told: v1::SubscribeResponse) -> Result<Option<Next>, Refused> {
        match told.response {
            Some(Told::Frame(bytes)) => {
                let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                match self.track.range(bytes) {
                    Ok(frame) => {
                        self.backoff.reset();
                        if let Some(link) = &mut self.link {
                            link.owed = link.owed.saturating_add(taken);
                        }
                        Ok(Some(Next::Range(frame)))
                    }
                    Err(unfit) => {
                        tracing::warn!(topic = %self.topic, partition = %self.partition(), %unfit, "asked again");
                        self.broken(None)?;
                        Ok(None)
                    }
                }
            }
            Some(Told::Head(head)) => {
                self.backoff.reset();
                if let Some(stands) = head.stands {
                    self.track.head(stands.into());
                }
                Ok(Some(Next::Head { synced: Seq(head.synced) }))
            }
            Some(Told::Stopped(stopped)) => {
                self.link = None;
                match stopped.reason.map(|reason| self.stopped(reason)) {
                    Some(why) => self.track.stop(why),
                    None => self.broken(None)?,
                }
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn stopped(&self, reason: Reason) -> Stopped {
        match reason {
            Reason::Truncated(v1::Truncated { start, snapshot }) => {
                Stopped::Truncated { start: Seq(start), snapshot }
            }
            Reason::Diverged(v1::Diverged { epoch, seq }) => {
                let incarnation = self.stands().unwrap_or_default().incarnation;
                let common = Position { incarnation, epoch: Epoch(epoch), seq: Seq(seq) };
                Stopped::Diverged { common }
            }
            Reason::Recreated(v1::Recreated { incarnation }) => {
                Stopped::Recreated { incarnation: Incarnation(incarnation) }
            }
            Reason::Lagged(v1::Lagged { next, oldest }) => {
                Stopped::Lagged { next: Seq(next), oldest: Seq(oldest) }
            }
            Reason::Halted(v1::Halted { seq, reason }) => Stopped::Halted { seq: Seq(seq), reason },
        }
    }

    /// The subscription is of no more use: another is opened in a while.
    fn broken(&mut self, status: Option<&Status>) -> Result<(), Refused> {
        self.link = None;
        let chance = getrandom::u32().unwrap_or(u32::MAX / 2);
        self.again = Some(Instant::now() + self.backoff.wait(chance));
        match status {
            Some(status) if is_final(status.code()) => Err(Refused::of(status)),
            _ => Ok(()),
        }
    }
}

impl Link {
    /// Gives credit back once there is `enough` of it.
    fn give_back(&mut self, enough: u32) {
        if self.owed == 0 || self.owed < enough {
            return;
        }
        let credit = v1::SubscribeRequest { request: Some(Asked::Credit(self.owed)) };
        // Where there is no room, some is on its way already.
        if self.credit.try_send(credit).is_ok() {
            self.owed = 0;
        }
    }
}

/// Whether the same call will be refused again.
pub(crate) fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented
    )
}

fn from_of(from: From) -> v1::From {
    let place = match from {
        From::Earliest => Place::Earliest(true),
        From::Latest => Place::Latest(true),
        From::Time(time) => Place::TimeMs(time.0.max(0)),
        From::After(position) => Place::After(position.into()),
    };
    v1::From { place: Some(place) }
}
