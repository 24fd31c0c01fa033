//! How stale is a cache that follows 100,000 updates a second over gRPC, and what does an entry take?
//!
//! Updates of 200 bytes, uniform over 100,000 keys that are all held, 500 in a request on one stream;
//! synced before they are pushed. An update carries the moment at which its request was due; it is
//! stale until the cache has applied it. The cache is the client library's, and shares the client's
//! core with the producer.
//!
//! Sketch: an update costs the client 2 us (parse, look up, replace), so 100,000 a second take a fifth
//! of its core; a sync of 1 ms and a push give a median of 1 to 2 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use tideline_client::{Cache, Change, Filled, Follower, From, Next, Options, Source};
use tideline_types::{PartitionId, Seq, TopicName};

use super::follow::wait_until_heard;
use super::produce::{TOPIC, VALUE_BYTES, produce_stream, start_with_topic};
use crate::data::Random;
use crate::drive::{Lane, Request, drive};
use crate::encode::put_bytes;
use crate::process::{Meter, used};
use crate::report::{Line, Measure, Target};
use crate::stage::{Folder, Output, PATIENCE};
use crate::{BenchError, StreamsArgs};

/// Keys of the topic, all held.
const KEYS: u64 = 100_000;
/// Updates a second, and in a request.
const PACE: f64 = 100_000.0;
const BATCH: u64 = 500;
/// No entry is let go.
const CACHE_BYTES: usize = 1 << 30;

/// All lines of caches.
pub(super) fn lines(args: &StreamsArgs, out: &mut Output) -> Result<(), BenchError> {
    let before = used(std::process::id())?.resident;
    let cache = full();
    let grown = used(std::process::id())?.resident.saturating_sub(before);
    let measure = Measure { value: grown as f64 / KEYS as f64, ..Measure::default() };
    let what = format!("an entry of a cache, {VALUE_BYTES} bytes under 10");
    let line = Line::ours(what, "bytes", measure, Target::Shown);
    let reckoned = cache.bytes() as f64 / KEYS as f64;
    out.line(line.note(format!("the cache reckons with {reckoned:.0}")));

    let what = format!("a cache that follows {PACE} updates/s over {KEYS} keys: staleness, p99");
    out.say(&what);
    let folder = Folder::new(&args.run, "cache")?;
    let ours = start_with_topic(args, &folder)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (heard, begun) = (Arc::<AtomicU64>::default(), Instant::now());
    let follower = {
        let (url, stop, heard) = (format!("http://{}", ours.grpc), stop.clone(), heard.clone());
        std::thread::spawn(move || follow(&url, cache, begun, &stop, &heard))
    };
    let meter = Meter::start(&[ours.process.pid()])?;
    let (first, limit) = (begun.elapsed(), args.run.round());
    let (mut random, mut number) = (Random::new(7), 0_u64);
    let mut source = || {
        let due = first + Duration::from_secs_f64((number * BATCH) as f64 / PACE);
        if due > first + limit {
            return None;
        }
        number += 1;
        Some(Request { payload: updates(due, || random.draw() % KEYS), weight: BATCH })
    };
    let lane = Lane {
        address: ours.grpc,
        connections: 1,
        depth: 4_096,
        codec: &produce_stream,
        source: &mut source,
        pace: Some(PACE / BATCH as f64),
    };
    let sent = drive(&mut [lane], PATIENCE)?.remove(0);
    wait_until_heard(&heard, sent.weight);
    let took = (begun.elapsed() - first).as_secs_f64();
    let cost = meter.stop()?;
    stop.store(true, Ordering::Relaxed);
    let latency = follower.join().map_err(|_| BenchError::Protocol("the cache has ended"))??;
    let applied = latency.len();
    if applied < sent.weight {
        return Err(BenchError::Protocol("the cache has missed updates"));
    }
    let measure = Measure { failed: sent.failed, ..Measure::p99(&latency).at(&cost) };
    let rate = applied as f64 / took;
    let line = Line::ours(what, "ms", measure, Target::Shown);
    out.line(line.note(format!("{applied} updates were applied, {rate:.0} a second")));
    Ok(())
}

fn key(number: u64) -> String {
    format!("key-{number:06}")
}

/// A cache that holds every key, as fills from a store leave it.
fn full() -> Cache {
    let mut cache = Cache::new(Seq::ZERO, CACHE_BYTES);
    for number in 0..KEYS {
        let filling = cache.begin(key(number).as_bytes());
        let value = Filled::Bytes(vec![b'.'; VALUE_BYTES]);
        cache.finish(filling, Some(value), Seq::ZERO).expect("nothing is pushed meanwhile");
    }
    cache
}

/// A `ProduceRequest` of a batch of updates, all due at one moment.
fn updates(due: Duration, mut which: impl FnMut() -> u64) -> Bytes {
    let mut request = Vec::with_capacity(BATCH as usize * (VALUE_BYTES + 32));
    put_bytes(1, TOPIC.as_bytes(), &mut request);
    let head = format!("{{\"set\":\"{:016x}", due.as_nanos());
    let value = format!("{head:.<width$}\"}}", width = VALUE_BYTES - 2);
    let mut record = Vec::new();
    for _ in 0..BATCH {
        record.clear();
        put_bytes(1, key(which()).as_bytes(), &mut record);
        put_bytes(2, value.as_bytes(), &mut record);
        put_bytes(3, &record, &mut request);
    }
    request.into()
}

/// When an update was due.
fn due_of(change: &Change) -> Option<u64> {
    let Change::Set(json) = change else { return None };
    let digits = std::str::from_utf8(json.get(1..17)?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

/// Follows into the cache until told to stop; how stale each update was.
fn follow(
    url: &str,
    mut cache: Cache,
    begun: Instant,
    stop: &AtomicBool,
    heard: &AtomicU64,
) -> Result<Histogram<u64>, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| BenchError::io("runtime", &e))?;
    let mut latency = Histogram::new_with_bounds(1, 600_000_000_000, 3)
        .expect("the bounds and three digits are valid");
    runtime.block_on(async {
        let failed = |why: String| BenchError::Ours(why);
        let source = Source::new(url, None).map_err(|e| failed(e.to_string()))?;
        let topic = TopicName::new(TOPIC).expect("it is a name");
        let options = Options::default();
        let mut follower = Follower::new(source, topic, PartitionId(0), From::Earliest, options);
        while !stop.load(Ordering::Relaxed) {
            let glance = tokio::time::timeout(Duration::from_millis(20), follower.next());
            let Ok(next) = glance.await else { continue };
            let frame = match next.map_err(|e| failed(e.to_string()))? {
                Next::Range(frame) => frame,
                Next::Head { .. } => continue,
                Next::Stopped(why) => return Err(failed(why.to_string())),
            };
            for record in frame.records() {
                let Some(change) = Change::read(record.value) else { continue };
                cache.push(record.seq, record.sub, record.key, &change);
                let now = begun.elapsed().as_nanos() as u64;
                if let Some(due) = due_of(&change) {
                    latency.saturating_record(now.saturating_sub(due).max(1));
                }
            }
            cache.advance(frame.range().through);
            heard.store(latency.len(), Ordering::Relaxed);
        }
        Ok(latency)
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tideline_client::Found;
    use tideline_wire::queue_v1::ProduceRequest;

    use super::*;

    #[test]
    fn an_update_says_when_it_was_due_and_changes_what_the_cache_holds() {
        let request = ProduceRequest::decode(updates(Duration::from_nanos(255), || 7)).unwrap();
        assert_eq!(request.records.len() as u64, BATCH);
        let record = &request.records[0];
        assert_eq!(record.value.len(), VALUE_BYTES);
        let change = Change::read(&record.value).unwrap();
        assert_eq!(due_of(&change), Some(255));
        let mut cache = full();
        cache.push(Seq(1), 0, &record.key, &change);
        assert_eq!(cache.seq_of(b"key-000007"), Some(Seq(1)));
        assert!(matches!(cache.get(b"key-000007"), Found::Value(value) if value[1..5] == *b"0000"));
    }
}
