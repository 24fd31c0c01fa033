//! The store against a plain map, under random changes.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::id::IdBuf;
use crate::query::{Retry, Row, RowFacts};

fn id_text(id: u16) -> String {
    match id % 4 {
        0 => format!("{}", u64::from(id) * 4_503_599_627_371),
        1 => format!("0f8fad5b-d9cb-469f-a165-7086772{id:05}"),
        2 => format!("text-{id}"),
        _ => format!("{id}{}", "x".repeat(59)),
    }
}

fn row() -> impl Strategy<Value = Row> {
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

#[derive(Clone, Debug)]
enum Step {
    Put(Box<Row>),
    /// The row among those there, so far from the start, in 1/256.
    Remove(u8),
    /// The same, but its time and position change.
    Touch(u8, i64),
    RemoveUntil(u8),
    DropRetries,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => row().prop_map(|row| Step::Put(Box::new(row))),
        25 => any::<u8>().prop_map(Step::Remove),
        30 => (any::<u8>(), 0..100_000i64).prop_map(|(at, by)| Step::Touch(at, by)),
        1 => (0..60u8).prop_map(Step::RemoveUntil),
        1 => Just(Step::DropRetries),
    ]
}

type Plain = BTreeMap<(KindId, Box<str>), Row>;

fn put(store: &mut Store, plain: &mut Plain, row: Row) {
    let id = IdBuf::pack(&row.id);
    let mut old = None;
    store.put(row.kind, &RowRef::of(&row, &id), |old_row| old = Some(old_row.to_row(row.kind)));
    assert_eq!(old, plain.insert((row.kind, row.id.clone()), row));
}

fn nth(plain: &Plain, at: u8) -> Option<Row> {
    plain.values().nth(plain.len() * usize::from(at) / 256).cloned()
}

fn take(store: &mut Store, plain: &mut Plain, step: &Step) {
    match step {
        Step::Put(row) => put(store, plain, (**row).clone()),
        Step::Remove(at) => {
            let Some(row) = nth(plain, *at) else { return };
            let mut removed = None;
            store.remove(row.kind, IdBuf::pack(&row.id).borrow(), |old| {
                removed = Some(old.to_row(row.kind));
            });
            assert_eq!(removed, plain.remove(&(row.kind, row.id)));
        }
        Step::Touch(at, by) => {
            let Some(mut row) = nth(plain, *at) else { return };
            row.event_ms = row.event_ms.plus(*by);
            row.position_ms = Some(*by as u64);
            put(store, plain, row);
        }
        Step::RemoveUntil(at) => {
            let Some(until) = nth(plain, *at).map(|row| row.event_ms) else { return };
            let mut removed = 0;
            store.remove_where(until, |_, head| head.event_ms <= until, |_, _| removed += 1);
            let before = plain.len();
            plain.retain(|_, row| row.event_ms > until);
            assert_eq!(removed, before - plain.len());
        }
        Step::DropRetries => {
            store.rewrite(|row| Some(RowRef { retries: crate::retry::Retries::EMPTY, ..*row }));
            plain.values_mut().for_each(|row| row.facts.retries.clear());
        }
    }
}

fn check(store: &Store, plain: &Plain) {
    assert_eq!(store.len(), plain.len());
    let mut rows: Vec<Row> =
        store.heads().map(|head| store.get(head.place).to_row(head.kind)).collect();
    rows.sort_by(|a, b| (a.kind, &a.id).cmp(&(b.kind, &b.id)));
    assert!(rows.iter().eq(plain.values()));
    for kind in (0..=70).map(KindId) {
        let count = plain.values().filter(|row| row.kind == kind).count();
        assert_eq!(store.count(kind), count);
    }
    let mut newest: Option<Millis> = None;
    store.newest(Millis(i64::MIN), Millis(i64::MAX), |head| {
        newest = newest.max(Some(head.event_ms));
        newest.unwrap_or(head.event_ms)
    });
    assert_eq!(newest, plain.values().map(|row| row.event_ms).max());
    let mut oldest: Option<Millis> = None;
    store.oldest(|head| {
        oldest = Some(oldest.map_or(head.event_ms, |own| own.min(head.event_ms)));
        oldest.unwrap_or(head.event_ms)
    });
    assert_eq!(oldest, plain.values().map(|row| row.event_ms).min());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn blocks_hold_what_a_plain_map_holds(steps in vec(step(), 1..600)) {
        let (mut store, mut plain) = (Store::default(), Plain::new());
        for step in &steps {
            take(&mut store, &mut plain, step);
        }
        check(&store, &plain);
        while let Some(row) = plain.values().next().cloned() {
            take(&mut store, &mut plain, &Step::Remove(0));
            prop_assert!(store.find(row.kind, IdBuf::pack(&row.id).borrow()).is_none());
        }
        prop_assert_eq!(store.bytes(), 0);
    }
}
