//! How long does a read take while writes come in?
//!
//! 20,000 lists a second beside 20,000 marks a second, each on a timetable:
//! what waits is charged from when it was due. The field's best say 5 ms at
//! p99.9.

use bytes::Bytes;

use crate::data::{DataSet, Heartbeats, Random, Spec};
use crate::drive::{Codec, Lane};
use crate::encode::Encoder;
use crate::grpc::{Count, Grpc};
use crate::ours::{LIST, Ours, RECORD_STREAM};
use crate::report::{Line, Measure, Target};
use crate::stage::{Output, measure_ours, once};
use crate::{BenchError, HistoryArgs};

/// Lists, and marks, a second.
const RATE: f64 = 20_000.0;
/// Players that send heartbeats.
const SESSIONS: u32 = 20_000;

/// Both lines: marks in batches of 100, and one by one.
pub(crate) fn lines(
    args: &HistoryArgs,
    data: &DataSet,
    ours: &Ours,
    beat: &mut u64,
    out: &mut Output,
) -> Result<(), BenchError> {
    for size in [100, 1] {
        let mut rounds = Vec::new();
        for _ in 0..args.run.rounds {
            rounds.push(round(args, data, ours, beat, size)?);
        }
        rounds.sort_by(|a, b| a.0.p999_ms.unwrap_or(0.0).total_cmp(&b.0.p999_ms.unwrap_or(0.0)));
        let (reads, writes) = rounds.swap_remove(rounds.len() / 2);
        let note = format!(
            "timetabled; the writes beside: {:.0} marks/s, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, \
             {} failed; a read's figure is its p99.9",
            writes.value,
            writes.p50_ms.unwrap_or(f64::NAN),
            writes.p99_ms.unwrap_or(f64::NAN),
            writes.p999_ms.unwrap_or(f64::NAN),
            writes.failed
        );
        let what = format!(
            "newest 20 over gRPC at {RATE} a second beside {RATE} durable marks a second, {}",
            if size == 1 { "one a message".into() } else { format!("{size} a message") }
        );
        let shown = Measure { value: reads.p999_ms.unwrap_or(f64::NAN), ..reads };
        out.line(Line::ours(what, "ms", shown, Target::AtMost(5.0)).note(note));
    }
    Ok(())
}

/// One run: (reads, writes).
fn round(
    args: &HistoryArgs,
    data: &DataSet,
    ours: &Ours,
    beat: &mut u64,
    size: u64,
) -> Result<(Measure, Measure), BenchError> {
    let seconds = args.run.round().as_secs_f64() * 2.0;
    let mut encoder = Encoder::new(data);
    let beats = Heartbeats::new(data, SESSIONS);
    let count = (RATE * seconds) as u64 / size;
    let writes: Vec<Bytes> = (0..count)
        .map(|_| {
            let specs: Vec<Spec> = (*beat..*beat + size).map(|n| beats.spec(n)).collect();
            *beat += size;
            encoder.record_request(&specs)
        })
        .collect();
    let mut random = Random::new(data.options().seed ^ *beat);
    let reads: Vec<Bytes> = (0..(RATE * seconds) as u64)
        .map(|_| encoder.list_request(data.active_user(random.draw())))
        .collect();
    let list = || -> Box<dyn Codec> { Box::new(Grpc::new(LIST, Count::Items, false)) };
    let record = || -> Box<dyn Codec> { Box::new(Grpc::new(RECORD_STREAM, Count::Accepted, true)) };
    let (mut read, mut write) = (once(&reads, 1, None), once(&writes, size, None));
    let mut lanes = [
        Lane {
            address: ours.grpc,
            connections: 8,
            depth: 64,
            codec: &list,
            source: &mut read,
            pace: Some(RATE),
        },
        Lane {
            address: ours.grpc,
            connections: 8,
            depth: 64,
            codec: &record,
            source: &mut write,
            pace: Some(RATE / size as f64),
        },
    ];
    let mut measures = measure_ours(ours, &mut lanes)?.into_iter().map(|(measure, _)| measure);
    let reads = measures.next().unwrap_or_default();
    Ok((reads, measures.next().unwrap_or_default()))
}
