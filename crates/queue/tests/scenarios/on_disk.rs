//! Topics over the log on disk, with power that goes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tideline_queue::{FetchError, From, Options, ProduceError, Queue, TopicSpec};
use tideline_store::disk::{FaultyDisk, KeepAll, LoseAll};
use tideline_store::local::{JournalOptions, LocalJournal};
use tideline_store::mem::MemTable;
use tideline_store::{Journal, ManualClock};
use tideline_types::{Millis, PartitionId, Position, Seq, TopicName};

use crate::{ALL, NO_WAIT, NOW, P0, name};

struct Folder {
    disk: Mutex<FaultyDisk>,
    table: Arc<MemTable>,
}

impl Folder {
    fn new() -> Self {
        Self { disk: Mutex::default(), table: Arc::new(MemTable::new()) }
    }

    fn open(&self) -> (Arc<LocalJournal>, Queue) {
        let disk = Arc::new(self.disk.lock().unwrap().clone());
        let options = JournalOptions { file_bytes: 4_000, ..JournalOptions::default() };
        let journal = Arc::new(LocalJournal::open_on(disk, Path::new("/log"), options).unwrap());
        let clock = Arc::new(ManualClock::at(Millis(NOW)));
        let queue =
            Queue::open(journal.clone(), self.table.clone(), clock, Options::default()).unwrap();
        (journal, queue)
    }

    fn crash(&self, lose: bool) {
        let mut disk = self.disk.lock().unwrap();
        *disk = if lose { disk.crash(&mut LoseAll) } else { disk.crash(&mut KeepAll) };
    }
}

fn topic(queue: &Queue, partitions: u16) -> TopicName {
    let mut spec = TopicSpec::new(name("chat"));
    spec.partitions = Some(partitions);
    queue.ensure_topic(spec).unwrap().name
}

#[tokio::test]
async fn what_was_acknowledged_survives_every_power_loss() {
    let (folder, mut acknowledged) = (Folder::new(), Vec::new());
    for life in 0..6 {
        let (_journal, queue) = folder.open();
        let topic = topic(&queue, 4);
        for n in 0..50 {
            let text = format!("{life}-{n}").into_bytes();
            let at = queue
                .produce(&topic, None, vec![(Bytes::new(), text.clone().into())])
                .await
                .unwrap();
            acknowledged.push((at[0], text));
        }
        folder.crash(life % 2 == 0);
        let (_journal, queue) = folder.open();
        let mut seen = 0;
        for partition in (0..4).map(PartitionId) {
            let mut subscription = queue.subscribe(&topic, partition, From::Earliest);
            let synced = queue.topic(&topic).unwrap().bounds[usize::from(partition.0)].synced;
            let mut through = Seq(0);
            while through < synced {
                let frame = subscription.next().await.unwrap();
                assert_eq!(frame.range.after, through);
                through = frame.range.through;
                for batch in &frame.batches {
                    let batch = tideline_record::batch::BatchRef::parse(batch).unwrap();
                    for record in batch.records() {
                        let known = acknowledged.iter().any(|(p, text)| {
                            (p.seq, p.epoch, &text[..]) == (record.seq, batch.epoch(), record.value)
                        });
                        assert!(known, "nothing else was ever said");
                        seen += 1;
                    }
                }
            }
        }
        assert_eq!(seen, acknowledged.len());
    }
}

#[tokio::test]
async fn a_reader_of_a_lost_tail_is_told_where_it_diverged() {
    let folder = Folder::new();
    let (_journal, queue) = folder.open();
    let topic = topic(&queue, 1);
    let say = async |queue: &Queue, text: &str| {
        let record = (Bytes::new(), Bytes::copy_from_slice(text.as_bytes()));
        queue.produce(&topic, Some(P0), vec![record]).await.unwrap()[0]
    };
    let kept = say(&queue, "kept").await;
    // A restored backup, or a disk that lied about its syncs.
    let backup = folder.disk.lock().unwrap().crash(&mut LoseAll);
    let lost = say(&queue, "lost").await;
    *folder.disk.lock().unwrap() = backup;
    let (_journal, queue) = folder.open();
    let other = say(&queue, "other").await;
    assert!(other.seq == lost.seq && other.epoch > lost.epoch);
    let after = queue.fetch(&topic, P0, From::After(lost), ALL, NO_WAIT).await;
    let Err(FetchError::Diverged { epoch, seq }) = after else { panic!("{after:?}") };
    assert_eq!((epoch, seq), (kept.epoch, kept.seq));
    let common = Position { epoch, seq, ..kept };
    let got = queue.fetch(&topic, P0, From::After(common), ALL, NO_WAIT).await.unwrap();
    assert_eq!(&got.records[0].value[..], b"other");
}

#[tokio::test]
async fn a_full_log_is_an_answer_and_retention_makes_room() {
    let (disk, table) = (Arc::new(FaultyDisk::new()), Arc::new(MemTable::new()));
    let bound = JournalOptions { max_bytes: 60_000, ..JournalOptions::default() };
    let journal = Arc::new(LocalJournal::open_on(disk, Path::new("/log"), bound).unwrap());
    let clock = Arc::new(ManualClock::at(Millis(NOW)));
    let options = Options { log_bytes_target: 30_000, ..Options::default() };
    let queue = Queue::open(journal.clone(), table, clock, options).unwrap();
    let topic = topic(&queue, 1);
    for _ in 0..3 {
        let refused = loop {
            let record = (Bytes::new(), vec![7; 1_000].into());
            if let Err(error) = queue.produce(&topic, None, vec![record]).await {
                break error;
            }
        };
        assert!(matches!(refused, ProduceError::NoSpace(_)), "{refused}");
        assert!(journal.usage().total_bytes > 20_000);
        journal.fill().unwrap();
        queue.run_retention(Millis(NOW)).unwrap();
        assert!(journal.usage().total_bytes <= 30_000);
    }
}

#[tokio::test]
async fn deleting_a_topic_frees_at_least_nine_tenths_of_its_bytes_and_none_of_another() {
    let folder = Folder::new();
    let (journal, queue) = folder.open();
    let doomed = topic(&queue, 4);
    let mut spec = TopicSpec::new(name("kept"));
    spec.partitions = Some(1);
    let kept = queue.ensure_topic(spec).unwrap().name;
    let on_disk = || {
        let disk = folder.disk.lock().unwrap();
        disk.files().iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    };
    let say = async |topic: &TopicName, n: u64| {
        let record = (n.to_string().into(), vec![n as u8; 500].into());
        queue.produce(topic, None, vec![record]).await.unwrap();
    };
    let empty = on_disk();
    for n in 0..40 {
        say(&kept, n).await;
    }
    let of_kept = on_disk() - empty;
    for n in 0..400 {
        say(&doomed, n).await;
    }
    let of_doomed = on_disk() - empty - of_kept;
    assert!(of_doomed > 400 * 500);
    // Some of it is in segments, some in the journal that all topics share.
    journal.fill().unwrap();
    for n in 0..40 {
        say(&doomed, n).await;
    }
    let before = on_disk();
    queue.delete_topic(&doomed).unwrap();
    let freed = before - on_disk();
    assert!(freed >= of_doomed * 9 / 10, "{freed} of {of_doomed} bytes");
    let read = queue.fetch(&kept, P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    assert_eq!(read.records.len(), 40);
}
