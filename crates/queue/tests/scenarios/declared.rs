//! Derived topics that are declared by a text.

use std::sync::Arc;

use tideline_queue::{CreateError, DeleteError, FetchError, Fetched, From, Queue};
use tideline_record::batch::Record;
use tideline_record::{Maker, OnError, Operator, Output};
use tideline_types::{Position, Seq, TopicName};

use crate::{ALL, House, LONG, NO_WAIT, P0, name};

/// `prefix:x` keeps values that begin with x; `add:x` adds x; `fail` fails.
struct Words;

struct Word(String, String);

impl Maker for Words {
    fn make(&self, _: &TopicName, text: &str) -> Result<Arc<dyn Operator>, String> {
        match text.split_once(':') {
            Some((word, rest)) => Ok(Arc::new(Word(word.into(), rest.into()))),
            None => Err(format!("{text:?} is no word")),
        }
    }
}

impl Operator for Word {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        match self.0.as_str() {
            "prefix" if !record.value.starts_with(self.1.as_bytes()) => {}
            "prefix" => out.push(record.key, record.value),
            "add" => out.push(record.key, &[record.value, self.1.as_bytes()].concat()),
            _ if record.value == b"bad" => return Err("is bad".into()),
            _ => out.push(record.key, record.value),
        }
        Ok(())
    }
}

fn house() -> House {
    let house = House::new();
    assert!(house.queue.set_maker(Arc::new(Words)).unwrap().is_empty());
    house
}

fn declare(queue: &Queue, topic: &str, source: &str, text: &str) -> Result<(), CreateError> {
    queue.declare(&name(topic), &name(source), text, OnError::Skip).map(drop)
}

/// All that can be read from `from` on, with where it stands.
async fn read(queue: &Queue, topic: &str, from: Seq) -> (Vec<String>, Seq) {
    let mut frames = queue.subscribe(&name(topic), P0, From::Earliest);
    let synced = queue.bounds(&name(topic), P0).unwrap().synced;
    let (mut texts, mut covered) = (Vec::new(), Seq::ZERO);
    while covered < synced {
        let frame = frames.next().await.unwrap().encode(P0);
        assert_eq!(frame.range().after, covered);
        covered = frame.range().through;
        texts.extend(frame.records().filter(|r| r.seq >= from).map(|r| {
            let mark = if r.skipped { "skipped " } else { "" };
            format!("{} {mark}{}", r.seq, String::from_utf8_lossy(r.value))
        }));
    }
    (texts, covered)
}

#[tokio::test]
async fn a_declared_topic_is_there_after_a_restart_and_the_same() {
    let house = house();
    let chat = house.topic("chat", 1);
    house.say(&chat, &["ab", "b", "ac"]).await;
    declare(&house.queue, "as", "chat", "prefix:a").unwrap();
    declare(&house.queue, "loud", "as", "add:!").unwrap();
    let before = read(&house.queue, "loud", Seq(0)).await;
    assert_eq!(before, (vec!["1 ab!".to_owned(), "3 ac!".to_owned()], Seq(3)));
    let house = house.reopened();
    assert!(house.queue.topic(&name("loud")).is_none(), "not before there is a maker");
    house.queue.set_maker(Arc::new(Words)).unwrap();
    assert_eq!(read(&house.queue, "loud", Seq(0)).await, before);
}

#[tokio::test]
async fn another_version_takes_effect_at_a_cut_that_is_kept() {
    let house = house();
    let chat = house.topic("chat", 1);
    declare(&house.queue, "loud", "chat", "add:1").unwrap();
    house.say(&chat, &["a", "b"]).await;
    declare(&house.queue, "loud", "chat", "add:2").unwrap();
    house.say(&chat, &["c"]).await;
    let all = (["1 a1", "2 b1", "3 c2"].map(String::from).to_vec(), Seq(3));
    assert_eq!(read(&house.queue, "loud", Seq(0)).await, all);
    let house = house.reopened();
    house.queue.set_maker(Arc::new(Words)).unwrap();
    assert_eq!(read(&house.queue, "loud", Seq(0)).await, all);
}

/// While one writes and one reads, versions change: every record was made by
/// the version whose cut is before it, for the reader then and for one later.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cut_under_load_is_the_same_for_all_readers() {
    let house = house();
    let chat = house.topic("chat", 1);
    declare(&house.queue, "loud", "chat", "add:0").unwrap();
    let writer = tokio::spawn({
        let (queue, chat) = (house.queue.clone(), chat.clone());
        async move {
            for n in 0..400 {
                let records = vec![crate::record(&n.to_string())];
                queue.produce(&chat, Some(P0), records).await.unwrap();
            }
        }
    });
    let reader = tokio::spawn({
        let mut frames = house.queue.subscribe(&name("loud"), P0, From::Earliest);
        async move {
            let mut seen = Vec::new();
            while seen.len() < 400 {
                let frame = frames.next().await.unwrap().encode(P0);
                let text = |r: Record<'_>| format!("{} {}", r.seq, text(r.value));
                seen.extend(frame.records().map(text));
            }
            seen
        }
    });
    for version in 1..20 {
        let queue = house.queue.clone();
        let declared = tokio::task::spawn_blocking(move || {
            declare(&queue, "loud", "chat", &format!("add:{version}"))
        });
        declared.await.unwrap().unwrap();
    }
    writer.await.unwrap();
    let live = reader.await.unwrap();
    assert_eq!(live, read(&house.queue, "loud", Seq(0)).await.0);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_failure_is_read_in_its_place_or_stops_reading_until_there_is_another_operator() {
    let house = house();
    let chat = house.topic("chat", 1);
    house.say(&chat, &["good", "bad", "more"]).await;
    declare(&house.queue, "skips", "chat", "check:").unwrap();
    let (texts, _) = read(&house.queue, "skips", Seq(0)).await;
    assert_eq!(texts, ["1 good", "2 skipped is bad", "3 more"]);

    let halts = name("halts");
    house.queue.declare(&halts, &chat, "check:", OnError::Halt).unwrap();
    let mut frames = house.queue.subscribe(&halts, P0, From::Earliest);
    assert_eq!(frames.next().await.unwrap().range.through, Seq(1));
    for _ in 0..2 {
        let Err(FetchError::Halted { seq, why }) = frames.next().await else {
            panic!("it goes on")
        };
        assert_eq!((seq, &*why), (Seq(2), "is bad"));
    }
}

/// Where one goes on who was answered this.
fn behind(fetched: &Fetched) -> From {
    let (incarnation, epoch, seq) = (fetched.incarnation, fetched.epoch, fetched.range.through);
    From::After(Position { incarnation, epoch, seq })
}

/// Queue faults 13 and 14: the end, or nearly all of it, yields no record.
#[tokio::test]
async fn what_is_filtered_out_is_covered() {
    let house = house();
    let chat = house.topic("chat", 1);
    declare(&house.queue, "as", "chat", "prefix:a").unwrap();
    house.say(&chat, &["a"]).await;
    for _ in 0..10 {
        house.say(&chat, &["b"; 1_000]).await;
    }
    assert_eq!(read(&house.queue, "as", Seq(0)).await, (vec!["1 a".to_owned()], Seq(10_001)));
    // One who asks for the next record is told that it stands behind all of that.
    let first = house.queue.fetch(&name("as"), P0, From::Earliest, ALL, NO_WAIT).await.unwrap();
    let over = house.queue.fetch(&name("as"), P0, behind(&first), ALL, LONG).await.unwrap();
    assert_eq!((over.records.len(), over.range.through), (0, Seq(10_001)));
    let after = behind(&over);
    let wait = tokio::spawn({
        let queue = house.queue.clone();
        async move { queue.fetch(&name("as"), P0, after, ALL, LONG).await }
    });
    house.say(&chat, &["a2"]).await;
    let next = wait.await.unwrap().unwrap();
    assert_eq!((next.records.len(), next.range.through), (1, Seq(10_002)));
}

/// A long poll moves its caller's place over what is left out, long before its
/// time is over: one that does not hangs.
#[tokio::test]
async fn a_fetch_that_waits_answers_how_far_it_came_where_all_was_left_out() {
    let house = house();
    let chat = house.topic("chat", 1);
    declare(&house.queue, "as", "chat", "prefix:a").unwrap();
    house.say(&chat, &["b"]).await;
    let (mut from, mut stands) = (From::Earliest, Seq::ZERO);
    for round in 1..=3 {
        let fetch = house.queue.fetch(&name("as"), P0, from, ALL, LONG).await.unwrap();
        assert!(fetch.records.is_empty());
        assert_eq!(fetch.range.after, stands);
        assert!(fetch.range.through > stands, "round {round}");
        stands = fetch.range.through;
        from = behind(&fetch);
        house.say(&chat, &["b", "b"]).await;
    }
    // One that comes meanwhile is in the answer.
    house.say(&chat, &["a"]).await;
    let fetch = house.queue.fetch(&name("as"), P0, from, ALL, LONG).await.unwrap();
    assert_eq!((fetch.range.after, fetch.records.len()), (stands, 1));
}

#[tokio::test]
async fn what_cannot_be_declared_says_why_and_what_stands_on_another_keeps_it() {
    let house = house();
    house.topic("chat", 1);
    let why = |result: Result<(), CreateError>| result.unwrap_err().to_string();
    let queue = &house.queue;
    assert_eq!(why(declare(queue, "x", "chat", "nonsense")), "operator: \"nonsense\" is no word");
    assert_eq!(why(declare(queue, "x", "none", "add:1")), "topic none cannot be derived from");
    assert_eq!(why(declare(queue, "x", "x", "add:1")), "topic x cannot be derived from");
    assert_eq!(why(declare(queue, "chat", "chat", "add:1")), "topic chat cannot be derived from");
    declare(queue, "x", "chat", "add:1").unwrap();
    declare(queue, "y", "x", "add:2").unwrap();
    assert_eq!(why(declare(queue, "x", "y", "add:1")), "topic y cannot be derived from");
    let mut last = "y".to_owned();
    let deep = (0..20).find_map(|n| {
        let next = format!("y{n}");
        let declared = declare(queue, &next, &last, "add:1");
        last = next;
        declared.err()
    });
    assert!(matches!(deep, Some(CreateError::Source(_))), "a chain has an end");
    let refused = queue.delete_topic(&name("chat")).unwrap_err();
    assert!(matches!(refused, DeleteError::Source(_, by) if by == name("x")));
    let house = house.reopened();
    house.queue.set_maker(Arc::new(Words)).unwrap();
    let topics: Vec<TopicName> = house.queue.topics().into_iter().map(|t| t.name).collect();
    assert!(topics.contains(&name("y")));
}
