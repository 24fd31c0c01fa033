//! What the command line says and how it ends.

use crate::program::{ok, run, tideline};

fn status_and_error(args: &[&str]) -> (Option<i32>, String) {
    let output = run(args);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_command_teaches_with_examples() {
    for command in [
        &["serve"][..],
        &["import", "history"],
        &["export"],
        &["topic"],
        &["meta"],
        &["token"],
        &["backup"],
        &["restore"],
        &["check"],
        &["config"],
    ] {
        let mut args = command.to_vec();
        args.push("--help");
        let help = ok(&args);
        assert!(help.contains("Example"), "{command:?} shows no example:\n{help}");
        assert!(help.contains(&format!("tideline {}", command[0])), "{command:?}");
    }
    assert!(ok(&["--help"]).contains("First steps"));
    assert!(ok(&["bench", "--help"]).contains("What to measure"));
}

#[test]
fn bad_usage_ends_with_2_and_a_failure_with_1() {
    for args in [
        &["serve", "--port", "7"][..],
        &["frobnicate"],
        &["import", "history", "--format", "csv"],
        &["export"],
        &["topic", "ls", "--server", "localhost:1"],
        &["serve", "--set", "history.timezone"],
        &["serve", "--set", "history.timezone=Mars/Olympus"],
        &["config", "print", "--set", "logging.format=xml"],
        &["import", "history", "--format", "youtube", "watch-history.json"],
    ] {
        let (status, error) = status_and_error(args);
        assert_eq!(status, Some(2), "{args:?}: {error}");
    }
    for args in [
        &["import", "history", "--format", "csv", "no-such-file.csv"][..],
        &["check", "no-such-folder"],
        &["restore", "no-such-backup", "--data", "no-such-folder"],
    ] {
        let (status, error) = status_and_error(args);
        assert_eq!(status, Some(1), "{args:?}: {error}");
        assert!(error.contains("no-such"), "{args:?} names what is missing: {error}");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_nearest_neighbour_whatever_the_layer() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("t.toml");
    std::fs::write(&file, "[history]\ntimezon = \"UTC\"\n").expect("a file");
    let (status, error) =
        status_and_error(&["config", "print", "--config", file.to_str().expect("text")]);
    assert_eq!(status, Some(2));
    assert!(error.contains("unknown key `history.timezon`"), "{error}");
    assert!(error.contains("`history.timezone`"), "{error}");
    let output = tideline(&["config", "print"])
        .env("TIDELINE__QUEUE__PARTITION", "8")
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("nearest known one is `queue.partitions`"), "{error}");
}

#[test]
fn what_is_printed_of_the_settings_is_a_file_of_settings() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("t.toml");
    let printed = ok(&["config", "print", "--set", "queue.partitions=8"]);
    std::fs::write(&file, &printed).expect("a file");
    let file = file.to_str().expect("text");
    assert_eq!(ok(&["config", "print", "--config", file]), printed);
    let json: serde_json::Value =
        serde_json::from_str(&ok(&["config", "print", "--config", file, "--json"])).expect("JSON");
    assert_eq!(json["queue"]["partitions"], 8);
    std::fs::write(file, ok(&["config", "default"])).expect("a file");
    assert_eq!(ok(&["config", "print", "--config", file]), ok(&["config", "print"]));
}
