//! Pages for browsers, beside the API.

use tideline_gateway::PageFile;

use crate::fixture::{Site, site};

const CLIP: &[u8] = &[7; 5000];

fn shown() -> Site {
    let site = site();
    site.gateway.show_pages(&[
        PageFile { path: "/index.html", bytes: b"<!doctype html><title>Tideline</title>" },
        PageFile { path: "/assets/page-1a2b.js", bytes: &[b' '; 4000] },
        PageFile { path: "/demo/clip.webm", bytes: CLIP },
    ]);
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_what_it_is_and_runs_no_script_but_its_own() {
    let site = shown();
    let page = site.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("cache-control"), "no-cache");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self';"), "{policy}");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert_eq!(page.bytes, site.get("/index.html").await.bytes);
    let script = site.get("/assets/page-1a2b.js").await;
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    assert!(script.header("cache-control").contains("immutable"));
    let gzip = [("accept-encoding", "gzip")];
    let packed = site.call_with("GET", "/assets/page-1a2b.js", "", &gzip).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert_eq!(packed.header("etag"), script.header("etag"));
    assert!(packed.header("etag").starts_with("W/"), "two encodings share a tag: it is weak");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_known_is_not_sent_again() {
    let site = shown();
    let etag = site.get("/").await.header("etag").to_owned();
    for known in [etag.as_str(), "*", &format!("\"x\", {etag}"), etag.trim_start_matches("W/")] {
        let again = site.call_with("GET", "/", "", &[("if-none-match", known)]).await;
        assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0), "{known}");
        assert_eq!(again.header("etag"), etag);
    }
    let other = site.call_with("GET", "/", "", &[("if-none-match", "\"x\"")]).await;
    assert_eq!(other.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clip_is_sent_in_the_parts_that_a_player_asks_for() {
    let site = shown();
    let ask = async |headers: &[(&str, &str)]| {
        let headers = [&[("accept-encoding", "gzip, br")], headers].concat();
        site.call_with("GET", "/demo/clip.webm", "", &headers).await
    };
    let whole = ask(&[]).await;
    assert_eq!((whole.status.as_u16(), whole.bytes.len()), (200, CLIP.len()));
    assert_eq!(whole.header("content-encoding"), "", "it is compressed in itself");
    assert_eq!(whole.header("accept-ranges"), "bytes");
    let part = ask(&[("range", "bytes=10-19")]).await;
    assert_eq!((part.status.as_u16(), part.bytes.len()), (206, 10));
    assert_eq!(part.header("content-range"), "bytes 10-19/5000");
    assert_eq!(part.header("content-length"), "10");
    let behind = ask(&[("range", "bytes=5000-")]).await;
    assert_eq!((behind.status.as_u16(), behind.bytes.len()), (416, 0));
    assert_eq!(behind.header("content-range"), "bytes */5000");
    let same = [("range", "bytes=0-0"), ("if-range", whole.header("etag"))];
    assert_eq!(ask(&same).await.status, 206);
    let changed = [("range", "bytes=0-0"), ("if-range", "\"x\"")];
    assert_eq!(ask(&changed).await.status, 200, "other bytes than it has begun with");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_page_is_a_problem() {
    let site = shown();
    let missing = site.get("/assets/../index.html").await;
    assert!(missing.problem(404).contains("no such path"));
    assert!(site.get("/no").await.problem(404).contains("no such path"));
    assert!(site.call("POST", "/", "").await.problem(405).contains("POST"));
    let head = site.call("HEAD", "/demo/clip.webm", "").await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
    assert_eq!(head.header("content-length"), "5000");
    site.get("/healthz").await.expect(200);
    // Without pages there is the API alone.
    assert!(crate::fixture::site().get("/").await.problem(404).contains("no such path"));
}
