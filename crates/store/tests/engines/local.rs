//! Bounds of the default journal, and life with threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tideline_record::batch::{BatchBuilder, BatchRef};
use tideline_store::disk::{FaultyDisk, KeepAll, RealDisk};
use tideline_store::laws::Heard;
use tideline_store::local::{JournalOptions, LocalJournal, verify_journal};
use tideline_store::{
    AppendError, Bounds, Journal, ReadError, ReadLimits, StoreError, SyncWatcher,
};
use tideline_types::{Epoch, Millis, Seq, SeqRange, StreamId};

use crate::script::{ALL, Dice, dir, stream};

fn open(disk: &FaultyDisk, options: JournalOptions) -> LocalJournal {
    LocalJournal::open_on(Arc::new(disk.clone()), dir(), options).unwrap()
}

fn steps(file_bytes: u64) -> JournalOptions {
    JournalOptions { file_bytes, threads: false, ..JournalOptions::default() }
}

fn own(journal: &LocalJournal, streams: u16) -> Vec<(StreamId, Heard)> {
    let streams: Vec<_> = (0..streams).map(stream).collect();
    journal.create(&streams).unwrap();
    let own = |id| {
        let heard = Heard::default();
        journal.fence(id, Arc::new(heard.clone())).unwrap();
        (id, heard)
    };
    streams.into_iter().map(own).collect()
}

fn append(journal: &LocalJournal, id: StreamId, bytes: usize) -> Result<Seq, AppendError> {
    let Bounds { epoch, next, .. } = journal.bounds(id).unwrap();
    let mut batch = BatchBuilder::new(id, epoch, next);
    batch.push(Millis(next.0 as i64), b"k", &vec![next.0 as u8; bytes]);
    journal.append(id, batch.finish()).map(|()| next)
}

/// Reads a whole stream in pages; answers its bytes and those that were read.
fn read_all(disk: &FaultyDisk, journal: &LocalJournal, id: StreamId, page: usize) -> (u64, u64) {
    let before = disk.bytes_read();
    let (mut bytes, mut next) = (0, Seq(1));
    loop {
        let limits = ReadLimits { records_max: usize::MAX, bytes_max: page };
        let batches = journal.read(id, next, limits).unwrap();
        let Some(last) = batches.last() else { break };
        next = BatchRef::parse(last).unwrap().range().through.next();
        bytes += batches.iter().map(|b| b.len() as u64).sum::<u64>();
    }
    assert_eq!(next, journal.bounds(id).unwrap().next);
    (bytes, disk.bytes_read() - before)
}

#[test]
fn reading_one_partition_reads_at_most_twice_its_bytes() {
    let disk = FaultyDisk::new();
    let mut journal = open(&disk, steps(200_000));
    own(&journal, 20);
    for round in 0..400 {
        for n in 0..20 {
            append(&journal, stream(n), 100 + (round * 7 + usize::from(n) * 13) % 400).unwrap();
        }
        journal.turn();
    }
    let check = |journal: &LocalJournal, when: &str| {
        for page in [16 << 10, 64 << 10, 1 << 20] {
            let (bytes, read) = read_all(&disk, journal, stream(3), page);
            assert!(bytes > 100_000 && read <= 2 * bytes, "{when}, {page}: {read} for {bytes}");
        }
    };
    check(&journal, "from the journal");
    journal.fill().unwrap();
    check(&journal, "from segments");
    journal.close().unwrap();
    journal = open(&disk, steps(200_000));
    check(&journal, "after a restart");
}

#[test]
fn deleting_a_stream_frees_its_bytes_and_no_others() {
    for filled in [true, false] {
        let disk = FaultyDisk::new();
        let journal = open(&disk, steps(50_000));
        own(&journal, 4);
        for _ in 0..100 {
            for n in 0..4 {
                append(&journal, stream(n), 1_000).unwrap();
            }
            journal.turn();
        }
        if filled {
            journal.fill().unwrap();
        }
        let size = || disk.files().iter().map(|(_, b)| b.len()).sum::<usize>();
        let before = size();
        journal.remove(&[stream(0), stream(1)]).unwrap();
        let after = size();
        assert!(before - after > 2 * 100 * 1_000 * 9 / 10, "{before} to {after}");
        assert!(read_all(&disk, &journal, stream(2), 1 << 20).0 > 100 * 1_000);
    }
}

#[test]
fn a_short_round_is_written_over_zeroes_that_count_as_used_and_are_no_records() {
    let (disk, options) = (FaultyDisk::new(), steps(1 << 20));
    let journal = open(&disk, options);
    let owned = own(&journal, 1);
    let id = owned[0].0;
    let mut lens = Vec::new();
    for _ in 0..100 {
        append(&journal, id, 200).unwrap();
        journal.turn();
        let file =
            disk.files().into_iter().find(|(p, _)| p.extension().is_some_and(|e| e == "log"));
        lens.push(file.unwrap().1.len() as u64);
    }
    assert_eq!((lens[0], lens[99]), (256 << 10, 256 << 10));
    assert!(journal.usage().total_bytes > lens[0]);
    assert!(journal.usage().unfilled_bytes < lens[0] / 4);
    drop(journal);
    let found = open(&disk.crash(&mut KeepAll), options);
    assert_eq!(found.recovered().torn, None);
    assert_eq!(found.bounds(id).unwrap().synced, Seq(100));
}

#[test]
fn what_is_not_filled_is_bounded_and_going_over_is_an_answer() {
    let disk = FaultyDisk::new();
    let options = JournalOptions { unfilled_bytes_max: 100_000, ..steps(20_000) };
    let journal = open(&disk, options);
    own(&journal, 1);
    let refused = loop {
        match append(&journal, stream(0), 1_000) {
            Ok(_) => drop(journal.turn()),
            Err(error) => break error,
        }
        assert!(journal.usage().unfilled_bytes <= 100_000);
    };
    assert!(matches!(refused, AppendError::Full { .. }));
    journal.fill().unwrap();
    append(&journal, stream(0), 1_000).unwrap();
}

#[test]
fn a_disk_bound_holds_at_every_moment_and_a_trim_makes_room() {
    let disk = FaultyDisk::new();
    let options = JournalOptions { max_bytes: 200_000, ..steps(1 << 20) };
    let journal = open(&disk, options);
    own(&journal, 1);
    let size = || disk.files().iter().map(|(_, b)| b.len() as u64).sum::<u64>();
    for round in 0..5 {
        let refused = loop {
            match append(&journal, stream(0), 1_000) {
                Ok(_) => drop(journal.turn()),
                Err(error) => break error,
            }
            assert!(size() <= 200_000);
            if journal.usage().unfilled_bytes > 30_000 {
                journal.fill().unwrap();
            }
        };
        assert!(matches!(refused, AppendError::OverQuota { .. }), "{refused}");
        assert!(size() > 120_000, "round {round}: {} bytes are used", size());
        let synced = journal.bounds(stream(0)).unwrap().synced;
        journal.trim(stream(0), Seq(synced.0 - 10)).unwrap();
    }
}

#[test]
fn a_full_disk_can_be_freed_by_a_trim() {
    let disk = FaultyDisk::new();
    let journal = open(&disk, steps(20_000));
    let owned = own(&journal, 1);
    for _ in 0..100 {
        append(&journal, stream(0), 1_000).unwrap();
        journal.turn();
    }
    journal.fill().unwrap();
    let used = disk.files().iter().map(|(_, b)| b.len() as u64).sum();
    disk.set_space(Some(used));
    append(&journal, stream(0), 1_000).unwrap();
    journal.turn();
    assert_eq!(owned[0].1.dropped(), [Seq(101)]);
    assert!(journal.trim(stream(0), Seq(90)).unwrap() > Seq(50));
    append(&journal, stream(0), 1_000).unwrap();
    journal.turn();
    assert_eq!(owned[0].1.synced(), Seq(101));
}

struct Panics;

impl SyncWatcher for Panics {
    fn synced(&self, _: StreamId, _: Seq) {
        panic!("a mistake of the owner's");
    }
    fn failed(&self, _: StreamId, _: &StoreError) {}
    fn dropped(&self, _: StreamId, _: Seq, _: &StoreError) {}
}

#[test]
fn a_watcher_that_panics_makes_the_log_read_only_and_nobody_wait_for_ever() {
    let disk = FaultyDisk::new();
    let options = JournalOptions { file_bytes: 20_000, ..JournalOptions::default() };
    let journal = open(&disk, options);
    journal.create(&[stream(0)]).unwrap();
    journal.fence(stream(0), Arc::new(Panics)).unwrap();
    append(&journal, stream(0), 10).unwrap();
    while journal.health().is_ok() {
        std::thread::yield_now();
    }
    let fenced = journal.fence(stream(0), Arc::new(Heard::default()));
    assert!(fenced.is_err() && journal.close().is_err());
}

#[test]
fn a_second_opening_of_a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = LocalJournal::open(folder.path(), JournalOptions::default()).unwrap();
    let second = LocalJournal::open(folder.path(), JournalOptions::default());
    assert!(matches!(second, Err(StoreError::Locked(_))));
    drop(journal);
    LocalJournal::open(folder.path(), JournalOptions::default()).unwrap();
}

#[test]
fn a_mark_is_overwritten_by_the_next_round() {
    let disk = FaultyDisk::new();
    let journal = open(&disk, steps(20_000));
    own(&journal, 1);
    for _ in 0..50 {
        append(&journal, stream(0), 1_000).unwrap();
        journal.turn();
        assert!(
            journal.mark() && !journal.mark() || journal.usage().unfilled_bytes % 20_000 < 2_000
        );
    }
    let verified = verify_journal(&disk, dir()).unwrap();
    assert_eq!((verified.records, verified.findings), (50, vec![]));
    let journal = open(&disk, steps(20_000));
    assert_eq!(journal.bounds(stream(0)).unwrap().synced, Seq(50));
    assert_eq!(journal.recovered().torn, None);
}

/// Four writers, a reader, a trimmer, an eraser and a copier at once.
#[test]
fn all_that_runs_at_once_keeps_every_record_in_its_place() {
    let (folder, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = JournalOptions { file_bytes: 100_000, ..JournalOptions::default() };
    let journal = Arc::new(LocalJournal::open(folder.path(), options).unwrap());
    let owned = own(&journal, 4);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = owned
            .iter()
            .map(|(id, heard)| {
                let journal = &journal;
                scope.spawn(move || {
                    for n in 0..3_000 {
                        let seq = append(journal, *id, 50 + n % 100).unwrap();
                        if n % 50 == 0 {
                            heard.wait_synced(seq);
                        }
                    }
                    heard.wait_synced(Seq(3_000));
                })
            })
            .collect();
        scope.spawn(|| {
            let mut next = Seq(1);
            while next <= Seq(3_000) {
                let limits = ReadLimits { records_max: 100, bytes_max: 8_000 };
                for batch in journal.read(stream(0), next, limits).unwrap() {
                    let batch = BatchRef::parse(&batch).unwrap();
                    assert!(batch.range().contains(next));
                    next = batch.range().through.next();
                }
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let Bounds { start, synced, .. } = journal.bounds(stream(1)).unwrap();
                let after = journal.trim(stream(1), synced.prev()).unwrap();
                assert!(after >= start);
                match journal.read(stream(1), start, ALL) {
                    Ok(_) | Err(ReadError::Truncated { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let range = SeqRange::new(Seq(0), journal.bounds(stream(2)).unwrap().synced);
                journal.erase(stream(2), range, &mut |seq, _, _| seq.0 % 3 == 0).unwrap();
            }
        });
        scope.spawn(|| {
            for n in 0..3 {
                let synced = journal.bounds(stream(3)).unwrap().synced;
                let into = copies.path().join(n.to_string());
                journal.backup(&into).unwrap();
                let verified = verify_journal(&RealDisk, &into).unwrap();
                assert_eq!(verified.findings, vec![]);
                let copy = LocalJournal::open(&into, options).unwrap();
                assert!(copy.bounds(stream(3)).unwrap().synced >= synced);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    journal.close().unwrap();
    drop(journal);
    assert_eq!(verify_journal(&RealDisk, folder.path()).unwrap().findings, vec![]);
    let journal = LocalJournal::open(folder.path(), options).unwrap();
    for (id, _) in &owned {
        assert_eq!(journal.bounds(*id).unwrap().synced, Seq(3_000));
    }
    let mut seen = 0;
    for batch in journal.read(stream(0), Seq(1), ALL).unwrap() {
        seen += BatchRef::parse(&batch).unwrap().records().count();
    }
    assert_eq!(seen, 3_000);
    assert_eq!(journal.epochs(stream(0))[0].epoch, Epoch(1));
}

#[test]
fn power_may_go_at_any_moment_of_a_busy_life() {
    let disk = FaultyDisk::new();
    let options = JournalOptions { file_bytes: 20_000, ..JournalOptions::default() };
    let journal = open(&disk, options);
    let owned = own(&journal, 3);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (id, heard) in &owned {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let seqs = [0; 5].map(|_| append(&journal, *id, 200).unwrap());
                    heard.wait_synced(seqs[4]);
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                journal.mark();
                journal.fill().unwrap();
                for n in 0..3 {
                    let synced = journal.bounds(stream(n)).unwrap().synced;
                    journal.trim(stream(n), Seq(synced.0.saturating_sub(200))).unwrap();
                }
                journal.mark();
                let synced = journal.bounds(stream(1)).unwrap().synced;
                let range = SeqRange::new(Seq(0), synced);
                journal.erase(stream(1), range, &mut |seq, _, _| seq.0 % 7 == 0).unwrap();
            }
        });
        for seed in 0..40 {
            let synced = [0, 1, 2].map(|n: usize| owned[n].1.synced());
            owned[0].1.wait_synced(synced[0].plus(10));
            let image = disk.crash(&mut Dice(seed));
            let found = open(&image, options);
            for (n, synced) in synced.into_iter().enumerate() {
                let bounds = found.bounds(stream(n as u16)).unwrap();
                assert!(bounds.synced >= synced, "image {seed}: {synced} of {n} is lost");
                let read = found.read(stream(n as u16), bounds.start, ALL).unwrap();
                let records = read.iter().flat_map(|b| BatchRef::parse(b).unwrap().records());
                for record in records.filter(|r| !r.erased) {
                    assert!(record.value.iter().all(|b| *b == record.seq.0 as u8));
                }
            }
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn an_empty_folder_is_a_sound_log() {
    let verified = verify_journal(&FaultyDisk::new(), Path::new("/none")).unwrap();
    assert_eq!((verified.streams, verified.findings), (0, vec![]));
}

#[test]
fn a_log_that_is_closed_during_an_erase_waits_for_one_file_alone() {
    let disk = FaultyDisk::new();
    let options = JournalOptions { file_bytes: 1 << 10, ..JournalOptions::default() };
    let journal = open(&disk, options);
    let (id, heard) = own(&journal, 1).remove(0);
    for _ in 0..8 {
        let seq = append(&journal, id, 1000).unwrap();
        heard.wait_synced(seq);
        journal.fill().unwrap();
    }
    assert!(journal.extents(id).len() > 4);
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        let erased = journal.erase(id, SeqRange::new(Seq(0), Seq(8)), &mut |seq, _, _| {
            if seen.is_empty() {
                scope.spawn(|| journal.close().unwrap());
                while append(&journal, id, 1).is_ok() {
                    std::thread::yield_now();
                }
            }
            seen.push(seq);
            true
        });
        assert!(matches!(erased, Err(StoreError::Io { .. })), "{erased:?}");
    });
    assert_eq!(seen, [Seq(1)]);
    // Nothing was decided: all is there, and the next life can erase it.
    drop(journal);
    let journal = open(&disk, options);
    let erase = journal.erase(id, SeqRange::new(Seq(0), Seq(8)), &mut |_, _, _| true).unwrap();
    assert_eq!(erase.erased, 8);
}

#[test]
fn a_log_whose_epochs_were_raised_goes_on_far_above_them_with_all_it_held() {
    let disk = FaultyDisk::new();
    let journal = open(&disk, steps(1 << 10));
    for (id, _) in own(&journal, 2) {
        append(&journal, id, 10).unwrap();
    }
    journal.turn();
    drop(journal);
    let journal = open(&disk, steps(1 << 10));
    journal.raise_epochs(1000).unwrap();
    assert!(journal.raise_epochs(u32::MAX).is_err());
    drop(journal);
    let journal = open(&disk, steps(1 << 10));
    for (id, _) in own(&journal, 2) {
        let bounds = journal.bounds(id).unwrap();
        assert_eq!((bounds.epoch, bounds.synced), (Epoch(1002), Seq(1)));
        let epochs: Vec<_> = journal.epochs(id).iter().map(|e| (e.epoch.0, e.first.0)).collect();
        assert_eq!(epochs, [(1, 1), (1002, 2)]);
    }
}
