//! A user at rest reads back as they were, and the bytes never change.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tideline_types::DAY_MS;

use super::*;
use crate::facts::Reward;
use crate::query::Row;
use crate::row::RowRef;
use crate::samples::{kinds, row};

fn apply_rows(
    user: &mut Timeline,
    touched: &mut Touched,
    rows: &[Row],
    kinds: &Kinds,
    now: Millis,
) {
    for row in rows {
        let id = IdBuf::pack(&row.id);
        let restore = Restore {
            taken_ms: now,
            rows: vec![(kinds.name(row.kind), RowRef::of(row, &id))],
            ..Restore::default()
        };
        user.apply(&OutcomeRef::Restore(restore), kinds, touched).unwrap();
    }
}

fn at_rest(ops: Vec<Op>) -> Vec<(Bytes, Bytes)> {
    let mut table = BTreeMap::new();
    for op in ops {
        match op {
            Op::Put { sort_key, value } => drop(table.insert(sort_key, value)),
            Op::Delete { sort_key } => drop(table.remove(&sort_key)),
        }
    }
    table.into_iter().collect()
}

fn by_key(user: &Timeline) -> BTreeMap<(KindId, Box<str>), Row> {
    let rows = user.all_kept().map(|(kind, row)| row.to_row(kind));
    rows.map(|row| ((row.kind, row.id.clone()), row)).collect()
}

proptest! {
    #[test]
    fn any_user_reads_back(rows in vec(row(), 0..60), epoch in any::<u32>(), seq in any::<u64>()) {
        // Half of them on few days, as a user's rows are.
        let near = |(at, row): (usize, Row)| {
            let event_ms = Millis(1_795_900_000_000 + (row.event_ms.0 * 7) % (3 * DAY_MS));
            if at % 2 == 0 { Row { event_ms, ..row } } else { row }
        };
        let rows: Vec<Row> = rows.into_iter().enumerate().map(near).collect();
        let (kinds, now) = (kinds(), Millis(1_796_000_000_000));
        let (mut user, mut touched) = (Timeline::new(), Touched::default());
        apply_rows(&mut user, &mut touched, &rows, &kinds, now);
        let applied = Applied { epoch: Epoch(epoch), seq: Seq(seq) };
        let rest = at_rest(plan(&user, &touched, applied, &kinds, now));
        let (back, found) = load(&rest, &kinds).unwrap();
        prop_assert_eq!(found, applied);
        prop_assert_eq!(by_key(&back), by_key(&user));
        // A row cut short is told, wherever it is cut.
        for (key, value) in &rest {
            for cut in 0..value.len() {
                let cut = [(key.clone(), value.slice(..cut))];
                let day = key[0] == DAY;
                prop_assert!(load(&cut, &kinds).is_err() || !day);
            }
        }
    }

    #[test]
    fn no_bytes_make_loading_panic(bytes in vec(any::<u8>(), 0..300)) {
        crate::fuzz::cold_user(&bytes);
        crate::fuzz::day_row(&bytes);
        crate::fuzz::facts_row(&bytes);
        crate::fuzz::retries_row(&bytes);
        crate::fuzz::partition_key(&bytes);
    }

    #[test]
    fn a_day_with_a_flipped_bit_never_panics(
        rows in vec(row(), 1..8), at in any::<usize>(), bit in 0..8u32,
    ) {
        let (kinds, now) = (kinds(), Millis(1_796_000_000_000));
        let (mut user, mut touched) = (Timeline::new(), Touched::default());
        apply_rows(&mut user, &mut touched, &rows, &kinds, now);
        let mut rest = at_rest(plan(&user, &touched, Applied::default(), &kinds, now));
        let row = at % rest.len();
        let mut value = rest[row].1.to_vec();
        let place = at % value.len();
        value[place] ^= 1 << bit;
        rest[row].1 = value.into();
        let _ = load(&rest, &kinds);
    }

    #[test]
    fn a_user_has_one_key_and_no_key_begins_another(a in "[a-z0-9é]{1,70}|[0-9]{1,25}", b in "[a-z0-9]{1,70}|[0-9]{1,25}") {
        let (key_a, key_b) = (partition_key(&a), partition_key(&b));
        prop_assert_eq!(user_of(&key_a), Ok(a.clone()));
        prop_assert_eq!(key_a.starts_with(&key_b), a == b);
    }
}

#[test]
fn the_rows_of_a_user_never_change() {
    let kinds = crate::samples::kinds();
    let now = Millis(1_796_000_000_000);
    let base = Row {
        kind: KindId(1),
        id: "112489730346240".into(),
        part: Some("ep3".into()),
        position_ms: Some(61_500),
        duration_ms: Some(1_440_000),
        event_ms: now,
        device: Some("tv-1".into()),
        group: None,
        finished: false,
        plays: 0,
        facts: crate::query::RowFacts { began: true, ..Default::default() },
    };
    let retry = crate::query::Retry { fingerprint: 7, taken_ms: now, made: false };
    let other = Row {
        id: "0f8fad5b-d9cb-469f-a165-70867728950e".into(),
        finished: true,
        plays: 3,
        position_ms: None,
        event_ms: now.plus(-1),
        facts: crate::query::RowFacts { retries: vec![retry], ..Default::default() },
        ..base.clone()
    };
    let (mut user, mut touched) = (Timeline::new(), Touched::default());
    apply_rows(&mut user, &mut touched, &[base, other], &kinds, now);
    let facts = Restore {
        taken_ms: now,
        deletes: vec![BlockRef {
            kind: None,
            id: None,
            after_ms: None,
            before_ms: None,
            until_ms: Millis(9),
        }],
        rewards: vec![("kind-001", Reward { kind: KindId(1), day: 20_787 }.day)],
        ..Restore::default()
    };
    user.apply(&OutcomeRef::Restore(facts), &kinds, &mut touched).unwrap();
    let applied = Applied { epoch: Epoch(2), seq: Seq(300) };
    let rest = at_rest(plan(&user, &touched, applied, &kinds, now));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let told: Vec<String> =
        rest.iter().map(|(key, value)| format!("{} {}", hex(key), hex(value))).collect();
    assert_eq!(told, GOLDEN);
    assert_eq!(hex(&partition_key("100000000")), "0405f5e100");
}

/// Facts, retries, the day.
const GOLDEN: [&str; 3] = [
    "00 0102ac020e476b696e642d30303180002899a001060201086b696e642d3030310100100000000100e6c40200",
    "01 0180d0c4cfa234086b696e642d3030310a0f8fad5bd9cb469fa16570867728950e0100070000000000000000",
    "026b696e642d3030310080005133 1530d3ffa1f1f5ab7b396d3f0b2b8433b944a871167f82623834d5fb5000000202d6ff7c334022cf83c0f18880",
];

#[test]
fn a_day_that_was_lost_or_changed_is_found() {
    let mut kinds = crate::samples::kinds();
    let now = Millis(1_796_000_000_000);
    let row = |id: &str, at: i64| Row {
        kind: KindId(1),
        id: id.into(),
        part: None,
        position_ms: None,
        duration_ms: None,
        event_ms: Millis(at),
        device: None,
        group: None,
        finished: false,
        plays: 0,
        facts: crate::query::RowFacts::default(),
    };
    let rows = [row("a", now.0), row("b", now.0 - 1), row("c", now.0 - 5 * DAY_MS)];
    let (mut user, mut touched) = (Timeline::new(), Touched::default());
    apply_rows(&mut user, &mut touched, &rows, &kinds, now);
    let rest = at_rest(plan(&user, &touched, Applied::default(), &kinds, now));
    assert_eq!(missing_days(&rest, &kinds, now), Ok(vec![]));
    let old_day = now.plus(-5 * DAY_MS).utc_day();
    let lost: Vec<(Bytes, Bytes)> =
        rest.iter().filter(|(key, _)| *key != day_key("kind-001", old_day)).cloned().collect();
    assert_eq!(lost.len() + 1, rest.len());
    assert_eq!(missing_days(&lost, &kinds, now), Ok(vec![(KindId(1), old_day)]));
    assert_eq!(load(&lost, &kinds).unwrap().0.len(), 2);
    // Retention explains it, once the whole day is over.
    let kept: Vec<_> = kinds.iter().map(|(_, kind)| kind.clone()).collect();
    kinds = Kinds::new(
        kept.into_iter().map(|kind| crate::kinds::Kind { retention_days: 5, ..kind }).collect(),
    );
    assert_eq!(missing_days(&lost, &kinds, now), Ok(vec![(KindId(1), old_day)]));
    assert_eq!(missing_days(&lost, &kinds, now.plus(DAY_MS)), Ok(vec![]));
    let mut changed = rest.clone();
    let newest = changed.last_mut().unwrap();
    user.for_days(&[(KindId(1), now.utc_day())], |_, day, rows| {
        newest.1 = day::write(day, &rows[..1]).into();
    });
    assert!(load(&changed, &kinds).is_err());
}
