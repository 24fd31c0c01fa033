//! An owner with a log and a table in memory, of which each effect is carried
//! out when the test says so.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tideline_danmaku::ask::{Action, Answer, Op, Posted, Refusal, View};
use tideline_danmaku::comment::{Actor, Comment, Draft, Role, State};
use tideline_danmaku::options::{Keys, Options};
use tideline_danmaku::owner::{Bounds, Effect, Flush, Owner};
use tideline_danmaku::rows::{self, Facts};
use tideline_danmaku::rules::Rules;
use tideline_danmaku::{CommentId, TOPIC, cold, recovery};
use tideline_record::batch::Header;
use tideline_store::mem::MemTable;
use tideline_store::{Place, Table, TableName};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, StreamId, UserId};
use tideline_wire::danmaku::{Mode, Pool};

pub(crate) const START: i64 = 1_796_000_000_000;

pub(crate) struct Partition {
    pub(crate) table: MemTable,
    /// Batches, synced or not.
    pub(crate) log: Vec<Bytes>,
    synced: usize,
    pub(crate) owner: Owner<u64>,
    pub(crate) answers: BTreeMap<u64, Answer>,
    pub(crate) changed: Vec<(Arc<str>, Seq)>,
    /// Reads and loads, then flushes, that were asked for.
    reads: VecDeque<Effect<u64>>,
    flushes: VecDeque<Flush>,
    /// Flushes that are committed and not synced.
    committed: Vec<Flush>,
    /// How often the table was read.
    pub(crate) table_reads: usize,
    tickets: u64,
    epoch: u32,
    pub(crate) now: i64,
    ticks: u64,
}

pub(crate) fn bounds() -> Bounds {
    Bounds {
        hot_bytes_max: 64 << 20,
        lag_bytes_max: 64 << 20,
        flush_after_ms: 1000,
        flush_bytes: 64 << 10,
        flights_max: 4,
        parked_max: 10_000,
        pack_bytes_max: 64 << 10,
        count_after_ms: 1000,
    }
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

pub(crate) fn actor(name: &str, role: Role) -> Actor {
    Actor { user: user(name), role }
}

pub(crate) fn draft(text: &str, progress_ms: u32) -> Draft {
    Draft {
        text: text.into(),
        progress_ms,
        mode: Mode::Scroll,
        size: 25,
        color: 0x00ff_ffff,
        pool: Pool::Normal,
        client_id: None,
    }
}

/// What lies in the table: rows by keys, facts without their place.
pub(crate) type Dump = BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>;

impl Partition {
    pub(crate) fn new(options: Options) -> Self {
        Self::open(MemTable::new(), Vec::new(), 1, START, options, bounds())
    }

    pub(crate) fn with_bounds(options: Options, bounds: Bounds) -> Self {
        Self::open(MemTable::new(), Vec::new(), 1, START, options, bounds)
    }

    /// A start over what a table and a log hold.
    pub(crate) fn open(
        table: MemTable,
        log: Vec<Bytes>,
        epoch: u32,
        now: i64,
        options: Options,
        bounds: Bounds,
    ) -> Self {
        let synced = log.last().map_or(Seq(0), |batch| Header::read(batch).unwrap().last());
        let stream = StreamId { incarnation: Incarnation(1), partition: PartitionId(0) };
        let rules = Arc::new(Rules { options, keys: Keys([7; 16]) });
        let place = Place::read(&table, TOPIC, PartitionId(0)).unwrap();
        let mut owner = Owner::new(stream, Epoch(epoch), synced, place, rules, bounds);
        let mut read = |from: Seq| {
            let at = log.iter().position(|b| Header::read(b).unwrap().last() >= from);
            Ok(log[at.unwrap()..].to_vec())
        };
        recovery::start(&mut owner, &table, &mut read).unwrap();
        Self {
            table,
            synced: log.len(),
            log,
            owner,
            answers: BTreeMap::new(),
            changed: Vec::new(),
            reads: VecDeque::new(),
            flushes: VecDeque::new(),
            committed: Vec::new(),
            table_reads: 0,
            tickets: 0,
            epoch,
            now,
            ticks: 0,
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect<u64>>) {
        for effect in effects {
            match effect {
                Effect::Append(batch) => self.log.push(batch.finish()),
                Effect::Answer(ticket, answer) => {
                    assert!(self.answers.insert(ticket, answer).is_none(), "answered twice");
                }
                Effect::Changed(video, seq) => self.changed.push((video, seq)),
                Effect::Flush(flush) => self.flushes.push_back(flush),
                Effect::Load { .. } | Effect::Read { .. } => self.reads.push_back(effect),
            }
        }
    }

    fn step(&mut self, step: impl FnOnce(&mut Owner<u64>, &mut Vec<Effect<u64>>)) {
        let mut effects = Vec::new();
        step(&mut self.owner, &mut effects);
        self.carry_out(effects);
    }

    /// Makes a call; the answer comes when it comes.
    pub(crate) fn call(&mut self, video: &str, op: Op) -> u64 {
        self.tickets += 1;
        let (now, ticket) = (Millis(self.now), self.tickets);
        self.step(|owner, effects| owner.ask(now, video, op, ticket, effects));
        ticket
    }

    /// Reads what was asked for first; whether anything was.
    pub(crate) fn read_one(&mut self) -> bool {
        let now = Millis(self.now);
        match self.reads.pop_front() {
            Some(Effect::Load { video, generation }) => {
                self.table_reads += 1;
                let rows = cold::read(&self.table, &video);
                self.step(|owner, effects| owner.loaded(now, &video, generation, rows, effects));
                true
            }
            Some(Effect::Read { video, generation, reads }) => {
                self.table_reads += 1;
                let found = cold::read_rows(&self.table, &video, &reads);
                self.step(|owner, effects| owner.read(now, &video, generation, found, effects));
                true
            }
            _ => false,
        }
    }

    /// As [`Self::read_one`], but the owner learns of it only afterwards.
    pub(crate) fn read_before(&mut self, then: impl FnOnce(&mut Self)) {
        let now = Millis(self.now);
        match self.reads.pop_front() {
            Some(Effect::Read { video, generation, reads }) => {
                let found = cold::read_rows(&self.table, &video, &reads);
                then(self);
                self.step(|owner, effects| owner.read(now, &video, generation, found, effects));
            }
            Some(other) => {
                self.reads.push_front(other);
                then(self);
                self.read_one();
            }
            None => then(self),
        }
    }

    /// Syncs the next batch of the log; whether there was one.
    pub(crate) fn sync_one(&mut self) -> bool {
        let Some(batch) = self.log.get(self.synced) else { return false };
        let through = Header::read(batch).unwrap().last();
        self.synced += 1;
        self.step(|owner, effects| owner.synced(through, effects));
        true
    }

    /// Commits what is to come to rest first; whether there was anything.
    pub(crate) fn commit_one(&mut self) -> bool {
        let Some(flush) = self.flushes.pop_front() else { return false };
        self.table.commit(&flush.commits).unwrap();
        self.committed.push(flush);
        true
    }

    /// Makes what is committed durable; whether anything was.
    pub(crate) fn sync_table(&mut self) -> bool {
        self.table.sync().unwrap();
        let landed = std::mem::take(&mut self.committed);
        for flush in &landed {
            self.owner.flushed(&flush.video, flush.generation, Ok(()));
        }
        !landed.is_empty()
    }

    /// Writes the place of the partition.
    pub(crate) fn keep_place(&mut self) {
        if let Some(place) = self.owner.place() {
            self.table.commit(&[place.keep(TOPIC, PartitionId(0))]).unwrap();
        }
    }

    pub(crate) fn tick(&mut self, ms: i64) {
        self.now += ms;
        self.ticks += ms as u64;
        let (now, ticks) = (Millis(self.now), self.ticks);
        self.step(|owner, effects| owner.tick(now, ticks, effects));
    }

    /// Carries out everything that waits, but for flushes.
    pub(crate) fn serve(&mut self) {
        while self.read_one() || self.sync_one() {}
    }

    /// Brings everything to rest.
    pub(crate) fn rest(&mut self) {
        self.owner.drain();
        for _ in 0..100 {
            self.tick(1000);
            while self.read_one() || self.sync_one() || self.commit_one() || self.sync_table() {}
            if self.owner.is_at_rest() {
                self.keep_place();
                return;
            }
        }
        panic!("does not come to rest: {:?}", self.owner.stats());
    }

    /// A call and its answer.
    pub(crate) fn ask(&mut self, video: &str, op: Op) -> Answer {
        let ticket = self.call(video, op);
        self.serve();
        self.answers.remove(&ticket).expect("a call is answered once all is synced")
    }

    /// Stops as a power cut does: of the log's unsynced batches `kept` remain,
    /// of the table's unsynced commits what `keep` says.
    pub(crate) fn crash(
        self,
        kept: usize,
        keep: impl FnMut(TableName, &[u8], usize) -> usize,
        options: Options,
    ) -> Self {
        let table = self.table.crash(keep);
        let mut log = self.log;
        log.truncate((self.synced + kept).min(log.len()));
        Self::open(table, log, self.epoch + 1, self.now, options, bounds())
    }

    /// Goes through a start that has little memory, so that it brings to rest
    /// what it reads, and is cut off.
    pub(crate) fn start_short_of_memory(self, options: Options) -> Self {
        let Self { table, log, epoch, now, .. } = self;
        let short = Bounds { lag_bytes_max: 512, ..bounds() };
        let cut = Self::open(table, log, epoch + 1, now, options.clone(), short);
        Self::open(cut.table, cut.log, epoch + 2, now, options, bounds())
    }

    pub(crate) fn unsynced(&self) -> usize {
        self.log.len() - self.synced
    }

    pub(crate) fn dump(&self) -> Dump {
        let mut dump = Dump::new();
        self.table
            .walk(TableName::Danmaku, b"", &mut |row| {
                let mut value = row.value.to_vec();
                if row.partition_key[0] == b'v' && row.sort_key == rows::FACTS_KEY {
                    let facts = Facts::decode(&value).unwrap();
                    value = Facts { epoch: Epoch(0), seq: Seq(0), ..facts }.encode();
                }
                dump.insert((row.partition_key.to_vec(), row.sort_key.to_vec()), value);
                true
            })
            .unwrap();
        dump
    }

    pub(crate) fn post(
        &mut self,
        video: &str,
        name: &str,
        draft: Draft,
    ) -> Result<Posted, Refusal> {
        self.now += 1;
        match self.ask(video, Op::Post { draft, actor: actor(name, Role::Viewer) }) {
            Answer::Posted(posted) => Ok(posted),
            Answer::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn moderate(
        &mut self,
        video: &str,
        id: CommentId,
        action: Action,
    ) -> Result<Arc<Comment>, Refusal> {
        let actor = actor("owner", Role::Owner);
        self.comment(video, Op::Moderate { id, action, actor })
    }

    pub(crate) fn comment(&mut self, video: &str, op: Op) -> Result<Arc<Comment>, Refusal> {
        match self.ask(video, op) {
            Answer::Comment(comment) => Ok(comment),
            Answer::Moderated(moderated) => Ok(moderated.comment),
            Answer::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn view(&mut self, video: &str) -> View {
        match self.ask(video, Op::View) {
            Answer::View(view) => view,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn find(&mut self, video: &str, id: CommentId) -> Option<Arc<Comment>> {
        match self.ask(video, Op::Find { id }) {
            Answer::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn state(&mut self, video: &str, id: CommentId) -> State {
        self.find(video, id).expect("the comment is there").index.state
    }

    /// Texts of what is shown, by pool, time and id.
    pub(crate) fn texts(&mut self, video: &str) -> Vec<String> {
        match self.ask(video, Op::All) {
            Answer::Snapshot(Some(snapshot)) => {
                snapshot.items.iter().map(|c| c.content.text.to_string()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn own(&mut self, video: &str, name: &str) -> Vec<Arc<Comment>> {
        match self.ask(video, Op::Own { user: user(name), below: None, limit: 100 }) {
            Answer::Own(comments) => comments,
            other => panic!("{other:?}"),
        }
    }
}
