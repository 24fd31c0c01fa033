//! Rows and ids of every shape, for tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tideline_types::Millis;

use crate::kinds::{Kind, KindId, Kinds};
use crate::query::{Retry, Row, RowFacts};

/// As many kinds as the rows of [`row`] need.
pub(crate) fn kinds() -> Kinds {
    let kind = |at: usize| Kind {
        name: format!("kind-{at:03}").into(),
        declared: true,
        retention_days: 0,
        max_records: 0,
        max_per_day: 0,
        daily_first: true,
    };
    Kinds::new((0..72).map(kind).collect())
}

pub(crate) fn id_text(id: u16) -> String {
    match id % 4 {
        0 => format!("{}", u64::from(id) * 4_503_599_627_371),
        1 => format!("0f8fad5b-d9cb-469f-a165-7086772{id:05}"),
        2 => format!("text-{id}"),
        _ => format!("{id}{}", "x".repeat(59)),
    }
}

/// A row with any of its fields, of a kind of [`kinds`].
pub(crate) fn row() -> impl Strategy<Value = Row> {
    let text = |max: usize| {
        option::weighted(
            0.4,
            "[a-zé]{1,12}".prop_map(
                move |text| {
                    if text.len() % 5 == 0 { "w".repeat(max) } else { text }
                },
            ),
        )
    };
    let retry =
        (any::<u64>(), -5000..5000i64, any::<bool>()).prop_map(|(fingerprint, at, made)| Retry {
            fingerprint,
            taken_ms: Millis(1_796_000_000_000 + at),
            made,
        });
    (
        (prop_oneof![4 => 0..3u8, 1 => 60..70u8], 0..400u16),
        prop_oneof![
            6 => 1_795_000_000_000..1_796_000_000_000i64,
            1 => 1..2_000_000_000_000i64,
        ],
        (
            text(64),
            text(64),
            text(64),
            option::of(prop_oneof![0..9_000_000u64, any::<u64>().prop_map(|n| n >> 11)]),
            option::of(prop_oneof![1..9_000_000u64, (1..9_000u64).prop_map(|s| s * 1000)]),
        ),
        (any::<[bool; 3]>(), prop_oneof![0..4u32, any::<u32>()]),
        (prop_oneof![Just(0i64), 1..1_796_000_000_000i64], vec(retry, 0..9)),
    )
        .prop_map(|((kind, id), event, texts, (flags, plays), (since, retries))| {
            let (part, device, group, position_ms, duration_ms) = texts;
            Row {
                kind: KindId(kind),
                id: id_text(id).into(),
                part: part.map(Into::into),
                position_ms,
                duration_ms,
                event_ms: Millis(event),
                device: device.map(Into::into),
                group: group.map(Into::into),
                finished: flags[0],
                plays,
                facts: RowFacts {
                    declared: flags[1],
                    began: flags[2],
                    part_since: Millis(since),
                    retries,
                },
            }
        })
}
