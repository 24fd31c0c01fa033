//! What the log says, record by record, and what follows from it.
//!
//! Reads what is synced as it becomes so. One payload stands at a position for
//! ever; of what a producer sent in one of its lives a prefix is there, each
//! record once; what a derived topic and the state of a key are at a number
//! follows from the records up to it alone.

use std::collections::BTreeMap;

use tideline_client::{Change, Filled};
use tideline_record::batch::Record;
use tideline_types::{Epoch, Millis, Position, Seq, TopicName, partition_of};

use super::operators::made;
use crate::machine::stream;

/// Partitions of the topic.
pub(super) const PARTITIONS: u16 = 2;
/// The topics that are derived: what they are, and of what.
pub(super) const DERIVED: [(&str, &str); 2] = [("ops", "actions"), ("rare", "ops")];

/// What a derived topic has: key, value, whether it stands for a failure.
pub(super) type Made = (Vec<u8>, Vec<u8>, bool);
/// What each key has.
pub(super) type State = BTreeMap<Vec<u8>, Filled>;

/// A record that stands in the log.
struct Entry {
    epoch: Epoch,
    time: Millis,
    key: Vec<u8>,
    value: Vec<u8>,
    /// What each derived topic makes of it.
    made: [Vec<Made>; DERIVED.len()],
    /// What each key has after it.
    state: State,
}

#[derive(Default)]
struct Lane {
    entries: Vec<Entry>,
    /// The last life of each producer, and its last number.
    last: BTreeMap<u64, (u32, u64)>,
    /// Whose epoch it is.
    owners: BTreeMap<Epoch, u64>,
}

/// All of it.
#[derive(Default)]
pub(super) struct Oracle {
    lanes: [Lane; PARTITIONS as usize],
    /// Versions of each derived topic, with their cuts.
    pub(super) versions: [Vec<(u32, Vec<Seq>)>; DERIVED.len()],
}

impl Oracle {
    /// The last number that is synced.
    pub(super) fn end(&self, partition: usize) -> Seq {
        Seq(self.lanes[partition].entries.len() as u64)
    }

    /// The place of a number.
    pub(super) fn place(&self, partition: usize, seq: Seq) -> Position {
        let epoch = self.entry(partition, seq).map_or(Epoch(0), |entry| entry.epoch);
        Position { epoch, seq, ..origin() }
    }

    fn entry(&self, partition: usize, seq: Seq) -> Option<&Entry> {
        self.lanes[partition].entries.get((seq.0 as usize).checked_sub(1)?)
    }

    /// A record is synced, or is read again.
    pub(super) fn synced(&mut self, partition: usize, epoch: Epoch, record: &Record<'_>) {
        let (seq, key, value) = (record.seq, record.key, record.value);
        if let Some(entry) = self.entry(partition, seq) {
            let same = entry.key == key && entry.value == value && entry.time == record.time;
            assert!(same && entry.epoch == epoch, "another payload stands at {partition}/{seq}");
            return;
        }
        assert_eq!(seq, self.end(partition).next(), "the log has a gap");
        let before = self.lanes[partition].entries.last();
        if let Some(before) = before {
            assert!(before.time <= record.time, "times fall at {seq}");
            assert!(before.epoch <= epoch, "epochs fall at {seq}");
        }
        let mut state = before.map(|before| before.state.clone()).unwrap_or_default();
        let made = self.made_of(partition, seq, key, value);
        let of_it = |key: &[u8]| usize::from(partition_of(key, PARTITIONS).0) == partition;
        for (key, value, _) in made[0].iter().filter(|(key, _, skipped)| !skipped && of_it(key)) {
            change(&mut state, key, &Change::read(value).expect("ops makes operations"));
        }
        let entry =
            Entry { epoch, time: record.time, key: key.into(), value: value.into(), made, state };
        let lane = &mut self.lanes[partition];
        let (producer, life, number) = said(value);
        let (last_life, last) = lane.last.entry(producer).or_insert((life, 0));
        assert!(*last_life <= life, "life {life} of producer {producer} was followed by another");
        if *last_life < life {
            (*last_life, *last) = (life, 0);
        }
        assert_eq!(number, *last + 1, "of producer {producer}, in its life {life}");
        *last = number;
        lane.entries.push(entry);
    }

    fn made_of(
        &self,
        partition: usize,
        seq: Seq,
        key: &[u8],
        value: &[u8],
    ) -> [Vec<Made>; DERIVED.len()] {
        let mut all: [Vec<Made>; DERIVED.len()] = Default::default();
        let mut records: Vec<Made> = vec![(key.into(), value.into(), false)];
        for (at, (kind, _)) in DERIVED.iter().enumerate() {
            let cut = |cuts: &[Seq]| cuts.get(partition).is_none_or(|cut| *cut <= seq);
            let version = self.versions[at].iter().rev().find(|(_, cuts)| cut(cuts));
            let Some((version, _)) = version else { break };
            let mut next = Vec::new();
            for (key, value, skipped) in records {
                match (skipped, made(kind, *version, &key, &value)) {
                    // What failed is handed on as it is.
                    (true, _) => next.push((key, value, true)),
                    (false, Ok(pairs)) => {
                        next.extend(pairs.into_iter().map(|(key, value)| (key, value, false)));
                    }
                    (false, Err(why)) => next.push((Vec::new(), why.into_bytes(), true)),
                }
            }
            all[at] = next.clone();
            records = next;
        }
        all
    }

    /// A producer is told by `owner` that its record stands at `position`: it
    /// does, and was written in an epoch of that owner's, or of one before it.
    pub(super) fn acknowledged(
        &mut self,
        partition: usize,
        owner: u64,
        position: Position,
        record: &(Vec<u8>, Vec<u8>),
    ) {
        let seq = position.seq;
        let entry = self.entry(partition, seq);
        let entry = entry.unwrap_or_else(|| panic!("{seq} is acknowledged and not synced"));
        assert_eq!((&entry.key, &entry.value), (&record.0, &record.1), "acknowledged at {seq}");
        assert_eq!(entry.epoch, position.epoch, "acknowledged at {seq}");
        let of = self.lanes[partition].owners[&position.epoch];
        assert!(of <= owner, "owner {owner} acknowledges in an epoch of owner {of}");
    }

    /// An owner is the owner from then on.
    pub(super) fn fenced(&mut self, partition: usize, epoch: Epoch, owner: u64) {
        self.lanes[partition].owners.entry(epoch).or_insert(owner);
    }

    /// What a topic has at a number; of the source, the record itself.
    pub(super) fn records(&self, topic: &str, partition: usize, seq: Seq) -> Vec<Made> {
        let Some(entry) = self.entry(partition, seq) else { return Vec::new() };
        match DERIVED.iter().position(|(name, _)| *name == topic) {
            Some(at) => entry.made[at].clone(),
            None => vec![(entry.key.clone(), entry.value.clone(), false)],
        }
    }

    /// What keys that belong to the partition have with everything up to `seq`.
    pub(super) fn state(&self, partition: usize, seq: Seq) -> State {
        self.entry(partition, seq).map(|entry| entry.state.clone()).unwrap_or_default()
    }

    /// The first record from `start` on that is not before `time`.
    pub(super) fn first_at(&self, partition: usize, start: Seq, time: Millis) -> Seq {
        let at = |seq: &u64| self.entry(partition, Seq(*seq)).is_some_and(|e| e.time >= time);
        let end = self.end(partition).0;
        (start.0..=end).find(at).map_or(Seq(end + 1), Seq)
    }

    /// Times that records have.
    pub(super) fn time_of(&self, partition: usize, seq: Seq) -> Millis {
        self.entry(partition, seq).map_or(Millis(0), |entry| entry.time)
    }
}

/// A topic's name.
pub(super) fn name(text: &str) -> TopicName {
    TopicName::new(text).expect("a name of the world")
}

/// Keys of a partition: some that producers name, one of each that comes with
/// another, and one that never is.
pub(super) fn keys(partition: usize) -> Vec<String> {
    let of_it = |key: &String| usize::from(partition_of(key.as_bytes(), PARTITIONS).0) == partition;
    let all = ["k", "j"].into_iter().flat_map(|c| (0..6).map(move |n| format!("{c}{n}")));
    let all: Vec<String> = all.filter(of_it).collect();
    let second = all.iter().map(|key| format!("{key}+")).filter(of_it).take(2);
    let never = (0..).map(|n| format!("never{n}")).filter(of_it).take(1);
    all.iter().take(3).cloned().chain(second).chain(never).collect()
}

/// The place before every record.
pub(super) fn origin() -> Position {
    Position { incarnation: stream(0).incarnation, ..Position::default() }
}

/// A key as it becomes, as every store has it.
pub(super) fn change(state: &mut State, key: &[u8], change: &Change) {
    let becomes = match (change, state.get(key)) {
        (Change::Set(bytes), _) => Some(Filled::Bytes(bytes.clone())),
        (Change::Add(by), Some(Filled::Counter(n))) => Some(Filled::Counter(n + by)),
        (Change::Add(by), _) => Some(Filled::Counter(*by)),
        _ => None,
    };
    match becomes {
        Some(value) => _ = state.insert(key.to_vec(), value),
        None => _ = state.remove(key),
    }
}

/// Who said it: producer, life, number.
fn said(value: &[u8]) -> (u64, u32, u64) {
    let text = std::str::from_utf8(value).unwrap();
    let mut parts = text.split(' ').next().unwrap().split('.').map(|part| part.parse().unwrap());
    let mut next = || -> u64 { parts.next().unwrap() };
    (next(), next() as u32, next())
}
