//! How many marks each day row holds: a part of the facts row.
//!
//! Says which day rows must be there, so that one that was lost is found, and
//! which of them a page needs, without reading any.

use std::collections::BTreeMap;

use tideline_types::limits::{KIND_BYTES_MAX, KINDS_MAX};

use super::bits::{BitReader, BitWriter};
use super::{BadRow, known};
use crate::codec::BadBytes;
use crate::kinds::{KindId, Kinds};
use crate::timeline::Timeline;

/// Marks of each (kind, day of UTC) that has any.
pub type DayCounts = BTreeMap<(KindId, i32), u64>;

/// Of all rows kept.
pub(super) fn of(timeline: &Timeline) -> DayCounts {
    let mut counts = DayCounts::new();
    for (kind, event_ms) in timeline.kept_times() {
        *counts.entry((kind, event_ms.utc_day())).or_default() += 1;
    }
    counts
}

pub(super) fn write(counts: &DayCounts, kinds: &Kinds) -> Vec<u8> {
    let entries: Vec<((KindId, i32), u64)> = counts.iter().map(|(at, n)| (*at, *n)).collect();
    let by_kind: Vec<_> = entries.chunk_by(|a, b| a.0.0 == b.0.0).collect();
    let mut bits = BitWriter::default();
    bits.gamma(by_kind.len() as u64 + 1);
    for days in by_kind {
        let name = kinds.name(days[0].0.0);
        bits.below(name.len() as u64 - 1, KIND_BYTES_MAX as u64);
        bits.bytes(name.as_bytes());
        bits.gamma(days.len() as u64);
        let mut before = None;
        for ((_, day), count) in days {
            match before {
                None => bits.put(u64::from(*day as u32), 32),
                Some(before) => bits.gamma(i64::from(*day).abs_diff(before)),
            }
            bits.gamma(*count);
            before = Some(i64::from(*day));
        }
    }
    bits.finish()
}

pub(super) fn read(bytes: &[u8], kinds: &Kinds) -> Result<DayCounts, BadRow> {
    let mut bits = BitReader::new(bytes);
    let mut counts = DayCounts::new();
    let of_kinds = bits.gamma()? - 1;
    if of_kinds > KINDS_MAX as u64 {
        return Err(BadBytes("too many kinds").into());
    }
    for _ in 0..of_kinds {
        let len = bits.below(KIND_BYTES_MAX as u64)? as usize + 1;
        let name = String::from_utf8(bits.byte_vec(len)?);
        let kind = known(&name.map_err(|_| BadBytes("a kind is not UTF-8"))?, kinds)?;
        let mut day: Option<i32> = None;
        for _ in 0..bits.gamma()? {
            let next = match day {
                None => Some(bits.get(32)? as u32 as i32),
                Some(day) => {
                    u32::try_from(bits.gamma()?).ok().and_then(|gap| day.checked_add_unsigned(gap))
                }
            };
            let next = next.ok_or(BadBytes("a day is out of range"))?;
            counts.insert((kind, next), bits.gamma()?);
            day = Some(next);
        }
    }
    if !bits.is_at_end() {
        return Err(BadBytes("bits are left over").into());
    }
    Ok(counts)
}
