//! What was acknowledged is there: hot, at rest, after a stop, after a crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tideline_history::Options;
use tideline_history::mark::Verdict;
use tideline_history::owner::Refusal;
use tideline_history::query::{ClearFilter, Filter, ListQuery, ObjectKey, PageAt};
use tideline_store::mem::TableCall;
use tideline_store::{StoreError, Table, TableName};
use tideline_types::{DAY_MS, HOUR_MS, Millis, UserId};

use crate::site::{START, Site};

fn quick() -> Options {
    Options { flush_after: Duration::from_millis(500), ..Options::default() }
}

const FIRST: Verdict = Verdict::Accepted { first_today: true };

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_mark_is_listed_and_outlives_a_crash_before_any_flush() {
    let site = Site::new(&Options::default());
    assert_eq!(site.write("u", &["a"], -5).await, [FIRST]);
    assert_eq!(site.ids("u").await, ["a"]);
    let site = site.crash(&Options::default(), 0);
    assert_eq!(site.ids("u").await, ["a"]);
    assert!(site.health());
}

#[tokio::test(flavor = "multi_thread")]
async fn users_come_to_rest_and_are_read_from_there() {
    let site = Site::new(&quick());
    for n in 0..50 {
        let id = n.to_string();
        site.write(&format!("u{}", n % 7), &[&id], -100 + n).await;
    }
    site.until_at_rest().await;
    let site = site.reopen(&quick());
    let mut total = 0;
    for user in 0..7 {
        total += site.count(&format!("u{user}")).await.unwrap();
    }
    assert_eq!(total, 50);
    assert_eq!(site.ids("u0").await, ["49", "42", "35", "28", "21", "14", "7", "0"]);
    // A retry is told from a new mark even though the row was at rest.
    assert_eq!(site.write("u0", &["49"], -51).await, [Verdict::Duplicate]);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_stays_within_its_budget_and_nothing_is_lost() {
    let small = Options { hot_budget_bytes: 256 << 10, ..quick() };
    let site = Site::new(&small);
    for n in 0..3000 {
        loop {
            let user = format!("user-{n}");
            let kind = site.history.kinds().find("video").unwrap();
            let mut set = tideline_history::mark::MarkSet::with_capacity(1);
            set.push(&tideline_history::mark::Mark {
                user: &user,
                kind,
                id: "x",
                part: None,
                position_ms: None,
                duration_ms: None,
                sent_ms: None,
                device: None,
                group: None,
                finished: false,
                event_id: None,
            });
            use tideline_history::mark::{Ack, Path};
            match site.history.write(set, 0, Path::Live, Ack::Durable).await {
                Ok(_) => break,
                Err(Refusal::Overloaded(_)) => {
                    site.clock.advance(1000);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    let hot: usize = site.history.stats().iter().map(|(_, s)| s.hot_bytes).sum();
    assert!(hot < 2 * small.hot_budget_bytes, "{hot} bytes in memory");
    for n in (0..3000).step_by(97) {
        assert_eq!(site.ids(&format!("user-{n}")).await, ["x"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_clears_and_erases_hold_across_a_crash() {
    let site = Site::new(&quick());
    let user = UserId::new("u").unwrap();
    site.write("u", &["a", "b", "c"], -50).await;
    site.write("gone", &["a", "b"], -50).await;
    site.until_at_rest().await;
    let kind = site.history.kinds().find("video").unwrap();
    let key = ObjectKey { kind, id: "a".into() };
    assert_eq!(site.history.delete(&user, vec![key]).await, Ok(1));
    site.history.erase(&UserId::new("gone").unwrap()).await.unwrap();
    let site = site.crash(&quick(), 0);
    assert_eq!(site.ids("u").await, ["c", "b"]);
    assert_eq!(site.ids("gone").await, [""; 0]);
    assert_eq!(site.write("gone", &["z"], -10).await, [Verdict::Stale]);
    site.until_at_rest().await;
    let site = site.crash(&quick(), 0);
    assert_eq!(site.write("gone", &["z"], -10).await, [Verdict::Stale]);
    assert_eq!(site.history.clear(&user, ClearFilter::default()).await, Ok(2));
    assert_eq!(site.count("u").await, Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clear_holds_after_a_crash_against_events_from_before_it() {
    let site = Site::new(&quick());
    let user = UserId::new("u").unwrap();
    let ids: Vec<String> = (0..10).map(|n| format!("v{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    site.write("u", &ids, -90_000).await;
    assert_eq!(site.history.clear(&user, ClearFilter::default()).await, Ok(10));
    let site = site.crash(&quick(), 0);
    assert_eq!(site.ids("u").await, [""; 0]);
    assert_eq!(site.count("u").await, Ok(0));
    assert_eq!(site.write("u", &["v3"], -80_000).await, [Verdict::Stale]);
    assert_eq!(site.ids("u").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_space_is_an_answer_and_writing_goes_on_when_space_is_back() {
    let site = Site::new(&quick());
    site.write("u", &["a"], -50).await;
    site.journal.set_fault(Some(StoreError::NoSpace { what: "test".into() }));
    let user = UserId::new("u").unwrap();
    let refused = site.history.erase(&user).await;
    assert!(matches!(refused, Err(Refusal::NoSpace(_))), "{refused:?}");
    site.journal.set_fault(None);
    loop {
        match site.count("u").await {
            Ok(count) => break assert_eq!(count, 1, "what was refused did not happen"),
            Err(Refusal::Overloaded(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(other) => panic!("{other}"),
        }
    }
    // What the log holds comes to rest first.
    while let Err(refused) = site.history.set_recording(&user, true).await {
        assert!(matches!(refused, Refusal::NoSpace(_)), "{refused:?}");
        site.clock.advance(100);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    site.write("u", &["b"], -40).await;
    assert_eq!(site.ids("u").await, ["b", "a"]);
    let site = site.crash(&quick(), 0);
    assert_eq!(site.ids("u").await, ["b", "a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_sync_nothing_is_acknowledged() {
    let site = Site::new(&quick());
    site.write("u", &["a"], -50).await;
    let failed = StoreError::Failed { what: "sync".into(), cause: "test".into() };
    site.journal.set_fault(Some(failed));
    let user = UserId::new("u").unwrap();
    for _ in 0..2 {
        let refused = site.history.set_recording(&user, false).await;
        assert!(matches!(refused, Err(Refusal::ReadOnly(_))), "{refused:?}");
    }
    assert!(matches!(site.count("u").await, Err(Refusal::ReadOnly(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_user_is_shown_once_at_rest_or_not() {
    let site = Site::new(&Options::default());
    let mut expected = Vec::new();
    for n in 0..30 {
        site.write(&format!("rested-{n}"), &["1"], n).await;
        expected.push(format!("rested-{n}"));
    }
    site.until_at_rest().await;
    for n in 0..10 {
        site.write(&format!("fresh-{n}"), &["1"], n).await;
        expected.push(format!("fresh-{n}"));
    }
    site.write("rested-3", &["2"], 9).await;
    let (history, mut shown) = (site.history.clone(), Vec::new());
    tokio::task::block_in_place(|| {
        history.users(&mut |user| {
            shown.push(user);
            true
        })
    })
    .unwrap();
    shown.sort();
    expected.sort();
    assert_eq!(shown, expected);
    site.history.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_leave_the_table_after_their_window_and_rows_after_their_retention() {
    let site = Site::new(&quick());
    site.write("u", &["a", "b"], -50).await;
    site.until_at_rest().await;
    let rows = |site: &Site| {
        let mut rows = 0;
        site.table
            .walk(TableName::History, &[], &mut |_| {
                rows += 1;
                true
            })
            .unwrap();
        rows
    };
    assert_eq!(rows(&site), 3, "facts, retries, one day");
    let site = site.reopen(&quick());
    site.clock.advance(25 * HOUR_MS);
    let history = site.history.clone();
    assert_eq!(tokio::task::spawn_blocking(move || history.tidy()).await.unwrap().unwrap(), 1);
    site.until_at_rest().await;
    assert_eq!(rows(&site), 2, "no retries");
    assert_eq!(site.count("u").await, Ok(2));
    site.clock.advance(91 * DAY_MS);
    let history = site.history.clone();
    assert_eq!(tokio::task::spawn_blocking(move || history.tidy()).await.unwrap().unwrap(), 1);
    site.until_at_rest().await;
    assert_eq!(rows(&site), 1, "no day");
    assert_eq!(site.count("u").await, Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_large_user_at_rest_reads_the_days_it_needs_and_no_other() {
    let site = Site::new(&quick());
    let ids: Vec<String> = (0..600).map(|n| format!("v{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        site.write("u", &[id.as_str()], -(n as i64) * (DAY_MS / 7)).await;
    }
    site.until_at_rest().await;
    // A stop writes the places down, so that a start has nothing to replay.
    site.history.close(Duration::ZERO);
    let user = UserId::new("u").unwrap();
    let pages = [
        (Filter::default(), PageAt::Skip(0)),
        (Filter::default(), PageAt::Skip(250)),
        (Filter::default(), PageAt::Skip(595)),
        (Filter::default(), PageAt::Below(None)),
        (
            Filter { before_ms: Some(START.plus(-20 * DAY_MS)), ..Filter::default() },
            PageAt::Skip(30),
        ),
    ];
    for (filter, page) in pages {
        let query = ListQuery { filter: filter.clone(), page, limit: 20 };
        let reopened = Site::open(
            site.journal.clone(),
            Arc::new(site.table.crash(|_, _, n| n)),
            site.clock.clone(),
            &quick(),
        );
        let reads = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&reads);
        reopened.table.set_fault(move |call| {
            match call {
                TableCall::Scan => _ = seen.fetch_add(1000, Ordering::Relaxed),
                TableCall::Get => _ = seen.fetch_add(1, Ordering::Relaxed),
                _ => {}
            }
            Ok(())
        });
        let peeked = reopened.history.list(&user, query.clone()).await.unwrap();
        let read = reads.load(Ordering::Relaxed);
        assert!(read <= 3 + 6, "{read} rows were read for a page of 20, seven a day");
        reopened.table.clear_fault();
        // Asked for again, the user is loaded whole, and says the same.
        assert_eq!(reopened.history.list(&user, query).await.unwrap(), peeked);
        let count = reopened.history.count(&user, filter).await.unwrap();
        assert!(peeked.total.is_none_or(|total| total == count));
        reopened.history.close(Duration::ZERO);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_with_a_time_beyond_every_day_is_refused_and_nothing_of_it_is_kept() {
    let site = Site::new(&quick());
    site.write("u", &["a"], -5).await;
    let user = UserId::new("u").unwrap();
    let mut doc = site.history.export(&user).await.unwrap();
    doc.rows[0].event_ms = Millis(i64::MAX);
    let refused = site.history.restore(&user, doc).await;
    assert!(matches!(refused, Err(Refusal::Restore(_))), "{refused:?}");
    site.until_at_rest().await;
    let site = site.reopen(&quick());
    assert_eq!(site.ids("u").await, ["a"]);
}
