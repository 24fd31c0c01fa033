//! `--demo`: the sample that ships with the project, as if it had happened
//! over the last days, and a clip with comments that the pages open onto.

use tideline_catalogue::{Catalogue, Item};
use tideline_danmaku::Danmaku;
use tideline_danmaku::ask::SettingsPatch;
use tideline_danmaku::comment::{Actor, Draft, Role};
use tideline_history::History;
use tideline_history::mark::{Ack, Mark, MarkSet, Path};
use tideline_history::query::Filter;
use tideline_types::{HOUR_MS, Millis, UserId};
use tideline_wire::danmaku::{Mode, Pool};

use crate::cli::Failure;
use crate::import::{Csv, Cut, Entry, Format, Parsed, Records};

const SAMPLE: &str = include_str!("../../../samples/history.csv");
/// How far the sample's marks lie apart.
const STEP_MS: i64 = HOUR_MS + HOUR_MS / 3;
/// The video that the pages carry the file of.
const CLIP: &str = "tide";
const CLIP_MS: u64 = 60_000;
/// Who has the sample's history, and owns its videos.
const OWNER: &str = "demo";

/// The page that a demo opens onto.
pub(crate) fn page() -> String {
    format!("#/video/{CLIP}")
}

/// Puts the sample in, unless its users have something already.
pub(crate) async fn fill(
    history: &History,
    danmaku: &Danmaku,
    catalogue: &Catalogue,
    now: Millis,
) -> Result<(), Failure> {
    let failed = |what: &str| Failure::Failed(format!("--demo: {what}"));
    let demo = UserId::new(OWNER).map_err(|e| failed(e.0))?;
    let there = history.count(&demo, Filter::default()).await;
    if there.map_err(|e| failed(&e.to_string()))? > 0 {
        return Ok(());
    }
    let entries = entries();
    let mut marks = MarkSet::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let Some(kind) = history.kinds().find(&entry.kind) else { continue };
        let ago = STEP_MS * (entries.len() - at) as i64;
        marks.push(&Mark {
            user: &entry.user,
            kind,
            id: &entry.id,
            part: entry.part.as_deref(),
            position_ms: entry.position_ms,
            duration_ms: entry.duration_ms,
            sent_ms: Some(now.plus(-ago)),
            device: entry.device.as_deref(),
            group: entry.group.as_deref(),
            finished: entry.finished,
            event_id: None,
        });
    }
    let written = history.write(marks, 0, Path::Import, Ack::Durable).await;
    written.map_err(|e| failed(&e.to_string()))?;
    comment(danmaku, &entries).await?;
    let mut items: Vec<_> = entries.into_iter().map(item_of).collect();
    items.push(clip());
    catalogue.put(items).await.map_err(|e| failed(&e.to_string()))
}

/// An object of the sample, by kind and id. Its marks say how long it is.
fn item_of(entry: Entry) -> (String, String, Item) {
    let owner = (entry.kind == "video").then(|| OWNER.to_owned());
    (entry.kind, entry.id, Item { title: entry.title, owner, ..Item::default() })
}

fn clip() -> (String, String, Item) {
    let item = Item {
        title: Some("Tide: a minute of waves".to_owned()),
        owner: Some(OWNER.to_owned()),
        duration_ms: Some(CLIP_MS),
        ..Item::default()
    };
    ("video".to_owned(), CLIP.to_owned(), item)
}

/// Comments across each video, by the sample's users; more across the clip,
/// which people come back to.
async fn comment(danmaku: &Danmaku, entries: &[Entry]) -> Result<(), Failure> {
    let failed = |what: String| Failure::Failed(format!("--demo: {what}"));
    let sample = entries.iter().filter(|entry| entry.kind == "video");
    let mut videos: Vec<(&str, u64)> =
        sample.map(|entry| (&*entry.id, entry.duration_ms.unwrap_or(600_000))).collect();
    videos.push((CLIP, CLIP_MS));
    videos.sort_by_key(|(id, _)| *id);
    videos.dedup_by_key(|(id, _)| *id);
    for (video, length_ms) in videos {
        let length_ms = length_ms.min(u64::from(u32::MAX));
        let rounds = if video == CLIP { CLIP_ROUNDS } else { 1 };
        for at in 0..rounds * COMMENTS.len() {
            let (text, mode, color) = said(at);
            let draft = Draft {
                text: text.to_owned(),
                progress_ms: place(at, length_ms) as u32,
                mode,
                size: 25,
                color,
                pool: Pool::Normal,
                client_id: Some(format!("demo-{at}")),
            };
            let user = UserId::new(WRITERS[at % WRITERS.len()]).map_err(|e| failed(e.0.into()))?;
            let actor = Actor { user, role: Role::Viewer };
            danmaku.post(video, draft, actor).await.map_err(|e| failed(e.to_string()))?;
        }
    }
    let owner = UserId::new(OWNER).map_err(|e| failed(e.0.into()))?;
    let patch =
        SettingsPatch { duration_ms: Some(Some(CLIP_MS as u32)), ..SettingsPatch::default() };
    let set = danmaku.set(CLIP, patch, Actor { user: owner, role: Role::Owner }).await;
    set.map(drop).map_err(|e| failed(e.to_string()))
}

/// What is said: another text at the same place of each round, all but those of
/// the first moving, so that they leave room for one another.
fn said(at: usize) -> (&'static str, Mode, u32) {
    let (round, at) = (at / COMMENTS.len(), at % COMMENTS.len());
    let (text, mode, color) = COMMENTS[(at + 5 * round) % COMMENTS.len()];
    (text, if round == 0 { mode } else { Mode::Scroll }, color)
}

/// When it is said: evenly in the first round, and closer to the middle, where
/// most happens, in each round after it.
fn place(at: usize, length_ms: u64) -> u64 {
    let (round, at) = ((at / COMMENTS.len()) as u64, (at % COMMENTS.len()) as u64);
    let even = length_ms * (at + 1) / (COMMENTS.len() as u64 + 2);
    let middle = length_ms / 2;
    (2 * even + middle * round) / (round + 2) + round * 431 % 997
}

/// Who says it, in turn.
const WRITERS: [&str; 4] = ["ann", "ben", "demo", "cai"];
/// How often all of it is said across the clip.
const CLIP_ROUNDS: usize = 4;
/// What is said, how it is shown, and its colour.
const COMMENTS: [(&str, Mode, u32); 12] = [
    ("Here we go", Mode::Scroll, 0xFF_FFFF),
    ("第一次看", Mode::Scroll, 0xFF_FFFF),
    ("Look at the light on the water", Mode::Scroll, 0xFE_F102),
    ("好美", Mode::Top, 0x66_CCFF),
    ("What is this music?", Mode::Scroll, 0xFF_FFFF),
    ("前方高能", Mode::Top, 0xFE_0302),
    ("again!", Mode::Reverse, 0x00_CD00),
    ("哈哈哈哈", Mode::Scroll, 0xFF_FFFF),
    ("I come back to this every week", Mode::Scroll, 0xFF_FFFF),
    ("(｢･ω･)｢", Mode::Scroll, 0xFF_AA02),
    ("the tide is turning", Mode::Bottom, 0x89_D5FF),
    ("See you at the next one", Mode::Scroll, 0xFF_FFFF),
];

fn entries() -> Vec<Entry> {
    let mut format = Csv::new(None, None);
    let mut records = Records::new(SAMPLE.as_bytes(), Cut::Csv, 0, 1);
    let mut entries = Vec::new();
    while let Ok(Some(record)) = records.read() {
        let bytes = record.bytes.unwrap_or_default();
        if record.line == 1 {
            let _ = format.header(bytes);
        } else if let Parsed::Mark(entry) = format.parse(bytes) {
            entries.push(*entry);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_of_the_sample_is_a_mark_with_a_title() {
        let entries = super::entries();
        assert_eq!(entries.len(), super::SAMPLE.lines().count() - 1);
        assert!(entries.iter().all(|entry| entry.title.is_some()));
        assert!(entries.iter().any(|entry| entry.user == super::OWNER));
    }

    #[test]
    fn every_comment_of_the_clip_is_said_while_it_plays() {
        let all = super::CLIP_ROUNDS * super::COMMENTS.len();
        let places = (0..all).map(|at| super::place(at, super::CLIP_MS));
        assert!(places.into_iter().all(|at| (1..super::CLIP_MS).contains(&at)));
    }
}
