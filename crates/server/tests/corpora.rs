//! Inputs that fuzzing once kept, read again by the decoders they are for.
//!
//! Each target of `fuzz/` has a folder of small inputs in `fuzz/corpus/`: what
//! it was seeded with, what reached code that nothing else reached, and what
//! once made a decoder panic.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use targets::TARGETS;

/// Bytes of a kept input, at most.
const INPUT_BYTES_MAX: usize = 1 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names in a folder of `fuzz/`, without their extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz().join(folder)).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| stem(entry.unwrap().path())).collect()
}

#[test]
fn every_kept_input_is_read_without_a_panic() {
    for (name, target) in TARGETS {
        let entries = fs::read_dir(fuzz().join("corpus").join(name));
        let mut files: Vec<_> = entries
            .unwrap_or_else(|_| panic!("target {name} has no corpus"))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for file in files {
            let bytes = fs::read(&file).unwrap();
            assert!(bytes.len() <= INPUT_BYTES_MAX, "{} is too large to keep", file.display());
            // Said at a panic, and only then.
            println!("{name} reads {}", file.display());
            target(&bytes);
        }
    }
}

#[test]
fn every_target_has_a_corpus_and_a_program_and_every_corpus_a_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("corpus"), targets);
    assert_eq!(names("fuzz_targets"), targets);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let programs: BTreeSet<_> =
        manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")).collect();
    let expected: Vec<_> = targets.iter().map(|name| format!("{name}.rs\"")).collect();
    assert_eq!(programs, expected.iter().map(String::as_str).collect());
}
