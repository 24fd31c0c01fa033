//! Kills under load and during recovery.

use std::path::Path;
use std::time::{Duration, Instant};

use tideline_harness::ledger::Lie;
use tideline_harness::rng::Rng;
use tideline_harness::server::{Server, Setup, copy_folder};
use tideline_harness::session::{Session, compare_all, run_all};
use tideline_harness::trail;

use super::{fail, kills, seed, setup};

const CONNECTIONS: u64 = 4;
const USERS: usize = 3;

/// What one round may be run with: users leave memory and come back, rows are
/// brought to rest at once, or not before the kill.
const SETTINGS: [&[(&str, &str)]; 3] = [
    &[],
    &[
        ("TIDELINE__HISTORY__HOT_BUDGET_BYTES", "65536"),
        ("TIDELINE__HISTORY__FLUSH_AFTER_MS", "20"),
    ],
    &[("TIDELINE__HISTORY__FLUSH_AFTER_MS", "600000")],
];

struct Trial {
    setup: Setup,
    sessions: Vec<Session>,
    rng: Rng,
    /// How long the last start took.
    start: Duration,
    answered: u64,
}

impl Trial {
    /// Starts the server, compares everything, loads it, kills it.
    fn round(&mut self) -> Result<(), Lie> {
        let begun = Instant::now();
        let server = self.setup.start().map_err(|error| Lie(error.0))?;
        self.start = begun.elapsed();
        let said = |Lie(what): Lie, server: &Server| {
            Lie(format!("{what}\nthe server said:\n{}", server.said()))
        };
        let mut http = server.connect().map_err(|error| Lie(error.to_string()))?;
        compare_all(&mut self.sessions, &mut http).map_err(|lie| said(lie, &server))?;
        // Some answers, and then any instant within a few more.
        let rng = &mut self.rng;
        let answers = if rng.chance(200) { rng.below(4) } else { rng.below(160) };
        let instant = Duration::from_micros(rng.below(4_000));
        run_all(&mut self.sessions, server.address(), None, answers, |_| {
            std::thread::park_timeout(instant);
            trail::signal(server.pid(), libc::SIGKILL)
        })
        .map_err(|lie| said(lie, &server))?;
        server.kill();
        for session in &mut self.sessions {
            self.answered += session.answered();
            session.notes.clear();
            session.ledger.crashed();
        }
        Ok(())
    }

    /// Starts the server and kills it before it may be ready.
    fn interrupted_start(&mut self) -> Result<(), Lie> {
        let starting = self.setup.spawn().map_err(|error| Lie(error.0))?;
        let micros = self.start.as_micros() as u64;
        std::thread::park_timeout(Duration::from_micros(self.rng.below(micros + 1)));
        starting.kill();
        Ok(())
    }

    /// One kill, perhaps after a start that was cut short, and a check.
    fn kill(&mut self, copy: &Path) -> Result<(), Lie> {
        let settings = self.rng.pick(&SETTINGS).iter();
        self.setup.settings =
            settings.map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        if self.rng.chance(200) {
            self.interrupted_start()?;
        }
        self.round()?;
        // On a copy: opening a folder mends it, and the next start must find
        // it as the kill left it.
        let copy = self.setup.on(copy);
        copy_folder(&self.setup.data, &copy.data).map_err(|error| Lie(error.to_string()))?;
        copy.check().map_err(Lie)?;
        std::fs::remove_dir_all(&copy.data).map_err(|error| Lie(error.to_string()))
    }
}

#[test]
fn what_was_acknowledged_is_there_after_every_kill() {
    let (seed, test) = (seed(), "what_was_acknowledged_is_there_after_every_kill");
    let folder = tempfile::tempdir().expect("a folder");
    let setup = setup(folder.path().join("data"));
    std::fs::create_dir(&setup.data).expect("a folder");
    let connections = 0..CONNECTIONS;
    let mut trial = Trial {
        setup,
        sessions: connections.map(|number| Session::new(seed, number, USERS)).collect(),
        rng: Rng::new(seed),
        start: Duration::ZERO,
        answered: 0,
    };
    for kill in 1..=kills() {
        if let Err(Lie(what)) = trial.kill(&folder.path().join("copy")) {
            fail(test, seed, &format!("kill {kill}: {what}"), folder);
        }
    }
    // A server that answers little proves little.
    assert!(trial.answered > 20 * kills(), "{} answers", trial.answered);
}
