//! A disk in memory that fails when it is told to, and forgets what a real one
//! may forget.
//!
//! Every file has what survives power loss and what was done to it since;
//! every folder likewise. [`FaultyDisk::crash`] makes the disk that a restart
//! finds: the caller decides, change by change, what of the unsynced was kept.
//! Draws no random number and reads no clock: the same calls with the same
//! decisions give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile};

/// A disk in memory. Cheap to clone; clones are the same disk.
#[derive(Clone, Default)]
pub struct FaultyDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    inodes: Vec<Inode>,
    live: BTreeMap<PathBuf, usize>,
    durable: BTreeMap<PathBuf, usize>,
    /// Folders are durable at once: what is in them is what gets lost.
    folders: BTreeSet<PathBuf>,
    unsynced: Vec<Entry>,
    faults: Option<Box<dyn Faults>>,
    operations: u64,
    power_until: Option<u64>,
    space: Option<u64>,
    bytes_read: u64,
}

#[derive(Clone, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

#[derive(Clone)]
enum Entry {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

impl Entry {
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Link(path, _) | Self::Unlink(path) | Self::Rename(_, path, _) => path.parent(),
        }
    }

    fn apply(self, entries: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Link(path, inode) => drop(entries.insert(path, inode)),
            Self::Unlink(path) => drop(entries.remove(&path)),
            Self::Rename(from, to, inode) => {
                if entries.get(&from) == Some(&inode) {
                    entries.remove(&from);
                }
                entries.insert(to, inode);
            }
        }
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>, kept: Kept) {
        match self {
            Self::Len(len) if kept != Kept::Nothing => to.resize(*len as usize, 0),
            Self::Len(_) => {}
            Self::Write(offset, bytes) => {
                let (from, until) = match kept {
                    Kept::Nothing => return,
                    Kept::All => (0, bytes.len()),
                    Kept::Prefix(n) => (0, n.min(bytes.len())),
                    Kept::Suffix(n) => (n.min(bytes.len()), bytes.len()),
                };
                if from == until {
                    return;
                }
                let (at, end) = (*offset as usize + from, *offset as usize + until);
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[at..end].copy_from_slice(&bytes[from..until]);
            }
        }
    }
}

/// What a call wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Opening an existing file is none; making one is.
    Create,
    /// Writing bytes.
    Write,
    /// Reading bytes.
    Read,
    /// Cutting or extending.
    SetLen,
    /// `sync` of a file.
    Sync,
    /// `sync_dir`.
    SyncDir,
    /// Renaming.
    Rename,
    /// Removing a file.
    Remove,
}

/// One call, before it happens.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Its number on this disk, from 0; reads have none of their own.
    pub number: u64,
    /// What it wants to do.
    pub kind: OpKind,
    /// On which file or folder.
    pub path: &'a Path,
    /// From which byte.
    pub offset: u64,
    /// How many bytes.
    pub len: usize,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// With this error, and nothing is done.
    Error(ErrorKind),
    /// A write: this many bytes are written first, then this error.
    Torn(usize, ErrorKind),
    /// A sync: what was unsynced can still be read, and no later sync saves it.
    SyncLost,
}

/// Decides which calls fail.
pub trait Faults: Send {
    /// The fault of this call, if any.
    fn fault(&mut self, operation: &Operation<'_>) -> Option<Fault>;
}

impl<F: FnMut(&Operation<'_>) -> Option<Fault> + Send> Faults for F {
    fn fault(&mut self, operation: &Operation<'_>) -> Option<Fault> {
        self(operation)
    }
}

/// What is left of an unsynced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    Nothing,
    /// All of it.
    All,
    /// Its first bytes.
    Prefix(usize),
    /// All but its first bytes.
    Suffix(usize),
}

/// Decides what a crash keeps of what was not synced, in order.
pub trait Crash {
    /// Of a write (`len` bytes at `offset`) or a change of length (`len` 0).
    fn write(&mut self, path: &Path, offset: u64, len: usize) -> Kept;
    /// Whether a created, removed or renamed entry is so after the crash.
    fn entry(&mut self, path: &Path) -> bool;
}

/// A crash of the process alone: everything is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAll;

impl Crash for KeepAll {
    fn write(&mut self, _: &Path, _: u64, _: usize) -> Kept {
        Kept::All
    }
    fn entry(&mut self, _: &Path) -> bool {
        true
    }
}

/// Power loss at its worst: nothing unsynced is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoseAll;

impl Crash for LoseAll {
    fn write(&mut self, _: &Path, _: u64, _: usize) -> Kept {
        Kept::Nothing
    }
    fn entry(&mut self, _: &Path) -> bool {
        false
    }
}

impl FaultyDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks `faults` before each call from now on.
    pub fn set_faults(&self, faults: Option<Box<dyn Faults>>) {
        self.inner().faults = faults;
    }

    /// Bytes that all files together may hold; `None` for no bound.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.inner().space = bytes;
    }

    /// Power goes with the changing call of this number: it fails, may have
    /// been done as far as [`Crash`] says, and every later call fails.
    pub fn cut_power_at(&self, operation: u64) {
        self.inner().power_until = Some(operation);
    }

    /// Changing calls so far.
    pub fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.inner().bytes_read
    }

    /// Flips one bit for good. False if the file does not reach that far.
    pub fn flip(&self, path: &Path, offset: u64, bit: u8) -> bool {
        let mut inner = self.inner();
        let Some(&inode) = inner.live.get(path) else { return false };
        let (inode, at) = (&mut inner.inodes[inode], offset as usize);
        let Some(byte) = inode.live.get_mut(at) else { return false };
        *byte ^= 1 << (bit % 8);
        if let Some(byte) = inode.durable.get_mut(at) {
            *byte ^= 1 << (bit % 8);
        }
        true
    }

    /// Every file with what can be read from it, by path.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let inner = self.inner();
        inner.live.iter().map(|(p, i)| (p.clone(), inner.inodes[*i].live.clone())).collect()
    }

    /// The disk that is found after a crash now; this one stays as it is.
    pub fn crash(&self, crash: &mut dyn Crash) -> Self {
        let inner = self.inner();
        let mut entries = inner.durable.clone();
        for entry in &inner.unsynced {
            let (Entry::Link(path, _) | Entry::Unlink(path) | Entry::Rename(_, path, _)) = entry;
            if crash.entry(path) {
                entry.clone().apply(&mut entries);
            }
        }
        let mut image = Inner { folders: inner.folders.clone(), ..Inner::default() };
        for (path, inode) in entries {
            let inode = &inner.inodes[inode];
            let mut bytes = inode.durable.clone();
            for change in &inode.unsynced {
                let (offset, len) = match change {
                    Change::Write(offset, bytes) => (*offset, bytes.len()),
                    Change::Len(len) => (*len, 0),
                };
                change.apply(&mut bytes, crash.write(&path, offset, len));
            }
            image.live.insert(path.clone(), image.inodes.len());
            image.durable.insert(path, image.inodes.len());
            image.inodes.push(Inode { live: bytes.clone(), durable: bytes, unsynced: Vec::new() });
        }
        Self { inner: Arc::new(Mutex::new(image)) }
    }
}

fn no_power() -> io::Error {
    io::Error::other("the power is off")
}

/// What became of the question whether a call may happen.
enum Gate {
    Pass,
    /// Power goes right now: do it, unsynced, and fail.
    Last,
    Torn(usize, ErrorKind),
    SyncLost,
}

impl Inner {
    fn gate(&mut self, kind: OpKind, path: &Path, offset: u64, len: usize) -> io::Result<Gate> {
        let number = self.operations;
        if self.power_until.is_some_and(|until| number > until) {
            return Err(no_power());
        }
        if kind != OpKind::Read {
            self.operations += 1;
            if self.power_until == Some(number) {
                return Ok(Gate::Last);
            }
        }
        let operation = Operation { number, kind, path, offset, len };
        match self.faults.as_mut().and_then(|f| f.fault(&operation)) {
            None => Ok(Gate::Pass),
            Some(Fault::Error(kind)) => Err(kind.into()),
            Some(Fault::Torn(n, kind)) => Ok(Gate::Torn(n, kind)),
            Some(Fault::SyncLost) => Ok(Gate::SyncLost),
        }
    }

    fn change(&mut self, inode: usize, change: Change) {
        let inode = &mut self.inodes[inode];
        change.apply(&mut inode.live, Kept::All);
        inode.unsynced.push(change);
    }

    fn entry(&mut self, kind: OpKind, path: &Path, entry: Entry) -> io::Result<()> {
        let gate = self.gate(kind, path, 0, 0)?;
        entry.clone().apply(&mut self.live);
        self.unsynced.push(entry);
        match gate {
            Gate::Last => Err(no_power()),
            _ => Ok(()),
        }
    }

    /// How many of `len` bytes at `offset` still fit on the disk.
    fn room(&self, inode: usize, offset: u64, len: usize) -> usize {
        let Some(space) = self.space else { return len };
        let used: u64 = self.live.values().map(|i| self.inodes[*i].live.len() as u64).sum();
        let have = self.inodes[inode].live.len() as u64;
        let most = have.max(have.saturating_add(space.saturating_sub(used)));
        most.saturating_sub(offset).min(len as u64) as usize
    }
}

struct File {
    disk: FaultyDisk,
    path: PathBuf,
    inode: usize,
}

impl DiskFile for File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.disk.inner();
        let gate = inner.gate(OpKind::Write, &self.path, offset, bytes.len())?;
        let room = inner.room(self.inode, offset, bytes.len());
        let (bytes, after) = match gate {
            Gate::Last => (bytes, Err(no_power())),
            Gate::Torn(n, kind) => (&bytes[..n.min(bytes.len())], Err(kind.into())),
            _ if room < bytes.len() => (&bytes[..room], Err(ErrorKind::StorageFull.into())),
            _ => (bytes, Ok(())),
        };
        if !bytes.is_empty() {
            inner.change(self.inode, Change::Write(offset, bytes.to_vec()));
        }
        after
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut inner = self.disk.inner();
        inner.gate(OpKind::Read, &self.path, offset, into.len())?;
        let live = &inner.inodes[self.inode].live;
        let bytes = live.get(offset as usize..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
        inner.bytes_read += into.len() as u64;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.inner().inodes[self.inode].live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.disk.inner();
        let gate = inner.gate(OpKind::SetLen, &self.path, len, 0)?;
        inner.change(self.inode, Change::Len(len));
        if matches!(gate, Gate::Last) { Err(no_power()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.inner();
        let gate = inner.gate(OpKind::Sync, &self.path, 0, 0)?;
        let inode = &mut inner.inodes[self.inode];
        match gate {
            Gate::Pass => {
                for change in inode.unsynced.drain(..) {
                    change.apply(&mut inode.durable, Kept::All);
                }
                Ok(())
            }
            Gate::SyncLost => {
                inode.unsynced.clear();
                Err(io::Error::other("input/output error"))
            }
            Gate::Last | Gate::Torn(..) => Err(no_power()),
        }
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.inner();
        let (disk, path) = (self.clone(), path.to_path_buf());
        if let Some(&inode) = inner.live.get(&path) {
            return Ok(Arc::new(File { disk, path, inode }));
        }
        if !create || path.parent().is_none_or(|dir| !inner.folders.contains(dir)) {
            return Err(ErrorKind::NotFound.into());
        }
        let inode = inner.inodes.len();
        inner.inodes.push(Inode::default());
        inner.entry(OpKind::Create, &path, Entry::Link(path.clone(), inode))?;
        Ok(Arc::new(File { disk, path, inode }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let inner = self.inner();
        if !inner.folders.contains(dir) {
            return Err(ErrorKind::NotFound.into());
        }
        let entries = inner.live.keys().chain(&inner.folders);
        let mut found: Vec<_> = entries.filter(|p| p.parent() == Some(dir)).cloned().collect();
        found.sort();
        Ok(found)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        for above in dir.ancestors() {
            inner.folders.insert(above.to_path_buf());
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        let inode = *inner.live.get(from).ok_or(ErrorKind::NotFound)?;
        let entry = Entry::Rename(from.to_path_buf(), to.to_path_buf(), inode);
        inner.entry(OpKind::Rename, to, entry)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        if !inner.live.contains_key(path) {
            return Err(ErrorKind::NotFound.into());
        }
        inner.entry(OpKind::Remove, path, Entry::Unlink(path.to_path_buf()))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        let holds = |p: &PathBuf| p.parent() == Some(path);
        if inner.live.keys().any(holds) || inner.folders.iter().any(holds) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        inner.folders.remove(path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        match inner.gate(OpKind::SyncDir, dir, 0, 0)? {
            Gate::Pass => {}
            _ => return Err(no_power()),
        }
        let unsynced = std::mem::take(&mut inner.unsynced);
        for entry in unsynced {
            if entry.folder() == Some(dir) {
                entry.apply(&mut inner.durable);
            } else {
                inner.unsynced.push(entry);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (FaultyDisk, Arc<dyn DiskFile>, &'static Path) {
        let (disk, path) = (FaultyDisk::new(), Path::new("/d/a"));
        disk.create_dir_all(Path::new("/d")).unwrap();
        let file = disk.open(path, true).unwrap();
        (disk, file, path)
    }

    #[test]
    fn what_is_not_synced_is_lost_and_what_is_synced_stays() {
        let (disk, file, path) = disk();
        file.write_at(0, b"one").unwrap();
        file.sync().unwrap();
        assert!(disk.crash(&mut LoseAll).files().is_empty(), "the entry was not synced");
        disk.sync_dir(Path::new("/d")).unwrap();
        file.write_at(3, b"two").unwrap();
        assert_eq!(disk.crash(&mut LoseAll).files(), [(path.into(), b"one".to_vec())]);
        assert_eq!(disk.crash(&mut KeepAll).files(), [(path.into(), b"onetwo".to_vec())]);
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_says_so() {
        let (disk, file, _) = disk();
        disk.set_space(Some(4));
        let full = file.write_at(0, b"abcdef").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        assert_eq!(file.len().unwrap(), 4);
        file.write_at(0, b"ABCD").unwrap();
    }

    #[test]
    fn after_a_lost_sync_no_later_one_saves_the_bytes() {
        let (disk, file, _) = disk();
        disk.sync_dir(Path::new("/d")).unwrap();
        disk.set_faults(Some(Box::new(|op: &Operation<'_>| {
            (op.kind == OpKind::Sync && op.number == 3).then_some(Fault::SyncLost)
        })));
        file.write_at(0, b"gone").unwrap();
        assert!(file.sync().is_err());
        assert_eq!(file.len().unwrap(), 4);
        assert_eq!(disk.crash(&mut KeepAll).files()[0].1, b"");
    }

    #[test]
    fn power_goes_in_the_middle_of_a_call() {
        let (disk, file, path) = disk();
        disk.sync_dir(Path::new("/d")).unwrap();
        disk.cut_power_at(disk.operations());
        assert!(file.write_at(0, b"abc").is_err() && file.write_at(3, b"d").is_err());
        assert_eq!(disk.crash(&mut KeepAll).files(), [(path.into(), b"abc".to_vec())]);
    }
}
