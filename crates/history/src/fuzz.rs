//! Entries for fuzzing: bytes from the log and from tables, whatever they
//! hold, are an error or a value, never a panic.

use bytes::Bytes;

use crate::kinds::{Kind, Kinds};
use crate::outcome::{OutcomeRef, PutKey};
use crate::rows;
use crate::timeline::{Timeline, Touched};

fn kinds() -> Kinds {
    let kind = |name: &str| Kind {
        name: name.into(),
        declared: true,
        retention_days: 90,
        max_records: 10,
        max_per_day: 0,
        daily_first: true,
    };
    Kinds::new(["article", "video"].into_iter().map(kind).collect())
}

/// The value of a record of topic `history`. What decodes must encode to the
/// same bytes again, be applied, and be told in JSON.
pub fn outcome(bytes: &[u8]) {
    let _ = PutKey::of(bytes);
    let Ok(outcome) = OutcomeRef::decode(bytes) else { return };
    let mut again = Vec::new();
    outcome.encode(&mut again);
    let back = OutcomeRef::decode(&again);
    assert_eq!(back.as_ref(), Ok(&outcome), "an outcome does not read back");
    let _ = (outcome.first_of_day().map(|first| first.to_json("u")), outcome.to_json(None));
    let mut user = Timeline::new();
    let mut touched = Touched::default();
    for _ in 0..2 {
        let _ = user.apply(&outcome, &kinds(), &mut touched);
    }
    let now = outcome.taken_ms();
    let planned = rows::plan(&user, &touched, rows::Applied::default(), &kinds(), now);
    assert!(!planned.is_empty(), "a plan has at least the facts");
}

/// Rows of one partition key: sort keys and values, each after its length in
/// one and two bytes.
pub fn cold_user(mut bytes: &[u8]) {
    let mut take = |len_bytes: usize| {
        let (len, rest) = bytes.split_at_checked(len_bytes)?;
        let len = len.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let (head, tail) = rest.split_at_checked(len)?;
        bytes = tail;
        Some(Bytes::copy_from_slice(head))
    };
    let mut found = Vec::new();
    while let (Some(key), Some(value)) = (take(1), take(2)) {
        found.push((key, value));
    }
    let _ = rows::load(&found, &kinds());
}

/// The value of a row for `video` on the day of the golden bytes.
pub fn day_row(bytes: &[u8]) {
    cold_value(b"\x02video\0\x80\0\x51\x33", bytes);
}

/// The value of a row of facts.
pub fn facts_row(bytes: &[u8]) {
    cold_value(&[0], bytes);
}

/// The value of a row of retries.
pub fn retries_row(bytes: &[u8]) {
    cold_value(&[1], bytes);
}

fn cold_value(key: &[u8], value: &[u8]) {
    let row = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    let _ = rows::load(&[row], &kinds());
}

/// A partition key.
pub fn partition_key(bytes: &[u8]) {
    if let Ok(user) = rows::user_of(bytes) {
        assert_eq!(rows::partition_key(&user), bytes, "a user has two keys");
    }
}
