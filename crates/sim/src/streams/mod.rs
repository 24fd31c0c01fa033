//! Streams: producers, the queue on its faulty disk, derived topics that change
//! under load, and who follows them, under every fault there is.
//!
//! | module | what |
//! |---|---|
//! | `world` | the queue on its machine, and one that was taken over and sleeps |
//! | `producers` | those who number their records, and their network |
//! | `line` | who follows, and the line between |
//! | `store` | a store that follows, with its place |
//! | `caches` | caches that follow, and are filled from the store |
//! | `operators` | what derived topics make of records |
//! | `oracle` | what the log says, and what follows from it |

mod caches;
mod line;
mod operators;
mod oracle;
mod producers;
pub mod sabotage;
mod store;
mod world;

use tideline_client::From;
pub use tideline_client::sabotage as cache_sabotage;
pub use tideline_queue::sabotage as queue_sabotage;
use tideline_store::StoreError;
pub use tideline_tier::sabotage as tier_sabotage;

use self::caches::Reader;
use self::line::Follower;
use self::oracle::PARTITIONS;
use self::producers::Producers;
use self::store::Store;
use self::world::World;
use crate::machine::Machine;
use crate::rng::Rng;
use crate::run::{self, Chance, OWN, Product, Report};

/// Runs one seed. Panics where something is not as it must be.
pub fn run(seed: u64) -> Report {
    run::run::<Streams>(seed)
}

struct Streams {
    world: World,
    producers: Producers,
    stores: [Store; 2],
    readers: Vec<Reader>,
    /// Who hands on what the host derives, and another host that derives it of
    /// the source by itself.
    others: Vec<Follower>,
    lines: Rng,
}

impl Product for Streams {
    const STEPS: usize = 500;
    const PAUSES: &'static [u64] = &[0, 1, 20, 700, 30_000, 600_000];

    fn new(seed: u64, _: &mut Chance) -> Self {
        let partitions = || 0..usize::from(PARTITIONS);
        let follow = |topic| {
            partitions().map(move |partition| Follower::new(topic, partition, From::Earliest))
        };
        let world = World::new();
        let reader = |n| Reader::new(n % usize::from(PARTITIONS), &world.oracle);
        Self {
            producers: Producers::new(seed),
            stores: [Store::new(), Store::new()],
            readers: (0..4).map(reader).collect(),
            others: follow("actions").chain(follow("rare")).collect(),
            lines: Rng::new(seed, "lines"),
            world,
        }
    }

    fn machine(&mut self) -> &mut Machine {
        &mut self.world.machine
    }

    fn act(&mut self, what: u64, chance: &mut Chance) {
        match what {
            0..14 => self.producers.say(),
            14..18 => self.producers.retry(),
            18 => self.producers.restart(),
            19..34 => {
                if let Some(request) = self.producers.arrives() {
                    let sleeper = chance.faults.once_in(8);
                    self.world.send(request, sleeper, &mut self.producers);
                }
            }
            34..44 => self.turn(),
            44..66 => self.follow().expect("a log that is not damaged is read"),
            66..76 => self.fill(),
            76 => self.store_restarts(&mut chance.faults),
            77..79 => self.stores[chance.schedule.below(2) as usize].sync(),
            79..81 => self.world.declare(&mut chance.schedule),
            81 => {
                self.everybody().into_iter().for_each(Follower::cut);
                self.world.take_over();
            }
            82..84 if !chance.keeps_log => self.world.free(&mut chance.schedule),
            82..OWN => self.world.look_up(&mut chance.schedule).expect("a log that is whole"),
            _ => unreachable!("the machine's own"),
        }
        self.world.hear().expect("what was just synced is read");
    }

    fn turn(&mut self) {
        self.world.turn().expect("what was just synced is read");
        for told in self.producers.answer(&mut self.world.oracle) {
            self.world.machine.note(told);
        }
    }

    fn tick(&mut self) {
        self.world.tick();
    }

    fn start(&mut self) -> Result<(), StoreError> {
        self.producers.cut();
        self.everybody().into_iter().for_each(Follower::cut);
        self.world.start()
    }

    /// Everybody is answered, and everybody gets to the end.
    fn rest(&mut self, _: &mut Chance) -> bool {
        self.world.sleeper_ends();
        let answered = self.producers.rest();
        while let Some(request) = self.producers.next() {
            self.world.send(request, false, &mut self.producers);
        }
        self.turn();
        let there = self.catch_up().expect("a log that is not damaged is read");
        answered && there
    }

    fn check(&mut self, _: &mut Chance) -> Result<(), StoreError> {
        self.world.check()?;
        let mut rounds = 0;
        while !self.catch_up()? {
            rounds += 1;
            assert!(rounds < 1_000, "somebody does not get to the end");
        }
        self.readers.iter_mut().for_each(|reader| reader.check_current(&self.world.oracle));
        Ok(())
    }
}

impl Streams {
    fn everybody(&mut self) -> Vec<&mut Follower> {
        let stores = self.stores.iter_mut().flat_map(|store| &mut store.followers);
        let readers = self.readers.iter_mut().map(|reader| &mut reader.follower);
        stores.chain(readers).chain(self.others.iter_mut()).collect()
    }

    /// Somebody's line moves.
    fn follow(&mut self) -> Result<(), StoreError> {
        let count = self.everybody().len() as u64;
        let who = self.lines.below(count) as usize;
        for _ in 0..1 + self.lines.below(3) {
            self.pull(who)?;
        }
        if self.lines.once_in(5) {
            let mut lines = self.lines.clone();
            self.everybody()[who].spoil(&mut lines);
            self.lines = lines;
        }
        self.take(who);
        Ok(())
    }

    fn pull(&mut self, who: usize) -> Result<(), StoreError> {
        let stores = self.stores.iter_mut().flat_map(|store| &mut store.followers);
        let readers = self.readers.iter_mut().map(|reader| &mut reader.follower);
        let mut everybody = stores.chain(readers).chain(self.others.iter_mut());
        everybody.nth(who).expect("one of them").pull(&self.world.host())
    }

    fn take(&mut self, who: usize) {
        let oracle = &self.world.oracle;
        let stores = self.stores.len() * usize::from(PARTITIONS);
        if who < stores {
            let (store, partition) = (who / usize::from(PARTITIONS), who % usize::from(PARTITIONS));
            let [first, second] = &mut self.stores;
            let (store, other) = if store == 0 { (first, second) } else { (second, first) };
            return store.take(partition, other, oracle);
        }
        if let Some(reader) = self.readers.get_mut(who - stores) {
            return reader.take(oracle);
        }
        let other = &mut self.others[who - stores - self.readers.len()];
        if other.stopped().is_some() {
            let at = oracle.place(other.partition, oracle.end(other.partition));
            return other.go_on(From::After(at));
        }
        if let Some(frame) = other.take(oracle)
            && other.topic == "actions"
        {
            self.world.derive_elsewhere(other.partition, &frame);
        }
    }

    fn fill(&mut self) {
        let who = self.lines.below(self.readers.len() as u64) as usize;
        let reader = &mut self.readers[who];
        match self.lines.below(3) {
            0 => reader.want(&mut self.lines),
            _ => reader.fill(&self.stores[who / 2], &self.world.oracle, &mut self.lines),
        }
    }

    fn store_restarts(&mut self, faults: &mut Rng) {
        let which = faults.below(2) as usize;
        self.stores[which].restart(&self.world.oracle, faults);
        self.world.machine.note(format!("store {which} restarts"));
    }

    /// Nothing goes wrong for a while. Whether everybody has got to the end.
    fn catch_up(&mut self) -> Result<bool, StoreError> {
        let ends = [0, 1].map(|partition| self.world.oracle.end(partition));
        for who in 0..self.everybody().len() {
            let follower = &mut self.everybody()[who];
            // A line that is silent for long is opened again.
            if follower.is_silent(ends[follower.partition]) {
                follower.cut();
            }
            for _ in 0..4 {
                self.pull(who)?;
                self.take(who);
            }
        }
        let mut idle = true;
        for (who, reader) in self.readers.iter_mut().enumerate() {
            idle &= reader.rest(&self.stores[who / 2], &self.world.oracle);
        }
        let behind = |follower: &&mut Follower| follower.stands() != ends[follower.partition];
        let who = |follower: &mut Follower| {
            (follower.topic, follower.partition, follower.stands(), follower.stopped().cloned())
        };
        let behind: Vec<_> = self.everybody().into_iter().filter(behind).map(who).collect();
        self.world.machine.note(format!("idle {idle}, behind {ends:?}: {behind:?}"));
        Ok(idle && behind.is_empty())
    }
}
