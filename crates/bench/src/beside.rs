//! The lines that have a peer: each side gets the same requests, in turn, on
//! the same core, over the same data.

use std::time::Duration;

use bytes::Bytes;

use crate::data::{DataSet, Heartbeats, Key, Options, Random, Spec};
use crate::drive::{Codec, Seen};
use crate::encode::Encoder;
use crate::grpc::{Count, Grpc};
use crate::http::Http;
use crate::ours::{LIST, RECORD_BATCH};
use crate::report::{Line, Measure, Target};
use crate::resp::{Lists, Writes};
use crate::stage::{
    BATCH, Output, STREAMS, Stage, Who, again, closed, now_ms, once, record_stream,
};
use crate::{BenchError, HistoryArgs, Part, mixed};

/// Marks in a pipeline of Redis, and its connections.
const PIPELINE: usize = 64;
const PIPELINES: (usize, usize) = (8, 1);
/// Kept-alive HTTP connections, and as many of Redis without pipelining.
const HTTP: (usize, usize) = (64, 1);
/// Connections and calls under way on each, for lists over gRPC and in Redis.
const LISTS: (usize, usize) = (8, 8);
/// Players that send heartbeats.
const SESSIONS: u32 = 20_000;

/// A data set, its marks in order, and how far the lines have come in them.
struct Run<'a> {
    args: &'a HistoryArgs,
    data: &'a DataSet,
    beats: Heartbeats<'a>,
    keys: Vec<Key>,
    stage: Stage,
    /// The next heartbeat that nobody has sent.
    beat: u64,
    variant: &'static str,
}

/// Everything over ids as they come.
pub(crate) fn mixed_ids(args: &HistoryArgs, out: &mut Output) -> Result<(), BenchError> {
    let data = DataSet::new(Options::whole(now_ms()).shrunk_to(args.marks()));
    let mut run = Run::start(args, &data, "mixed ids", out)?;
    run.distinct(out, args.wants(Part::Writes))?;
    if args.wants(Part::Writes) {
        run.memory(out)?;
        run.heartbeats(out)?;
    }
    if args.wants(Part::Single) {
        run.singles(out)?;
    }
    if args.wants(Part::Lists) {
        run.lists_over_http(out)?;
        run.lists_over_grpc(out)?;
    }
    if args.wants(Part::Mixed) {
        run.stage.only(Who::Ours)?;
        mixed::lines(args, &data, &run.stage.ours, &mut run.beat, out)?;
    }
    Ok(())
}

/// The batch writes again, over decimal ids only.
pub(crate) fn decimal_ids(args: &HistoryArgs, out: &mut Output) -> Result<(), BenchError> {
    let options = Options { decimal_only: true, ..Options::whole(now_ms()) };
    let data = DataSet::new(options.shrunk_to(args.marks()));
    let mut run = Run::start(args, &data, "decimal ids", out)?;
    run.distinct(out, true)?;
    run.memory(out)
}

impl<'a> Run<'a> {
    fn start(
        args: &'a HistoryArgs,
        data: &'a DataSet,
        variant: &'static str,
        out: &mut Output,
    ) -> Result<Self, BenchError> {
        out.say(&format!("laying out {} marks of {} users", data.len(), data.options().users));
        let keys = data.in_order_of_time();
        let stage = Stage::start(&args.run, &variant.replace(' ', "-"))?;
        out.peer(&format!("redis-server {}", stage.redis.version()?));
        let beats = Heartbeats::new(data, SESSIONS);
        Ok(Self { args, data, beats, keys, stage, beat: 0, variant })
    }

    /// Keys of the batch lines; a tenth is kept for the single ones.
    fn batch_keys(&self) -> &[Key] {
        &self.keys[..self.keys.len() / 10 * 9]
    }

    /// Every mark of the set but the last tenth, in rounds.
    fn distinct(&mut self, out: &mut Output, shown: bool) -> Result<(), BenchError> {
        let mut rounds = Vec::new();
        let (mut lost, all) = (0, self.batch_keys().len());
        for keys in self.batch_keys().chunks(all.div_ceil(self.args.run.rounds)) {
            let specs = |keys: &[Key]| -> Vec<Spec> {
                keys.iter().map(|&key| self.data.spec(key)).collect()
            };
            let mut encoder = Encoder::new(self.data);
            let batches: Vec<Bytes> =
                keys.chunks_exact(BATCH).map(|keys| encoder.record_request(&specs(keys))).collect();
            let (ours, seen) = self.write_ours(&batches)?;
            lost += seen.weight - seen.counted.min(seen.weight);
            drop(batches);
            let pipes: Vec<Bytes> = keys
                .chunks_exact(PIPELINE)
                .map(|keys| encoder.redis_record(&specs(keys)))
                .collect();
            rounds.push((ours, self.write_redis(&pipes, PIPELINE, PIPELINES, None)?));
        }
        if shown {
            let what = format!(
                "durable batch writes, distinct keys, {}: {BATCH} marks a batch over gRPC \
                 RecordStream, {} streams x {} under way; Redis: pipelines of {PIPELINE} marks, {} \
                 connections",
                self.variant, STREAMS.0, STREAMS.1, PIPELINES.0
            );
            let line = Line::from_rounds(what, "marks/s", "redis", rounds, Target::Ratio(5.0));
            out.line(line.note(not_accepted(lost)));
        }
        Ok(())
    }

    /// The same rows over and over; and the same by one call a batch.
    fn heartbeats(&mut self, out: &mut Output) -> Result<(), BenchError> {
        let marks = (self.args.marks() / 10) as usize;
        let (mut rounds, mut unary, mut lost) = (Vec::new(), Vec::new(), 0);
        for _ in 0..self.args.run.rounds {
            let batches = self.encode_beats(marks / BATCH, BATCH, Encoder::record_request);
            let (ours, seen) = self.write_ours(&batches.0)?;
            lost += seen.weight - seen.counted.min(seen.weight);
            let pipes = self.encode_beats(marks / PIPELINE, PIPELINE, Encoder::redis_record);
            let redis = self.write_redis(&pipes.0, PIPELINE, PIPELINES, None)?;
            rounds.push((ours, redis.clone()));
            self.beat = batches.1.max(pipes.1);

            let batches = self.encode_beats(marks / BATCH, BATCH, Encoder::record_request);
            self.beat = batches.1;
            let codec =
                || -> Box<dyn Codec> { Box::new(Grpc::new(RECORD_BATCH, Count::Accepted, false)) };
            let mut source = once(&batches.0, BATCH as u64, None);
            let mut lanes = [closed(self.stage.ours.grpc, STREAMS, &codec, &mut source)];
            unary.push((self.stage.measure(Who::Ours, &mut lanes)?.remove(0).0, redis));
        }
        let what = format!(
            "durable batch writes, repeated heartbeats of {SESSIONS} players: {BATCH} marks a \
             batch over gRPC RecordStream"
        );
        let line = Line::from_rounds(what, "marks/s", "redis", rounds, Target::Shown);
        out.line(line.note(not_accepted(lost)));
        let what = format!("the same by unary RecordBatch, {} under way", STREAMS.0 * STREAMS.1);
        out.line(Line::from_rounds(what, "marks/s", "redis", unary, Target::Shown));
        Ok(())
    }

    /// Resident memory of the servers per mark that they hold.
    fn memory(&self, out: &mut Output) -> Result<(), BenchError> {
        let marks = self.batch_keys().len() as f64;
        let resident = |pid| Ok::<_, BenchError>(crate::process::used(pid)?.resident as f64);
        let each = |bytes: f64| Measure { value: bytes / marks, ..Measure::default() };
        let ours = each(resident(self.stage.ours.process.pid())?);
        let redis = each(resident(self.stage.redis.process.pid())?);
        let what = format!(
            "resident memory of the whole server per mark, {} ({} MiB on disk)",
            self.variant,
            self.stage.ours.disk_bytes() >> 20
        );
        out.line(Line::from_rounds(what, "bytes", "redis", vec![(ours, redis)], Target::Shown));
        Ok(())
    }

    /// One mark a request over HTTP/1.1.
    fn singles(&mut self, out: &mut Output) -> Result<(), BenchError> {
        let (mut app, mut raw, mut again_app) = (Vec::new(), Vec::new(), Vec::new());
        let mut lost = 0;
        let limit = Some(self.args.run.round());
        let keys = self.keys[self.batch_keys().len()..].to_vec();
        for keys in keys.chunks(keys.len().div_ceil(self.args.run.rounds)) {
            let mut encoder = Encoder::new(self.data);
            let specs = || keys.iter().map(|&key| self.data.spec(key));
            let http: Vec<Bytes> = specs().map(|spec| encoder.http_record(&spec)).collect();
            let redis: Vec<Bytes> = specs().map(|spec| encoder.redis_record(&[spec])).collect();
            let (ours, seen) = self.http(Who::Ours, &mut once(&http, 1, limit))?;
            lost += seen.weight - seen.counted.min(seen.weight);
            app.push((ours.clone(), self.http(Who::App, &mut once(&http, 1, limit))?.0));
            raw.push((ours, self.write_redis(&redis, 1, HTTP, limit)?));
            drop(redis);

            // Enough for the round at 100,000 a second.
            let count = (self.args.run.round().as_secs_f64() * 1e5) as usize;
            let beats =
                self.encode_beats(count, 1, |encoder, specs| encoder.http_record(&specs[0]));
            self.beat = beats.1;
            let ours = self.http(Who::Ours, &mut once(&beats.0, 1, limit))?.0;
            again_app.push((ours, self.http(Who::App, &mut once(&beats.0, 1, limit))?.0));
        }
        let what = format!("single durable marks over HTTP/1.1 JSON, {} connections", HTTP.0);
        let distinct = format!("{what}, distinct keys");
        let line =
            Line::from_rounds(&distinct, "marks/s", "app over redis", app, Target::Ratio(1.5));
        out.line(line.note(not_accepted(lost)));
        let name = "redis, no pipelining";
        let line = Line::from_rounds(distinct, "marks/s", name, raw, Target::Shown);
        out.line(line.note("Redis: the three commands of one mark in one write, no HTTP, no JSON"));
        let what = format!("{what}, repeated heartbeats");
        out.line(Line::from_rounds(what, "marks/s", "app over redis", again_app, Target::Shown));
        Ok(())
    }

    fn lists_over_http(&mut self, out: &mut Output) -> Result<(), BenchError> {
        let mut encoder = Encoder::new(self.data);
        let requests = self.readers(|user| encoder.http_list(user));
        let (mut rounds, mut rows) = (Vec::new(), Rows::default());
        for _ in 0..self.args.run.rounds {
            let mut one = |who| {
                let codec = || -> Box<dyn Codec> { Box::new(Http::counting("\"event_ms\"")) };
                let mut source = again(&requests, self.args.run.round());
                let address = self.http_of(who);
                let mut lanes = [closed(address, HTTP, &codec, &mut source)];
                let (measure, seen) = self.stage.measure(who, &mut lanes)?.remove(0);
                rows.add(who, &seen);
                Ok::<_, BenchError>(measure)
            };
            rounds.push((one(Who::Ours)?, one(Who::App)?));
        }
        let what = format!("newest 20 over HTTP/1.1 JSON, {} connections, active users", HTTP.0);
        let line = Line::from_rounds(what, "lists/s", "app over redis", rounds, Target::Ratio(2.0));
        out.line(line.note(rows.note()));
        Ok(())
    }

    fn lists_over_grpc(&mut self, out: &mut Output) -> Result<(), BenchError> {
        let mut encoder = Encoder::new(self.data);
        let messages = self.readers(|user| encoder.list_request(user));
        let commands = self.readers(|user| encoder.redis_newest(user));
        let (mut rounds, mut rows) = (Vec::new(), Rows::default());
        for _ in 0..self.args.run.rounds {
            let codec = || -> Box<dyn Codec> { Box::new(Grpc::new(LIST, Count::Items, false)) };
            let mut source = again(&messages, self.args.run.round());
            let mut lanes = [closed(self.stage.ours.grpc, LISTS, &codec, &mut source)];
            let (ours, seen) = self.stage.measure(Who::Ours, &mut lanes)?.remove(0);
            rows.add(Who::Ours, &seen);
            let codec = || -> Box<dyn Codec> { Box::new(Lists::default()) };
            let mut source = again(&commands, self.args.run.round());
            let mut lanes = [closed(self.stage.redis.address, LISTS, &codec, &mut source)];
            let (redis, seen) = self.stage.measure(Who::Redis, &mut lanes)?.remove(0);
            rows.add(Who::Redis, &seen);
            rounds.push((ours, redis));
        }
        let what = format!(
            "newest 20 over gRPC, {} connections x {} under way; Redis: ZREVRANGE, then MGET, at \
             the same concurrency",
            LISTS.0, LISTS.1
        );
        let line = Line::from_rounds(what, "lists/s", "redis", rounds, Target::Ratio(1.5));
        out.line(line.note(rows.note()));
        Ok(())
    }

    /// Requests for the lists of users as likely as they are active.
    fn readers(&self, mut encode: impl FnMut(u32) -> Bytes) -> Vec<Bytes> {
        let mut random = Random::new(self.data.options().seed ^ 0x11);
        let users = (0..100_000).map(|_| self.data.active_user(random.draw()));
        users.map(&mut encode).collect()
    }

    /// `count` requests of `size` heartbeats, and the heartbeat after them.
    fn encode_beats(
        &self,
        count: usize,
        size: usize,
        encode: impl Fn(&mut Encoder<'a>, &[Spec]) -> Bytes,
    ) -> (Vec<Bytes>, u64) {
        let mut encoder = Encoder::new(self.data);
        let mut next = self.beat;
        let requests = (0..count).map(|_| {
            let specs: Vec<Spec> = (next..next + size as u64).map(|n| self.beats.spec(n)).collect();
            next += size as u64;
            encode(&mut encoder, &specs)
        });
        (requests.collect(), next)
    }

    fn http_of(&self, who: Who) -> std::net::SocketAddr {
        if who == Who::App { self.stage.app.address } else { self.stage.ours.http }
    }

    fn http(
        &self,
        who: Who,
        source: &mut dyn FnMut() -> Option<crate::drive::Request>,
    ) -> Result<(Measure, Seen), BenchError> {
        let codec = || -> Box<dyn Codec> { Box::new(Http::counting("\"accepted\":1")) };
        let mut lanes = [closed(self.http_of(who), HTTP, &codec, source)];
        Ok(self.stage.measure(who, &mut lanes)?.remove(0))
    }

    fn write_ours(&self, batches: &[Bytes]) -> Result<(Measure, Seen), BenchError> {
        let mut source = once(batches, BATCH as u64, None);
        let mut lanes = [closed(self.stage.ours.grpc, STREAMS, &record_stream, &mut source)];
        Ok(self.stage.measure(Who::Ours, &mut lanes)?.remove(0))
    }

    fn write_redis(
        &self,
        pipes: &[Bytes],
        marks: usize,
        connections: (usize, usize),
        limit: Option<Duration>,
    ) -> Result<Measure, BenchError> {
        let codec = || -> Box<dyn Codec> { Box::new(Writes::of(marks)) };
        let mut source = once(pipes, marks as u64, limit);
        let mut lanes = [closed(self.stage.redis.address, connections, &codec, &mut source)];
        Ok(self.stage.measure(Who::Redis, &mut lanes)?.remove(0).0)
    }
}

fn not_accepted(lost: u64) -> String {
    if lost == 0 { "all accepted".into() } else { format!("{lost} marks were NOT ACCEPTED") }
}

/// Rows per list on each side, to show that both answered the same.
#[derive(Default)]
struct Rows {
    ours: (u64, u64),
    peer: (u64, u64),
}

impl Rows {
    fn add(&mut self, who: Who, seen: &Seen) {
        let side = if who == Who::Ours { &mut self.ours } else { &mut self.peer };
        side.0 += seen.counted;
        side.1 += seen.requests;
    }

    fn note(&self) -> String {
        let each = |(rows, lists): (u64, u64)| rows as f64 / lists.max(1) as f64;
        format!("rows a list: ours {:.2}, peer {:.2}", each(self.ours), each(self.peer))
    }
}
