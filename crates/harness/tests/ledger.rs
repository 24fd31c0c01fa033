//! The ledger, tried on servers that are right and on servers that lie.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tideline_harness::ledger::{
    Caps, Found, Ledger, Lie, Load, Mark, Op, Person, Step, Tally, Way, caps,
};
use tideline_harness::rng::Rng;

/// What a server may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// A crash loses the last acknowledged change of a user.
    LosesAcknowledged,
    /// A crash forgets deletes: rows that come late are taken.
    ForgetsBlocks,
    /// A crash keeps a later change without an earlier one.
    KeepsOutOfOrder,
    /// A first is granted twice after a crash.
    FirstTwice,
    /// Something that nobody sent.
    Invents,
}

/// A user of a pretended server: the state, and how it came to be.
#[derive(Clone, Default)]
struct User {
    steps: Vec<Step>,
    /// How many of the steps survive a crash.
    durable: usize,
    firsts: Vec<(String, String)>,
}

impl User {
    fn state(&self) -> Person {
        let mut person = Person::default();
        for step in &self.steps {
            person.apply(step, &caps());
        }
        person
    }
}

struct Server {
    users: BTreeMap<String, User>,
    flaw: Flaw,
    rng: Rng,
}

impl Server {
    fn take(&mut self, op: &Op) -> Tally {
        // The counts of an answer come from a ledger of its own.
        let mut counted = Tally::default();
        for (name, step) in op.steps() {
            let user = self.users.entry(name.clone()).or_default();
            let mut person = user.state();
            let became = person.apply(&step, &caps());
            use tideline_harness::ledger::Became;
            match became {
                Became::Accepted(first) => {
                    counted.accepted += 1;
                    if let (true, Step::Mark(mark, _)) = (first, &step) {
                        counted.firsts.insert((name.clone(), mark.kind.clone()));
                        user.firsts.push((mark.kind.clone(), mark.id.clone()));
                    }
                }
                Became::Stale => counted.stale += 1,
                Became::Paused => counted.paused += 1,
                Became::Duplicate => counted.duplicate += 1,
                Became::Deleted(rows) => counted.deleted += rows,
                Became::Done => (),
            }
            user.steps.push(step);
            if !op.is_fast() {
                user.durable = user.steps.len();
            }
        }
        counted
    }

    fn crash(&mut self, open: Option<&Op>) {
        for (name, step) in open.map(Op::steps).unwrap_or_default() {
            self.users.entry(name).or_default().steps.push(step);
        }
        let flaw = self.flaw;
        for user in self.users.values_mut() {
            let open = user.steps.len() - user.durable;
            let kept = user.durable + self.rng.below(open as u64 + 1) as usize;
            user.steps.truncate(kept);
            match flaw {
                Flaw::LosesAcknowledged if user.durable == kept => {
                    user.steps.pop();
                }
                Flaw::ForgetsBlocks => user.steps.retain(|step| matches!(step, Step::Mark(..))),
                Flaw::KeepsOutOfOrder if kept > 1 => {
                    user.steps.remove(kept - 2);
                }
                _ => (),
            }
            user.durable = user.steps.len();
            let state = user.state();
            user.firsts.retain(|(kind, id)| state.firsts().get(kind) == Some(id));
            let known: Vec<_> = user.firsts.iter().map(|(kind, _)| kind.clone()).collect();
            let missing = state.firsts().iter().filter(|(kind, _)| !known.contains(kind));
            user.firsts.extend(missing.map(|(kind, id)| (kind.clone(), id.clone())));
            if flaw == Flaw::FirstTwice && !user.firsts.is_empty() {
                user.firsts.push(user.firsts[0].clone());
            }
        }
    }

    fn found(&self, name: &str) -> Found {
        let user = self.users.get(name).cloned().unwrap_or_default();
        let state = user.state();
        let mut list = state.list();
        if self.flaw == Flaw::Invents
            && let Some(row) = list.first_mut()
        {
            row.plays += 1;
        }
        let (unfinished, recording) = (state.unfinished(), state.recording());
        Found { list, unfinished, recording, firsts: Some(user.firsts) }
    }
}

/// One connection, a few crashes; the first lie that is told, if any.
fn run(seed: u64, flaw: Flaw) -> Result<(), Lie> {
    let mut load = Load::new(seed, 0, 3);
    let mut server = Server { users: BTreeMap::new(), flaw, rng: Rng::new(seed).fork(99) };
    let mut ledger = Ledger::new(caps());
    let mut rng = Rng::new(seed).fork(98);
    let mut now = 1_800_000_000_000;
    let users = load.users().to_vec();
    for user in &users {
        ledger.know(user);
    }
    for _ in 0..4 {
        for _ in 0..rng.below(25) {
            now += 2 + rng.below(5) as i64;
            let op = load.next(now);
            ledger.sent(op.clone());
            let tally = server.take(&op);
            ledger.answered(Some(&tally))?;
            if rng.chance(100) {
                for user in &users {
                    ledger.read(user, &server.found(user))?;
                }
            }
        }
        now += 10;
        let open = rng.chance(800).then(|| load.next(now));
        if let Some(op) = &open {
            ledger.sent(op.clone());
        }
        server.crash(open.as_ref());
        let lost = ledger.crashed();
        assert_eq!(lost, open);
        for user in &users {
            ledger.read(user, &server.found(user))?;
        }
        if let Some(op) = lost.filter(Op::can_be_retried) {
            ledger.sent(op.clone());
            let tally = server.take(&op);
            ledger.answered(Some(&tally))?;
        }
    }
    Ok(())
}

#[test]
fn a_right_server_is_never_called_a_liar() {
    for seed in 0..300 {
        if let Err(Lie(what)) = run(seed, Flaw::None) {
            panic!("seed {seed}: {what}");
        }
    }
}

#[test]
fn each_kind_of_lie_is_found() {
    for flaw in [
        Flaw::LosesAcknowledged,
        Flaw::ForgetsBlocks,
        Flaw::KeepsOutOfOrder,
        Flaw::FirstTwice,
        Flaw::Invents,
    ] {
        let found = (0..50).filter(|&seed| run(seed, flaw).is_err()).count();
        assert!(found > 10, "{flaw:?} was found by {found} of 50 seeds");
    }
}

#[test]
fn the_same_seed_asks_the_same() {
    let ask = |seed| {
        let mut load = Load::new(seed, 1, 3);
        (0..50).map(|step| load.next(1_800_000_000_000 + 10 * step)).collect::<Vec<_>>()
    };
    assert_eq!(ask(7), ask(7));
    assert_ne!(ask(7), ask(8));
}

fn mark() -> impl Strategy<Value = Mark> {
    let position = prop::option::of(prop::sample::select(vec![0u64, 400, 700, 1_000]));
    let part = prop::option::of(prop::sample::select(vec!["a".to_owned(), "b".to_owned()]));
    (0..2u8, 0i64..4, position, part, any::<bool>()).prop_map(
        |(id, time, position_ms, part, finished)| Mark {
            user: "u".into(),
            kind: "video".into(),
            id: id.to_string(),
            part,
            position_ms,
            duration_ms: Some(1_000),
            event_ms: 1_000 + time,
            device: None,
            finished,
            event_id: None,
        },
    )
}

proptest! {
    /// Whatever first part of a batch survived, sending the whole batch again
    /// ends where sending it once would have, as long as its marks have names.
    #[test]
    fn a_whole_batch_again_leaves_the_same_state(
        before in prop::collection::vec(mark(), 0..4),
        batch in prop::collection::vec(mark(), 1..8),
        kept in 0usize..8,
    ) {
        let no_caps = Caps::new();
        let apply = |person: &mut Person, marks: &[Mark]| for mark in marks {
            person.apply(&Step::Mark(mark.clone(), true), &no_caps);
        };
        let named: Vec<Mark> = batch
            .into_iter()
            .enumerate()
            .map(|(n, mark)| Mark { event_id: Some(n.to_string()), ..mark })
            .collect();
        let mut once = Person::default();
        apply(&mut once, &before);
        let mut twice = once.clone();
        apply(&mut once, &named);
        apply(&mut twice, &named[..kept.min(named.len())]);
        apply(&mut twice, &named);
        prop_assert_eq!(once.list(), twice.list());
        prop_assert_eq!(once.firsts(), twice.firsts());
    }
}

#[test]
fn a_lost_answer_leaves_every_first_part_and_a_reading_tells_which() {
    let mark = |id: &str, event_ms| Mark {
        user: "u".into(),
        kind: "video".into(),
        id: id.into(),
        part: None,
        position_ms: Some(1),
        duration_ms: None,
        event_ms,
        device: None,
        finished: false,
        event_id: None,
    };
    let marks = vec![mark("1", 10), mark("2", 11), mark("3", 12)];
    let mut ledger = Ledger::new(Caps::new());
    ledger.sent(Op::Write { marks: marks.clone(), way: Way::Array, fast: false });
    ledger.crashed();
    assert_eq!(ledger.worlds("u"), 4);
    let mut person = Person::default();
    for mark in &marks[..2] {
        person.apply(&Step::Mark(mark.clone(), true), &Caps::new());
    }
    let found = Found {
        list: person.list(),
        unfinished: person.unfinished(),
        recording: true,
        firsts: None,
    };
    ledger.read("u", &found).expect("two of three is a first part");
    assert_eq!(ledger.worlds("u"), 1);
    let found = Found { list: found.list[..1].to_vec(), ..found };
    assert!(ledger.read("u", &found).is_err());
}
