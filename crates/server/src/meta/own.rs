//! `tideline meta own`: lines of standard input, appended to a partition by its
//! one owner.
//!
//! ```text
//!  session ─▶ create /tideline/owners/NAME ─▶ fence: a record under the new epoch ─▶ lines
//!             (or wait until it is gone)       token = the node's create seq
//! ```
//!
//! The lease says who may try, the log says who has: the token is the epoch of
//! one producer, which is the same for all owners of that name, and the log
//! takes nothing of an epoch before the last that wrote. So an owner that was
//! stopped, and wakes after it was taken over, is refused, whatever it
//! believes; and a line is acknowledged only when the log has it.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tideline_meta::kept::OWNERS;
use tideline_wire::meta_v1 as v1;
use tideline_wire::queue_v1 as queue;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Code;

use super::call::{Client, refused};
use crate::cli::{Failure, OwnArgs};

/// How long to wait before a call is made again.
const AGAIN: Duration = Duration::from_millis(200);
/// The key of the record with which an owner begins.
pub(super) const OWNER_KEY: &str = "tideline/owner";

/// Owns until the input ends, or another has taken over.
pub(super) async fn run(client: &mut Client, args: OwnArgs) -> Result<(), Failure> {
    let node = format!("{OWNERS}/{}", args.name);
    let opened = v1::OpenSessionRequest {
        path: OWNERS.into(),
        lease_ms: args.lease_ms,
        op_id: Bytes::new(),
    };
    let opened = client.call(opened, async |tree, request| tree.open_session(request).await);
    let session = opened.await?.session;
    let renewing = tokio::spawn(renew(client.clone(), session, args.lease_ms));
    let held = hold(client, &node, session, &args).await;
    renewing.abort();
    let ends = v1::CloseSessionRequest { path: OWNERS.into(), session };
    // Where it has ended already, or nobody answers, it ends by itself.
    _ = client.call(ends, async |tree, request| tree.close_session(request).await).await;
    held
}

async fn hold(
    client: &mut Client,
    node: &str,
    session: u64,
    args: &OwnArgs,
) -> Result<(), Failure> {
    let token = acquire(client, node, session, args).await?;
    let epoch = u32::try_from(token)
        .map_err(|_| Failure::Failed(format!("{node}: its token {token} is over 32 bits")))?;
    let mut log = Log { client: client.clone(), args, epoch, number: 1 };
    let said = serde_json::json!({ "owner": args.name, "token": token }).to_string();
    let fence = log.append(OWNER_KEY.into(), said).await?;
    eprintln!("{} owns {}/{} from {fence} on", args.name, args.topic, args.partition);
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let line = line.map_err(|error| Failure::failed("standard input", error))?;
        let at = log.append(args.key.clone().into(), line.clone()).await?;
        let mut out = std::io::stdout().lock();
        let told = writeln!(out, "{at} {line}").and_then(|()| out.flush());
        told.map_err(|error| Failure::failed("standard output", error))?;
    }
    Ok(())
}

/// Waits until the lease is ours; its token.
async fn acquire(
    client: &mut Client,
    node: &str,
    session: u64,
    args: &OwnArgs,
) -> Result<u64, Failure> {
    let lease = Duration::from_millis(args.lease_ms.into());
    let mut told = false;
    let mut changes = None;
    loop {
        // Opened before the try: what changes after it is heard.
        if changes.is_none() {
            changes = client.observe(OWNERS.into(), None).await.ok();
        }
        let create = v1::Create {
            path: node.into(),
            value: format!("{}/{}", args.topic, args.partition).into(),
            ephemeral: true,
            sequential: false,
        };
        let ops = vec![v1::Op { op: Some(v1::op::Op::Create(create)) }];
        let request = v1::ApplyRequest { ops, session, op_id: Bytes::new() };
        match client.try_call(request, async |tree, request| tree.apply(request).await).await {
            Ok(written) => return Ok(written.seq),
            Err(status) if status.code() == Code::FailedPrecondition => {
                let found = client.node(node).await?;
                // Ours, by an answer that was lost.
                if let Some(found) = found.as_ref().filter(|found| found.session == session) {
                    return Ok(found.created);
                }
                if !std::mem::replace(&mut told, true) {
                    eprintln!("{node} is held; waiting");
                }
            }
            Err(status) if is_for_later(status.code()) => changes = None,
            Err(status) => return Err(refused(&status)),
        }
        // A connection that is silently gone is found out after a lease.
        let heard = match &mut changes {
            Some(changes) => timeout(lease, changes.message()).await,
            None => Ok(Ok(None)),
        };
        if !matches!(heard, Ok(Ok(Some(_)))) {
            changes = None;
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Renews the session until it is aborted, or has ended.
async fn renew(mut client: Client, session: u64, lease_ms: u32) {
    loop {
        tokio::time::sleep(Duration::from_millis(u64::from(lease_ms) / 3)).await;
        let request = v1::KeepAliveRequest { path: OWNERS.into(), session };
        let kept = client.try_call(request, async |tree, request| tree.keep_alive(request).await);
        if kept.await.is_err_and(|status| !is_for_later(status.code())) {
            eprintln!("the lease has ended; the log says whether another has taken over");
            return;
        }
    }
}

/// The partition, as the owner of `epoch` writes it.
struct Log<'a> {
    client: Client,
    args: &'a OwnArgs,
    epoch: u32,
    /// Of the next record.
    number: u64,
}

impl Log<'_> {
    /// Appends one record; where it stands, once it is synced. Sent again until
    /// there is an answer: the log tells a record that it has.
    async fn append(&mut self, key: Bytes, value: String) -> Result<String, Failure> {
        let name = format!("{}/{}/{}", self.args.name, self.args.topic, self.args.partition);
        let digest = Sha256::digest(name);
        let producer = u64::from_le_bytes(digest[..8].try_into().expect("a digest is longer"));
        let request = queue::ProduceRequest {
            topic: self.args.topic.clone(),
            partition: Some(self.args.partition.into()),
            records: vec![queue::Record { key, value: value.into() }],
            stamp: Some(queue::Stamp { producer, epoch: self.epoch, number: self.number }),
        };
        loop {
            match self.client.produce(request.clone()).await {
                Ok(answer) => {
                    self.number += 1;
                    let at = answer.positions.first();
                    let at = at.map(|at| format!("{}-{}-{}", at.incarnation, at.epoch, at.seq));
                    return at.ok_or_else(|| Failure::Failed("an answer without a place".into()));
                }
                Err(status) if is_for_later(status.code()) => tokio::time::sleep(AGAIN).await,
                Err(status) => return Err(refused(&status)),
            }
        }
    }
}

fn is_for_later(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded | Code::Unknown
    )
}

/// Lines of standard input, read where it may block.
fn lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (tell, told) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if tell.blocking_send(line).is_err() {
                return;
            }
        }
    });
    told
}
