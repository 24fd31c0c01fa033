//! The metadata tree beside etcd and ZooKeeper: how many writes does one core
//! make durable over sixteen subtrees, and how soon are a thousand observers
//! told?
//!
//! Sketch: all three sync before they answer, and gather what comes meanwhile.
//! With 256 calls under way a sync carries some dozens; what is left is what a
//! call costs, and ours has no request processors between threads. To tell an
//! observer is one frame that is kept once for all, and a write to a socket.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::drive::Codec;
use crate::encode::put_bytes;
use crate::etcd::{self, Etcd};
use crate::grpc::{Count, Grpc};
use crate::ours::{APPLY, APPLY_STREAM, DECLARE, OBSERVE, Ours};
use crate::process::Process;
use crate::report::{Line, Measure, Target};
use crate::stage::{Folder, Output, again, closed, measure, measure_ours, once, start_ours};
use crate::watch::{Scene, Told, told};
use crate::zookeeper::{self, Session, ZooKeeper};
use crate::{BenchError, StreamsArgs};

const SUBTREES: usize = 16;
const NODES: usize = 64;
const VALUE_BYTES: usize = 200;
const CONNECTIONS: usize = 16;
/// Calls under way on each connection.
const DEPTHS: [usize; 2] = [1, 16];

/// Who runs; the others are frozen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// A call for each write, as etcd has it.
    Ours,
    /// Writes in order on a stream for each connection, as ZooKeeper has it.
    OursInOrder,
    Etcd,
    ZooKeeper,
}

struct Stage {
    ours: Ours,
    etcd: Etcd,
    zookeeper: ZooKeeper,
    _folder: Folder,
}

/// Measures and shows all.
pub(crate) fn lines(args: &StreamsArgs, out: &mut Output) -> Result<(), BenchError> {
    out.peer(&format!("etcd {}", Etcd::version()?));
    out.peer("ZooKeeper of Debian");
    let stage = Stage::start(args)?;
    out.say("sixteen subtrees are made on each side");
    stage.fill()?;
    for depth in DEPTHS {
        writes(args, &stage, depth, out)?;
    }
    observers(args, &stage, out)
}

fn writes(
    args: &StreamsArgs,
    stage: &Stage,
    depth: usize,
    out: &mut Output,
) -> Result<(), BenchError> {
    let mut lines = [
        (Who::Ours, Who::Etcd, "etcd", "a call each", Vec::new()),
        (Who::OursInOrder, Who::Etcd, "etcd", "ours in order on a stream", Vec::new()),
        (Who::OursInOrder, Who::ZooKeeper, "ZooKeeper", "both in order on a stream", Vec::new()),
    ];
    for _ in 0..args.run.rounds {
        for (ours, peer, .., rounds) in &mut lines {
            let of = |who| stage.write(who, depth, args.run.round());
            rounds.push((of(*ours)?, of(*peer)?));
        }
    }
    let what = format!(
        "metadata writes of {VALUE_BYTES} bytes over {SUBTREES} subtrees, synced: {} under way",
        CONNECTIONS * depth
    );
    for (.., peer, how, rounds) in lines {
        let what = format!("{what}, {how}");
        out.line(Line::from_rounds(what, "writes/s", peer, rounds, Target::Ratio(3.0)));
    }
    Ok(())
}

fn observers(args: &StreamsArgs, stage: &Stage, out: &mut Output) -> Result<(), BenchError> {
    let (mut rounds, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..args.run.rounds {
        let ours = stage.tell(Who::Ours, args)?;
        let etcd = stage.tell(Who::Etcd, args)?;
        bytes.push((ours.bytes_each, etcd.bytes_each));
        rounds.push((ours.measure, etcd.measure));
    }
    // The first is the one of a server that had none before.
    let (ours, etcd) = bytes[0];
    let what = format!(
        "{} observers told of one write after the other, each on a connection of its own",
        args.observers
    );
    // Told in half of the time: twice as many in the same.
    let line = Line::from_rounds(what, "told/s", "etcd watch", rounds, Target::Ratio(2.0));
    out.line(line.note("times are from the write to each observer"));
    let of = |value| Measure { value, ..Measure::default() };
    let what = "resident memory of the server for each observer and its connection";
    let rounds = vec![(of(ours), of(etcd))];
    out.line(Line::from_rounds(what, "bytes", "etcd watch", rounds, Target::Shown));
    Ok(())
}

impl Stage {
    fn start(args: &StreamsArgs) -> Result<Self, BenchError> {
        let folder = Folder::new(&args.run, "tree")?;
        let dir = |name: &str| {
            let dir = folder.path().join(name);
            std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("make a folder", &e))?;
            Ok::<_, BenchError>(dir)
        };
        let ours = start_ours(&args.run, &folder, &[])?;
        let etcd = Etcd::start(args.run.server_core, &dir("etcd")?)?;
        let zookeeper = ZooKeeper::start(args.run.server_core, &dir("zookeeper")?)?;
        Ok(Self { ours, etcd, zookeeper, _folder: folder })
    }

    fn process(&self, who: Who) -> &Process {
        match who {
            Who::Ours | Who::OursInOrder => &self.ours.process,
            Who::Etcd => &self.etcd.process,
            Who::ZooKeeper => &self.zookeeper.process,
        }
    }

    fn address(&self, who: Who) -> SocketAddr {
        match who {
            Who::Ours | Who::OursInOrder => self.ours.grpc,
            Who::Etcd => self.etcd.address,
            Who::ZooKeeper => self.zookeeper.address,
        }
    }

    fn only(&self, who: Who) -> Result<(), BenchError> {
        let pid = self.process(who).pid();
        for other in [Who::Ours, Who::Etcd, Who::ZooKeeper] {
            let process = self.process(other);
            if process.pid() == pid { process.thaw()? } else { process.freeze()? }
        }
        Ok(())
    }

    /// Every node, so that what is measured writes nodes that are there.
    fn fill(&self) -> Result<(), BenchError> {
        self.only(Who::Ours)?;
        let declare: Vec<Bytes> = (0..SUBTREES).map(|at| declaration(&subtree(at))).collect();
        self.each(Who::Ours, &|| Box::new(Grpc::new(DECLARE, Count::Nothing, false)), &declare)?;
        let codec = codec_of(Who::Ours);
        self.each(Who::Ours, &*codec, &nodes().map(|at| apply(1, &at)).collect::<Vec<_>>())?;
        self.only(Who::ZooKeeper)?;
        let above = std::iter::once("/bench".to_owned()).chain((0..SUBTREES).map(subtree));
        let all = above.chain(nodes()).map(|at| zookeeper::create(&at, &value()));
        self.each(Who::ZooKeeper, &*codec_of(Who::ZooKeeper), &all.collect::<Vec<_>>())
    }

    /// Sends each of `requests` once, in order, and all must be good.
    fn each(
        &self,
        who: Who,
        codec: &dyn Fn() -> Box<dyn Codec>,
        requests: &[Bytes],
    ) -> Result<(), BenchError> {
        let mut source = once(requests, 1, None);
        let lane = closed(self.address(who), (1, 1), codec, &mut source);
        let (measured, _) = measure(&[self.process(who).pid()], &mut [lane])?.remove(0);
        match measured.failed {
            0 => Ok(()),
            _ => Err(BenchError::Protocol("a node was not made")),
        }
    }

    fn write(&self, who: Who, depth: usize, round: Duration) -> Result<Measure, BenchError> {
        self.only(who)?;
        let requests: Vec<Bytes> = nodes()
            .map(|at| match who {
                Who::Ours | Who::OursInOrder => apply(2, &at),
                Who::Etcd => etcd::put(&at, &value()),
                Who::ZooKeeper => zookeeper::set(&at, &value()),
            })
            .collect();
        let mut source = again(&requests, round);
        let codec = codec_of(who);
        let lane = closed(self.address(who), (CONNECTIONS, depth), &*codec, &mut source);
        let mut measured = match who {
            Who::Ours | Who::OursInOrder => measure_ours(&self.ours, &mut [lane])?,
            _ => measure(&[self.process(who).pid()], &mut [lane])?,
        };
        Ok(measured.remove(0).0)
    }

    fn tell(&self, who: Who, args: &StreamsArgs) -> Result<Told, BenchError> {
        self.only(who)?;
        let at = subtree(0);
        let node = format!("{at}/n0");
        let (listen, watch, greetings, write) = match who {
            // A snapshot comes first: why, and its one chunk.
            Who::Ours | Who::OursInOrder => (OBSERVE, observe(&at), 2, apply(2, &node)),
            _ => (etcd::WATCH, etcd::watch(&format!("{at}/")), 1, etcd::put(&node, &value())),
        };
        let writer = codec_of(who);
        told(
            &Scene {
                pid: self.process(who).pid(),
                address: self.address(who),
                watcher: &|| match who {
                    Who::Ours | Who::OursInOrder => Box::new(Grpc::listening(listen)),
                    // Its watches may be changed later, so that it stays open.
                    _ => Box::new(Grpc::new(listen, Count::Nothing, true)),
                },
                watch,
                greetings,
                writer: &*writer,
                writes: vec![write; args.writes()],
            },
            args.observers,
        )
    }
}

fn codec_of(who: Who) -> Box<dyn Fn() -> Box<dyn Codec>> {
    match who {
        Who::Ours => Box::new(|| Box::new(Grpc::new(APPLY, Count::Written, false))),
        Who::OursInOrder => Box::new(|| Box::new(Grpc::new(APPLY_STREAM, Count::Written, true))),
        Who::Etcd => Box::new(|| Box::new(Grpc::new(etcd::PUT, Count::Nothing, false))),
        Who::ZooKeeper => Box::new(|| Box::new(Session::default())),
    }
}

fn subtree(at: usize) -> String {
    format!("/bench/s{at}")
}

/// Every node, so that neighbours are of different subtrees.
fn nodes() -> impl Iterator<Item = String> {
    (0..NODES).flat_map(|n| (0..SUBTREES).map(move |at| format!("{}/n{n}", subtree(at))))
}

fn value() -> Vec<u8> {
    vec![b'v'; VALUE_BYTES]
}

/// An `ApplyRequest` with one operation: 1 creates, 2 sets.
fn apply(op: u32, path: &str) -> Bytes {
    let (mut inner, mut outer, mut out) = (Vec::new(), Vec::new(), Vec::new());
    put_bytes(1, path.as_bytes(), &mut inner);
    put_bytes(2, &value(), &mut inner);
    put_bytes(op, &inner, &mut outer);
    put_bytes(1, &outer, &mut out);
    out.into()
}

/// A `DeclareSubtreeRequest`.
fn declaration(path: &str) -> Bytes {
    let mut out = Vec::new();
    put_bytes(1, path.as_bytes(), &mut out);
    out.into()
}

/// An `ObserveRequest` from a snapshot on.
fn observe(path: &str) -> Bytes {
    declaration(path)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tideline_wire::meta_v1 as v1;

    use super::*;

    #[test]
    fn what_is_sent_reads_as_what_it_is_meant_to_be() {
        let request = v1::ApplyRequest::decode(apply(2, "/a/b")).unwrap();
        let set = v1::Set { path: "/a/b".into(), value: value().into(), if_modified: None };
        assert_eq!(request.ops, [v1::Op { op: Some(v1::op::Op::Set(set)) }]);
        let request = v1::ApplyRequest::decode(apply(1, "/a/b")).unwrap();
        assert!(matches!(request.ops[0].op, Some(v1::op::Op::Create(_))));
        let declare = v1::DeclareSubtreeRequest::decode(declaration("/a")).unwrap();
        assert_eq!(declare.path, "/a");
        assert_eq!(v1::ObserveRequest::decode(observe("/a")).unwrap().path, "/a");
    }

    #[test]
    fn neighbours_are_of_different_subtrees() {
        let all: Vec<String> = nodes().collect();
        assert_eq!(all.len(), SUBTREES * NODES);
        assert_eq!((&*all[0], &*all[1]), ("/bench/s0/n0", "/bench/s1/n0"));
    }
}
