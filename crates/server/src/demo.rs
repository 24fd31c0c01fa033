//! `--demo`: the sample that ships with the project, as if it had happened
//! over the last days.

use tideline_catalogue::{Catalogue, Item};
use tideline_danmaku::Danmaku;
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

/// Puts the sample in, unless its users have something already.
pub(crate) async fn fill(
    history: &History,
    danmaku: &Danmaku,
    catalogue: &Catalogue,
    now: Millis,
) -> Result<(), Failure> {
    let failed = |what: &str| Failure::Failed(format!("--demo: {what}"));
    let demo = UserId::new("demo").map_err(|e| failed(e.0))?;
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
    let items = entries.into_iter().map(|entry| {
        let item = Item { title: entry.title, ..Item::default() };
        (entry.kind, entry.id, item)
    });
    catalogue.put(items.collect()).await.map_err(|e| failed(&e.to_string()))
}

/// A few comments across each video of the sample, by its users.
async fn comment(danmaku: &Danmaku, entries: &[Entry]) -> Result<(), Failure> {
    let failed = |what: String| Failure::Failed(format!("--demo: {what}"));
    let mut videos: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == "video").collect();
    videos.sort_by_key(|entry| &entry.id);
    videos.dedup_by_key(|entry| &entry.id);
    for video in videos {
        let length_ms = video.duration_ms.unwrap_or(600_000).min(u64::from(u32::MAX));
        for (at, (text, mode, color)) in COMMENTS.iter().enumerate() {
            let user = ["ann", "ben", "demo"][at % 3];
            let user = UserId::new(user).map_err(|e| failed(e.0.into()))?;
            let progress_ms = length_ms * (at as u64 + 1) / (COMMENTS.len() as u64 + 2);
            let draft = Draft {
                text: (*text).to_owned(),
                progress_ms: progress_ms as u32,
                mode: *mode,
                size: 25,
                color: *color,
                pool: Pool::Normal,
                client_id: Some(format!("demo-{at}")),
            };
            let actor = Actor { user, role: Role::Viewer };
            let posted = danmaku.post(&video.id, draft, actor).await;
            posted.map_err(|e| failed(e.to_string()))?;
        }
    }
    Ok(())
}

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
        assert!(entries.iter().any(|entry| entry.user == "demo"));
    }
}
