//! Tokens that someone else signed (JWT: HS256, RS256, EdDSA).
//!
//! The key decides the algorithm, never the token: a token that says another
//! is refused, so a public key cannot be used as a secret. `exp` is required;
//! `exp` and `nbf` are held against our clock with a leeway. A token that was
//! checked once is remembered until it ends, or until its key may have gone.

use std::path::PathBuf;
use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tideline_store::Clock;
use tideline_types::UserId;

use super::jwks::Jwks;
use super::{Caller, Roles, unauthenticated};
use crate::options::{JwtAlgorithm, JwtOptions};
use crate::problem::Problem;

/// Bytes of a token.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Tokens remembered as checked.
const CHECKED_MAX: usize = 10_000;
/// For how long, in ms of ticks: a key that was taken from a set is out of use
/// after that.
const CHECKED_MS: u64 = 60_000;

/// A key with which no token could be checked.
#[derive(Debug, thiserror::Error)]
pub enum BadKey {
    /// Neither a file nor an address, or both.
    #[error("name one of key_file and jwks_url")]
    Which,
    /// The file.
    #[error("key_file {0}: {1}")]
    File(PathBuf, String),
    /// A secret that could be guessed.
    #[error("key_file {0}: a secret must have at least 32 bytes")]
    Short(PathBuf),
    /// No client for the address.
    #[error("jwks_url: no client")]
    Client,
}

/// A key and the one algorithm that it is for.
pub(super) struct Key {
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

enum Keys {
    One(Arc<Key>),
    Set(Jwks),
}

/// Checks signed tokens.
pub(crate) struct Jwt {
    keys: Keys,
    options: JwtOptions,
    clock: Arc<dyn Clock>,
    /// By SHA-256 of the token.
    checked: quick_cache::sync::Cache<[u8; 32], Checked>,
}

#[derive(Clone)]
struct Checked {
    caller: Arc<Caller>,
    from_s: i64,
    until_s: i64,
    until_tick: u64,
}

impl Jwt {
    /// Reads the key file, if one is named.
    pub(crate) fn open(options: &JwtOptions, clock: Arc<dyn Clock>) -> Result<Self, BadKey> {
        let keys = match (&options.key_file, &options.jwks_url) {
            (Some(file), None) => Keys::One(Arc::new(read_key(file, options.algorithm)?)),
            (None, Some(url)) => Keys::Set(
                Jwks::new(url, options.jwks_pause_ms, clock.clone()).ok_or(BadKey::Client)?,
            ),
            _ => return Err(BadKey::Which),
        };
        let checked = quick_cache::sync::Cache::new(CHECKED_MAX);
        Ok(Self { keys, options: options.clone(), clock, checked })
    }

    /// The caller that a token names.
    pub(crate) async fn caller(&self, token: &str) -> Result<Arc<Caller>, Problem> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(unauthenticated("the token is too long"));
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let ticks = self.clock.ticks();
        let checked = match self.checked.get(&hash).filter(|checked| ticks < checked.until_tick) {
            Some(checked) => checked,
            None => {
                let claims = self.claims(token).await?;
                let checked = self.read(claims, ticks)?;
                self.checked.insert(hash, checked.clone());
                checked
            }
        };
        let now_s = self.clock.now().0.div_euclid(1000);
        let leeway = i64::from(self.options.leeway_seconds);
        if now_s.saturating_sub(leeway) >= checked.until_s {
            return Err(unauthenticated("the token is over (exp)"));
        }
        if now_s.saturating_add(leeway) < checked.from_s {
            return Err(unauthenticated("the token is not yet good (nbf)"));
        }
        Ok(checked.caller)
    }

    /// The claims of a token with a good signature.
    async fn claims(&self, token: &str) -> Result<Map<String, Value>, Problem> {
        let bad = || unauthenticated("the token is not signed by a known key");
        let header = jsonwebtoken::decode_header(token).map_err(|_| bad())?;
        let key = match &self.keys {
            Keys::One(key) => key.clone(),
            Keys::Set(set) => set.key(header.kid.as_deref()).await.ok_or_else(bad)?,
        };
        let mut validation = Validation::new(key.algorithm);
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        match &self.options.audience {
            Some(audience) => {
                validation.set_audience(&[audience]);
                validation.required_spec_claims.insert("aud".into());
            }
            None => validation.validate_aud = false,
        }
        if let Some(issuer) = &self.options.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".into());
        }
        let data = jsonwebtoken::decode(token, &key.key, &validation).map_err(|_| bad())?;
        Ok(data.claims)
    }

    fn read(&self, claims: Map<String, Value>, ticks: u64) -> Result<Checked, Problem> {
        let seconds = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64().map(|seconds| seconds as i64)),
            Some(_) => Err(unauthenticated("the token's exp or nbf is no number")),
        };
        let until_s = seconds("exp")?.ok_or_else(|| unauthenticated("the token has no exp"))?;
        let from_s = seconds("nbf")?.unwrap_or(i64::MIN);
        let user = match claims.get("sub") {
            None => None,
            Some(Value::String(sub)) => {
                let bad = |_| unauthenticated("the token's sub is no user: 1 to 128 bytes");
                Some(UserId::new(sub).map_err(bad)?)
            }
            Some(_) => return Err(unauthenticated("the token's sub is no string")),
        };
        let roles = self.roles(claims.get(&self.options.roles_claim));
        if user.is_none() && roles == Roles::default() {
            return Err(unauthenticated("the token has neither a sub nor a role"));
        }
        let name = user.as_ref().map_or("roles", UserId::as_str).into();
        let caller = Arc::new(Caller { name, user, roles });
        Ok(Checked { caller, from_s, until_s, until_tick: ticks + CHECKED_MS })
    }

    fn roles(&self, claim: Option<&Value>) -> Roles {
        let has = |role: &str| match claim {
            _ if role.is_empty() => false,
            Some(Value::String(words)) => words.split_ascii_whitespace().any(|word| word == role),
            Some(Value::Array(words)) => words.iter().any(|word| word.as_str() == Some(role)),
            _ => false,
        };
        Roles {
            admin: has(&self.options.admin_role),
            service: has(&self.options.service_role),
            moderator: has(&self.options.moderator_role),
            read: false,
        }
    }
}

fn read_key(file: &PathBuf, algorithm: JwtAlgorithm) -> Result<Key, BadKey> {
    let bad = |cause: String| BadKey::File(file.clone(), cause);
    let bytes = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
    let (algorithm, key) = match algorithm {
        JwtAlgorithm::HS256 => {
            let secret = bytes.trim_ascii();
            if secret.len() < 32 {
                return Err(BadKey::Short(file.clone()));
            }
            (Algorithm::HS256, DecodingKey::from_secret(secret))
        }
        JwtAlgorithm::RS256 => (Algorithm::RS256, DecodingKey::from_rsa_pem(&bytes)),
        JwtAlgorithm::EdDSA => (Algorithm::EdDSA, DecodingKey::from_ed_pem(&bytes)),
    };
    Ok(Key { algorithm, key: key.map_err(|error| bad(error.to_string()))? })
}

#[cfg(test)]
mod tests;
