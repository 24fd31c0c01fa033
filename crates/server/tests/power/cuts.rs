//! One recorded run after the other, and the images of each.

use std::fs;
use std::path::Path;

use tideline_harness::image::{Mood, image, moments};
use tideline_harness::ledger::Lie;
use tideline_harness::rng::Rng;
use tideline_harness::server::Setup;
use tideline_harness::session::{Note, Session, compare_all, run_all};
use tideline_harness::trail::Trail;

use super::{runs_and_images, seed, setup};

const CONNECTIONS: u64 = 4;
const USERS: usize = 3;

/// A run that was recorded.
struct Run {
    trail: Trail,
    /// The sessions before the run, and the notes of each during it.
    before: Vec<Session>,
    notes: Vec<Vec<(usize, Note)>>,
    /// The sessions after the run: what they would ask next.
    after: Vec<Session>,
}

fn io(error: std::io::Error) -> Lie {
    Lie(error.to_string())
}

/// Records a run over `setup.data`, from its start to a graceful stop or a
/// kill; the folder must then be what the trail says.
fn record(setup: &Setup, sessions: &[Session], rng: &mut Rng) -> Result<Run, Lie> {
    let mut working = sessions.to_vec();
    let server = setup.record().map_err(|error| Lie(error.0))?;
    let mut http = server.connect().map_err(io)?;
    compare_all(&mut working, &mut http)?;
    for session in &mut working {
        session.notes.clear();
    }
    let answers = 200 + rng.below(200);
    run_all(&mut working, server.address(), server.recorder(), answers, |progress| {
        progress.stop.store(true, std::sync::atomic::Ordering::Release);
        Ok(())
    })
    .map_err(|Lie(what)| Lie(format!("{what}\nthe server said:\n{}", server.said())))?;
    drop(http);
    let (status, ended) = server.stop().map_err(io)?;
    let trail = ended.ok_or_else(|| Lie("it was not recorded".into()))?.trail;
    if !status.success() {
        return Err(Lie(format!("a graceful stop ended with {status}")));
    }
    if !trail.surprises().is_empty() {
        return Err(Lie(format!("calls that no trail can tell: {:?}", trail.surprises())));
    }
    let all = image(&trail, trail.events().len(), Mood::Everything, rng);
    if let Some(difference) = all.difference(&setup.data).map_err(io)? {
        return Err(Lie(format!("everything applied is not the folder: {difference}")));
    }
    let notes = working.iter().map(|session| session.notes.clone()).collect();
    Ok(Run { trail, before: sessions.to_vec(), notes, after: working })
}

/// Recovers what one image holds and compares it with the ledger.
fn recover(setup: &Setup, sessions: &mut [Session]) -> Result<(), Lie> {
    let server = setup.start().map_err(|error| Lie(error.0))?;
    let compared =
        server.connect().map_err(io).and_then(|mut http| compare_all(sessions, &mut http));
    let said = server.said();
    server.kill();
    compared.map_err(|Lie(what)| Lie(format!("{what}\nthe server said:\n{said}")))?;
    setup.check().map_err(Lie)
}

/// The sessions as the power cut left them.
fn cut(run: &Run, at: usize) -> Result<Vec<Session>, Lie> {
    run.before.iter().zip(&run.notes).map(|(session, notes)| session.cut_at(notes, at)).collect()
}

fn fresh(path: &Path) -> Result<(), Lie> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(io)?;
    }
    fs::create_dir(path).map_err(io)
}

#[test]
fn every_image_that_a_disk_may_leave_holds_what_was_acknowledged() {
    let seed = seed();
    let folder = tempfile::tempdir().expect("a folder");
    let setup = setup(folder.path().join("data"));
    let image_setup = setup.on(folder.path().join("image"));
    let mut rng = Rng::new(seed);
    let mut sessions: Vec<_> =
        (0..CONNECTIONS).map(|connection| Session::new(seed, connection, USERS)).collect();
    fs::create_dir(&setup.data).expect("a folder");
    let (runs, images) = runs_and_images();
    for run in 0..runs {
        let mut doing = format!("run {run}");
        let mut all = || -> Result<(), Lie> {
            let recorded = record(&setup, &sessions, &mut rng)?;
            let moments = moments(&recorded.trail, images, &mut rng);
            let next = rng.below(images as u64) as usize;
            let mut next_run = None;
            for (index, at) in moments.into_iter().enumerate() {
                let mood = Mood::draw(&mut rng);
                doing = format!("run {run}, image {index} after event {at}, {mood:?}");
                let left = image(&recorded.trail, at, mood, &mut rng);
                let cut = cut(&recorded, at)?;
                fresh(&image_setup.data)?;
                left.write_into(&image_setup.data).map_err(io)?;
                recover(&image_setup, &mut cut.clone()).map_err(|Lie(what)| {
                    let whole = image(&recorded.trail, at, Mood::Everything, &mut rng);
                    Lie(format!("{what}\nthe image lost:\n{}", left.losses(&whole)))
                })?;
                if index == next {
                    next_run = Some((left, cut));
                }
            }
            // The next run begins in what a power cut left.
            if let Some((left, cut)) = next_run {
                fresh(&setup.data)?;
                left.write_into(&setup.data).map_err(io)?;
                sessions = cut;
                for (session, after) in sessions.iter_mut().zip(recorded.after) {
                    session.load = after.load;
                }
            }
            Ok(())
        };
        if let Err(Lie(what)) = all() {
            let kept = folder.keep();
            panic!(
                "{doing}: {what}\nthe image, as recovered, is kept in {}\nagain: TIDELINE_SEED={seed} cargo test -p tideline-server --test power",
                kept.display()
            );
        }
    }
}

#[test]
fn a_disk_whose_syncs_do_nothing_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = setup(folder.path().join("data"));
    let image_setup = setup.on(folder.path().join("image"));
    fs::create_dir(&setup.data).expect("a folder");
    let mut rng = Rng::new(seed()).fork(1);
    let connections = 0..CONNECTIONS;
    let sessions: Vec<_> = connections.map(|n| Session::new(seed(), n, USERS)).collect();
    let mut run = record(&setup, &sessions, &mut rng).unwrap_or_else(|Lie(what)| panic!("{what}"));
    run.trail = run.trail.without_syncs();
    let events = run.trail.events().len();
    let found = (0..10).any(|_| {
        // Half of what was written is not there, in the second half of the run.
        let at = events / 2 + rng.below(events as u64 / 2) as usize;
        let left = image(&run.trail, at, Mood::Scattered(500), &mut rng);
        fresh(&image_setup.data)
            .and_then(|()| left.write_into(&image_setup.data).map_err(io))
            .and_then(|()| recover(&image_setup, &mut cut(&run, at)?))
            .is_err()
    });
    assert!(found, "ten images of a disk that lies, and all of them recovered");
}
