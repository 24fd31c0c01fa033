//! The recorder and the power cuts, tried on a program that is known to be
//! right or wrong.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tideline_harness::image::{Image, Mood, image, moments};
use tideline_harness::rng::Rng;
use tideline_harness::trail::{Ended, Event, Recorder, Trail};

const RECORD: usize = 700;

/// Records a run of the scribe; each number that it says is marked.
fn record(mode: &str, count: u64, folder: &Path) -> Trail {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribe"));
    command.arg(mode).arg(folder).arg(count.to_string()).stdout(Stdio::piped());
    let (recorder, out, _) = Recorder::start(command, folder).expect("tracing is permitted");
    for line in BufReader::new(out.expect("it was piped")).lines() {
        recorder.mark(line.expect("text").parse().expect("a number"));
    }
    let Ended { status, trail } = recorder.wait().expect("it was traced to its end");
    assert!(status.success(), "{mode}: {status}");
    assert_eq!(trail.surprises(), [""; 0], "{mode}");
    trail
}

fn said(trail: &Trail, at: usize) -> u64 {
    let marks = trail.events()[..at].iter();
    marks.filter(|event| matches!(event, Event::Mark(_))).count() as u64
}

/// How many numbers an image holds: those in order at the front of the log,
/// or all up to the state's.
fn kept(image: &Image) -> u64 {
    let whole = |bytes: &[u8]| {
        let number = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        bytes[8..].iter().all(|&byte| byte == number as u8 ^ 0x5a).then_some(number)
    };
    if let Some(state) = image.file("state") {
        let bytes = state.to_vec();
        return if bytes.len() == RECORD { whole(&bytes).map_or(0, |n| n + 1) } else { 0 };
    }
    let bytes = image.file("log").map(tideline_harness::image::Content::to_vec).unwrap_or_default();
    let records = bytes.chunks_exact(RECORD).map(whole);
    records.enumerate().take_while(|&(index, number)| number == Some(index as u64)).count() as u64
}

/// How many of 400 images lost a number that had been said.
fn losses(mode: &str) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let trail = record(mode, 40, folder.path());
    let mut rng = Rng::new(1);
    moments(&trail, 400, &mut rng)
        .into_iter()
        .filter(|&at| {
            let mood = Mood::draw(&mut rng);
            kept(&image(&trail, at, mood, &mut rng)) < said(&trail, at)
        })
        .count()
}

#[test]
fn everything_applied_is_the_folder_byte_for_byte() {
    for mode in ["append", "replace", "grouped", "churn"] {
        let folder = tempfile::tempdir().expect("a folder");
        let trail = record(mode, 25, folder.path());
        let all = image(&trail, trail.events().len(), Mood::Everything, &mut Rng::new(0));
        assert_eq!(all.difference(folder.path()).expect("it can be read"), None, "{mode}");

        // The same after what is there was there before.
        let trail = record(mode, 7, folder.path());
        let all = image(&trail, trail.events().len(), Mood::Everything, &mut Rng::new(0));
        assert_eq!(all.difference(folder.path()).expect("it can be read"), None, "{mode}, again");
        let other = tempfile::tempdir().expect("a folder");
        all.write_into(other.path()).expect("it can be written");
        assert_eq!(all.difference(other.path()).expect("it can be read"), None, "{mode}, copied");
    }
}

#[test]
fn a_right_program_loses_nothing_that_it_said() {
    for mode in ["append", "replace", "grouped"] {
        assert_eq!(losses(mode), 0, "{mode}");
    }
}

#[test]
fn a_wrong_program_is_found() {
    for mode in [
        "append-says-before-sync",
        "append-forgets-folder",
        "replace-forgets-file",
        "replace-forgets-folder",
        "grouped-says-late-writes",
    ] {
        assert_ne!(losses(mode), 0, "{mode}");
    }
}

#[test]
fn the_same_numbers_give_the_same_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let trail = record("churn", 10, folder.path());
    let all = trail.events().len();
    for seed in 0..20 {
        let once = image(&trail, all, Mood::Scattered(500), &mut Rng::new(seed));
        assert_eq!(once, image(&trail, all, Mood::Scattered(500), &mut Rng::new(seed)));
    }
}
