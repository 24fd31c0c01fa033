//! Who follows a partition over a line that cuts, delays, doubles, mixes up,
//! shortens and spoils what is sent over it.
//!
//! What is handed on joins, whatever the line does; that is checked here, and
//! that it holds what the topic has.

use std::collections::VecDeque;

use bytes::Bytes;
use tideline_client::{From, Stopped, Track};
use tideline_queue::{self as queue, FetchError, Queue, Subscription};
use tideline_record::frame::Frame;
use tideline_store::{ReadLimits, StoreError};
use tideline_types::{PartitionId, Position, Seq, TopicName};
use tokio::runtime::Runtime;

use super::oracle::{Oracle, name};
use super::sabotage::{self, Broken};
use crate::rng::Rng;

/// Ranges on their way at a time.
const COMING_MAX: usize = 4;

/// A host that topics are read from.
pub(super) struct Host<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) queue: &'a Queue,
    /// Up to where each partition is synced.
    pub(super) ends: [Seq; 2],
}

impl Host<'_> {
    /// Whether there is something after a place, which may also be a stop.
    fn has_more(
        &self,
        topic: &TopicName,
        partition: usize,
        from: queue::From,
    ) -> Result<bool, FetchError> {
        let limits = ReadLimits { records_max: 1, bytes_max: 1 };
        let (partition, wait) = (PartitionId(partition as u16), std::time::Duration::ZERO);
        let fetch = self.queue.fetch(topic, partition, from, limits, wait);
        self.runtime.block_on(fetch).map(|fetched| !fetched.range.is_empty())
    }
}

/// A reader of one partition, its line, and the host's end of it.
pub(super) struct Follower {
    pub(super) topic: &'static str,
    pub(super) partition: usize,
    track: Track,
    host: Option<Subscription>,
    coming: VecDeque<Bytes>,
    limits: ReadLimits,
}

impl Follower {
    pub(super) fn new(topic: &'static str, partition: usize, from: From) -> Self {
        let track = Track::new(PartitionId(partition as u16), from);
        let limits =
            ReadLimits { records_max: 1 + partition * 5, bytes_max: 200 << (3 * partition) };
        Self { topic, partition, track, host: None, coming: VecDeque::new(), limits }
    }

    /// Up to where it has everything.
    pub(super) fn stands(&self) -> Seq {
        self.track.stands().map_or(Seq::ZERO, |stands| stands.seq)
    }

    /// The line breaks; what is on its way is lost.
    pub(super) fn cut(&mut self) {
        self.host = None;
        self.coming.clear();
    }

    /// Goes on elsewhere.
    pub(super) fn go_on(&mut self, from: From) {
        self.cut();
        self.track.go_on(from);
    }

    /// The host sends what comes next, if there is something.
    pub(super) fn pull(&mut self, host: &Host<'_>) -> Result<(), StoreError> {
        if self.track.stopped().is_some() || self.coming.len() == COMING_MAX {
            return Ok(());
        }
        let from = match self.track.from() {
            From::After(place) => queue::From::After(place),
            _ => queue::From::Earliest,
        };
        let stood = self.host.as_ref().and_then(Subscription::stands);
        if stood.is_some_and(|stood| stood.seq == host.ends[self.partition]) {
            return Ok(());
        }
        let more = host.has_more(
            &name(self.topic),
            self.partition,
            stood.map_or(from, queue::From::After),
        );
        let pulled = match more {
            Ok(false) => return Ok(()),
            Ok(true) => {
                let (name, partition) = (name(self.topic), PartitionId(self.partition as u16));
                let limits = self.limits;
                let open = || host.queue.subscribe_with(&name, partition, from, limits);
                host.runtime.block_on(self.host.get_or_insert_with(open).next())
            }
            Err(error) => Err(error),
        };
        match pulled {
            Ok(frame) => {
                let frame = frame.encode(PartitionId(self.partition as u16));
                self.coming.push_back(frame.bytes().clone());
                Ok(())
            }
            Err(FetchError::Truncated { start }) => {
                self.cut();
                self.track.stop(Stopped::Truncated { start, snapshot: String::new() });
                Ok(())
            }
            Err(FetchError::Store(error)) => Err(error),
            Err(other) => panic!("{}/{}: {other}", self.topic, self.partition),
        }
    }

    /// Something goes wrong on the line.
    pub(super) fn spoil(&mut self, faults: &mut Rng) {
        if self.coming.is_empty() {
            return;
        }
        let at = faults.below(self.coming.len() as u64) as usize;
        match faults.below(6) {
            0 => _ = self.coming.remove(at),
            1 => {
                let again = self.coming[at].clone();
                self.coming.push_back(again);
            }
            2 => self.coming.swap(0, at),
            3 => {
                let bytes = &mut self.coming[at];
                let len = faults.below(bytes.len() as u64) as usize;
                bytes.truncate(len);
            }
            4 => {
                let mut bytes = self.coming[at].to_vec();
                let bit = faults.below(bytes.len() as u64 * 8);
                bytes[bit as usize / 8] ^= 1 << (bit % 8);
                self.coming[at] = bytes.into();
            }
            _ => self.cut(),
        }
    }

    /// What comes next out of the line, if it fits; else the line is cut, and
    /// another is asked for.
    pub(super) fn take(&mut self, oracle: &Oracle) -> Option<Frame> {
        let bytes = self.coming.pop_front()?;
        let (topic, partition, stood) = (self.topic, self.partition, self.track.stands());
        if sabotage::is(Broken::JoinUnchecked)
            && let Ok(frame) = Frame::parse(bytes.clone())
        {
            let after = Position { seq: frame.range().after, ..frame.through() };
            self.track.go_on(From::After(after));
        }
        let Ok(frame) = self.track.range(bytes) else {
            self.cut();
            return None;
        };
        let range = frame.range();
        if let Some(stood) = stood {
            assert_eq!(stood.seq, range.after, "{topic}/{partition}: a gap or a double");
        }
        check(topic, partition, &frame, oracle);
        Some(frame)
    }

    /// Why nothing more comes.
    pub(super) fn stopped(&self) -> Option<&Stopped> {
        self.track.stopped()
    }

    /// Nothing is on its way, and more could be: the line has been silent.
    pub(super) fn is_silent(&self, end: Seq) -> bool {
        self.coming.is_empty() && self.stands() < end
    }
}

/// The frame holds what the topic has of its range, all of it and no more.
pub(super) fn check(topic: &str, partition: usize, frame: &Frame, oracle: &Oracle) {
    let range = frame.range();
    assert!(range.through <= oracle.end(partition), "{topic}: what is not synced is read");
    let mut records = frame.records().peekable();
    let mut seq = range.after;
    while seq < range.through {
        seq = seq.next();
        assert_eq!(frame.epoch(), oracle.place(partition, seq).epoch, "{topic} at {seq}");
        for made in oracle.records(topic, partition, seq) {
            let next = records.next();
            let next = next.map(|r| (r.seq, r.key.to_vec(), r.value.to_vec(), r.skipped));
            let (key, value, skipped) = made;
            assert_eq!(next, Some((seq, key, value, skipped)), "{topic}/{partition}");
        }
    }
    assert!(records.next().is_none(), "{topic}/{partition}: more than there is");
}
