//! The lines that have no peer: after a crash, out of memory's reach, and as
//! users grow.

use bytes::Bytes;

use crate::data::{DataSet, Heartbeats, Options, Random, Spec};
use crate::drive::Codec;
use crate::encode::Encoder;
use crate::grpc::{Count, Grpc};
use crate::ours::{LIST, Ours};
use crate::process::used;
use crate::report::{Line, Measure, Target};
use crate::stage::{BATCH, Folder, Output, again, closed, load, measure_ours, now_ms, start_ours};
use crate::{BenchError, HistoryArgs};

/// Batches encoded at a time while loading, so that the client stays small.
const LOAD_MARKS: usize = 1_000_000;

/// Loads all marks of `data` into ours.
fn load_all(ours: &Ours, data: &DataSet) -> Result<(), BenchError> {
    let mut encoder = Encoder::new(data);
    for keys in data.in_order_of_time().chunks(LOAD_MARKS) {
        let batches: Vec<Bytes> = keys
            .chunks_exact(BATCH)
            .map(|keys| {
                let specs: Vec<Spec> = keys.iter().map(|&key| data.spec(key)).collect();
                encoder.record_request(&specs)
            })
            .collect();
        load(ours, &batches)?;
    }
    Ok(())
}

/// From kill -9 to ready, right after the last mark was acknowledged.
pub(crate) fn restart(args: &HistoryArgs, out: &mut Output) -> Result<(), BenchError> {
    let data = DataSet::new(Options::whole(now_ms()).shrunk_to(args.marks()));
    let folder = Folder::new(&args.run, "restart")?;
    let mut ours = start_ours(&args.run, &folder, &[])?;
    out.say("loading for the restart");
    load_all(&ours, &data)?;
    let first = ours.kill_and_restart()?.as_secs_f64();
    let second = ours.kill_and_restart()?.as_secs_f64();
    let measure = Measure {
        value: first,
        resident_mib: Some(used(ours.process.pid())?.resident as f64 / f64::from(1 << 20)),
        ..Measure::default()
    };
    let what = format!("from kill -9 to ready after {} marks", data.len());
    let note =
        format!("killed again at once: {second:.2} s; {} MiB on disk", ours.disk_bytes() >> 20);
    out.line(Line::ours(what, "s", measure, Target::Shown).note(note));
    Ok(())
}

/// Hot bytes of one mark, for the budget of the cold lines.
const HOT_BYTES: u64 = 48;

/// The newest 20 of any user, when memory holds a tenth of them.
pub(crate) fn cold_lists(args: &HistoryArgs, out: &mut Output) -> Result<(), BenchError> {
    let data = DataSet::new(Options::whole(now_ms()).shrunk_to(args.marks()));
    let folder = Folder::new(&args.run, "cold")?;
    let budget = data.len() * HOT_BYTES / 10;
    let settings = [("TIDELINE__HISTORY__HOT_BUDGET_BYTES", budget.to_string())];
    out.say("loading for cold lists");
    let ours = start_ours(&args.run, &folder, &[])?;
    load_all(&ours, &data)?;
    ours.stop()?;
    let ours = start_ours(&args.run, &folder, &settings)?;
    let mut encoder = Encoder::new(&data);
    let mut random = Random::new(data.options().seed ^ 0xc01d);
    let users = u64::from(data.options().users);
    let requests: Vec<Bytes> =
        (0..200_000).map(|_| encoder.list_request((random.draw() % users) as u32)).collect();
    let mut rounds = Vec::new();
    for _ in 0..args.run.rounds {
        let codec = || -> Box<dyn Codec> { Box::new(Grpc::new(LIST, Count::Items, false)) };
        let mut source = again(&requests, args.run.round());
        let mut lanes = [closed(ours.grpc, (8, 1), &codec, &mut source)];
        rounds.push(measure_ours(&ours, &mut lanes)?.remove(0).0);
    }
    rounds.sort_by(|a, b| a.p99_ms.unwrap_or(0.0).total_cmp(&b.p99_ms.unwrap_or(0.0)));
    let median = rounds.swap_remove(rounds.len() / 2);
    let what = format!(
        "newest 20 of random users over gRPC, 8 at a time, hot budget {} MiB for {} marks",
        budget >> 20,
        data.len()
    );
    out.line(Line::ours(what, "lists/s", median, Target::Shown));
    Ok(())
}

/// What one write costs as the users in one table grow.
pub(crate) fn scale(args: &HistoryArgs, out: &mut Output) -> Result<(), BenchError> {
    let sizes: &[u32] =
        if args.run.quick { &[1_000, 100_000] } else { &[1_000, 100_000, 1_000_000] };
    for &users in sizes {
        let options = Options { users, mean: 10, ..Options::whole(now_ms()) };
        let data = DataSet::new(options);
        let folder = Folder::new(&args.run, "scale")?;
        let ours = start_ours(&args.run, &folder, &[])?;
        out.say(&format!("loading {users} users"));
        load_all(&ours, &data)?;
        // As many players as users: hardly a write finds its user just used.
        let beats = Heartbeats::new(&data, users);
        let marks = if args.run.quick { 200_000 } else { 1_000_000 };
        let mut encoder = Encoder::new(&data);
        let batches: Vec<Bytes> = (0..marks / BATCH as u64)
            .map(|at| {
                let from = at * BATCH as u64;
                let specs: Vec<Spec> = (from..from + BATCH as u64).map(|n| beats.spec(n)).collect();
                encoder.record_request(&specs)
            })
            .collect();
        let before = used(ours.process.pid())?.cpu;
        let (measure, seen) = load(&ours, &batches)?;
        let cpu = used(ours.process.pid())?.cpu.saturating_sub(before);
        let micros = cpu.as_secs_f64() * 1e6 / seen.weight.max(1) as f64;
        let note = format!("{:.0} marks/s; {} MiB on disk", measure.value, ours.disk_bytes() >> 20);
        let what = format!("server CPU per durable mark in batches of {BATCH}, {users} users");
        let measure = Measure { value: micros, ..measure };
        out.line(Line::ours(what, "us", measure, Target::Shown).note(note));
    }
    Ok(())
}
