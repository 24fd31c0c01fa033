//! The folder's entries as they stand, from paths and inodes to nodes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::{Entry, Event, Node, ROOT, Trail};

/// Device and inode: what a descriptor stands for.
pub(super) type Inode = (u64, u64);

/// Which node stands under which name, and behind which inode.
#[derive(Debug)]
pub(super) struct Names {
    root: PathBuf,
    entries: BTreeMap<Entry, Node>,
    by_inode: HashMap<Inode, Node>,
    next: Node,
}

pub(super) fn inode(meta: &fs::Metadata) -> Inode {
    (meta.dev(), meta.ino())
}

impl Names {
    /// Reads the folder as it is into `trail`, all of it durable.
    pub(super) fn read(root: &Path, trail: &mut Trail) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let by_inode = HashMap::from([(inode(&fs::metadata(&root)?), ROOT)]);
        let mut names = Self { root: root.clone(), entries: BTreeMap::new(), by_inode, next: 1 };
        names.read_folder(&root, ROOT, trail)?;
        trail.begin();
        Ok(names)
    }

    fn read_folder(&mut self, path: &Path, folder: Node, trail: &mut Trail) -> io::Result<()> {
        let mut found: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
        found.sort_by_key(fs::DirEntry::file_name);
        for entry in found {
            let at = Entry { folder, name: entry.file_name() };
            let meta = entry.metadata()?;
            let node = self.make(at, inode(&meta), meta.is_dir(), trail);
            if meta.is_dir() {
                self.read_folder(&entry.path(), node, trail)?;
            } else {
                let mut bytes = Vec::new();
                File::open(entry.path())?.read_to_end(&mut bytes)?;
                trail.write(node, 0, &bytes);
                trail.sync(node);
            }
        }
        trail.sync(folder);
        Ok(())
    }

    /// A new node under `at`.
    pub(super) fn make(
        &mut self,
        at: Entry,
        inode: Inode,
        folder: bool,
        trail: &mut Trail,
    ) -> Node {
        let node = self.next;
        self.next += 1;
        self.by_inode.insert(inode, node);
        self.entries.insert(at.clone(), node);
        trail.push(Event::Make { at, node, folder });
        node
    }

    /// `from` now stands as `to`.
    pub(super) fn rename(&mut self, from: Entry, to: Entry, trail: &mut Trail) {
        if let Some(node) = self.entries.remove(&from) {
            self.entries.insert(to.clone(), node);
        }
        trail.push(Event::Move { from, to });
    }

    /// `at` is gone.
    pub(super) fn remove(&mut self, at: Entry, trail: &mut Trail) {
        self.entries.remove(&at);
        trail.push(Event::Drop { at });
    }

    /// The node behind an inode, if it is one of the folder's.
    pub(super) fn node(&self, inode: Inode) -> Option<Node> {
        self.by_inode.get(&inode).copied()
    }

    /// What stands at `at`.
    pub(super) fn at(&self, at: &Entry) -> Option<Node> {
        self.entries.get(at).copied()
    }

    /// The entry that an absolute path names, if it lies in the folder.
    pub(super) fn entry(&self, path: &Path) -> Option<Entry> {
        let path = plain(path);
        let inner = path.strip_prefix(&self.root).ok()?;
        let name: OsString = inner.file_name()?.to_owned();
        let mut folder = ROOT;
        for step in inner.parent()?.components() {
            folder = self.at(&Entry { folder, name: step.as_os_str().to_owned() })?;
        }
        Some(Entry { folder, name })
    }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => (),
            Component::ParentDir => {
                out.pop();
            }
            step => out.push(step),
        }
    }
    out
}
