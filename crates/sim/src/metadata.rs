//! A partition of the metadata tree, in virtual time, with every fault there
//! is: clients that lose answers and ask again, sessions that fall asleep,
//! observers that come and go, owners that are stopped and wake up after they
//! were taken over, power cuts, disks that are full or fail, clocks that jump.
//!
//! | module | what |
//! |---|---|
//! | `world` | the machine: disk, log, table, the owner, driven by hand |
//! | `oracle` | what the log says, and what answers and copies must be |
//! | `told` | what an observer was told: each change once |

mod oracle;
mod told;
mod world;

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use tideline_meta::Path;
use tideline_meta::ask::{Ask, Expect, Op, Txn};
use tideline_meta::commit::{OpId, SessionId};
use tideline_store::disk::{FaultyDisk, KeepAll};
use tideline_types::Seq;

pub use tideline_meta::sabotage;

use crate::machine::{self, Power};
use crate::rng::Rng;
use crate::run::Report;
use world::World;

/// Runs one seed. Panics where something is not as it must be.
pub fn run(seed: u64) -> Report {
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step();
    }
    run.come_to_rest();
    run.report()
}

/// As [`run`], with a crowd of `observers` of one subtree: they are cut off and go on, fall behind
/// what is kept and take a snapshot, while everything else goes wrong as well; and get to the end.
pub fn crowd(seed: u64, observers: usize) -> Report {
    let mut run = Run::new(seed);
    run.world = World::new(FaultyDisk::new(), observers, 1);
    for round in 0..ROUNDS {
        for _ in 0..ROUND_STEPS {
            run.step();
        }
        for who in 0..observers {
            match run.faults.below(20) {
                0..3 => run.world.disconnect(who),
                3..10 => run.world.observe(who, 2),
                _ => {}
            }
        }
        if round % 5 == 4 {
            run.world.compact(30);
        }
    }
    run.come_to_rest();
    let came = run.world.came;
    assert!(came.resumed > observers && came.resynced > observers, "too quiet: {came:?}");
    run.report()
}

const STEPS: usize = 400;
/// Of a crowd: it has a turn in each, after so many things that happen to the others.
const ROUNDS: usize = 40;
const ROUND_STEPS: usize = 20;
const OBSERVERS: usize = 6;
const PATHS: [&str; 7] = ["/a", "/b", "/a/x", "/a/y", "/a/x/z", "/q", "/q/n"];

struct Run {
    world: World,
    schedule: Rng,
    faults: Rng,
    clients: Rng,
    next_op: u128,
    /// Writes that may be sent again: answered or not.
    sent: Vec<(Path, Ask)>,
    sessions: Vec<(Path, SessionId)>,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            world: World::new(FaultyDisk::new(), OBSERVERS, 2),
            schedule: Rng::new(seed, "schedule"),
            faults: Rng::new(seed, "faults"),
            clients: Rng::new(seed, "clients"),
            next_op: 0,
            sent: Vec::new(),
            sessions: Vec::new(),
        }
    }

    fn report(&self) -> Report {
        let mut hasher = DefaultHasher::new();
        self.world.trace.hash(&mut hasher);
        let (steps, starts) = (self.world.trace.len(), self.world.starts);
        Report { trace: hasher.finish(), steps, starts, damaged: false }
    }

    fn step(&mut self) {
        if self.world.failed {
            return self.crash();
        }
        match self.schedule.below(100) {
            0..26 => self.write(),
            26..34 => self.linear(),
            34..42 => self.read(),
            42..46 => self.session(),
            46..62 => self.world.turn(),
            62..74 => self.observe(),
            74..84 => self.pass_time(),
            84..88 => self.rest(),
            88..90 => self.world.compact(self.schedule.below(8) as usize),
            90..92 => self.world.take_over(),
            92..94 => self.disk_fault(),
            94 => _ = self.world.journal.mark(),
            95 => self.world.fill(),
            96..98 => self.ask_the_sleeper(),
            _ => self.crash(),
        }
        let begun = self.world.begun.drain(..);
        self.sessions.extend(begun);
    }

    fn root(&mut self) -> Path {
        let roots = World::roots();
        self.clients.pick(&roots).clone()
    }

    /// A transaction; or one that was sent before, whatever became of it.
    fn write(&mut self) {
        if self.clients.once_in(4) && !self.sent.is_empty() {
            let (root, ask) = self.clients.pick(&self.sent).clone();
            return self.world.ask(&root, ask);
        }
        let root = self.root();
        let count = 1 + self.clients.below(3);
        let ops = (0..count).map(|_| self.op()).collect();
        let of_root = |(at, id): &(Path, SessionId)| (*at == root).then_some(*id);
        let session = self.sessions.iter().rev().find_map(of_root);
        let session = session.filter(|_| self.clients.once_in(2));
        self.next_op += 1;
        let ask = Ask::Apply(Txn { ops, session, op: Some(OpId(self.next_op)) });
        self.sent.push((root.clone(), ask.clone()));
        if self.sent.len() > 20 {
            self.sent.remove(0);
        }
        self.world.ask(&root, ask);
    }

    fn op(&mut self) -> Op {
        let path = self.path();
        let value = Bytes::from(vec![b'v'; self.clients.below(40) as usize]);
        let modified = self.clients.once_in(4).then(|| Seq(self.clients.below(60)));
        match self.clients.below(10) {
            0..5 => Op::Create {
                path,
                value,
                ephemeral: self.clients.once_in(3),
                sequential: self.clients.once_in(3),
            },
            5..7 => Op::Set { path, value, modified },
            7..9 => Op::Delete { path, modified },
            _ => Op::Check { path, expect: Expect::Present },
        }
    }

    /// A call about the node whose history is kept.
    fn linear(&mut self) {
        let root = self.root();
        let ask = self.linear_ask();
        self.world.ask(&root, ask);
    }

    fn linear_ask(&mut self) -> Ask {
        let path = Path::new(world::LINEAR).expect("it is a path");
        self.next_op += 1;
        let value = Bytes::copy_from_slice(&(self.next_op as u64).to_le_bytes());
        let (ephemeral, sequential, modified) = (false, false, None);
        let op = match self.clients.below(6) {
            0 | 1 => Op::Create { path, value, ephemeral, sequential },
            2 => Op::Set { path, value, modified },
            3 => Op::Delete { path, modified },
            _ => return Ask::Get(path),
        };
        Ask::Apply(Txn { ops: vec![op], session: None, op: None })
    }

    fn path(&mut self) -> Path {
        let text: &&str = self.clients.pick(&PATHS);
        Path::new(text).expect("these are paths")
    }

    fn read(&mut self) {
        let root = self.root();
        let path = self.path();
        let ask = match self.clients.below(3) {
            0 => Ask::Get(path),
            1 => Ask::List { path, after: None, limit: 3 },
            _ => Ask::Sync,
        };
        self.world.ask(&root, ask);
    }

    fn session(&mut self) {
        let root = self.root();
        let known = self.sessions.iter().filter(|(at, _)| *at == root).map(|(_, id)| *id);
        let known: Vec<SessionId> = known.collect();
        let ask = match self.clients.below(5) {
            0 | 1 if !known.is_empty() => Ask::KeepAlive(*self.clients.pick(&known)),
            2 if !known.is_empty() => Ask::End(*self.clients.pick(&known)),
            _ => {
                self.next_op += 1;
                let lease_ms = *self.clients.pick(&[500, 2_000, 30_000]);
                Ask::Begin { lease_ms, op: Some(OpId(self.next_op)) }
            }
        };
        self.world.ask(&root, ask);
    }

    fn observe(&mut self) {
        let who = self.schedule.below(OBSERVERS as u64) as usize;
        match self.faults.once_in(6) {
            true => self.world.disconnect(who),
            false => self.world.observe(who, self.schedule.below(4) as usize),
        }
    }

    fn pass_time(&mut self) {
        let ms = *self.schedule.pick(&[1, 20, 300, 900, 2_000, 60_000]);
        let jump =
            if self.faults.once_in(8) { *self.faults.pick(&[-3_600_000, 3_600_000]) } else { 0 };
        self.world.pass(ms, jump);
    }

    fn rest(&mut self) {
        let rooted = self.schedule.below(2) as usize;
        let syncs = self.schedule.once_in(2);
        self.world.rest(&World::roots()[rooted], syncs);
    }

    fn ask_the_sleeper(&mut self) {
        let root = self.root();
        let path = self.path();
        let ask = match self.clients.below(4) {
            3 => self.linear_ask(),
            0 => {
                let (value, ephemeral, sequential) = (Bytes::new(), false, true);
                let ops = vec![Op::Create { path, value, ephemeral, sequential }];
                Ask::Apply(Txn { ops, session: None, op: None })
            }
            1 => Ask::Get(path),
            _ => Ask::Sync,
        };
        self.world.ask_sleeper(&root, ask);
    }

    /// The disk is full for a turn, or fails for good.
    fn disk_fault(&mut self) {
        let how = machine::hurt(&self.world.disk, &mut self.faults);
        self.world.note(how);
        self.world.turn();
        machine::heal(&self.world.disk);
    }

    fn crash(&mut self) {
        let mut power = Power(Rng::new(self.faults.next(), "power"));
        let keep = self.faults.below(4) as usize;
        self.world.note("crash");
        self.world.restart(&mut power, keep);
    }

    /// Faults stop: every call is answered, every session that is not renewed
    /// ends, every observer gets to the end.
    fn come_to_rest(&mut self) {
        if self.world.failed {
            self.crash();
        }
        for _ in 0..80 {
            self.world.pass(900, 0);
            self.world.turn();
        }
        for root in World::roots() {
            self.world.rest(&root, true);
        }
        self.world.restart(&mut KeepAll, usize::MAX);
        for _ in 0..80 {
            self.world.pass(900, 0);
            self.world.turn();
        }
        self.world.check_at_rest();
    }
}
