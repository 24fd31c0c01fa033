use tideline_record::batch::BatchRef;
use tideline_types::PartitionId;

use super::*;
use crate::ask::{Op, Txn};
use crate::tail::Frame;

/// An owner, the log under it, and what came of its effects.
struct Bench {
    owner: Owner<u32>,
    log: Vec<Bytes>,
    said: Vec<String>,
    ticks: u64,
    next_waiter: u32,
}

const EPOCH: Epoch = Epoch(4);

fn stream() -> StreamId {
    StreamId { incarnation: Incarnation(1), partition: PartitionId(0) }
}

fn root() -> Path {
    Path::new("/r").unwrap()
}

impl Bench {
    fn new() -> Self {
        let owner = Owner::new(stream(), EPOCH, Seq::ZERO, Millis(0));
        let mut bench = Self { owner, log: Vec::new(), said: Vec::new(), ticks: 0, next_waiter: 0 };
        bench.ask(Ask::Open { incarnation: Incarnation(9), quota: Quota::default() });
        bench.sync();
        bench.said.clear();
        bench
    }

    fn at(&self) -> At {
        At { now: Millis(1), ticks: self.ticks, epoch: EPOCH }
    }

    fn step(&mut self, step: impl FnOnce(&mut Owner<u32>, At, &mut Vec<Effect<u32>>)) {
        let mut effects = Vec::new();
        let at = self.at();
        step(&mut self.owner, at, &mut effects);
        for effect in effects {
            self.said.push(match effect {
                Effect::Append(batch) => {
                    let bytes = batch.finish();
                    let range = BatchRef::parse(&bytes).unwrap().range();
                    self.log.push(bytes);
                    format!("append {range}")
                }
                Effect::Answer(waiter, answer) => match answer {
                    Answer::Written(written) => format!("{waiter} wrote {}", written.seq),
                    Answer::Session(id, _) => format!("{waiter} has session {}", id.0),
                    Answer::Node(node, at) => {
                        format!("{waiter} reads {} at {}", node.is_some(), at.seq)
                    }
                    Answer::Refused(refusal) => format!("{waiter} refused: {refusal}"),
                    _ => format!("{waiter} done"),
                },
                Effect::Opened(root, life) => format!("{root} opened {life}"),
                Effect::Shut(root, life) => format!("{root} shut {life}"),
                Effect::Changed(root, seq) => format!("{root} at {seq}"),
            });
        }
    }

    fn ask(&mut self, ask: Ask) {
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        self.step(|owner, at, effects| owner.ask(at, &root(), ask, waiter, effects));
    }

    fn write(&mut self, word: &str, session: Option<u64>) {
        let ops: Vec<Op> = word.split(' ').map(crate::rules::tests::op).collect();
        self.ask(Ask::Apply(Txn { ops, session: session.map(SessionId), op: None }));
    }

    fn sync(&mut self) {
        let through = BatchRef::parse(self.log.last().unwrap()).unwrap().range().through;
        self.step(|owner, _, effects| owner.synced(through, effects));
    }

    fn tick(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(500) {
            self.ticks += 500;
            self.step(|owner, at, effects| owner.tick(at, effects));
        }
    }

    fn said(&mut self) -> String {
        std::mem::take(&mut self.said).join(", ")
    }

    /// Another owner over what the log holds.
    fn replayed(&self) -> Owner<u32> {
        let mut owner = Owner::new(stream(), Epoch(5), self.owner.synced, Millis(0));
        for bytes in &self.log {
            let batch = BatchRef::parse(bytes).unwrap();
            for record in batch.records() {
                let value = bytes.slice_ref(record.value);
                owner.replay(Seq::ZERO, record.seq, batch.epoch(), record.key, &value).unwrap();
            }
        }
        owner.recovered();
        owner
    }

    fn tree(&self) -> &crate::tree::Tree {
        &self.owner.lanes[&root()].tree
    }
}

#[test]
fn an_answer_waits_for_its_sync_and_calls_share_one() {
    let mut bench = Bench::new();
    for path in ["+/a", "+/b", "+/c", "+/d", "+/e", "+/f"] {
        bench.write(path, None);
    }
    // Four are on their way, and what comes then goes together.
    assert_eq!(bench.said(), "append (1, 2], append (2, 3], append (3, 4], append (4, 5]");
    let first = BatchRef::parse(&bench.log[1]).unwrap().range().through;
    bench.step(|owner, _, effects| owner.synced(first, effects));
    assert_eq!(bench.said(), "/r at 1, 1 wrote 1, append (5, 7]");
    bench.sync();
    let said = bench.said();
    assert!(
        said.ends_with("/r at 6, 2 wrote 2, 3 wrote 3, 4 wrote 4, 5 wrote 5, 6 wrote 6"),
        "{said}"
    );
}

#[test]
fn a_read_waits_for_what_it_saw_and_not_longer() {
    let mut bench = Bench::new();
    bench.ask(Ask::Get(Path::new("/a").unwrap()));
    bench.write("+/a", None);
    bench.ask(Ask::Get(Path::new("/a").unwrap()));
    bench.write("-/none", None);
    assert_eq!(bench.said(), "1 reads false at 0, append (1, 2]");
    bench.sync();
    assert_eq!(
        bench.said(),
        "/r at 1, 2 wrote 1, 3 reads true at 1, 4 refused: /none does not exist"
    );
}

#[test]
fn a_session_that_is_not_renewed_ends_with_its_nodes_by_an_entry_of_the_log() {
    let mut bench = Bench::new();
    bench.ask(Ask::Begin { lease_ms: 2000, op: None });
    bench.sync();
    bench.write("+e/e", Some(1));
    bench.sync();
    bench.tick(1500);
    bench.ask(Ask::KeepAlive(SessionId(1)));
    bench.tick(1500);
    assert_eq!(bench.tree().count(), 1);
    bench.said();
    bench.tick(1000);
    assert_eq!(bench.said(), "append (3, 4]");
    bench.ask(Ask::KeepAlive(SessionId(1)));
    bench.write("+/late", Some(1));
    bench.sync();
    let said = bench.said();
    assert!(said.contains("refused: session 1 has ended"), "{said}");
    assert_eq!(bench.tree().count(), 0);
    assert_eq!(bench.replayed().lanes[&root()].tree, *bench.tree());
}

#[test]
fn a_new_owner_gives_each_session_a_whole_lease() {
    let mut bench = Bench::new();
    bench.ask(Ask::Begin { lease_ms: 2000, op: None });
    bench.sync();
    bench.tick(1500);
    bench.owner = bench.replayed();
    let at = |ticks| At { now: Millis(1), ticks, epoch: Epoch(5) };
    let mut effects = Vec::new();
    bench.owner.tick(at(0), &mut effects);
    bench.owner.tick(at(1000), &mut effects);
    assert!(effects.is_empty());
    bench.owner.tick(at(2000), &mut effects);
    assert!(matches!(effects[..], [Effect::Append(_)]));
}

#[test]
fn an_owner_whose_log_has_another_epoch_answers_nothing() {
    let mut bench = Bench::new();
    let at = At { epoch: Epoch(5), ..bench.at() };
    bench.step(|owner, _, effects| owner.ask(at, &root(), Ask::Sync, 7, effects));
    assert_eq!(bench.said(), "7 refused: the partition has another owner");
}

#[test]
fn observers_see_what_is_synced_and_nothing_else() {
    let mut bench = Bench::new();
    bench.write("+/a", None);
    let from = Position { incarnation: Incarnation(9), epoch: Epoch(0), seq: Seq(0) };
    assert_eq!(bench.owner.frame(&root(), from), Some(Ok(None)));
    bench.sync();
    let frame = bench.owner.frame(&root(), from).unwrap().unwrap().unwrap();
    assert_eq!(Frame::decode(&frame).unwrap().end().seq, Seq(1));
}

#[test]
fn a_subtree_that_is_opened_again_is_another_and_empty() {
    let mut bench = Bench::new();
    bench.write("+/a", None);
    bench.ask(Ask::Open { incarnation: Incarnation(12), quota: Quota::default() });
    bench.sync();
    bench.sync();
    let said = bench.said();
    assert!(said.ends_with("/r shut 9, /r opened 12, 1 wrote 1, 2 done"), "{said}");
    assert_eq!((bench.tree().count(), bench.tree().incarnation()), (0, Incarnation(12)));
    assert_eq!(bench.owner.over(Seq(9)), [Incarnation(9)]);
    bench.ask(Ask::Shut(Incarnation(9)));
    assert_eq!(bench.said(), "3 done", "an old life is over already");
    assert_eq!(bench.replayed().lanes[&root()].tree, *bench.tree());
}

#[test]
fn the_place_is_the_lowest_entry_that_is_not_at_rest() {
    let mut bench = Bench::new();
    assert_eq!(bench.owner.place(), Seq(0), "the opening itself is not");
    bench.write("+/a", None);
    bench.sync();
    bench.owner.resting(&root());
    bench.write("+/b", None);
    bench.sync();
    bench.owner.rested(&root(), Incarnation(9), true, 0);
    assert_eq!(bench.owner.place(), Seq(2));
    let due =
        |owner: &Owner<u32>, bytes| owner.due(crate::owner::RestWhen { bytes, age_ms: 99 }, 5);
    assert_eq!((due(&bench.owner, 1).len(), due(&bench.owner, 9999).len()), (1, 0));
    bench.owner.resting(&root());
    assert_eq!(due(&bench.owner, 1).len(), 0, "one at a time");
    bench.owner.rested(&root(), Incarnation(9), false, 0);
    assert_eq!(bench.owner.place(), Seq(2), "it failed");
}

#[test]
fn a_restart_goes_on_from_snapshot_and_log_and_observers_from_where_they_were() {
    let mut bench = Bench::new();
    for word in ["+/a", "+/b", "-/a", "+/c"] {
        bench.write(word, None);
        bench.sync();
    }
    let image = bench.owner.lanes[&root()].image();
    bench.write("+/d", None);
    bench.sync();
    let mut owner: Owner<u32> = Owner::new(stream(), Epoch(5), Seq(6), Millis(0));
    let place = image.log;
    owner.restore(root(), image);
    for bytes in &bench.log[2..] {
        let batch = BatchRef::parse(bytes).unwrap();
        for record in batch.records() {
            let value = bytes.slice_ref(record.value);
            owner.replay(place, record.seq, batch.epoch(), record.key, &value).unwrap();
        }
    }
    owner.recovered();
    assert_eq!(owner.lanes[&root()].tree, *bench.tree());
    let from = Position { incarnation: Incarnation(9), epoch: EPOCH, seq: Seq(2) };
    let frame = owner.frame(&root(), from).unwrap().unwrap().unwrap();
    assert_eq!(Frame::decode(&frame).unwrap().range.count(), 3);
    assert!(owner.frame(&root(), Position { seq: Seq(1), ..from }).unwrap().is_err());
}
