//! What is declared, read and carried out.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::Value as Json;
use tideline_record::batch::Record;
use tideline_record::kv::Change;
use tideline_record::{Operator, Output};
use xxhash_rust::xxh3::xxh3_64;

use crate::Shape;
use crate::expression::{Expression, SEEN_BYTES_MAX, Scope};

/// Fields of a projection, at most.
const FIELDS_MAX: usize = 100;
/// Keys of a hot set, at most; the length of a text bounds them as well.
const HOT_MAX: usize = 1_000;

/// As it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    hot: Option<Vec<String>>,
    kind: Option<String>,
    sample: Option<Sample>,
    filter: Option<String>,
    key: Option<String>,
    value: Option<Projection>,
    counter: Option<Counter>,
    set: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    one_in: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counter {
    add: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Projection {
    One(String),
    Fields(BTreeMap<String, String>),
}

/// An operator that was declared by a text.
pub struct Declared {
    shape: Option<Shape>,
    /// Looked up only: its order reaches nothing.
    hot: Option<HashSet<Vec<u8>>>,
    kind: Option<String>,
    one_in: u64,
    filter: Option<Expression>,
    key: Option<Expression>,
    hand_on: HandOn,
}

/// What becomes of the value.
enum HandOn {
    AsItCame,
    One(Expression),
    Fields(Vec<(String, Expression)>),
    Add(Expression),
    Set(Expression),
}

impl Declared {
    /// Reads a text; says what is wrong with it, by the name of the part.
    pub fn read(text: &str, shape: Option<Shape>) -> Result<Self, String> {
        let spec: Spec = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let read =
            |part: &str, text: &str| Expression::read(text).map_err(|why| format!("{part}: {why}"));
        let one = |part: &str, text: Option<&String>| text.map(|t| read(part, t)).transpose();
        let one_in = spec.sample.as_ref().map_or(1, |sample| sample.one_in);
        if one_in == 0 {
            return Err("sample.one_in: at least 1".into());
        }
        if spec.hot.as_ref().is_some_and(|hot| hot.len() > HOT_MAX) {
            return Err(format!("hot: at most {HOT_MAX} keys"));
        }
        let hand_on = match (&spec.value, &spec.counter, &spec.set) {
            (None, None, None) => HandOn::AsItCame,
            (Some(Projection::One(text)), None, None) => HandOn::One(read("value", text)?),
            (Some(Projection::Fields(fields)), None, None) if fields.len() <= FIELDS_MAX => {
                let field = |(name, text): (&String, &String)| {
                    Ok((name.clone(), read(&format!("value.{name}"), text)?))
                };
                HandOn::Fields(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
            (Some(_), None, None) => return Err(format!("value: at most {FIELDS_MAX} fields")),
            (None, Some(counter), None) => HandOn::Add(read("counter.add", &counter.add)?),
            (None, None, Some(text)) => HandOn::Set(read("set", text)?),
            _ => return Err("value, counter, set: one of them".into()),
        };
        Ok(Self {
            shape,
            filter: one("filter", spec.filter.as_ref())?,
            key: one("key", spec.key.as_ref())?,
            hot: spec.hot.map(|hot| hot.into_iter().map(String::into_bytes).collect()),
            kind: spec.kind,
            one_in,
            hand_on,
        })
    }

    /// Whether expressions, or the kind, need the value.
    fn looks_inside(&self) -> bool {
        self.kind.is_some()
            || self.filter.is_some()
            || self.key.is_some()
            || !matches!(self.hand_on, HandOn::AsItCame)
    }

    /// The value as JSON; null where it is none.
    fn see(&self, record: &Record<'_>) -> Result<Json, String> {
        if record.value.len() > SEEN_BYTES_MAX {
            return Err(format!("the value is over {SEEN_BYTES_MAX} bytes"));
        }
        match self.shape {
            None => Ok(serde_json::from_slice(record.value).unwrap_or(Json::Null)),
            Some(shape) => {
                let text = shape(record).ok_or("the value makes no sense")?;
                serde_json::from_str(&text).map_err(|error| error.to_string())
            }
        }
    }

    fn hand_on(&self, record: &Record<'_>, scope: &Scope) -> Result<Vec<u8>, String> {
        let value = match &self.hand_on {
            HandOn::AsItCame => return Ok(record.value.to_vec()),
            HandOn::Add(by) => return Ok(Change::Add(by.number(scope)?).write()),
            HandOn::Set(value) => return Ok(Change::Set(value.json(scope)?).write()),
            HandOn::One(value) => value.json(scope)?,
            HandOn::Fields(fields) => {
                let field = |(name, e): &(String, Expression)| Ok((name.clone(), e.json(scope)?));
                Json::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
        };
        Ok(value.to_string().into_bytes())
    }
}

impl Operator for Declared {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        if self.hot.as_ref().is_some_and(|hot| !hot.contains(record.key)) {
            return Ok(());
        }
        if self.one_in > 1 && !xxh3_64(record.key).is_multiple_of(self.one_in) {
            return Ok(());
        }
        if !self.looks_inside() {
            out.push(record.key, record.value);
            return Ok(());
        }
        let value = self.see(record)?;
        let is = value.get("kind").and_then(Json::as_str);
        if self.kind.as_deref().is_some_and(|kind| is != Some(kind)) {
            return Ok(());
        }
        let key = String::from_utf8_lossy(record.key);
        let scope = Scope::new(&key, value, record.time.0, record.seq.0);
        if let Some(filter) = &self.filter
            && !filter.is_true(&scope)?
        {
            return Ok(());
        }
        let key = self.key.as_ref().map(|key| key.key(&scope)).transpose()?;
        let key = key.as_ref().map_or(record.key, |key| key.as_bytes());
        out.push(key, &self.hand_on(record, &scope)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tideline_types::{Millis, Seq};

    use super::*;

    fn apply(spec: &str, key: &str, value: &str) -> Result<Vec<(String, String)>, String> {
        let record = Record {
            seq: Seq(7),
            sub: 0,
            time: Millis(1_000),
            erased: false,
            skipped: false,
            key: key.as_bytes(),
            value: value.as_bytes(),
        };
        let mut out = Output::default();
        Declared::read(spec, None)?.apply(&record, &mut out)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Ok(out.records().map(|(key, value, _)| (text(key), text(value))).collect())
    }

    const MARK: &str = r#"{"kind":"video","id":"v1","position_ms":500,"plays":2}"#;

    #[test]
    fn what_a_spec_says_is_kept_and_made() {
        let one = |spec| apply(spec, "ann", MARK).unwrap();
        let pair = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        assert_eq!(one("{}"), pair("ann", MARK));
        assert_eq!(one(r#"{"kind":"video"}"#), pair("ann", MARK));
        assert_eq!(one(r#"{"kind":"live"}"#), []);
        assert_eq!(one(r#"{"filter":"value.plays > 1"}"#), pair("ann", MARK));
        assert_eq!(one(r#"{"filter":"value.plays > 2"}"#), []);
        let spec = r#"{"key":"value.id","value":{"who":"key","at":"value.position_ms"}}"#;
        assert_eq!(one(spec), pair("v1", r#"{"at":500,"who":"ann"}"#));
        assert_eq!(one(r#"{"value":"value.plays * 10"}"#), pair("ann", "20"));
        let spec = r#"{"key":"value.id","counter":{"add":"1"}}"#;
        assert_eq!(one(spec), pair("v1", r#"{"add":1}"#));
        let spec = r#"{"key":"key + ':' + value.id","set":"value.position_ms"}"#;
        assert_eq!(one(spec), pair("ann:v1", r#"{"set":500}"#));
    }

    #[test]
    fn a_sample_keeps_all_of_a_key_or_nothing_of_it() {
        let spec = r#"{"sample":{"one_in":10}}"#;
        let kept = |n: u32| apply(spec, &n.to_string(), "x").unwrap().len();
        let all: usize = (0..10_000).map(kept).sum();
        assert!((800..1_200).contains(&all), "{all}");
        assert_eq!(kept(3), kept(3));
    }

    #[test]
    fn a_hot_set_keeps_its_keys_and_costs_no_look_at_the_value() {
        let kept = |key| apply(r#"{"hot":["a","b"]}"#, key, "no json").unwrap().len();
        assert_eq!(["a", "b", "c", ""].map(kept), [1, 1, 0, 0]);
        assert_eq!(apply(r#"{"hot":[]}"#, "a", "1").unwrap(), []);
        let spec = r#"{"hot":["ann"],"key":"value.id","counter":{"add":"1"}}"#;
        assert_eq!(apply(spec, "ann", MARK).unwrap(), [("v1".into(), r#"{"add":1}"#.into())]);
        assert_eq!(apply(spec, "bob", MARK).unwrap(), []);
    }

    #[test]
    fn a_text_that_declares_nothing_says_which_part_is_wrong() {
        let why = |spec| apply(spec, "", "").unwrap_err();
        assert!(why("[]").contains("invalid"));
        assert!(why(r#"{"fliter":"true"}"#).contains("unknown field `fliter`"));
        assert!(why(r#"{"filter":"value."}"#).starts_with("filter: "));
        assert!(why(r#"{"value":{"a":"x["}}"#).starts_with("value.a: "));
        assert_eq!(why(r#"{"sample":{"one_in":0}}"#), "sample.one_in: at least 1");
        let many = format!("{{\"hot\":[{}\"\"]}}", "\"\",".repeat(HOT_MAX));
        assert_eq!(why(&many), "hot: at most 1000 keys");
        assert_eq!(why(r#"{"set":"1","value":"1"}"#), "value, counter, set: one of them");
    }

    #[test]
    fn a_value_that_does_not_fit_is_a_failure_with_a_reason() {
        let spec = r#"{"filter":"value.plays > 1"}"#;
        assert!(apply(spec, "a", "no json").unwrap_err().starts_with("value.plays > 1: "));
        let long = format!("\"{}\"", "x".repeat(SEEN_BYTES_MAX));
        assert_eq!(apply(spec, "a", &long).unwrap_err(), "the value is over 65536 bytes");
    }
}
