//! `tideline export`: users' histories as NDJSON, one after the other; and a
//! video's comments.

mod comments;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde::Deserialize;

use crate::cli::{ExportArgs, ExportCommand, Failure};
use crate::client::{Client, segment};

#[derive(Deserialize)]
struct UserLine {
    user: String,
}

#[derive(Deserialize)]
struct Head {
    rows: u64,
    facts: serde_json::Map<String, serde_json::Value>,
}

/// Writes one user, or all, or what else is asked for, to a file or to standard
/// output.
pub(crate) async fn run(args: ExportArgs) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    if let Some(ExportCommand::Danmaku(comments)) = &args.what {
        return comments::run(&client, comments).await;
    }
    let Some(path) = &args.out else {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&client, &args, &mut out).await?;
        return out.flush().map_err(|e| Failure::failed("standard output", e));
    };
    let mut out = Whole::at(path)?;
    let users = write(&client, &args, &mut out.file).await?;
    out.keep()?;
    eprintln!("{users} users written to {}", path.display());
    Ok(())
}

/// A file that appears whole or not at all.
struct Whole<'a> {
    path: &'a Path,
    fresh: PathBuf,
    file: BufWriter<File>,
    kept: bool,
}

impl<'a> Whole<'a> {
    fn at(path: &'a Path) -> Result<Self, Failure> {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        let file = File::create(&fresh).map_err(|e| Failure::failed(path.display(), e))?;
        Ok(Self { path, fresh, file: BufWriter::new(file), kept: false })
    }

    fn keep(mut self) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::failed(self.path.display(), e);
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(failed)?;
        std::fs::rename(&self.fresh, self.path).map_err(failed)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_file(&self.fresh);
        }
    }
}

async fn write(client: &Client, args: &ExportArgs, out: &mut impl Write) -> Result<u64, Failure> {
    if let Some(user) = &args.user {
        return Ok(u64::from(one(client, user, out).await?));
    }
    let request = || client.request(Method::GET, "/v1/users");
    let mut response = client.send_patiently(request).await?;
    let failed = |e: reqwest::Error| Failure::failed("the list of users", e);
    let (mut count, mut pending) = (0, Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        pending.extend_from_slice(&chunk);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let line: UserLine = serde_json::from_slice(&line)
                .map_err(|e| Failure::failed("the list of users", e))?;
            count += u64::from(one(client, &line.user, out).await?);
        }
    }
    if !pending.is_empty() {
        return Err(Failure::Failed("the list of users was cut off".into()));
    }
    Ok(count)
}

/// Writes one user; `true` unless there is nothing to write.
async fn one(client: &Client, user: &str, out: &mut impl Write) -> Result<bool, Failure> {
    let path = format!("/v1/users/{}/history/export", segment(user));
    let response = client.send_patiently(|| client.request(Method::GET, &path)).await?;
    let failed = |why: &dyn std::fmt::Display| Failure::failed(format!("export of {user}"), why);
    let text = response.bytes().await.map_err(|e| failed(&e))?;
    let head = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let head: Head = serde_json::from_slice(head).map_err(|e| failed(&e))?;
    let something = head.rows > 0 || !head.facts.is_empty();
    if something {
        out.write_all(&text).map_err(|e| Failure::failed("writing", e))?;
    }
    Ok(something)
}
