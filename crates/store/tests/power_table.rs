//! The rows of the default table after the power went, at any call of its
//! life: flushes and merges of the engine in it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use tideline_harness::image::{Mood, image, moments};
use tideline_harness::rng::Rng;
use tideline_harness::trail::{Event, Recorder, Trail};
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_store::{Commit, Op, Table, TableName};

const KEYS: u64 = 7;
const ROWS: u64 = 5;
const COMMITS: u64 = 900;
/// Says which folder the writer below works on.
const FOLDER: &str = "TIDELINE_TEST_FOLDER";

fn soak() -> bool {
    std::env::var_os("TIDELINE_SOAK").is_some()
}

fn open(folder: &Path) -> LsmTable {
    LsmTable::open(folder, &options()).expect("it opens")
}

/// Memtables so small that flushes and merges are many.
fn options() -> LsmOptions {
    LsmOptions { memtable_bytes: 32 << 10, ..LsmOptions::default() }
}

/// Change `number` of a key: row `number % ROWS` and the row that counts, in
/// one commit; now and then a delete instead.
fn commit(number: u64) -> Commit {
    let (key, turn) = (number % KEYS, number / KEYS);
    let mut value = number.to_le_bytes().to_vec();
    value.extend((0..600).map(|n| (number as u8).wrapping_mul(31).wrapping_add(n as u8)));
    let row = Bytes::from(vec![b'r', (turn % ROWS) as u8]);
    let change = match turn % 9 {
        8 => Op::Delete { sort_key: row },
        _ => Op::Put { sort_key: row, value: value.clone().into() },
    };
    let count = Op::Put { sort_key: Bytes::from_static(b"c"), value: value.into() };
    let partition_key = Bytes::from(vec![b'k', key as u8]);
    Commit { table: TableName::History, partition_key, ops: vec![change, count] }
}

/// What a key holds after its changes up to `number`.
fn state_after(number: u64) -> BTreeMap<Vec<u8>, u64> {
    let mut rows = BTreeMap::new();
    for number in (number % KEYS..=number).step_by(KEYS as usize) {
        for op in commit(number).ops {
            match op {
                Op::Put { sort_key, .. } => rows.insert(sort_key.to_vec(), number),
                Op::Delete { sort_key } => rows.remove(sort_key.as_ref()),
            };
        }
    }
    rows
}

#[test]
#[ignore = "run by the test below, recorded"]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let table = open(Path::new(&folder));
    for number in 0..COMMITS {
        table.commit(&[commit(number)]).expect("committed");
        if number % 13 == 0 {
            table.sync().expect("synced");
            println!("synced {number}");
            std::io::stdout().flush().expect("said");
        }
        // A purge pushes 64 MiB through the journal.
        if soak() && number % 400 == 399 {
            table.purge(TableName::History).expect("purged");
        }
    }
}

fn record(folder: &Path) -> Trail {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--ignored", "--exact", "writer", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).stdout(Stdio::piped());
    let (recorder, out, _) = Recorder::start(command, folder).expect("tracing is permitted");
    for line in BufReader::new(out.expect("piped")).lines() {
        if let Some((_, number)) = line.expect("text").split_once("synced ") {
            recorder.mark(number.parse().expect("a number"));
        }
    }
    let ended = recorder.wait().expect("traced to its end");
    assert!(ended.status.success(), "{}", ended.status);
    assert_eq!(ended.trail.surprises(), [""; 0]);
    ended.trail
}

/// What is wrong with what a folder holds, given that `synced` is safe.
fn verdict(folder: &Path, synced: Option<u64>) -> Result<(), String> {
    let table = LsmTable::open(folder, &options()).map_err(|e| format!("open: {e}"))?;
    table.verify().map_err(|e| format!("verify: {e}"))?;
    for key in 0..KEYS {
        let partition_key = [b'k', key as u8];
        let rows = table
            .scan(TableName::History, &partition_key, &[], None, false, 100)
            .map_err(|e| format!("scan: {e}"))?;
        let number = |value: &Bytes| u64::from_le_bytes(value[..8].try_into().expect("eight"));
        let held: BTreeMap<Vec<u8>, u64> =
            rows.iter().map(|(sort_key, value)| (sort_key.to_vec(), number(value))).collect();
        let least = synced.and_then(|synced| (0..=synced).rev().find(|n| n % KEYS == key));
        let Some(&last) = held.get(b"c".as_slice()) else {
            match least {
                None if held.is_empty() => continue,
                _ => return Err(format!("key {key} holds {held:?}, {least:?} was synced")),
            }
        };
        if least.is_some_and(|least| last < least) || held != state_after(last) {
            return Err(format!("key {key} holds {held:?}, {least:?} was synced"));
        }
    }
    Ok(())
}

#[test]
fn what_was_synced_is_there_after_a_power_cut_at_any_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let trail = record(&data);
    let mut rng = Rng::new(5);
    let all = image(&trail, trail.events().len(), Mood::Everything, &mut rng);
    assert_eq!(all.difference(&data).expect("read"), None);
    let count = if soak() { 300 } else { 30 };
    for at in moments(&trail, count, &mut rng) {
        let mood = Mood::draw(&mut rng);
        let copy = folder.path().join("copy");
        let _ = std::fs::remove_dir_all(&copy);
        std::fs::create_dir(&copy).expect("a folder");
        image(&trail, at, mood, &mut rng).write_into(&copy).expect("written");
        let marks = trail.events()[..at].iter().filter_map(|event| match event {
            Event::Mark(number) => Some(*number),
            _ => None,
        });
        if let Err(what) = verdict(&copy, marks.max()) {
            panic!("cut after event {at}, {mood:?}: {what}; kept in {:?}", folder.keep());
        }
    }
}
