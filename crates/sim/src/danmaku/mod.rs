//! Danmaku: the comments of a few videos under every fault there is.
//!
//! | module | what |
//! |---|---|
//! | `world` | the machine: disk, log, table, owners, driven by hand |
//! | `workload` | what callers do |
//! | `stage` | who watches: ready bodies, rooms, screens |
//! | `plain` | a video as one would write it down, and what may happen to it |
//! | `oracle` | the log against that, and each answer against both |

mod oracle;
mod plain;
mod stage;
mod workload;
mod world;

use std::hash::{DefaultHasher, Hash, Hasher};

use tideline_danmaku::ask::Answer;
use tideline_danmaku::owner::Bounds;
use tideline_danmaku::top::Scope;
use tideline_store::StoreError;
use tideline_store::disk::{Crash, KeepAll};

use self::plain::Setup;
use self::stage::Stage;
use self::workload::{VIDEOS, Workload, nudge};
use self::world::{News, World, is_turned_away};
use crate::machine::{self, Power};
use crate::rng::Rng;
use crate::run::Report;

const START: i64 = 1_796_000_000_000;
const STEPS: usize = 400;

/// Runs one seed. Panics where something is not as it must be.
pub fn run(seed: u64) -> Report {
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step();
        run.listen();
    }
    run.come_to_rest();
    run.check_all();
    run.start_again(&mut KeepAll, usize::MAX);
    run.check_all();
    let damaged = run.flips && run.flip_and_start();
    let mut hasher = DefaultHasher::new();
    run.world.trace.hash(&mut hasher);
    let steps = run.world.trace.len();
    Report { trace: hasher.finish(), steps, starts: run.starts, damaged }
}

struct Run {
    world: World,
    workload: Workload,
    stage: Stage,
    schedule: Rng,
    faults: Rng,
    starts: u32,
    keeps_log: bool,
    /// Ends with a flipped bit.
    flips: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut schedule = Rng::new(seed, "schedule");
        let bounds = Bounds {
            hot_bytes_max: *schedule.pick(&[2 << 10, 16 << 10, 1 << 20, 1 << 20]),
            lag_bytes_max: *schedule.pick(&[2 << 10, 16 << 10, 1 << 20]),
            flush_after_ms: *schedule.pick(&[0, 5_000, 60_000]),
            flush_bytes: *schedule.pick(&[1 << 10, 64 << 10]),
            flights_max: 1 + schedule.below(4) as usize,
            parked_max: 64,
            pack_bytes_max: if schedule.once_in(2) { 400 } else { 64 << 10 },
            count_after_ms: *schedule.pick(&[0, 1_000]),
        };
        let setup = setup(&mut schedule);
        Self {
            world: World::new(setup, bounds, START),
            workload: Workload::new(seed, START),
            stage: Stage::default(),
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
        let call = match self.schedule.below(100) {
            0..22 => Some(self.workload.post()),
            22..31 => self.workload.about(),
            31..33 => Some(self.workload.set()),
            33 => Some(self.workload.erase()),
            34..36 => Some(self.workload.import()),
            36..41 => Some(self.workload.read()),
            41..52 => {
                self.watch();
                None
            }
            52..66 => {
                self.world.turn();
                None
            }
            66..78 => {
                let fails = self.faults.once_in(60);
                self.world.read(fails);
                None
            }
            78..84 => {
                let fails = self.faults.once_in(30);
                self.world.commit(fails);
                None
            }
            84..88 => {
                self.world.sync_table(!self.keeps_log);
                None
            }
            88..94 => {
                self.pass_time();
                None
            }
            94..96 => {
                let hurt = machine::hurt(&self.world.disk, &mut self.faults);
                self.world.note(hurt);
                self.world.turn();
                machine::heal(&self.world.disk);
                None
            }
            96 => {
                _ = self.world.journal.mark();
                None
            }
            97 => {
                let filled = self.world.journal.fill();
                self.world.note(format!("fill {filled:?}"));
                self.world.turn();
                None
            }
            98 => {
                self.crash();
                None
            }
            _ => {
                // Several things before anybody listens.
                (0..4).for_each(|_| _ = self.world.read(false));
                None
            }
        };
        if let Some((video, op)) = call {
            self.world.ask(&video, op);
        }
    }

    /// Somebody watches, or a body is read.
    fn watch(&mut self) {
        match self.schedule.below(10) {
            0 if self.stage.viewers() < 6 => {
                let video = self.workload.video();
                let sets: [&[u32]; 4] = [&[1], &[1, 2], &[3, 1], &[2]];
                let segments = sets[self.schedule.below(4) as usize];
                self.world.note(format!("open {video} {segments:?}"));
                self.stage.open(&video, segments);
            }
            0..3 => {
                let video = self.workload.video();
                let (segment, format) = (1 + self.schedule.below(3), self.schedule.below(3));
                self.stage.fetch(&mut self.world, &video, segment as u32, format as usize);
            }
            3..6 => _ = self.stage.hear(&mut self.world),
            _ if self.stage.viewers() > 0 => {
                let at = self.schedule.below(self.stage.viewers() as u64) as usize;
                self.stage.go_on(&mut self.world, at);
            }
            _ => {}
        }
    }

    /// Takes in what happened.
    fn listen(&mut self) {
        while let Some(news) = self.world.next_news() {
            match news {
                News::Changed(video) => self.stage.changed(&video),
                News::Answered(call, asked, answer) => {
                    if !self.stage.answered(&mut self.world, call, &answer)
                        && let Answer::Posted(posted) = &answer
                    {
                        self.workload.knows(&asked.video, posted.comment.id);
                    }
                }
            }
        }
    }

    fn pass_time(&mut self) {
        let ms = *self.schedule.pick(&[0, 1, 20, 700, 30_000, 600_000]);
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

    /// Power goes: the disk and the table keep what they may keep. Whoever
    /// starts the machine again may have set another limit.
    fn crash(&mut self) {
        let mut power = Power(Rng::new(self.faults.next(), "power"));
        let keep = self.faults.below(4) as usize;
        if self.faults.once_in(2) {
            self.world.setup = setup(&mut self.faults);
        }
        let setup = self.world.setup;
        self.world.note(format!("crash {setup:?}"));
        self.start_again(&mut power, keep);
    }

    fn start_again(&mut self, crash: &mut dyn Crash, keep: usize) {
        let disk = self.world.disk.crash(crash);
        let table = self.world.table.crash(|_, _, unsynced| keep.min(unsynced));
        self.starts += 1;
        self.stage.cut();
        if let Err(error) = self.world.restart(disk, table) {
            panic!("a machine without a broken disk does not start: {error}");
        }
    }

    /// Faults stop; everything must come to rest, everybody be answered, and
    /// every screen show what there is.
    fn come_to_rest(&mut self) {
        if self.world.failed {
            self.crash();
        }
        // A queue that is not at rest is brought there by the next call.
        let mut nudged = false;
        for _ in 0..2_000 {
            self.world.ticks += 1_000;
            self.world.now += 1_000;
            if !nudged {
                VIDEOS.iter().for_each(|video| _ = self.world.ask(video, nudge()));
                nudged = true;
            }
            self.world.turn();
            while self.world.read(false) || self.world.commit(false) {}
            self.world.sync_table(!self.keeps_log);
            self.world.drain();
            self.world.tick();
            self.listen();
            let mut watching = self.stage.hear(&mut self.world);
            for at in 0..self.stage.viewers() {
                watching |= self.stage.go_on(&mut self.world, at);
            }
            let is_idle = !watching && self.world.unanswered() == 0;
            if is_idle && self.world.is_at_rest() {
                return self.stage.check_current(&self.world);
            }
        }
        let unanswered = self.world.unanswered();
        panic!("not at rest after the faults stopped; {unanswered} calls are unanswered");
    }

    /// Every read of every video, none of which may be turned away.
    fn check_all(&mut self) {
        for (video, op) in self.workload.reads() {
            self.world.ask(&video, op);
            while self.world.read(false) || self.world.commit(false) {}
            self.world.turn();
            // Reading a queue may change it, and the next one needs its memory.
            self.world.sync_table(!self.keeps_log);
            self.world.tick();
        }
        assert_eq!(self.world.unanswered(), 0, "reads that were never answered");
        while let Some(news) = self.world.next_news() {
            if let News::Answered(_, asked, answer) = news {
                assert!(!is_turned_away(&answer), "{asked:?} is turned away: {answer:?}");
            }
        }
    }

    /// One bit of the log flips. What is read afterwards is right, or the
    /// damage is named; true if it was named.
    fn flip_and_start(&mut self) -> bool {
        let (disk, flip) = machine::flipped(&self.world.disk, &mut self.faults);
        self.world.note(flip);
        let table = self.world.table.crash(|_, _, unsynced| unsynced);
        self.stage.cut();
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

/// What an operator may have set.
fn setup(rng: &mut Rng) -> Setup {
    Setup {
        limit: *rng.pick(&[1, 2, 3, 5, 9]),
        scope: *rng.pick(&[Scope::Segment, Scope::Video]),
        reports: 2,
    }
}
