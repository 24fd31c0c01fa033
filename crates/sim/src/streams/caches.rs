//! A process with a cache that follows the topic, and asks the store for what
//! it does not hold; answers come late, in another order, or never.

use tideline_client::{Cache, Change, Filled, Filling, Found, From};
use tideline_types::Seq;

use super::line::Follower;
use super::oracle::{Oracle, keys};
use super::store::Store;
use crate::rng::Rng;

/// Small enough that keys are forgotten.
const BYTES_MAX: usize = 900;
const ASKED_MAX: usize = 6;

/// A question to the store, and perhaps its answer.
struct Fill {
    filling: Filling,
    key: String,
    answer: Option<(Option<Filled>, Seq)>,
}

pub(super) struct Reader {
    pub(super) follower: Follower,
    /// Keys that are asked for: some change often, one never.
    keys: Vec<String>,
    cache: Cache,
    fills: Vec<Fill>,
}

impl Reader {
    /// One that follows from the end of the topic on.
    pub(super) fn new(partition: usize, oracle: &Oracle) -> Self {
        let at = oracle.place(partition, oracle.end(partition));
        let follower = Follower::new("ops", partition, From::After(at));
        let cache = Cache::new(at.seq, BYTES_MAX);
        Self { follower, keys: keys(partition), cache, fills: Vec::new() }
    }

    /// Takes what comes next out of the line.
    pub(super) fn take(&mut self, oracle: &Oracle) {
        if self.follower.stopped().is_some() {
            // What was missed is unknown: nothing that is held may be used.
            let at = oracle.place(self.follower.partition, oracle.end(self.follower.partition));
            self.cache.begin_anew(at.seq);
            return self.follower.go_on(From::After(at));
        }
        let Some(frame) = self.follower.take(oracle) else { return };
        for record in frame.records().filter(|record| !record.skipped) {
            let change = Change::read(record.value).expect("ops makes operations");
            self.cache.push(record.seq, record.sub, record.key, &change);
        }
        self.cache.advance(frame.range().through);
        self.check(oracle);
    }

    /// Somebody wants a key.
    pub(super) fn want(&mut self, rng: &mut Rng) {
        let key = rng.pick(&self.keys).clone();
        let unknown = self.cache.get(key.as_bytes()) == Found::Unknown;
        if unknown && self.fills.len() < ASKED_MAX {
            let filling = self.cache.begin(key.as_bytes());
            self.fills.push(Fill { filling, key, answer: None });
        }
    }

    /// A question reaches the store, or an answer reaches the cache, or is lost.
    pub(super) fn fill(&mut self, store: &Store, oracle: &Oracle, rng: &mut Rng) {
        if self.fills.is_empty() {
            return;
        }
        let at = rng.below(self.fills.len() as u64) as usize;
        let fill = &mut self.fills[at];
        if fill.answer.is_none() {
            fill.answer = store.read(fill.key.as_bytes());
            return;
        }
        let Fill { filling, answer, .. } = self.fills.remove(at);
        match answer.filter(|_| !rng.once_in(8)) {
            // One that is refused may be asked for again.
            Some((value, applied)) => _ = self.cache.finish(filling, value, applied),
            None => self.cache.abandon(filling),
        }
        self.check(oracle);
    }

    /// Faults have stopped: everything asked is answered. Whether nothing was.
    pub(super) fn rest(&mut self, store: &Store, oracle: &Oracle) -> bool {
        let idle = self.fills.is_empty();
        for Fill { filling, key, .. } in std::mem::take(&mut self.fills) {
            match store.read(key.as_bytes()) {
                Some((value, applied)) => _ = self.cache.finish(filling, value, applied),
                None => self.cache.abandon(filling),
            }
        }
        self.check(oracle);
        idle
    }

    /// Everything that is held is what the topic says at the end.
    pub(super) fn check_current(&mut self, oracle: &Oracle) {
        let partition = self.follower.partition;
        assert_eq!(self.cache.covered(), oracle.end(partition), "a cache stays behind");
        self.check(oracle);
    }

    /// What is found is what the topic gives the key where the cache stands, or
    /// later, where the store that filled it was ahead; never ahead of both.
    fn check(&mut self, oracle: &Oracle) {
        let partition = self.follower.partition;
        for key in &self.keys {
            let seq = self.cache.seq_of(key.as_bytes()).unwrap_or_default();
            assert!(seq <= oracle.end(partition), "{key} of {seq}, which is not synced");
            let due = oracle.state(partition, seq.max(self.cache.covered()));
            let is = match self.cache.get(key.as_bytes()) {
                Found::Unknown => continue,
                Found::Nothing => None,
                Found::Value(bytes) => Some(Filled::Bytes(bytes.to_vec())),
                Found::Counter(n) => Some(Filled::Counter(n)),
            };
            let stands = self.cache.covered();
            assert_eq!(is.as_ref(), due.get(key.as_bytes()), "{key} of {seq} at {stands}");
        }
    }
}
