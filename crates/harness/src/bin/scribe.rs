//! A small program that keeps numbers on a disk, rightly or wrongly, so that
//! the recorder and the power cuts can be tried on something known.
//!
//! `scribe MODE FOLDER COUNT` keeps 0..COUNT and says each number on a line of
//! its own once it claims that the number is safe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of 700 bytes each: they cross sectors.
const RECORD: usize = 700;

fn record(number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8 ^ 0x5a; RECORD];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn say(number: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{number}")?;
    out.flush()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// One file that grows.
fn append(folder: &Path, count: u64, sync_first: bool, folder_too: bool) -> io::Result<()> {
    let path = folder.join("log");
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    if folder_too {
        sync_folder(folder)?;
    }
    for number in 0..count {
        file.write_all(&record(number))?;
        if sync_first {
            file.sync_data()?;
        }
        say(number)?;
        if !sync_first {
            file.sync_data()?;
        }
    }
    Ok(())
}

/// One file that is replaced.
fn replace(folder: &Path, count: u64, file_too: bool, folder_too: bool) -> io::Result<()> {
    for number in 0..count {
        let fresh = folder.join("state.new");
        let mut file = File::create(&fresh)?;
        file.write_all(&record(number))?;
        if file_too {
            file.sync_all()?;
        }
        fs::rename(&fresh, folder.join("state"))?;
        if folder_too {
            sync_folder(folder)?;
        }
        say(number)?;
    }
    Ok(())
}

/// One thread writes, another syncs and says; a right one says only what was
/// written before its sync began.
fn grouped(folder: &Path, count: u64, right: bool) -> io::Result<()> {
    let file = File::create(folder.join("log"))?;
    sync_folder(folder)?;
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..count {
                file.write_all_at(&record(number), number * RECORD as u64)?;
                written.store(number + 1, Ordering::SeqCst);
            }
            io::Result::Ok(())
        });
        let mut said = 0;
        while said < count {
            let before = written.load(Ordering::SeqCst);
            file.sync_data()?;
            let upto = if right { before } else { written.load(Ordering::SeqCst) };
            for number in said..upto {
                say(number)?;
            }
            said = upto;
        }
        writer.join().map_err(|_| io::Error::other("the writer panicked"))?
    })
}

/// A file that is filled, cut to nothing and filled again; folders come and go.
fn churn(folder: &Path, count: u64) -> io::Result<()> {
    for number in 0..count {
        let inner = folder.join(format!("d{}", number % 3));
        fs::create_dir_all(inner.join("deep"))?;
        let file = File::create(inner.join("deep/file"))?;
        file.write_all_at(&record(number), 5_000)?;
        file.set_len(5_300)?;
        file.set_len(1 << 20)?;
        let mut again = OpenOptions::new().write(true).open(inner.join("deep/file"))?;
        again.write_all(b"head")?;
        fs::rename(inner.join("deep"), inner.join("deeper"))?;
        if number % 2 == 0 {
            fs::remove_dir_all(&inner)?;
        } else {
            fs::remove_file(inner.join("deeper/file"))?;
            fs::remove_dir(inner.join("deeper"))?;
        }
        fs::write(folder.join("last"), record(number))?;
        say(number)?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, mode, folder, count] = &args[..] else {
        return Err(io::Error::other("usage: scribe MODE FOLDER COUNT"));
    };
    let folder = Path::new(folder);
    let count = count.parse().map_err(io::Error::other)?;
    match mode.as_str() {
        "append" => append(folder, count, true, true),
        "append-says-before-sync" => append(folder, count, false, true),
        "append-forgets-folder" => append(folder, count, true, false),
        "replace" => replace(folder, count, true, true),
        "replace-forgets-file" => replace(folder, count, false, true),
        "replace-forgets-folder" => replace(folder, count, true, false),
        "grouped" => grouped(folder, count, true),
        "grouped-says-late-writes" => grouped(folder, count, false),
        "churn" => churn(folder, count),
        _ => Err(io::Error::other("no such mode")),
    }
}
