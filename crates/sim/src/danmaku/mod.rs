//! Danmaku: the comments of a few videos under every fault there is.
//!
//! | module | what |
//! |---|---|
//! | `world` | the product on its machine: owners, driven by hand |
//! | `workload` | what callers do |
//! | `stage` | who watches: ready bodies, rooms, screens |
//! | `plain` | a video as one would write it down, and what may happen to it |
//! | `oracle` | the log against that, and each answer against both |

mod oracle;
mod plain;
mod stage;
mod workload;
mod world;

use tideline_danmaku::ask::Answer;
use tideline_danmaku::owner::Bounds;
pub use tideline_danmaku::sabotage;
use tideline_danmaku::top::Scope;
use tideline_store::StoreError;

use self::plain::Setup;
use self::stage::Stage;
use self::workload::{VIDEOS, Workload, nudge};
use self::world::{News, World, is_turned_away};
use crate::machine::{Machine, START};
use crate::rng::Rng;
use crate::run::{self, Chance, OWN, Product, Report};

/// Runs one seed. Panics where something is not as it must be.
pub fn run(seed: u64) -> Report {
    run::run::<Danmaku>(seed)
}

struct Danmaku {
    world: World,
    workload: Workload,
    stage: Stage,
    /// A queue that is not at rest is brought there by the next call.
    nudged: bool,
}

impl Product for Danmaku {
    const STEPS: usize = 400;
    const PAUSES: &'static [u64] = &[0, 1, 20, 700, 30_000, 600_000];

    fn new(seed: u64, chance: &mut Chance) -> Self {
        let schedule = &mut chance.schedule;
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
        Self {
            world: World::new(setup(schedule), bounds),
            workload: Workload::new(seed, START),
            stage: Stage::default(),
            nudged: false,
        }
    }

    fn machine(&mut self) -> &mut Machine {
        &mut self.world.machine
    }

    fn act(&mut self, what: u64, chance: &mut Chance) {
        let call = match what {
            0..22 => Some(self.workload.post()),
            22..31 => self.workload.about(),
            31..33 => Some(self.workload.set()),
            33 => Some(self.workload.erase()),
            34..36 => Some(self.workload.import()),
            36..41 => Some(self.workload.read()),
            _ => {
                self.work(what, chance);
                None
            }
        };
        if let Some((video, op)) = call {
            self.world.ask(&video, op);
        }
        self.listen();
    }

    fn turn(&mut self) {
        self.world.turn();
        self.listen();
    }

    fn tick(&mut self) {
        self.world.tick();
        self.listen();
    }

    /// Whoever starts the machine again may have set another limit.
    fn before_crash(&mut self, chance: &mut Chance) {
        if chance.faults.once_in(2) {
            self.world.setup = setup(&mut chance.faults);
        }
        let setup = self.world.setup;
        self.world.machine.note(format!("{setup:?}"));
    }

    fn start(&mut self) -> Result<(), StoreError> {
        self.stage.cut();
        self.world.start()
    }

    /// Everybody is answered, and every screen shows what there is.
    fn rest(&mut self, chance: &mut Chance) -> bool {
        if !self.nudged {
            VIDEOS.iter().for_each(|video| _ = self.world.ask(video, nudge()));
            self.nudged = true;
        }
        self.world.turn();
        while self.world.read(false) || self.world.commit(false) {}
        self.world.sync_table(!chance.keeps_log);
        self.world.drain();
        self.world.tick();
        self.listen();
        let mut watching = self.stage.hear(&mut self.world);
        for at in 0..self.stage.viewers() {
            watching |= self.stage.go_on(&mut self.world, at);
        }
        let is_idle = !watching && self.world.unanswered() == 0;
        let rests = is_idle && self.world.is_at_rest();
        if rests {
            self.stage.check_current(&self.world);
        }
        rests
    }

    /// Every read of every video, none of which may be turned away.
    fn check(&mut self, chance: &mut Chance) -> Result<(), StoreError> {
        for (video, op) in self.workload.reads() {
            self.world.ask(&video, op);
            while self.world.read(false) || self.world.commit(false) {}
            self.world.turn();
            // Reading a queue may change it, and the next one needs its memory.
            self.world.sync_table(!chance.keeps_log);
            self.world.tick();
        }
        assert_eq!(self.world.unanswered(), 0, "reads that were never answered");
        while let Some(news) = self.world.next_news() {
            if let News::Answered(_, asked, answer) = news {
                assert!(!is_turned_away(&answer), "{asked:?} is turned away: {answer:?}");
            }
        }
        Ok(())
    }
}

impl Danmaku {
    /// What the product's own threads do, and who watches.
    fn work(&mut self, what: u64, chance: &mut Chance) {
        match what {
            41..51 => self.watch(&mut chance.schedule),
            51..64 => self.world.turn(),
            64..76 => _ = self.world.read(chance.faults.once_in(60)),
            76..82 => _ = self.world.commit(chance.faults.once_in(30)),
            82..86 => self.world.sync_table(!chance.keeps_log),
            // Several things before anybody listens.
            86..OWN => (0..4).for_each(|_| _ = self.world.read(false)),
            _ => unreachable!("the machine's own, or a call"),
        }
    }

    /// Somebody watches, or a body is read.
    fn watch(&mut self, schedule: &mut Rng) {
        match schedule.below(10) {
            0 if self.stage.viewers() < 6 => {
                let video = self.workload.video();
                let sets: [&[u32]; 4] = [&[1], &[1, 2], &[3, 1], &[2]];
                let segments = sets[schedule.below(4) as usize];
                self.world.machine.note(format!("open {video} {segments:?}"));
                self.stage.open(&video, segments);
            }
            0..3 => {
                let video = self.workload.video();
                let (segment, format) = (1 + schedule.below(3), schedule.below(3));
                self.stage.fetch(&mut self.world, &video, segment as u32, format as usize);
            }
            3..6 => _ = self.stage.hear(&mut self.world),
            _ if self.stage.viewers() > 0 => {
                let at = schedule.below(self.stage.viewers() as u64) as usize;
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
}

/// What an operator may have set.
fn setup(rng: &mut Rng) -> Setup {
    Setup {
        limit: *rng.pick(&[1, 2, 3, 5, 9]),
        scope: *rng.pick(&[Scope::Segment, Scope::Video]),
        reports: 2,
    }
}
