//! What an observer was told, put together: it is told each change once.
//!
//! Knows nodes by what was told of them alone, and holds that against the copy: a change that is
//! missed, or told a second time, does not fit what was told before or what the copy has.

use std::collections::{BTreeMap, BTreeSet};

use tideline_meta::Path;
use tideline_meta::follower::Seen;
use tideline_meta::tree::Tree;
use tideline_types::Seq;

/// Each node: by what it was created, and last written.
#[derive(Default)]
pub(super) struct Told(BTreeMap<Path, (Seq, Seq)>);

impl Told {
    /// The observer is told of commits, or of what a snapshot changes; then its copy is `tree`.
    pub(super) fn take(&mut self, commits: Vec<Vec<Seen>>, tree: Option<&Tree>, who: usize) {
        if commits.is_empty() {
            return;
        }
        for commit in commits {
            // What one commit writes twice is one change.
            let mut written = BTreeSet::new();
            for seen in commit {
                match seen {
                    Seen::New(path, node) => {
                        let held = self.0.insert(path.clone(), (node.created, node.modified));
                        assert_eq!(held, None, "observer {who}: {path} is new twice");
                        written.insert(path);
                    }
                    Seen::Set(path, _) if path.is_root() => {}
                    Seen::Set(path, node) => {
                        let held = self.0.get_mut(&path);
                        let held = held.unwrap_or_else(|| panic!("observer {who}: no {path}"));
                        assert_eq!(held.0, node.created, "observer {who}: another {path}");
                        let again = !written.insert(path.clone());
                        let news = held.1 < node.modified || again;
                        assert!(news, "observer {who}: {path} is set twice");
                        held.1 = node.modified;
                    }
                    Seen::Gone(path, node) => {
                        let held = self.0.remove(&path).map(|(created, _)| created);
                        assert_eq!(held, Some(node.created), "observer {who}: {path} is gone");
                        written.remove(&path);
                    }
                }
            }
        }
        let tree = tree.expect("what is told changes a copy");
        let nodes = tree.nodes().filter(|(path, _)| !path.is_root());
        let copy = nodes.map(|(path, node)| (path, (node.created, node.modified)));
        let same = copy.eq(self.0.iter().map(|(path, at)| (path, *at)));
        assert!(same, "observer {who} was told {:?} and has {tree:?}", self.0);
    }
}
