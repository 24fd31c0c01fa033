//! A life of a journal, step by step on one thread, with a ledger of what it
//! was told: what a crash may and may not have left is read off the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tideline_record::batch::{BatchBuilder, BatchRef};
use tideline_store::disk::{Crash, FaultyDisk, Kept};
use tideline_store::laws::Heard;
use tideline_store::local::{JournalOptions, LocalJournal, verify_journal};
use tideline_store::{Journal, ReadLimits};
use tideline_types::{Epoch, Incarnation, Millis, PartitionId, Seq, SeqRange, StreamId};

pub(crate) const ALL: ReadLimits = ReadLimits { records_max: usize::MAX, bytes_max: usize::MAX };
pub(crate) const STEPS: u64 = 40;

pub(crate) fn dir() -> &'static Path {
    Path::new("/data/log")
}

pub(crate) fn options() -> JournalOptions {
    JournalOptions { file_bytes: 1_500, threads: false, ..JournalOptions::default() }
}

pub(crate) fn open(disk: &FaultyDisk) -> Result<LocalJournal, tideline_store::StoreError> {
    LocalJournal::open_on(Arc::new(disk.clone()), dir(), options())
}

pub(crate) fn stream(partition: u16) -> StreamId {
    StreamId { incarnation: Incarnation(3), partition: PartitionId(partition) }
}

/// Numbers from a seed, the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// A disk keeps any of what was not synced, and any part of each write.
impl Crash for Dice {
    fn write(&mut self, _: &Path, _: u64, len: usize) -> Kept {
        match self.roll(4) {
            0 => Kept::Nothing,
            1 => Kept::All,
            2 => Kept::Prefix(self.roll(len as u64 + 1) as usize),
            _ => Kept::Suffix(self.roll(len as u64 + 1) as usize),
        }
    }

    fn entry(&mut self, _: &Path) -> bool {
        self.roll(2) == 0
    }
}

/// What one stream was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Every value that was appended under a number; the last is the present one.
    appended: BTreeMap<Seq, Vec<String>>,
    synced: Seq,
    /// The start that a trim answered, and the one that the last trim asked for.
    start: Seq,
    start_asked: Seq,
    erased: BTreeSet<Seq>,
    erase_asked: BTreeSet<Seq>,
    epoch: Epoch,
    removed: bool,
    remove_asked: bool,
}

/// What all streams were told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(BTreeMap<StreamId, Told>);

impl Ledger {
    /// The last number that `id` was told as synced.
    pub(crate) fn synced(&self, id: StreamId) -> Seq {
        self.0[&id].synced
    }
}

fn value(id: StreamId, epoch: Epoch, seq: Seq) -> String {
    format!("<{}:{epoch}:{seq}>", id.partition)
}

/// Runs the script until it ends or the disk fails.
pub(crate) fn run(disk: &FaultyDisk, ledger: &mut Ledger, seed: u64) -> Option<()> {
    let journal = open(disk).ok()?;
    let life = Life { journal: &journal, ledger, dice: Dice(seed), heard: BTreeMap::new() };
    life.run()
}

struct Life<'a> {
    journal: &'a LocalJournal,
    ledger: &'a mut Ledger,
    dice: Dice,
    heard: BTreeMap<StreamId, Heard>,
}

impl Life<'_> {
    fn told(&mut self, id: StreamId) -> &mut Told {
        self.ledger.0.get_mut(&id).unwrap()
    }

    fn run(mut self) -> Option<()> {
        let streams = [0, 1, 2].map(stream);
        self.journal.create(&streams).ok()?;
        for id in streams {
            self.ledger.0.entry(id).or_default();
            self.fence(id)?;
        }
        for step in 0..STEPS {
            for _ in 0..1 + self.dice.roll(4) {
                let id = stream(self.dice.roll(3) as u16);
                let count = 1 + self.dice.roll(3);
                self.append(id, count)?;
            }
            self.journal.turn();
            self.hear();
            self.journal.health().ok()?;
            match step % 10 {
                2 => drop(self.journal.mark()),
                3 => self.trim(stream(0))?,
                5 => self.journal.fill().ok()?,
                6 => self.erase(stream(1))?,
                7 => self.fence(stream(1))?,
                8 if step > 20 => self.remove(stream(2))?,
                _ => {}
            }
        }
        self.journal.close().ok()
    }

    fn hear(&mut self) {
        for (id, heard) in &self.heard {
            let told = self.ledger.0.get_mut(id).unwrap();
            told.synced = told.synced.max(heard.synced());
        }
    }

    fn fence(&mut self, id: StreamId) -> Option<()> {
        if self.told(id).removed {
            return Some(());
        }
        let heard = Heard::default();
        let bounds = self.journal.fence(id, Arc::new(heard.clone()));
        self.hear();
        let bounds = bounds.ok()?;
        self.heard.insert(id, heard);
        let told = self.told(id);
        assert!(bounds.epoch > told.epoch, "a fence raises the epoch");
        told.epoch = bounds.epoch;
        told.synced = bounds.synced;
        Some(())
    }

    fn append(&mut self, id: StreamId, count: u64) -> Option<()> {
        if self.told(id).removed {
            return Some(());
        }
        let bounds = self.journal.bounds(id)?;
        let mut batch = BatchBuilder::new(id, bounds.epoch, bounds.next);
        for n in 0..count {
            let seq = bounds.next.plus(n);
            let text = value(id, bounds.epoch, seq);
            batch.push(Millis(7), b"k", text.as_bytes());
            self.told(id).appended.entry(seq).or_default().push(text);
        }
        self.journal.append(id, batch.finish()).ok()
    }

    fn trim(&mut self, id: StreamId) -> Option<()> {
        let through = Seq(self.told(id).synced.0 * 2 / 3);
        self.told(id).start_asked = through.next().max(self.told(id).start_asked);
        let start = self.journal.trim(id, through).ok()?;
        self.told(id).start = start;
        Some(())
    }

    fn erase(&mut self, id: StreamId) -> Option<()> {
        let synced = self.told(id).synced;
        let chosen: BTreeSet<Seq> = (1..=synced.0).filter(|n| n % 4 == 1).map(Seq).collect();
        self.told(id).erase_asked.extend(&chosen);
        let range = SeqRange::new(Seq(0), synced);
        self.journal.erase(id, range, &mut |seq, _, _| chosen.contains(&seq)).ok()?;
        self.told(id).erased.extend(&chosen);
        Some(())
    }

    fn remove(&mut self, id: StreamId) -> Option<()> {
        self.told(id).remove_asked = true;
        self.journal.remove(&[id]).ok()?;
        self.told(id).removed = true;
        self.heard.remove(&id);
        Some(())
    }
}

/// Opens what a crash has left, and holds it against the ledger. The ledger
/// then says what was found, so that another life may begin.
pub(crate) fn recover(disk: &FaultyDisk, ledger: &mut Ledger, case: &str) {
    let journal = open(disk).unwrap_or_else(|e| panic!("{case}: {e}"));
    for (id, told) in &mut ledger.0 {
        let Some(bounds) = journal.bounds(*id) else {
            let may_be_gone = told.remove_asked || told.epoch == Epoch(0);
            assert!(may_be_gone, "{case}: {id} is gone");
            continue;
        };
        assert!(!told.removed, "{case}: {id} is back");
        let appended = told.appended.keys().last().copied().unwrap_or_default();
        let say = format!("{case}: {id} {bounds:?} {told:?}");
        assert!(bounds.synced >= told.synced && bounds.synced <= appended, "{say}");
        assert!(bounds.start >= told.start, "{say}");
        assert!(bounds.start <= told.start_asked.max(Seq(1)), "{say}");
        assert!(bounds.epoch >= told.epoch, "{say}");
        assert!(bounds.next == bounds.synced.next(), "{say}");
        let mut next = bounds.start;
        for batch in journal.read(*id, bounds.start, ALL).unwrap_or_else(|e| panic!("{say}: {e}")) {
            for record in BatchRef::parse(&batch).unwrap().records() {
                assert_eq!(record.seq, next, "{say}");
                next = next.next();
                let appended = told.appended[&record.seq].last().unwrap();
                if record.erased {
                    assert!(told.erase_asked.contains(&record.seq), "{say}: {}", record.seq);
                } else {
                    assert_eq!(record.value, appended.as_bytes(), "{say}");
                    assert!(!told.erased.contains(&record.seq), "{say}: {} is back", record.seq);
                }
            }
        }
        assert_eq!(next, bounds.next, "{say}");
        // What was found is what is there from now on.
        told.appended.retain(|seq, _| *seq <= bounds.synced);
        (told.synced, told.start, told.epoch) = (bounds.synced, bounds.start, bounds.epoch);
    }
    drop(journal);
    assert_no_erased_byte(disk, ledger, case);
    let verified = verify_journal(disk, dir()).unwrap();
    assert_eq!((verified.findings, verified.torn), (vec![], None), "{case}");
}

/// No file holds a value that an erase has answered for.
fn assert_no_erased_byte(disk: &FaultyDisk, ledger: &Ledger, case: &str) {
    let files: Vec<(PathBuf, Vec<u8>)> = disk.files();
    for (id, told) in &ledger.0 {
        for seq in &told.erased {
            for text in told.appended.get(seq).into_iter().flatten() {
                for (path, bytes) in &files {
                    let found = bytes.windows(text.len()).any(|w| w == text.as_bytes());
                    assert!(!found, "{case}: {id} {seq} is still in {}", path.display());
                }
            }
        }
    }
}
