//! The same random operations on the product's core and on the plain model:
//! every answer and every read must agree, also after the user was laid to
//! rest and loaded, and after the log was coalesced and replayed.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tideline_harness::model::{
    self, Config, DAY, Key, Model, ModelBlock, ModelDoc, ModelMark, Said,
};
use tideline_history::facts::ExportDoc;
use tideline_history::kinds::{Kind, Kinds};
use tideline_history::mark::{Mark, Path, Verdict};
use tideline_history::outcome::OutcomeRef;
use tideline_history::pack::Pack;
use tideline_history::query::{ClearFilter, Filter, ListQuery, PageAt, Row};
use tideline_history::rows::{self, Applied};
use tideline_history::rules::Rules;
use tideline_history::timeline::{Timeline, Touched};
use tideline_store::Op as TableOp;
use tideline_types::{Epoch, Millis, Seq};

use crate::desk::Desk;

const KINDS: [&str; 3] = ["alpha", "beta", "gamma"];
/// A quarter of an hour before New York leaves summer time.
const START: i64 = 1_793_511_900_000;

#[derive(Clone, Debug)]
enum Step {
    Wait(i64),
    Send(Send),
    /// An earlier mark once more, as it was sent then: so many marks back.
    Again(usize),
    Delete(Vec<(usize, usize)>),
    Clear {
        kind: Option<usize>,
        id: Option<usize>,
        after: Option<i64>,
        before: Option<i64>,
        finished: bool,
    },
    Switch(bool),
    Erase,
    Export,
    Restore,
    Expire,
    Rest,
}

#[derive(Clone, Debug)]
struct Send {
    kind: usize,
    id: usize,
    part: Option<u8>,
    position: Option<u64>,
    duration: Option<u64>,
    /// Relative to now.
    sent: Option<i64>,
    shift: i64,
    device: Option<u8>,
    group: Option<u8>,
    finished: bool,
    event_id: Option<u8>,
    path: Path,
}

fn ago() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => (0..12i64).prop_map(|n| -n * 500),
        2 => (0..4i64).prop_map(|n| -n * DAY / 3),
        1 => (-100 * DAY)..0,
        1 => Just(700i64),
        1 => Just(2 * DAY),
    ]
}

fn send() -> impl Strategy<Value = Step> {
    let position = || {
        option::weighted(0.7, prop_oneof![Just(0u64), 0..1600u64, 0..110_000u64, Just(95_000u64)])
    };
    let duration =
        || option::weighted(0.6, prop_oneof![Just(1500u64), Just(100_000u64), 1..2_000_000u64]);
    (
        (0..KINDS.len(), 0..7usize, option::weighted(0.3, 0..3u8), position(), duration()),
        (
            option::weighted(0.8, ago()),
            prop_oneof![6 => Just(0i64), 1 => Just(700i64), 1 => Just(-3_600_000i64)],
            option::weighted(0.2, 0..3u8),
            option::weighted(0.2, 0..2u8),
        ),
        (
            prop::bool::weighted(0.15),
            option::weighted(0.6, 0..4u8),
            prop_oneof![4 => Just(Path::Live), 1 => Just(Path::Merge), 1 => Just(Path::Import)],
        ),
    )
        .prop_map(
            |(
                (kind, id, part, position, duration),
                (sent, shift, device, group),
                (finished, event_id, path),
            )| {
                Step::Send(Send {
                    kind,
                    id,
                    part,
                    position,
                    duration,
                    sent,
                    shift,
                    device,
                    group,
                    finished,
                    event_id,
                    path,
                })
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => send(),
        8 => (0..12usize).prop_map(Step::Again),
        8 => prop_oneof![Just(0i64), Just(1), 0..2000i64, Just(DAY / 2), Just(DAY + 1), 0..(3 * DAY)]
            .prop_map(Step::Wait),
        3 => vec((0..KINDS.len(), 0..7usize), 1..3).prop_map(Step::Delete),
        3 => (
            option::of(0..KINDS.len()),
            option::weighted(0.2, 0..7usize),
            option::weighted(0.4, -6000..100i64),
            option::weighted(0.4, -6000..100i64),
            prop::bool::weighted(0.3),
        )
            .prop_map(|(kind, id, after, before, finished)| Step::Clear {
                kind, id, after, before, finished,
            }),
        2 => any::<bool>().prop_map(Step::Switch),
        1 => Just(Step::Erase),
        1 => Just(Step::Export),
        1 => Just(Step::Restore),
        1 => Just(Step::Expire),
        3 => Just(Step::Rest),
    ]
}

fn id_text(id: usize) -> &'static str {
    [
        "7",
        "007",
        "112489730346240",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "é",
        "z",
        "18446744073709551616",
    ][id]
}

fn configs() -> BTreeMap<String, Config> {
    let config = |retention_days, cap, per_day, daily_first| Config {
        retention_days,
        cap,
        per_day,
        daily_first,
    };
    [config(2, 3, 0, true), config(0, 0, 2, true), config(90, 4, 3, false)]
        .into_iter()
        .zip(KINDS)
        .map(|(config, name)| (name.to_owned(), config))
        .collect()
}

fn kinds(configs: &BTreeMap<String, Config>) -> Kinds {
    let kind = |(name, config): (&String, &Config)| Kind {
        name: name.as_str().into(),
        declared: true,
        retention_days: config.retention_days as u32,
        max_records: config.cap as u32,
        max_per_day: config.per_day as u32,
        daily_first: config.daily_first,
    };
    Kinds::new(configs.iter().map(kind).collect())
}

/// Both sides, and what lies at rest.
struct Pair {
    desk: Desk,
    model: Model,
    table: BTreeMap<Bytes, Bytes>,
    saved: Option<(ExportDoc, ModelDoc)>,
    /// Marks sent, with their times.
    past: Vec<(Send, Option<i64>)>,
    /// (kind, local day) of each first that was granted.
    firsts: Vec<(String, i64)>,
}

impl Pair {
    fn new() -> Self {
        let configs = configs();
        let mut desk = Desk::with(kinds(&configs));
        let zone = jiff::tz::TimeZone::get("America/New_York").unwrap();
        desk.rules.zone = zone.clone();
        desk.now = START;
        Self {
            desk,
            model: Model::new(configs, zone),
            table: BTreeMap::new(),
            saved: None,
            past: Vec::new(),
            firsts: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        let now = self.desk.now;
        match step {
            Step::Wait(ms) => self.desk.now += ms,
            Step::Send(send) => {
                let sent = send.sent.map(|sent| now + sent);
                self.past.push((send.clone(), sent));
                self.send(send, sent);
            }
            Step::Again(back) => {
                if let Some(at) = self.past.len().checked_sub(1 + back) {
                    let (send, sent) = self.past[at].clone();
                    self.send(&send, sent);
                }
            }
            Step::Delete(keys) => {
                let texts: Vec<(&str, &str)> =
                    keys.iter().map(|&(kind, id)| (KINDS[kind], id_text(id))).collect();
                let keys: Vec<Key> =
                    texts.iter().map(|(kind, id)| (kind.to_string(), id.to_string())).collect();
                assert_eq!(self.desk.delete(&texts), self.model.delete(&keys, now), "deleted");
            }
            &Step::Clear { kind, id, after, before, finished } => {
                let (after, before) = (after.map(|ms| now + ms), before.map(|ms| now + ms));
                let filter = ClearFilter {
                    kind: kind.map(|kind| self.desk.kind(KINDS[kind])),
                    id: id.map(|id| id_text(id).into()),
                    after_ms: after.map(Millis),
                    before_ms: before.map(Millis),
                    finished,
                };
                let kind = kind.map(|kind| KINDS[kind].to_owned());
                let id = id.map(|id| id_text(id).to_owned());
                let block = ModelBlock { kind, id, after, before, until: now };
                let cleared = self.desk.clear(&filter);
                assert_eq!(cleared, self.model.clear(&block, finished, now), "cleared");
            }
            &Step::Switch(on) => {
                self.desk.switch(on);
                self.model.switch(on, now);
            }
            Step::Erase => {
                self.desk.erase();
                self.model.erase(now);
            }
            Step::Export => self.saved = Some((self.desk.export(), self.model.export(now))),
            Step::Restore => {
                if let Some((doc, model)) = self.saved.clone() {
                    self.desk.restore(&doc);
                    self.model.restore(&model);
                }
            }
            Step::Expire => {
                let Desk { user, rules, touched, .. } = &mut self.desk;
                user.drop_expired(rules, Millis(now), touched);
            }
            Step::Rest => self.rest(),
        }
    }

    fn send(&mut self, send: &Send, sent: Option<i64>) {
        let now = self.desk.now;
        let part = send.part.map(|part| format!("ep{part}"));
        let device = send.device.map(|device| format!("tv-{device}"));
        let group = send.group.map(|group| format!("g{group}"));
        let event_id = send.event_id.map(|event| format!("e{event}"));
        let mark = Mark {
            user: "u",
            kind: self.desk.kind(KINDS[send.kind]),
            id: id_text(send.id),
            part: part.as_deref(),
            position_ms: send.position,
            duration_ms: send.duration,
            sent_ms: sent.map(Millis),
            device: device.as_deref(),
            group: group.as_deref(),
            finished: send.finished,
            event_id: event_id.as_deref(),
        };
        let verdict = self.desk.send(&mark, send.shift, send.path);
        let model = ModelMark {
            kind: KINDS[send.kind].to_owned(),
            id: id_text(send.id).to_owned(),
            position: send.position.map(|ms| ms as i64),
            duration: send.duration.map(|ms| ms as i64),
            sent,
            shift: send.shift,
            finished: send.finished,
            live: send.path == Path::Live,
            part,
            device,
            group,
            event_id,
        };
        let said = match verdict {
            Verdict::Accepted { first_today } => Said::Accepted { first: first_today },
            Verdict::Stale => Said::Stale,
            Verdict::Paused => Said::Paused,
            Verdict::Duplicate => Said::Duplicate,
            Verdict::OverCap => Said::OverCap,
            Verdict::Ahead | Verdict::BeforeEpoch => Said::Rejected,
        };
        assert_eq!(said, self.model.mark(&model, now), "{model:?}");
        if said == (Said::Accepted { first: true }) {
            self.firsts.push((model.kind, self.model.day(now)));
        }
    }

    /// Lays the user to rest, and loads them from there.
    fn rest(&mut self) {
        let applied = Applied { epoch: Epoch(3), seq: Seq(self.desk.log.len() as u64) };
        let now = Millis(self.desk.now);
        let kinds = self.desk.rules.kinds.clone();
        let ops = rows::plan(&self.desk.user, &self.desk.touched, applied, &kinds, now);
        for op in ops {
            match op {
                TableOp::Put { sort_key, value } => drop(self.table.insert(sort_key, value)),
                TableOp::Delete { sort_key } => drop(self.table.remove(&sort_key)),
            }
        }
        let at_rest: Vec<(Bytes, Bytes)> =
            self.table.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let (user, found) = rows::load(&at_rest, &kinds).unwrap();
        assert_eq!(found, applied);
        let before = living(self.desk.export(), self.desk.now);
        self.desk.user = user;
        self.desk.touched = Touched::default();
        assert_eq!(before, living(self.desk.export(), self.desk.now), "at rest");
    }

    #[allow(clippy::type_complexity)]
    fn filters(&self) -> Vec<(Filter, impl Fn(&Key, &model::ModelRow) -> bool)> {
        let now = self.desk.now;
        let kind = |name: &str| self.desk.kind(name);
        let cases: [(&[&str], Option<i64>, Option<i64>, bool); 5] = [
            (&[], None, None, false),
            (&["alpha"], None, None, false),
            (&["beta", "gamma"], Some(now - 3000), None, false),
            (&[], Some(now - DAY), Some(now - 1000), false),
            (&[], None, None, true),
        ];
        cases
            .into_iter()
            .map(|(names, after, before, unfinished)| {
                let filter = Filter {
                    kinds: names.iter().map(|name| kind(name)).collect(),
                    after_ms: after.map(Millis),
                    before_ms: before.map(Millis),
                    unfinished,
                };
                let lets = move |key: &Key, row: &model::ModelRow| {
                    (names.is_empty() || names.contains(&key.0.as_str()))
                        && after.is_none_or(|after| after <= row.event)
                        && before.is_none_or(|before| row.event < before)
                        && (!unfinished || model::is_unfinished(row))
                };
                (filter, lets)
            })
            .collect()
    }

    fn compare(&self) {
        let now = self.desk.now;
        let shown = self.model.shown(now);
        for (filter, lets) in self.filters() {
            let want: Vec<Plain> = shown
                .iter()
                .filter(|(key, row)| lets(key, row))
                .map(|(key, row)| Plain::of_model(key, row))
                .collect();
            let rules = &self.desk.rules;
            let plain = |rows: Vec<Row>| -> Vec<Plain> {
                rows.iter().map(|row| Plain::of(row, rules)).collect()
            };
            assert_eq!(plain(self.desk.rows(&filter)), want, "rows");
            for limit in [1, 3, 100] {
                assert_eq!(plain(self.desk.by_cursor(&filter, limit)), want, "by cursor");
                for skip in [0, 2, 5] {
                    let list = self.desk.page(&filter, PageAt::Skip(skip), limit);
                    let page: Vec<Plain> = want.iter().skip(skip).take(limit).cloned().collect();
                    assert_eq!((plain(list.rows), list.total), (page, Some(want.len())), "page");
                    assert_eq!(list.more, want.len() > skip + limit);
                }
            }
            assert_eq!(self.desk.count(&filter), want.len(), "count");
            let mut days: BTreeMap<i64, u32> = BTreeMap::new();
            for row in &want {
                *days.entry(self.model.day(row.event)).or_default() += 1;
            }
            let days: Vec<(i32, u32)> =
                days.into_iter().rev().map(|(day, count)| (day as i32, count)).collect();
            assert_eq!(self.desk.days(&filter), days, "days");
        }
        for name in KINDS {
            for id in (0..7).map(id_text) {
                let want = shown.iter().find(|((kind, own), _)| kind == name && own == id);
                let want = want.map(|(key, row)| Plain::of_model(key, row));
                let got = self.desk.row(name, id);
                assert_eq!(got.map(|row| Plain::of(&row, &self.desk.rules)), want, "point");
            }
        }
        assert_eq!(self.desk.user.recording(), self.model.off.is_none());
        let today = self.model.day(now);
        let rewarded: Vec<&str> = self
            .desk
            .user
            .rewarded_on(today as i32)
            .map(|kind| self.desk.rules.kinds.name(kind))
            .collect();
        let want: Vec<&String> = self
            .model
            .rewards
            .iter()
            .filter(|(_, day)| **day == today)
            .map(|(kind, _)| kind)
            .collect();
        assert_eq!(rewarded, want, "rewarded");
    }

    /// Replays the log, coalesced in packs that are cut at `cuts`.
    fn replay(&self, cuts: &[usize], rules: &Rules) -> Timeline {
        let mut user = Timeline::new();
        let mut firsts = Vec::new();
        let mut pack = Pack::new();
        let mut last = Millis(0);
        let mut drain = |pack: &mut Pack, user: &mut Timeline| {
            pack.seal(|time, key, value| {
                assert!(last <= time && key == b"u");
                last = time;
                let outcome = OutcomeRef::decode(value).unwrap();
                if let Some(first) = outcome.first_of_day() {
                    firsts.push((first.kind.to_owned(), i64::from(first.day)));
                }
                user.apply(&outcome, &rules.kinds, &mut Touched::default()).unwrap();
            });
        };
        for (at, bytes) in self.desk.log.iter().enumerate() {
            if cuts.contains(&at) {
                drain(&mut pack, &mut user);
            }
            let outcome = OutcomeRef::decode(bytes).unwrap();
            pack.push(b"u", bytes, outcome.taken_ms());
        }
        drain(&mut pack, &mut user);
        assert_eq!(firsts, self.firsts, "each first once, none lost in a pack");
        user
    }

    fn compare_replay(&self, cuts: &[usize]) {
        // The zone and the caps of another configuration play no part in it.
        let mut other = configs();
        other.values_mut().for_each(|config| config.cap = 1);
        let mut rules = self.desk.rules.clone();
        rules.zone = jiff::tz::TimeZone::get("Asia/Shanghai").unwrap();
        rules.kinds = std::sync::Arc::new(kinds(&other));
        let user = self.replay(cuts, &rules);
        let now = self.desk.now;
        let again = user.export(&self.desk.rules, Millis(now));
        assert_eq!(living(again, now), living(self.desk.export(), now), "replayed");
        let query = ListQuery { filter: Filter::default(), page: PageAt::Below(None), limit: 3 };
        let (mine, theirs) = (&self.desk.user, &user);
        assert_eq!(
            mine.list(&query, &self.desk.rules, Millis(now)).rows.len(),
            theirs.list(&query, &self.desk.rules, Millis(now)).rows.len()
        );
    }
}

/// An export without what time has made void: retries over a day old, and
/// rewards of days that are over everywhere.
fn living(mut doc: ExportDoc, now: i64) -> ExportDoc {
    for row in &mut doc.rows {
        row.facts.retries.retain(|retry| retry.taken_ms.0 > now - DAY);
    }
    doc.facts.rewards.retain(|reward| reward.day >= Millis(now).utc_day() - 2);
    doc
}

/// A row, as both sides show it.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    kind: String,
    id: String,
    part: Option<String>,
    position: Option<i64>,
    duration: Option<i64>,
    event: i64,
    device: Option<String>,
    group: Option<String>,
    finished: bool,
    plays: u32,
}

impl Plain {
    fn of(row: &Row, rules: &Rules) -> Self {
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Self {
            kind: rules.kinds.name(row.kind).to_owned(),
            id: row.id.to_string(),
            part: text(&row.part),
            position: row.position_ms.map(|ms| ms as i64),
            duration: row.duration_ms.map(|ms| ms as i64),
            event: row.event_ms.0,
            device: text(&row.device),
            group: text(&row.group),
            finished: row.finished,
            plays: row.plays,
        }
    }

    fn of_model((kind, id): &Key, row: &model::ModelRow) -> Self {
        Self {
            kind: kind.clone(),
            id: id.clone(),
            part: row.part.clone(),
            position: row.position,
            duration: row.duration,
            event: row.event,
            device: row.device.clone(),
            group: row.group.clone(),
            finished: row.finished,
            plays: row.plays,
        }
    }
}

/// `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(400), max_shrink_iters: 20_000, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_core_and_the_plain_model_agree_on_every_read(
        steps in vec(step(), 1..70),
        cuts in vec(0..70usize, 0..6),
    ) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.step(step);
            pair.compare();
        }
        pair.compare_replay(&cuts);
        pair.compare_replay(&[]);
    }
}
