//! One partition of the tree: decides what is asked of its subtrees, in order,
//! and answers when what an answer rests on is synced.
//!
//! ```text
//!  ask ──▶ decide (rules) ──▶ the subtree holds it, unsynced
//!                    └──▶ gathering batch ──▶ log ──▶ synced ──▶ answers, observers
//! ```
//!
//! Always: a subtree's commits go to the log in the order of their numbers;
//! no answer and no observer is ahead of the log; an owner whose log has
//! another epoch answers nothing. While one batch is being synced the next
//! gathers. Takes the time as an argument, waits for nothing, draws nothing: a
//! replicated log can carry it as the embedded one does.

mod driven;
mod read;
mod recover;

pub use read::RestWhen;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tideline_record::batch::BatchBuilder;
use tideline_store::StoreError;
use tideline_types::limits::META_WAITING_MAX;
use tideline_types::{Epoch, Incarnation, Millis, Position, Seq, StreamId};

use crate::ask::{Answer, Ask, Refusal, Txn};
use crate::commit::{Entry, Quota, SessionId};
use crate::lane::Lane;
use crate::namespace;
use crate::path::Path;
use crate::rules::{self, Decision};
use crate::tail::Resync;

/// When something happens, and under whose log.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The wall clock, with which records are stamped and nothing is decided.
    pub now: Millis,
    /// A monotone clock, for leases.
    pub ticks: u64,
    /// The epoch that the log has at this moment.
    pub epoch: Epoch,
}

/// What is to be done. `W` is who waits.
#[derive(Debug)]
pub enum Effect<W> {
    /// This goes to the log.
    Append(BatchBuilder),
    /// This is told to one who waits.
    Answer(W, Answer),
    /// A subtree has begun a life.
    Opened(Path, Incarnation),
    /// A life of a subtree is over.
    Shut(Path, Incarnation),
    /// Observers may see up to here.
    Changed(Path, Seq),
}

/// What an observer is told when the entry under it is synced.
#[derive(Debug)]
enum News {
    Commit(Path, Incarnation, Seq),
    Opened(Path, Incarnation),
    Shut(Path, Incarnation),
}

/// A partition.
pub struct Owner<W> {
    stream: StreamId,
    epoch: Epoch,
    lanes: BTreeMap<Path, Lane>,
    /// Lives that are over, by the entry that ended them: their rows may go
    /// when the partition's place is past it.
    over: VecDeque<(Seq, Incarnation)>,
    /// The next batch, if anything is in it.
    gather: Option<BatchBuilder>,
    /// The last number given to an entry.
    written: Seq,
    /// The last numbers of the batches that are on their way to the disk.
    under_way: VecDeque<Seq>,
    synced: Seq,
    /// The first number that the log had when it was taken over.
    start: Seq,
    last_time: Millis,
    /// Bytes of entries that are not synced.
    unsynced: VecDeque<(Seq, usize)>,
    unsynced_bytes: usize,
    news: VecDeque<(Seq, News)>,
    waiting: VecDeque<(Seq, W, Answer)>,
    failed: Option<Refusal>,
}

impl<W> Owner<W> {
    /// One that knows nothing yet of a log that ends at `synced`.
    pub fn new(stream: StreamId, epoch: Epoch, synced: Seq, newest: Millis) -> Self {
        Self {
            stream,
            epoch,
            lanes: BTreeMap::new(),
            over: VecDeque::new(),
            gather: None,
            written: synced,
            under_way: VecDeque::new(),
            synced,
            start: Seq(u64::MAX),
            last_time: newest,
            unsynced: VecDeque::new(),
            unsynced_bytes: 0,
            news: VecDeque::new(),
            waiting: VecDeque::new(),
            failed: None,
        }
    }

    /// The same, of a log that begins at `start`: what it has from before the
    /// place is kept for observers, too.
    #[must_use]
    pub fn with_start(self, start: Seq) -> Self {
        Self { start, ..self }
    }

    /// The first number that the log had when it was taken over.
    pub fn start(&self) -> Seq {
        self.start
    }

    /// Whose log.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The epoch of this ownership.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What the log has synced.
    pub fn synced_through(&self) -> Seq {
        self.synced
    }

    /// One call about the subtree at `root`.
    pub fn ask(&mut self, at: At, root: &Path, ask: Ask, waiter: W, effects: &mut Vec<Effect<W>>) {
        if let Some(refusal) = self.refusal(at.epoch) {
            effects.push(Effect::Answer(waiter, Answer::Refused(refusal)));
            return;
        }
        let (log, answer) = match self.decide(at, root, ask) {
            Ok(decided) => decided,
            // A refusal rests on what was decided before it.
            Err(refusal) => (self.rests_on(root), Answer::Refused(refusal)),
        };
        self.answer(log, waiter, answer, effects);
        self.seal(effects);
    }

    /// Time passes: sessions end whose lease has run out.
    pub fn tick(&mut self, at: At, effects: &mut Vec<Effect<W>>) {
        let roots: Vec<Path> = self.lanes.keys().cloned().collect();
        for root in roots {
            let Some(lane) = self.lanes.get_mut(&root) else { continue };
            lane.leases.advance(at.ticks);
            if self.refusal(at.epoch).is_some() {
                continue;
            }
            let Some(lane) = self.lanes.get(&root) else { continue };
            let expired: Vec<SessionId> = lane.leases.expired().take(EXPIRED_PER_TICK).collect();
            for id in expired {
                _ = self.end_step(at, &root, id);
            }
        }
        self.seal(effects);
    }

    /// Everything up to `through` survives power loss.
    pub fn synced(&mut self, through: Seq, effects: &mut Vec<Effect<W>>) {
        self.synced = self.synced.max(through);
        while let Some((_, bytes)) = self.unsynced.pop_front_if(|(log, _)| *log <= self.synced) {
            self.unsynced_bytes -= bytes;
        }
        while let Some((_, news)) = self.news.pop_front_if(|(log, _)| *log <= self.synced) {
            self.tell(news, effects);
        }
        while let Some((_, waiter, answer)) =
            self.waiting.pop_front_if(|(log, _, _)| *log <= self.synced)
        {
            effects.push(Effect::Answer(waiter, answer));
        }
        while self.under_way.pop_front_if(|last| *last <= self.synced).is_some() {}
        self.seal(effects);
        assert!(self.synced <= self.written);
    }

    /// The log is read-only: nobody is told that anything is safe again.
    pub fn failed(&mut self, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        let refusal = Refusal::Unknown(error.to_string());
        self.refuse_all(&refusal, effects);
        self.failed = Some(refusal);
    }

    /// Nothing that is not synced was kept, and this owner holds it: it is of
    /// no more use. All who wait are told.
    pub fn dropped(&mut self, error: &StoreError, effects: &mut Vec<Effect<W>>) {
        let refusal = Refusal::from(error);
        self.refuse_all(&refusal, effects);
        self.failed = Some(refusal);
    }

    fn refuse_all(&mut self, refusal: &Refusal, effects: &mut Vec<Effect<W>>) {
        for (_, waiter, _) in self.waiting.drain(..) {
            effects.push(Effect::Answer(waiter, Answer::Refused(refusal.clone())));
        }
        self.news.clear();
        self.gather = None;
    }

    fn refusal(&self, log_epoch: Epoch) -> Option<Refusal> {
        if self.failed.is_some() {
            return self.failed.clone();
        }
        #[cfg(feature = "sabotage")]
        if crate::sabotage::is(crate::sabotage::Broken::EpochUnchecked) {
            return None;
        }
        if log_epoch != self.epoch {
            return Some(Refusal::Fenced);
        }
        let full =
            self.waiting.len() >= META_WAITING_MAX || self.unsynced_bytes >= UNSYNCED_BYTES_MAX;
        full.then_some(Refusal::Overloaded("too many calls wait for the log"))
    }

    /// What a call comes to, and the entry that it rests on.
    fn decide(&mut self, at: At, root: &Path, ask: Ask) -> Result<(Seq, Answer), Refusal> {
        match ask {
            Ask::Open { incarnation, quota } => Ok(self.open(at, root, incarnation, quota)),
            Ask::Shut(incarnation) => Ok(self.shut(at, root, incarnation)),
            Ask::Apply(txn) => {
                if root.is_root() {
                    namespace::admit(&self.lane(root)?.tree, &txn)?;
                }
                self.transact(at, root, &txn)
            }
            Ask::Declare(txn) => self.transact(at, root, &txn),
            Ask::Begin { lease_ms, op } => {
                let (log, answer) =
                    self.write(at, root, |lane| rules::begin(&mut lane.tree, lease_ms, op))?;
                let Answer::Written(written) = answer else { return Ok((log, answer)) };
                self.renew(at, root, SessionId(written.seq.0)).map(|answer| (log, answer))
            }
            Ask::KeepAlive(id) => {
                let log = self.rests_on(root);
                self.renew(at, root, id).map(|answer| (log, answer))
            }
            Ask::End(id) => {
                let mut last = self.end_step(at, root, id)?;
                while self.lane(root)?.tree.session(id).is_some() {
                    last = self.end_step(at, root, id)?;
                }
                Ok(last)
            }
            read => self.read(root, read),
        }
    }

    fn transact(&mut self, at: At, root: &Path, txn: &Txn) -> Result<(Seq, Answer), Refusal> {
        self.write(at, root, |lane| rules::transact(&mut lane.tree, &lane.quota, txn))
    }

    /// A decision about a subtree, logged if it changes something.
    fn write(
        &mut self,
        at: At,
        root: &Path,
        decide: impl FnOnce(&mut Lane) -> Result<Decision, Refusal>,
    ) -> Result<(Seq, Answer), Refusal> {
        match decide(self.lane_mut(root)?)? {
            Decision::Before(written) => Ok((self.rests_on(root), Answer::Written(written))),
            Decision::Log(commit) => {
                let written = crate::tree::written(&commit);
                let bytes = Bytes::from(commit.encode());
                let log = self.log(at, root, &bytes);
                let epoch = self.epoch;
                self.lane_mut(root)?.logged(epoch, log, bytes, at.ticks);
                let news = News::Commit(root.clone(), commit.incarnation, commit.seq);
                self.news.push_back((log, news));
                Ok((log, Answer::Written(written)))
            }
        }
    }

    fn renew(&mut self, at: At, root: &Path, id: SessionId) -> Result<Answer, Refusal> {
        let lane = self.lane_mut(root)?;
        let lease_ms = rules::live(&lane.tree, id)?;
        lane.leases.advance(at.ticks);
        lane.leases.renew(id, lease_ms);
        Ok(Answer::Session(id, lease_ms))
    }

    fn end_step(&mut self, at: At, root: &Path, id: SessionId) -> Result<(Seq, Answer), Refusal> {
        let done = self.write(at, root, |lane| rules::end(&mut lane.tree, id))?;
        let lane = self.lane_mut(root)?;
        match lane.tree.session(id) {
            // What is left of it goes at the next ticks.
            Some(_) => lane.leases.renew(id, 0),
            None => lane.leases.remove(id),
        }
        Ok(done)
    }

    fn open(&mut self, at: At, root: &Path, life: Incarnation, quota: Quota) -> (Seq, Answer) {
        let held = self.lanes.get(root).map(|lane| lane.tree.incarnation());
        if held == Some(life) {
            return (self.rests_on(root), Answer::Done);
        }
        let log = self.log(at, root, &Entry::Open { incarnation: life, quota }.encode());
        self.over.extend(held.map(|life| (log, life)));
        self.news.extend(held.map(|life| (log, News::Shut(root.clone(), life))));
        self.lanes.insert(root.clone(), Lane::open(life, quota, log, at.ticks));
        self.news.push_back((log, News::Opened(root.clone(), life)));
        (log, Answer::Done)
    }

    fn shut(&mut self, at: At, root: &Path, life: Incarnation) -> (Seq, Answer) {
        if self.lanes.get(root).is_none_or(|lane| lane.tree.incarnation() != life) {
            return (self.written, Answer::Done);
        }
        let log = self.log(at, root, &Entry::Shut { incarnation: life }.encode());
        self.lanes.remove(root);
        self.over.push_back((log, life));
        self.news.push_back((log, News::Shut(root.clone(), life)));
        (log, Answer::Done)
    }

    /// Gives an entry its number in the log.
    fn log(&mut self, at: At, root: &Path, value: &[u8]) -> Seq {
        self.last_time = self.last_time.max(at.now);
        self.written = self.written.next();
        let (stream, epoch, first) = (self.stream, self.epoch, self.written);
        let batch = self.gather.get_or_insert_with(|| BatchBuilder::new(stream, epoch, first));
        batch.push(self.last_time, root.as_str().as_bytes(), value);
        let bytes = value.len() + root.as_str().len();
        self.unsynced.push_back((self.written, bytes));
        self.unsynced_bytes += bytes;
        self.written
    }

    /// What gathered goes to the log when little is on its way there, or when
    /// it is large.
    fn seal(&mut self, effects: &mut Vec<Effect<W>>) {
        let free = self.under_way.len() < UNDER_WAY_MAX;
        if let Some(batch) = self.gather.take_if(|batch| free || batch.bytes() >= PACK_BYTES) {
            self.under_way.push_back(batch.next().prev());
            effects.push(Effect::Append(batch));
        }
    }

    fn answer(&mut self, log: Seq, waiter: W, answer: Answer, effects: &mut Vec<Effect<W>>) {
        if log <= self.synced {
            effects.push(Effect::Answer(waiter, answer));
            return;
        }
        // Nearly always the last: reads of a resting subtree are answered
        // above.
        let at = self.waiting.partition_point(|(before, _, _)| *before <= log);
        self.waiting.insert(at, (log, waiter, answer));
    }

    fn tell(&mut self, news: News, effects: &mut Vec<Effect<W>>) {
        match news {
            News::Opened(root, life) => effects.push(Effect::Opened(root, life)),
            News::Shut(root, life) => effects.push(Effect::Shut(root, life)),
            News::Commit(root, life, seq) => {
                let lane = self.lanes.get_mut(&root);
                let Some(lane) = lane.filter(|lane| lane.tree.incarnation() == life) else {
                    return;
                };
                lane.synced = seq;
                effects.push(Effect::Changed(root, seq));
            }
        }
    }

    /// The last entry that a call about `root` rests on.
    fn rests_on(&self, root: &Path) -> Seq {
        self.lanes.get(root).map_or(self.written, |lane| lane.log)
    }

    fn lane(&self, root: &Path) -> Result<&Lane, Refusal> {
        self.lanes.get(root).ok_or_else(|| Refusal::NoSubtree(root.clone()))
    }

    fn lane_mut(&mut self, root: &Path) -> Result<&mut Lane, Refusal> {
        self.lanes.get_mut(root).ok_or_else(|| Refusal::NoSubtree(root.clone()))
    }

    /// The next frame for an observer of `root` at `from`: see
    /// [`crate::tail::Tail::frame`]. `None` where there is no such subtree.
    pub fn frame(&self, root: &Path, from: Position) -> Option<Result<Option<Bytes>, Resync>> {
        let lane = self.lanes.get(root)?;
        Some(lane.tail.frame(from, lane.synced))
    }
}

/// Batches on their way to the disk at once. Subtrees share a log: an entry that
/// had to wait for those before it would miss the sync that is about to begin,
/// and many small batches cost more than they save.
const UNDER_WAY_MAX: usize = 4;
/// Bytes of a batch, from which on it does not wait for the one before.
const PACK_BYTES: usize = 1 << 20;
/// Bytes of entries that are not synced, at most (and one call's more).
const UNSYNCED_BYTES_MAX: usize = 32 << 20;
/// Sessions of one subtree that end in one tick, at most.
const EXPIRED_PER_TICK: usize = 64;

#[cfg(test)]
mod tests;
