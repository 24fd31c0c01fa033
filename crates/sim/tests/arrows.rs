//! The arrows between crates, held against what cargo says.
//!
//! Arrows only go down, and siblings never import each other. A new arrow is a
//! line here, in a commit of its own with its reason, and a line in
//! ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate and what it may import. A crate that is not here may not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("record", &["types"]),
    ("store", &["types", "record", "harness"]),
    ("wire", &["types"]),
    ("queue", &["types", "record", "store"]),
    ("history", &["types", "record", "store", "queue", "harness"]),
    ("danmaku", &["types", "record", "store", "wire", "queue"]),
    ("catalogue", &["types", "store"]),
    ("operators", &["types", "record"]),
    ("tier", &["types", "record", "store"]),
    ("meta", &["types", "record", "store", "queue"]),
    (
        "gateway",
        &[
            "types",
            "record",
            "store",
            "wire",
            "queue",
            "history",
            "danmaku",
            "catalogue",
            "meta",
            "tier",
            "harness",
        ],
    ),
    // Aside: kills, power cuts and a plain model, from outside; for tests alone.
    ("harness", &[]),
    (
        "server",
        &[
            "types",
            "record",
            "store",
            "wire",
            "queue",
            "history",
            "danmaku",
            "catalogue",
            "meta",
            "operators",
            "tier",
            "client",
            "gateway",
            "harness",
        ],
    ),
    // What a reader links; no server code.
    ("client", &["types", "record", "wire"]),
    // Aside: runs whole products, and nobody imports it.
    ("bench", &["types", "record", "store", "wire", "queue", "operators", "history", "client"]),
    (
        "sim",
        &[
            "types",
            "record",
            "store",
            "wire",
            "queue",
            "tier",
            "client",
            "history",
            "danmaku",
            "catalogue",
            "meta",
            "gateway",
            "server",
            "harness",
        ],
    ),
];

/// What each crate of the workspace imports, tests and build scripts included.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this test, so it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let short = |name: &serde_json::Value| {
        name.as_str().and_then(|name| name.strip_prefix("tideline-")).map(str::to_owned)
    };
    let packages = metadata["packages"].as_array().expect("a list");
    packages
        .iter()
        .map(|package| {
            let imports = package["dependencies"].as_array().expect("a list");
            let name = short(&package["name"]).expect("every crate of ours is tideline-something");
            (name, imports.iter().filter_map(|import| short(&import["name"])).collect())
        })
        .collect()
}

#[test]
fn every_arrow_between_crates_is_an_allowed_one() {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    for (name, imports) in arrows() {
        let Some(may) = allowed.get(&*name) else { panic!("crate {name} is not in the picture") };
        for import in imports {
            assert!(may.contains(&&*import), "{name} may not import {import}");
        }
    }
}

#[test]
fn allowed_arrows_only_go_down() {
    let floor = |name: &str| match name {
        "types" | "harness" => 0,
        "record" | "wire" => 1,
        "store" | "operators" | "client" => 2,
        "queue" | "tier" => 3,
        "history" | "danmaku" | "catalogue" | "meta" => 4,
        "gateway" => 5,
        "server" => 6,
        _ => 7,
    };
    for (name, imports) in ALLOWED {
        for import in *imports {
            assert!(floor(import) < floor(name), "{name} -> {import} does not go down");
        }
    }
}

#[test]
fn every_crate_in_the_picture_exists() {
    let arrows = arrows();
    for (name, _) in ALLOWED {
        assert!(arrows.contains_key(*name), "{name} is gone; take it out of the picture");
    }
}
