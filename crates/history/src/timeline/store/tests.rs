//! The store against a plain map, under random changes.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::id::IdBuf;
use crate::query::Row;
use crate::samples::row;

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
    let heap: usize = store.older().iter().map(Block::heap_bytes).sum();
    assert_eq!(store.more.as_ref().map_or(0, |more| more.heap), heap);
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
