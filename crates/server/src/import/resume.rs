//! Where an interrupted import goes on: a small file beside the imported one.
//!
//! It is believed only if the same command reads the same file: same options,
//! same server, and a file whose beginning has not changed and that still
//! reaches as far. Everything before `offset` was answered by the server.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::tally::Tally;

/// How much of a file's beginning tells it from another.
const HEAD_BYTES: u64 = 4096;

/// How far an import got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// 1.
    pub version: u32,
    /// What was asked, as text: another command starts over.
    pub command: String,
    /// SHA-256 of the first bytes of the file, at most `offset` of them.
    pub head: String,
    /// Read and answered up to here.
    pub offset: u64,
    /// The line that starts at `offset`.
    pub line: u64,
    /// The counts so far.
    pub tally: Tally,
}

impl Place {
    /// The place `offset` of the file at `path`.
    pub(super) fn new(
        path: &Path,
        command: &str,
        offset: u64,
        line: u64,
        tally: Tally,
    ) -> io::Result<Self> {
        let head = head_of(path, offset)?;
        Ok(Self { version: 1, command: command.into(), head, offset, line, tally })
    }

    /// The place kept beside `path`, if it is one of this command and file.
    pub(super) fn find(path: &Path, command: &str) -> Option<Self> {
        let place: Self = serde_json::from_slice(&fs::read(beside(path)).ok()?).ok()?;
        let long_enough = fs::metadata(path).ok()?.len() >= place.offset;
        let same = place.version == 1
            && place.command == command
            && long_enough
            && head_of(path, place.offset).ok()? == place.head;
        same.then_some(place)
    }

    /// Keeps the place beside `path`, whole or not at all.
    pub(super) fn keep(&self, path: &Path) -> io::Result<()> {
        let (target, fresh) = (beside(path), beside(path).with_extension("tideline-import.new"));
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()?;
        fs::rename(fresh, target)
    }

    /// Removes what is kept beside `path`.
    pub(super) fn forget(path: &Path) {
        let _ = fs::remove_file(beside(path));
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tideline-import");
    name.into()
}

fn head_of(path: &Path, offset: u64) -> io::Result<String> {
    let mut head = Vec::new();
    File::open(path)?.take(offset.min(HEAD_BYTES)).read_to_end(&mut head)?;
    Ok(Sha256::digest(&head).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_again_only_by_the_same_command_on_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        fs::write(&path, "id,user\n1,a\n2,b\n").unwrap();
        let place = Place::new(&path, "csv", 12, 3, Tally::default()).unwrap();
        place.keep(&path).unwrap();
        assert_eq!(Place::find(&path, "csv"), Some(place.clone()));
        assert_eq!(Place::find(&path, "netflix"), None);
        // A file that grew is the same file.
        fs::write(&path, "id,user\n1,a\n2,b\n3,c\n").unwrap();
        assert_eq!(Place::find(&path, "csv"), Some(place));
        fs::write(&path, "id,user\n9,a\n2,b\n").unwrap();
        assert_eq!(Place::find(&path, "csv"), None);
        fs::write(&path, "id,user\n1,a").unwrap();
        assert_eq!(Place::find(&path, "csv"), None);
        Place::forget(&path);
        assert!(!dir.path().join("a.csv.tideline-import").exists());
    }
}
