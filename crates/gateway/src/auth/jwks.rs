//! A set of public keys at an address: kept, and read again when a token
//! names a key that is not in it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey};
use tideline_store::Clock;

use super::jwt::Key;

/// Keys taken from one set.
const KEYS_MAX: usize = 64;
/// Bytes of one set.
const SET_BYTES_MAX: usize = 1 << 20;

/// The keys at one address.
pub(super) struct Jwks {
    url: String,
    pause_ms: u64,
    clock: Arc<dyn Clock>,
    client: reqwest::Client,
    /// By `kid`; changed by whoever holds `reading`.
    keys: RwLock<BTreeMap<String, Arc<Key>>>,
    /// One reads the set at a time; holds the tick before which no one reads
    /// it again.
    reading: tokio::sync::Mutex<Option<u64>>,
}

impl Jwks {
    /// Nothing is read yet.
    pub(super) fn new(url: &str, pause_ms: u64, clock: Arc<dyn Clock>) -> Option<Self> {
        // Errs only if another provider was installed, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::limited(3))
            .build()
            .ok()?;
        Some(Self {
            url: url.into(),
            pause_ms,
            clock,
            client,
            keys: RwLock::default(),
            reading: tokio::sync::Mutex::new(None),
        })
    }

    /// The key of that name; the set is read again if it is not known, but not
    /// more often than once in the pause. A token without a name fits a set of
    /// one key.
    pub(super) async fn key(&self, kid: Option<&str>) -> Option<Arc<Key>> {
        if let Some(key) = self.known(kid) {
            return Some(key);
        }
        let mut not_before = self.reading.lock().await;
        if let Some(key) = self.known(kid) {
            return Some(key);
        }
        let now = self.clock.ticks();
        if not_before.is_some_and(|tick| now < tick) {
            return None;
        }
        *not_before = Some(now + self.pause_ms);
        match self.read().await {
            Ok(keys) => *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys,
            Err(error) => tracing::warn!(url = %self.url, %error, "the set of keys was not read"),
        }
        self.known(kid)
    }

    fn known(&self, kid: Option<&str>) -> Option<Arc<Key>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match kid {
            Some(kid) => keys.get(kid).cloned(),
            None if keys.len() == 1 => keys.values().next().cloned(),
            None => None,
        }
    }

    async fn read(&self) -> Result<BTreeMap<String, Arc<Key>>, String> {
        let mut response = self.client.get(&self.url).send().await.map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| e.to_string())? {
            body.extend_from_slice(&chunk);
            if body.len() > SET_BYTES_MAX {
                return Err(format!("more than {SET_BYTES_MAX} bytes"));
            }
        }
        let set: JwkSet = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
        Ok(usable(&set))
    }
}

/// The keys of a set that are for signatures we know. Secrets have no place in
/// a set that anyone may read, so none is taken.
fn usable(set: &JwkSet) -> BTreeMap<String, Arc<Key>> {
    let mut keys = BTreeMap::new();
    for jwk in set.keys.iter().take(KEYS_MAX) {
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            _ => continue,
        };
        if let Ok(key) = DecodingKey::from_jwk(jwk) {
            let kid = jwk.common.key_id.clone().unwrap_or_default();
            keys.insert(kid, Arc::new(Key { algorithm, key }));
        }
    }
    keys
}
