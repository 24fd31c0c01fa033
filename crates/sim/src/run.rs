//! One seed: a machine, its clients, and everything that can go wrong.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::tz::TimeZone;
use tideline_history::kinds::{Kind, Kinds};
use tideline_history::owner;
use tideline_history::rules::Rules;
use tideline_store::StoreError;
use tideline_store::disk::{Crash, FaultyDisk, KeepAll};

use crate::machine::{self, Power};
use crate::rng::Rng;
use crate::workload::{USERS, Workload, configs};
use crate::world::World;
use tideline_harness::model::Model;

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A hash of everything that happened, in order.
    pub trace: u64,
    /// Things that happened.
    pub steps: usize,
    /// Starts, the first one included.
    pub starts: u32,
    /// The run ended because damage was found and named.
    pub damaged: bool,
}

const START: i64 = 1_796_000_000_000;

/// Runs one seed. Panics where something is not as it must be.
pub fn run(seed: u64) -> Report {
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step();
    }
    run.come_to_rest();
    run.check_all();
    if run.keeps_log {
        run.world.check_firsts();
    }
    run.start_again(&mut KeepAll, usize::MAX);
    run.check_all();
    let damaged = run.flips && run.flip_and_start();
    let mut hasher = DefaultHasher::new();
    run.world.trace.hash(&mut hasher);
    let steps = run.world.trace.len();
    Report { trace: hasher.finish(), steps, starts: run.starts, damaged }
}

const STEPS: usize = 600;

struct Run {
    world: World,
    workload: Workload,
    schedule: Rng,
    faults: Rng,
    starts: u32,
    /// The log is never trimmed, so that all of it can be checked.
    keeps_log: bool,
    /// Ends with a flipped bit.
    flips: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut schedule = Rng::new(seed, "schedule");
        let configs = configs();
        let kind = |(name, config): (&String, &tideline_harness::model::Config)| Kind {
            name: name.as_str().into(),
            declared: true,
            retention_days: config.retention_days as u32,
            max_records: config.cap as u32,
            max_per_day: config.per_day as u32,
            daily_first: config.daily_first,
        };
        let rules = Rules {
            kinds: Arc::new(Kinds::new(configs.iter().map(kind).collect())),
            zone: TimeZone::UTC,
            key: [seed as u8; 16],
        };
        let options = owner::Options {
            hot_bytes_max: *schedule.pick(&[512, 2 << 10, 1 << 20, 1 << 20]),
            lag_bytes_max: *schedule.pick(&[1 << 10, 8 << 10, 1 << 20]),
            flush_after_ms: *schedule.pick(&[0, 5_000, 60_000]),
            flights_max: 1 + schedule.below(4) as usize,
            parked_max: 64,
            fast_window_ms: 200,
            pack_bytes_max: if schedule.once_in(2) { 200 } else { 64 << 10 },
        };
        let model = Model::new(configs, TimeZone::UTC);
        let world = World::new(FaultyDisk::new(), Arc::new(rules), options, &model, START);
        Self {
            world,
            workload: Workload::new(seed),
            keeps_log: schedule.once_in(2),
            flips: schedule.once_in(4),
            schedule,
            faults: Rng::new(seed, "faults"),
            starts: 1,
        }
    }

    /// One thing happens.
    fn step(&mut self) {
        if self.world.failed {
            return self.crash();
        }
        match self.schedule.below(100) {
            0..30 => {
                let marks = self.workload.marks(self.world.now);
                self.world.note(format!("write {marks:?}"));
                self.world.write(&marks);
            }
            30..38 => {
                let user = self.workload.user();
                let action = self.workload.change(self.world.now);
                self.world.note(format!("change {user} {action:?}"));
                self.world.change(&user, action);
            }
            38..46 => {
                let (user, which) = (self.workload.user(), self.schedule.below(6));
                self.world.read(&user, which);
            }
            46..62 => self.world.turn(),
            62..74 => {
                let fails = self.faults.once_in(40);
                self.world.load(fails);
            }
            74..82 => {
                let fails = self.faults.once_in(30);
                self.world.commit(fails);
            }
            82..87 => self.world.sync_table(!self.keeps_log),
            87..95 => self.pass_time(),
            95..97 => {
                let disk = self.world.disk.clone();
                let hurt = machine::hurt(&disk, &mut self.faults);
                self.world.note(hurt);
                self.world.turn();
                machine::heal(&disk);
            }
            97 => _ = self.world.journal.mark(),
            98 => {
                let filled = self.world.journal.fill();
                self.world.note(format!("fill {filled:?}"));
                self.world.turn();
            }
            _ => self.crash(),
        }
    }

    fn pass_time(&mut self) {
        let ms = *self.schedule.pick(&[0, 1, 20, 700, 30_000, 600_000, 40_000_000]);
        self.world.ticks += ms;
        self.world.now += ms as i64;
        if self.faults.once_in(8) {
            let hour = 3_600_000;
            self.world.now += *self.faults.pick(&[-hour, hour]);
        }
        let now = self.world.now;
        self.world.note(format!("time {now}"));
        self.world.tick();
    }

    /// Power goes: the disk and the table keep what they may keep.
    fn crash(&mut self) {
        let mut power = Power(Rng::new(self.faults.next(), "power"));
        let keep = self.faults.below(4) as usize;
        self.world.note("crash");
        self.start_again(&mut power, keep);
    }

    fn start_again(&mut self, crash: &mut dyn Crash, keep: usize) {
        let disk = self.world.disk.crash(crash);
        let table = self.world.table.crash(|_, _, unsynced| keep.min(unsynced));
        self.starts += 1;
        if let Err(error) = self.world.restart(disk, table) {
            panic!("a machine without a broken disk does not start: {error}");
        }
    }

    /// Faults stop; everything must come to rest and everybody be answered.
    fn come_to_rest(&mut self) {
        if self.world.failed {
            self.crash();
        }
        self.world.drain();
        for _ in 0..2_000 {
            self.world.ticks += 1_000;
            self.world.now += 1_000;
            self.world.turn();
            while !self.world.loads.is_empty() {
                self.world.load(false);
            }
            while !self.world.flushes.is_empty() {
                self.world.commit(false);
            }
            self.world.sync_table(!self.keeps_log);
            self.world.tick();
            if self.world.is_at_rest() && self.world.unanswered() == 0 {
                return;
            }
        }
        let unanswered = self.world.unanswered();
        panic!("not at rest after the faults stopped; {unanswered} calls are unanswered");
    }

    /// Every read of every user.
    fn check_all(&mut self) {
        for user in USERS {
            for which in 0..6 {
                self.world.read(user, which);
                while !self.world.loads.is_empty() {
                    self.world.load(false);
                }
            }
        }
        self.world.turn();
        assert_eq!(self.world.unanswered(), 0, "reads that were never answered");
    }

    /// One bit of the log flips. What is read afterwards is right, or the
    /// damage is named; true if it was named.
    fn flip_and_start(&mut self) -> bool {
        let (disk, flip) = machine::flipped(&self.world.disk, &mut self.faults);
        self.world.note(flip);
        let table = self.world.table.crash(|_, _, unsynced| unsynced);
        match self.world.restart(disk, table) {
            Ok(()) => {
                self.check_all();
                false
            }
            Err(StoreError::Damaged { .. } | StoreError::Version { .. }) => true,
            Err(other) => panic!("a flipped bit is not named as damage: {other}"),
        }
    }
}
