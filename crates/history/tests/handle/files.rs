//! An erased user is in no file: the engines on disk, through the handle.
//!
//! A scan looks at every file of the folder as it is, at the blocks of the
//! table's data files decompressed, and at the records of the log decoded. It
//! looks for the user's id and for the ids of objects, as texts and as they
//! are packed, and for each row that the table ever held of the user, byte for
//! byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use memchr::memmem;
use tideline_history::mark::{Ack, Mark, MarkSet, Path as MarkPath};
use tideline_history::outcome::OutcomeRef;
use tideline_history::query::Filter;
use tideline_history::{History, Options, cold, prepare, rows};
use tideline_queue::Queue;
use tideline_record::batch::BatchRef;
use tideline_store::local::{JournalOptions, LocalJournal, LsmOptions, LsmTable};
use tideline_store::{Clock, ManualClock, Table, TableName};
use tideline_types::UserId;

use crate::site::{START, video};

const PARTITIONS: u16 = 2;
/// A user of each form that an id is packed in.
const GONE: [&str; 3] =
    ["7234567890123456789", "9b2f8fad-d9cb-469f-a165-7c867728950e", "erin-who-is-to-go"];

struct House {
    dir: PathBuf,
    clock: Arc<ManualClock>,
    journal: Arc<LocalJournal>,
    table: Arc<LsmTable>,
    history: History,
}

impl House {
    fn open(dir: &Path) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let log = JournalOptions { file_bytes: 32 << 10, ..JournalOptions::default() };
        let journal = Arc::new(LocalJournal::open(&dir.join("log"), log).unwrap());
        let lsm = LsmOptions { memtable_bytes: 64 << 10, free_bytes_min: 0, ..Default::default() };
        let table = Arc::new(LsmTable::open(&dir.join("tables"), &lsm).unwrap());
        let rules = Arc::new(prepare(&*table, vec![video()], TimeZone::UTC).unwrap());
        let (j, t, c) = (journal.clone(), table.clone(), clock.clone());
        let queue = Queue::open(j, t.clone(), c.clone(), tideline_queue::Options::default());
        let options = Options {
            flush_after: Duration::from_millis(500),
            erase_within: Duration::from_secs(60),
            ..Options::default()
        };
        let history = History::open(queue.unwrap(), t, c, rules, options, PARTITIONS).unwrap();
        Self { dir: dir.to_path_buf(), clock, journal, table, history }
    }

    async fn write(&self, user: &str, ids: &[String], at: i64) {
        let kind = self.history.kinds().find("video").unwrap();
        let mut set = MarkSet::with_capacity(ids.len());
        for id in ids {
            set.push(&Mark {
                user,
                kind,
                id,
                part: None,
                position_ms: Some(61_500),
                duration_ms: Some(1_440_000),
                sent_ms: Some(START.plus(at)),
                device: None,
                group: None,
                finished: false,
                event_id: Some("e"),
            });
        }
        self.history.write(set, 0, MarkPath::Live, Ack::Durable).await.unwrap();
    }

    async fn until(&self, done: impl Fn() -> bool) {
        while !done() {
            self.clock.advance(1000);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until_at_rest(&self) {
        let rests = |history: &History| {
            history.stats().iter().all(|(_, stats)| stats.dirty_users == 0 && stats.lag == 0)
        };
        self.until(|| rests(&self.history)).await;
    }

    /// Every value that the table holds of `user` now, but for the facts, which
    /// name no object and may be those of another.
    fn values(&self, user: &str) -> Vec<Vec<u8>> {
        let key = rows::partition_key(user);
        let rows = self.table.scan(TableName::History, &key, &[], None, false, usize::MAX);
        let own = rows.unwrap().into_iter().filter(|(sort_key, _)| sort_key[0] != 0);
        own.map(|(_, value)| value.to_vec()).collect()
    }

    fn erases_left(&self) -> usize {
        cold::erasing(&*self.table).unwrap().len()
    }
}

/// The objects of a user, of each form, that nobody else has.
fn ids(user: &str) -> Vec<String> {
    let n = GONE.iter().position(|gone| *gone == user).unwrap();
    vec![
        format!("881234567890123456{n}"),
        format!("5c1d0fad-d9cb-469f-a165-7786772895{n}e"),
        format!("the-secret-film-{n}"),
    ]
}

/// What a scan looks for.
struct Needles {
    /// As text: user and objects.
    texts: Vec<String>,
    /// As bytes: the user's key, without its first bytes, which neighbours in
    /// a block may share, and every value.
    packed: BTreeSet<Vec<u8>>,
}

impl Needles {
    fn of(user: &str) -> Self {
        let key = rows::partition_key(user);
        let texts = [ids(user), vec![user.to_owned()]].concat();
        Self { texts, packed: [key[2..].to_vec()].into() }
    }

    fn add(&mut self, values: Vec<Vec<u8>>) {
        assert!(values.iter().all(|value| value.len() > 32), "long enough to be nobody else's");
        self.packed.extend(values);
    }

    fn in_bytes(&self, bytes: &[u8]) -> Option<String> {
        let text = self.texts.iter().find(|text| memmem::find(bytes, text.as_bytes()).is_some());
        let packed = || self.packed.iter().find(|packed| memmem::find(bytes, packed).is_some());
        text.cloned().or_else(|| packed().map(|packed| format!("{packed:02x?}")))
    }
}

/// How many files hold a needle: as they are, in a block, in a record.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    raw: usize,
    blocks: usize,
    records: usize,
    /// The first few finds, for people.
    finds: Vec<String>,
}

fn scan(dir: &Path, needles: &Needles) -> Seen {
    let mut seen = Seen::default();
    for file in files(dir) {
        let Ok(bytes) = fs::read(&file) else { continue };
        let mut note = |count: &mut usize, what: &str, found: Option<String>| {
            if let Some(found) = found {
                *count += 1;
                seen.finds.push(format!("{what} {}: {found}", file.display()));
            }
        };
        note(&mut seen.raw, "raw", needles.in_bytes(&bytes));
        let in_block = blocks(&bytes).iter().find_map(|block| needles.in_bytes(block));
        note(&mut seen.blocks, "block", in_block);
        let in_record = records(&bytes).iter().find_map(|text| needles.in_bytes(text.as_bytes()));
        note(&mut seen.records, "record", in_record);
    }
    seen
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.append(&mut files(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

/// The blocks of a data file of the table, decompressed.
fn blocks(file: &[u8]) -> Vec<Vec<u8>> {
    let starts = memmem::find_iter(file, b"LSM\x03");
    let block = |at: usize| {
        let header = file.get(at..at + 33)?;
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let data = file.get(at + 33..at + 33 + number(21) as usize)?;
        lz4_flex::decompress(data, number(25) as usize).ok()
    };
    starts.filter_map(block).collect()
}

/// The records of every batch of the log in a file, unpacked and told as text.
fn records(file: &[u8]) -> Vec<String> {
    let batches = memmem::find_iter(file, b"\x01\xb7").filter_map(|at| {
        let batch = BatchRef::parse(&file[at..]).ok()?;
        Some(batch.records().map(|r| told(r.key, r.value)).collect::<Vec<_>>())
    });
    batches.flatten().collect()
}

fn told(key: &[u8], value: &[u8]) -> String {
    let user = String::from_utf8_lossy(key);
    OutcomeRef::decode(value).map_or(user.to_string(), |outcome| outcome.to_json(Some(&user)))
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_erase_no_file_holds_a_byte_of_the_user_raw_or_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::open(dir.path());
    let mut needles = GONE.map(Needles::of);
    for round in 0..3 {
        for n in 0..400 {
            let ids: Vec<_> = (0..3).map(|at| format!("{}", 10_000 + n * 7 + at)).collect();
            house.write(&format!("other-{n}"), &ids, round).await;
        }
        for (needles, user) in needles.iter_mut().zip(GONE) {
            house.write(user, &ids(user), round).await;
            house.until_at_rest().await;
            needles.add(house.values(user));
        }
        match round {
            // In segments and in compressed blocks.
            0 => {
                house.journal.fill().unwrap();
                house.table.purge(TableName::History).unwrap();
            }
            // In segments and in the table's journal, or wherever it is by now.
            1 => house.journal.fill().unwrap(),
            // In the log's journal and in the table's.
            _ => {}
        }
    }
    for (needles, user) in needles.iter().zip(GONE) {
        assert!(needles.packed.len() >= 3, "{user} has been at rest in three forms");
        let seen = scan(&house.dir, needles);
        let everywhere = seen.raw > 1 && seen.blocks > 0 && seen.records > 1;
        assert!(everywhere, "the scan sees {user} before the erase: {seen:?}");
    }

    for user in GONE {
        house.history.erase(&UserId::new(user).unwrap()).await.unwrap();
    }
    house.until_at_rest().await;
    assert_eq!(house.erases_left(), GONE.len());
    house.clock.advance(60_000);
    house.until(|| house.erases_left() == 0).await;
    // Forgotten in the table first, and then in its files: without any time a
    // stop would leave those to the next start.
    house.history.close(Duration::from_secs(10));
    for (needles, user) in needles.iter().zip(GONE) {
        assert_eq!(scan(&house.dir, needles), Seen::default(), "{user} is still there");
    }

    let House { dir, journal, table, history, .. } = house;
    drop((journal, table, history));
    let house = House::open(&dir);
    for user in GONE {
        let user = UserId::new(user).unwrap();
        assert_eq!(house.history.count(&user, Filter::default()).await, Ok(0));
    }
    let other = UserId::new("other-7").unwrap();
    assert_eq!(house.history.count(&other, Filter::default()).await, Ok(3));
    assert!(house.clock.now() >= START);
    house.history.close(Duration::ZERO);
}
