//! `--demo`: the sample that ships with the project, as if it had happened
//! over the last days.

use tideline_catalogue::{Catalogue, Item};
use tideline_history::History;
use tideline_history::mark::{Ack, Mark, MarkSet, Path};
use tideline_history::query::Filter;
use tideline_types::{HOUR_MS, Millis, UserId};

use crate::cli::Failure;
use crate::import::{Csv, Cut, Entry, Format, Parsed, Records};

const SAMPLE: &str = include_str!("../../../samples/history.csv");
/// How far the sample's marks lie apart.
const STEP_MS: i64 = HOUR_MS + HOUR_MS / 3;

/// Puts the sample in, unless its users have something already.
pub(crate) async fn fill(
    history: &History,
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
    let items = entries.into_iter().map(|entry| {
        let item = Item { title: entry.title, ..Item::default() };
        (entry.kind, entry.id, item)
    });
    catalogue.put(items.collect()).await.map_err(|e| failed(&e.to_string()))
}

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
