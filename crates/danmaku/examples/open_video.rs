//! How long does a video take to open, with 8,000 comments and with many
//! more? And what do its comments take on disk, and how fast are they imported?
//!
//! Sketch: what is shown is read by one scan and its contents by one scan a
//! segment: 16,000 rows at a microsecond each, 20 ms, whatever is hidden. A
//! comment is four rows of 30 to 60 bytes: 100 bytes after compression.
//!
//! Run: `cargo run --release -p tideline-danmaku --example open_video -- DIR [COMMENTS]`

#![allow(clippy::unwrap_used, reason = "a measurement ends where it is wrong")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tideline_danmaku::ask::ImportItem;
use tideline_danmaku::comment::{Actor, Role};
use tideline_danmaku::{Danmaku, Options};
use tideline_queue::Queue;
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_store::mem::MemJournal;
use tideline_store::{RealClock, Table};
use tideline_types::UserId;
use tideline_wire::danmaku::{Item, Sender};

fn item(n: u64) -> ImportItem {
    let item = Item {
        id: n as i64,
        progress_ms: (n * 7_919 % 7_200_000) as u32,
        sent_ms: 1_700_000_000_000 + n as i64 * 977,
        sender: Sender::new((n * 2_654_435_761) as u32),
        text: format!("comment number {n}, of the usual length").into(),
        ..Item::default()
    };
    ImportItem { item, nth: 0 }
}

fn open(dir: &Path) -> (Danmaku, Arc<LsmTable>) {
    let table = Arc::new(LsmTable::open(dir, &LsmOptions::default()).unwrap());
    let clock = Arc::new(RealClock::new());
    let (journal, rows) = (Arc::new(MemJournal::new()), Arc::clone(&table));
    let queue = Queue::open(journal, rows.clone(), clock.clone(), Default::default()).unwrap();
    let options = Options { limit: Some(8_000), ..Options::default() };
    (Danmaku::open(queue, rows, clock, options, 1).unwrap(), table)
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().expect("a folder for the tables");
    let many: u64 = args.next().map_or(1_000_000, |n| n.parse().unwrap());
    for count in [8_000, many] {
        let dir = Path::new(&dir).join(count.to_string());
        let (danmaku, table) = open(&dir);
        let began = Instant::now();
        let actor = Actor { user: UserId::new("owner").unwrap(), role: Role::Owner };
        let mut sent = 0;
        while sent < count {
            let items = (sent..count.min(sent + 1_000)).map(item).collect::<Vec<_>>();
            sent += items.len() as u64;
            danmaku.import("video", items, actor.clone()).await.unwrap();
        }
        let rate = count as f64 / began.elapsed().as_secs_f64();
        danmaku.close(Duration::from_secs(600));
        let bytes = table.disk_bytes() / count;
        drop((danmaku, table));
        let mut best = Duration::MAX;
        for _ in 0..5 {
            // An owner that knows nothing; the log is empty, as its place is not.
            let table = LsmTable::open(&dir, &LsmOptions::default()).unwrap();
            let began = Instant::now();
            let cold = tideline_danmaku::cold::read(&table, "video").unwrap();
            best = best.min(began.elapsed());
            drop(cold);
        }
        println!("{count} comments: {rate:.0}/s imported, {bytes} bytes each, opened in {best:?}");
    }
}
