//! Calls that fail while power stays on, and bytes that rot.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tideline_record::batch::{BatchBuilder, BatchRef};
use tideline_store::disk::{Disk, Fault, FaultyDisk, KeepAll, LoseAll, OpKind, Operation};
use tideline_store::laws::Heard;
use tideline_store::local::{LocalJournal, verify_journal};
use tideline_store::{AppendError, Bounds, Journal, ReadError, StoreError};
use tideline_types::{Millis, Seq};

use crate::script::{ALL, Dice, Ledger, dir, open, recover, run, stream};

fn fault_at(disk: &FaultyDisk, at: u64, fault: Fault) {
    let faults = move |op: &Operation<'_>| {
        let fits = fault != Fault::SyncLost || op.kind == OpKind::Sync;
        (op.kind != OpKind::Read && op.number == at && fits).then_some(fault)
    };
    disk.set_faults(Some(Box::new(faults)));
}

#[test]
fn after_any_call_fails_all_that_was_acknowledged_is_there() {
    for at in 0..400 {
        let (disk, mut ledger) = (FaultyDisk::new(), Ledger::default());
        fault_at(&disk, at, Fault::Error(ErrorKind::Other));
        run(&disk, &mut ledger, 5);
        disk.set_faults(None);
        recover(&disk.crash(&mut LoseAll), &mut ledger.clone(), &format!("lost, EIO at {at}"));
        recover(&disk.crash(&mut Dice(at)), &mut ledger.clone(), &format!("dice, EIO at {at}"));
        recover(&disk, &mut ledger, &format!("EIO at {at}"));
    }
}

#[test]
fn after_a_sync_that_lost_bytes_what_is_served_is_on_the_disk() {
    for at in 0..400 {
        let (disk, mut ledger) = (FaultyDisk::new(), Ledger::default());
        fault_at(&disk, at, Fault::SyncLost);
        run(&disk, &mut ledger, 6);
        disk.set_faults(None);
        recover(&disk.crash(&mut KeepAll), &mut ledger.clone(), &format!("gone at {at}"));
        // The page cache still shows the bytes that never reached the disk.
        recover(&disk, &mut ledger, &format!("shown at {at}"));
        recover(&disk.crash(&mut LoseAll), &mut ledger, &format!("shown, then lost at {at}"));
    }
}

struct One {
    disk: FaultyDisk,
    journal: LocalJournal,
    heard: Heard,
}

impl One {
    fn new() -> Self {
        let disk = FaultyDisk::new();
        let journal = open(&disk).unwrap();
        journal.create(&[stream(0), stream(1)]).unwrap();
        let heard = Heard::default();
        journal.fence(stream(0), Arc::new(heard.clone())).unwrap();
        Self { disk, journal, heard }
    }

    fn append(&self, text: &str) -> Result<(), AppendError> {
        let Bounds { epoch, next, .. } = self.journal.bounds(stream(0)).unwrap();
        let mut batch = BatchBuilder::new(stream(0), epoch, next);
        batch.push(Millis(1), b"k", text.as_bytes());
        self.journal.append(stream(0), batch.finish())
    }

    fn values(&self) -> Vec<String> {
        let read = self.journal.read(stream(0), Seq(1), ALL).unwrap();
        let records = read.iter().flat_map(|b| BatchRef::parse(b).unwrap().records());
        records.map(|r| String::from_utf8(r.value.to_vec()).unwrap()).collect()
    }
}

#[test]
fn without_space_batches_are_dropped_and_numbers_go_on_when_there_is_some() {
    let one = One::new();
    one.append("a").unwrap();
    one.journal.turn();
    let used: usize = one.disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    one.disk.set_space(Some(used as u64 + 30));
    // The file has room for some.
    while one.heard.dropped().is_empty() {
        one.append("some room").unwrap();
        one.journal.turn();
    }
    let last = one.heard.synced();
    assert!(last > Seq(1));
    for _ in 0..3 {
        one.append("no room").unwrap();
        one.append("behind it").unwrap();
        one.journal.turn();
    }
    assert_eq!(one.heard.dropped(), [last.next(); 4]);
    assert!(one.journal.health().is_ok());
    let found = open(&one.disk.crash(&mut KeepAll)).unwrap();
    assert_eq!(found.bounds(stream(0)).unwrap().synced, last, "nothing dropped is found");
    one.disk.set_space(None);
    one.append("b").unwrap();
    one.journal.turn();
    let values = one.values();
    assert_eq!((one.heard.synced(), values.len()), (last.next(), last.next().0 as usize));
    assert_eq!((&*values[0], values.last().map(|v| &**v)), ("a", Some("b")));
    one.journal.close().unwrap();
    assert!(verify_journal(&one.disk, dir()).unwrap().findings.is_empty());
}

#[test]
fn life_with_a_disk_that_is_full_now_and_then_keeps_one_history() {
    for seed in 0..30 {
        let (disk, mut ledger) = (FaultyDisk::new(), Ledger::default());
        let mut dice = Dice(seed);
        disk.set_faults(Some(Box::new(move |op: &Operation<'_>| {
            let of_journal = op.path.extension().is_some_and(|e| e == "log");
            let hit = of_journal && op.kind == OpKind::Write && dice.roll(4) == 0;
            hit.then(|| Fault::Torn(dice.roll(200) as usize, ErrorKind::StorageFull))
        })));
        run(&disk, &mut ledger, seed).expect("no space is no failure");
        assert!(ledger.synced(stream(0)) > Seq(20));
        disk.set_faults(None);
        recover(&disk, &mut ledger, &format!("seed {seed}"));
    }
}

#[test]
fn filling_waits_for_space_and_loses_nothing() {
    let one = One::new();
    for n in 0..20 {
        one.append(&n.to_string()).unwrap();
        one.journal.turn();
    }
    one.disk.set_space(Some(0));
    assert!(matches!(one.journal.fill(), Err(StoreError::NoSpace { .. })));
    assert_eq!(one.values().len(), 20);
    one.disk.set_space(None);
    one.journal.fill().unwrap();
    assert_eq!((one.values().len(), one.journal.usage().unfilled_bytes), (20, 0));
}

#[test]
fn after_a_failed_write_or_sync_everything_is_refused_and_the_rest_is_read() {
    for kind in [OpKind::Write, OpKind::Sync] {
        let one = One::new();
        one.append("a").unwrap();
        one.journal.turn();
        one.disk.set_faults(Some(Box::new(move |op: &Operation<'_>| {
            (op.kind == kind).then_some(Fault::Error(ErrorKind::Other))
        })));
        one.append("b").unwrap();
        one.journal.turn();
        one.disk.set_faults(None);
        assert!(one.heard.failed() && one.heard.synced() == Seq(1));
        assert!(matches!(one.journal.health(), Err(StoreError::Failed { .. })));
        let refused = one.append("c");
        assert!(matches!(refused, Err(AppendError::Store(StoreError::Failed { .. }))));
        let fenced = one.journal.fence(stream(0), Arc::new(Heard::default()));
        assert!(fenced.is_err() && one.journal.trim(stream(0), Seq(1)).is_err());
        assert!(!one.journal.turn());
        assert_eq!(one.values(), ["a"]);
        assert!(one.journal.close().is_err());
    }
}

/// A journal with two segments, two journal files, and a proven last round.
fn sample() -> FaultyDisk {
    let one = One::new();
    for n in 0..70 {
        one.append(&format!("value {n}")).unwrap();
        one.journal.turn();
        if n == 35 || n == 15 {
            one.journal.fill().unwrap();
        }
    }
    one.journal.mark();
    one.disk.crash(&mut KeepAll)
}

#[test]
fn every_rotten_byte_is_found_named_and_never_served() {
    let whole = sample();
    let files = whole.files();
    assert!(files.iter().filter(|(p, _)| p.extension().is_some_and(|e| e == "log")).count() > 1);
    // The reserve holds room, and nothing else.
    for (path, bytes) in files.iter().filter(|(path, _)| !path.ends_with("reserve")) {
        let last_journal = files.iter().rfind(|(p, _)| p.extension().is_some_and(|e| e == "log"));
        let is_last = last_journal.is_some_and(|(p, _)| p == path);
        // The mark itself proves, and is proven by nothing; nor are zeroes.
        let mark = bytes.windows(4).rposition(|window| window == b"TLR1");
        let proven = mark.filter(|_| is_last).unwrap_or(bytes.len());
        for at in 0..proven {
            let disk = whole.crash(&mut KeepAll);
            assert!(disk.flip(path, at as u64, at as u8 % 8));
            let case = format!("{} at {at}", path.display());
            let verified = verify_journal(&disk, dir());
            let found = match &verified {
                Ok(verified) => verified.findings.iter().any(|f| &f.file == path),
                Err(StoreError::Version { .. }) => true,
                Err(other) => panic!("{case}: {other}"),
            };
            assert!(found, "{case}: {verified:?}");
            match open(&disk) {
                Err(StoreError::Damaged { file, .. }) => assert_eq!(&file, path),
                Err(StoreError::Version { .. }) => {}
                Err(other) => panic!("{case}: {other}"),
                Ok(journal) => assert_served_or_damaged(&journal, path, &case),
            }
            let after = disk.files();
            let rotten = after.iter().find(|(p, _)| p == path);
            assert!(rotten.is_some_and(|(_, b)| b.len() >= bytes.len()), "{case}: it was cut");
        }
    }
}

/// Reads everything: each record is right, and the rotten file is named.
fn assert_served_or_damaged(journal: &LocalJournal, path: &Path, case: &str) {
    let (mut damaged, mut next) = (false, Seq(1));
    while next <= journal.bounds(stream(0)).unwrap().synced {
        match journal.read(stream(0), next, ALL) {
            Ok(batches) => {
                for batch in &batches {
                    for record in BatchRef::parse(batch).unwrap().records() {
                        let expected = format!("value {}", record.seq.0 - 1);
                        assert_eq!(
                            (record.seq, record.value),
                            (next, expected.as_bytes()),
                            "{case}"
                        );
                        next = next.next();
                    }
                }
            }
            Err(ReadError::Store(StoreError::Damaged { file, .. })) => {
                assert_eq!(file, path, "{case}");
                damaged = true;
                next = next.next();
            }
            Err(other) => panic!("{case}: {other}"),
        }
    }
    assert!(damaged, "{case}: nothing was said");
}

#[test]
fn a_file_that_is_gone_is_named() {
    let whole = sample();
    for (path, _) in whole.files() {
        let disk = whole.crash(&mut KeepAll);
        disk.remove_file(&path).unwrap();
        let opened = open(&disk).err();
        let last = whole
            .files()
            .iter()
            .rfind(|(p, _)| p.extension().is_some_and(|e| e == "log"))
            .is_some_and(|(p, _)| *p == path);
        if last || path.ends_with("reserve") {
            // Nothing tells a last file that is gone from one that never was.
            continue;
        }
        let Some(StoreError::Damaged { file, .. }) = opened else { panic!("{opened:?}") };
        let of_manifest = path.ends_with("manifest");
        assert!(file == path || of_manifest, "{} for {}", file.display(), path.display());
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let disk = sample();
    let manifest = dir().join("manifest");
    disk.flip(&manifest, 4, 1);
    let Err(StoreError::Version { found, known, .. }) = open(&disk) else { panic!() };
    assert_eq!((found, known), (3, 1));
}
