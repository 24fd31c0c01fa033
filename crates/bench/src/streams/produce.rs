//! Records of 200 bytes, one a request, so many under way on one connection:
//! ours synced before each answer, the peer synced always and by its default.

use bytes::Bytes;

use super::nats::{Nats, Publish, publish};
use crate::drive::Codec;
use crate::encode::{put_bytes, put_number};
use crate::grpc::{Count, Grpc};
use crate::ours::Ours;
use crate::report::{Line, Target};
use crate::stage::{Folder, Output, again, closed, measure, measure_ours, start_ours};
use crate::{BenchError, StreamsArgs};

/// `ProduceStream` of the queue service.
const PRODUCE: &str = "/tideline.queue.v1.QueueService/ProduceStream";
const CREATE: &str = "/tideline.queue.v1.QueueService/CreateTopic";
pub(super) const TOPIC: &str = "bench";
/// Bytes of a record's value.
pub(super) const VALUE_BYTES: usize = 200;
/// Records under way.
const WINDOWS: [usize; 3] = [1, 16, 500];

/// All lines of producing.
pub(super) fn lines(args: &StreamsArgs, out: &mut Output) -> Result<(), BenchError> {
    out.peer(&format!("nats-server {}", Nats::version(&args.nats)?));
    let folder = Folder::new(&args.run, "streams")?;
    let ours = start_with_topic(args, &folder)?;
    let value = [b'r'; VALUE_BYTES];
    for (syncs, name) in [(true, "JetStream, sync always"), (false, "JetStream, its default")] {
        let dir = folder.path().join(if syncs { "always" } else { "default" });
        std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("make a folder", &e))?;
        let nats = Nats::start(args.run.server_core, &args.nats, &dir, syncs)?;
        for window in WINDOWS {
            let what = format!("produce, {VALUE_BYTES}-byte records, {window} under way");
            out.say(&what);
            let (ours_of, theirs_of) = ([record(&value)], [publish(&value)]);
            let mut rounds = Vec::new();
            for _ in 0..args.run.rounds {
                nats.process.freeze()?;
                ours.process.thaw()?;
                let mut source = again(&ours_of, args.run.round());
                let lane = closed(ours.grpc, (1, window), &produce_stream, &mut source);
                let own = measure_ours(&ours, &mut [lane])?.remove(0).0;
                ours.process.freeze()?;
                nats.process.thaw()?;
                let mut source = again(&theirs_of, args.run.round());
                let lane = closed(nats.address, (1, window), &publisher, &mut source);
                let their = measure(&[nats.process.pid()], &mut [lane])?.remove(0).0;
                rounds.push((own, their));
            }
            let target = match (syncs, window) {
                (true, _) => Target::Ratio(2.0),
                (false, 500) => Target::Ratio(1.0),
                (false, _) => Target::Shown,
            };
            out.line(Line::from_rounds(what, "records/s", name, rounds, target));
        }
        ours.process.thaw()?;
    }
    Ok(())
}

/// Ours, with a topic of one partition.
pub(super) fn start_with_topic(args: &StreamsArgs, folder: &Folder) -> Result<Ours, BenchError> {
    let ours = start_ours(&args.run, folder, &[])?;
    let mut create = Vec::new();
    put_bytes(1, TOPIC.as_bytes(), &mut create);
    put_number(2, 1, &mut create);
    let once = [Bytes::from(create)];
    let mut source = crate::stage::once(&once, 1, None);
    let lane = closed(ours.grpc, (1, 1), &create_topic, &mut source);
    let made = measure(&[ours.process.pid()], &mut [lane])?.remove(0).1;
    match made.failed {
        0 => Ok(ours),
        _ => Err(BenchError::Ours("the topic was not made".into())),
    }
}

/// A `ProduceRequest` of one record.
pub(super) fn record(value: &[u8]) -> Bytes {
    let (mut record, mut request) = (Vec::new(), Vec::new());
    put_bytes(2, value, &mut record);
    put_bytes(1, TOPIC.as_bytes(), &mut request);
    put_bytes(3, &record, &mut request);
    request.into()
}

pub(super) fn produce_stream() -> Box<dyn Codec> {
    Box::new(Grpc::new(PRODUCE, Count::Items, true))
}

fn create_topic() -> Box<dyn Codec> {
    Box::new(Grpc::new(CREATE, Count::Items, false))
}

pub(super) fn publisher() -> Box<dyn Codec> {
    Box::new(Publish::default())
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tideline_wire::queue_v1::ProduceRequest;

    use super::*;

    #[test]
    fn a_request_is_what_the_server_reads() {
        let request = ProduceRequest::decode(record(b"value")).unwrap();
        assert_eq!((&*request.topic, request.partition), (TOPIC, None));
        assert_eq!((request.records.len(), &request.records[0].value[..]), (1, &b"value"[..]));
    }
}
