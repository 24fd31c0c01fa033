//! The end of the engine's journal: how far it is synced, and what a power
//! loss left behind it.
//!
//! Power loss may tear what was not synced anywhere. The engine cuts its
//! journal where it finds no entry, but refuses to open where it finds a batch
//! whose bytes are half there; and it takes damage in the synced part for a
//! torn end. So, before it opens:
//!
//! - a bad batch behind the synced part is the torn end: it is cut off, with
//!   all that follows;
//! - a bad batch within the synced part, or in a journal that was sealed, is
//!   damage, and named.
//!
//! How far the journal is synced stands in the file `synced`, written after
//! each sync and never synced itself: it may say too little, never too much.
//!
//! A journal is batches, one after the other, then zeroes:
//!
//! ```text
//! batch  1 u8 | entries u32 | sequence u64 | entry… | 3 u8 | xxh3 of the entries u64 | "FJL" 3
//! entry  2 u8 | value type u8 | compression u8 | keyspace u64
//!        | key length u16 | value length u32 | length on disk u32 | key | value
//! or     4 u8 | keyspace u64
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tideline_types::limits::TABLE_VALUE_BYTES_MAX;
use xxhash_rust::xxh3::Xxh3;

use super::table_files as files;
use crate::StoreError;

const SYNCED: &str = "synced";
const VERSION: &str = "version";
const VERSION_BYTES: u64 = 4;

/// How far a journal is known to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Synced {
    journal: u64,
    offset: u64,
}

impl Synced {
    fn encode(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.journal.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..16]);
        bytes[16..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (journal, rest) = bytes.split_first_chunk()?;
        let (offset, sum) = rest.split_first_chunk()?;
        let synced =
            Self { journal: u64::from_le_bytes(*journal), offset: u64::from_le_bytes(*offset) };
        (synced.encode()[16..] == *sum).then_some(synced)
    }
}

/// Reads the batch that begins where `from` stands; its length, or none if
/// there is no whole batch. `bytes` is a buffer to use again.
fn batch(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<u64>> {
    match whole_batch(from, bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read,
    }
}

fn whole_batch(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let mut start = [0; 13];
    from.read_exact(&mut start)?;
    let [1, a, b, c, d, ..] = start else { return Ok(None) };
    let mut hash = Xxh3::new();
    let mut length = start.len() as u64;
    for _ in 0..u32::from_le_bytes([a, b, c, d]) {
        let mut head = [0; 21];
        from.read_exact(&mut head[..9])?;
        let head_bytes = match head[0] {
            4 => 9,
            2 => {
                from.read_exact(&mut head[9..])?;
                21
            }
            _ => return Ok(None),
        };
        bytes.clear();
        if head_bytes == 21 {
            let key = u64::from(u16::from_le_bytes([head[11], head[12]]));
            let value = u32::from_le_bytes([head[17], head[18], head[19], head[20]]);
            if value as usize > 2 * TABLE_VALUE_BYTES_MAX {
                return Ok(None);
            }
            let body = key + u64::from(value);
            if from.by_ref().take(body).read_to_end(bytes)? as u64 != body {
                return Ok(None);
            }
        }
        hash.update(&head[..head_bytes]);
        hash.update(bytes);
        length += head_bytes as u64 + bytes.len() as u64;
    }
    let mut end = [0; 13];
    from.read_exact(&mut end)?;
    let sound = end[0] == 3
        && end[1..9] == hash.digest().to_le_bytes()
        && end[9..] == [b'F', b'J', b'L', 3];
    Ok(sound.then_some(length + end.len() as u64))
}

/// Where the whole batches that `file` begins with end, from `offset` on,
/// where one begins.
fn end_of_batches(file: &File, mut offset: u64) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(64 << 10, file);
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    while let Some(length) = batch(&mut file, &mut bytes)? {
        offset += length;
    }
    Ok(offset)
}

fn only_zeroes_from(file: &File, offset: u64) -> io::Result<bool> {
    let mut file = BufReader::with_capacity(64 << 10, file);
    file.seek(SeekFrom::Start(offset))?;
    let (mut bytes, zeroes) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(true),
            n if bytes[..n] != zeroes[..n] => return Ok(false),
            _ => {}
        }
    }
}

/// The journals directly in `dir` with their numbers, in order.
fn journals(dir: &Path) -> Vec<(u64, PathBuf)> {
    let number = |file: PathBuf| Some((file.file_stem()?.to_str()?.parse().ok()?, file));
    let mut found: Vec<_> = files::journals(dir).into_iter().filter_map(number).collect();
    found.sort();
    found
}

/// Makes the folder one that the engine can open, or says what is damaged.
/// Nobody else has it open.
pub(super) fn prepare(dir: &Path) -> Result<(), StoreError> {
    let fact = |error: io::Error| StoreError::io(format!("prepare {}", dir.display()), &error);
    let version = fs::metadata(dir.join(VERSION)).map_or(0, |version| version.len());
    if version < VERSION_BYTES {
        return forget_half_made(dir).map_err(fact);
    }
    let synced = fs::read(dir.join(SYNCED)).ok().and_then(|bytes| Synced::decode(&bytes));
    let journals = journals(dir);
    for (place, (number, path)) in journals.iter().enumerate() {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(fact)?;
        let end = end_of_batches(&file, 0).map_err(fact)?;
        let sealed = place + 1 < journals.len();
        let due = synced.filter(|synced| synced.journal == *number).map_or(0, |s| s.offset);
        let clean = only_zeroes_from(&file, end).map_err(fact)?;
        if end < due || (sealed && !clean) {
            let what = "a batch of the journal is not as it was written".into();
            return Err(StoreError::Damaged { file: path.clone(), offset: end, what });
        }
        if !clean {
            file.set_len(end).and_then(|()| file.sync_all()).map_err(fact)?;
        }
    }
    Ok(())
}

/// Removes what is left of a folder whose making was cut short: the engine
/// writes its version last, and no row before it.
fn forget_half_made(dir: &Path) -> io::Result<()> {
    let mine = journals(dir).into_iter().map(|(_, path)| path).chain([dir.join(VERSION)]);
    for file in mine.filter(|file| file.exists()) {
        fs::remove_file(file)?;
    }
    match fs::remove_dir_all(dir.join("keyspaces")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Keeps note of how far the journal is synced.
#[derive(Debug)]
pub(super) struct Tail {
    dir: PathBuf,
    note: File,
    journal: Option<(u64, File)>,
    end: u64,
}

impl Tail {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let note = options.create(true).truncate(false).write(true).open(dir.join(SYNCED))?;
        Ok(Self { dir: dir.to_path_buf(), note, journal: None, end: 0 })
    }

    /// Looks how far whole batches are written; to be called before a sync.
    /// A journal that was sealed since was synced when it was.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let Some((number, path)) = journals(&self.dir).pop() else { return Ok(()) };
        if self.journal.as_ref().is_none_or(|(known, _)| *known != number) {
            self.journal = Some((number, File::open(path)?));
            self.end = 0;
        }
        if let Some((_, file)) = &self.journal {
            self.end = end_of_batches(file, self.end)?;
        }
        Ok(())
    }

    /// Notes what `look` saw; to be called after a sync that began after it.
    pub(super) fn synced(&self) -> io::Result<()> {
        match &self.journal {
            Some((journal, _)) => {
                let synced = Synced { journal: *journal, offset: self.end };
                self.note.write_all_at(&synced.encode(), 0)
            }
            None => Ok(()),
        }
    }
}

/// Reads any bytes as a note and as batches; for fuzzing.
pub(super) fn fuzz(mut bytes: &[u8]) {
    let _ = Synced::decode(bytes);
    while let Ok(Some(_)) = batch(&mut bytes, &mut Vec::new()) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Synced::decode(&bytes);
            let mut start = vec![1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
            start.extend(bytes);
            prop_assert_eq!(batch(&mut start.as_slice(), &mut Vec::new()).unwrap(), None);
        }

        #[test]
        fn a_note_reads_back(journal in any::<u64>(), offset in any::<u64>()) {
            let synced = Synced { journal, offset };
            prop_assert_eq!(Synced::decode(&synced.encode()), Some(synced));
        }
    }
}
