//! What has gone wrong in other queues, each as a test here.
//!
//! | kind | held by |
//! |---|---|
//! | a torn tail comes back, or counts as a record | `store`: `a_write_torn_at_any_byte_is_cut_to_its_last_whole_batch`, `every_rotten_byte_is_found_named_and_never_served` |
//! | an append that failed leaves bytes before the next | `store`: `after_a_failed_write_or_sync_everything_is_refused_and_the_rest_is_read`, `without_space_batches_are_dropped_and_numbers_go_on_when_there_is_some` |
//! | zeros at the end are taken for records | `store`: `zeros_after_the_last_round_are_no_record` |
//! | an empty value at the end blocks its reader | [`an_empty_value_at_the_end_is_read_and_is_another_than_none`] |
//! | retention takes a file from under its reader | [`a_reader_at_the_start_loses_no_record_that_it_was_not_told_of`] |
//! | a reader beyond a cut tail goes on in what replaced it | `on_disk`: `a_reader_of_a_lost_tail_is_told_where_it_diverged` |
//! | a topic made anew is read from an old place | `topics`: `a_topic_made_anew_is_another_life` |
//! | a place that is too old jumps to the end, or is asked for without end | `places`: `freed_records_are_told_as_truncated`; the simulator's stores take a snapshot |
//! | the last records yield nothing, and their reader stays behind | `declared`: `what_is_filtered_out_is_covered` |
//! | what is filtered out is never checkpointed, and read again | [`a_checkpoint_advances_over_a_million_records_that_are_left_out`] |
//! | a retry after a lost acknowledgement is appended twice | `once`: `a_batch_whose_acknowledgement_was_lost_is_not_there_twice`, `it_is_told_again_where_it_stood_after_its_records_were_freed` |
//! | the applied place is kept apart from the data | the simulator's broken rule `PlaceApart` |
//! | a watcher misses that a node was deleted and made again | `meta`: `an_observer_goes_on_over_a_restart_and_sees_what_was_deleted_and_made_again` |
//! | a jump of the wall clock ends a lease, or puts times out of order | `meta`: `a_session_ends_by_the_monotone_clock_alone`; `once`: `what_is_remembered_of_a_batch_that_was_freed_has_its_epoch_and_its_time` |
//! | a follower serves from memory what it loses in a crash | the simulator's `metadata`, broken rule `RestAheadOfSync` |
//! | a reader that fell behind ignores it | the simulator's broken rules `SnapshotSkipped` and `JoinUnchecked` |
//! | a late fill brings back what was replaced or deleted | `client`: `a_fill_that_comes_late_does_not_bring_back_what_was_replaced`; broken rules `StaleFill`, `TombstoneDropped` |
//!
//! Two hosts, and a failover between them: [`two_hosts_derive_the_same_bytes_over_a_failover`].

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tideline_queue::{FetchError, From, Options, Queue, TopicSpec};
use tideline_record::{Maker, OnError, Operator, Output, batch::Record};
use tideline_store::disk::{FaultyDisk, KeepAll};
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::mem::MemTable;
use tideline_store::{ManualClock, ReadLimits};
use tideline_types::{Millis, Position, Seq, TopicName};

use crate::{ALL, House, LONG, NO_WAIT, NOW, P0, name};

/// Keeps values that begin with the text.
struct Begins;

struct Prefix(String);

impl Maker for Begins {
    fn make(&self, _: &TopicName, text: &str) -> Result<Arc<dyn Operator>, String> {
        Ok(Arc::new(Prefix(text.to_owned())))
    }
}

impl Operator for Prefix {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        if record.value.starts_with(self.0.as_bytes()) {
            out.push(record.key, record.value);
        }
        Ok(())
    }
}

fn open(disk: &FaultyDisk, table: &Arc<MemTable>, file_bytes: u64) -> (Arc<LocalJournal>, Queue) {
    let options = JournalOptions { file_bytes, ..JournalOptions::default() };
    let disk = Arc::new(disk.clone());
    let journal = Arc::new(LocalJournal::open_on(disk, Path::new("/log"), options).unwrap());
    let clock = Arc::new(ManualClock::at(Millis(NOW)));
    let queue = Queue::open(journal.clone(), table.clone(), clock, Options::default()).unwrap();
    queue.set_maker(Arc::new(Begins)).unwrap();
    (journal, queue)
}

fn chat(queue: &Queue) -> TopicName {
    let mut spec = TopicSpec::new(name("chat"));
    spec.partitions = Some(1);
    queue.ensure_topic(spec).unwrap().name
}

async fn say(queue: &Queue, topic: &TopicName, values: &[&str]) -> Seq {
    let records = values.iter().map(|value| crate::record(value)).collect();
    queue.produce(topic, Some(P0), records).await.unwrap().last().unwrap().seq
}

#[tokio::test]
async fn an_empty_value_at_the_end_is_read_and_is_another_than_none() {
    let house = House::new();
    house.queue.set_maker(Arc::new(Begins)).unwrap();
    let chat = house.topic("chat", 1);
    house.queue.declare(&name("all"), &chat, "", OnError::Skip).unwrap();
    for (n, value) in ["a", "", "0"].iter().enumerate() {
        house.say(&chat, &[value]).await;
        for topic in [&chat, &name("all")] {
            // Waits for as long as it takes: one that is blocked hangs.
            let got = house.queue.fetch(topic, P0, From::Earliest, ALL, LONG).await.unwrap();
            assert_eq!(got.records.len(), n + 1, "{topic}");
            assert_eq!(got.records[n].value, value.as_bytes(), "{topic}");
            assert_eq!(got.range.through, Seq(n as u64 + 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_at_the_start_loses_no_record_that_it_was_not_told_of() {
    let (disk, table) = (FaultyDisk::new(), Arc::new(MemTable::new()));
    let (journal, queue) = open(&disk, &table, 2_000);
    let chat = chat(&queue);
    const RECORDS: u64 = 600;
    let writer = tokio::spawn({
        let (queue, chat) = (queue.clone(), chat.clone());
        async move {
            for n in 1..=RECORDS {
                let at = say(&queue, &chat, &[&format!("{n}")]).await;
                assert_eq!(at, Seq(n));
                // All but the last few go at once.
                if n % 7 == 0 {
                    let (queue, chat, journal) = (queue.clone(), chat.clone(), journal.clone());
                    let freed = tokio::task::spawn_blocking(move || {
                        journal.fill().unwrap();
                        queue.trim(&chat, P0, Seq(n.saturating_sub(3))).unwrap();
                    });
                    freed.await.unwrap();
                }
            }
        }
    });
    let readers = (0..3).map(|_| {
        let (queue, chat) = (queue.clone(), chat.clone());
        tokio::spawn(async move {
            let mut covered = Seq(0);
            let mut frames = queue.subscribe(&chat, P0, From::Earliest);
            while covered < Seq(RECORDS) {
                match frames.next().await {
                    Ok(frame) => {
                        assert!(covered == Seq(0) || frame.range.after == covered, "a gap");
                        let frame = frame.encode(P0);
                        let mut seq = frame.range().after;
                        for record in frame.records() {
                            seq = seq.next();
                            assert_eq!(record.seq, seq, "a record is missing");
                            assert_eq!(record.value, seq.0.to_string().as_bytes());
                        }
                        assert_eq!(seq, frame.range().through);
                        covered = seq;
                    }
                    Err(FetchError::Truncated { start }) => {
                        assert!(start > covered.next(), "told of nothing that is gone");
                        frames = queue.subscribe(&chat, P0, From::Earliest);
                        covered = Seq(0);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    writer.await.unwrap();
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test]
async fn a_checkpoint_advances_over_a_million_records_that_are_left_out() {
    const BATCHES: usize = 20;
    const BATCH: usize = 50_000;
    let (disk, table) = (FaultyDisk::new(), Arc::new(MemTable::new()));
    let (_journal, queue) = open(&disk, &table, 1 << 20);
    let chat = chat(&queue);
    queue.declare(&name("rare"), &chat, "one", OnError::Skip).unwrap();
    let batch: Vec<(Bytes, Bytes)> = vec![crate::record("x"); BATCH];
    for _ in 0..BATCHES {
        queue.produce(&chat, Some(P0), batch.clone()).await.unwrap();
    }
    // Nothing is delivered, and the place moves range by range.
    let limits = ReadLimits { records_max: 1_000, bytes_max: 1 << 20 };
    let (mut checkpoint, mut asked) = (From::Earliest, 0);
    let place = loop {
        let got = queue.fetch(&name("rare"), P0, checkpoint, limits, NO_WAIT).await.unwrap();
        assert!(got.records.is_empty());
        let (incarnation, epoch, seq) = (got.incarnation, got.epoch, got.range.through);
        let place = Position { incarnation, epoch, seq };
        asked += 1;
        if seq == Seq((BATCHES * BATCH) as u64) {
            break place;
        }
        checkpoint = From::After(place);
    };
    assert!(asked <= BATCHES, "{asked} questions");
    let whole = disk.bytes_read();
    drop(queue);
    // A restart goes on there, and reads none of it again.
    let disk = disk.crash(&mut KeepAll);
    let (_journal, queue) = open(&disk, &table, 1 << 20);
    let opened = disk.bytes_read();
    let got = queue.fetch(&name("rare"), P0, From::After(place), ALL, NO_WAIT).await.unwrap();
    assert!(got.range.is_empty() && got.range.after == place.seq);
    let read = disk.bytes_read() - opened;
    assert!(read < whole / 4, "{read} bytes were read again, of {whole}");
    say(&queue, &chat, &["one in a million"]).await;
    let got = queue.fetch(&name("rare"), P0, From::After(place), ALL, LONG).await.unwrap();
    assert_eq!((got.records.len(), got.range.after), (1, place.seq));
}

/// Every byte of every batch of a topic, and where it ends.
async fn bytes_of(queue: &Queue, topic: &TopicName, from: From) -> (Vec<u8>, Position) {
    let synced = queue.bounds(topic, P0).unwrap().synced;
    let mut frames = queue.subscribe(topic, P0, from);
    let mut all = Vec::new();
    loop {
        let frame = frames.next().await.unwrap();
        frame.batches.iter().for_each(|batch| all.extend_from_slice(batch));
        let (incarnation, epoch, seq) = (frame.incarnation, frame.epoch, frame.range.through);
        if seq == synced {
            return (all, Position { incarnation, epoch, seq });
        }
    }
}

#[tokio::test]
async fn two_hosts_derive_the_same_bytes_over_a_failover() {
    let (disk, table) = (FaultyDisk::new(), Arc::new(MemTable::new()));
    let (journal, first) = open(&disk, &table, 2_000);
    let chat = chat(&first);
    let derived = name("as");
    first.declare(&derived, &chat, "a", OnError::Skip).unwrap();
    for n in 0..40 {
        say(&first, &chat, &[&format!("a{n}"), "b", &format!("ab{n}")]).await;
        if n == 20 {
            first.declare(&derived, &chat, "ab", OnError::Skip).unwrap();
        }
    }
    let (all, end) = bytes_of(&first, &derived, From::Earliest).await;
    // The first is killed: what it had not synced may be there or not.
    let image = disk.crash(&mut KeepAll);
    drop((journal, first));
    let (_journal, second) = open(&image, &table, 2_000);
    assert_eq!(bytes_of(&second, &derived, From::Earliest).await, (all.clone(), end));
    // Readers go on at the second where the first left them.
    say(&second, &chat, &["ab of the second", "a"]).await;
    let (more, _) = bytes_of(&second, &derived, From::After(end)).await;
    let (whole, _) = bytes_of(&second, &derived, From::Earliest).await;
    assert_eq!(whole, [all, more].concat());
}
