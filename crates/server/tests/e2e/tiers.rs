//! Processes that follow one another, and are killed.

use crate::program::{Server, ok};

#[test]
fn the_worked_example_holds_while_a_tier_and_a_reader_are_killed() {
    let args = ["--readers", "4", "--seconds", "8", "--rate", "300", "--kill"];
    let printed = ok(&[&["example", "streams"], &args[..]].concat());
    for reader in 0..4 {
        for topic in ["video-plays", "live-gifts"] {
            let line = printed.lines().find(|line| {
                let mut words = line.split_whitespace();
                words.next() == Some(&reader.to_string()) && words.next() == Some(topic)
            });
            let line = line.unwrap_or_else(|| panic!("reader {reader}, {topic}: {printed}"));
            let hot: u32 = line.split_whitespace().nth(3).expect("a column").parse().expect(line);
            assert!(hot > 0, "nothing is hot: {line}");
        }
    }
    let last = printed.lines().last().expect("a line");
    let good: u64 = last.split_whitespace().next().expect("a word").parse().expect(last);
    assert!(good > 100 && last.contains(" 0 alarms"), "{last}");
}

/// Two hosts compute a topic: the server, and the command by itself.
#[test]
fn a_digest_is_the_same_wherever_a_topic_is_computed_and_tells_operators_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let grpc = server.banner.iter().find_map(|line| line.trim().strip_prefix("gRPC"));
    let grpc = format!("http://{}", grpc.expect("it listens").trim());
    server.ok(&["topic", "create", "chat", "--partitions", "2"]);
    for key in ["ann", "bob", "cal", "dan"] {
        for n in 0..5 {
            let value = format!("{{\"n\":{n}}}");
            server.ok(&["topic", "produce", "chat", "--key", key, "--value", &value]);
        }
    }
    let operator = r#"{"filter":"value.n > 1","value":"value.n * 2"}"#;
    server.ok(&["topic", "create", "twice", "--source", "chat", "--operator", operator]);
    let digest = |args: &[&str]| {
        let all = [&["topic", "digest"], args, &["--every", "3", "--grpc", &grpc]].concat();
        ok(&all)
    };
    let there = digest(&["twice"]);
    assert!(there.lines().count() > 5, "{there}");
    assert_eq!(digest(&["chat", "--operator", operator]), there);
    assert_ne!(digest(&["chat"]), there);
    // Another one that is wrong from some number on is found in the lines from there on.
    let broken = operator.replace("* 2", "* 2 + (value.n > 3 ? 1 : 0)");
    let broken = digest(&["chat", "--operator", &broken]);
    let differ = there.lines().zip(broken.lines()).filter(|(a, b)| a != b).count();
    assert!(differ > 0 && differ < there.lines().count() - 1, "{differ} lines of {there}");
}
