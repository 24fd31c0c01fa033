//! Whether a history of calls on one key could have come from one register
//! that does one thing at a time: Wing and Gong's search with Lowe's memory of
//! where it has been.
//!
//! Keys are checked one by one, which is enough where each call is of one key:
//! a history is linearizable if each key's part of it is. A call whose outcome
//! is not known may have happened at any time after it began, or never.

use std::collections::HashSet;

/// What was asked of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Make it, with this value; refused if it is there.
    Create(u64),
    /// Write it; refused if it is not there.
    Set(u64),
    /// Remove it; refused if it is not there.
    Delete,
    /// Look.
    Read,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was done.
    Done,
    /// It was refused, because the key was there, or was not.
    Refused,
    /// The key's value, or that it is not there.
    Found(Option<u64>),
    /// Nobody knows.
    Unknown,
}

/// One call, from when it began to when it was answered, on any clock that
/// never falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub start: u64,
    /// When it was answered; of no meaning if the outcome is unknown.
    pub end: u64,
    /// What was asked.
    pub act: Act,
    /// What came of it.
    pub came: Came,
}

impl Call {
    /// The register after this call, if it could have been answered so by one
    /// that holds `state`.
    fn on(&self, state: Option<u64>) -> Option<Option<u64>> {
        let does = match self.act {
            Act::Create(value) => state.is_none().then_some(Some(value)),
            Act::Set(value) => state.is_some().then_some(Some(value)),
            Act::Delete => state.is_some().then_some(None),
            Act::Read => None,
        };
        match self.came {
            Came::Done => does,
            Came::Refused => does.is_none().then_some(state),
            Came::Found(found) => (found == state).then_some(state),
            Came::Unknown => Some(does.unwrap_or(state)),
        }
    }

    fn must_be_by(&self) -> Option<u64> {
        (self.came != Came::Unknown).then_some(self.end)
    }
}

/// Whether some order of `calls`, in which no call comes before one that was
/// answered before it began, is what a register that holds nothing at first
/// could have done.
pub fn is_linearizable(calls: &[Call]) -> bool {
    let mut seen = HashSet::new();
    let mut stack = vec![(vec![false; calls.len()], None)];
    while let Some((taken, state)) = stack.pop() {
        let left = || calls.iter().enumerate().filter(|(n, _)| !taken[*n]);
        // What is unknown need not have happened at all.
        let Some(first_end) = left().filter_map(|(_, call)| call.must_be_by()).min() else {
            return true;
        };
        let may_be_next = left().filter(|(_, call)| call.start <= first_end);
        let next: Vec<(usize, Option<u64>)> =
            may_be_next.filter_map(|(n, call)| Some((n, call.on(state)?))).collect();
        for (n, after) in next {
            let mut taken = taken.clone();
            taken[n] = true;
            if seen.insert((taken.clone(), after)) {
                stack.push((taken, after));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls as `start-end act came`: `c1` creates 1, `s2` sets 2, `d` deletes,
    /// `r` reads; `ok`, `no`, `?`, or what was found, `-` for nothing.
    fn holds(script: &str) -> bool {
        let call = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let (start, end) = words[0].split_once('-').unwrap();
            let (act, value) = words[1].split_at(1);
            let value = || value.parse().unwrap();
            Call {
                start: start.parse().unwrap(),
                end: end.parse().unwrap(),
                act: match act {
                    "c" => Act::Create(value()),
                    "s" => Act::Set(value()),
                    "d" => Act::Delete,
                    _ => Act::Read,
                },
                came: match words[2] {
                    "ok" => Came::Done,
                    "no" => Came::Refused,
                    "?" => Came::Unknown,
                    "-" => Came::Found(None),
                    found => Came::Found(Some(found.parse().unwrap())),
                },
            }
        };
        is_linearizable(&script.split(", ").map(call).collect::<Vec<_>>())
    }

    #[test]
    fn what_one_register_does_holds() {
        for good in [
            "0-1 c1 ok, 2-3 r 1, 4-5 s2 ok, 6-7 r 2, 8-9 d ok, 10-11 r -",
            // Calls at once may come in either order.
            "0-1 c1 ok, 2-9 s2 ok, 3-4 r 1, 5-6 r 2",
            "0-9 c1 ok, 0-9 c2 no, 1-2 r 1",
            // What nobody knows happened early, late or never.
            "0-0 c1 ?, 1-2 r 1",
            "0-0 c1 ?, 1-2 r -, 3-4 r 1",
            "0-0 c1 ?, 1-2 r -, 3-4 c2 ok, 5-6 r 2",
        ] {
            assert!(holds(good), "{good}");
        }
    }

    #[test]
    fn known_bad_histories_are_rejected() {
        for (bad, what) in [
            ("0-1 c1 ok, 2-3 s2 ok, 4-5 r 1", "a stale read"),
            ("0-1 c1 ok, 2-3 r -", "a lost write"),
            ("0-1 c1 ok, 2-9 s2 ok, 3-4 r 2, 5-6 r 1", "a read that goes back"),
            ("0-1 c1 ok, 2-3 c2 ok", "two who made it"),
            ("0-1 c1 ok, 2-3 d ok, 4-5 d ok", "two who removed it"),
            ("0-1 c1 ok, 2-3 d ok, 4-5 r 1", "a deleted node that comes back"),
            ("0-0 c1 ?, 1-2 r 1, 3-4 r -", "an unknown write that is there and then is not"),
            ("0-1 c1 no", "a refusal without a reason"),
            ("0-1 r 7", "a value from nowhere"),
            ("0-9 c1 ok, 1-8 c2 ok", "two at once who both made it"),
        ] {
            assert!(!holds(bad), "{what}: {bad}");
        }
    }
}
