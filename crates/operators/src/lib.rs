//! Operators that are declared without code: what a derived topic keeps of each
//! record of its source, and what it makes of it.
//!
//! ```json
//! {"kind": "video", "sample": {"one_in": 100},
//!  "filter": "value.finished && value.plays > 1",
//!  "key": "value.id", "value": {"user": "key", "at": "value.position_ms"}}
//! ```
//!
//! Steps in this order, each left out if it is not there: `hot` keeps records of the
//! keys that it lists; `kind` keeps those whose value has that kind; `sample`
//! keeps one key in so many; `filter` keeps what an expression says; then `key` and `value` say what is handed on, or
//! `counter` or `set` make it an operation on a key, as caches and stores take
//! it. Expressions are in CEL (<https://cel.dev>), over `key`, `value` (the
//! value as JSON), `time_ms` and `seq`.
//!
//! Always: the same record gives the same bytes, on any machine. Expressions
//! have no clock and no chance; the parts of CEL whose result depends on the
//! order within a map are refused when a topic is declared. Their length and the
//! length of what they see is bounded, and with both the work of one record.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod expression;
#[doc(hidden)]
pub mod fuzz;
mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;

use tideline_record::batch::Record;
use tideline_record::{Maker, Operator};
use tideline_types::TopicName;

pub use spec::Declared;

/// How the values of a topic are seen as JSON, where they are not JSON: the
/// text, or `None` where it makes no sense.
pub type Shape = fn(&Record<'_>) -> Option<String>;

/// Makes operators of texts, those in Rust among them: `{"native": "name"}` is
/// the one that was registered under the name.
///
/// A name stands for the code of one operator for ever: what is derived has to be
/// the same each time. Code that gives other output gets another name, and the
/// topic is declared again with it.
#[derive(Default)]
pub struct Operators {
    shapes: BTreeMap<TopicName, Shape>,
    natives: BTreeMap<String, Arc<dyn Operator>>,
}

/// A text that names an operator in Rust.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Native {
    native: String,
}

impl Operators {
    /// For topics whose values are JSON, but for those that have a shape.
    pub fn new(shapes: impl IntoIterator<Item = (TopicName, Shape)>) -> Self {
        Self { shapes: shapes.into_iter().collect(), natives: BTreeMap::new() }
    }

    /// With operators in Rust, by their names.
    #[must_use]
    pub fn with_natives(
        mut self,
        natives: impl IntoIterator<Item = (String, Arc<dyn Operator>)>,
    ) -> Self {
        self.natives.extend(natives);
        self
    }
}

impl Maker for Operators {
    fn make(&self, source: &TopicName, text: &str) -> Result<Arc<dyn Operator>, String> {
        if let Ok(Native { native }) = serde_json::from_str(text) {
            let found = self.natives.get(&native).cloned();
            return found.ok_or_else(|| format!("native: there is no operator {native:?}"));
        }
        let shape = self.shapes.get(source).copied();
        Declared::read(text, shape).map(|declared| Arc::new(declared) as Arc<dyn Operator>)
    }
}

#[cfg(test)]
mod tests {
    use tideline_record::Output;
    use tideline_types::{Millis, Seq};

    use super::*;

    /// Hands a record on twice.
    struct Twice;

    impl Operator for Twice {
        fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
            out.push(record.key, record.value);
            out.push(record.key, record.value);
            Ok(())
        }
    }

    #[test]
    fn an_operator_in_rust_is_named_by_a_text() {
        let twice: Arc<dyn Operator> = Arc::new(Twice);
        let operators = Operators::default().with_natives([("twice@1".to_owned(), twice)]);
        let chat = TopicName::new("chat").unwrap();
        let made = operators.make(&chat, r#"{"native":"twice@1"}"#).unwrap();
        let record = Record {
            seq: Seq(1),
            sub: 0,
            time: Millis(1),
            erased: false,
            skipped: false,
            key: b"k",
            value: b"v",
        };
        let mut out = Output::default();
        made.apply(&record, &mut out).unwrap();
        assert_eq!(out.records().count(), 2);
        let why = |text: &str| operators.make(&chat, text).map(drop).unwrap_err();
        assert_eq!(why(r#"{"native":"twice"}"#), "native: there is no operator \"twice\"");
        assert!(why(r#"{"native":"twice@1","filter":"true"}"#).contains("native"));
        assert!(operators.make(&chat, "{}").is_ok());
    }
}
