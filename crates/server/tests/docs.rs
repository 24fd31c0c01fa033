//! What the documents say, held against the code.

use std::path::{Path, PathBuf};

use tideline_types::limits;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn the_table_of_limits_says_what_the_code_says() {
    macro_rules! known {
        ($($name:ident),* $(,)?) => { [$((stringify!($name), limits::$name as u64)),*] };
    }
    let known = known![
        USER_BYTES_MAX,
        FIELD_BYTES_MAX,
        KIND_BYTES_MAX,
        KINDS_MAX,
        TITLE_CHARS_MAX,
        URL_BYTES_MAX,
        BODY_BYTES_MAX,
        BATCH_MARKS_MAX,
        BATCH_KEYS_MAX,
        PAGE_ROWS_MAX,
        RETRIES_PER_ROW,
        BLOCKS_PER_USER_MAX,
        PAUSES_PER_USER_MAX,
        VIDEO_BYTES_MAX,
        COMMENT_CHARS_MAX,
        POSITIONED_BYTES_MAX,
        SPECIAL_BYTES_MAX,
        SHOWN_PER_VIDEO_MAX,
        SUBTITLES_PER_VIDEO_MAX,
        SPECIALS_PER_VIDEO_MAX,
        IMPORT_ITEMS_MAX,
        FILTERS_MAX,
        META_NAME_BYTES_MAX,
        META_PATH_BYTES_MAX,
        META_ROOT_BYTES_MAX,
        META_VALUE_BYTES_MAX,
        META_TXN_OPS_MAX,
        META_TXN_BYTES_MAX,
        META_CHILDREN_MAX,
        META_NODES_MAX,
        META_BYTES_MAX,
        META_SUBTREES_MAX,
        META_SESSIONS_MAX,
        META_RETRIES_KEPT,
        META_LIST_MAX,
        TOPIC_NAME_BYTES_MAX,
        PARTITIONS_MAX,
        TOPICS_MAX,
        DERIVED_TOPICS_MAX,
        DERIVED_DEPTH_MAX,
        DERIVED_RECORDS_MAX,
        DERIVED_BYTES_MAX,
        OPERATOR_BYTES_MAX,
        OPERATOR_VERSIONS_MAX,
        PRODUCERS_MAX,
        PRODUCER_RUNS_MAX,
        RECORD_KEY_BYTES_MAX,
        RECORD_VALUE_BYTES_MAX,
    ];
    let text = read("docs/data-model.md");
    for (name, value) in known {
        let line = format!("| `{name}` | {value} |");
        assert!(text.contains(&line), "docs/data-model.md does not say: {line}");
    }
}

#[test]
fn every_document_that_is_linked_exists() {
    for page in ["README.md", "ARCHITECTURE.md", "docs/quick-start.md", "docs/operations.md"] {
        let text = read(page);
        let folder = root().join(page);
        let folder = folder.parent().expect("a file has a folder");
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains("://") {
                assert!(folder.join(link).exists(), "{page} links to {link}, which is not there");
            }
        }
    }
}

#[test]
fn every_make_target_that_is_promised_exists() {
    let makefile = read("Makefile");
    for target in ["run", "test", "bench", "soak", "check"] {
        assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))), "{target}");
    }
    assert!(read(".ci/run").contains("make test"));
}
