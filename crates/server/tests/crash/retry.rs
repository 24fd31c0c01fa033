//! A lost answer, and the whole batch again.

use tideline_harness::http::Http;
use tideline_harness::ledger::{Ledger, Lie, Mark, Op, Way};
use tideline_harness::rng::Rng;
use tideline_harness::session::{Session, compare_all};
use tideline_harness::trail;

use super::{fail, kills, seed, setup};

/// A batch that touches every user, each mark with a name of its own: repeats,
/// ties, ends and parts in it.
fn batch(session: &Session, rng: &mut Rng, round: u64, now_ms: i64) -> Op {
    let users = session.load.users();
    let marks = (0..60).map(|n| Mark {
        user: rng.pick(users).clone(),
        kind: (*rng.pick(&["video", "article"])).to_owned(),
        id: rng.below(4).to_string(),
        part: rng.chance(200).then(|| "b".to_owned()),
        position_ms: Some(rng.below(11) * 1_000),
        duration_ms: Some(10_000),
        event_ms: now_ms - rng.below(5) as i64,
        device: None,
        finished: rng.chance(100),
        event_id: Some(format!("{round}-{n}")),
    });
    // Over eight marks of one row that share a time, resending is not safe.
    let mut marks: Vec<Mark> = marks.collect();
    let mut seen = std::collections::BTreeMap::new();
    marks.retain(|mark| {
        let key = (mark.user.clone(), mark.kind.clone(), mark.id.clone(), mark.event_ms);
        let count = seen.entry(key).or_insert(0);
        *count += 1;
        *count <= 8
    });
    Op::Write { marks, way: Way::Batch, fast: false }
}

#[test]
fn a_whole_batch_again_after_a_lost_answer_leaves_the_state_of_one() {
    let (seed, test) = (seed(), "a_whole_batch_again_after_a_lost_answer_leaves_the_state_of_one");
    let folder = tempfile::tempdir().expect("a folder");
    let setup = setup(folder.path().join("data"));
    std::fs::create_dir(&setup.data).expect("a folder");
    let mut rng = Rng::new(seed).fork(7);
    let mut sessions = vec![Session::new(seed, 9, 3)];
    // What had no answer, and what it leaves when it happens once.
    let mut lost: Option<(Op, Ledger)> = None;
    for round in 0..=kills() / 5 {
        let mut all = || -> Result<(), Lie> {
            let server = setup.start().map_err(|error| Lie(error.0))?;
            let mut http = server.connect().map_err(|error| Lie(error.to_string()))?;
            compare_all(&mut sessions, &mut http)?;
            let session = &mut sessions[0];
            if let Some((op, once)) = lost.take() {
                if session.ask(&mut http, op, None)?.is_none() {
                    return Err(Lie("no answer to the retry, and nobody killed it".into()));
                }
                for user in session.load.users().to_vec() {
                    if !session.ledger.looks_certain(&user) {
                        return Err(Lie(format!("{user} is not certain after the retry")));
                    }
                    let (again, due) = (session.ledger.looks(&user), once.looks(&user));
                    if again != due {
                        return Err(Lie(format!("{user} is {again:?}, once gives {due:?}")));
                    }
                }
                compare_all(&mut sessions, &mut http)?;
            }
            let session = &mut sessions[0];
            let now_ms = session.now_ms();
            let op = batch(session, &mut rng, round, now_ms);
            let mut once = session.ledger.clone();
            once.sent(op.clone());
            once.answered(None)?;
            let address = server.address();
            let killed = std::thread::scope(|scope| {
                let asked = scope.spawn(move || -> Result<bool, Lie> {
                    let Ok(mut http) = Http::connect(address) else { return Ok(true) };
                    Ok(session.ask(&mut http, op, None)?.is_some())
                });
                let instant = std::time::Duration::from_micros(rng.below(12_000));
                std::thread::park_timeout(instant);
                let killed = trail::signal(server.pid(), libc::SIGKILL);
                asked.join().expect("a connection does not panic")?;
                killed.map_err(|error| Lie(error.to_string()))
            });
            killed?;
            server.kill();
            lost = sessions[0].ledger.crashed().map(|op| (op, once));
            Ok(())
        };
        if let Err(Lie(what)) = all() {
            fail(test, seed, &format!("round {round}: {what}"), folder);
        }
    }
}
