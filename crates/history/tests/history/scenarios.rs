#![allow(dead_code, unused_imports)]
//! What users and players do, and what must come of it.

use tideline_history::mark::{Mark, Path, Verdict};
use tideline_history::query::{ClearFilter, Filter, PageAt};
use tideline_types::Millis;

use crate::desk::{Desk, NOW};

const MERELY: Verdict = Verdict::Accepted { first_today: false };

fn at(ms: i64) -> Option<Millis> {
    Some(Millis(NOW + ms))
}

impl Desk {
    /// Sends a live mark with no clock error; true when it is accepted.
    fn live(&mut self, mark: Mark<'_>) -> bool {
        matches!(self.send(&mark, 0, Path::Live), Verdict::Accepted { .. })
    }

    fn all(&self) -> Vec<String> {
        self.ids(&Filter::default())
    }

    fn unfinished(&self) -> Vec<String> {
        self.ids(&Filter { unfinished: true, ..Filter::default() })
    }
}

fn seen(mark: Mark<'static>, ms: i64, position: u64, duration: u64) -> Mark<'static> {
    Mark {
        sent_ms: at(ms),
        position_ms: Some(position),
        duration_ms: Some(duration).filter(|&duration| duration > 0),
        ..mark
    }
}

#[test]
fn a_late_upload_does_not_overwrite_a_newer_position() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, -1000, 80_000, 100_000)));
    assert_eq!(desk.send(&seen(v, -9000, 60_000, 100_000), 0, Path::Live), Verdict::Stale);
    let row = desk.row("video", "v").unwrap();
    assert_eq!((row.position_ms, row.percent()), (Some(80_000), Some(80)));
}
