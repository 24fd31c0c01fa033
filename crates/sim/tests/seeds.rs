//! Seeds: the same one gives the same trace, all of them hold, and each rule
//! broken on purpose is found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tideline_sim::{Report, danmaku, history, metadata, streams};

/// How many seeds a test run covers; more with `TIDELINE_SIM_SEEDS`.
fn seeds(default: u64) -> u64 {
    std::env::var("TIDELINE_SIM_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// One after the other: a rule is broken for a thread, the hook for them all.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

type Product = fn(u64) -> Report;

fn holds(run: Product, seed: u64) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(seed))).is_ok()
}

fn the_trace_is_the_same(run: Product) {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1).trace, run(2).trace);
}

fn all_hold(run: Product, seeds: u64, name: &str) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let broken: Vec<u64> = (0..seeds).filter(|&seed| !holds(run, seed)).collect();
    let again: Vec<String> = broken
        .iter()
        .take(5)
        .map(|seed| format!("cargo run -p tideline-sim -- {name} {seed}"))
        .collect();
    assert!(broken.is_empty(), "{} seeds fail; to see: {}", broken.len(), again.join(" / "));
}

fn each_is_found<Rule: Copy + std::fmt::Debug>(
    run: Product,
    rules: &[Rule],
    set: fn(Option<Rule>),
) {
    let within = 300;
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // What fails here is meant to: its backtraces would hide the answer.
    std::panic::set_hook(Box::new(|_| ()));
    for &rule in rules {
        set(Some(rule));
        let found: Option<u64> = (0..within).find(|&seed| !holds(run, seed));
        set(None);
        if found.is_none() {
            _ = std::panic::take_hook();
        }
        assert!(found.is_some(), "{rule:?} is not found within {within} seeds");
        println!("{rule:?} is found by seed {}", found.unwrap_or_default());
    }
    _ = std::panic::take_hook();
}

#[test]
fn a_the_same_seed_gives_the_same_trace() {
    the_trace_is_the_same(history::run);
    the_trace_is_the_same(danmaku::run);
    the_trace_is_the_same(metadata::run);
    the_trace_is_the_same(streams::run);
}

#[test]
fn every_seed_of_history_holds() {
    all_hold(history::run, seeds(500), "history");
}

#[test]
fn every_seed_of_danmaku_holds() {
    all_hold(danmaku::run, seeds(1_000), "danmaku");
}

#[test]
fn each_broken_rule_of_history_is_found() {
    each_is_found(history::run, history::sabotage::Broken::ALL, history::sabotage::set);
}

#[test]
fn each_broken_rule_of_danmaku_is_found() {
    each_is_found(danmaku::run, danmaku::sabotage::Broken::ALL, danmaku::sabotage::set);
}

#[test]
fn every_seed_of_metadata_holds() {
    all_hold(metadata::run, seeds(500), "metadata");
}

#[test]
fn each_broken_rule_of_metadata_is_found() {
    each_is_found(metadata::run, metadata::sabotage::Broken::ALL, metadata::sabotage::set);
}

#[test]
fn every_seed_of_streams_holds() {
    all_hold(streams::run, seeds(300), "streams");
}

/// Those of the tree (a compaction that skips a delete, a node that outlives its
/// session, an epoch that is not checked) are broken with the metadata.
#[test]
fn each_broken_rule_of_streams_is_found() {
    use streams::{cache_sabotage, queue_sabotage, sabotage, tier_sabotage};
    each_is_found(streams::run, sabotage::Broken::ALL, sabotage::set);
    each_is_found(streams::run, queue_sabotage::Broken::ALL, queue_sabotage::set);
    each_is_found(streams::run, cache_sabotage::Broken::ALL, cache_sabotage::set);
    each_is_found(streams::run, tier_sabotage::Broken::ALL, tier_sabotage::set);
}

#[test]
fn ten_thousand_observers_of_one_subtree_are_told_every_change_once() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for seed in 0..seeds(3) {
        println!("to see it again: cargo run -p tideline-sim -- crowd {seed}");
        metadata::crowd(seed, 10_000);
    }
}

#[test]
fn a_crowd_finds_a_compaction_that_skips_a_delete() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::panic::set_hook(Box::new(|_| ()));
    metadata::sabotage::set(Some(metadata::sabotage::Broken::CompactionSkipsDelete));
    let found = (0..20).any(|seed| catch_unwind(|| metadata::crowd(seed, 50)).is_err());
    metadata::sabotage::set(None);
    _ = std::panic::take_hook();
    assert!(found && catch_unwind(|| metadata::crowd(0, 50)).is_ok());
}
