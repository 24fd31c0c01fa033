//! Power goes at every step, and the disk keeps whatever a disk may keep.

use tideline_store::disk::{Crash, FaultyDisk, KeepAll, Kept, LoseAll};

use crate::script::{Dice, Ledger, open, recover, run};

/// How many changing calls the whole script makes.
fn operations(seed: u64) -> u64 {
    let disk = FaultyDisk::new();
    let mut ledger = Ledger::default();
    run(&disk, &mut ledger, seed).expect("without faults the script ends");
    let operations = disk.operations();
    recover(&disk, &mut ledger, "no fault");
    operations
}

/// The disk and the ledger when power goes at call `at`.
fn cut(at: u64, seed: u64) -> (FaultyDisk, Ledger) {
    let (disk, mut ledger) = (FaultyDisk::new(), Ledger::default());
    disk.cut_power_at(at);
    assert!(run(&disk, &mut ledger, seed).is_none());
    (disk, ledger)
}

#[test]
fn nothing_synced_is_lost_and_nothing_erased_is_back_wherever_power_goes() {
    for at in 0..operations(1) {
        let (disk, ledger) = cut(at, 1);
        recover(&disk.crash(&mut LoseAll), &mut ledger.clone(), &format!("lose all at {at}"));
        recover(&disk.crash(&mut KeepAll), &mut ledger.clone(), &format!("keep all at {at}"));
        for seed in 0..6 {
            let image = disk.crash(&mut Dice(at << 8 | seed));
            recover(&image, &mut ledger.clone(), &format!("dice {seed} at {at}"));
        }
    }
}

#[test]
fn a_crash_while_recovering_is_recovered_from() {
    let all = operations(2);
    for at in (0..all).step_by(3) {
        let (disk, ledger) = cut(at, 2);
        for seed in 0..4 {
            let mut dice = Dice(at << 8 | seed);
            let image = disk.crash(&mut dice);
            let within = dice.roll(12);
            image.cut_power_at(within);
            drop(open(&image));
            let again = image.crash(&mut dice);
            let case = format!("dice {seed} at {at}, again at {within}");
            recover(&again, &mut ledger.clone(), &case);
        }
    }
}

#[test]
fn life_after_life_each_ended_by_a_crash_keeps_one_history() {
    for seed in 0..40 {
        let (mut disk, mut ledger, mut dice) = (FaultyDisk::new(), Ledger::default(), Dice(seed));
        for life in 0..5 {
            let already = disk.operations();
            disk.cut_power_at(already + dice.roll(250));
            run(&disk, &mut ledger, seed << 8 | life);
            disk = disk.crash(&mut dice);
            recover(&disk, &mut ledger, &format!("seed {seed}, life {life}"));
        }
    }
}

#[test]
fn what_was_served_after_a_restart_survives_the_next_power_loss() {
    for at in (0..operations(3)).step_by(5) {
        let (disk, mut ledger) = cut(at, 3);
        let image = disk.crash(&mut KeepAll);
        recover(&image, &mut ledger, &format!("keep all at {at}"));
        let lost = image.crash(&mut LoseAll);
        recover(&lost, &mut ledger, &format!("then lose all, at {at}"));
    }
}

/// Tears the last unsynced write at one byte, and loses or keeps the rest.
struct TornAt(usize, bool);

impl Crash for TornAt {
    fn write(&mut self, _: &std::path::Path, _: u64, _: usize) -> Kept {
        if self.1 { Kept::Prefix(self.0) } else { Kept::Suffix(self.0) }
    }
    fn entry(&mut self, _: &std::path::Path) -> bool {
        true
    }
}

#[test]
fn a_write_torn_at_any_byte_is_cut_to_its_last_whole_batch() {
    // The first calls: the manifest, the streams, the fences, the first rounds.
    for at in 0..operations(4).min(60) {
        let (disk, ledger) = cut(at, 4);
        for byte in 0..420 {
            for front in [true, false] {
                let image = disk.crash(&mut TornAt(byte, front));
                recover(&image, &mut ledger.clone(), &format!("torn at {byte} {front}, at {at}"));
            }
        }
    }
}
