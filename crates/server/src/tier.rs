//! `tideline tier`: a store that follows a topic of operations on keys, in a
//! folder of its own, and answers what keys have.
//!
//! It has no log: what it does not have, it follows again, from the server or,
//! where that is gone there, from a snapshot of another tier.

mod keep;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tideline_client::Source;
use tideline_gateway::bind_tier;
use tideline_store::Table;
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_tier::{Options, Tier};
use tideline_types::TopicName;
use tideline_types::limits::TIER_HOT_KEYS_MAX;
use tokio::task::JoinSet;

use crate::cli::{Failure, TierArgs};
use crate::config::{LogFormat, Logging};
use crate::folder::DataFolder;
use crate::logging;
use keep::Keeper;

/// Which keys are hot is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Counts are halved at every such look.
const COOL_EVERY: u32 = 8;
/// How long a server that is not there yet is waited for, between tries.
const AGAIN: Duration = Duration::from_millis(500);

/// Follows and answers until SIGTERM or SIGINT.
pub(crate) async fn run(args: TierArgs) -> Result<(), Failure> {
    let topic = TopicName::new(&args.topic).map_err(|bad| Failure::Usage(bad.to_string()))?;
    let address: SocketAddr =
        args.listen.parse().map_err(|e| Failure::Usage(format!("--listen: {e}")))?;
    let token = args.token.as_deref();
    if !address.ip().is_loopback() && token.is_none() {
        let why = "--listen: other machines can reach this address, so --token is required";
        return Err(Failure::Usage(why.into()));
    }
    if !(1..=TIER_HOT_KEYS_MAX).contains(&args.hot_keys) {
        return Err(Failure::Usage(format!("--hot-keys: 1 to {TIER_HOT_KEYS_MAX}")));
    }
    let source = |url: &str| Source::new(url, token).map_err(|e| Failure::Usage(e.to_string()));
    let server = source(&args.grpc)?;
    let peers = args.peer.iter().map(|url| source(url)).collect::<Result<Vec<_>, _>>()?;
    let stop = crate::serve::stop_signal()?;
    logging::start(&Logging { level: "info".into(), format: LogFormat::Text })?;

    let folder = DataFolder::open_or_make(&args.data);
    let folder = folder.map_err(|e| Failure::Failed(e.to_string()))?;
    let table = crate::cli::here(|| LsmTable::open(&folder.tables(), &LsmOptions::default()));
    let table = Arc::new(table.map_err(|e| Failure::failed(args.data.display(), e))?);
    let about = loop {
        match server.topic(&topic).await {
            Ok(about) => break about,
            Err(error) if error.is_final() => return Err(Failure::failed("--grpc", error)),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    let options = Options { hot_keys_max: args.hot_keys, ..Options::default() };
    let opened =
        crate::cli::here(|| Tier::open(table.clone(), topic.clone(), about.partitions, &options));
    let tier = opened.map_err(|e| Failure::failed(args.data.display(), e))?;
    let bound = bind_tier(tier.clone(), address, token).await;
    let bound = bound.map_err(|e| Failure::failed("listening", e))?;
    println!("tier of {topic} on http://{}", bound.address());

    let keeper = Keeper {
        tier: tier.clone(),
        server,
        topic,
        incarnation: about.incarnation,
        peers,
        from_earliest: args.from_earliest,
    };
    let mut tasks = JoinSet::new();
    for partition in 0..about.partitions {
        tasks.spawn(keeper.clone().keep(tideline_types::PartitionId(partition)));
    }
    tasks.spawn(look_forever(tier));
    let ended = tokio::select! {
        ended = tasks.join_next() => ended,
        _ = bound.serve(stop) => None,
    };
    tasks.shutdown().await;
    let synced = crate::cli::here(|| table.sync());
    match ended {
        Some(Ok(Err(failure))) => Err(failure),
        Some(Err(error)) => Err(Failure::failed("following", error)),
        _ => synced.map_err(|e| Failure::failed(args.data.display(), e)),
    }
}

async fn look_forever(tier: Tier) -> Result<(), Failure> {
    for look in 1_u32.. {
        tokio::time::sleep(LOOK_EVERY).await;
        tier.look(look % COOL_EVERY == 0);
    }
    Ok(())
}
