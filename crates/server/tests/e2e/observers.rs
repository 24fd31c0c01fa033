//! Five hundred observers of a subtree of the real program, each with a
//! connection of its own: each is told every change, also of what was removed
//! and made again while it was away.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::sync::Arc;

use tideline_meta::follower::{Event, Follower, Seen};
use tideline_types::Position;
use tideline_wire::meta_v1 as v1;
use tideline_wire::meta_v1::meta_service_client::MetaServiceClient;
use tonic::transport::Channel;

use crate::meta::{client, free_address, start};
use crate::program::ok;

const OBSERVERS: usize = 500;

type Tree = MetaServiceClient<Channel>;

/// A copy, and all that it told.
#[derive(Default)]
struct Observer {
    follower: Follower,
    told: Vec<Seen>,
    resyncs: usize,
}

impl Observer {
    /// Connects, follows until it has seen `until`, and goes away.
    async fn follow(&mut self, tree: &mut Tree, until: (u64, u64)) {
        let at = |at: Position| (at.incarnation.0, at.seq.0);
        while self.follower.position().map(at) != Some(until) {
            let after = self.follower.position().map(|at| at.into());
            let request = v1::ObserveRequest { path: "/o".into(), after };
            let Ok(events) = tree.observe(request).await else { continue };
            let mut events = events.into_inner();
            // A stream that ends, as with its subtree, is begun again.
            while self.follower.position().map(at) != Some(until)
                && let Ok(Some(event)) = events.message().await
            {
                use v1::observe_response::Event as Sent;
                let event = match event.event.expect("it says something") {
                    Sent::Resync(_) => {
                        self.resyncs += 1;
                        continue;
                    }
                    Sent::Chunk(bytes) => Event::Chunk(bytes),
                    Sent::Frame(bytes) => Event::Frame(bytes),
                };
                let told = self.follower.take(&event).expect("what is sent fits");
                self.told.extend(told.into_iter().flatten());
            }
            self.follower.disconnected();
        }
    }

    fn said(&self) -> Vec<String> {
        let said = self.told.iter().map(|seen| match seen {
            Seen::New(path, node) => format!("new {path} {}", node.created),
            Seen::Set(path, node) => format!("set {path} {}", node.modified),
            Seen::Gone(path, node) => format!("gone {path} {}", node.created),
        });
        said.collect()
    }
}

/// Each of them follows until `until`, at once.
async fn follow_all(observers: Vec<(Tree, Observer)>, until: (u64, u64)) -> Vec<(Tree, Observer)> {
    let tasks: Vec<_> = observers
        .into_iter()
        .map(|(mut tree, mut observer)| {
            tokio::spawn(async move {
                observer.follow(&mut tree, until).await;
                (tree, observer)
            })
        })
        .collect();
    let mut done = Vec::with_capacity(tasks.len());
    for task in tasks {
        done.push(task.await.expect("an observer does not fail"));
    }
    done
}

async fn at(tree: &mut Tree) -> (u64, u64) {
    let synced = tree.sync(v1::SyncRequest { path: "/o".into() }).await.unwrap();
    let at = synced.into_inner().at.unwrap();
    (at.incarnation, at.seq)
}

#[test]
fn five_hundred_observers_over_the_network_are_each_told_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let grpc = free_address();
    let _server = start(folder.path(), &grpc);
    let url = Arc::new(format!("http://{grpc}"));
    let meta = |args: &[&str]| ok(&[&["meta", "--grpc", &url], args].concat());
    meta(&["subtree", "create", "/o"]);
    meta(&["create", "/o/a", "1"]);
    meta(&["create", "/o/b", "1"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut tree = runtime.block_on(async { client(&grpc) });
    let none = (0..OBSERVERS).map(|_| Observer::default());
    let all: Vec<(Tree, Observer)> =
        runtime.block_on(async { none.map(|observer| (client(&grpc), observer)).collect() });
    let until = runtime.block_on(at(&mut tree));
    let mut all = runtime.block_on(follow_all(all, until));

    // Half of them stay, the others are away while it happens.
    let away = all.split_off(OBSERVERS / 2);
    let stay = {
        let (life, seq) = until;
        runtime.spawn(follow_all(all, (life, seq + 5)))
    };
    meta(&["delete", "/o/a"]);
    meta(&["create", "/o/a", "2"]);
    meta(&["set", "/o/b", "2"]);
    meta(&["create", "/o/c", "1"]);
    meta(&["delete", "/o/c"]);
    let until = runtime.block_on(at(&mut tree));
    let stayed = runtime.block_on(stay).unwrap();
    let away = runtime.block_on(follow_all(away, until));
    let expected =
        ["new /a 1", "new /b 2", "gone /a 1", "new /a 4", "set /b 5", "new /c 6", "gone /c 6"];
    for (_, observer) in stayed.iter().chain(&away) {
        assert_eq!(observer.said(), expected);
        assert_eq!(observer.resyncs, 1, "the first snapshot alone");
    }

    // The whole subtree goes and comes again.
    let life = until.0;
    meta(&["subtree", "rm", "/o"]);
    meta(&["subtree", "create", "/o"]);
    meta(&["create", "/o/a", "3"]);
    let until = runtime.block_on(at(&mut tree));
    assert!(until.0 > life);
    let back = runtime.block_on(follow_all(stayed.into_iter().chain(away).collect(), until));
    for (_, observer) in &back {
        assert_eq!(observer.said()[expected.len()..], ["gone /b 2", "gone /a 4", "new /a 1"]);
        assert_eq!(observer.resyncs, 2, "told why: it was declared anew");
    }
    let listed = meta(&["subtree", "ls"]);
    assert!(listed.lines().any(|line| line.starts_with("/o ")), "{listed}");
    runtime.block_on(async { drop(back) });
}
