//! How many bytes does a hot mark take, how many a cold one, and how long does
//! the core alone need to decide, log and apply one, and to list the newest 20?
//!
//! Sketch: a record of about 36 bytes and its share of the user, 40 in all; a
//! few hundred ns a mark, of which finding the row twice is a third; a list is
//! 20 rows of about 50 ns each after a scan of heads at 2 ns a row.
//! Run: `cargo bench -p tideline-history`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tideline_history::kinds::{Kind, KindId, Kinds};
use tideline_history::mark::{Mark, Path};
use tideline_history::outcome::OutcomeRef;
use tideline_history::query::{Filter, ListQuery, PageAt};
use tideline_history::rows::{self, Applied};
use tideline_history::rules::Rules;
use tideline_history::timeline::{Timeline, Touched};
use tideline_store::Op;
use tideline_types::{DAY_MS, Millis};

/// Counts what is really asked of the allocator, 8 bytes of header and
/// rounding to 16 included.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

fn rounded(size: usize) -> usize {
    (size + 8).next_multiple_of(16).max(32)
}

// SAFETY: every call is passed on to the system allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(rounded(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(rounded(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NOW: i64 = 1_796_000_000_000;

/// A small generator of numbers; the same seed gives the same data.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn id_of(object: u64, mixed: bool) -> String {
    let mut dice = Dice(object.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    dice.next();
    if mixed && dice.chance(30) {
        let (a, b) = (dice.next(), dice.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    } else {
        (100_000_000_000_000 + dice.below(900_000_000_000_000)).to_string()
    }
}

struct Data {
    dice: Dice,
    mixed: bool,
    serial: u64,
}

struct Sent {
    id: String,
    part: Option<String>,
    device: Option<&'static str>,
    event_id: String,
    at: i64,
    position: u64,
    duration: u64,
}

impl Data {
    fn mark(&mut self, at: i64) -> Sent {
        let object = self.dice.below(1_000_000);
        let dice = &mut self.dice;
        let duration = (60 + Dice(object + 1).next() % 7000) * 1000;
        self.serial += 1;
        Sent {
            id: id_of(object, self.mixed),
            part: dice.chance(30).then(|| format!("ep{}", 1 + dice.below(24))),
            device: dice.chance(20).then(|| ["tv-1", "phone", "web-2"][dice.below(3) as usize]),
            event_id: format!("{:016x}", self.serial),
            at,
            position: dice.below(duration),
            duration,
        }
    }

    /// Times over 90 days; half of the days with one mark.
    fn times(&mut self, count: usize) -> Vec<i64> {
        let mut times = Vec::with_capacity(count);
        while times.len() < count {
            let day = self.dice.below(90) as i64;
            let marks = if self.dice.chance(50) { 1 } else { 2 + self.dice.below(3) };
            for _ in 0..marks {
                times.push(NOW - (day + 1) * DAY_MS + self.dice.below(DAY_MS as u64) as i64);
            }
        }
        times.truncate(count);
        times.sort_unstable();
        times
    }
}

fn as_mark<'a>(sent: &'a Sent, kind: KindId) -> Mark<'a> {
    Mark {
        user: "100000000",
        kind,
        id: &sent.id,
        part: sent.part.as_deref(),
        position_ms: Some(sent.position),
        duration_ms: Some(sent.duration),
        sent_ms: Some(Millis(sent.at)),
        device: sent.device,
        group: None,
        finished: false,
        event_id: Some(&sent.event_id),
    }
}

fn rules() -> Rules {
    let kind = |name: &str| Kind {
        name: name.into(),
        declared: true,
        retention_days: 91,
        max_records: 1000,
        max_per_day: 0,
        daily_first: true,
    };
    let names = ["video", "article", "comic", "live", "audio", "course", "shop", "product"];
    Rules {
        kinds: Arc::new(Kinds::new(names.into_iter().map(kind).collect())),
        zone: jiff::tz::TimeZone::UTC,
        key: [5; 16],
    }
}

struct Served {
    rules: Rules,
    out: Vec<u8>,
    touched: Touched,
}

impl Served {
    fn take(&mut self, user: &mut Timeline, mark: &Mark<'_>, now: i64) {
        self.out.clear();
        self.rules.mark(user, mark, 0, Millis(now), Path::Live, &mut self.out);
        if !self.out.is_empty() {
            let outcome = OutcomeRef::decode(&self.out).expect("just encoded");
            user.apply(&outcome, &self.rules.kinds, &mut self.touched).expect("known kinds");
        }
    }
}

/// Marks of users by zipf 0.8, mean 50, at most 1000.
fn sizes(users: usize, mean: f64) -> Vec<usize> {
    let weights: Vec<f64> = (1..=users).map(|rank| (rank as f64).powf(-0.8)).collect();
    let mut scale = mean * users as f64 / weights.iter().sum::<f64>();
    for _ in 0..50 {
        let sum: f64 = weights.iter().map(|w| (w * scale).clamp(1.0, 1000.0)).sum();
        scale *= mean * users as f64 / sum;
    }
    weights.iter().map(|w| (w * scale).clamp(1.0, 1000.0).round() as usize).collect()
}

fn sizes_and_bytes(mixed: bool) {
    let mut served = Served { rules: rules(), out: Vec::new(), touched: Touched::default() };
    let kind = served.rules.kinds.find("video").expect("declared");
    let mut data = Data { dice: Dice(42), mixed, serial: 0 };
    let sizes = sizes(20_000, 50.0);
    let mut users: Vec<Timeline> = Vec::with_capacity(sizes.len());
    let before = HELD.load(Ordering::Relaxed);
    let (mut marks, mut cold, mut cold_rows, mut retries) = (0usize, 0usize, 0usize, 0usize);
    let mut now = NOW;
    for &size in &sizes {
        let mut user = Timeline::new();
        for at in data.times(size) {
            let sent = data.mark(at);
            served.take(&mut user, &as_mark(&sent, kind), now);
        }
        now += 3;
        marks += user.len();
        for op in
            rows::plan(&user, &served.touched, Applied::default(), &served.rules.kinds, Millis(now))
        {
            let Op::Put { sort_key, value } = op else { continue };
            if sort_key[0] == 1 {
                retries += value.len();
            } else {
                cold_rows += 1;
                cold += value.len();
            }
        }
        served.touched = Touched::default();
        users.push(user);
    }
    served.out = Vec::new();
    let heap = HELD.load(Ordering::Relaxed) - before;
    let inline = users.len() * size_of::<Timeline>();
    let told: usize = users.iter().map(Timeline::bytes).sum();
    let per = |bytes: usize| bytes as f64 / marks as f64;
    println!(
        "{} ids, {} users, {} marks: hot {:.1} B/mark (heap {:.1} + user {:.1}; told {:.1}); \
         cold values {:.1} B/mark in {:.2} rows/mark, retries {:.1}",
        if mixed { "mixed" } else { "decimal" },
        users.len(),
        marks,
        per(heap + inline),
        per(heap),
        per(inline),
        per(told),
        per(cold),
        per(cold_rows),
        per(retries),
    );
}

/// The median of batches of 100 calls, so that other work on the machine,
/// which comes in slices of milliseconds, falls out.
fn time(what: &str, count: usize, mut f: impl FnMut(usize)) {
    const BATCH: usize = 100;
    // `-- time heartbeat` runs those alone.
    if std::env::args().nth(2).is_some_and(|part| !what.contains(&part) && part != "--bench") {
        return;
    }
    let mut times: Vec<f64> = (0..count / BATCH)
        .map(|batch| {
            let start = Instant::now();
            for at in batch * BATCH..(batch + 1) * BATCH {
                f(at);
            }
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{what}: {:.0} ns", times[times.len() / 2]);
}

fn speeds(size: usize) {
    let mut served = Served { rules: rules(), out: Vec::new(), touched: Touched::default() };
    let kind = served.rules.kinds.find("video").expect("declared");
    let mut data = Data { dice: Dice(7), mixed: true, serial: 0 };
    let mut user = Timeline::new();
    let times = data.times(size);
    let mut sent: Vec<Sent> = times.into_iter().map(|at| data.mark(at)).collect();
    for sent in &sent {
        served.take(&mut user, &as_mark(sent, kind), NOW);
    }
    let mut now = NOW;
    let count = sent.len();
    time(
        &format!("{size} rows: heartbeat on a random row, decide + encode + decode + apply"),
        200_000,
        |at| {
            now += 1;
            let sent = &mut sent[(at * 7919) % count];
            (sent.at, sent.position) = (now, sent.position + 10);
            served.take(&mut user, &as_mark(sent, kind), now);
        },
    );
    time(&format!("{size} rows: heartbeat on one row"), 200_000, |_| {
        now += 1;
        let sent = &mut sent[count / 2];
        (sent.at, sent.position) = (now, sent.position + 10);
        served.take(&mut user, &as_mark(sent, kind), now);
    });
    let query = ListQuery { filter: Filter::default(), page: PageAt::Below(None), limit: 20 };
    time(&format!("{size} rows: newest 20"), 50_000, |_| {
        std::hint::black_box(user.list(&query, &served.rules, Millis(now)));
    });
    time(&format!("{size} rows: one point read"), 200_000, |at| {
        let id = &sent[(at * 7919) % count].id;
        std::hint::black_box(user.row(kind, id, &served.rules, Millis(now)));
    });
    let fresh: Vec<Sent> = (0..20_000).map(|at| data.mark(now + at)).collect();
    let mut other = user.clone();
    time(&format!("{size} rows: a new row (cap 1000)"), 20_000, |at| {
        if at % 50 == 0 && size < 1000 {
            other = user.clone();
        }
        now += 1;
        served.take(&mut other, &as_mark(&fresh[at], kind), now + 20_000);
    });
}

fn main() {
    // `cargo bench -p tideline-history -- time` leaves the sizes out.
    if !std::env::args().any(|arg| arg == "time") {
        for mixed in [true, false] {
            sizes_and_bytes(mixed);
        }
    }
    for size in [50, 1000] {
        speeds(size);
    }
}
