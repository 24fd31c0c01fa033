//! History: marks of a few users under every fault there is.
//!
//! | module | what |
//! |---|---|
//! | `world` | the product on its machine: owners, driven by hand |
//! | `workload` | what its clients do |
//! | `oracle` | what must be so after it, and after a crash |
//! | `expect` | what an answer must say |
//!
//! The model that it is held against is [`tideline_harness::model`].

mod expect;
mod oracle;
mod workload;
mod world;

use std::sync::Arc;

use jiff::tz::TimeZone;
use tideline_harness::model::{Config, Model};
use tideline_history::kinds::{Kind, Kinds};
use tideline_history::owner;
use tideline_history::rules::Rules;
pub use tideline_history::sabotage;
use tideline_store::StoreError;

use self::workload::{USERS, Workload, configs};
use self::world::World;
use crate::machine::Machine;
use crate::run::{self, Chance, OWN, Product, Report};

/// Runs one seed. Panics where something is not as it must be.
pub fn run(seed: u64) -> Report {
    run::run::<History>(seed)
}

struct History {
    world: World,
    workload: Workload,
}

impl Product for History {
    const STEPS: usize = 600;
    const PAUSES: &'static [u64] = &[0, 1, 20, 700, 30_000, 600_000, 40_000_000];

    fn new(seed: u64, chance: &mut Chance) -> Self {
        let configs = configs();
        let kind = |(name, config): (&String, &Config)| Kind {
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
        let schedule = &mut chance.schedule;
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
        Self { world: World::new(Arc::new(rules), options, &model), workload: Workload::new(seed) }
    }

    fn machine(&mut self) -> &mut Machine {
        &mut self.world.machine
    }

    fn act(&mut self, what: u64, chance: &mut Chance) {
        let now = self.world.machine.now;
        match what {
            0..30 => {
                let marks = self.workload.marks(now);
                self.world.machine.note(format!("write {marks:?}"));
                self.world.write(&marks);
            }
            30..38 => {
                let user = self.workload.user();
                let action = self.workload.change(now);
                self.world.machine.note(format!("change {user} {action:?}"));
                self.world.change(&user, action);
            }
            38..46 => {
                let (user, which) = (self.workload.user(), chance.schedule.below(6));
                self.world.read(&user, which);
            }
            46..62 => self.world.turn(),
            62..74 => self.world.load(chance.faults.once_in(40)),
            74..82 => self.world.commit(chance.faults.once_in(30)),
            82..OWN => self.world.sync_table(!chance.keeps_log),
            _ => unreachable!("the machine's own"),
        }
    }

    fn turn(&mut self) {
        self.world.turn();
    }

    fn tick(&mut self) {
        self.world.tick();
    }

    fn start(&mut self) -> Result<(), StoreError> {
        self.world.start()
    }

    fn rest(&mut self, chance: &mut Chance) -> bool {
        self.world.drain();
        self.world.turn();
        while !self.world.loads.is_empty() {
            self.world.load(false);
        }
        while !self.world.flushes.is_empty() {
            self.world.commit(false);
        }
        self.world.sync_table(!chance.keeps_log);
        self.world.tick();
        self.world.is_at_rest() && self.world.unanswered() == 0
    }

    /// Every read of every user.
    fn check(&mut self, _: &mut Chance) -> Result<(), StoreError> {
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
        Ok(())
    }

    fn check_log(&mut self) {
        self.world.check_firsts();
    }
}
