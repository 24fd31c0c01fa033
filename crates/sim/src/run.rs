//! One seed of a product: what happens next, what goes wrong, and the quiet
//! after it in which everything must come to rest.
//!
//! A product brings what its clients and its own threads do, and what must be
//! so; the machine under it, and its faults, are the same for all.

use tideline_store::StoreError;
use tideline_store::disk::{Crash, KeepAll};

use crate::machine::{Machine, Power, flipped, heal};
use crate::rng::Rng;

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

/// What happens next, and what goes wrong, each from numbers of its own.
pub(crate) struct Chance {
    pub(crate) schedule: Rng,
    pub(crate) faults: Rng,
    /// The log is never freed, so that all of it can be checked.
    pub(crate) keeps_log: bool,
}

/// What is simulated: a product on a machine, who uses it, and its oracle.
pub(crate) trait Product: Sized {
    /// Things that happen before the faults stop.
    const STEPS: usize;
    /// For how long nothing happens at a time, in ms.
    const PAUSES: &'static [u64];

    /// The product on an empty machine, as the schedule has it set.
    fn new(seed: u64, chance: &mut Chance) -> Self;

    /// The machine under it.
    fn machine(&mut self) -> &mut Machine;

    /// One thing happens: `what` is even in `0..`[`OWN`].
    fn act(&mut self, what: u64, chance: &mut Chance);

    /// The journal writes and syncs what waits, and is heard.
    fn turn(&mut self);

    /// Time has passed.
    fn tick(&mut self);

    /// Power goes in a moment; what is set may be another after it.
    fn before_crash(&mut self, _: &mut Chance) {}

    /// The machine was started again: owners are made as the driver makes them.
    fn start(&mut self) -> Result<(), StoreError>;

    /// Faults have stopped. Does what there is to do, once; whether all has
    /// come to rest.
    fn rest(&mut self, chance: &mut Chance) -> bool;

    /// Everything is read, and must be right, or is said to be damaged.
    fn check(&mut self, chance: &mut Chance) -> Result<(), StoreError>;

    /// All that ever happened is still in the log, and must be right.
    fn check_log(&mut self) {}
}

/// Of a hundred things that happen, these are the product's own.
pub(crate) const OWN: u64 = 87;
/// Rounds after which everything must have come to rest.
const ROUNDS_MAX: usize = 2_000;

/// Runs one seed. Panics where something is not as it must be.
pub(crate) fn run<P: Product>(seed: u64) -> Report {
    let mut run = Run::<P>::new(seed);
    for _ in 0..P::STEPS {
        run.step();
    }
    run.come_to_rest();
    run.check();
    if run.chance.keeps_log {
        run.product.check_log();
    }
    run.start_again(&mut KeepAll, usize::MAX);
    run.check();
    let damaged = run.flips && run.flip_and_start();
    let machine = run.product.machine();
    let (steps, trace) = machine.trace();
    Report { trace, steps, starts: machine.starts, damaged }
}

struct Run<P> {
    product: P,
    chance: Chance,
    /// Ends with a flipped bit.
    flips: bool,
}

impl<P: Product> Run<P> {
    fn new(seed: u64) -> Self {
        let mut schedule = Rng::new(seed, "schedule");
        let keeps_log = schedule.once_in(2);
        let flips = schedule.once_in(4);
        let mut chance = Chance { schedule, faults: Rng::new(seed, "faults"), keeps_log };
        Self { product: P::new(seed, &mut chance), chance, flips }
    }

    /// One thing happens.
    fn step(&mut self) {
        if self.product.machine().failed {
            return self.crash();
        }
        match self.chance.schedule.below(100) {
            what @ 0..OWN => self.product.act(what, &mut self.chance),
            OWN..95 => self.pass_time(),
            95..97 => {
                self.product.machine().hurt(&mut self.chance.faults);
                self.product.turn();
                heal(&self.product.machine().disk);
            }
            97 => _ = self.product.machine().journal.mark(),
            98 => {
                self.product.machine().fill();
                self.product.turn();
            }
            _ => self.crash(),
        }
    }

    fn pass_time(&mut self) {
        let ms = *self.chance.schedule.pick(P::PAUSES);
        let hour = 3_600_000;
        let jumps = self.chance.faults.once_in(8);
        let jump = if jumps { *self.chance.faults.pick(&[-hour, hour]) } else { 0 };
        self.product.machine().pass(ms, jump);
        self.product.tick();
    }

    /// Power goes: the disk and the table keep what they may keep.
    fn crash(&mut self) {
        let mut power = Power(Rng::new(self.chance.faults.next(), "power"));
        let keep = self.chance.faults.below(4) as usize;
        self.product.machine().note("crash");
        self.product.before_crash(&mut self.chance);
        self.start_again(&mut power, keep);
    }

    fn start_again(&mut self, crash: &mut dyn Crash, keep: usize) {
        let machine = self.product.machine();
        let disk = machine.disk.crash(crash);
        let table = machine.table.crash(|_, _, unsynced| keep.min(unsynced));
        machine.starts += 1;
        let restarted = machine.restart(disk, table).and_then(|()| self.product.start());
        if let Err(error) = restarted {
            panic!("a machine without a broken disk does not start: {error}");
        }
    }

    /// Faults stop; everything must come to rest and everybody be answered.
    fn come_to_rest(&mut self) {
        if self.product.machine().failed {
            self.crash();
        }
        for _ in 0..ROUNDS_MAX {
            self.product.machine().pass(1_000, 0);
            if self.product.rest(&mut self.chance) {
                return;
            }
        }
        panic!("not at rest after the faults stopped");
    }

    fn check(&mut self) {
        let checked = self.product.check(&mut self.chance);
        checked.expect("a log that is not damaged is read");
    }

    /// One bit of the log flips. What is read afterwards is right, or the
    /// damage is named; true if it was named.
    fn flip_and_start(&mut self) -> bool {
        let machine = self.product.machine();
        let (disk, flip) = flipped(&machine.disk, &mut self.chance.faults);
        machine.note(flip);
        let table = machine.table.crash(|_, _, unsynced| unsynced);
        let restarted = machine.restart(disk, table).and_then(|()| self.product.start());
        match restarted.and_then(|()| self.product.check(&mut self.chance)) {
            Ok(()) => false,
            Err(StoreError::Damaged { .. } | StoreError::Version { .. }) => true,
            Err(other) => panic!("a flipped bit is not named as damage: {other}"),
        }
    }
}
