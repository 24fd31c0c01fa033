//! Random marks and the ways in which they are sent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tideline_harness::model::{Config, DAY, ModelMark};
use tideline_harness::rng::Rng;

pub(crate) const KINDS: [&str; 3] = ["alpha", "beta", "gamma"];
pub(crate) const IDS: [&str; 7] = [
    "7",
    "007",
    "112489730346240",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    "é/ %",
    "z",
    "18446744073709551616",
];

pub(crate) fn configs() -> BTreeMap<String, Config> {
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

/// By which call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    One,
    Array,
    Merge,
    Batch,
    Lines,
    Import,
}

/// A request that writes; the same may be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) way: Way,
    /// The user of the path.
    pub(crate) user: usize,
    /// By how much the device's clock is behind, where it says what it shows.
    pub(crate) shift: Option<i64>,
    pub(crate) fast: bool,
    pub(crate) marks: Vec<Mark>,
}

#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) user: usize,
    /// The fields, without the user.
    fields: String,
    /// Nothing where it is refused as it stands.
    pub(crate) model: Option<ModelMark>,
}

impl Write {
    /// One that is sent at `now`.
    pub(crate) fn random(rng: &mut Rng, now: i64) -> Self {
        let way = match rng.below(12) {
            0..5 => Way::One,
            5..8 => Way::Array,
            8 => Way::Merge,
            9 => Way::Batch,
            10 => Way::Lines,
            _ => Way::Import,
        };
        let shift = rng.chance(300).then(|| {
            // An hour slow, an hour fast, a little slow, never set.
            *rng.pick(&[3_600_000, -3_600_000, 700, now - 200 * DAY])
        });
        let user = rng.below(2) as usize;
        let many = matches!(way, Way::Batch | Way::Lines | Way::Import);
        let count = if way == Way::One { 1 } else { 1 + rng.below(6) };
        let marks = (0..count)
            .map(|_| {
                let user = if many { rng.below(2) as usize } else { user };
                Mark::random(rng, user, now, shift.unwrap_or(0), way)
            })
            .collect();
        Self { way, user, shift, fast: rng.chance(200), marks }
    }

    /// Path and body.
    pub(crate) fn request(&self, users: &[String; 2]) -> (String, String) {
        let user = &users[self.user];
        let ack = if self.fast { "?ack=fast" } else { "" };
        let with_user = |mark: &Mark| {
            let user = &users[mark.user];
            // Ids may come as numbers.
            let quote = if user.parse::<u64>().is_ok() { "" } else { "\"" };
            format!("{{\"user\":{quote}{user}{quote},{}}}", mark.fields)
        };
        let plain = |mark: &Mark| format!("{{{}}}", mark.fields);
        let join = |each: &dyn Fn(&Mark) -> String, between: &str| {
            self.marks.iter().map(each).collect::<Vec<_>>().join(between)
        };
        match self.way {
            Way::One => (format!("/v1/users/{user}/history{ack}"), join(&plain, "")),
            Way::Array => {
                (format!("/v1/users/{user}/history{ack}"), format!("[{}]", join(&plain, ",")))
            }
            Way::Merge => {
                (format!("/v1/users/{user}/history:merge"), format!("[{}]", join(&plain, ",")))
            }
            Way::Batch => {
                let body = format!("{{\"marks\":[{}]}}", join(&with_user, ","));
                (format!("/v1/history:batch{ack}"), body)
            }
            Way::Lines => (format!("/v1/history:batch{ack}"), join(&with_user, "\n")),
            Way::Import => {
                let body = format!("{{\"marks\":[{}]}}", join(&with_user, ","));
                ("/v1/history:batch?import=true".into(), body)
            }
        }
    }
}

impl Mark {
    fn random(rng: &mut Rng, user: usize, now: i64, shift: i64, way: Way) -> Self {
        let text = |rng: &mut Rng, per_mille, name: &str, below| {
            rng.chance(per_mille).then(|| format!("{name}{}", rng.below(below)))
        };
        let sent = rng.chance(800).then(|| now + ago(rng) - shift);
        let position = rng.chance(700).then(|| match rng.below(4) {
            0 => 0,
            1 => rng.below(1_600) as i64,
            2 => 95_000,
            _ => rng.below(110_000) as i64,
        });
        let duration = rng.chance(600).then(|| match rng.below(3) {
            0 => 1_500,
            1 => 100_000,
            _ => 1 + rng.below(2_000_000) as i64,
        });
        let model = ModelMark {
            kind: (*rng.pick(&KINDS)).into(),
            id: (*rng.pick(&IDS)).into(),
            part: text(rng, 300, "ep", 3),
            position,
            duration,
            sent,
            shift,
            device: text(rng, 200, "tv-", 3),
            group: text(rng, 300, "g", 2),
            finished: rng.chance(150),
            event_id: text(rng, 600, "e", 4),
            live: !matches!(way, Way::Merge | Way::Import),
        };
        let mut fields = written(&model, rng);
        if rng.chance(970) {
            return Self { user, fields, model: Some(model) };
        }
        match rng.below(4) {
            0 => fields = fields.replacen(&*model.kind, "opera", 1),
            1 => fields.push_str(",\"positon_ms\":1"),
            2 => fields.push_str(",\"part\":7.5"),
            _ => fields = fields.replacen("\"id\"", "\"event_id\"", 1),
        }
        Self { user, fields, model: None }
    }
}

fn ago(rng: &mut Rng) -> i64 {
    match rng.below(11) {
        0..6 => -500 * rng.below(12) as i64,
        6 | 7 => -(rng.below(4) as i64) * DAY / 3,
        8 => -(rng.below(100 * DAY as u64) as i64),
        9 => 700,
        _ => 2 * DAY,
    }
}

fn written(mark: &ModelMark, rng: &mut Rng) -> String {
    let mut out = format!("\"kind\":\"{}\",", mark.kind);
    let decimal = mark.id.bytes().all(|byte| byte.is_ascii_digit()) && !mark.id.starts_with('0');
    let quote = if decimal && rng.chance(500) { "" } else { "\"" };
    let mut push = |text: std::fmt::Arguments<'_>| out.write_fmt(text).unwrap();
    push(format_args!("\"id\":{quote}{}{quote}", mark.id));
    let numbers = [
        ("position_ms", mark.position),
        // A duration of 0 is none.
        ("duration_ms", mark.duration.or(rng.chance(100).then_some(0))),
        ("event_ms", mark.sent),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            push(format_args!(",\"{name}\":{number}"));
        }
    }
    let texts = [
        ("part", &mark.part),
        ("device", &mark.device),
        ("group", &mark.group),
        ("event_id", &mark.event_id),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            push(format_args!(",\"{name}\":\"{text}\""));
        }
    }
    if mark.finished || rng.chance(100) {
        push(format_args!(",\"finished\":{}", mark.finished));
    }
    out
}
