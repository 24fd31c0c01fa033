//! `tideline export`: users' histories as NDJSON, one after the other.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use reqwest::Method;
use serde::Deserialize;

use crate::cli::{ExportArgs, Failure};
use crate::client::{Client, read_json, segment};

/// Users asked for at once.
const USERS_PAGE: usize = 1_000;

#[derive(Deserialize)]
struct Users {
    users: Vec<String>,
    next_after: Option<String>,
}

/// Writes one user, or all, to a file or to standard output. A file appears
/// whole or not at all.
pub(crate) async fn run(args: ExportArgs) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    let Some(path) = &args.out else {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&client, &args, &mut out).await?;
        return out.flush().map_err(|e| Failure::failed("standard output", e));
    };
    let failed = |e: io::Error| Failure::failed(path.display(), e);
    let mut fresh = path.clone().into_os_string();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    let mut out = BufWriter::new(File::create(&fresh).map_err(failed)?);
    let users = match write(&client, &args, &mut out).await {
        Ok(users) => users,
        Err(failure) => {
            let _ = std::fs::remove_file(&fresh);
            return Err(failure);
        }
    };
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(failed)?;
    std::fs::rename(&fresh, path).map_err(failed)?;
    eprintln!("{users} users written to {}", path.display());
    Ok(())
}

async fn write(client: &Client, args: &ExportArgs, out: &mut impl Write) -> Result<u64, Failure> {
    if let Some(user) = &args.user {
        one(client, user, out).await?;
        return Ok(1);
    }
    let mut after = String::new();
    let mut count = 0;
    loop {
        let path = format!("/v1/users?limit={USERS_PAGE}&after={}", segment(&after));
        let page: Users =
            read_json(client.send_patiently(|| client.request(Method::GET, &path)).await?).await?;
        for user in &page.users {
            one(client, user, out).await?;
            count += 1;
        }
        match page.next_after {
            Some(next) => after = next,
            None => return Ok(count),
        }
    }
}

async fn one(client: &Client, user: &str, out: &mut impl Write) -> Result<(), Failure> {
    let path = format!("/v1/users/{}/history/export", segment(user));
    let mut response = client.send_patiently(|| client.request(Method::GET, &path)).await?;
    let failed = |e: reqwest::Error| Failure::failed(format!("export of {user}"), e);
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        out.write_all(&chunk).map_err(|e| Failure::failed("writing", e))?;
    }
    Ok(())
}
