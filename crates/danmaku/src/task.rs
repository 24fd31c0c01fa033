//! What drives the owners: [`view::Driver`], with what is danmaku's own.

mod erase;
mod load;
mod rooms;
pub(crate) mod scores;

use std::sync::Arc;
use std::time::Duration;

use tideline_queue::view::{self, Duty, Hands, View};
use tideline_queue::{Filter, Queue};
use tideline_record::batch::Record;
use tideline_store::{Clock, StoreError, Table};
use tideline_types::limits::BATCH_BYTES_MAX;
use tideline_types::{Millis, PartitionId, Position, Seq, TopicName};
use tokio::sync::oneshot;

pub use rooms::Watch;
pub use scores::FLAGS;

use crate::ask::{Answer, Op, Refusal};
use crate::options::{Keys, Options};
use crate::outcome::{self, Outcome};
use crate::owner::{Bounds, Effect, Flush, Owner, Stats};
use crate::recovery;
use crate::rules::Rules;
use load::Wanted;
use rooms::Rooms;

/// The name of the topic that holds the outcomes.
pub const TOPIC: &str = "danmaku";
/// The name of the topic of moderation, derived from it.
pub const AUDIT: &str = "danmaku-audit";
/// The name of the topic of counts, derived from it.
pub const STATS: &str = "danmaku-stats";

type Waiter = oneshot::Sender<Answer>;

/// The view of topic `danmaku`.
#[derive(Default)]
struct Videos {
    rooms: Rooms,
}

impl View for Videos {
    const NAME: &'static str = TOPIC;
    type Owner = Owner<Waiter>;
    type Wanted = Wanted;

    fn carry_out(&self, effect: Effect<Waiter>, hands: &mut Hands<'_, Self>) {
        match effect {
            Effect::Append(batch) => hands.append(batch),
            Effect::Load { video, generation } => {
                hands.load(Wanted { video, generation, reads: None });
            }
            Effect::Read { video, generation, reads } => {
                hands.load(Wanted { video, generation, reads: Some(reads) });
            }
            Effect::Flush(Flush { video, generation, commits }) => {
                hands.flush(commits, (video, generation));
            }
            Effect::Changed(video, seq) => self.rooms.changed(&video, seq),
            // One who has gone away is not missed.
            Effect::Answer(waiter, answer) => _ = waiter.send(answer),
        }
    }

    fn load(&self, driver: &view::Driver<Self>, at: usize, wanted: Vec<Wanted>) {
        for wanted in wanted {
            load::load(driver, at, wanted);
        }
    }

    fn recover(
        owner: &mut Owner<Waiter>,
        table: &dyn Table,
        read: &mut view::Read<'_>,
        alone: bool,
    ) -> Result<(), StoreError> {
        match alone {
            true => recovery::start(owner, table, read),
            false => recovery::recover(owner, table, read),
        }
    }
}

/// All partitions.
pub(crate) struct Driver {
    pub(crate) rules: Arc<Rules>,
    pub(crate) table: Arc<dyn Table>,
    view: Arc<view::Driver<Videos>>,
}

impl Driver {
    /// Takes every partition of the topic over, replays what is not at rest,
    /// and starts the threads. Must be called within a tokio runtime.
    pub(crate) fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
        partitions: u16,
    ) -> Result<Arc<Self>, StoreError> {
        let derived = [(AUDIT, derive(outcome::audit)), (STATS, derive(outcome::stats))];
        let partitions = view::ensure_topic(&queue, TOPIC, partitions, derived)?;
        scores::ensure(&queue, partitions)?;
        let bounds = bounds(&options, usize::from(partitions));
        let keys = Keys(view::folder_key(&*table, TOPIC)?);
        let rules = Arc::new(Rules { keys, options });
        let (videos, rest) = (Videos::default(), Arc::clone(&table));
        let view = view::Driver::open(videos, queue, rest, clock, partitions, |writer, place| {
            let synced = writer.next().prev();
            let (rules, bounds) = (Arc::clone(&rules), bounds.clone());
            Owner::new(writer.stream(), writer.epoch(), synced, place, rules, bounds)
        })?;
        let driver = Arc::new(Self { rules, table, view });
        let (erasing, scoring) = (Arc::clone(&driver), Arc::clone(&driver));
        driver.view.keep_house(vec![
            Duty { every: ERASES_EVERY, run: Box::new(move || erasing.erase_due()) },
            Duty { every: SCORES_EVERY, run: Box::new(move || scoring.apply_scores()) },
        ]);
        Ok(driver)
    }

    /// Makes one call about one video.
    pub(crate) async fn ask(&self, video: &str, op: Op) -> Answer {
        const STOPPING: Answer = Answer::Refused(Refusal::Overloaded("the server is stopping"));
        if self.view.is_closed() {
            return STOPPING;
        }
        let (tell, told) = oneshot::channel();
        let now = self.view.now();
        self.view.step(self.view.partition_of(video), |partition, effects| {
            match partition.refusal().filter(|_| !op.is_read()) {
                Some(error) => {
                    effects.push(Effect::Answer(tell, Answer::Refused(Refusal::from(error))));
                }
                None => partition.owner.ask(now, video, op, tell, effects),
            }
        });
        told.await.unwrap_or(STOPPING)
    }

    /// Videos of which something is not at rest, of all partitions.
    pub(crate) fn unrested_videos(&self) -> Vec<Arc<str>> {
        let of = |owner: &Owner<Waiter>| owner.unrested_videos().cloned().collect::<Vec<_>>();
        self.view.look_at_all(of).concat()
    }

    /// Where what was decided is logged.
    pub(crate) fn log(&self) -> (&Queue, &TopicName) {
        (self.view.queue(), self.view.topic())
    }

    /// Where what was decided about `name` at a number is logged.
    pub(crate) fn place_of(&self, name: &str, seq: Seq) -> (PartitionId, Position) {
        self.view.look(self.view.partition_of(name), |owner| {
            let (stream, epoch) = (owner.stream(), owner.epoch());
            (stream.partition, Position { incarnation: stream.incarnation, epoch, seq })
        })
    }

    /// The time.
    pub(crate) fn now(&self) -> Millis {
        self.view.now()
    }

    /// How many partitions.
    pub(crate) fn partitions(&self) -> u16 {
        self.view.partitions()
    }

    /// Told when a video changes.
    pub(crate) fn watch(&self, video: &str) -> Watch {
        self.view.view().rooms.watch(video)
    }

    /// Figures of each partition.
    pub(crate) fn stats(&self) -> Vec<Stats> {
        self.view.look_at_all(Owner::stats)
    }

    /// Refuses new calls, brings everything to rest within `limit`, and joins
    /// the threads. What does not come to rest in time is in the log.
    pub(crate) fn close(&self, limit: Duration) {
        self.view.close(limit);
    }
}

/// What a derived topic tells of an outcome.
fn derive(tell: fn(&str, &Outcome) -> Option<String>) -> Filter {
    Arc::new(move |record: &Record<'_>| {
        let video = std::str::from_utf8(record.key).ok()?;
        let said = tell(video, &Outcome::decode(record.value).ok()?)?;
        Some((record.key.to_vec(), said.into_bytes()))
    })
}

/// Each partition's part of what is allowed.
fn bounds(options: &Options, partitions: usize) -> Bounds {
    let hot_bytes_max = options.hot_budget_bytes / partitions;
    Bounds {
        hot_bytes_max,
        // A start reads it back into the memory that videos have.
        lag_bytes_max: hot_bytes_max.max(BATCH_BYTES_MAX),
        flush_after_ms: options.flush_after.as_millis() as u64,
        flush_bytes: 4 << 20,
        flights_max: 64,
        parked_max: options.parked_max,
        pack_bytes_max: 256 << 10,
        count_after_ms: 1000,
    }
}

/// How often is looked for new records of topic `danmaku-flags`.
const SCORES_EVERY: Duration = Duration::from_millis(50);
/// How often is looked for erases that are due.
const ERASES_EVERY: Duration = Duration::from_secs(2);
