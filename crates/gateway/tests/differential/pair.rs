//! One sequence: two users of the site, and the same two as plain models.

use serde_json::{Value, json};
use tideline_harness::model::{DAY, Key, Model, ModelBlock, ModelDoc, Said};
use tideline_harness::rng::Rng;

use crate::reads::{Ask, Walk};
use crate::site::{Site, WINDOW, zone};
use crate::writes::{IDS, KINDS, Way, Write, configs};

const STEPS_MAX: u64 = 40;

pub(crate) struct Pair<'a> {
    pub(crate) site: &'a mut Site,
    pub(crate) rng: Rng,
    pub(crate) users: [String; 2],
    pub(crate) models: [Model; 2],
    /// Requests that wrote, to be sent again.
    past: Vec<Write>,
    saved: Option<(String, ModelDoc)>,
    walk: Option<Walk>,
    /// This sequence stops and starts the site, and so loses what is only
    /// acknowledged as fast.
    restarts: bool,
    ends: i64,
    flag: Option<String>,
    seen: Seen,
}

/// What became of all marks, by [`WHAT`], and how often the site was started.
pub(crate) type Seen = [u64; 7];

/// What [`Seen`] counts.
pub(crate) const WHAT: [&str; 7] =
    ["accepted", "stale", "paused", "duplicate", "over_cap", "rejected", "restarts"];

/// As it stands in a path.
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

impl<'a> Pair<'a> {
    pub(crate) fn new(site: &'a mut Site, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let restarts = rng.chance(150);
        let fresh = || Model::new(configs(), zone());
        let ends = site.now() + WINDOW - 4 * DAY;
        Self {
            site,
            rng,
            users: [format!("viewer-{seed}"), format!("{}", 1_000_000 + seed)],
            models: [fresh(), fresh()],
            past: Vec::new(),
            saved: None,
            walk: None,
            restarts,
            ends,
            flag: None,
            seen: Seen::default(),
        }
    }

    /// Panics where the two differ.
    pub(crate) fn run(mut self) -> Seen {
        for _ in 0..4 + self.rng.below(STEPS_MAX) {
            self.step();
            let (user, ask) = (self.user(), Ask::random(&mut self.rng, self.site.now()));
            self.read_one(user, &ask);
            self.walk_on();
        }
        for user in 0..2 {
            self.read_all(user, &Ask::default());
            let ask = Ask::random(&mut self.rng, self.site.now());
            self.read_all(user, &ask);
        }
        self.seen
    }

    fn user(&mut self) -> usize {
        self.rng.below(2) as usize
    }

    fn path(&self, user: usize, rest: &str) -> String {
        format!("/v1/users/{}{rest}", self.users[user])
    }

    /// The answer in JSON, if the status is as it should be.
    pub(crate) fn expect(&self, status: u16, method: &str, path: &str, body: &str) -> Value {
        let (got, text) = self.site.call(method, path, body, &[]);
        assert_eq!(got, status, "{method} {path}: {text}");
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..50 => {
                let mut write = Write::random(&mut self.rng, self.site.now());
                write.fast &= !self.restarts;
                self.past.push(write.clone());
                self.write(&write);
            }
            50..60 => {
                if !self.past.is_empty() {
                    let back = self.rng.below(self.past.len().min(6) as u64) as usize;
                    let write = self.past[self.past.len() - 1 - back].clone();
                    self.write(&write);
                }
            }
            60..70 => self.wait(),
            70..76 => self.delete(),
            76..82 => self.clear(),
            82..88 => self.switch(),
            88 => {
                let user = self.user();
                self.expect(204, "DELETE", &self.path(user, ""), "");
                self.models[user].erase(self.site.now());
            }
            89..92 => self.export(),
            92..95 => self.restore(),
            _ => {
                if self.restarts {
                    let keep = self.rng.below(3) as usize;
                    self.site.restart(keep);
                    self.seen[6] += 1;
                }
            }
        }
    }

    fn wait(&mut self) {
        let ms = match self.rng.below(6) {
            0 => 1,
            1 | 2 => self.rng.below(2_000) as i64,
            3 => DAY / 2,
            4 => DAY + 1,
            _ => self.rng.below(3 * DAY as u64) as i64,
        };
        if self.site.now() + ms < self.ends {
            self.site.wait(ms);
        }
    }

    fn write(&mut self, write: &Write) {
        let now = self.site.now();
        let (path, body) = write.request(&self.users);
        let mut headers = Vec::new();
        if let Some(shift) = write.shift {
            headers.push(("x-client-now-ms", (now - shift).to_string()));
        }
        if write.way == Way::Lines {
            headers.push(("content-type", "application/x-ndjson".into()));
        }
        if let Some(flag) = self.flag.clone().filter(|_| self.rng.chance(300)) {
            headers.push(("x-day-flag", flag));
        }
        let (status, text) = self.site.call("POST", &path, &body, &headers);

        let mut counts = [0_u64; 5];
        let (mut rejected, mut firsts) = (Vec::new(), Vec::new());
        for (place, mark) in write.marks.iter().enumerate() {
            let Some(model) = &mark.model else {
                rejected.push(place);
                continue;
            };
            match self.models[mark.user].mark(model, now) {
                Said::Accepted { first } => {
                    counts[0] += 1;
                    if first {
                        let name = Value::from(&*model.kind);
                        let user = &self.users[mark.user];
                        let with_user = json!({"user": user, "kind": name});
                        let many = matches!(write.way, Way::Batch | Way::Lines | Way::Import);
                        firsts.push(if many { with_user } else { name });
                    }
                }
                Said::Stale => counts[1] += 1,
                Said::Paused => counts[2] += 1,
                Said::Duplicate => counts[3] += 1,
                Said::OverCap => counts[4] += 1,
                Said::Rejected => rejected.push(place),
            }
        }
        self.seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen += count);
        self.seen[5] += rejected.len() as u64;
        if write.way == Way::One && !rejected.is_empty() {
            assert_eq!(status, 400, "{body}: {text}");
            return;
        }
        assert_eq!(status, 200, "{body}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        let told: Vec<u64> = WHAT[..5].iter().map(|name| answer[name].as_u64().unwrap()).collect();
        assert_eq!(told, counts, "{WHAT:?} of {body}");
        let refused = answer["rejected"].as_array().unwrap();
        let places: Vec<_> =
            refused.iter().map(|one| one["index"].as_u64().unwrap() as usize).collect();
        assert_eq!(places, rejected, "refused of {body}");
        assert_eq!(answer["first_today"], json!(firsts), "firsts of {body}");
        self.flag = answer["day_flag"].as_str().map(str::to_owned).filter(|flag| !flag.is_empty());
    }

    fn key(&mut self) -> Key {
        ((*self.rng.pick(&KINDS)).into(), (*self.rng.pick(&IDS)).into())
    }

    fn delete(&mut self) {
        let (user, now) = (self.user(), self.site.now());
        if self.rng.chance(500) {
            let key = self.key();
            let path = self.path(user, &format!("/history/{}/{}", key.0, encoded(&key.1)));
            self.expect(204, "DELETE", &path, "");
            self.models[user].delete(&[key], now);
            return;
        }
        let keys: Vec<Key> = (0..1 + self.rng.below(3)).map(|_| self.key()).collect();
        let sent: Vec<Value> =
            keys.iter().map(|(kind, id)| json!({"kind": kind, "id": id})).collect();
        let path = self.path(user, "/history:delete");
        let answer = self.expect(200, "POST", &path, &json!({"keys": sent}).to_string());
        assert_eq!(answer, json!({"deleted": self.models[user].delete(&keys, now)}));
    }

    fn clear(&mut self) {
        let (user, now) = (self.user(), self.site.now());
        let key = self.key();
        let kind = self.rng.chance(500).then_some(key.0);
        let id = self.rng.chance(200).then_some(key.1);
        let mut time = || self.rng.chance(400).then(|| now - 6_000 + self.rng.below(6_100) as i64);
        let (after, before) = (time(), time());
        let finished = self.rng.chance(300);
        let mut query = Vec::new();
        query.extend(kind.as_ref().map(|kind| format!("kind={kind}")));
        query.extend(id.as_ref().map(|id| format!("id={}", encoded(id))));
        query.extend(after.map(|ms| format!("after_ms={ms}")));
        query.extend(before.map(|ms| format!("before_ms={ms}")));
        query.extend(finished.then(|| "finished=true".to_owned()));
        if query.is_empty() {
            self.expect(400, "DELETE", &self.path(user, "/history"), "");
            query.push("all=true".into());
        }
        let path = self.path(user, &format!("/history?{}", query.join("&")));
        let answer = self.expect(200, "DELETE", &path, "");
        let block = ModelBlock { kind, id, after, before, until: now };
        let deleted = self.models[user].clear(&block, finished, now);
        assert_eq!(answer, json!({"deleted": deleted}), "{path}");
    }

    fn switch(&mut self) {
        let (user, on) = (self.user(), self.rng.chance(600));
        let body = json!({"recording": on});
        let path = self.path(user, "/history/settings");
        assert_eq!(self.expect(200, "PUT", &path, &body.to_string()), body);
        self.models[user].switch(on, self.site.now());
    }

    fn export(&mut self) {
        let user = self.user();
        let (status, text) = self.site.call("GET", &self.path(user, "/history/export"), "", &[]);
        assert_eq!(status, 200, "{text}");
        self.saved = Some((text, self.models[user].export(self.site.now())));
    }

    /// Into one of the two, whoever it was of.
    fn restore(&mut self) {
        let Some((text, doc)) = self.saved.clone() else { return };
        let user = self.user();
        let answer = self.expect(200, "POST", &self.path(user, "/history:restore"), &text);
        let model = &mut self.models[user];
        // Rows that are hidden may be gone, and then stand in nobody's way.
        let nothing_hidden = model.shown(self.site.now()).len() == model.rows.len();
        let (accepted, stale) = model.restore(&doc);
        let told = ["accepted", "stale"].map(|name| answer[name].as_u64().unwrap());
        if nothing_hidden {
            assert_eq!(told, [accepted, stale], "restored");
        }
        assert_eq!(told[0] + told[1], accepted + stale, "restored");
    }

    /// A page more of a list that was begun steps ago, or a new one.
    fn walk_on(&mut self) {
        self.walk = match self.walk.take() {
            Some(walk) if self.rng.chance(500) => walk.next(self),
            Some(walk) => Some(walk),
            None => {
                let (user, ask) = (self.user(), Ask::random(&mut self.rng, self.site.now()));
                Walk::new(user, ask, 1 + self.rng.below(3) as usize).next(self)
            }
        };
    }
}
