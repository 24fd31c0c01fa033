//! `tideline serve`: settings, engines, parts, faces; then waiting; then the
//! same backwards.

use std::sync::Arc;
use std::time::Duration;

use tideline_catalogue::Catalogue;
use tideline_danmaku::Danmaku;
use tideline_gateway::{Gateway, Parts};
use tideline_history::outcome::OutcomeRef;
use tideline_history::{History, prepare};
use tideline_meta::Meta;
use tideline_meta::kept::TopicRows;
use tideline_operators::{Operators, Shape};
use tideline_queue::Queue;
use tideline_store::{Clock, Journal};
use tideline_types::TopicName;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::banner::Banner;
use crate::cli::{Failure, Natives, ServeArgs};
use crate::config::Config;
use crate::engines::{self, Engines};
use crate::folder::DataFolder;
use crate::options::Options;
use crate::{demo, logging, pages, settings};

/// Old records are looked for this often.
const RETENTION_EVERY: Duration = Duration::from_secs(20);

/// Starts, serves until SIGTERM or SIGINT, and stops in good order.
pub(crate) async fn run(args: ServeArgs, natives: Natives) -> Result<(), Failure> {
    let config = settings::load(&args.layers, &flags(&args))?;
    let options = Options::of(&config).map_err(|e| Failure::Usage(e.to_string()))?;
    logging::start(&config.logging)?;
    let stop = stop_signal()?;

    let engines = open_engines(&config, &options)?;
    let queue = failing(
        "topics",
        Queue::open(
            engines.journal.clone(),
            engines.table.clone(),
            engines.clock.clone(),
            options.queue,
        ),
    )?;
    let rules = failing("kinds", prepare(&*engines.table, options.kinds, options.zone))?;
    let history = open_history(&engines, &queue, rules, options.history, options.partitions)?;
    let danmaku = open_danmaku(&engines, &queue, options.danmaku, options.partitions)?;
    let catalogue =
        Catalogue::open(engines.table.clone(), options.catalogue, engines.clock.clone());
    let catalogue = catalogue.map_err(|e| Failure::Usage(e.to_string()))?;
    let meta = open_meta(&engines, &queue, options.meta)?;
    failing("metadata", meta.ensure_kept().await)?;
    declare_operators(queue.clone(), &meta, natives).await?;
    let gateway = open_gateway(&engines, &queue, &history, &danmaku, &catalogue, options.gateway)?;
    gateway.serve_meta(meta.clone());
    let faces = failing("listening", gateway.bind().await)?;
    if args.demo {
        demo::fill(&history, &danmaku, &catalogue, engines.clock.now()).await?;
    }
    let cleaning = clean_forever(queue.clone(), engines.clock.clone());

    let token = failing("tokens", gateway.first_token())?;
    let banner = Banner {
        http: faces.http(),
        grpc: faces.grpc(),
        data: &config.data,
        page: &demo::page(),
        token: token.as_deref(),
    };
    print!("{}", banner.text());
    tracing::info!(http = %faces.http(), grpc = %faces.grpc(), data = %config.data.display(), "ready");

    let limit = Duration::from_millis(config.server.stop_ms);
    let whole = faces.serve(stop).await;
    if !whole {
        tracing::warn!("requests were cut off: they took longer than server.stop_ms");
    }
    cleaning.abort();
    close(history, danmaku, meta, engines.journal.clone(), limit).await?;
    tracing::info!("stopped");
    Ok(())
}

/// What makes the operators of topics that are derived.
pub(crate) fn operators(natives: Natives) -> Operators {
    let history = TopicName::new(tideline_history::TOPIC).expect("the name is within its alphabet");
    let outcome: Shape = |record| {
        let user = std::str::from_utf8(record.key).ok();
        Some(OutcomeRef::decode(record.value).ok()?.to_json(user))
    };
    Operators::new([(history, outcome)]).with_natives(natives)
}

/// Lets topics be derived, and makes the operators of those that are.
/// On a thread that may wait for the tree: on one core, this one runs the tree's
/// calls.
async fn declare_operators(queue: Queue, meta: &Meta, natives: Natives) -> Result<(), Failure> {
    let maker = Arc::new(operators(natives));
    let rows = Arc::new(TopicRows::new(meta.clone(), Handle::current()));
    let made = tokio::task::spawn_blocking(move || {
        queue.keep_declared_in(rows)?;
        queue.set_maker(maker)
    });
    let made = failing("derived topics", made.await)?;
    for (topic, why) in failing("derived topics", made)? {
        tracing::error!(%topic, why, "the operator of a derived topic cannot be made");
    }
    Ok(())
}

/// The flags that are settings.
fn flags(args: &ServeArgs) -> Vec<(&'static str, String, &'static str)> {
    let data = args.data.as_ref().map(|path| path.display().to_string());
    let all = [
        ("data", data, "--data"),
        ("server.http", args.http.clone(), "--http"),
        ("server.grpc", args.grpc.clone(), "--grpc"),
    ];
    all.into_iter().filter_map(|(key, value, flag)| Some((key, value?, flag))).collect()
}

fn open_engines(config: &Config, options: &Options) -> Result<Engines, Failure> {
    let folder = DataFolder::open_or_make(&config.data);
    let folder = folder.map_err(|e| Failure::Failed(e.to_string()))?;
    let opened = crate::cli::here(|| Engines::open(folder, options.journal, &options.tables));
    failing(config.data.display(), opened)
}

fn open_history(
    engines: &Engines,
    queue: &Queue,
    rules: tideline_history::rules::Rules,
    options: tideline_history::Options,
    partitions: u16,
) -> Result<History, Failure> {
    let opened = crate::cli::here(|| {
        History::open(
            queue.clone(),
            engines.table.clone(),
            engines.clock.clone(),
            Arc::new(rules),
            options,
            partitions,
        )
    });
    let history = failing("history", opened)?;
    if history.partitions() != partitions {
        tracing::warn!(
            asked = partitions,
            kept = history.partitions(),
            "queue.partitions is fixed once data exists"
        );
    }
    Ok(history)
}

fn open_danmaku(
    engines: &Engines,
    queue: &Queue,
    options: tideline_danmaku::Options,
    partitions: u16,
) -> Result<Danmaku, Failure> {
    let opened = crate::cli::here(|| {
        let (table, clock) = (engines.table.clone(), engines.clock.clone());
        Danmaku::open(queue.clone(), table, clock, options, partitions)
    });
    failing("danmaku", opened)
}

fn open_meta(
    engines: &Engines,
    queue: &Queue,
    options: tideline_meta::Options,
) -> Result<Meta, Failure> {
    let opened = crate::cli::here(|| {
        let (table, clock) = (engines.table.clone(), engines.clock.clone());
        Meta::open(queue.clone(), table, clock, options)
    });
    let meta = failing("metadata", opened)?;
    let asked = options.partitions;
    let topics = queue.topics();
    let topic = topics.iter().find(|topic| topic.name.as_str() == tideline_meta::TOPIC);
    if let Some(kept) = topic.map(|topic| topic.partitions).filter(|kept| *kept != asked) {
        tracing::warn!(asked, kept, "meta.partitions is fixed once data exists");
    }
    Ok(meta)
}

fn open_gateway(
    engines: &Engines,
    queue: &Queue,
    history: &History,
    danmaku: &Danmaku,
    catalogue: &Catalogue,
    options: tideline_gateway::Options,
) -> Result<Gateway, Failure> {
    let parts = Parts {
        history: history.clone(),
        danmaku: danmaku.clone(),
        queue: queue.clone(),
        catalogue: catalogue.clone(),
        table: engines.table.clone(),
        clock: engines.clock.clone(),
    };
    let gateway = Gateway::open(parts, options).map_err(|e| Failure::Usage(e.to_string()))?;
    gateway.show_pages(pages::FILES);
    let (journal, table) = (engines.journal.clone(), engines.table.clone());
    let queue = queue.clone();
    gateway.enable_backup(Arc::new(move |into| {
        let _nothing_is_freed = queue.hold_still();
        engines::backup(&*journal, &*table, into).map_err(|e| e.to_string())
    }));
    Ok(gateway)
}

/// Frees what is too old, now and then.
fn clean_forever(queue: Queue, clock: Arc<dyn Clock>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut every = tokio::time::interval(RETENTION_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let (queue, now) = (queue.clone(), clock.now());
            match tokio::task::spawn_blocking(move || queue.run_retention(now)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "old records could not be freed"),
                Err(error) => tracing::error!(%error, "freeing old records ended in a panic"),
            }
        }
    })
}

/// Ends when the process is told to stop. Both signals are taken from now on.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminate = failing("signals", signal(SignalKind::terminate()))?;
    let mut interrupt = failing("signals", signal(SignalKind::interrupt()))?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    })
}

/// Brings everything to rest within `limit`; the log holds what does not come
/// to rest in time.
async fn close(
    history: History,
    danmaku: Danmaku,
    meta: Meta,
    journal: Arc<dyn Journal>,
    limit: Duration,
) -> Result<(), Failure> {
    let closed = tokio::task::spawn_blocking(move || {
        std::thread::scope(|both| {
            both.spawn(|| danmaku.close(limit));
            both.spawn(|| meta.close(limit));
            history.close(limit);
        });
        journal.close()
    });
    let closed = closed.await.map_err(|e| Failure::failed("closing", e))?;
    failing("closing the log", closed)
}

fn failing<T, E: std::fmt::Display>(
    what: impl std::fmt::Display,
    result: Result<T, E>,
) -> Result<T, Failure> {
    result.map_err(|error| Failure::failed(what, error))
}
