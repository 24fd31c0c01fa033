//! The cache beside the topic and a store that follows it, in any order.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;

fn set(text: &str) -> Change {
    Change::Set(text.into())
}

fn filled(text: &str) -> Option<Filled> {
    Some(Filled::Bytes(text.into()))
}

/// Queue fault 28: a fill of 5 arrives after the push of 6, or the deletion 7.
#[test]
fn a_fill_that_comes_late_does_not_bring_back_what_was_replaced() {
    let mut cache = Cache::new(Seq(5), 1 << 20);
    let late = cache.begin(b"k");
    cache.push(Seq(6), 0, b"k", &set("new"));
    cache.finish(late, filled("old"), Seq(5)).unwrap();
    assert_eq!(cache.get(b"k"), Found::Value(b"new"));
    let late = cache.begin(b"k");
    cache.push(Seq(7), 0, b"k", &Change::Delete);
    cache.finish(late, filled("old"), Seq(6)).unwrap();
    assert_eq!(cache.get(b"k"), Found::Nothing);
}

#[test]
fn a_store_that_is_behind_cannot_fill_what_was_pushed_before() {
    let mut cache = Cache::new(Seq(5), 1 << 20);
    cache.push(Seq(6), 0, b"k", &set("new"));
    let early = cache.begin(b"k");
    let refused = cache.finish(early, filled("old"), Seq(5));
    assert_eq!(refused, Err(Refused::Behind { applied: Seq(5), stood: Seq(6) }));
    assert_eq!(cache.get(b"k"), Found::Unknown);
}

#[test]
fn what_was_pushed_during_a_fill_is_counted_once() {
    let mut cache = Cache::new(Seq(0), 1 << 20);
    let filling = cache.begin(b"n");
    for seq in 1..=4 {
        cache.push(Seq(seq), 0, b"n", &Change::Add(1));
    }
    cache.push(Seq(4), 1, b"n", &Change::Add(10));
    // The store had applied two of them.
    cache.finish(filling, Some(Filled::Counter(102)), Seq(2)).unwrap();
    assert_eq!(cache.get(b"n"), Found::Counter(114));
    cache.push(Seq(4), 1, b"n", &Change::Add(10));
    assert_eq!(cache.get(b"n"), Found::Counter(114), "a push that comes twice");
}

#[test]
fn memory_is_bounded_and_what_was_found_last_stays() {
    let mut cache = Cache::new(Seq(0), 20_000);
    for n in 0..1_000_u32 {
        let filling = cache.begin(&n.to_be_bytes());
        cache.finish(filling, filled("value"), Seq(0)).unwrap();
        assert_eq!(cache.get(&0_u32.to_be_bytes()), Found::Value(b"value"));
    }
    assert!(cache.bytes() <= 20_000 && cache.len() < 200);
    assert_eq!(cache.get(&1_u32.to_be_bytes()), Found::Unknown);
    let filling = cache.begin(b"busy");
    for seq in 1..200 {
        cache.push(Seq(seq), 0, b"busy", &Change::Add(1));
    }
    assert_eq!(cache.finish(filling, None, Seq(300)), Err(Refused::Busy));
    assert!(cache.pending.is_empty() && cache.begun.is_empty());
}

#[test]
fn a_cache_of_hot_keys_holds_them_live_and_nothing_else() {
    let mut cache = Cache::of_hot_keys(Seq(5), 1 << 20);
    cache.load(b"a", Some(Filled::Counter(7)));
    cache.push(Seq(6), 0, b"a", &Change::Add(1));
    assert_eq!(cache.get(b"a"), Found::Counter(8));
    let filling = cache.begin(b"b");
    assert_eq!(cache.finish(filling, filled("b"), Seq(6)), Err(Refused::NotHot));
    // It enters while it is asked for, and the answer is older.
    let filling = cache.begin(b"b");
    cache.push(Seq(7), 0, b"b", &Change::Enter(filled("b7")));
    assert_eq!(cache.finish(filling, filled("b6"), Seq(6)), Ok(()));
    assert_eq!(cache.get(b"b"), Found::Value(b"b7"));
    cache.push(Seq(8), 0, b"a", &Change::Leave);
    assert_eq!(cache.get(b"a"), Found::Unknown);
    assert_eq!(cache.hot_keys(), 1);
}

#[test]
fn a_fill_from_before_a_new_beginning_is_not_taken() {
    let mut cache = Cache::of_hot_keys(Seq(5), 1 << 20);
    cache.load(b"a", Some(Filled::Counter(7)));
    let filling = cache.begin(b"a");
    cache.begin_anew(Seq(3));
    cache.load(b"a", Some(Filled::Counter(4)));
    assert_eq!(cache.finish(filling, Some(Filled::Counter(9)), Seq(9)), Err(Refused::Anew));
    assert_eq!(cache.get(b"a"), Found::Counter(4));
    assert_eq!(cache.covered(), Seq(3));
}

/// What happens around the cache, in any order.
#[derive(Clone, Debug)]
enum Step {
    /// A change is logged.
    Log(u8, Change),
    /// The store applies so many more.
    Store(usize),
    /// So many more are pushed, and then covered, or not yet.
    Push(usize, bool),
    /// A key is asked for.
    Begin(u8),
    /// The store answers one that was asked.
    Read(usize),
    /// An answer arrives.
    Finish(usize),
    /// A key is hot after the next change that is logged, or is no more.
    Turn(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        (0_u8..4).prop_map(|n| Change::Set(vec![n])),
        Just(Change::Delete),
        (1_i64..4).prop_map(Change::Add),
    ];
    prop_oneof![
        4 => (0_u8..3, change).prop_map(|(key, change)| Step::Log(key, change)),
        3 => (1_usize..4).prop_map(Step::Store),
        3 => (1_usize..4, any::<bool>()).prop_map(|(n, all)| Step::Push(n, all)),
        3 => (0_u8..3).prop_map(Step::Begin),
        3 => (0_usize..4).prop_map(Step::Read),
        3 => (0_usize..4).prop_map(Step::Finish),
        1 => (0_u8..3).prop_map(Step::Turn),
    ]
}

/// The state of a key after the first `n` changes.
fn state(log: &[(u8, Change)], n: usize, key: u8) -> Option<Filled> {
    let mut value = None;
    for (_, change) in log[..n].iter().filter(|(own, _)| *own == key) {
        value = match (change, value) {
            (Change::Set(bytes), _) => Some(Filled::Bytes(bytes.clone())),
            (Change::Delete, _) => None,
            (Change::Add(by), Some(Filled::Counter(n))) => Some(Filled::Counter(n + by)),
            (Change::Add(by), None) => Some(Filled::Counter(*by)),
            // A store that says what adding to bytes makes.
            (Change::Add(by), Some(Filled::Bytes(_))) => Some(Filled::Counter(*by)),
            (_, value) => value,
        };
    }
    value
}

fn check(broken: Option<Rule>, steps: &[Step]) -> Result<(), TestCaseError> {
    run_steps(Cache::new(Seq(0), 700), broken, steps, false)?;
    run_steps(Cache::of_hot_keys(Seq(0), 700), broken, steps, true)
}

/// Which key becomes hot, or is hot no more, after so many changes.
type Turns = Vec<(usize, u8, bool)>;

fn push_hot(cache: &mut Cache, log: &[(u8, Change)], turns: &Turns, n: usize) {
    let before = |key: u8| turns.iter().rfind(|t| t.0 < n && t.1 == key).is_some_and(|t| t.2);
    let (key, change) = &log[n - 1];
    if before(*key) {
        cache.push(Seq(n as u64), 0, &[*key], change);
    }
    for (sub, (_, key, hot)) in (1..).zip(turns.iter().filter(|turn| turn.0 == n)) {
        let enter = Change::Enter(state(log, n, *key));
        let change = if *hot { enter } else { Change::Leave };
        cache.push(Seq(n as u64), sub, &[*key], &change);
    }
}

fn run_steps(
    mut cache: Cache,
    broken: Option<Rule>,
    steps: &[Step],
    of_hot: bool,
) -> Result<(), TestCaseError> {
    let mut turns = Turns::new();
    cache.broken = broken;
    let (mut log, mut stored, mut pushed) = (Vec::new(), 0, 0);
    let (mut asked, mut answers) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Log(key, change) => log.push((*key, change.clone())),
            Step::Store(n) => stored = (stored + n).min(log.len()),
            Step::Push(n, all) => {
                for _ in 0..*n {
                    let Some((key, change)) = log.get(pushed) else { break };
                    pushed += 1;
                    if of_hot {
                        push_hot(&mut cache, &log, &turns, pushed);
                    } else {
                        cache.push(Seq(pushed as u64), 0, &[*key], change);
                    }
                }
                if *all {
                    cache.advance(Seq(pushed as u64));
                }
            }
            Step::Begin(key) => asked.push((*key, cache.begin(&[*key]))),
            Step::Read(at) if *at < asked.len() => {
                let (key, filling) = asked.remove(*at);
                answers.push((filling, state(&log, stored, key), stored));
            }
            Step::Finish(at) if *at < answers.len() => {
                let (filling, value, applied) = answers.remove(*at);
                let _ = cache.finish(filling, value, Seq(applied as u64));
            }
            Step::Turn(key) => {
                let hot = turns.iter().rfind(|turn| turn.1 == *key).is_some_and(|t| t.2);
                // Only what is not logged yet is still open.
                turns.push((log.len() + 1, *key, !hot));
            }
            Step::Read(_) | Step::Finish(_) => {}
        }
        for key in 0..3 {
            let seq = cache.seq_of(&[key]).map_or(0, |seq| seq.0 as usize);
            let expected = state(&log, pushed.max(seq), key);
            let is = match cache.get(&[key]) {
                Found::Unknown => continue,
                Found::Nothing => None,
                Found::Value(bytes) => Some(Filled::Bytes(bytes.to_vec())),
                Found::Counter(n) => Some(Filled::Counter(n)),
            };
            prop_assert_eq!(is, expected, "key {} at {}", key, pushed);
        }
    }
    Ok(())
}

fn run(broken: Option<Rule>, cases: u32) -> bool {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let steps = prop::collection::vec(step(), 1..60);
    runner.run(&steps, |steps| check(broken, &steps)).is_ok()
}

#[test]
fn what_is_found_is_what_the_topic_says_whatever_comes_when() {
    assert!(run(None, 2_000));
}

#[test]
fn a_broken_rule_is_found() {
    for rule in [Rule::FillIsNotBehind, Rule::DeletionStays, Rule::OnlyHotIsKept] {
        assert!(!run(Some(rule), 2_000), "{rule:?}");
    }
}
