//! Where a node stands: names joined by slashes.
//!
//! The same type names a node from the top of the whole tree and from the root
//! of its subtree; the root itself is the empty path, shown as `/`. Paths are
//! ordered as a walk of the tree visits them: a node, then all that is below
//! it, then its next sibling.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use tideline_types::limits::{META_NAME_BYTES_MAX, META_PATH_BYTES_MAX};

/// Why a text is no path; for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPath(&'static str);

/// A path: empty, or `/name` once or more. At most 1 KiB; a name has 1 to 255
/// bytes without `/` and control characters, and is neither `.` nor `..`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path(Arc<str>);

impl Path {
    /// The root.
    pub fn root() -> Self {
        Self("".into())
    }

    /// Reads `/a/b`; `/` and the empty text are the root.
    pub fn new(text: &str) -> Result<Self, BadPath> {
        if text.is_empty() || text == "/" {
            return Ok(Self::root());
        }
        if text.len() > META_PATH_BYTES_MAX {
            return Err(BadPath("a path has at most 1024 bytes"));
        }
        let names = text.strip_prefix('/').ok_or(BadPath("a path begins with a slash"))?;
        names.split('/').try_for_each(check_name)?;
        Ok(Self(text.into()))
    }

    /// The text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The node above; none above the root.
    pub fn parent(&self) -> Option<Self> {
        let (above, _) = self.0.rsplit_once('/')?;
        Some(Self(above.into()))
    }

    /// The last name; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// The child of that name.
    pub fn child(&self, name: &str) -> Result<Self, BadPath> {
        check_name(name)?;
        if self.0.len() + 1 + name.len() > META_PATH_BYTES_MAX {
            return Err(BadPath("a path has at most 1024 bytes"));
        }
        Ok(Self(format!("{}/{name}", self.0).into()))
    }

    /// This path followed by `below`.
    pub fn join(&self, below: &Self) -> Result<Self, BadPath> {
        if self.0.len() + below.0.len() > META_PATH_BYTES_MAX {
            return Err(BadPath("a path has at most 1024 bytes"));
        }
        Ok(Self(format!("{}{}", self.0, below.0).into()))
    }

    /// What is left of this path below `root`; `None` where it is not `root`
    /// or below it.
    pub fn below(&self, root: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&*root.0)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| Self(rest.into()))
    }

    /// In the order of paths, comes right after all that is below `self`.
    pub(crate) fn past(&self) -> Self {
        // No name holds a control character, so this is no path, only a bound.
        Self(format!("{}\u{1}", self.0).into())
    }
}

fn check_name(name: &str) -> Result<(), BadPath> {
    if name.is_empty() || name.len() > META_NAME_BYTES_MAX {
        return Err(BadPath("a name has 1 to 255 bytes"));
    }
    if name == "." || name == ".." || name.contains(|c: char| c == '/' || c.is_control()) {
        return Err(BadPath("a name holds no slash and no control character, and is not . or .."));
    }
    Ok(())
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> Ordering {
        // A slash comes before whatever a name may hold.
        let rank = |byte: u8| if byte == b'/' { 0 } else { byte };
        self.0.bytes().map(rank).cmp(other.0.bytes().map(rank))
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "/" } else { &self.0 })
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::new(text).unwrap()
    }

    #[test]
    fn a_node_comes_before_what_is_below_it_and_that_before_the_next() {
        let walk = ["/", "/a", "/a/b", "/a/b/c", "/a/b-c", "/a-b", "/a-b/c", "/b"].map(path);
        let mut sorted = walk.to_vec();
        sorted.reverse();
        sorted.sort();
        assert_eq!(sorted, walk);
        assert!(path("/a/b/c") < path("/a").past() && path("/a").past() < path("/a-b"));
    }

    #[test]
    fn names_are_held_to_their_alphabet_and_length() {
        for bad in
            ["a", "/a/", "//a", "/.", "/a/..", "/a\n", "/\0", &format!("/{}", "n".repeat(256))]
        {
            assert!(Path::new(bad).is_err(), "{bad:?}");
        }
        let long = format!("/{}", "n".repeat(255)).repeat(4);
        assert!(Path::new(&long).is_ok() && path(&long).child("x").is_err());
    }

    #[test]
    fn a_path_is_cut_at_its_names_only() {
        assert_eq!(path("/a/b").below(&path("/a")), Some(path("/b")));
        assert_eq!(path("/a").below(&path("/a")), Some(Path::root()));
        assert_eq!(path("/ab").below(&path("/a")), None);
        assert_eq!(path("/a").below(&Path::root()), Some(path("/a")));
        assert_eq!(path("/a/b").parent(), Some(path("/a")));
        assert_eq!(path("/a").parent(), Some(Path::root()));
        assert_eq!(Path::root().parent(), None);
        assert_eq!((path("/a/b").name(), Path::root().name()), ("b", ""));
        assert_eq!(path("/a").join(&path("/b")), Ok(path("/a/b")));
    }
}
