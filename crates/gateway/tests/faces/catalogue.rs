//! Titles, covers and groups in lists.

use serde_json::{Value, json};

use crate::fixture::{Site, now, site};

async fn ids(site: &Site, path: &str) -> Vec<String> {
    let page = site.get(path).await.expect(200);
    let rows = page["items"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

async fn products(site: &Site, marks: &[(&str, i64, Option<&str>)]) {
    let t = now() - 100_000;
    let marks: Vec<Value> = marks
        .iter()
        .map(|(id, at, group)| json!({"kind": "product", "id": id, "event_ms": t + at, "group": group}))
        .collect();
    site.post("/v1/users/u/history", &json!(marks).to_string()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_enriched_from_the_catalogue() {
    let site = site();
    products(&site, &[("a", 1, None), ("b", 2, None)]).await;
    let item = r#"{"title":"Tea","cover":"https://c/1","owner":"shop","order":3,"duration_ms":9}"#;
    site.call("PUT", "/v1/items/product/a", item).await.expect(204);
    let page = site.get("/v1/users/u/history?enrich=true").await.expect(200);
    let row = &page["items"][1];
    assert_eq!((&row["title"], &row["order"]), (&json!("Tea"), &json!(3)));
    assert_eq!(page["items"][0]["title"], Value::Null);
    assert_eq!(page["partial"], Value::Null);
    let plain = site.get("/v1/users/u/history").await.expect(200);
    assert_eq!(plain["items"][1]["title"], Value::Null);
    let got = site.get("/v1/items/product/a").await.expect(200);
    assert_eq!((&got["title"], &got["duration_ms"]), (&json!("Tea"), &json!(9)));
    let many = r#"{"items":[{"kind":"product","id":"b","title":"Pot"},{"kind":"video","id":1}]}"#;
    assert_eq!(site.post("/v1/items:batch", many).await.expect(200)["stored"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_family_of_products_is_one_row_by_the_catalogues_group_first() {
    let site = site();
    let marks = [("s1", 1, Some("x")), ("s2", 2, Some("x")), ("s3", 3, None), ("s4", 4, Some("y"))];
    products(&site, &marks).await;
    assert_eq!(ids(&site, "/v1/users/u/history?group=true").await, ["s4", "s3", "s2"]);
    let count = site.get("/v1/users/u/history/count?group=true").await.expect(200);
    assert_eq!(count["count"], 3);
    site.call("PUT", "/v1/items/product/s3", r#"{"group":"y"}"#).await.expect(204);
    assert_eq!(ids(&site, "/v1/users/u/history?group=true").await, ["s4", "s2"]);
    let page = site.get("/v1/users/u/history?group=true&page=1&limit=1").await.expect(200);
    assert_eq!((&page["total"], &page["items"][0]["group"]), (&json!(2), &json!("y")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grouped_cursor_does_not_look_above_its_first_page() {
    let site = site();
    let marks: Vec<_> =
        ["a", "b", "c", "d", "e"].iter().zip(0..).map(|(id, n)| (*id, n, Some(*id))).collect();
    products(&site, &marks).await;
    let first = site.get("/v1/users/u/history?group=true&limit=2").await.expect(200);
    assert_eq!(first["items"][1]["id"], "d");
    let cursor = first["next_cursor"].as_str().unwrap();
    // A new row of group c comes on top: c is shown where it was all the same.
    products(&site, &[("c2", 50, Some("c"))]).await;
    let path = format!("/v1/users/u/history?group=true&limit=2&cursor={cursor}");
    assert_eq!(ids(&site, &path).await, ["c", "b"]);
    let plain = format!("/v1/users/u/history?limit=2&cursor={cursor}");
    site.get(&plain).await.problem(400);
}
