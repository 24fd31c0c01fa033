//! NDJSON: one mark a line, in the shape that the API takes, with its user.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::entry::{Defaults, Entry, Format, Parsed};
use super::records::Cut;

/// One mark a line. `user` and `kind` may come from the command line; `title`
/// goes to the catalogue.
#[derive(Debug, Default)]
pub struct Ndjson {
    defaults: Defaults,
}

/// The line, as written. Ids may be numbers and are kept digit by digit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    user: Option<&'a RawValue>,
    kind: Option<String>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    event_ms: Option<i64>,
    #[serde(borrow)]
    device: Option<&'a RawValue>,
    #[serde(borrow)]
    group: Option<&'a RawValue>,
    finished: Option<bool>,
    #[serde(borrow)]
    event_id: Option<&'a RawValue>,
    title: Option<String>,
}

impl Ndjson {
    /// `user` and `kind` stand in where a line has none.
    pub fn new(user: Option<String>, kind: Option<String>) -> Self {
        Self { defaults: Defaults { user, kind } }
    }

    fn entry(&self, record: &[u8]) -> Result<Entry, String> {
        let line: Line<'_> = serde_json::from_slice(record).map_err(|e| e.to_string())?;
        Ok(Entry {
            user: id("user", line.user)?.or_else(|| self.defaults.user.clone()).unwrap_or_default(),
            kind: line.kind.or_else(|| self.defaults.kind.clone()).unwrap_or_default(),
            id: id("id", line.id)?.unwrap_or_default(),
            part: id("part", line.part)?,
            position_ms: line.position_ms,
            duration_ms: line.duration_ms,
            event_ms: line.event_ms,
            device: id("device", line.device)?,
            group: id("group", line.group)?,
            finished: line.finished.unwrap_or(false),
            event_id: id("event_id", line.event_id)?,
            title: line.title,
        })
    }
}

/// A text, or a number exactly as it is written.
fn id(name: &str, value: Option<&RawValue>) -> Result<Option<String>, String> {
    let Some(raw) = value.map(RawValue::get) else { return Ok(None) };
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map(Some).map_err(|e| format!("{name}: {e}")),
        Some(b'0'..=b'9' | b'-') => Ok(Some(raw.to_owned())),
        _ => Err(format!("{name} is neither a text nor a number")),
    }
}

impl Format for Ndjson {
    fn cut(&self) -> Cut {
        Cut::Lines
    }

    fn parse(&mut self, record: &[u8]) -> Parsed {
        if record.trim_ascii().is_empty() {
            return Parsed::Skip;
        }
        match self.entry(record) {
            Ok(entry) => entry.fit(),
            Err(why) => Parsed::Bad(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Parsed {
        Ndjson::new(None, Some("video".into())).parse(line.as_bytes())
    }

    #[test]
    fn a_line_is_a_mark_as_the_api_takes_it_with_its_user() {
        let Parsed::Mark(entry) = parse(
            r#"{"user":"ann","kind":"comic","id":112489730346240000001,"part":"ep3",
                "position_ms":61500,"event_ms":1796000000000,"title":"Tides"}"#,
        ) else {
            panic!("no mark")
        };
        assert_eq!(entry.id, "112489730346240000001");
        assert_eq!((&*entry.kind, entry.position_ms), ("comic", Some(61_500)));
        assert_eq!(entry.title.as_deref(), Some("Tides"));
        assert_eq!(
            serde_json::to_string(&entry).unwrap(),
            r#"{"user":"ann","kind":"comic","id":"112489730346240000001","part":"ep3","position_ms":61500,"event_ms":1796000000000}"#
        );
    }

    #[test]
    fn a_bad_line_says_why() {
        let why = |line: &str| match parse(line) {
            Parsed::Bad(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why(r#"{"user":"a","id":"7","sped":2}"#).contains("unknown field `sped`"));
        assert!(why("nonsense").contains("expected"));
        assert_eq!(why(r#"{"user":"a","id":true}"#), "id is neither a text nor a number");
        assert_eq!(why(r#"{"id":"7"}"#), "user must be 1 to 128 bytes");
        assert_eq!(why(r#"{"user":"a","id":"7","event_ms":0}"#), "event_ms must be greater than 0");
        assert_eq!(parse("  "), Parsed::Skip);
    }

    #[test]
    fn a_long_id_becomes_its_hash_and_a_long_device_is_cut() {
        let line =
            format!(r#"{{"user":"a","id":"{}","device":"{}"}}"#, "x".repeat(65), "d".repeat(65));
        let Parsed::Mark(entry) = parse(&line) else { panic!("no mark") };
        assert_eq!(entry.id.len(), 36);
        assert_eq!(entry.device, Some("d".repeat(64)));
    }
}
