//! What a power cut may leave, held against the plain words of its rules.

use std::ffi::OsString;

use proptest::prelude::*;
use tideline_harness::image::{Mood, image};
use tideline_harness::rng::Rng;
use tideline_harness::trail::{Entry, Event, ROOT, Trail};

const FILE: u32 = 1;

fn entry(name: &str) -> Entry {
    Entry { folder: ROOT, name: OsString::from(name) }
}

fn make(trail: &mut Trail, name: &str, node: u32) {
    trail.push(Event::Make { at: entry(name), node, folder: false });
}

/// All images of a trail that a few hundred draws find.
fn images(trail: &Trail) -> Vec<tideline_harness::image::Image> {
    let mut rng = Rng::new(3);
    (0..300)
        .map(|_| {
            let mood = Mood::draw(&mut rng);
            image(trail, trail.events().len(), mood, &mut rng)
        })
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, usize, u8),
    Length(u64),
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..3_000, 1usize..1_500, 1u8..=255).prop_map(|(at, len, fill)| Step::Write(at, len, fill)),
        1 => (0u64..4_000).prop_map(Step::Length),
        1 => Just(Step::Sync),
    ]
}

proptest! {
    /// Each byte is one that it has been since the last sync (or the zero of
    /// a block that was never written back), and the length lies between the
    /// shortest and the longest since then.
    #[test]
    fn nothing_is_in_a_file_that_it_never_held(
        steps in prop::collection::vec(step(), 1..12),
        seed in any::<u64>(),
    ) {
        let mut trail = Trail::default();
        make(&mut trail, "f", FILE);
        trail.sync(ROOT);
        trail.begin();
        let mut plain: Vec<u8> = Vec::new();
        let mut states = vec![plain.clone()];
        for step in steps {
            match step {
                Step::Write(at, len, fill) => {
                    trail.write(FILE, at, &vec![fill; len]);
                    let end = at as usize + len;
                    plain.resize(plain.len().max(end), 0);
                    plain[at as usize..end].fill(fill);
                }
                Step::Length(len) => {
                    trail.push(Event::Length { node: FILE, len });
                    plain.resize(len as usize, 0);
                }
                Step::Sync => {
                    trail.sync(FILE);
                    states.clear();
                }
            }
            states.push(plain.clone());
        }
        let mut rng = Rng::new(seed);
        for _ in 0..30 {
            let mood = Mood::draw(&mut rng);
            let image = image(&trail, trail.events().len(), mood, &mut rng);
            let bytes = image.file("f").expect("its entry was synced").to_vec();
            let shortest = states.iter().map(Vec::len).min().unwrap_or(0);
            let longest = states.iter().map(Vec::len).max().unwrap_or(0);
            prop_assert!((shortest..=longest).contains(&bytes.len()));
            for (at, byte) in bytes.iter().enumerate() {
                let had = states.iter().any(|state| state.get(at) == Some(byte));
                let never_written = *byte == 0 && states.iter().any(|state| state.len() <= at);
                prop_assert!(had || never_written, "byte {at} is {byte}");
            }
        }
    }
}

#[test]
fn what_is_synced_is_in_every_image() {
    let mut trail = Trail::default();
    make(&mut trail, "f", FILE);
    trail.write(FILE, 0, &[7; 2_000]);
    trail.sync(FILE);
    trail.sync(ROOT);
    for image in images(&trail) {
        assert_eq!(image.file("f").expect("synced").to_vec(), [7; 2_000]);
    }
}

#[test]
fn what_is_written_during_a_sync_may_be_lost() {
    let mut trail = Trail::default();
    make(&mut trail, "f", FILE);
    trail.sync(ROOT);
    let call = trail.sync_begin(FILE);
    trail.write(FILE, 0, &[7; 10]);
    trail.push(Event::SyncEnd { call });
    let lengths: Vec<u64> =
        images(&trail).iter().map(|i| i.file("f").expect("there").len()).collect();
    assert!(lengths.contains(&0) && lengths.contains(&10));
}

#[test]
fn a_rename_is_one_step_and_a_name_never_stands_for_nothing() {
    let mut trail = Trail::default();
    make(&mut trail, "f", FILE);
    trail.write(FILE, 0, b"old");
    trail.sync(FILE);
    trail.sync(ROOT);
    make(&mut trail, "new", 2);
    trail.write(2, 0, b"new");
    trail.sync(2);
    trail.push(Event::Move { from: entry("new"), to: entry("f") });
    let mut seen = std::collections::BTreeSet::new();
    for image in images(&trail) {
        seen.insert((image.file("f").expect("either").to_vec(), image.file("new").is_some()));
    }
    let old = |there| (b"old".to_vec(), there);
    assert_eq!(seen, [(b"new".to_vec(), false), old(false), old(true)].into());
}

#[test]
fn torn_writes_and_every_order_of_two_files_are_found() {
    let mut trail = Trail::default();
    make(&mut trail, "a", 1);
    make(&mut trail, "b", 2);
    trail.write(2, 0, &[0; 10]);
    trail.sync(2);
    trail.sync(ROOT);
    trail.write(1, 0, &[1; 1_024]);
    trail.write(2, 0, &[1; 10]);
    let mut seen = std::collections::BTreeSet::new();
    for image in images(&trail) {
        let a = image.file("a").expect("synced").to_vec();
        let sector = |range: std::ops::Range<usize>| match a.get(range) {
            Some(bytes) if bytes.iter().all(|&b| b == 1) => 'x',
            Some(_) => '0',
            None => '-',
        };
        let b = image.file("b").expect("synced").to_vec()[0];
        seen.insert((sector(0..512), sector(512..1_024), b));
    }
    for wanted in [('-', '-', 0), ('-', '-', 1), ('x', 'x', 0), ('0', 'x', 1), ('x', '0', 0)] {
        assert!(seen.contains(&wanted), "{wanted:?} in {seen:?}");
    }
}

#[test]
fn a_folder_whose_making_was_not_synced_may_be_lost_with_all_that_is_in_it() {
    let mut trail = Trail::default();
    trail.push(Event::Make { at: entry("d"), node: 1, folder: true });
    let inner = Entry { folder: 1, name: OsString::from("f") };
    trail.push(Event::Make { at: inner, node: 2, folder: false });
    trail.sync(2);
    trail.sync(1);
    let images = images(&trail);
    assert!(images.iter().any(|image| image.entries().is_empty()));
    assert!(images.iter().any(|image| image.file("d/f").is_some()));
    assert!(images.iter().all(|i| i.entries().is_empty() || i.file("d/f").is_some()));
}
