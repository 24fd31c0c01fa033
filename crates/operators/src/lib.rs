//! Operators that are declared without code: what a derived topic keeps of each
//! record of its source, and what it makes of it.
//!
//! ```json
//! {"kind": "video", "sample": {"one_in": 100},
//!  "filter": "value.finished && value.plays > 1",
//!  "key": "value.id", "value": {"user": "key", "at": "value.position_ms"}}
//! ```
//!
//! Steps in this order, each left out if it is not there: `kind` keeps records
//! whose value has that kind; `sample` keeps one key in so many; `filter` keeps
//! what an expression says; then `key` and `value` say what is handed on, or
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
mod kv;
mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;

use tideline_queue::{Maker, Operator};
use tideline_store::batch::Record;
use tideline_types::TopicName;

pub use kv::{Change, ReadError};
pub use spec::Declared;

/// How the values of a topic are seen as JSON, where they are not JSON: the
/// text, or `None` where it makes no sense.
pub type Shape = fn(&Record<'_>) -> Option<String>;

/// Makes operators of texts.
#[derive(Default)]
pub struct Operators {
    shapes: BTreeMap<TopicName, Shape>,
}

impl Operators {
    /// For topics whose values are JSON, but for those that have a shape.
    pub fn new(shapes: impl IntoIterator<Item = (TopicName, Shape)>) -> Self {
        Self { shapes: shapes.into_iter().collect() }
    }
}

impl Maker for Operators {
    fn make(&self, source: &TopicName, text: &str) -> Result<Arc<dyn Operator>, String> {
        let shape = self.shapes.get(source).copied();
        Declared::read(text, shape).map(|declared| Arc::new(declared) as Arc<dyn Operator>)
    }
}
