//! Tokens, as an operator makes them.

use serde_json::json;

use crate::program::{Server, call, ok, tideline};

#[test]
fn the_first_start_prints_one_admin_token_that_makes_others() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let flags = ["--set", "auth.mode=token"];
    let server = Server::start(&data, &flags);
    let admin = server.token().to_owned();
    let url = |path: &str| format!("{}{path}", server.base);
    let list = "/v1/users/ann/history";
    assert_eq!(call(&url(list), "GET", None, None).0, 401);
    let make = |args: &[&str]| {
        let mut all = vec!["token", "create"];
        all.extend(args);
        all.extend(["--token", &admin, "--server", &server.base]);
        ok(&all).trim().to_owned()
    };
    let service = make(&["--scope", "service", "--note", "the app"]);
    let ann = make(&["--user", "ann", "--days", "1"]);
    assert_eq!(call(&url(list), "GET", None, Some(&service)).0, 200);
    assert_eq!(call(&url(list), "GET", None, Some(&ann)).0, 200);
    assert_eq!(call(&url("/v1/users/ben/history"), "GET", None, Some(&ann)).0, 403);

    let listed = ok(&["token", "ls", "--json", "--token", &admin, "--server", &server.base]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let id = listed
        .as_array()
        .expect("a list")
        .iter()
        .find(|token| token["scopes"] == json!(["user:ann"]))
        .and_then(|token| token["id"].as_str())
        .expect("ann's token")
        .to_owned();
    ok(&["token", "revoke", &id, "--token", &admin, "--server", &server.base]);
    assert_eq!(call(&url(list), "GET", None, Some(&ann)).0, 401);
    drop(server);

    // A second start prints none; a lost admin token is made anew in the folder.
    let server = Server::start(&data, &flags);
    assert!(!server.banner.iter().any(|line| line.contains("tl_")), "{:?}", server.banner);
    drop(server);
    let text = data.to_str().expect("text");
    let fresh = ok(&["token", "--data", text, "create", "--scope", "admin"]);
    let server = Server::start(&data, &flags);
    let status = tideline(&["token", "ls", "--server", &server.base])
        .env("TIDELINE_TOKEN", fresh.trim())
        .status()
        .expect("the program was built");
    assert!(status.success());
}
