//! Comments under kills: posts, retries, moderation, limits and erases; and marks
//! beside them, for both stand on one log and one table.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tideline_harness::comments::Talk;
use tideline_harness::ledger::Lie;
use tideline_harness::rng::Rng;
use tideline_harness::server::{Server, Setup, copy_folder};
use tideline_harness::session::{Progress, Session, compare_all};
use tideline_harness::trail;

use super::{fail, kills, seed, setup};

const CONNECTIONS: u64 = 3;
/// Connections that write marks, for so many users each.
const MARKERS: u64 = 2;
const USERS: usize = 2;

/// What one round may be run with: videos leave memory and come back, rows are
/// brought to rest at once, or not before the kill.
const SETTINGS: [&[(&str, &str)]; 3] = [
    &[],
    &[
        ("TIDELINE__DANMAKU__HOT_BUDGET_BYTES", "524288"),
        ("TIDELINE__DANMAKU__FLUSH_AFTER_MS", "20"),
        ("TIDELINE__HISTORY__FLUSH_AFTER_MS", "20"),
    ],
    &[("TIDELINE__DANMAKU__FLUSH_AFTER_MS", "600000")],
];

/// Who loads the server.
struct Load {
    talks: Vec<Talk>,
    markers: Vec<Session>,
    /// Answers to marks.
    marks: u64,
}

/// Starts the server, compares everything, loads it, kills it.
fn round(setup: &Setup, all: &mut Load, rng: &mut Rng) -> Result<(), Lie> {
    let server = setup.start().map_err(|error| Lie(error.0))?;
    let mut http = server.connect().map_err(|error| Lie(error.to_string()))?;
    let compared = all.talks.iter_mut().try_for_each(|talk| talk.compare(&mut http));
    let compared = compared.and_then(|()| compare_all(&mut all.markers, &mut http));
    drop(http);
    let answers = if rng.chance(200) { rng.below(4) } else { rng.below(120) };
    let instant = Duration::from_micros(rng.below(4_000));
    let loaded = compared.and_then(|()| load(&server, all, answers, instant));
    let said = server.said();
    server.kill();
    for marker in &mut all.markers {
        all.marks += marker.answered();
        marker.notes.clear();
        marker.ledger.crashed();
    }
    loaded.map_err(|Lie(what)| Lie(format!("{what}\nthe server said:\n{said}")))
}

/// Some answers, and then any instant within a few more.
fn load(server: &Server, all: &mut Load, answers: u64, instant: Duration) -> Result<(), Lie> {
    let (progress, address) = (Progress::default(), server.address());
    std::thread::scope(|scope| {
        let progress = &progress;
        let mut talking: Vec<_> = (all.talks.iter_mut())
            .map(|talk| scope.spawn(move || talk.run(address, progress)))
            .collect();
        let markers = all.markers.iter_mut();
        talking.extend(markers.map(|one| scope.spawn(move || one.run(address, None, progress))));
        while progress.answered.load(Ordering::Acquire) < answers
            && !talking.iter().any(|thread| thread.is_finished())
        {
            std::thread::park_timeout(Duration::from_micros(500));
        }
        std::thread::park_timeout(instant);
        progress.ending.store(true, Ordering::Release);
        let killed = trail::signal(server.pid(), libc::SIGKILL);
        progress.stop.store(true, Ordering::Release);
        let ends = talking.into_iter().map(|thread| thread.join().expect("it returns its errors"));
        let ended = ends.collect::<Vec<_>>().into_iter().collect::<Result<(), Lie>>();
        ended.and(killed.map_err(|error| Lie(error.to_string())))
    })
}

fn kill(setup: &Setup, all: &mut Load, rng: &mut Rng, copy: &Path) -> Result<(), Lie> {
    round(setup, all, rng)?;
    // On a copy: opening a folder mends it, and the next start must find it as
    // the kill left it.
    let copy = setup.on(copy);
    copy_folder(&setup.data, &copy.data).map_err(|error| Lie(error.to_string()))?;
    copy.check().map_err(Lie)?;
    std::fs::remove_dir_all(&copy.data).map_err(|error| Lie(error.to_string()))
}

#[test]
fn acknowledged_comments_and_marks_are_there_and_deleted_ones_are_not_after_every_kill() {
    let seed = seed();
    let test =
        "acknowledged_comments_and_marks_are_there_and_deleted_ones_are_not_after_every_kill";
    let folder = tempfile::tempdir().expect("a folder");
    let mut setup = setup(folder.path().join("data"));
    std::fs::create_dir(&setup.data).expect("a folder");
    let mut all = Load {
        talks: (0..CONNECTIONS).map(|number| Talk::new(seed, number)).collect(),
        markers: (0..MARKERS).map(|number| Session::new(seed, number, USERS)).collect(),
        marks: 0,
    };
    let mut rng = Rng::new(seed);
    let server = setup.start().unwrap_or_else(|error| panic!("{}", error.0));
    let mut http = server.connect().expect("it is ready");
    let filled = all.talks.iter_mut().try_for_each(|talk| talk.fill(&mut http));
    server.kill();
    if let Err(Lie(what)) = filled {
        fail(test, seed, &format!("before the first kill: {what}"), folder);
    }
    // Half as many as of marks: the machinery under both is one.
    let kills = kills() / 2;
    for number in 1..=kills {
        let settings = rng.pick(&SETTINGS).iter();
        setup.settings = settings.map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let killed = kill(&setup, &mut all, &mut rng, &folder.path().join("copy"));
        if let Err(Lie(what)) = killed {
            fail(test, seed, &format!("kill {number}: {what}"), folder);
        }
    }
    // A server that answers little proves little.
    let answered: u64 = all.talks.iter().map(|talk| talk.answered).sum();
    assert!(answered > 10 * kills, "{answered} answers");
    assert!(all.marks > 5 * kills, "{} answers to marks", all.marks);
}
