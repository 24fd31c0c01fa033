//! The same random calls to the HTTP face, over whole engines in memory, and
//! to the plain model: every count of every write and every read must agree.
//!
//! A seed decides a sequence. `TIDELINE_DIFF_SEED=7` runs that one alone,
//! `TIDELINE_DIFF_SEQUENCES=20000` runs so many.

#![allow(clippy::unwrap_used)]

#[path = "differential/pair.rs"]
mod pair;
#[path = "differential/reads.rs"]
mod reads;
#[path = "differential/site.rs"]
mod site;
#[path = "differential/writes.rs"]
mod writes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pair::{Pair, Seen, WHAT};
use site::Site;

/// Sequences in a test run.
const SEQUENCES: u64 = 2_000;
/// Sequences that one site sees, each with users and a time of its own.
const PER_SITE: u64 = 100;
/// Sites at once.
const AT_ONCE: usize = 2;
/// How much of a failed sequence is shown.
const SHOWN_CALLS: usize = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs the sequences `seeds` on one site; fails with the first seed that does.
fn run(seeds: std::ops::Range<u64>) -> Result<Seen, u64> {
    let mut site = Site::new();
    let mut seen = Seen::default();
    for seed in seeds {
        site.begin(seed % PER_SITE);
        let sequence = AssertUnwindSafe(|| Pair::new(&mut site, seed).run());
        let Ok(more) = catch_unwind(sequence) else {
            let calls = site.calls();
            eprintln!("the last calls of seed {seed}:");
            calls.iter().rev().take(SHOWN_CALLS).rev().for_each(|call| eprintln!("  {call}"));
            return Err(seed);
        };
        seen.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    site.close();
    Ok(seen)
}

#[test]
fn the_face_and_the_plain_model_agree_on_every_count_and_every_read() {
    if let Some(seed) = number("TIDELINE_DIFF_SEED") {
        let seen = run(seed..seed + 1);
        assert!(seen.is_ok(), "the seed fails");
        return;
    }
    let sequences = number("TIDELINE_DIFF_SEQUENCES").unwrap_or(SEQUENCES);
    let (next, failed) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let all = Mutex::new(Seen::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(PER_SITE, Ordering::Relaxed);
                    if from >= sequences || !failed.lock().unwrap().is_empty() {
                        return;
                    }
                    match run(from..sequences.min(from + PER_SITE)) {
                        Err(seed) => failed.lock().unwrap().push(seed),
                        Ok(seen) => {
                            let mut all = all.lock().unwrap();
                            all.iter_mut().zip(seen).for_each(|(sum, more)| *sum += more);
                        }
                    }
                }
            });
        }
    });
    let again: Vec<String> = failed
        .into_inner()
        .unwrap()
        .iter()
        .map(|seed| {
            format!("TIDELINE_DIFF_SEED={seed} cargo test -p tideline-gateway --test differential")
        })
        .collect();
    assert!(again.is_empty(), "to see it again: {}", again.join(" / "));
    let all = all.into_inner().unwrap();
    println!("{WHAT:?}: {all:?}");
    // Agreement about nothing would prove nothing.
    assert!(sequences < SEQUENCES || all.iter().all(|count| *count >= SEQUENCES / 20));
}
