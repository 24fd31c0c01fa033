//! Query parameters, by name; what is wrong is told by name.

use axum::extract::Query as Pairs;
use http::Uri;
use tideline_history::kinds::{KindId, Kinds};
use tideline_history::query::Filter;
use tideline_types::Millis;
use tideline_wire::Fault;

use crate::problem::Problem;

/// The parameters of one call.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Of an address.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Problem> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(Self::default());
        }
        let pairs = Pairs::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_| Problem::invalid("query: is not UTF-8 in percent encoding"))?;
        Ok(Self { pairs: pairs.0 })
    }

    /// No parameters but these, and `ticket`, which is for the door.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        for (name, _) in &self.pairs {
            if name != "ticket" && !known.contains(&name.as_str()) {
                let name: String = name.chars().take(64).collect();
                return Err(Problem::invalid(format!("{name}: unknown parameter")));
            }
        }
        Ok(())
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that comes at most once.
    pub(crate) fn one(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(Problem::invalid(format!("{name}: comes twice")));
        }
        Ok(first)
    }

    /// `true` or `false`; absent is false.
    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Problem> {
        match self.one(name)? {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(_) => Err(Problem::invalid(format!("{name}: must be true or false"))),
        }
    }

    /// An integer, 0 or greater.
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        let bad = |_| Problem::invalid(format!("{name}: must be an integer, 0 or greater"));
        self.one(name)?.map(|text| text.parse().map_err(bad)).transpose()
    }

    /// A time, in ms since the epoch.
    pub(crate) fn millis(&self, name: &'static str) -> Result<Option<Millis>, Problem> {
        let bad = |_| Problem::invalid(format!("{name}: must be milliseconds since the epoch"));
        self.one(name)?.map(|text| text.parse().map(Millis).map_err(bad)).transpose()
    }

    /// `kind`, repeated or with commas, or both.
    pub(crate) fn kinds(&self, kinds: &Kinds) -> Result<Vec<KindId>, Problem> {
        let names = self.all("kind").flat_map(|value| value.split(','));
        let mut found = Vec::new();
        for name in names {
            let kind = find_kind(kinds, name)?;
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
        Ok(found)
    }

    /// `kind`, `after_ms`, `before_ms`, `unfinished`.
    pub(crate) fn filter(&self, kinds: &Kinds) -> Result<Filter, Problem> {
        Ok(Filter {
            kinds: self.kinds(kinds)?,
            after_ms: self.millis("after_ms")?,
            before_ms: self.millis("before_ms")?,
            unfinished: self.flag("unfinished")?,
        })
    }
}

/// A kind that is, or once was, declared.
pub(crate) fn find_kind(kinds: &Kinds, name: &str) -> Result<KindId, Problem> {
    kinds.find(name).ok_or_else(|| Fault::unknown_kind(name).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().unwrap()).unwrap()
    }

    #[test]
    fn values_are_decoded_and_named_when_wrong() {
        let q = query("a=1%202&b=true&c=x&c=y&after_ms=5&d=7");
        assert_eq!(q.one("a").unwrap(), Some("1 2"));
        assert!(q.flag("b").unwrap());
        assert!(!q.flag("zz").unwrap());
        assert_eq!(q.one("c").unwrap_err().detail, "c: comes twice");
        assert_eq!(q.flag("d").unwrap_err().detail, "d: must be true or false");
        assert_eq!(q.millis("after_ms").unwrap(), Some(Millis(5)));
        assert_eq!(q.number("d").unwrap(), Some(7));
        assert!(q.number("a").is_err());
        assert_eq!(
            q.only(&["a", "b", "c", "d"]).unwrap_err().detail,
            "after_ms: unknown parameter"
        );
    }
}
