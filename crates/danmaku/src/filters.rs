//! Lists of what somebody does not want to see: keywords, regular expressions
//! and senders; of the site, of a video's owner, of a viewer.
//!
//! A list travels as the JSON that block lists are exchanged in: an array of
//! `{"type":0|1|2,"filter":"…","opened":true,"id":…}`, where 0 is a keyword, 1 a
//! regular expression and 2 a sender. Expressions take time linear in the text,
//! whatever they say; keywords do not tell upper case from lower.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde_json::{Map, Value};
use tideline_types::limits::{FILTER_BYTES_MAX, FILTERS_BYTES_MAX, FILTERS_MAX};

/// What a filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of the text.
    Keyword,
    /// An expression that matches a part of the text.
    Regex,
    /// The sender, as others see them, or a user's id.
    Sender,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// What it looks at.
    pub kind: Kind,
    /// What it looks for.
    pub filter: String,
    /// Whether it is in force.
    pub opened: bool,
    /// Of the list that it came from.
    pub id: Option<i64>,
}

/// Why a list, or an entry of one, is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFilters {
    /// Not the JSON of a list.
    #[error("not a list of filters: {0}")]
    Json(String),
    /// An entry that makes no sense.
    #[error("filter {index}: {why}")]
    Entry {
        /// From 0.
        index: usize,
        /// Why.
        why: String,
    },
    /// Over a limit.
    #[error("{given} {what}, at most {max} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// Given.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// All expressions of the list together.
    #[error("the expressions of the list are too complex together")]
    TooComplex,
}

/// Reads a list in full; the first wrong entry is an error.
pub fn parse(json: &str) -> Result<Vec<Filter>, BadFilters> {
    let entries = entries(json)?;
    let read = |(index, entry): (usize, &Value)| {
        filter(entry).map_err(|why| BadFilters::Entry { index, why })
    };
    entries.iter().enumerate().map(read).collect()
}

/// A list as it is kept, if it can be in force: all usual values said, within
/// the limits.
pub fn checked(json: &str) -> Result<String, BadFilters> {
    let list = parse(json)?;
    Filters::new(&list)?;
    let json = export(&list);
    within("bytes", json.len(), FILTERS_BYTES_MAX)?;
    Ok(json)
}

/// Reads what can be read of a list from elsewhere, and says of the rest why
/// not.
pub fn import(json: &str) -> Result<(Vec<Filter>, Vec<BadFilters>), BadFilters> {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for (index, entry) in entries(json)?.iter().enumerate() {
        match filter(entry) {
            Ok(filter) => kept.push(filter),
            Err(why) => dropped.push(BadFilters::Entry { index, why }),
        }
    }
    Ok((kept, dropped))
}

/// Writes a list.
pub fn export(filters: &[Filter]) -> String {
    let entry = |filter: &Filter| {
        let mut map = Map::new();
        map.insert("type".into(), (filter.kind as u8).into());
        map.insert("filter".into(), filter.filter.as_str().into());
        map.insert("opened".into(), filter.opened.into());
        if let Some(id) = filter.id {
            map.insert("id".into(), id.into());
        }
        Value::Object(map)
    };
    Value::Array(filters.iter().map(entry).collect()).to_string()
}

fn entries(json: &str) -> Result<Vec<Value>, BadFilters> {
    within("bytes", json.len(), FILTERS_BYTES_MAX)?;
    let value: Vec<Value> =
        serde_json::from_str(json).map_err(|error| BadFilters::Json(error.to_string()))?;
    within("filters", value.len(), FILTERS_MAX)?;
    Ok(value)
}

fn within(what: &'static str, given: usize, max: usize) -> Result<(), BadFilters> {
    if given <= max { Ok(()) } else { Err(BadFilters::TooMany { what, given, max }) }
}

fn filter(entry: &Value) -> Result<Filter, String> {
    let kind = match entry["type"].as_u64() {
        Some(0) => Kind::Keyword,
        Some(1) => Kind::Regex,
        Some(2) => Kind::Sender,
        _ => return Err("type is 0, 1 or 2".into()),
    };
    let text = entry["filter"].as_str().ok_or("filter is a text")?;
    if text.is_empty() || text.len() > FILTER_BYTES_MAX {
        return Err(format!("filter has 1 to {FILTER_BYTES_MAX} bytes"));
    }
    if kind == Kind::Regex {
        expression(text).build().map_err(|error| error.to_string())?;
    }
    let opened = match &entry["opened"] {
        Value::Null => true,
        Value::Bool(opened) => *opened,
        _ => return Err("opened is true or false".into()),
    };
    Ok(Filter { kind, filter: text.into(), opened, id: entry["id"].as_i64() })
}

fn expression(text: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX);
    builder
}

/// A list in force.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    keywords: Option<Regex>,
    expressions: Option<RegexSet>,
    senders: BTreeSet<Box<str>>,
}

impl Filters {
    /// Makes the list ready.
    pub fn new(filters: &[Filter]) -> Result<Self, BadFilters> {
        let opened = |kind| filters.iter().filter(move |f| f.opened && f.kind == kind);
        let too_complex = |_| BadFilters::TooComplex;
        let keywords: Vec<String> = opened(Kind::Keyword)
            .map(|filter| regex::escape(&filter.filter.to_lowercase()))
            .collect();
        let keywords = match keywords.is_empty() {
            true => None,
            false => Some(
                RegexBuilder::new(&keywords.join("|"))
                    .size_limit(KEYWORDS_BYTES_MAX)
                    .dfa_size_limit(COMPILED_BYTES_MAX)
                    .build()
                    .map_err(too_complex)?,
            ),
        };
        let expressions: Vec<&String> = opened(Kind::Regex).map(|filter| &filter.filter).collect();
        let expressions = match expressions.is_empty() {
            true => None,
            false => Some(
                RegexSetBuilder::new(expressions)
                    .size_limit(COMPILED_BYTES_MAX)
                    .dfa_size_limit(COMPILED_BYTES_MAX)
                    .build()
                    .map_err(too_complex)?,
            ),
        };
        let senders = opened(Kind::Sender).map(|filter| filter.filter.as_str().into()).collect();
        Ok(Self { keywords, expressions, senders })
    }

    /// Whether a text by a sender, who may have several names, is unwanted.
    pub fn rejects(&self, text: &str, senders: &[&str]) -> bool {
        senders.iter().any(|sender| self.senders.contains(*sender))
            || self.keywords.as_ref().is_some_and(|words| words.is_match(&text.to_lowercase()))
            || self.expressions.as_ref().is_some_and(|set| set.is_match(text))
    }

    /// A list in force from its JSON; nothing is filtered if it makes no sense.
    pub(crate) fn of_rest(json: &Arc<str>) -> Self {
        parse(json).and_then(|list| Self::new(&list)).unwrap_or_default()
    }
}

/// Bytes that compiled expressions of a list take, at most.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Bytes that compiled keywords of a list take, at most.
const KEYWORDS_BYTES_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"[{"type":0,"filter":"Spoiler","opened":true,"id":7},{"type":1,"filter":"^6+$","opened":true},{"type":2,"filter":"a6216d9","opened":true},{"type":0,"filter":"off","opened":false}]"#;

    #[test]
    fn a_list_reads_back_and_filters_what_it_says() {
        let list = parse(LIST).unwrap();
        assert_eq!(parse(&export(&list)).as_ref(), Ok(&list));
        let filters = Filters::new(&list).unwrap();
        assert!(filters.rejects("a sPOILER!", &[]));
        assert!(filters.rejects("6666", &[]) && !filters.rejects("a6666", &[]));
        assert!(filters.rejects("hello", &["ann", "a6216d9"]));
        assert!(!filters.rejects("off with it", &["ann", "1"]));
        assert!(!Filters::default().rejects("", &[]));
    }

    #[test]
    fn a_list_is_kept_within_its_limit_with_all_that_it_does_not_say() {
        assert_eq!(
            checked(r#"[{"type":0,"filter":"a"}]"#).unwrap(),
            r#"[{"filter":"a","opened":true,"type":0}]"#
        );
        let entry = format!(r#"{{"type":0,"filter":"{}"}}"#, "a".repeat(940));
        let list = format!("[{}]", vec![entry; 515].join(","));
        assert!(list.len() < FILTERS_BYTES_MAX);
        assert!(matches!(checked(&list), Err(BadFilters::TooMany { what: "bytes", .. })));
        assert!(checked(r#"[{"type":1,"filter":"("}]"#).is_err());
    }

    #[test]
    fn a_keyword_is_no_expression() {
        let list = parse(r#"[{"type":0,"filter":"a.c|x"}]"#).unwrap();
        let filters = Filters::new(&list).unwrap();
        assert!(filters.rejects("A.C|X", &[]));
        assert!(!filters.rejects("abc", &[]) && !filters.rejects("x", &[]));
    }

    #[test]
    fn an_expression_takes_linear_time() {
        let list = parse(r#"[{"type":1,"filter":"^(a+)+$"}]"#).unwrap();
        let filters = Filters::new(&list).unwrap();
        assert!(!filters.rejects(&("a".repeat(300) + "!"), &[]));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert!(matches!(parse("{}"), Err(BadFilters::Json(_))));
        for (entry, at) in [
            (r#"[{"type":3,"filter":"a"}]"#, 0),
            (r#"[{"type":0,"filter":"a"},{"type":0,"filter":""}]"#, 1),
            (r#"[{"type":1,"filter":"(?=a)"}]"#, 0),
            (r#"[{"type":1,"filter":"("}]"#, 0),
            (r#"[{"type":0,"filter":7}]"#, 0),
            (r#"[5]"#, 0),
        ] {
            let error = parse(entry).unwrap_err();
            assert!(matches!(error, BadFilters::Entry { index, .. } if index == at), "{error}");
        }
        let many = format!("[{}]", vec![r#"{"type":0,"filter":"a"}"#; FILTERS_MAX + 1].join(","));
        assert!(matches!(parse(&many), Err(BadFilters::TooMany { what: "filters", .. })));
        let wild = r#"[{"type":1,"filter":"(\\w{900}){900}"}]"#;
        assert!(parse(wild).is_err(), "an expression that would take megabytes");
    }

    #[test]
    fn of_a_list_from_elsewhere_the_good_part_is_kept() {
        let json =
            r#"[{"type":0,"filter":"a"},{"type":1,"filter":"/(?<!b)c/"},{"type":2,"filter":"1"}]"#;
        let (kept, dropped) = import(json).unwrap();
        assert_eq!((kept.len(), dropped.len()), (2, 1));
    }

    #[test]
    fn five_thousand_keywords_are_ready_at_once() {
        let list: Vec<Filter> = (0..FILTERS_MAX)
            .map(|n| Filter {
                kind: Kind::Keyword,
                filter: format!("词{n}语"),
                opened: true,
                id: None,
            })
            .collect();
        let filters = Filters::new(&list).unwrap();
        assert!(filters.rejects("这是词4999语吗", &[]) && !filters.rejects("词语", &[]));
    }
}
