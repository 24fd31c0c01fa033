//! Every read, as the face answers it and as the model has it.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};
use tideline_harness::model::{DAY, Key, ModelRow, is_unfinished};
use tideline_harness::rng::Rng;

use crate::pair::{Pair, encoded};
use crate::site::CATALOGUE;
use crate::writes::{IDS, KINDS};

/// A list as it is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    kinds: &'static [&'static str],
    after: Option<i64>,
    before: Option<i64>,
    unfinished: bool,
    group: bool,
}

impl Ask {
    pub(crate) fn random(rng: &mut Rng, now: i64) -> Self {
        let kinds: [&'static [&'static str]; 5] =
            [&[], &[], &["alpha"], &["beta", "gamma"], &["gamma"]];
        let mut time = |from: i64| rng.chance(250).then(|| now - rng.below(from as u64) as i64);
        let (after, before) = (time(3 * DAY), time(3_000));
        Self {
            kinds: *rng.pick(&kinds),
            after,
            before,
            unfinished: rng.chance(250),
            group: rng.chance(350),
        }
    }

    /// With `more` parameters of one's own.
    fn query(&self, more: &[String]) -> String {
        let mut query: Vec<String> = self.kinds.iter().map(|kind| format!("kind={kind}")).collect();
        query.extend(self.after.map(|ms| format!("after_ms={ms}")));
        query.extend(self.before.map(|ms| format!("before_ms={ms}")));
        query.extend(self.unfinished.then(|| "unfinished=true".into()));
        query.extend(self.group.then(|| "group=true".into()));
        query.extend_from_slice(more);
        query.join("&")
    }

    fn lets(&self, (kind, _): &Key, row: &ModelRow) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&kind.as_str()))
            && self.after.is_none_or(|after| after <= row.event)
            && self.before.is_none_or(|before| row.event < before)
            && (!self.unfinished || is_unfinished(row))
    }
}

/// The order of lists, as a number that grows.
type Order = (i64, String, String);

fn order(((kind, id), row): &(Key, ModelRow)) -> Order {
    (row.event, kind.clone(), id.clone())
}

fn group_of((kind, id): &Key, row: &ModelRow) -> Option<String> {
    let of_item = CATALOGUE.iter().find(|(k, i, _)| k == kind && i == id);
    of_item.map(|(_, _, group)| (*group).into()).or(row.group.clone())
}

/// Of each kind and group the newest.
fn grouped(rows: Vec<(Key, ModelRow)>) -> Vec<(Key, ModelRow)> {
    let mut seen = HashSet::new();
    rows.into_iter()
        .filter(|(key, row)| {
            group_of(key, row).is_none_or(|group| seen.insert((key.0.clone(), group)))
        })
        .collect()
}

fn fields(key: &Key, row: &ModelRow, group: Option<String>) -> Map<String, Value> {
    let percent = match (row.position, row.duration) {
        (Some(position), Some(duration)) => json!((position * 100 / duration).min(100)),
        _ => Value::Null,
    };
    let all = json!({
        "kind": key.0, "id": key.1, "part": row.part, "position_ms": row.position,
        "duration_ms": row.duration, "event_ms": row.event, "device": row.device,
        "group": group, "finished": row.finished, "plays": row.plays,
    });
    let Value::Object(mut fields) = all else { unreachable!("it is written as one") };
    fields.retain(|_, value| !value.is_null());
    fields.insert("percent".into(), percent);
    fields
}

fn item(ask: &Ask, (key, row): &(Key, ModelRow)) -> Value {
    let group = if ask.group { group_of(key, row) } else { row.group.clone() };
    fields(key, row, group).into()
}

/// The answer of a point read of `part`, or of any.
fn point(key: &Key, part: Option<&str>, row: Option<&ModelRow>) -> Value {
    let row = row.filter(|row| part.is_none() || row.part.as_deref() == part);
    let mut found = match row {
        Some(row) => fields(key, row, row.group.clone()),
        None => {
            let none = json!({"kind": key.0, "id": key.1, "part": part});
            let Value::Object(mut none) = none else { unreachable!("it is written as one") };
            none.retain(|_, value| !value.is_null());
            none
        }
    };
    found.insert("found".into(), row.is_some().into());
    found.into()
}

impl Pair<'_> {
    fn get(&self, user: usize, path: &str) -> Value {
        self.expect(200, "GET", &format!("/v1/users/{}/{path}", self.users[user]), "")
    }

    /// What a list must show, before it is grouped.
    fn let_through(&self, user: usize, ask: &Ask) -> Vec<(Key, ModelRow)> {
        let shown = self.models[user].shown(self.site.now());
        shown.into_iter().filter(|(key, row)| ask.lets(key, row)).collect()
    }

    fn wanted(&self, user: usize, ask: &Ask) -> Vec<(Key, ModelRow)> {
        let rows = self.let_through(user, ask);
        if ask.group { grouped(rows) } else { rows }
    }

    /// One of the reads.
    pub(crate) fn read_one(&mut self, user: usize, ask: &Ask) {
        match self.rng.below(6) {
            0 => self.read_count(user, ask),
            1 => self.read_days(user, ask),
            2 => self.read_page(user, ask),
            3 => self.read_point(user),
            4 => self.read_points(user),
            _ => self.read_list(user, ask),
        }
    }

    /// All of them.
    pub(crate) fn read_all(&mut self, user: usize, ask: &Ask) {
        self.read_count(user, ask);
        self.read_days(user, ask);
        self.read_list(user, ask);
        self.read_page(user, ask);
        self.read_point(user);
        self.read_points(user);
        let recording = self.models[user].off.is_none();
        assert_eq!(self.get(user, "history/settings"), json!({"recording": recording}));
    }

    fn read_count(&self, user: usize, ask: &Ask) {
        let count = self.wanted(user, ask).len();
        let answer = self.get(user, &format!("history/count?{}", ask.query(&[])));
        assert_eq!(answer, json!({"count": count}), "{ask:?}");
    }

    fn read_days(&self, user: usize, ask: &Ask) {
        let ask = Ask { group: false, ..ask.clone() };
        let mut days: BTreeMap<i64, u32> = BTreeMap::new();
        for (_, row) in self.wanted(user, &ask) {
            *days.entry(self.models[user].day(row.event)).or_default() += 1;
        }
        let text = |day: i64| {
            let from = jiff::civil::date(1970, 1, 1);
            from.checked_add(jiff::Span::new().days(day)).unwrap().to_string()
        };
        let days: Vec<Value> = days
            .into_iter()
            .rev()
            .map(|(day, count)| json!({"day": text(day), "count": count}))
            .collect();
        let answer = self.get(user, &format!("history/days?{}", ask.query(&[])));
        assert_eq!(answer, json!(days), "{ask:?}");
    }

    fn read_page(&mut self, user: usize, ask: &Ask) {
        let limit = *self.rng.pick(&[1, 2, 3, 100]);
        let page = 1 + self.rng.below(4) as usize;
        let more = [format!("limit={limit}"), format!("page={page}")];
        let answer = self.get(user, &format!("history?{}", ask.query(&more)));
        let want = self.wanted(user, ask);
        let items: Vec<Value> =
            want.iter().skip((page - 1) * limit).take(limit).map(|one| item(ask, one)).collect();
        let whole = json!({"items": items, "next_cursor": null, "total": want.len()});
        assert_eq!(answer, whole, "page {page} of {limit} of {ask:?}");
    }

    fn read_list(&mut self, user: usize, ask: &Ask) {
        let limit = *self.rng.pick(&[1, 2, 3, 100]);
        let mut walk = Some(Walk::new(user, ask.clone(), limit));
        while let Some(at) = walk {
            walk = at.next(self);
        }
    }

    fn read_point(&mut self, user: usize) {
        let key: Key = ((*self.rng.pick(&KINDS)).into(), (*self.rng.pick(&IDS)).into());
        let part = self.rng.chance(300).then_some("ep1");
        let shown = self.models[user].shown(self.site.now());
        let row = shown.iter().find(|(own, _)| *own == key).map(|(_, row)| row);
        let (kind, id) = (&key.0, encoded(&key.1));
        let path = match self.rng.chance(500) {
            true => format!("progress/{kind}/{id}?"),
            false => format!("progress?kind={kind}&id={id}&"),
        };
        let part_query = part.map(|part| format!("part={part}")).unwrap_or_default();
        let answer = self.get(user, format!("{path}{part_query}").trim_end_matches(['?', '&']));
        assert_eq!(answer, point(&key, part, row));
    }

    /// Every object there can be, in an order of its own.
    fn read_points(&mut self, user: usize) {
        let mut asked: Vec<(Key, Option<&str>)> = Vec::new();
        for kind in KINDS {
            for id in IDS {
                let part = self.rng.chance(200).then_some("ep2");
                let at = self.rng.below(asked.len() as u64 + 1) as usize;
                asked.insert(at, ((kind.into(), id.into()), part));
            }
        }
        let keys: Vec<Value> = asked
            .iter()
            .map(|((kind, id), part)| match part {
                Some(part) => json!({"kind": kind, "id": id, "part": part}),
                None => json!({"kind": kind, "id": id}),
            })
            .collect();
        let path = format!("/v1/users/{}/progress:batchGet", self.users[user]);
        let answer = self.expect(200, "POST", &path, &json!({"keys": keys}).to_string());
        let shown: BTreeMap<Key, ModelRow> =
            self.models[user].shown(self.site.now()).into_iter().collect();
        let items: Vec<Value> =
            asked.iter().map(|(key, part)| point(key, *part, shown.get(key))).collect();
        assert_eq!(answer, json!({"items": items}));
    }
}

/// A list that is being read page by page, while its rows may change.
pub(crate) struct Walk {
    user: usize,
    ask: Ask,
    limit: usize,
    /// The cursor, and the last row shown.
    at: Option<(String, Order)>,
    /// The newest row when it began.
    top: Option<Order>,
}

impl Walk {
    pub(crate) fn new(user: usize, ask: Ask, limit: usize) -> Self {
        Self { user, ask, limit, at: None, top: None }
    }

    /// Reads a page; nothing is left where it was the last one.
    pub(crate) fn next(mut self, pair: &Pair<'_>) -> Option<Self> {
        let mut rows = pair.let_through(self.user, &self.ask);
        if self.at.is_none() {
            self.top = rows.first().map(order);
        }
        if self.ask.group {
            // A grouped list does not look above its first page.
            rows.retain(|one| self.top.as_ref().is_some_and(|top| order(one) <= *top));
            rows = grouped(rows);
        }
        if let Some((_, last)) = &self.at {
            rows.retain(|one| order(one) < *last);
        }
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let mut query = vec![format!("limit={}", self.limit)];
        query.extend(self.at.as_ref().map(|(cursor, _)| format!("cursor={cursor}")));
        let answer = pair.get(self.user, &format!("history?{}", self.ask.query(&query)));
        let items: Vec<Value> = rows.iter().map(|one| item(&self.ask, one)).collect();
        assert_eq!(answer["items"], json!(items), "{:?}", self.ask);
        assert_eq!(answer["next_cursor"].is_string(), more, "{answer}");
        assert!(answer.get("total").is_none() && answer.get("partial").is_none());
        let cursor = answer["next_cursor"].as_str()?.to_owned();
        self.at = Some((cursor, order(rows.last()?)));
        Some(self)
    }
}
