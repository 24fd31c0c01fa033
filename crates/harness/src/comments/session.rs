//! One connection about one video: it asks, notes, and later compares.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::ledger::{Ask, Fate, Ledger, Reading, Row, SEGMENT_MS};
use crate::http::{Http, Response};
use crate::ledger::{Lie, Request};
use crate::rng::Rng;
use crate::session::Progress;

/// Limits that are set: no smaller one may be.
const LIMITS: [u32; 2] = [100, 300];
/// Segments that are written to.
const SEGMENTS: u64 = 3;
/// How often a read is made again that found the server short of memory.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);
/// Whose comments a caller without a name posts, and may take back.
const NOBODY: &str = "anyone";

/// A load, and its ledger.
#[derive(Debug)]
pub struct Talk {
    video: String,
    users: Vec<String>,
    rng: Rng,
    /// What may be held.
    pub ledger: Ledger,
    /// The last post, to be sent again.
    last: Option<Ask>,
    serial: u64,
    /// Answers so far.
    pub answered: u64,
}

/// A reading that came to nothing, or to something that may not be.
enum Bad {
    Lost(io::Error),
    Wrong(String),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl Talk {
    /// Connection number `connection` of the trial `seed`.
    pub fn new(seed: u64, connection: u64) -> Self {
        let users = (0..2).map(|user| format!("d{connection}-u{user}"));
        Self {
            video: format!("film-{connection}"),
            users: users.chain([NOBODY.to_owned()]).collect(),
            rng: Rng::new(seed).fork(1_000 + connection),
            ledger: Ledger::new(u64::from(LIMITS[0])),
            last: None,
            serial: 0,
            answered: 0,
        }
    }

    /// Fills the video to its limit, on a server that nobody kills.
    pub fn fill(&mut self, http: &mut Http) -> Result<(), Lie> {
        self.ask(http, Ask::Limit(LIMITS[0]))?;
        while self.ledger.known() < LIMITS[0] as usize - 5 {
            let post = self.post();
            if self.ask(http, post)?.is_none() {
                return Err(Lie("no answer, and nobody killed it".into()));
            }
        }
        Ok(())
    }

    /// Asks until told to stop, or until the connection is lost.
    pub fn run(&mut self, address: SocketAddr, progress: &Progress) -> Result<(), Lie> {
        let lost = || match progress.ending.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(Lie("the connection is lost, and nobody killed it".into())),
        };
        let Ok(mut http) = Http::connect(address) else { return lost() };
        while !progress.stop.load(Ordering::Acquire) {
            let ask = self.next();
            if self.ask(&mut http, ask)?.is_none() {
                return lost();
            }
            self.answered += 1;
            progress.answered.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn next(&mut self) -> Ask {
        let ids = self.ledger.ids();
        let what = self.rng.below(100);
        if what < 45 || ids.is_empty() {
            return self.post();
        }
        let id = self.rng.pick(&ids).clone();
        match what {
            45..53 => self.last.clone().unwrap_or_else(|| self.post()),
            53..75 => {
                let fate = *self.rng.pick(&[Fate::Hidden, Fate::Blocked, Fate::Live]);
                Ask::Change { id, fates: vec![fate] }
            }
            // Taken back by its writer, in time; else hidden by the owner.
            75..83 => Ask::Change { id, fates: vec![Fate::Recalled, Fate::Hidden] },
            83..93 => {
                let rank = *self.rng.pick(&["protected", "recommended", "plain"]);
                Ask::Rank { id, rank }
            }
            93..98 => Ask::Limit(*self.rng.pick(&LIMITS)),
            // Who has no name writes under other videos as well.
            _ => Ask::Erase(self.rng.pick(&self.users[..2]).clone()),
        }
    }

    fn post(&mut self) -> Ask {
        self.serial += 1;
        let text = format!("{} number {}", self.video, self.serial);
        let within = self.rng.below(SEGMENT_MS);
        let progress_ms = (self.rng.below(SEGMENTS) * SEGMENT_MS + within) as u32;
        let user = self.rng.pick(&self.users).clone();
        let client = format!("n{}", self.serial);
        let ask = Ask::Post { user, text, client, progress_ms };
        self.last = Some(ask.clone());
        ask
    }

    fn request(&self, ask: &Ask) -> Request {
        let base = format!("/v1/videos/{}/danmaku", self.video);
        let (method, path, body) = match ask {
            Ask::Post { user, text, client, progress_ms } => {
                let mut body =
                    json!({"text": text, "progress_ms": progress_ms, "client_id": client});
                if user != NOBODY {
                    body["user"] = json!(user);
                }
                ("POST", base, Some(body))
            }
            Ask::Change { id, fates } => match fates[..] {
                [fate] => {
                    let state = match fate {
                        Fate::Hidden => "hidden",
                        Fate::Blocked => "blocked",
                        _ => "shown",
                    };
                    ("PATCH", format!("{base}/{id}"), Some(json!({"state": state})))
                }
                _ => ("DELETE", format!("{base}/{id}"), None),
            },
            Ask::Rank { id, rank } => {
                ("PATCH", format!("{base}/{id}"), Some(json!({"rank": rank})))
            }
            Ask::Limit(limit) => ("PUT", format!("{base}/settings"), Some(json!({"limit": limit}))),
            Ask::Erase(user) => ("DELETE", format!("/v1/users/{user}"), None),
        };
        Request { method, path, body: body.map(|body: Value| body.to_string()) }
    }

    /// Sends one request and notes its answer; `None` when none came.
    fn ask(&mut self, http: &mut Http, ask: Ask) -> Result<Option<Response>, Lie> {
        let Ok(response) = http.ask(&self.request(&ask)) else {
            self.ledger.unknown(&ask);
            return Ok(None);
        };
        match response.status {
            200..300 => self.ledger.done(&ask, response.json()["id"].as_str())?,
            // Refused by a rule: nothing was done.
            400 | 404 | 409 | 429 => {}
            503 => self.ledger.unknown(&ask),
            status => return Err(Lie(format!("{ask:?}: {status} {}", response.json()))),
        }
        Ok(Some(response))
    }

    /// Reads the video whole, and compares.
    pub fn compare(&mut self, http: &mut Http) -> Result<(), Lie> {
        let reading = self.reading(http).map_err(|bad| match bad {
            Bad::Lost(error) => Lie(format!("a reading: {error}")),
            Bad::Wrong(what) => Lie(what),
        })?;
        self.ledger.read(&reading).map_err(|Lie(what)| Lie(format!("{}: {what}", self.video)))
    }

    fn reading(&self, http: &mut Http) -> Result<Reading, Bad> {
        let base = format!("/v1/videos/{}/danmaku", self.video);
        let view = get(http, format!("{base}/view"))?.json();
        let number = |name: &str| {
            view[name].as_u64().ok_or_else(|| Bad::Wrong(format!("a view without {name}: {view}")))
        };
        let mut reading = Reading {
            total: number("total")?,
            shown: number("shown")?,
            overflow: number("overflow")?,
            limit: number("limit")?,
            ..Reading::default()
        };
        for user in &self.users {
            self.own(http, user, &mut reading.rows)?;
        }
        reading.whole = ids(&get(http, format!("{base}.json"))?);
        for segment in 1..=number("segments")? {
            let path = format!("{base}/segments/{segment}");
            let ids = ids(&get(http, format!("{path}.json"))?);
            let xml = get(http, format!("{path}.xml"))?.body;
            let elements = xml.windows(3).filter(|bytes| *bytes == b"<d ").count();
            reading.segments.push((ids, elements));
        }
        Ok(reading)
    }

    fn own(&self, http: &mut Http, user: &str, rows: &mut Vec<Row>) -> Result<(), Bad> {
        let mut below = String::new();
        loop {
            let path = format!("/v1/users/{user}/danmaku?video={}{below}", self.video);
            let answer = get(http, path)?.json();
            let Some(items) = answer["items"].as_array().filter(|items| !items.is_empty()) else {
                return Ok(());
            };
            for item in items {
                rows.push(row(user, item)?);
            }
            below = format!("&below={}", rows[rows.len() - 1].id);
        }
    }
}

fn row(user: &str, item: &Value) -> Result<Row, Bad> {
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    let fate = match (item["state"].as_str(), item["reason"].as_str()) {
        (Some("shown"), None) | (Some("hidden"), Some("overflow")) => Some(Fate::Live),
        (Some("hidden"), Some("hidden")) => Some(Fate::Hidden),
        (Some("hidden"), Some("blocked")) => Some(Fate::Blocked),
        (Some("hidden"), Some("recalled")) => Some(Fate::Recalled),
        _ => None,
    };
    let overflow = item["reason"] == "overflow";
    match (text("id"), text("text"), fate, item["progress_ms"].as_u64()) {
        (Some(id), Some(text), Some(fate), Some(progress_ms)) => {
            Ok(Row { id, user: user.to_owned(), text, fate, overflow, progress_ms })
        }
        _ => Err(Bad::Wrong(format!("a comment of {user}: {item}"))),
    }
}

fn ids(response: &Response) -> BTreeSet<String> {
    let answer = response.json();
    let items = answer["items"].as_array().map_or(&[][..], |items| items);
    items.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned).collect()
}

fn get(http: &mut Http, path: String) -> Result<Response, Bad> {
    for _ in 0..TRIES {
        let response = http.get(path.clone())?;
        match response.status {
            200 => return Ok(response),
            // Memory is short until what changed is at rest.
            503 => std::thread::park_timeout(PAUSE),
            status => return Err(Bad::Wrong(format!("{path}: {status} {}", response.json()))),
        }
    }
    Err(Bad::Wrong(format!("{path}: overloaded for too long")))
}
