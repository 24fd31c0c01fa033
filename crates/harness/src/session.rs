//! One connection's part of a trial: it asks, notes, and later compares.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::http::{Http, Response};
use crate::ledger::{Ledger, Lie, Load, Op, Tally, caps};
use crate::reading::{self, Bad};
use crate::trail::Recorder;

/// What was noted, with its place in the trail where there is one.
#[derive(Clone, Debug)]
pub enum Note {
    /// It was about to be sent.
    Sent(Op),
    /// It was answered well.
    Answered(Option<Tally>),
    /// It was refused, and may have happened.
    Refused,
}

/// A load, its ledger, and the notes of this run.
#[derive(Clone, Debug)]
pub struct Session {
    /// What will be asked.
    pub load: Load,
    /// What may be held.
    pub ledger: Ledger,
    /// What happened in this run, each with its place in the trail.
    pub notes: Vec<(usize, Note)>,
    last_ms: i64,
}

/// Shared by the connections of a run.
#[derive(Debug, Default)]
pub struct Progress {
    /// Answers so far.
    pub answered: AtomicU64,
    /// Whether to stop after the next answer.
    pub stop: AtomicBool,
    /// Whether the end has begun: from here on an answer may be lost.
    pub ending: AtomicBool,
}

/// How often a condition that nobody tells is looked at.
const POLL: Duration = Duration::from_micros(500);

fn clock_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

impl Session {
    /// Connection number `connection` of the trial `seed`.
    pub fn new(seed: u64, connection: u64, users: usize) -> Self {
        let load = Load::new(seed, connection, users);
        let mut ledger = Ledger::new(caps());
        for user in load.users() {
            ledger.know(user);
        }
        Self { load, ledger, notes: Vec::new(), last_ms: 0 }
    }

    /// A millisecond of its own, later than everything so far.
    pub fn now_ms(&mut self) -> i64 {
        loop {
            let now = clock_ms();
            if now > self.last_ms {
                self.last_ms = now;
                return now;
            }
            std::thread::park_timeout(POLL);
        }
    }

    /// Asks until `progress.stop`, or until the connection is lost: then
    /// whatever was on its way stays open in the ledger.
    pub fn run(
        &mut self,
        address: SocketAddr,
        recorder: Option<&Recorder>,
        progress: &Progress,
    ) -> Result<(), Lie> {
        let lost = |what: &str| {
            let expected = progress.ending.load(Ordering::Acquire);
            if expected { Ok(()) } else { Err(Lie(format!("{what}, and nobody killed it"))) }
        };
        let Ok(mut http) = Http::connect(address) else { return lost("no connection") };
        while !progress.stop.load(Ordering::Acquire) {
            let now_ms = self.now_ms();
            let op = self.load.next(now_ms);
            match self.ask(&mut http, op.clone(), recorder)? {
                None => return lost(&format!("no answer to {op:?}")),
                Some(response) if matches!(response.status, 429 | 503) => {
                    // Looked up at once: what may have happened is soon too much.
                    match self.look_up(&mut http, &op) {
                        Ok(()) => (),
                        Err(Bad::Wrong(what)) => return Err(Lie(what)),
                        Err(Bad::Lost(_)) => return lost("no answer to a reading"),
                    }
                    continue;
                }
                Some(_) => (),
            }
            progress.answered.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Reads the users of an op that was refused.
    fn look_up(&mut self, http: &mut Http, op: &Op) -> Result<(), Bad> {
        let users: BTreeSet<String> = op.steps().into_iter().map(|(user, _)| user).collect();
        for user in users {
            let found = reading::read_user(http, &user)?;
            self.ledger.read(&user, &found).map_err(|Lie(what)| Bad::Wrong(what))?;
        }
        Ok(())
    }

    /// Sends one op and notes its answer; `None` when none came.
    pub fn ask(
        &mut self,
        http: &mut Http,
        op: Op,
        recorder: Option<&Recorder>,
    ) -> Result<Option<Response>, Lie> {
        let mark = |number| recorder.map_or(0, |recorder| recorder.mark(number));
        let request = op.request();
        let mut users: Vec<String> = op.steps().into_iter().map(|(user, _)| user).collect();
        users.dedup();
        let sent = op.steps().len() as u64;
        self.notes.push((mark(0), Note::Sent(op.clone())));
        self.ledger.sent(op.clone());
        let Ok(response) = http.ask(&request) else { return Ok(None) };
        let place = mark(1);
        self.last_ms = self.last_ms.max(clock_ms());
        match response.status {
            200 | 204 => {
                let answer = response.json();
                let tally = reading::tally(&users, &answer);
                let rejected = answer["rejected"].as_array().map_or(0, Vec::len);
                let is_write = matches!(op, Op::Write { .. });
                let counted = tally.as_ref().map_or(0, Tally::marks);
                if rejected > 0 || (is_write && counted != sent) {
                    return Err(Lie(format!("{request:?} was answered {answer}")));
                }
                self.notes.push((place, Note::Answered(tally.clone())));
                self.ledger.answered(tally.as_ref())?;
            }
            429 | 503 => {
                self.notes.push((place, Note::Refused));
                self.ledger.uncertain();
            }
            status => {
                let body = String::from_utf8_lossy(&response.body);
                return Err(Lie(format!("{request:?} was answered {status} {body}")));
            }
        }
        Ok(Some(response))
    }

    /// Reads all of this connection's users and compares.
    pub fn compare(
        &mut self,
        http: &mut Http,
        firsts: &std::collections::BTreeMap<String, Vec<(String, String)>>,
    ) -> Result<(), Lie> {
        for user in self.load.users().to_vec() {
            let mut found = match reading::read_user(http, &user) {
                Ok(found) => found,
                Err(Bad::Wrong(what)) => return Err(Lie(what)),
                Err(Bad::Lost(error)) => return Err(Lie(format!("no answer: {error}"))),
            };
            found.firsts = Some(firsts.get(&user).cloned().unwrap_or_default());
            self.ledger.read(&user, &found)?;
        }
        Ok(())
    }

    /// How many requests of this run were answered well.
    pub fn answered(&self) -> u64 {
        self.notes.iter().filter(|(_, note)| matches!(note, Note::Answered(_))).count() as u64
    }

    /// This session as it stood when the power went after `at` events: from
    /// `self`, as it was before the run, and the notes of the run.
    pub fn cut_at(&self, notes: &[(usize, Note)], at: usize) -> Result<Self, Lie> {
        let mut cut = self.clone();
        for (_, note) in notes.iter().take_while(|(place, _)| *place < at) {
            match note {
                Note::Sent(op) => cut.ledger.sent(op.clone()),
                Note::Answered(tally) => cut.ledger.answered(tally.as_ref())?,
                Note::Refused => cut.ledger.uncertain(),
            }
        }
        cut.ledger.crashed();
        Ok(cut)
    }
}

/// Compares a server with all sessions' ledgers.
pub fn compare_all(sessions: &mut [Session], http: &mut Http) -> Result<(), Lie> {
    let firsts = match reading::read_firsts(http) {
        Ok(firsts) => firsts,
        Err(Bad::Wrong(what)) => return Err(Lie(what)),
        Err(Bad::Lost(error)) => return Err(Lie(format!("no answer: {error}"))),
    };
    for session in sessions {
        session.compare(http, &firsts)?;
    }
    Ok(())
}

/// Lets all sessions ask at once, each on its own thread, until `until` says
/// so; then `end` is called (a kill, say) and all are waited for.
pub fn run_all(
    sessions: &mut [Session],
    address: SocketAddr,
    recorder: Option<&Recorder>,
    until_answers: u64,
    end: impl FnOnce(&Progress) -> io::Result<()>,
) -> Result<(), Lie> {
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .map(|session| scope.spawn(|| session.run(address, recorder, &progress)))
            .collect();
        while progress.answered.load(Ordering::Acquire) < until_answers
            && !threads.iter().any(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::park_timeout(POLL);
        }
        progress.ending.store(true, Ordering::Release);
        let ended = end(&progress);
        let mut result = ended.map_err(|error| Lie(error.to_string()));
        for thread in threads {
            let run = thread.join().unwrap_or_else(|_| Err(Lie("a connection panicked".into())));
            result = result.and(run);
        }
        result
    })
}
