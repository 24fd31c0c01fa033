use proptest::prelude::*;
use tideline_types::{Epoch, Incarnation};

use super::*;
use crate::rules::tests::{any_steps, take};
use crate::snapshot::{self, For};
use crate::tail::Tail;

/// A server of one subtree, as far as an observer sees it.
struct Server {
    tree: Tree,
    tail: Tail,
    epoch: Epoch,
    /// The tree as it was at each seq.
    past: Vec<Tree>,
}

impl Server {
    fn new(incarnation: u64) -> Self {
        let incarnation = Incarnation(incarnation);
        let tree = Tree::new(incarnation);
        let at = Position { incarnation, epoch: Epoch(0), seq: Seq(0) };
        Self { past: vec![tree.clone()], tree, tail: Tail::new(at), epoch: Epoch(1) }
    }

    fn position(&self) -> Position {
        let (incarnation, seq) = (self.tree.incarnation(), self.tree.seq());
        let epoch = if seq == Seq::ZERO { Epoch(0) } else { self.epoch };
        Position { incarnation, epoch, seq }
    }

    fn step(&mut self, step: &crate::rules::tests::Step) {
        if let Some(commit) = take(&mut self.tree, step) {
            self.tail.push(self.epoch, commit.encode().into());
            self.past.push(self.tree.clone());
        }
    }

    fn run(&mut self, script: &str) {
        for word in script.split(' ') {
            let ops = vec![crate::rules::tests::op(word)];
            self.step(&crate::rules::tests::Step::Apply(ops, false, None));
        }
    }

    /// What an observer at `from` is sent, up to the end.
    fn send(&self, from: Option<Position>) -> Vec<Event> {
        let mut events = Vec::new();
        let mut at = from.unwrap_or_default();
        loop {
            match self.tail.frame(at, self.tree.seq()) {
                Ok(None) => return events,
                Ok(Some(frame)) => {
                    at = Frame::decode(&frame).unwrap().end();
                    events.push(Event::Frame(frame));
                }
                Err(resync) => {
                    events.push(Event::Resync(resync));
                    let chunks = snapshot::encode(&self.tree, self.epoch_at_end(), For::Observer);
                    events.extend(chunks.into_iter().map(Event::Chunk));
                    return events;
                }
            }
        }
    }

    fn epoch_at_end(&self) -> Epoch {
        self.position().epoch
    }
}

fn follow(follower: &mut Follower, server: &Server) -> String {
    let mut told = Vec::new();
    for event in server.send(follower.position()) {
        for commit in follower.take(&event).unwrap() {
            let one = commit.iter().map(|seen| match seen {
                Seen::New(path, node) => format!("+{path}@{}", node.created),
                Seen::Set(path, node) => format!("={path}@{}", node.modified),
                Seen::Gone(path, node) => format!("-{path}@{}", node.created),
            });
            told.push(one.collect::<Vec<_>>().join(" "));
        }
    }
    told.join(", ")
}

#[test]
fn a_delete_and_a_create_while_away_are_both_told() {
    for compacted in [false, true] {
        let (mut server, mut follower) = (Server::new(1), Follower::default());
        server.run("+/a +/b");
        assert_eq!(follow(&mut follower, &server), "+/a@1 +/b@2");
        server.run("-/a +/a =/b");
        if compacted {
            server.tail.compact(100, 0);
        }
        let expected = if compacted { "-/a@1 +/a@4 =/b@5" } else { "-/a@1, +/a@4, =/b@5" };
        assert_eq!(follow(&mut follower, &server), expected);
    }
}

#[test]
fn what_one_transaction_removes_makes_and_removes_again_is_gone_once() {
    let (mut server, mut follower) = (Server::new(1), Follower::default());
    server.run("+/a");
    follow(&mut follower, &server);
    let ops = ["-/a", "+/a", "-/a", "+/b", "-/b"].map(crate::rules::tests::op).into();
    server.step(&crate::rules::tests::Step::Apply(ops, false, None));
    assert_eq!(follow(&mut follower, &server), "-/a@1");
}

#[test]
fn a_subtree_that_was_declared_anew_is_all_gone_and_all_new() {
    let mut follower = Follower::default();
    let mut server = Server::new(1);
    server.run("+/a");
    follow(&mut follower, &server);
    let mut server = Server::new(7);
    server.run("+/a");
    assert_eq!(follow(&mut follower, &server), "-/a@1 +/a@1");
}

#[test]
fn an_observer_does_not_go_back() {
    let (mut server, mut follower) = (Server::new(1), Follower::default());
    server.run("+/a");
    let old = snapshot::encode(&server.tree, Epoch(1), For::Observer).remove(0);
    server.run("+/b");
    follow(&mut follower, &server);
    let (floor, given) = (server.position(), Position { seq: Seq(1), ..server.position() });
    assert_eq!(follower.take(&Event::Chunk(old.clone())), Err(Broken::Older { given, floor }));
    assert_eq!(follower.position(), None, "it has no copy that it cannot trust");
    let mut later = Follower::with_floor(Some(floor));
    assert!(later.take(&Event::Chunk(old)).is_err(), "nor after a restart");
}

#[test]
fn a_frame_that_skips_is_not_taken() {
    let (mut server, mut follower) = (Server::new(1), Follower::default());
    server.run("+/a");
    follow(&mut follower, &server);
    server.run("+/b");
    let after = server.position();
    server.run("+/c");
    let skipping = server.send(Some(after)).remove(0);
    assert!(matches!(follower.take(&skipping), Err(Broken::Gap { .. })));
}

/// What goes on around an observer.
#[derive(Clone, Debug)]
enum Turn {
    Steps(Vec<crate::rules::tests::Step>),
    Compact(usize),
    /// The owner starts again: a new epoch, and nothing kept but the snapshot.
    Restart,
    /// So many events come, then the connection breaks.
    Follow(usize),
}

fn any_turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        4 => any_steps().prop_map(Turn::Steps),
        1 => (0_usize..20).prop_map(Turn::Compact),
        1 => Just(Turn::Restart),
        4 => (0_usize..6).prop_map(Turn::Follow),
    ];
    prop::collection::vec(turn, 1..20)
}

proptest! {
    #[test]
    fn the_copy_at_a_seq_is_what_a_replay_up_to_it_comes_to(turns in any_turns()) {
        let (mut server, mut follower) = (Server::new(1), Follower::default());
        let mut last_epoch = Epoch(1);
        for turn in turns.iter().chain([&Turn::Follow(usize::MAX)]) {
            match turn {
                Turn::Steps(steps) => steps.iter().for_each(|step| server.step(step)),
                Turn::Compact(count) => server.tail.compact(*count, 0),
                Turn::Restart => {
                    let chunks = snapshot::encode(&server.tree, last_epoch, For::Owner);
                    let mut rebuilt = None;
                    for chunk in &chunks {
                        rebuilt = Some(Rebuild::take(
                            rebuilt.take().map(|r: Result<_, Rebuild>| r.unwrap_err()),
                            chunk,
                        ).unwrap());
                    }
                    let (tree, _) = rebuilt.unwrap().unwrap();
                    prop_assert_eq!(&tree, &server.tree);
                    server.tree = tree;
                    server.tail = Tail::new(server.position());
                }
                Turn::Follow(count) => {
                    for event in server.send(follower.position()).iter().take(*count) {
                        let before = follower.position();
                        follower.take(event).unwrap();
                        prop_assert!(before <= follower.position(), "it went back");
                        let Some(copy) = follower.tree() else { continue };
                        let mut then = server.past[copy.seq().0 as usize].clone();
                        then.forget_done();
                        prop_assert_eq!(copy, &then);
                    }
                    follower.disconnected();
                }
            }
            last_epoch = server.epoch;
        }
        prop_assert_eq!(follower.position().map(|at| at.seq), Some(server.tree.seq()));
    }
}
