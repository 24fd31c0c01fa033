//! Lists the built pages for browsers, so that the program carries them.
//!
//! Whoever has not built them (`make run` does) gets a program that compiles
//! all the same, and says how to build them where they would be.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Where the pages are built. The folder is always there, maybe empty.
const BUILT: &str = "../../ui/built";
const MISSING: &str = "src/pages_missing.html";

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let built = root.join(BUILT);
    println!("cargo::rerun-if-changed={BUILT}");
    println!("cargo::rerun-if-changed={MISSING}");
    let pages = built.join("pages");
    let mut files = Vec::new();
    if pages.join("index.html").is_file() {
        list(&pages, &pages, &mut files)?;
        // The same files give the same program.
        files.sort();
    } else {
        files.push(("/index.html".to_owned(), root.join(MISSING)));
    }
    let into = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut out = String::from("&[\n");
    for (at, (path, file)) in files.iter().enumerate() {
        // A copy: the pages may be built again before the compiler reads them.
        let copy = format!("page-{at}");
        fs::copy(file, into.join(&copy))?;
        let _ = writeln!(out, "PageFile {{ path: {path:?}, bytes: include_bytes!({copy:?}) }},");
    }
    out.push_str("]\n");
    fs::write(into.join("pages.rs"), out)
}

/// Every file below `folder`, with its path from `root` on.
fn list(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if file.is_dir() {
            list(root, &file, files)?;
        } else if let Some(path) = file.strip_prefix(root).ok().and_then(Path::to_str) {
            files.push((format!("/{path}"), file));
        }
    }
    Ok(())
}
