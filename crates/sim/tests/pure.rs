//! Pure cores read no clock, draw no random number and start nothing.

use std::path::{Path, PathBuf};

/// Files, and folders of files, that take `now` as an argument and push
/// effects.
const PURE: &[&str] = &[
    "types/src",
    "wire/src",
    "record/src",
    "gateway/src/live/follow.rs",
    "history/src/facts.rs",
    "history/src/id.rs",
    "history/src/kinds.rs",
    "history/src/mark.rs",
    "history/src/outcome.rs",
    "history/src/outcome",
    "history/src/owner.rs",
    "history/src/owner",
    "history/src/pack.rs",
    "history/src/query.rs",
    "history/src/retry.rs",
    "history/src/row.rs",
    "history/src/rows.rs",
    "history/src/rules.rs",
    "history/src/rules",
    "history/src/timeline.rs",
    "history/src/timeline",
    "catalogue/src/batch.rs",
    "client/src/backoff.rs",
    "client/src/cache.rs",
    "client/src/check.rs",
    "client/src/track.rs",
    "tier/src/fold.rs",
    "tier/src/hot.rs",
    "tier/src/ring.rs",
    "tier/src/rows.rs",
    "tier/src/sketch.rs",
    "danmaku/src/ask.rs",
    "danmaku/src/comment.rs",
    "danmaku/src/filters.rs",
    "danmaku/src/flag.rs",
    "danmaku/src/id.rs",
    "danmaku/src/options.rs",
    "danmaku/src/outcome.rs",
    "danmaku/src/outcome",
    "danmaku/src/owner.rs",
    "danmaku/src/owner",
    "danmaku/src/reads.rs",
    "danmaku/src/item.rs",
    "danmaku/src/rows.rs",
    "danmaku/src/rules.rs",
    "danmaku/src/rules",
    "danmaku/src/segment.rs",
    "danmaku/src/top.rs",
    "danmaku/src/video.rs",
    "meta/src/ask.rs",
    "meta/src/commit.rs",
    "meta/src/done.rs",
    "meta/src/follower.rs",
    "meta/src/lane.rs",
    "meta/src/lease.rs",
    "meta/src/namespace.rs",
    "meta/src/owner.rs",
    "meta/src/path.rs",
    "meta/src/rules.rs",
    "meta/src/snapshot.rs",
    "meta/src/tail.rs",
    "meta/src/tree.rs",
    "meta/src/owner",
    "meta/src/rules",
    "meta/src/follower",
    "queue/src/cursor.rs",
    "queue/src/partition.rs",
    "queue/src/producers.rs",
    "queue/src/topic.rs",
    "operators/src",
    "queue/src/view/lag.rs",
    "queue/src/view/replay.rs",
];

/// What would make a core impure.
const FORBIDDEN: &[&str] = &[
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "getrandom",
    "tokio::spawn",
    "thread::",
    ".await",
    "std::fs",
    "std::env",
    "std::net",
];

fn rust_files(path: PathBuf, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(&path).expect("a folder of the project");
        entries.for_each(|entry| rust_files(entry.expect("an entry").path(), files));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        files.push(path);
    }
}

#[test]
fn no_pure_core_reads_a_clock_or_starts_a_thing() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for path in PURE {
        let path = crates.join(path);
        assert!(path.exists(), "{} is gone; take it out of the list", path.display());
        rust_files(path, &mut files);
    }
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file of the project");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (at, line) in code.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in FORBIDDEN {
                let place = format!("{}:{}", file.display(), at + 1);
                assert!(!code.contains(word), "{place}: {word} in a pure core");
            }
        }
    }
}
