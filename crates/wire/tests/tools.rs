//! Programs of others convert what is written here, and leave nothing out.
//!
//! `biliass` (XML and protobuf) and `dmconvert` (XML) are installed from the
//! Python package index into an environment of their own under the target
//! directory, once; `scripts/needs.sh` says so. Where there is no network, set
//! `TIDELINE_OFFLINE=1`: then this says that it tries nothing.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tideline_wire::danmaku::{Item, Mode, Pool, Sender, proto, xml};

/// The environment's `bin`, or nothing where there is no network.
static TOOLS: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if std::env::var_os("TIDELINE_OFFLINE").is_some_and(|set| set != "0") {
        eprintln!("TIDELINE_OFFLINE is set: biliass and dmconvert are not tried");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("comment-tools");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/needs.sh");
    let status = Command::new(script).arg("comment-tools").arg(&folder).status().unwrap();
    assert!(status.success(), "needs.sh comment-tools: {status}");
    Some(folder.join("bin"))
});

/// What converters have stumbled over: markup, quotes, emoji, long texts, and
/// what looks like their own syntax.
const TEXTS: [&str; 10] = [
    "哈哈哈",
    "……&……",
    "<唯亿一张>",
    "#include<stdio.h>",
    "\"'`",
    "\u{1F415}👨‍👩‍👧‍👦",
    "{\\an8}\\N",
    "]]>&#7;&amp;",
    "a,b,c",
    "长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长长",
];

/// Comments of every mode, 40 in each second of two minutes, each with a
/// number of its own in its text.
fn comments() -> Vec<Item<'static>> {
    let item = |n: u32| {
        let mode = Mode::ALL[n as usize % 7];
        let text = format!("[{n}]{}", TEXTS[n as usize % TEXTS.len()]);
        let (pool, text) = match mode {
            Mode::Positioned => (Pool::Subtitle, format!("[0.1,0.2,\"1-1\",3,\"at {n}\",0,0]")),
            Mode::Script => (Pool::Special, format!("var n = {n};")),
            Mode::Bas => (Pool::Special, format!("def text n{n} {{ content = \"x\" }}")),
            _ => (Pool::Normal, text),
        };
        Item {
            id: i64::MAX - i64::from(n),
            progress_ms: n * 25 + n % 3,
            mode,
            size: [25, 18, 36, 5, 255][n as usize % 5],
            color: [0, 255, 0x00FF_FFFF, 0x0012_3456][n as usize % 4],
            sent_ms: 1_796_000_000_000,
            pool,
            sender: Sender::new(n.wrapping_mul(0x9E37_79B9)),
            weight: (n % 12) as u8,
            text: text.into(),
            ..Item::default()
        }
    };
    (0..4_800).map(item).collect()
}

fn xml_of(items: &[Item<'_>]) -> Vec<u8> {
    let mut file = Vec::new();
    xml::put_head(&mut file, &xml::Head { video: "v1", limit: 3_000, closed: false });
    items.iter().for_each(|item| xml::put_item(&mut file, item));
    xml::put_tail(&mut file);
    file
}

/// How often each number stands in the lines that begin with one of `starts`.
fn numbers(subtitles: &str, starts: &[&str]) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    for line in subtitles.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)))
    {
        let number = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        if let Some(number) = number.and_then(|(number, _)| number.parse().ok()) {
            *found.entry(number).or_default() += 1;
        }
    }
    found
}

fn once_each(items: &[Item<'_>], modes: &[Mode]) -> BTreeMap<u32, u32> {
    let numbers = (0..).zip(items).filter(|(_, item)| modes.contains(&item.mode));
    numbers.map(|(number, _)| (number, 1)).collect()
}

fn run(command: &mut Command) -> String {
    let output = command.env("PYTHONUTF8", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn biliass(bin: &Path, file: &Path, format: &str) -> String {
    let program = "import sys, biliass\n\
        data = open(sys.argv[1], 'rb').read()\n\
        print(biliass.convert_to_ass(data, 1920, 1080, sys.argv[2], reduce_comments=False))";
    run(Command::new(bin.join("python")).args(["-c", program]).arg(file).arg(format))
}

#[test]
fn biliass_converts_every_comment_of_our_xml_and_protobuf() {
    let Some(bin) = &*TOOLS else { return };
    let items = comments();
    let mut segment = Vec::new();
    items.iter().for_each(|item| proto::put_item(&mut segment, item));
    let folder = tempfile::tempdir().unwrap();
    let modes = [Mode::Scroll, Mode::Bottom, Mode::Top, Mode::Reverse];
    for (format, bytes) in [("xml", xml_of(&items)), ("protobuf", segment)] {
        let file = folder.path().join(format);
        std::fs::write(&file, bytes).unwrap();
        let found = numbers(&biliass(bin, &file, format), &["Dialogue:"]);
        assert_eq!(found, once_each(&items, &modes), "{format}");
    }
}

#[test]
fn dmconvert_converts_every_comment_of_our_xml() {
    let Some(bin) = &*TOOLS else { return };
    let items = comments();
    let folder = tempfile::tempdir().unwrap();
    let (file, subtitles) = (folder.path().join("in.xml"), folder.path().join("out.ass"));
    std::fs::write(&file, xml_of(&items)).unwrap();
    run(Command::new(bin.join("dmconvert")).arg("-i").arg(&file).arg("-o").arg(&subtitles));
    let subtitles = std::fs::read_to_string(subtitles).unwrap();
    // What finds no free row is written as a comment of the subtitles.
    let found = numbers(&subtitles, &["Dialogue:", "Comment:"]);
    assert_eq!(found, once_each(&items, &[Mode::Scroll, Mode::Bottom, Mode::Top]));
}
