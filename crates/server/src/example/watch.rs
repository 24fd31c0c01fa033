//! Follows both derived topics from the server itself, hears what the readers
//! say, and compares.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tideline_client::{Change, Checker, Filled, Follower, From, Next, Options, Source, Tally};
use tideline_types::{Millis, PartitionId, Seq, TopicName};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::DERIVED;
use super::reader::{Held, Said};
use crate::cli::Failure;

/// Lines of readers that wait to be read.
const LINES_MAX: usize = 256;
/// Keys of each topic that are compared.
const KEYS_MAX: usize = 200;
/// Ranges of which it is remembered when they came.
const RANGES_MAX: usize = 10_000;
/// Alarms that are printed.
const ALARMS_MAX: usize = 10;
/// The end is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is seen so far.
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    lines: mpsc::Sender<String>,
    _tasks: JoinSet<()>,
}

struct Seen {
    began: Instant,
    topics: BTreeMap<String, TopicSeen>,
    readers: BTreeMap<u32, Vec<Held>>,
    /// The worst staleness that each reader showed, in ms.
    worst: BTreeMap<u32, i64>,
    alarms: Vec<String>,
    alarms_all: u64,
}

struct TopicSeen {
    checker: Checker,
    /// Of each partition: ranges, and when they came; the newest ones.
    came: Vec<VecDeque<(Seq, Millis)>>,
}

/// What there is to say at the end.
pub(super) struct Report {
    pub(super) text: String,
    pub(super) alarms: u64,
}

impl Watch {
    pub(super) fn start(grpc: &str, partitions: u16, within_ms: i64) -> Result<Self, Failure> {
        let source = Source::new(grpc, None).map_err(|e| Failure::failed("the server", e))?;
        let topic = || TopicSeen {
            checker: Checker::new(KEYS_MAX, within_ms),
            came: vec![VecDeque::new(); usize::from(partitions)],
        };
        let seen = Arc::new(Mutex::new(Seen {
            began: Instant::now(),
            topics: DERIVED.iter().map(|(name, _)| ((*name).to_owned(), topic())).collect(),
            readers: BTreeMap::new(),
            worst: BTreeMap::new(),
            alarms: Vec::new(),
            alarms_all: 0,
        }));
        let mut tasks = JoinSet::new();
        for (name, _) in DERIVED {
            let topic = TopicName::new(name).map_err(|e| Failure::failed(name, e))?;
            for partition in 0..partitions {
                let partition = PartitionId(partition);
                let (source, topic) = (source.clone(), topic.clone());
                let follower =
                    Follower::new(source, topic, partition, From::Earliest, Options::default());
                tasks.spawn(follow(follower, name, seen.clone()));
            }
        }
        let (lines, mut told) = mpsc::channel::<String>(LINES_MAX);
        let hears = seen.clone();
        tasks.spawn(async move {
            while let Some(line) = told.recv().await {
                if let Ok(said) = serde_json::from_str::<Said>(&line) {
                    lock(&hears).heard(said);
                }
            }
        });
        Ok(Self { seen, lines, _tasks: tasks })
    }

    /// Where readers' lines go.
    pub(super) fn lines(&self) -> mpsc::Sender<String> {
        self.lines.clone()
    }

    /// Waits until each of `readers` stands where the topics do; false if some do
    /// not in time.
    pub(super) async fn until_all_have_all(&self, readers: u32, within: Duration) -> bool {
        let end = Instant::now() + within;
        while Instant::now() < end {
            tokio::time::sleep(LOOK_EVERY).await;
            let seen = lock(&self.seen);
            let all = |held: &Vec<Held>| held.iter().all(|held| seen.stale_ms(held) == 0);
            if seen.readers.len() == readers as usize && seen.readers.values().all(all) {
                return true;
            }
        }
        false
    }

    pub(super) fn report(&self) -> Report {
        lock(&self.seen).report()
    }
}

async fn follow(mut follower: Follower, topic: &'static str, seen: Arc<Mutex<Seen>>) {
    loop {
        let frame = match follower.next().await {
            Ok(Next::Range(frame)) => frame,
            Ok(Next::Head { .. }) | Err(_) => continue,
            Ok(Next::Stopped(why)) => {
                eprintln!("{topic}: {why}");
                return;
            }
        };
        let mut seen = lock(&seen);
        let (now, partition) = (seen.now(), follower.partition());
        let Some(topic) = seen.topics.get_mut(topic) else { return };
        for record in frame.records() {
            if let Some(change) = Change::read(record.value) {
                topic.checker.pushed(partition, record.seq, record.key, &change, now);
            }
        }
        let through = frame.range().through;
        topic.checker.covered(partition, through);
        let came = &mut topic.came[usize::from(partition.0)];
        came.push_back((through, now));
        if came.len() > RANGES_MAX {
            came.pop_front();
        }
    }
}

impl Seen {
    /// By the one clock that there is.
    fn now(&self) -> Millis {
        Millis(self.began.elapsed().as_millis() as i64)
    }

    fn heard(&mut self, said: Said) {
        let now = self.now();
        for held in &said.topics {
            let stale = self.stale_ms(held);
            let worst = self.worst.entry(said.reader).or_default();
            *worst = stale.max(*worst);
            let Some(topic) = self.topics.get_mut(&held.topic) else { continue };
            for (key, counter, at) in &held.shown {
                let value = counter.map(Filled::Counter);
                let shown = topic.checker.shown(key.as_bytes(), value.as_ref(), Seq(*at), now);
                if let Err(alarm) = shown {
                    self.alarms_all += 1;
                    if self.alarms.len() < ALARMS_MAX {
                        let reader = said.reader;
                        let what = format!("reader {reader}, {}, {key}: {alarm}", held.topic);
                        eprintln!("ALARM {what}");
                        self.alarms.push(what);
                    }
                }
            }
        }
        self.readers.insert(said.reader, said.topics);
    }

    /// For how long there has been something that a reader does not have.
    fn stale_ms(&self, held: &Held) -> i64 {
        let Some(topic) = self.topics.get(&held.topic) else { return 0 };
        let since = topic.came.iter().zip(&held.covered).filter_map(|(came, covered)| {
            let next = came.partition_point(|(through, _)| through.0 <= *covered);
            came.get(next).map(|(_, when)| *when)
        });
        since.min().map_or(0, |when| (self.now().0 - when.0).max(1))
    }

    fn report(&self) -> Report {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:>6}  {:<12} {:>5} {:>5} {:>8} {:>7} {:>9} {:>9}  HOTTEST",
            "READER", "TOPIC", "KEYS", "HOT", "BYTES", "HITS", "STALE ms", "WORST ms"
        );
        for (reader, topics) in &self.readers {
            for held in topics {
                let hits = 100 * held.hits / held.asked.max(1);
                let hottest = held.shown.iter().max_by_key(|(_, counter, _)| *counter);
                let hottest = hottest.map(|(key, counter, at)| {
                    format!("{key} = {} at {at}", counter.unwrap_or_default())
                });
                let _ = writeln!(
                    text,
                    "{reader:>6}  {:<12} {:>5} {:>5} {:>8} {hits:>6}% {:>9} {:>9}  {}",
                    held.topic,
                    held.keys,
                    held.hot,
                    held.bytes,
                    self.stale_ms(held),
                    self.worst.get(reader).copied().unwrap_or_default(),
                    hottest.unwrap_or_default()
                );
            }
        }
        let mut all = Tally::default();
        for topic in self.topics.values() {
            let tally = topic.checker.tally();
            all.good += tally.good;
            all.unsaid += tally.unsaid;
        }
        let mut worst: Vec<i64> = self.worst.values().copied().collect();
        worst.sort_unstable();
        let _ = writeln!(
            text,
            "{} values compared and right, {} of which nothing can be said, {} alarms; worst \
             staleness of a reader: median {} ms, greatest {} ms",
            all.good,
            all.unsaid,
            self.alarms_all,
            worst.get(worst.len() / 2).copied().unwrap_or_default(),
            worst.last().copied().unwrap_or_default()
        );
        Report { text, alarms: self.alarms_all }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
