//! Signed tokens: which are good, and which only look so.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::json;
use tideline_store::ManualClock;
use tideline_types::Millis;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const SECRET: &str = "a secret of more than thirty-two bytes";
const NOW_S: i64 = 1_796_000_000;

fn keys() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys")
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Millis(NOW_S * 1000)))
}

fn private(algorithm: Algorithm) -> EncodingKey {
    let read = |name: &str| std::fs::read(keys().join(name)).unwrap();
    match algorithm {
        Algorithm::RS256 => EncodingKey::from_rsa_pem(&read("rsa.pem")).unwrap(),
        Algorithm::EdDSA => EncodingKey::from_ed_pem(&read("ed25519.pem")).unwrap(),
        _ => EncodingKey::from_secret(SECRET.as_bytes()).unwrap(),
    }
}

fn sign(algorithm: Algorithm, kid: Option<&str>, claims: &Value) -> String {
    let mut header = Header::new(algorithm);
    header.kid = kid.map(Into::into);
    jsonwebtoken::encode(&header, claims, &private(algorithm)).unwrap()
}

fn claims(more: Value) -> Value {
    let mut claims = json!({"sub": "alice", "exp": NOW_S + 3600});
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

/// A secret in a file that lives as long as the first of the pair.
fn secret_file(secret: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, secret).unwrap();
    (folder, file)
}

fn open(algorithm: JwtAlgorithm, file: PathBuf, clock: Arc<ManualClock>) -> Jwt {
    let options = JwtOptions { algorithm, key_file: Some(file), ..JwtOptions::default() };
    Jwt::open(&options, clock).unwrap()
}

fn hs256(more: impl FnOnce(&mut JwtOptions)) -> (Jwt, Arc<ManualClock>) {
    let (_folder, file) = secret_file(&format!("{SECRET}\n"));
    let mut options = JwtOptions { key_file: Some(file), ..JwtOptions::default() };
    more(&mut options);
    let clock = clock();
    (Jwt::open(&options, clock.clone()).unwrap(), clock)
}

#[tokio::test]
async fn each_algorithm_names_its_caller() {
    let (_folder, secret) = secret_file(SECRET);
    for (algorithm, setting, file) in [
        (Algorithm::HS256, JwtAlgorithm::HS256, secret),
        (Algorithm::RS256, JwtAlgorithm::RS256, keys().join("rsa.pub.pem")),
        (Algorithm::EdDSA, JwtAlgorithm::EdDSA, keys().join("ed25519.pub.pem")),
    ] {
        let jwt = open(setting, file, clock());
        let token = sign(algorithm, None, &claims(json!({})));
        for _first_and_remembered in 0..2 {
            let caller = jwt.caller(&token).await.unwrap();
            assert_eq!(caller.user.as_ref().unwrap().as_str(), "alice");
            assert_eq!(caller.roles, Roles::default());
        }
        let mut forged = token.clone();
        forged.replace_range(
            token.len() - 6..token.len() - 5,
            if token.as_bytes()[token.len() - 6] == b'A' { "B" } else { "A" },
        );
        assert!(jwt.caller(&forged).await.is_err(), "{setting:?}");
    }
}

#[tokio::test]
async fn the_key_decides_the_algorithm_and_never_the_token() {
    // Signed with the public key as if it were a secret.
    let public = std::fs::read(keys().join("rsa.pub.pem")).unwrap();
    let jwt = open(JwtAlgorithm::RS256, keys().join("rsa.pub.pem"), clock());
    let as_secret = EncodingKey::from_secret(&public).unwrap();
    let confused =
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims(json!({})), &as_secret);
    assert!(jwt.caller(&confused.unwrap()).await.is_err());
    // Signed by nothing.
    let token = sign(Algorithm::RS256, None, &claims(json!({})));
    let payload = token.split('.').nth(1).unwrap();
    for none in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0"] {
        assert!(jwt.caller(&format!("{none}.{payload}.")).await.is_err());
    }
    // Another of the same family.
    let (hs, _) = hs256(|_| ());
    let hs512 = jsonwebtoken::encode(
        &Header::new(Algorithm::HS512),
        &claims(json!({})),
        &private(Algorithm::HS256),
    );
    assert!(hs.caller(&hs512.unwrap()).await.is_err());
    for bad in ["", ".", "..", "a.b.c", &"x".repeat(20_000)] {
        assert!(hs.caller(bad).await.is_err());
    }
}

#[tokio::test]
async fn a_token_is_good_between_nbf_and_exp_with_the_leeway_also_when_remembered() {
    let (jwt, clock) = hs256(|_| ());
    let token =
        sign(Algorithm::HS256, None, &claims(json!({"nbf": NOW_S + 100, "exp": NOW_S + 200})));
    assert!(jwt.caller(&token).await.unwrap_err().detail.contains("nbf"));
    clock.advance(40_000);
    assert!(jwt.caller(&token).await.is_ok());
    clock.advance(219_000);
    assert!(jwt.caller(&token).await.is_ok());
    clock.advance(1_000);
    assert!(jwt.caller(&token).await.unwrap_err().detail.contains("exp"));
    let (jwt, _) = hs256(|_| ());
    let endless = json!({"sub": "alice"});
    assert!(jwt.caller(&sign(Algorithm::HS256, None, &endless)).await.is_err());
}

#[tokio::test]
async fn roles_are_read_from_the_claim_that_is_named() {
    let (jwt, _) = hs256(|options| options.roles_claim = "groups".into());
    for (groups, service, moderator) in [
        (json!("service moderator"), true, true),
        (json!(["service"]), true, false),
        (json!(["services", 7]), false, false),
        (json!({"service": true}), false, false),
    ] {
        let token =
            sign(Algorithm::HS256, None, &claims(json!({"groups": groups, "roles": "admin"})));
        let roles = jwt.caller(&token).await.unwrap().roles;
        assert_eq!((roles.service, roles.moderator, roles.admin), (service, moderator, false));
    }
    let no_one = json!({"exp": NOW_S + 60});
    assert!(jwt.caller(&sign(Algorithm::HS256, None, &no_one)).await.is_err());
    let robot = json!({"exp": NOW_S + 60, "groups": "service"});
    assert_eq!(jwt.caller(&sign(Algorithm::HS256, None, &robot)).await.unwrap().user, None);
    for sub in [json!(7), json!(""), json!("x".repeat(129))] {
        let token = sign(Algorithm::HS256, None, &claims(json!({"sub": sub})));
        assert!(jwt.caller(&token).await.is_err(), "{sub}");
    }
}

#[tokio::test]
async fn issuer_and_audience_are_asked_for_where_they_are_set() {
    let (jwt, _) = hs256(|options| {
        options.issuer = Some("https://id.example".into());
        options.audience = Some("tideline".into());
    });
    let good = json!({"iss": "https://id.example", "aud": ["other", "tideline"]});
    assert!(jwt.caller(&sign(Algorithm::HS256, None, &claims(good))).await.is_ok());
    for bad in [
        json!({}),
        json!({"iss": "https://id.example"}),
        json!({"aud": "tideline"}),
        json!({"iss": "https://id.example", "aud": "other"}),
        json!({"iss": "https://evil.example", "aud": "tideline"}),
    ] {
        let token = sign(Algorithm::HS256, None, &claims(bad.clone()));
        assert!(jwt.caller(&token).await.is_err(), "{bad}");
    }
    let (jwt, _) = hs256(|_| ());
    let other = sign(Algorithm::HS256, None, &claims(json!({"aud": "other"})));
    assert!(jwt.caller(&other).await.is_ok());
}

#[test]
fn keys_with_which_nothing_could_be_checked_are_refused_at_the_start() {
    let refused = |options: JwtOptions| Jwt::open(&options, clock()).err().unwrap().to_string();
    assert!(refused(JwtOptions::default()).contains("name one"));
    let (_folder, short) = secret_file("too short");
    let options = JwtOptions { key_file: Some(short), ..JwtOptions::default() };
    assert!(refused(options.clone()).contains("at least 32 bytes"));
    let both = JwtOptions { jwks_url: Some("http://x".into()), ..options.clone() };
    assert!(refused(both).contains("name one"));
    let rsa = JwtOptions { algorithm: JwtAlgorithm::RS256, ..options };
    assert!(refused(rsa).contains("key_file"));
    let gone = JwtOptions { key_file: Some("/nowhere".into()), ..JwtOptions::default() };
    assert!(refused(gone).contains("/nowhere"));
}

/// Serves `sets`, one after the other, the last for ever; counts how often.
async fn serve_sets(sets: Vec<String>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let reads = Arc::new(AtomicUsize::new(0));
    let count = reads.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let at = count.fetch_add(1, Ordering::SeqCst).min(sets.len() - 1);
            let body = &sets[at];
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, reads)
}

fn set(keys: &[(&str, Algorithm)]) -> String {
    let keys = keys.iter().map(|(kid, algorithm)| {
        let mut jwk = Jwk::from_encoding_key(&private(*algorithm), *algorithm).unwrap();
        jwk.common.key_id = Some((*kid).into());
        jwk
    });
    json!({"keys": keys.collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn a_set_is_read_again_for_a_key_it_did_not_hold_but_not_in_a_hurry() {
    let first = set(&[("a", Algorithm::EdDSA)]);
    let second = set(&[("a", Algorithm::EdDSA), ("b", Algorithm::RS256)]);
    let (url, reads) = serve_sets(vec![first, second]).await;
    let options = JwtOptions { jwks_url: Some(url), ..JwtOptions::default() };
    let clock = clock();
    let jwt = Jwt::open(&options, clock.clone()).unwrap();
    let of = |kid, algorithm, n: i64| sign(algorithm, Some(kid), &claims(json!({"n": n})));

    assert!(jwt.caller(&of("a", Algorithm::EdDSA, 1)).await.is_ok());
    assert!(jwt.caller(&of("a", Algorithm::EdDSA, 2)).await.is_ok());
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    // Key b is new, but the set was read a moment ago.
    assert!(jwt.caller(&of("b", Algorithm::RS256, 3)).await.is_err());
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    clock.advance(10_000);
    assert!(jwt.caller(&of("b", Algorithm::RS256, 4)).await.is_ok());
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    // A key's name does not lend its algorithm to another.
    assert!(jwt.caller(&of("a", Algorithm::RS256, 5)).await.is_err());
    assert_eq!(reads.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn secrets_in_a_set_are_not_taken() {
    let (url, _) = serve_sets(vec![set(&[("s", Algorithm::HS256)])]).await;
    let options = JwtOptions { jwks_url: Some(url), ..JwtOptions::default() };
    let jwt = Jwt::open(&options, clock()).unwrap();
    let token = sign(Algorithm::HS256, Some("s"), &claims(json!({})));
    assert!(jwt.caller(&token).await.is_err());
}
