//! What a disk may hold when the power goes.
//!
//! [`image`] makes one folder that is allowed by the trail up to a moment:
//! synced changes are in it, others may be missing, reordered or torn. The
//! same trail, moment, mood and stream of numbers give the same image.

mod content;
mod cut;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub use content::Content;
pub use cut::{Mood, image, moments};

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inside {
    /// A folder; its entries have paths of their own.
    Folder,
    /// A file.
    File(Content),
}

/// A folder and all that is in it, by path from the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    entries: BTreeMap<PathBuf, Inside>,
}

impl Image {
    /// What is in it.
    pub fn entries(&self) -> &BTreeMap<PathBuf, Inside> {
        &self.entries
    }

    /// The file at `path`, if there is one.
    pub fn file(&self, path: impl AsRef<Path>) -> Option<&Content> {
        match self.entries.get(path.as_ref())? {
            Inside::File(content) => Some(content),
            Inside::Folder => None,
        }
    }

    /// What it lost of `whole`, in words: for people who look for the reason.
    pub fn losses(&self, whole: &Self) -> String {
        let mut text = String::new();
        for (path, what) in &whole.entries {
            let path_text = path.display();
            match (what, self.entries.get(path)) {
                (_, None)
                    if path
                        .parent()
                        .is_some_and(|up| up == Path::new("") || self.entries.contains_key(up)) =>
                {
                    text += &format!("  no {path_text}\n");
                }
                (Inside::File(due), Some(Inside::File(held))) if due != held => {
                    text += &format!(
                        "  {path_text} has another state ({} of {} bytes)\n",
                        held.len(),
                        due.len()
                    );
                }
                _ => (),
            }
        }
        for path in self.entries.keys().filter(|path| !whole.entries.contains_key(*path)) {
            text += &format!("  still {}\n", path.display());
        }
        text
    }

    /// Writes it out into the empty folder `into`.
    pub fn write_into(&self, into: &Path) -> io::Result<()> {
        for (path, what) in &self.entries {
            match what {
                Inside::Folder => fs::create_dir(into.join(path))?,
                Inside::File(content) => content.write_to(&File::create(into.join(path))?)?,
            }
        }
        Ok(())
    }

    /// How the folder `folder` differs, in words; `None` if in no byte and in
    /// no name.
    pub fn difference(&self, folder: &Path) -> io::Result<Option<String>> {
        let mut there = Vec::new();
        walk(folder, Path::new(""), &mut there)?;
        let ours: Vec<_> = self.entries.keys().cloned().collect();
        there.sort();
        if let Some(path) = there.iter().find(|path| !self.entries.contains_key(*path)) {
            return Ok(Some(format!("{} is there and was never recorded", path.display())));
        }
        for path in ours {
            let full = folder.join(&path);
            let is = match fs::symlink_metadata(&full) {
                Ok(meta) => meta.is_dir(),
                Err(error) => return Ok(Some(format!("{}: {error}", path.display()))),
            };
            match &self.entries[&path] {
                Inside::Folder if is => (),
                Inside::File(content) if !is => {
                    if let Some(at) = content.first_difference(&File::open(&full)?)? {
                        return Ok(Some(format!("{} differs at byte {at}", path.display())));
                    }
                }
                _ => return Ok(Some(format!("{} is of another kind", path.display()))),
            }
        }
        Ok(None)
    }
}

fn walk(root: &Path, inner: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(inner))? {
        let entry = entry?;
        let path = inner.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
        }
        found.push(path);
    }
    Ok(())
}
