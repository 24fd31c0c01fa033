//! Outcomes read back as they were written, and their bytes never change.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::id::IdBuf;
use crate::query::Row;
use crate::samples::{id_text, kinds, row};

fn reads_back(outcome: &OutcomeRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    outcome.encode(&mut bytes);
    assert_eq!(OutcomeRef::decode(&bytes).as_ref(), Ok(outcome));
    for cut in 0..bytes.len() {
        assert!(OutcomeRef::decode(&bytes[..cut]).is_err(), "cut to {cut}");
    }
    bytes
}

fn time() -> impl Strategy<Value = Millis> {
    prop_oneof![1..2_000_000_000_000i64, Just(1), Just(i64::MAX)].prop_map(Millis)
}

proptest! {
    #[test]
    fn a_put_reads_back(
        row in row(), taken in time(), first_of in option::of(any::<i32>()),
        floor in option::of((time(), any::<u16>())),
    ) {
        let kinds = kinds();
        let id = IdBuf::pack(&row.id);
        let floor = floor.map(|(at, id)| (at, IdBuf::pack(&id_text(id))));
        let put = Put {
            taken_ms: taken,
            kind: kinds.name(row.kind),
            row: RowRef::of(&row, &id),
            first_of,
            floor: floor.as_ref().map(|(at, id)| (*at, id.borrow())),
        };
        let bytes = reads_back(&OutcomeRef::Put(put));
        let key = PutKey::of(&bytes).unwrap();
        prop_assert_eq!((key.kind, key.id), (put.kind, put.row.id));
        prop_assert_eq!(key.may_be_coalesced, first_of.is_none() && floor.is_none());
    }

    #[test]
    fn deletes_clears_and_restores_read_back(
        rows in vec(row(), 0..5), taken in time(), ids in vec(any::<u16>(), 0..5),
        times in vec(option::of(time()), 3),
    ) {
        let kinds = kinds();
        let names: Vec<&str> = rows.iter().map(|row: &Row| kinds.name(row.kind)).collect();
        let packed: Vec<IdBuf> = ids.iter().map(|&id| IdBuf::pack(&id_text(id))).collect();
        let row_ids: Vec<IdBuf> = rows.iter().map(|row| IdBuf::pack(&row.id)).collect();
        let cut = Cut {
            blocks: times[0].map(|at| (None, at)).into_iter().chain(times[1].map(|at| (Some("k"), at))).collect(),
            pauses: times[2],
        };
        let keys = names.iter().zip(&packed).map(|(name, id)| (*name, id.borrow())).collect();
        reads_back(&OutcomeRef::Delete(Delete { taken_ms: taken, cut: cut.clone(), keys }));
        reads_back(&OutcomeRef::Switch(Switch { taken_ms: taken, cut: cut.clone(), on: ids.len() > 2 }));
        let block = BlockRef {
            kind: names.first().copied(),
            id: packed.first().map(IdBuf::borrow),
            after_ms: times[0],
            before_ms: times[1],
            until_ms: taken,
        };
        let BlockRef { kind, id, after_ms, before_ms, .. } = block;
        reads_back(&OutcomeRef::Clear(Clear { taken_ms: taken, cut, kind, id, after_ms, before_ms }));
        reads_back(&OutcomeRef::Restore(Restore {
            taken_ms: taken,
            deletes: vec![block],
            pauses: times[0].into_iter().zip(times[1]).collect(),
            off_since: times[2],
            floors: names.iter().zip(&packed).map(|(name, id)| (*name, taken, id.borrow())).collect(),
            rewards: names.iter().map(|name| (*name, -7)).collect(),
            rows: names.iter().zip(rows.iter().zip(&row_ids))
                .map(|(name, (row, id))| (*name, RowRef::of(row, id))).collect(),
        }));
    }

    #[test]
    fn no_bytes_make_decoding_panic(mut bytes in vec(any::<u8>(), 0..200), which in 0..8u8) {
        crate::fuzz::outcome(&bytes);
        if bytes.len() > 2 {
            (bytes[0], bytes[1]) = (VERSION, which);
        }
        crate::fuzz::outcome(&bytes);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_outcomes_never_change() {
    let taken_ms = Millis(1_796_000_000_000);
    let retry = crate::query::Retry { fingerprint: 0x0123_4567_89ab_cdef, taken_ms, made: true };
    let retries = [retry];
    let (id, floor) = (IdBuf::pack("112489730346240"), IdBuf::pack("a"));
    let row = RowRef {
        id: id.borrow(),
        part: Some("ep3"),
        position_ms: Some(61_500),
        duration_ms: Some(1_440_000),
        event_ms: taken_ms.plus(-1000),
        device: Some("tv-1"),
        group: None,
        finished: false,
        declared: false,
        began: true,
        plays: 0,
        part_since: Millis(0),
        retries: crate::retry::Retries::of(&retries),
    };
    let put = Put {
        taken_ms,
        kind: "video",
        row,
        first_of: Some(20_787),
        floor: Some((taken_ms.plus(-5000), floor.borrow())),
    };
    assert_eq!(hex(&reads_back(&OutcomeRef::Put(put))), GOLDEN[0]);
    let delete = Delete { taken_ms, cut: Cut::default(), keys: vec![("video", id.borrow())] };
    assert_eq!(hex(&reads_back(&OutcomeRef::Delete(delete))), GOLDEN[1]);
    let erase = Erase { taken_ms, day: 20_787 };
    assert_eq!(hex(&reads_back(&OutcomeRef::Erase(erase))), GOLDEN[2]);
}

const GOLDEN: [&str; 3] = [
    "010180a0899fc5680305766964656f9b0506000d6b0e4f66cf0f00036570330474762d31bce00380f2570101efcdab896745230100e6c4028f4e000161",
    "010280a0899fc56800000105766964656f010006000d6b0e4f66",
    "010580a0899fc568e6c402",
];

#[test]
fn an_outcome_is_told_in_json() {
    let id = IdBuf::pack("7");
    let clear = Clear {
        taken_ms: Millis(5),
        cut: Cut::default(),
        kind: Some("video"),
        id: Some(id.borrow()),
        after_ms: None,
        before_ms: Some(Millis(4)),
    };
    assert_eq!(
        OutcomeRef::Clear(clear).to_json(Some("a\"b\n")),
        r#"{"user":"a\"b\u000a","taken_ms":5,"outcome":"clear","kind":"video","id":"7","before_ms":4}"#
    );
    assert_eq!(day_text(20_787), "2026-11-30");
    let first = FirstOfDay { kind: "video", id: id.borrow(), day: 0, event_ms: Millis(9) };
    assert_eq!(
        first.to_json("u"),
        r#"{"user":"u","kind":"video","id":"7","day":"1970-01-01","event_ms":9}"#
    );
}
