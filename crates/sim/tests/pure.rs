//! Pure cores read no clock, draw no random number and start nothing.

use std::path::Path;

/// Files that take `now` as an argument and push effects.
const PURE: &[&str] = &[
    "queue/src/cursor.rs",
    "queue/src/derive.rs",
    "queue/src/partition.rs",
    "queue/src/topic.rs",
    "history/src/mark.rs",
    "history/src/kinds.rs",
    "history/src/outcome.rs",
    "history/src/rules.rs",
    "history/src/timeline.rs",
    "history/src/pack.rs",
    "history/src/rows.rs",
    "history/src/query.rs",
];

/// What would make a core impure.
const FORBIDDEN: &[&str] = &[
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "getrandom",
    "tokio::",
    "thread::",
    ".await",
    "std::fs",
    "std::env",
];

#[test]
fn no_pure_core_reads_a_clock_or_starts_a_thing() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in PURE {
        let Ok(text) = std::fs::read_to_string(crates.join(file)) else { continue };
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (at, line) in code.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in FORBIDDEN {
                assert!(!code.contains(word), "{file}:{}: {word} in a pure core", at + 1);
            }
        }
    }
}
