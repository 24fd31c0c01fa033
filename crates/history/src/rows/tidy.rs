//! What at rest no read and no decision can tell any more.

use tideline_types::limits::RETRY_WINDOW_MS;
use tideline_types::{DAY_MS, Millis};

use super::{DAY, RETRIES, VERSION};
use crate::codec::Reader;
use crate::kinds::Kinds;

/// Whether a row of a user holds only what has run out: retries beyond their
/// window, or a day beyond its kind's retention. Bytes that do not read are
/// left to a check.
pub(crate) fn is_untidy(sort_key: &[u8], value: &[u8], kinds: &Kinds, now: Millis) -> bool {
    match sort_key.split_first() {
        Some((&RETRIES, _)) => {
            let mut value = Reader::new(value);
            let written = value.u8().ok().filter(|version| *version == VERSION);
            let written = written.and_then(|_| value.varint().ok());
            written.is_some_and(|at| Millis(at as i64).plus(RETRY_WINDOW_MS) < now)
        }
        Some((&DAY, key)) => day_is_over(key, kinds, now).unwrap_or(false),
        _ => false,
    }
}

fn day_is_over(key: &[u8], kinds: &Kinds, now: Millis) -> Option<bool> {
    let end = memchr::memchr(0, key)?;
    let kind = kinds.find(std::str::from_utf8(&key[..end]).ok()?)?;
    let day: [u8; 4] = key.get(end + 1..)?.try_into().ok()?;
    let day = (u32::from_be_bytes(day) ^ 1 << 31) as i32;
    let retention = kinds.get(kind).retention_ms()?;
    let ends = Millis((i64::from(day) + 1) * DAY_MS);
    Some(ends.plus(retention) < now)
}
