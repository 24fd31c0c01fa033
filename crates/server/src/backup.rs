//! `tideline backup` and `restore`.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::{BackupArgs, Failure, RestoreArgs};
use crate::client::Client;
use crate::engines;

/// Asks a running server to write a copy of its data.
pub(crate) async fn run(args: BackupArgs) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    let into = absolute(&args.into)?;
    let request = client.request(Method::POST, "/v1/backup").json(&json!({ "into": into }));
    let answer: Value = client.json(request).await?;
    if args.json {
        println!("{answer}");
    } else {
        println!("{} holds the backup; `tideline check` verifies it", into.display());
    }
    Ok(())
}

/// Makes a data folder from a backup.
pub(crate) fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let restored = engines::restore(&args.from, &args.data);
    let bytes = restored.map_err(|e| Failure::failed("restore", e))?;
    println!("{} bytes restored into {}", bytes, args.data.display());
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|e| Failure::failed(path.display(), e))
}
