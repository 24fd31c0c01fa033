//! What a change makes of what a key has. The one place that says so; caches say
//! the same, or ask.

use bytes::Bytes;
use tideline_record::kv::{Change, Whole};

use crate::rows::Has;

/// What the key has after `change`; `None` for nothing.
pub(crate) fn fold(has: Option<Has>, change: Change) -> Option<Has> {
    match (change, has) {
        (Change::Add(by), Some(Has::Counter(n))) => Some(Has::Counter(n.saturating_add(by))),
        // What was no counter is one from now on.
        (Change::Add(by), _) => Some(Has::Counter(by)),
        (Change::Set(json), _) => Some(Has::Value(json.to_string().into())),
        (Change::Delete(_), _) => None,
        (Change::Enter(whole), _) => whole.map(|whole| match whole {
            Whole::Counter(n) => Has::Counter(n),
            Whole::Value(json) => Has::Value(json.to_string().into()),
        }),
        (Change::Leave(_), has) => has,
    }
}

/// The change by which a key that becomes hot brings what it has.
pub(crate) fn enter(has: Option<&Has>) -> Bytes {
    let whole = has.map(|has| match has {
        Has::Counter(n) => Whole::Counter(*n),
        // It was JSON when it was written; if it is not, it is nothing.
        Has::Value(bytes) => Whole::Value(serde_json::from_slice(bytes).unwrap_or_default()),
    });
    Change::Enter(whole).write().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_add_up_and_what_enters_brings_what_is_there() {
        let counter = fold(fold(None, Change::Add(2)), Change::Add(3));
        assert_eq!(counter, Some(Has::Counter(5)));
        let value = fold(counter.clone(), Change::Set(json!({"a": 1})));
        assert_eq!(value, Some(Has::Value(Bytes::from_static(b"{\"a\":1}"))));
        assert_eq!(fold(value.clone(), Change::Add(1)), Some(Has::Counter(1)));
        assert_eq!(fold(value.clone(), Change::Delete(true)), None);
        for has in [counter, value, None] {
            let brought = Change::read(&enter(has.as_ref())).unwrap();
            assert_eq!(fold(Some(Has::Counter(99)), brought), has);
            assert_eq!(fold(has.clone(), Change::Leave(true)), has);
        }
    }
}
