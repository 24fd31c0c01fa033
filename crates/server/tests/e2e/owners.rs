//! Two processes of which one owns a partition: a lease says who may try, the
//! log says who has.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Server, tideline};

/// A process that owns the partition, or waits for it. Its ledger is what it
/// acknowledged: each line, and where it stands.
struct Owner {
    child: Child,
    input: ChildStdin,
    ledger: Arc<Mutex<Vec<(u64, String)>>>,
    reader: Option<JoinHandle<()>>,
}

impl Owner {
    fn start(server: &Server) -> Self {
        let args = ["meta", "--grpc", &server.grpc, "own", "writer", "--topic", "t"];
        let mut command = tideline(&[&args[..], &["--lease-ms", "1000"]].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let ledger = Arc::<Mutex<Vec<(u64, String)>>>::default();
        let kept = ledger.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                let line = line.unwrap();
                let (at, said) = line.split_once(' ').unwrap();
                let seq = at.rsplit('-').next().unwrap().parse().unwrap();
                kept.lock().unwrap().push((seq, said.to_owned()));
            }
        });
        Self { child, input, ledger, reader: Some(reader) }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn acknowledged(&self) -> usize {
        self.ledger.lock().unwrap().len()
    }

    /// What it acknowledged before it ended.
    fn whole_ledger(&mut self) -> Vec<(u64, String)> {
        self.reader.take().expect("asked for once").join().unwrap();
        self.ledger.lock().unwrap().clone()
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn wait_until(is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "it does not come to be");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_owner_that_was_stopped_acknowledges_nothing_after_it_was_taken_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.ok(&["topic", "create", "t", "--partitions", "1"]);
    let mut ledgers = Vec::new();
    let mut owner = Owner::start(&server);
    for round in 0..3 {
        for n in 0..20 {
            owner.say(&format!("{round} before {n}"));
        }
        wait_until(|| owner.acknowledged() > 5);
        owner.signal("-STOP");
        let mut next = Owner::start(&server);
        for n in 0..20 {
            next.say(&format!("{round} after {n}"));
        }
        wait_until(|| next.acknowledged() == 20);
        // It wakes with lines to write, and does not know what happened.
        for n in 0..20 {
            owner.say(&format!("{round} late {n}"));
        }
        owner.signal("-CONT");
        let status = owner.child.wait().unwrap();
        assert_eq!(status.code(), Some(1), "it was taken over, and says so");
        let ledger = owner.whole_ledger();
        assert!(ledger.iter().all(|(_, line)| !line.contains("late")), "{ledger:?}");
        ledgers.push(ledger);
        owner = next;
    }
    owner.signal("-KILL");
    ledgers.push(owner.whole_ledger());

    let lines = server.ok(&["topic", "tail", "t", "--from", "earliest", "--no-follow"]);
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let log: BTreeMap<u64, (String, String)> = records
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            (record["seq"].as_u64().unwrap(), (text("key"), text("value")))
        })
        .collect();
    let fences: Vec<u64> =
        log.iter().filter(|(_, (key, _))| key == "tideline/owner").map(|(seq, _)| *seq).collect();
    assert_eq!(fences.len(), ledgers.len(), "each began with a fence");
    for (n, ledger) in ledgers.iter().enumerate() {
        let until = fences.get(n + 1).copied().unwrap_or(u64::MAX);
        for (seq, line) in ledger {
            assert_eq!(log[seq].1, *line, "what was acknowledged is there");
            assert!(fences[n] < *seq && *seq < until, "{line} at {seq}, owners at {fences:?}");
        }
    }
    let mut said: Vec<&String> = log.values().map(|(_, value)| value).collect();
    let count = said.len();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), count, "no line is there twice");
}

#[test]
fn one_that_stands_by_goes_on_when_the_owner_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.ok(&["topic", "create", "t", "--partitions", "1"]);
    let mut owner = Owner::start(&server);
    owner.say("one");
    wait_until(|| owner.acknowledged() == 1);
    let mut next = Owner::start(&server);
    next.say("two");
    let held = server.meta(&["ls", "/tideline/owners"]);
    assert!(held.contains("/tideline/owners/writer") && held.contains("ephemeral"), "{held}");
    assert_eq!(server.meta(&["get", "/tideline/owners/writer"]), "t/0");
    let described = server.ok(&["topic", "describe", "t"]);
    assert!(described.contains("partition 0 is owned by writer"), "{described}");
    assert_eq!(next.acknowledged(), 0);
    owner.signal("-KILL");
    wait_until(|| next.acknowledged() == 1);
}
