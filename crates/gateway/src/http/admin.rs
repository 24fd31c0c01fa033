//! For those who run the server: everyone there is, and a copy of everything.

use std::path::PathBuf;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tideline_wire::Code;
use tideline_wire::json::{push_str, push_string};
use tokio::sync::mpsc;

use super::door::{self, Call};
use crate::Gateway;
use crate::problem::Problem;

/// Bytes of one piece of the list of users, about; a few wait at a time.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_WAITING: usize = 4;

/// Every user, a line each. The list comes in pieces as it is read; one that
/// cannot be read to its end is cut off before the last line is whole.
pub(super) async fn users(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let (pieces, list) = mpsc::channel::<Result<Bytes, std::io::Error>>(PIECES_WAITING);
    let history = gateway.inner.history.clone();
    tokio::task::spawn_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let done = history.users(&mut |user| {
            push_str(&mut piece, "{\"user\":");
            push_string(&mut piece, &user);
            push_str(&mut piece, "}\n");
            if piece.len() < PIECE_BYTES {
                return true;
            }
            let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE_BYTES));
            pieces.blocking_send(Ok(full.into())).is_ok()
        });
        // Where nobody listens any more, nobody misses the end.
        let _ = match done {
            Ok(()) => pieces.blocking_send(Ok(piece.into())),
            Err(error) => {
                tracing::error!(%error, "the list of users was cut off");
                pieces.blocking_send(Err(std::io::Error::other(error.to_string())))
            }
        };
    });
    let list = stream::unfold(list, async |mut list| Some((list.recv().await?, list)));
    Ok(door::typed("application/x-ndjson", Body::from_stream(list)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupTo {
    into: PathBuf,
}

/// Has the server write a copy of everything into a folder of its machine.
pub(super) async fn backup(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&[])?;
    let body = call.body(&gateway).await?;
    let asked: BackupTo = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("body: {error}")))?;
    if !asked.into.is_absolute() {
        return Err(Problem::invalid("into: must be an absolute path on the server's machine"));
    }
    let copy = gateway.inner.backup.get().cloned().ok_or_else(|| {
        Problem::new(Code::NotFound, "this server is not set up to write backups")
    })?;
    let into = asked.into.clone();
    let done = tokio::task::spawn_blocking(move || copy(&into)).await;
    let done = done.map_err(|_| Problem::internal())?;
    done.map_err(|why| Problem::new(Code::Conflict, format!("no backup was made: {why}")))?;
    let mut out = b"{\"into\":".to_vec();
    push_string(&mut out, &asked.into.to_string_lossy());
    out.push(b'}');
    Ok(door::json(out))
}
