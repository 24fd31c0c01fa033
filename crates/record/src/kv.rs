//! Operations on a key, as derived topics hand them to caches and stores.
//!
//! A record's key is the key; its value is JSON: `{"add":1}`, `{"set":...}` or
//! `{"delete":true}`. Additions commute, so a store that adds them up needs no
//! more than to apply each once, in whatever order of keys.
//!
//! A topic of hot keys has these of its hot keys alone, and `{"enter":...}`
//! when a key becomes one, with all that it has; `{"leave":true}` when it is one
//! no more.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What happens to a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A counter grows by so much, or shrinks.
    Add(i64),
    /// The key has this value from now on.
    Set(Json),
    /// The key has none.
    Delete(bool),
    /// The key is hot from now on, and this is what it has; `null` for nothing.
    Enter(Option<Whole>),
    /// The key is hot no more.
    Leave(bool),
}

/// What a key has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Whole {
    /// A counter.
    Counter(i64),
    /// A value.
    Value(Json),
}

/// A value that is no operation.
#[derive(Debug, thiserror::Error)]
#[error("no operation on a key: {0}")]
pub struct ReadError(#[from] serde_json::Error);

impl Change {
    /// As the value of a record.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts for keys, and no other fault can be")
    }

    /// Reads the value of a record.
    ///
    /// # Errors
    /// If it is none; says where.
    pub fn read(value: &[u8]) -> Result<Self, ReadError> {
        Ok(serde_json::from_slice(value)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bytes_of_an_operation_never_change() {
        for (change, bytes) in [
            (Change::Add(-2), r#"{"add":-2}"#),
            (Change::Set(json!({"a": [1]})), r#"{"set":{"a":[1]}}"#),
            (Change::Delete(true), r#"{"delete":true}"#),
            (Change::Enter(Some(Whole::Counter(7))), r#"{"enter":{"counter":7}}"#),
            (Change::Enter(Some(Whole::Value(json!(null)))), r#"{"enter":{"value":null}}"#),
            (Change::Enter(None), r#"{"enter":null}"#),
            (Change::Leave(true), r#"{"leave":true}"#),
        ] {
            assert_eq!(String::from_utf8(change.write()).unwrap(), bytes);
            assert_eq!(Change::read(bytes.as_bytes()).unwrap(), change);
        }
        assert!(Change::read(b"{\"more\":1}").is_err());
    }
}
