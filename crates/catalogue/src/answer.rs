//! What an owner's service answers, read from bytes that we do not trust.

use std::collections::HashMap;

use serde::Deserialize;

use crate::Item;

/// The answer to one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// By id. Items over a limit are left out and counted.
    pub(crate) items: HashMap<String, Item>,
    /// Whether ids that are not in `items` may exist all the same.
    pub(crate) partial: bool,
    /// Items that were left out: they exist, but cannot be shown.
    pub(crate) refused: usize,
}

#[derive(Deserialize)]
struct Body {
    items: HashMap<String, Option<Item>>,
    #[serde(default)]
    partial: bool,
}

/// Reads a body; says, for people, what is wrong with it.
pub(crate) fn parse(body: &[u8]) -> Result<Answer, String> {
    let body: Body = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut answer = Answer { partial: body.partial, ..Answer::default() };
    for (id, item) in body.items {
        match item {
            Some(item) if item.check().is_ok() => drop(answer.items.insert(id, item)),
            Some(_) => answer.refused += 1,
            None => {}
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_we_do_not_know_are_ignored_and_items_over_a_limit_left_out() {
        let body = format!(
            r#"{{"items":{{"1":{{"title":"One","rating":5}},"2":null,"3":{{"title":"{}"}}}},"x":1}}"#,
            "t".repeat(257)
        );
        let answer = parse(body.as_bytes()).unwrap();
        assert_eq!(answer.items.len(), 1);
        assert_eq!(answer.items["1"].title.as_deref(), Some("One"));
        assert!(!answer.partial && answer.refused == 1);
        assert!(parse(br#"{"items":{},"partial":true}"#).unwrap().partial);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for body in ["", "[]", "{}", r#"{"items":[]}"#, r#"{"items":{"1":{"title":7}}}"#] {
            assert!(parse(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
