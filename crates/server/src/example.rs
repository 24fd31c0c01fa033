//! `tideline example streams`: a whole chain of streams on this machine.
//!
//! ```text
//!  actions by item ─┬─ video-plays ──▶ tier ──▶ hot keys ─┬─▶ 50 readers, each a
//!   (a topic)       └─ live-gifts  ──▶ tier ──▶ hot keys ─┘   process with caches
//!                     (two operators: counters)
//! ```
//!
//! Every box is a process. This one writes the actions, follows both derived topics
//! itself, and compares what readers say with what it sees; with `--kill` it also
//! kills a tier and a reader in the middle. It prints what each reader holds, and
//! how stale it is; an alarm makes it fail.

mod child;
mod reader;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

use crate::cli::{ExampleArgs, ExampleCommand, Failure, ServerArgs, StreamsArgs};
use crate::client::Client;
use child::Child;
use watch::Watch;

/// The topic that is written.
const ACTIONS: &str = "actions";
/// What is derived from it, and by which operator.
const DERIVED: [(&str, &str); 2] = [
    ("video-plays", r#"{"kind":"video","counter":{"add":"1"}}"#),
    ("live-gifts", r#"{"kind":"live","counter":{"add":"value.gifts"}}"#),
];
/// Items that actions are about; some much more often than others.
const ITEMS: u64 = 1_000;
/// Actions are written this often.
const WRITE_EVERY: Duration = Duration::from_millis(50);
/// A reader may miss a change for so long, in ms, while nothing is killed.
const WITHIN_MS: i64 = 2_000;
/// The same when a tier was killed: it has to start, and readers to come back.
const WITHIN_KILLED_MS: i64 = 30_000;
/// For how long the end is waited for.
const END_MAX: Duration = Duration::from_secs(60);

/// Does what `args` say.
pub(crate) async fn run(args: ExampleArgs) -> Result<(), Failure> {
    match args.command {
        ExampleCommand::Streams(args) => streams(args).await,
        ExampleCommand::Reader { number, tier } => reader::run(number, &tier).await,
    }
}

async fn streams(args: StreamsArgs) -> Result<(), Failure> {
    let folder = Folder::new(args.data.clone())?;
    let server = child::server(&folder.path.join("server"))?;
    let client = Client::new(&ServerArgs { server: server.http.clone(), token: None })?;
    make_topics(&client, args.partitions).await?;
    let mut tiers = Vec::new();
    for (topic, _) in DERIVED {
        tiers.push(child::tier(topic, &folder.path.join(topic), &server.grpc, "127.0.0.1:0")?);
    }
    let urls: Vec<String> = tiers.iter().map(|tier| tier.url.clone()).collect();
    let within = if args.kill { WITHIN_KILLED_MS } else { WITHIN_MS };
    let watch = Watch::start(&server.grpc, args.partitions, within)?;
    let start = |number| child::reader(number, &urls, watch.lines());
    let mut readers: Vec<Child> = (0..args.readers).map(start).collect::<Result<_, _>>()?;
    eprintln!(
        "{} readers follow the hot keys of {} and {}; {} actions a second for {} s",
        args.readers, DERIVED[0].0, DERIVED[1].0, args.rate, args.seconds
    );

    let began = Instant::now();
    let end = began + Duration::from_secs(args.seconds);
    let (mut written, mut killed) = (0_u64, !args.kill);
    while Instant::now() < end {
        let due = began.elapsed().as_millis() as u64 * args.rate / 1_000;
        while written < due {
            let some = (due - written).min(1_000);
            write(&client, written, some).await?;
            written += some;
        }
        if !killed && began.elapsed() > Duration::from_secs(args.seconds) / 2 {
            killed = true;
            eprintln!("kill -9: the tier of {}, and reader 0", DERIVED[0].0);
            let address = tiers[0].url.trim_start_matches("http://").to_owned();
            tiers[0].process.kill();
            readers[0].kill();
            let data = folder.path.join(DERIVED[0].0);
            tiers[0] = child::tier(DERIVED[0].0, &data, &server.grpc, &address)?;
            readers[0] = start(0)?;
        }
        tokio::time::sleep(WRITE_EVERY).await;
    }
    eprintln!("{written} actions written; waiting until every reader has them");
    let whole = watch.until_all_have_all(args.readers, END_MAX).await;
    let report = watch.report();
    print!("{}", report.text);
    drop((readers, tiers, server));
    if report.alarms > 0 {
        return Err(Failure::Failed(format!("{} alarms", report.alarms)));
    }
    if !whole {
        return Err(Failure::Failed("some readers did not get everything".into()));
    }
    Ok(())
}

async fn make_topics(client: &Client, partitions: u16) -> Result<(), Failure> {
    let put = async |topic: &str, body: serde_json::Value| {
        let path = format!("/v1/topics/{topic}");
        let request = || client.request(Method::PUT, &path).json(&body);
        client.send_patiently(request).await.map(drop)
    };
    put(ACTIONS, json!({ "partitions": partitions })).await?;
    for (topic, operator) in DERIVED {
        let operator: serde_json::Value =
            serde_json::from_str(operator).map_err(|e| Failure::failed("operator", e))?;
        put(topic, json!({ "source": ACTIONS, "operator": operator })).await?;
    }
    Ok(())
}

/// Writes `some` actions, of which `before` are written.
async fn write(client: &Client, before: u64, some: u64) -> Result<(), Failure> {
    let action = |n: u64| {
        let value = match n % 3 {
            0 => json!({ "kind": "live", "user": n % 997, "gifts": 1 + n % 5 }),
            _ => json!({ "kind": "video", "user": n % 997 }),
        };
        json!({ "key": item(mix(n)), "value": value.to_string() })
    };
    let records: Vec<_> = (before..before + some).map(action).collect();
    let path = format!("/v1/topics/{ACTIONS}/records");
    let body = json!({ "records": records });
    client.send(client.request(Method::POST, &path).json(&body)).await?;
    Ok(())
}

/// An item by 64 even bits: the lower its number, the more often.
fn item(bits: u64) -> String {
    let part = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    format!("item-{:03}", (part.powi(4) * ITEMS as f64) as u64)
}

/// Spreads numbers evenly (splitmix64): the example is the same each time.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Where everything lies; removed at the end if nobody named it.
struct Folder {
    path: PathBuf,
    ours: bool,
}

impl Folder {
    fn new(named: Option<PathBuf>) -> Result<Self, Failure> {
        let ours = named.is_none();
        let path = named.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("tideline-example-{}", std::process::id()))
        });
        let make = |path: &Path| std::fs::create_dir_all(path);
        make(&path).map_err(|e| Failure::failed(path.display(), e))?;
        Ok(Self { path, ours })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
