//! The catalogue against owners' services on real sockets: good, slow,
//! failing, partial and hostile ones.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tideline_catalogue::{Catalogue, Item, Options, PutError, SourceOptions};
use tideline_store::mem::{MemTable, TableCall};
use tideline_store::{RealClock, StoreError, Table};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

const LONG: Duration = Duration::from_secs(30);

/// What an owner was asked, request by request.
type Asked = Arc<Mutex<Vec<Vec<String>>>>;

/// An owner's service on a free port that answers with `answer`.
async fn owner<F, A>(answer: F) -> (String, Asked)
where
    F: Fn(usize, Vec<String>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response> + Send,
{
    let asked = Asked::default();
    let seen = asked.clone();
    let handler = move |body: Bytes| {
        let (seen, answer) = (seen.clone(), answer.clone());
        async move {
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["kind"], "product");
            let ids: Vec<String> = serde_json::from_value(body["ids"].clone()).unwrap();
            let nth = {
                let mut seen = seen.lock().unwrap();
                seen.push(ids.clone());
                seen.len() - 1
            };
            answer(nth, ids).await
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/items", listener.local_addr().unwrap());
    let app = Router::new().route("/items", post(handler));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, asked)
}

fn titles(ids: &[String]) -> Response {
    let items: HashMap<&String, Value> =
        ids.iter().map(|id| (id, json!({"title": format!("title of {id}")}))).collect();
    json!({"items": items}).to_string().into_response()
}

fn open(table: Arc<dyn Table>, source: Option<SourceOptions>) -> Catalogue {
    let sources = source.map(|source| ("product".to_owned(), source));
    let options = Options { sources: BTreeMap::from_iter(sources), ..Options::default() };
    Catalogue::open(table, options, Arc::new(RealClock::new())).unwrap()
}

fn asking(url: String) -> Catalogue {
    let source = SourceOptions { timeout: LONG, ..SourceOptions::at(url) };
    open(Arc::new(MemTable::new()), Some(source))
}

fn titled(title: &str) -> Item {
    Item { title: Some(title.into()), ..Item::default() }
}

async fn get(
    catalogue: &Catalogue,
    ids: &[&str],
    deadline: Duration,
) -> (Vec<Option<String>>, bool) {
    let keys: Vec<(&str, &str)> = ids.iter().map(|id| ("product", *id)).collect();
    let joined = catalogue.get_many(&keys, deadline).await;
    let titles = joined.items.into_iter().map(|item| item.and_then(|item| item.title));
    (titles.collect(), joined.partial)
}

fn of(ids: &[&str]) -> Vec<Option<String>> {
    ids.iter().map(|id| Some(format!("title of {id}"))).collect()
}

#[tokio::test]
async fn what_is_put_is_found_in_order_and_survives_power_loss() {
    let table = Arc::new(MemTable::new());
    let catalogue = open(table.clone(), None);
    let put = |kind: &str, id: &str, title: &str| (kind.into(), id.into(), titled(title));
    catalogue.put(vec![put("video", "1", "one"), put("shop", "1", "a shop")]).await.unwrap();
    catalogue.put(vec![put("video", "1", "one again")]).await.unwrap();
    let after = open(Arc::new(table.crash(|_, _, _| 0)), None);
    for catalogue in [catalogue, after] {
        let keys = [("video", "1"), ("video", "2"), ("shop", "1"), ("video", "1"), ("video", "")];
        let joined = catalogue.get_many(&keys, LONG).await;
        let titles: Vec<_> =
            joined.items.iter().map(|item| item.as_ref()?.title.as_deref()).collect();
        let again = Some("one again");
        assert_eq!(titles, [again, None, Some("a shop"), again, None]);
        assert!(!joined.partial);
    }
}

#[tokio::test]
async fn an_absent_item_is_found_once_it_is_put() {
    let catalogue = open(Arc::new(MemTable::new()), None);
    assert_eq!(get(&catalogue, &["1"], LONG).await, (vec![None], false));
    catalogue.put(vec![("product".into(), "1".into(), titled("one"))]).await.unwrap();
    assert_eq!(get(&catalogue, &["1"], LONG).await, (vec![Some("one".into())], false));
}

#[tokio::test]
async fn a_bad_item_is_named_and_nothing_is_put() {
    let catalogue = open(Arc::new(MemTable::new()), None);
    let bad = Item { title: Some("t".repeat(257)), ..Item::default() };
    let items =
        vec![("product".into(), "1".into(), titled("one")), ("product".into(), "2".into(), bad)];
    let error = catalogue.put(items).await.unwrap_err();
    assert_eq!(error.to_string(), "items[1]: title must be at most 256 characters");
    assert_eq!(get(&catalogue, &["1"], LONG).await, (vec![None], false));
    let many = vec![("product".into(), "1".into(), Item::default()); 10_001];
    assert!(matches!(catalogue.put(many).await, Err(PutError::TooMany { sent: 10_001, .. })));
}

#[tokio::test]
async fn callers_that_put_together_share_a_sync() {
    let table = Arc::new(MemTable::new());
    let syncs = Arc::new(AtomicUsize::new(0));
    let (gate, first) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let hook = {
        let (syncs, first) = (syncs.clone(), first.clone());
        let (gate, runtime) = (gate.clone(), tokio::runtime::Handle::current());
        move |call| {
            if call == TableCall::Sync && syncs.fetch_add(1, Ordering::SeqCst) == 0 {
                first.add_permits(1);
                runtime.block_on(gate.acquire()).unwrap().forget();
            }
            Ok(())
        }
    };
    table.set_fault(hook);
    let catalogue = open(table, None);
    let put = |n: usize| {
        let catalogue = catalogue.clone();
        let item = vec![("product".into(), n.to_string(), titled("t"))];
        tokio::spawn(async move { catalogue.put(item).await })
    };
    let mut puts = vec![put(0)];
    first.acquire().await.unwrap().forget();
    puts.extend((1..100).map(put));
    // One thread: after so many turns each of them has been polled.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for put in puts {
        put.await.unwrap().unwrap();
    }
    assert_eq!(syncs.load(Ordering::SeqCst), 2, "one for the first, one for all others");
}

#[tokio::test]
async fn a_failed_put_says_so_to_all_of_its_group() {
    let table = Arc::new(MemTable::new());
    table.set_fault(|call| match call {
        TableCall::Sync => Err(StoreError::NoSpace { what: "told to".into() }),
        _ => Ok(()),
    });
    let catalogue = open(table, None);
    let error = catalogue.put(vec![("product".into(), "1".into(), titled("t"))]).await;
    assert!(matches!(error, Err(PutError::Store(StoreError::NoSpace { .. }))));
}

#[tokio::test]
async fn a_store_that_cannot_be_read_makes_lists_partial() {
    let table = Arc::new(MemTable::new());
    table.set_fault(|_| Err(StoreError::NoSpace { what: "told to".into() }));
    assert_eq!(get(&open(table, None), &["1"], LONG).await, (vec![None], true));
}

#[tokio::test]
async fn one_request_brings_many_ids_and_the_next_call_none() {
    let (url, asked) = owner(|_, ids| async move { titles(&ids) }).await;
    let catalogue = asking(url);
    let ids: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for _ in 0..3 {
        assert_eq!(get(&catalogue, &ids, LONG).await, (of(&ids), false));
    }
    assert_eq!(*asked.lock().unwrap(), [ids]);
}

#[tokio::test]
async fn a_row_that_was_put_comes_before_the_owner() {
    let (url, asked) = owner(|_, ids| async move { titles(&ids) }).await;
    let catalogue = asking(url);
    assert_eq!(get(&catalogue, &["1"], LONG).await.0, of(&["1"]));
    catalogue.put(vec![("product".into(), "1".into(), titled("ours"))]).await.unwrap();
    assert_eq!(get(&catalogue, &["1"], LONG).await.0, [Some("ours".into())]);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_thousand_callers_for_one_key_make_one_fetch() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let (url, asked) = owner(move |_, ids| {
        let held = held.clone();
        async move {
            held.acquire().await.unwrap().forget();
            titles(&ids)
        }
    })
    .await;
    let catalogue = asking(url);
    let callers: Vec<_> = (0..1_000)
        .map(|_| {
            let catalogue = catalogue.clone();
            tokio::spawn(async move { get(&catalogue, &["7"], LONG).await })
        })
        .collect();
    while catalogue.stats().misses < 1_000 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for caller in callers {
        assert_eq!(caller.await.unwrap(), (of(&["7"]), false));
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_late_is_left_out_and_there_for_who_asks_next() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let (url, asked) = owner(move |_, ids| {
        let held = held.clone();
        async move {
            held.acquire().await.unwrap().forget();
            titles(&ids)
        }
    })
    .await;
    let catalogue = asking(url);
    catalogue.put(vec![("product".into(), "ours".into(), titled("here"))]).await.unwrap();
    assert_eq!(get(&catalogue, &["ours"], LONG).await.0, [Some("here".into())]);
    let late = get(&catalogue, &["ours", "7"], Duration::from_millis(100)).await;
    assert_eq!(late, (vec![Some("here".into()), None], true));
    gate.add_permits(1);
    assert_eq!(get(&catalogue, &["ours", "7"], LONG).await.0[1], of(&["7"])[0]);
    assert_eq!(asked.lock().unwrap().len(), 1, "the first request goes on");
    assert_eq!(catalogue.stats().late, 1);
}

#[tokio::test]
async fn a_failing_owner_is_asked_again_and_less() {
    let (url, asked) = owner(|nth, ids| async move {
        if nth == 0 { StatusCode::INTERNAL_SERVER_ERROR.into_response() } else { titles(&ids) }
    })
    .await;
    let catalogue = asking(url);
    let ids: Vec<String> = (0..32).map(|n| n.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(get(&catalogue, &ids, LONG).await, (vec![None; 32], true));
    assert_eq!(get(&catalogue, &ids, LONG).await, (of(&ids), false));
    let sizes: Vec<usize> = asked.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [32, 16, 16]);
    let stats = catalogue.stats();
    assert_eq!((stats.requests_failed, stats.requests_answered), (1, 2));
}

#[tokio::test]
async fn an_owner_that_hangs_costs_a_timeout_and_no_more() {
    let (url, _) = owner(|_, _| std::future::pending()).await;
    let source = SourceOptions { timeout: Duration::from_millis(50), ..SourceOptions::at(url) };
    let catalogue = open(Arc::new(MemTable::new()), Some(source));
    assert_eq!(get(&catalogue, &["1"], LONG).await, (vec![None], true));
    assert_eq!(catalogue.stats().requests_failed, 1);
}

#[tokio::test]
async fn what_the_owner_does_not_have_is_remembered_unless_it_did_not_look() {
    let (url, asked) = owner(|nth, _| async move {
        json!({"items": {"2": null}, "partial": nth == 0}).to_string().into_response()
    })
    .await;
    let catalogue = asking(url);
    assert_eq!(get(&catalogue, &["1", "2"], LONG).await, (vec![None, None], true));
    for _ in 0..3 {
        assert_eq!(get(&catalogue, &["1", "2"], LONG).await, (vec![None, None], false));
    }
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn nonsense_and_floods_are_failures() {
    for body in [vec![b'{'; 10], vec![b' '; 9 << 20]] {
        let body = Bytes::from(body);
        let (url, _) = owner(move |_, _| {
            let body = body.clone();
            async move { body.into_response() }
        })
        .await;
        let catalogue = asking(url);
        assert_eq!(get(&catalogue, &["1"], LONG).await, (vec![None], true));
        assert_eq!(catalogue.stats().requests_failed, 1);
    }
}

#[tokio::test]
async fn an_owner_that_is_not_there_makes_lists_partial() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(get(&asking(url), &["1"], LONG).await, (vec![None], true));
}

#[tokio::test]
async fn closing_tells_those_who_wait() {
    let (url, asked) = owner(|_, _| std::future::pending()).await;
    let catalogue = asking(url);
    let waiting = {
        let catalogue = catalogue.clone();
        tokio::spawn(async move { get(&catalogue, &["1"], LONG).await })
    };
    while asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    catalogue.close().await;
    assert_eq!(waiting.await.unwrap(), (vec![None], true));
    assert_eq!(get(&catalogue, &["1"], LONG).await, (vec![None], true));
}

#[tokio::test]
async fn an_address_that_cannot_be_asked_is_refused_at_once() {
    for url in ["", "ftp://x/", "nonsense"] {
        let sources = BTreeMap::from([("product".to_owned(), SourceOptions::at(url))]);
        let options = Options { sources, ..Options::default() };
        let table = Arc::new(MemTable::new());
        let opened = Catalogue::open(table, options, Arc::new(RealClock::new()));
        assert!(opened.is_err(), "{url:?}");
    }
}
