//! What users and players do, and what must come of it. (What is about JSON,
//! status codes, cursors' seals and restarts is told where those live.)

use tideline_history::mark::{Mark, Path, Verdict};
use tideline_history::query::{ClearFilter, Filter, PageAt};
use tideline_types::{DAY_MS, Millis};

use crate::desk::{Desk, NOW};

impl Desk {
    /// Sends a live mark with no clock error; true when it is accepted.
    fn live(&mut self, mark: Mark<'_>) -> bool {
        matches!(self.verdict(mark), Verdict::Accepted { .. })
    }

    fn verdict(&mut self, mark: Mark<'_>) -> Verdict {
        self.send(&mark, 0, Path::Live)
    }

    fn all(&self) -> Vec<String> {
        self.ids(&Filter::default())
    }

    fn unfinished(&self) -> Vec<String> {
        self.ids(&Filter { unfinished: true, ..Filter::default() })
    }
}

/// A mark so many ms before `NOW`.
fn ago(mark: Mark<'static>, ms: i64) -> Mark<'static> {
    Mark { sent_ms: Some(Millis(NOW - ms)), ..mark }
}

/// A mark so many ms before `NOW`, at a position of a duration (0: none).
fn seen(mark: Mark<'static>, ms: i64, position: u64, duration: u64) -> Mark<'static> {
    let duration_ms = Some(duration).filter(|&duration| duration > 0);
    Mark { position_ms: Some(position), duration_ms, ..ago(mark, ms) }
}

#[test]
fn a_late_upload_does_not_overwrite_a_newer_position() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 1000, 80_000, 100_000)));
    assert_eq!(desk.verdict(seen(v, 9000, 60_000, 100_000)), Verdict::Stale);
    let row = desk.row("video", "v").unwrap();
    assert_eq!((row.position_ms, row.percent()), (Some(80_000), Some(80)));
}

#[test]
fn a_paused_second_client_leaves_a_finished_row_finished() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 9000, 1_500_000, 1_500_000)));
    for ms in [8000, 7000] {
        assert!(desk.live(Mark { device: Some("b"), ..seen(v, ms, 600_000, 1_500_000) }));
    }
    let row = desk.row("video", "v").unwrap();
    assert_eq!((row.finished, row.plays, row.device.as_deref()), (true, 1, Some("b")));
}

#[test]
fn a_user_may_rewind() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 9000, 60_000, 0)) && desk.live(seen(v, 1000, 50_000, 0)));
    assert_eq!(desk.row("video", "v").unwrap().position_ms, Some(50_000));
}

#[test]
fn without_a_duration_there_is_no_percent_and_the_same_report_again_is_a_duplicate() {
    let mut desk = Desk::new();
    let v = Mark { event_id: Some("e1"), ..seen(desk.mark("video", "v"), 1000, 600_000, 0) };
    assert!(desk.live(v));
    assert_eq!(desk.verdict(v), Verdict::Duplicate);
    assert_eq!(desk.row("video", "v").unwrap().percent(), None);
    assert_eq!(desk.count(&Filter::default()), 1);
}

#[test]
fn marking_as_finished_takes_a_row_off_the_unfinished_list() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 2000, 600_000, 1_500_000)));
    assert_eq!(desk.unfinished(), ["v"]);
    assert!(desk.live(Mark { finished: true, ..ago(v, 1000) }));
    assert!(desk.unfinished().is_empty());
    assert!(desk.row("video", "v").unwrap().finished);
}

#[test]
fn half_a_second_before_the_end_is_finished() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 0, 210_329, 210_791)));
    let row = desk.row("video", "v").unwrap();
    assert_eq!((row.finished, row.plays), (true, 1));
}

#[test]
fn a_rewatch_stays_finished_and_holds_its_own_position() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    for (ms, position) in [(9000, 1_000_000), (8000, 5000), (7000, 30_000)] {
        assert!(desk.live(seen(v, ms, position, 1_000_000)));
    }
    let row = desk.row("video", "v").unwrap();
    assert_eq!((row.finished, row.plays, row.position_ms), (true, 1, Some(30_000)));
    assert!(desk.live(seen(v, 6000, 999_999, 1_000_000)));
    assert_eq!(desk.row("video", "v").unwrap().plays, 2);
}

#[test]
fn stopping_twice_near_the_end_is_one_play() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    for (ms, position) in
        [(90_000, 0), (50_000, 1_490_000), (40_000, 1_400_000), (30_000, 1_500_000)]
    {
        assert!(desk.live(seen(v, ms, position, 1_500_000)));
    }
    assert_eq!(desk.row("video", "v").unwrap().plays, 1);
}

#[test]
fn large_ids_come_back_exactly() {
    let mut desk = Desk::new();
    let ids = ["112489730346240", "9223372036854775807", "9007199254740993", "0"];
    for (at, id) in ids.into_iter().enumerate() {
        let mark = ago(desk.mark("video", id), 10 - at as i64);
        assert!(desk.live(mark));
    }
    assert!(desk.all().iter().eq(ids.iter().rev()));
    assert!(desk.row("video", "00").is_none());
}

#[test]
fn the_same_id_in_two_kinds_is_two_rows() {
    let mut desk = Desk::new();
    let (video, live) = (desk.mark("video", "100"), desk.mark("live", "100"));
    assert!(desk.live(seen(video, 2, 1, 0)) && desk.live(ago(live, 1)));
    assert_eq!(desk.delete(&[("live", "100")]), 1);
    assert!(desk.row("video", "100").is_some() && desk.row("live", "100").is_none());
}

#[test]
fn a_deleted_row_comes_back_only_by_a_newer_watch() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 60_000, 1000, 0)));
    assert_eq!(desk.delete(&[("video", "v")]), 1);
    assert_eq!(desk.verdict(seen(v, 30_000, 2000, 0)), Verdict::Stale);
    assert!(desk.row("video", "v").is_none());
    desk.now += 30;
    assert!(desk.live(Mark { position_ms: Some(3000), ..v }));
    assert_eq!(desk.row("video", "v").unwrap().position_ms, Some(3000));
}

#[test]
fn a_clear_holds_against_events_from_before_it() {
    let mut desk = Desk::new();
    for id in ["v0", "v1", "v2"] {
        let mark = desk.mark("video", id);
        assert!(desk.live(seen(mark, 90_000, 1000, 0)));
    }
    assert_eq!(desk.clear(&ClearFilter::default()), 3);
    assert_eq!(desk.count(&Filter::default()), 0);
    let v1 = desk.mark("video", "v1");
    assert_eq!(desk.verdict(seen(v1, 80_000, 5000, 0)), Verdict::Stale);
}

#[test]
fn recording_off_stores_nothing_and_old_rows_stay() {
    let mut desk = Desk::new();
    let (v1, v2) = (desk.mark("video", "v1"), desk.mark("video", "v2"));
    assert!(desk.live(seen(v1, 60_000, 1000, 0)));
    assert!(desk.switch(false) && !desk.user.recording());
    desk.now += 20;
    assert_eq!(desk.verdict(v2), Verdict::Paused);
    assert_eq!(desk.verdict(ago(v2, 50_000)), Verdict::Paused);
    let offline = ago(v2, 50_000);
    assert!(matches!(desk.send(&offline, 0, Path::Merge), Verdict::Accepted { .. }));
    assert!(desk.switch(true) && !desk.switch(true));
    desk.now += 20;
    assert!(desk.live(desk.mark("video", "v4")));
    assert_eq!(desk.all(), ["v4", "v2", "v1"]);
}

#[test]
fn over_the_cap_the_oldest_row_is_gone_from_every_read() {
    let mut desk = Desk::new();
    let ids: Vec<String> = (0..1001).map(|n| format!("n{n}")).collect();
    let kind = desk.kind("video");
    for (at, id) in ids.iter().enumerate() {
        let mark = ago(desk.mark("video", ""), 2_000_000 - at as i64 * 1000);
        assert!(desk.live(Mark { id, kind, ..mark }));
    }
    assert_eq!(desk.count(&Filter::default()), 1000);
    assert!(desk.row("video", "n0").is_none() && desk.row("video", "n1").is_some());
    let page = desk.page(&Filter::default(), PageAt::Skip(900), 100);
    assert_eq!((page.total, page.rows.len(), page.more), (Some(1000), 100, false));
    assert_eq!(&*page.rows[99].id, "n1");
    assert_eq!(desk.by_cursor(&Filter::default(), 7).len(), 1000);
}

#[test]
fn rows_of_one_instant_are_paged_each_once() {
    let mut desk = Desk::new();
    let ids: Vec<String> = (0..25).map(|n| format!("t{n}")).collect();
    for id in &ids {
        let mark = ago(desk.mark("video", ""), 5000);
        assert!(desk.live(Mark { id, ..mark }));
    }
    let first = desk.page(&Filter::default(), PageAt::Below(None), 10);
    assert!(first.more && first.rows.len() == 10);
    let mut all: Vec<String> =
        desk.by_cursor(&Filter::default(), 10).iter().map(|row| row.id.to_string()).collect();
    assert!(all.is_sorted_by(|a, b| a > b));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 25);
}

#[test]
fn times_too_far_ahead_are_refused_and_a_small_lead_is_taken_as_now() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert_eq!(desk.verdict(ago(v, -2 * DAY_MS)), Verdict::Ahead);
    assert_eq!(desk.verdict(ago(v, -DAY_MS - 1)), Verdict::Ahead);
    assert!(desk.live(ago(v, -DAY_MS)));
    assert_eq!(desk.row("video", "v").unwrap().event_ms, Millis(NOW));
    let early = Mark { sent_ms: Some(Millis(5)), ..v };
    assert_eq!(desk.send(&early, -5, Path::Live), Verdict::BeforeEpoch);
    assert_eq!(desk.send(&early, -4, Path::Live), Verdict::Stale);
    desk.now += 20;
    assert!(desk.live(desk.mark("video", "w")));
    assert_eq!(desk.all(), ["w", "v"]);
}

#[test]
fn a_mark_without_a_position_keeps_the_position_there_was() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 3000, 595_000, 0)) && desk.live(ago(v, 1000)));
    assert_eq!(desk.row("video", "v").unwrap().position_ms, Some(595_000));
}

#[test]
fn an_export_put_back_after_an_erase_is_the_same_history() {
    let mut desk = Desk::new();
    let a = desk.mark("video", "a");
    let (b, c) = (desk.mark("article", "b"), desk.mark("video", "c"));
    assert!(desk.live(Mark { device: Some("tv"), ..seen(a, 30_000, 1000, 90_000) }));
    assert!(desk.live(ago(b, 20_000)));
    assert!(desk.live(seen(c, 10_000, 90_000, 90_000)));
    assert!(desk.live(seen(c, 9000, 5000, 90_000)));
    desk.delete(&[("video", "gone")]);
    let doc = desk.export();
    desk.erase();
    assert_eq!(desk.count(&Filter::default()), 0);
    assert_eq!(desk.verdict(seen(a, 5000, 1, 0)), Verdict::Stale);
    let report = desk.restore(&doc);
    assert_eq!((report.accepted, report.stale), (3, 0));
    assert_eq!(desk.export().rows, doc.rows);
    assert_eq!(desk.unfinished(), ["c", "a"]);
    assert_eq!(desk.verdict(seen(a, 5000, 1, 0)), Verdict::Stale, "the erase still holds");
    let mut empty = Desk::new();
    empty.restore(&doc);
    assert_eq!(empty.export(), doc);
}

#[test]
fn an_erase_switches_recording_on_and_grants_no_first_twice() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert_eq!(desk.verdict(v), Verdict::Accepted { first_today: true });
    desk.switch(false);
    desk.erase();
    assert!(desk.user.recording());
    assert_eq!(desk.verdict(v), Verdict::Accepted { first_today: false });
    desk.now += DAY_MS;
    assert_eq!(desk.verdict(v), Verdict::Accepted { first_today: true });
}

#[test]
fn the_first_of_a_day_is_granted_once_a_kind_and_never_to_a_merge() {
    let mut desk = Desk::new();
    let (v, w, a) = (desk.mark("video", "v"), desk.mark("video", "w"), desk.mark("article", "a"));
    let merged = desk.send(&ago(v, 100), 0, Path::Merge);
    assert_eq!(merged, Verdict::Accepted { first_today: false });
    assert_eq!(desk.verdict(w), Verdict::Accepted { first_today: true });
    assert_eq!(desk.verdict(v), Verdict::Accepted { first_today: false });
    assert_eq!(desk.verdict(a), Verdict::Accepted { first_today: true });
}

#[test]
fn a_finish_watched_offline_counts_without_moving_the_position() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 1000, 200_000, 1_000_000)));
    assert!(desk.live(seen(v, 50_000, 1_000_000, 1_000_000)));
    let row = desk.row("video", "v").unwrap();
    assert_eq!((row.finished, row.plays, row.position_ms), (true, 1, Some(200_000)));
    assert_eq!(desk.verdict(seen(v, 60_000, 1_000_000, 1_000_000)), Verdict::Stale);
}

#[test]
fn a_whole_batch_sent_again_changes_nothing() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    let batch = [
        Mark { event_id: Some("a"), ..seen(v, 9000, 0, 1_000_000) },
        Mark { event_id: Some("b"), ..seen(v, 9000, 1_000_000, 1_000_000) },
    ];
    assert!(batch.into_iter().all(|mark| desk.live(mark)));
    let before = desk.export();
    assert!(batch.into_iter().all(|mark| desk.verdict(mark) == Verdict::Duplicate));
    assert_eq!(desk.export(), before);
}

#[test]
fn a_retry_without_a_time_of_its_own_is_a_duplicate_for_a_day_and_new_after_a_delete() {
    let mut desk = Desk::new();
    let v = Mark { event_id: Some("z"), position_ms: Some(5), ..desk.mark("video", "v") };
    assert!(desk.live(v));
    desk.now += DAY_MS - 1;
    assert_eq!(desk.verdict(v), Verdict::Duplicate);
    desk.now += 1;
    assert!(desk.live(v));
    desk.delete(&[("video", "v")]);
    assert!(desk.live(v));
}

#[test]
fn the_next_episode_starts_afresh() {
    let mut desk = Desk::new();
    let s = Mark { device: Some("tv"), ..desk.mark("video", "s") };
    assert!(desk.live(Mark { part: Some("ep1"), ..seen(s, 9000, 1_440_000, 1_440_000) }));
    assert!(desk.live(Mark { part: Some("ep2"), device: None, ..ago(s, 8000) }));
    let row = desk.row("video", "s").unwrap();
    assert_eq!((row.part.as_deref(), row.finished, row.plays), (Some("ep2"), false, 0));
    assert_eq!((row.position_ms, row.duration_ms), (None, None));
    assert_eq!(row.device.as_deref(), Some("tv"));
    assert!(desk.live(Mark { part: Some("ep2"), ..seen(s, 7000, 1000, 1_440_000) }));
    assert_eq!(desk.unfinished(), ["s"]);
}

#[test]
fn declared_finished_holds_until_a_later_mark_has_a_position() {
    let mut desk = Desk::new();
    let v = desk.mark("video", "v");
    assert!(desk.live(seen(v, 9000, 600_000, 1_500_000)));
    assert!(desk.live(Mark { finished: true, ..ago(v, 8000) }) && desk.live(ago(v, 7000)));
    assert!(desk.unfinished().is_empty());
    assert!(desk.live(seen(v, 6000, 700_000, 0)));
    assert_eq!(desk.unfinished(), ["v"]);
    assert!(desk.row("video", "v").unwrap().finished);
}

#[test]
fn a_clip_of_a_second_and_a_half_is_played_once() {
    let mut desk = Desk::new();
    let c = desk.mark("video", "c");
    assert!((0..5).all(|n| desk.live(seen(c, 9000 - n * 1000, 700, 1500))));
    assert!(!desk.row("video", "c").unwrap().finished);
    assert!(desk.live(seen(c, 3000, 900, 1500)) && desk.live(seen(c, 2000, 1400, 1500)));
    assert_eq!(desk.row("video", "c").unwrap().plays, 1);
}

#[test]
fn what_happened_while_recording_was_off_stays_unrecorded_when_uploaded_later() {
    let mut desk = Desk::new();
    desk.switch(false);
    desk.now += 60;
    desk.switch(true);
    desk.now += 60;
    let v = desk.mark("video", "v");
    for (ms, paused) in [(1, false), (0, true), (-59, true), (-60, false)] {
        let verdict = desk.send(&ago(v, ms), 0, Path::Merge);
        assert_eq!(verdict == Verdict::Paused, paused, "{ms}");
    }
}

#[test]
fn a_range_clear_takes_its_range_and_blocks_late_events_in_it_alone() {
    let mut desk = Desk::new();
    for (id, ms) in [("a", 40_000), ("b", 30_000), ("c", 20_000)] {
        let mark = desk.mark("video", id);
        assert!(desk.live(seen(mark, ms, 1, 0)));
    }
    let d = desk.mark("article", "d");
    assert!(desk.live(ago(d, 30_000)));
    let range = ClearFilter {
        kind: Some(desk.kind("video")),
        after_ms: Some(Millis(NOW - 35_000)),
        before_ms: Some(Millis(NOW - 20_000)),
        ..ClearFilter::default()
    };
    assert_eq!(desk.clear(&range), 1);
    assert_eq!(desk.all(), ["c", "d", "a"]);
    let (e, f) = (desk.mark("video", "e"), desk.mark("video", "f"));
    assert_eq!(desk.verdict(ago(e, 25_000)), Verdict::Stale);
    assert!(desk.live(ago(f, 20_000)));
    assert_eq!(desk.count(&Filter::default()), 4);
}

#[test]
fn what_fell_off_a_full_kind_does_not_come_back() {
    let mut desk = Desk::new();
    let ids: Vec<String> = (0..200).map(|n| format!("n{n}")).collect();
    for (at, id) in ids.iter().enumerate() {
        let mark = ago(desk.mark("product", ""), 900_000 - at as i64 * 1000);
        assert!(desk.live(Mark { id, ..mark }));
    }
    let (old, new) = (desk.mark("product", "old"), desk.mark("product", "new"));
    assert_eq!(desk.verdict(ago(old, 950_000)), Verdict::Stale);
    assert!(desk.live(ago(new, 1000)));
    assert_eq!(desk.delete(&[("product", "n150")]), 1);
    let n0 = desk.mark("product", "n0");
    assert_eq!(desk.verdict(ago(n0, 900_000)), Verdict::Stale);
    assert_eq!(desk.count(&Filter::default()), 199);
    assert!(desk.row("product", "n0").is_none());
}

#[test]
fn a_slow_clock_is_put_right_before_any_rule() {
    let mut desk = Desk::new();
    let x = ago(desk.mark("video", "x"), 3_601_000);
    assert!(matches!(desk.send(&x, 3_600_000, Path::Live), Verdict::Accepted { .. }));
    assert_eq!(desk.row("video", "x").unwrap().event_ms, Millis(NOW - 1000));
}

#[test]
fn days_are_counted() {
    let mut desk = Desk::new();
    for (kind, id, ms) in
        [("video", "a", 1), ("video", "b", 2 * DAY_MS + 1), ("article", "c", 2 * DAY_MS + 2)]
    {
        let mark = desk.mark(kind, id);
        assert!(desk.live(ago(mark, ms)));
    }
    let today = Millis(NOW - 1).utc_day();
    assert_eq!(desk.days(&Filter::default()), [(today, 1), (today - 2, 2)]);
}

#[test]
fn a_watch_right_after_a_delete_counts() {
    let mut desk = Desk::new();
    let v = Mark { position_ms: Some(3), ..desk.mark("video", "v") };
    for _ in 0..20 {
        desk.delete(&[("video", "v")]);
        assert!(desk.live(v));
    }
    desk.clear(&ClearFilter::default());
    assert!(desk.live(v));
    assert_eq!(desk.row("video", "v").unwrap().event_ms, Millis(NOW + 1));
}

#[test]
fn a_clear_of_finished_rows_blocks_each_of_them_and_nothing_else() {
    let mut desk = Desk::new();
    let (a, b, c) = (desk.mark("video", "a"), desk.mark("video", "b"), desk.mark("video", "c"));
    assert!(desk.live(Mark { finished: true, ..ago(a, 5000) }) && desk.live(ago(b, 5000)));
    let finished = ClearFilter { finished: true, ..ClearFilter::default() };
    assert_eq!(desk.clear(&finished), 1);
    assert_eq!(desk.verdict(ago(a, 4000)), Verdict::Stale);
    assert!(desk.live(ago(b, 4000)) && desk.live(ago(c, 4000)));
}

#[test]
fn retention_acts_when_something_is_read() {
    let mut desk = Desk::new();
    let p = desk.mark("product", "p");
    assert!(desk.live(ago(p, 62 * DAY_MS)));
    assert_eq!(desk.verdict(ago(desk.mark("product", "q"), 62 * DAY_MS + 1)), Verdict::Stale);
    assert_eq!(desk.all(), ["p"]);
    desk.now += 1;
    assert!(desk.all().is_empty() && desk.row("product", "p").is_none());
    assert_eq!(desk.count(&Filter::default()), 0);
}
