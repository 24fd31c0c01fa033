//! The queue on its machine, and perhaps one that was taken over and does not
//! know it.
//!
//! The queue is the product's own, with its driver; each call is awaited before
//! the next thing happens, so that the threads it reads on decide nothing. The
//! log writes and syncs when the scheduler says so.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tideline_queue::{FetchError, From, OpenError, Options, Queue, TopicSpec};
use tideline_record::batch::BatchRef;
use tideline_record::derive::{self, Stage, Version};
use tideline_record::frame::Frame;
use tideline_record::{Maker, OnError};
use tideline_store::disk::KeepAll;
use tideline_store::{Journal, ManualClock, ReadError, ReadLimits, StoreError};
use tideline_types::{Millis, PartitionId, Seq};
use tokio::runtime::{Builder, Runtime};

use super::line::{Host, check};
use super::operators::Words;
use super::oracle::{DERIVED, Oracle, PARTITIONS, name};
use super::producers::{Producers, Request};
use crate::machine::{Machine, START, open_journal, stream};
use crate::rng::Rng;

const ALL: ReadLimits = ReadLimits { records_max: 1_000, bytes_max: 1 << 20 };
/// How long records are kept.
const RETENTION: Duration = Duration::from_secs(1_800);
/// Versions of an operator, at most.
const VERSIONS_MAX: usize = 20;

/// Everything but who uses it.
pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) oracle: Oracle,
    owner: Owner,
    /// One that was taken over, while it was stopped.
    sleeper: Option<Owner>,
    clock: Arc<ManualClock>,
    runtime: Runtime,
}

/// A process that has the queue.
struct Owner {
    queue: Queue,
    /// Which one it is, counted.
    number: u64,
    /// Where it has begun to write.
    wrote: [bool; PARTITIONS as usize],
}

impl World {
    pub(super) fn new() -> Self {
        let machine = Machine::new(0);
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let clock = Arc::new(ManualClock::at(Millis(START)));
        let queue = open(&machine, &clock).expect("an empty machine starts");
        let mut spec = TopicSpec::new(name("actions"));
        (spec.partitions, spec.retention) = (Some(PARTITIONS), Some(RETENTION));
        let made = queue.create_topic(spec).expect("an empty queue takes a topic");
        assert_eq!(made.incarnation, stream(0).incarnation);
        let mut oracle = Oracle::default();
        for (at, (topic, source)) in DERIVED.iter().enumerate() {
            let text = format!("{topic}:0");
            queue.declare(&name(topic), &name(source), &text, OnError::Skip).expect("a new one");
            oracle.versions[at].push((0, Vec::new()));
        }
        let owner = Owner { queue, number: 0, wrote: Default::default() };
        Self { machine, oracle, owner, sleeper: None, clock, runtime }
    }

    /// Whom followers ask.
    pub(super) fn host(&self) -> Host<'_> {
        let ends = [0, 1].map(|partition| self.oracle.end(partition));
        Host { runtime: &self.runtime, queue: &self.owner.queue, ends }
    }

    /// The queue as a start opens it; what is synced is still there.
    pub(super) fn start(&mut self) -> Result<(), StoreError> {
        self.sleeper = None;
        let (queue, number) = (open(&self.machine, &self.clock)?, self.owner.number + 1);
        self.owner = Owner { queue, number, wrote: Default::default() };
        for partition in 0..usize::from(PARTITIONS) {
            let bounds = self.bounds(partition);
            assert!(bounds.synced >= self.oracle.end(partition), "what was synced is gone");
            self.read_log(partition, bounds.start)?;
        }
        Ok(())
    }

    fn bounds(&self, partition: usize) -> tideline_store::Bounds {
        self.machine.journal.bounds(stream(partition as u16)).expect("the topic is there")
    }

    /// The oracle reads what is synced, from `from` on.
    fn read_log(&mut self, partition: usize, from: Seq) -> Result<(), StoreError> {
        let synced = self.bounds(partition).synced;
        let mut next = from;
        while next <= synced {
            let read = self.machine.journal.read(stream(partition as u16), next, ALL);
            let batches = read.map_err(|error| match error {
                ReadError::Store(error) => error,
                other => panic!("what is synced must be in the log: {other}"),
            })?;
            for bytes in &batches {
                let batch = BatchRef::parse(bytes).expect("the log gives whole batches");
                for record in batch.records().filter(|record| record.seq >= next) {
                    self.oracle.synced(partition, batch.epoch(), &record);
                }
                next = batch.range().through.next();
            }
        }
        Ok(())
    }

    /// What waits is written and synced.
    pub(super) fn turn(&mut self) -> Result<(), StoreError> {
        self.machine.turn();
        self.hear()
    }

    /// What the log has synced since, which it also does when an owner takes
    /// over or files are filled.
    pub(super) fn hear(&mut self) -> Result<(), StoreError> {
        self.machine.failed |= self.machine.journal.health().is_err();
        for partition in 0..usize::from(PARTITIONS) {
            let next = self.oracle.end(partition).next();
            self.read_log(partition, next)?;
        }
        Ok(())
    }

    pub(super) fn tick(&mut self) {
        let passed = self.machine.now - tideline_store::Clock::now(&*self.clock).0;
        self.clock.jump(passed);
    }

    /// A request reaches the owner, or one who believes to be it.
    pub(super) fn send(&mut self, request: Request, sleeper: bool, producers: &mut Producers) {
        let at = request.partition();
        // One that has not begun to write would take over by itself.
        let slept = self.sleeper.as_mut().filter(|slept| sleeper && slept.wrote[at]);
        let owner = slept.unwrap_or(&mut self.owner);
        let bytes = |(key, value): &(Vec<u8>, Vec<u8>)| {
            (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value))
        };
        let records = request.records.iter().map(bytes).collect();
        let (topic, partition) = (name("actions"), PartitionId(at as u16));
        let send = owner.queue.send_once(&topic, partition, request.stamp, records);
        let sent = self.runtime.block_on(send);
        owner.wrote[at] = true;
        let owner = owner.number;
        self.oracle.fenced(at, self.bounds(at).epoch, owner);
        let how = sent.as_ref().err().map(ToString::to_string);
        self.machine.note(format!("{request:?} to {owner}: {how:?}"));
        match sent {
            Ok(sent) => producers.taken(request, owner, sent.synced()),
            Err(error) => producers.told(&request, &Err(error)),
        }
    }

    /// Another process takes over; this one sleeps on.
    pub(super) fn take_over(&mut self) {
        let Ok(fresh) = open(&self.machine, &self.clock) else { return };
        let number = self.owner.number + 1;
        let fresh = Owner { queue: fresh, number, wrote: Default::default() };
        self.sleeper = Some(std::mem::replace(&mut self.owner, fresh));
        self.machine.note(format!("{number} takes over"));
    }

    /// The one that was taken over ends: nobody is answered by it any more.
    pub(super) fn sleeper_ends(&mut self) {
        self.sleeper = None;
    }

    /// Another version of an operator takes effect.
    pub(super) fn declare(&mut self, schedule: &mut Rng) {
        let at = schedule.below(DERIVED.len() as u64) as usize;
        let (topic, source) = DERIVED[at];
        let version = self.oracle.versions[at].len() as u32;
        if version as usize == VERSIONS_MAX {
            return;
        }
        let text = format!("{topic}:{version}");
        let cuts = (0..usize::from(PARTITIONS)).map(|p| self.bounds(p).synced.next()).collect();
        let declared = self.owner.queue.declare(&name(topic), &name(source), &text, OnError::Skip);
        declared.expect("memory takes it");
        self.machine.note(format!("{text} from {cuts:?}"));
        self.oracle.versions[at].push((version, cuts));
    }

    /// Old records go, by age or because somebody says so.
    pub(super) fn free(&mut self, schedule: &mut Rng) {
        let freed = match schedule.below(2) {
            0 => self.owner.queue.run_retention(Millis(self.machine.now)),
            _ => {
                let partition = schedule.below(u64::from(PARTITIONS)) as usize;
                let through = Seq(schedule.below(self.oracle.end(partition).0 + 1));
                let at = PartitionId(partition as u16);
                match self.owner.queue.trim(&name("actions"), at, through) {
                    Ok(_) => Ok(()),
                    Err(FetchError::Store(error)) => Err(error),
                    Err(other) => panic!("{other}"),
                }
            }
        };
        self.machine.note(format!("free {freed:?}"));
    }

    /// Somebody looks for a time.
    pub(super) fn look_up(&mut self, schedule: &mut Rng) -> Result<(), StoreError> {
        let partition = schedule.below(u64::from(PARTITIONS)) as usize;
        let seq = Seq(schedule.below(self.oracle.end(partition).0 + 1));
        let around = *schedule.pick(&[-1, 0, 1, 3_600_000]);
        let time = Millis(self.oracle.time_of(partition, seq).0 + around);
        let due = self.oracle.first_at(partition, self.bounds(partition).start, time);
        let at = PartitionId(partition as u16);
        let topic = name("actions");
        let fetch = self.owner.queue.fetch(&topic, at, From::Time(time), ALL, Duration::ZERO);
        let fetched = self.runtime.block_on(fetch).map_err(store_error)?;
        assert_eq!(fetched.range.after.next(), due, "the first record that is not before {time:?}");
        Ok(())
    }

    /// Another host has the source's frame, and the versions as the metadata has
    /// them: it derives by itself, and must have what the topic has.
    pub(super) fn derive_elsewhere(&self, partition: usize, source: &Frame) {
        let mut stages = Vec::new();
        for (at, (topic, _)) in DERIVED.iter().enumerate() {
            stages.push(Arc::new(self.stage(at, topic)));
            let (frames, halt) = derive::frames(source, &stages, 300);
            assert!(halt.is_none(), "{topic} halts");
            let mut after = source.range().after;
            for frame in &frames {
                assert_eq!(frame.range().after, after, "{topic}: made frames join");
                after = frame.range().through;
                check(topic, partition, frame, &self.oracle);
            }
            assert_eq!(after, source.range().through, "{topic}: all is covered");
        }
    }

    fn stage(&self, at: usize, topic: &str) -> Stage {
        let version = |(version, cuts): &(u32, Vec<Seq>)| Version {
            cuts: cuts.clone(),
            operator: Words(self.clock.clone())
                .make(&name(DERIVED[at].1), &format!("{topic}:{version}"))
                .expect("it was declared"),
        };
        let versions = self.oracle.versions[at].iter().map(version).collect();
        Stage { versions, on_error: OnError::Skip }
    }

    /// Everything is read: of the log, of each derived topic, and of each by a
    /// host that has but a copy of the disk, byte for byte.
    pub(super) fn check(&mut self) -> Result<(), StoreError> {
        let copy = self.machine.disk.crash(&mut KeepAll);
        let journal = Arc::new(open_journal(&copy)?);
        let table = Arc::new(self.machine.table.crash(|_, _, unsynced| unsynced));
        let standby = over(journal, table, &self.clock)?;
        for partition in 0..usize::from(PARTITIONS) {
            let bounds = self.bounds(partition);
            self.read_log(partition, bounds.start)?;
            for (topic, _) in [("actions", "")].iter().chain(&DERIVED) {
                let own = self.read_all(&self.owner.queue, topic, partition)?;
                let other = self.read_all(&standby, topic, partition)?;
                assert_eq!(own, other, "{topic}/{partition} of two hosts");
            }
        }
        Ok(())
    }

    /// Every byte of every batch that a topic has, as its readers get it.
    fn read_all(
        &self,
        queue: &Queue,
        topic: &str,
        partition: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let bounds = self.bounds(partition);
        let (topic_name, at) = (name(topic), PartitionId(partition as u16));
        let mut frames = queue.subscribe(&topic_name, at, From::Earliest);
        let (mut all, mut covered) = (Vec::new(), bounds.start.prev());
        while covered < bounds.synced {
            let frame = self.runtime.block_on(frames.next()).map_err(store_error)?;
            assert_eq!(frame.range.after, covered, "{topic}/{partition}: a gap");
            covered = frame.range.through;
            check(topic, partition, &frame.encode(at), &self.oracle);
            frame.batches.iter().for_each(|batch| all.extend_from_slice(batch));
        }
        Ok(all)
    }
}

fn open(machine: &Machine, clock: &Arc<ManualClock>) -> Result<Queue, StoreError> {
    over(machine.journal.clone(), machine.table.clone(), clock)
}

fn over(
    journal: Arc<tideline_store::local::LocalJournal>,
    table: Arc<tideline_store::mem::MemTable>,
    clock: &Arc<ManualClock>,
) -> Result<Queue, StoreError> {
    let opened = Queue::open(journal, table, clock.clone(), Options::default());
    let queue = opened.map_err(open_error)?;
    let failed = queue.set_maker(Arc::new(Words(clock.clone()))).map_err(open_error)?;
    assert!(failed.is_empty(), "operators that cannot be made again: {failed:?}");
    Ok(queue)
}

fn open_error(error: OpenError) -> StoreError {
    match error {
        OpenError::Store(error) => error,
        other => panic!("a queue that was closed does not open: {other}"),
    }
}

fn store_error(error: FetchError) -> StoreError {
    match error {
        FetchError::Store(error) => error,
        other => panic!("what is there is not read: {other}"),
    }
}
