//! Tokens that this server made: `tl_<id>_<secret>`.
//!
//! Of a secret only its SHA-256 is kept. Rows of table `meta`, partition key
//! `tokens`, sort key the id; value: version (1), SHA-256 of the secret (32),
//! made at (8), good until (8, 0 = for ever), scopes (1 for their number, then
//! each as length and text), note (1 for its length, then text). Big-endian.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tideline_store::{Clock, Commit, Op, StoreError, Table, TableName};
use tideline_types::{Millis, UserId};

use super::{Caller, Roles, unauthenticated};
use crate::problem::Problem;

const VERSION: u8 = 1;
const PARTITION_KEY: &[u8] = b"tokens";
/// Tokens at once.
const TOKENS_MAX: usize = 10_000;
/// Scopes of one token.
const SCOPES_MAX: usize = 16;

/// What befalls a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A scope that there is not.
    #[error("scope {0:?}: must be admin, service, moderator, read or user:<id>")]
    Scope(String),
    /// More scopes than a token holds, or none.
    #[error("a token has 1 to {SCOPES_MAX} scopes")]
    Scopes,
    /// A note that is too long.
    #[error("note: at most 128 bytes")]
    Note,
    /// As many tokens as there may be.
    #[error("at most {TOKENS_MAX} tokens")]
    Full,
    /// A row that is none.
    #[error("the row of token {0} is damaged")]
    Damaged(String),
    /// The system has no randomness.
    #[error("no randomness")]
    NoRandomness,
    /// The engine.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// Stands in its text, and names it.
    pub id: Box<str>,
    /// `admin`, `service`, `moderator`, `read`, `user:<id>`.
    pub scopes: Vec<String>,
    /// For people.
    pub note: String,
    /// When it was made.
    pub made_ms: Millis,
    /// Until when it is good.
    pub until_ms: Option<Millis>,
}

/// What a token is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewToken {
    /// 1 to 16 of `admin`, `service`, `moderator`, `read`, `user:<id>`.
    pub scopes: Vec<String>,
    /// For people: at most 128 bytes.
    pub note: String,
    /// Until when it is to be good; for ever, if not said.
    pub until_ms: Option<Millis>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    hash: [u8; 32],
    info: TokenInfo,
    caller: Arc<Caller>,
}

/// All tokens.
pub struct Tokens {
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    /// Changed after the table is; held while it is written, which is rare.
    entries: RwLock<BTreeMap<Box<str>, Entry>>,
}

impl Tokens {
    /// Reads all tokens.
    pub fn open(table: Arc<dyn Table>, clock: Arc<dyn Clock>) -> Result<Self, TokenError> {
        let mut entries = BTreeMap::new();
        let rows = table.scan(TableName::Meta, PARTITION_KEY, b"", None, false, TOKENS_MAX)?;
        for (id, value) in rows {
            let id: Box<str> = String::from_utf8_lossy(&id).into();
            let entry =
                decode(&id, &value).ok_or_else(|| TokenError::Damaged(id.clone().into()))?;
            entries.insert(id, entry);
        }
        Ok(Self { table, clock, entries: RwLock::new(entries) })
    }

    /// Makes a token, durable on return: its text, which is nowhere else.
    pub fn make(&self, new: NewToken) -> Result<(String, TokenInfo), TokenError> {
        if new.note.len() > 128 {
            return Err(TokenError::Note);
        }
        if new.scopes.is_empty() || new.scopes.len() > SCOPES_MAX {
            return Err(TokenError::Scopes);
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|_| TokenError::NoRandomness)?;
        let id: Box<str> =
            random[..6].iter().map(|b| format!("{b:02x}")).collect::<String>().into();
        let secret = URL_SAFE_NO_PAD.encode(&random[6..]);
        let caller = Arc::new(caller(&id, &new.scopes)?);
        let info = TokenInfo {
            id: id.clone(),
            scopes: new.scopes,
            note: new.note,
            made_ms: self.clock.now(),
            until_ms: new.until_ms,
        };
        let entry = Entry { hash: Sha256::digest(&secret).into(), info: info.clone(), caller };
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= TOKENS_MAX {
            return Err(TokenError::Full);
        }
        let (sort_key, value) = (Bytes::copy_from_slice(id.as_bytes()), encode(&entry).into());
        self.commit(Op::Put { sort_key, value })?;
        entries.insert(id.clone(), entry);
        Ok((format!("tl_{id}_{secret}"), info))
    }

    /// Makes a token with scope `admin`, if there is no token at all.
    pub fn first_admin(&self) -> Result<Option<String>, TokenError> {
        if !self.entries.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return Ok(None);
        }
        let new =
            NewToken { scopes: vec!["admin".into()], note: "first start".into(), until_ms: None };
        Ok(Some(self.make(new)?.0))
    }

    /// Takes a token back, durable on return; false if there was none.
    pub fn revoke(&self, id: &str) -> Result<bool, TokenError> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains_key(id) {
            return Ok(false);
        }
        self.commit(Op::Delete { sort_key: Bytes::copy_from_slice(id.as_bytes()) })?;
        entries.remove(id);
        Ok(true)
    }

    /// All tokens, by id.
    pub fn list(&self) -> Vec<TokenInfo> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.values().map(|entry| entry.info.clone()).collect()
    }

    /// The caller that a token names.
    pub(crate) fn caller(&self, token: &str) -> Result<Arc<Caller>, Problem> {
        let bad = || unauthenticated("the token is unknown, was taken back, or is no longer good");
        let (id, secret) =
            token.strip_prefix("tl_").and_then(|rest| rest.split_once('_')).ok_or_else(bad)?;
        let hash: [u8; 32] = Sha256::digest(secret).into();
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(id).filter(|entry| same(&entry.hash, &hash)).ok_or_else(bad)?;
        match entry.info.until_ms {
            Some(until) if until <= self.clock.now() => Err(bad()),
            _ => Ok(entry.caller.clone()),
        }
    }

    fn commit(&self, op: Op) -> Result<(), StoreError> {
        let partition_key = Bytes::from_static(PARTITION_KEY);
        self.table.commit(&[Commit { table: TableName::Meta, partition_key, ops: vec![op] }])?;
        self.table.sync()
    }
}

/// Takes as long whatever differs.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn caller(id: &str, scopes: &[String]) -> Result<Caller, TokenError> {
    let mut caller = Caller { name: id.into(), user: None, roles: Roles::default() };
    for scope in scopes {
        let bad = || TokenError::Scope(scope.chars().take(64).collect());
        match scope.as_str() {
            "admin" => caller.roles.admin = true,
            "service" => caller.roles.service = true,
            "moderator" => caller.roles.moderator = true,
            "read" => caller.roles.read = true,
            other => {
                let user = other.strip_prefix("user:").ok_or_else(bad)?;
                let user = UserId::new(user).map_err(|_| bad())?;
                if caller.user.replace(user).is_some() {
                    return Err(bad());
                }
            }
        }
    }
    Ok(caller)
}

fn encode(entry: &Entry) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&entry.hash);
    out.extend_from_slice(&entry.info.made_ms.0.to_be_bytes());
    out.extend_from_slice(&entry.info.until_ms.map_or(0, |until| until.0).to_be_bytes());
    out.push(entry.info.scopes.len() as u8);
    for text in entry.info.scopes.iter().chain([&entry.info.note]) {
        out.push(u8::try_from(text.len()).expect("scopes and notes are at most 133 bytes"));
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn decode(id: &str, bytes: &[u8]) -> Option<Entry> {
    let (version, rest) = bytes.split_first()?;
    let (hash, rest) = rest.split_first_chunk::<32>()?;
    let (made, rest) = rest.split_first_chunk::<8>()?;
    let (until, rest) = rest.split_first_chunk::<8>()?;
    let (count, mut rest) = rest.split_first()?;
    if *version != VERSION || usize::from(*count) > SCOPES_MAX {
        return None;
    }
    let mut text = || {
        let (len, tail) = rest.split_first()?;
        let (text, tail) = tail.split_at_checked(usize::from(*len))?;
        rest = tail;
        String::from_utf8(text.to_vec()).ok()
    };
    let scopes = (0..*count).map(|_| text()).collect::<Option<Vec<_>>>()?;
    let note = text()?;
    let until = i64::from_be_bytes(*until);
    let info = TokenInfo {
        id: id.into(),
        note,
        made_ms: Millis(i64::from_be_bytes(*made)),
        until_ms: (until != 0).then_some(Millis(until)),
        scopes,
    };
    let caller = Arc::new(caller(id, &info.scopes).ok()?);
    rest.is_empty().then_some(Entry { hash: *hash, info, caller })
}

/// Reads any bytes as a row; for fuzzing.
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Some(entry) = decode("id", bytes) {
        assert_eq!(encode(&entry), bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_store::ManualClock;
    use tideline_store::mem::MemTable;

    use super::*;

    fn tokens() -> (Tokens, Arc<MemTable>, Arc<ManualClock>) {
        let (table, clock) = (Arc::new(MemTable::new()), Arc::new(ManualClock::at(Millis(1000))));
        (Tokens::open(table.clone(), clock.clone()).unwrap(), table, clock)
    }

    fn new(scope: &str) -> NewToken {
        NewToken { scopes: vec![scope.into()], ..NewToken::default() }
    }

    #[test]
    fn the_first_start_makes_one_admin_token_and_no_later_one_does() {
        let (tokens, table, clock) = tokens();
        let text = tokens.first_admin().unwrap().unwrap();
        assert_eq!(tokens.first_admin().unwrap(), None);
        let again = Tokens::open(table, clock).unwrap();
        assert_eq!(again.first_admin().unwrap(), None);
        assert!(again.caller(&text).unwrap().roles.admin);
        assert_eq!(again.list().len(), 1);
    }

    #[test]
    fn a_token_ends_when_it_is_taken_back_or_its_time_is_over() {
        let (tokens, table, clock) = tokens();
        let (text, info) = tokens.make(new("user:alice")).unwrap();
        assert_eq!(tokens.caller(&text).unwrap().user, Some(UserId::new("alice").unwrap()));
        let until = NewToken { until_ms: Some(Millis(2000)), ..new("read") };
        let (short, _) = tokens.make(until).unwrap();
        assert!(tokens.caller(&short).is_ok());
        clock.advance(1000);
        assert!(tokens.caller(&short).is_err());
        assert!(tokens.revoke(&info.id).unwrap());
        assert!(!tokens.revoke(&info.id).unwrap());
        assert!(tokens.caller(&text).is_err());
        assert!(Tokens::open(table, clock).unwrap().caller(&text).is_err());
    }

    #[test]
    fn what_is_no_token_names_no_one() {
        let (tokens, ..) = tokens();
        let (text, _) = tokens.make(new("service")).unwrap();
        let mut wrong = text.clone();
        wrong.pop();
        for bad in ["", "tl_", "tl__", "x", &wrong, &text.to_uppercase(), &format!("{text}a")] {
            assert!(tokens.caller(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn scopes_that_there_are_not_are_refused_by_name() {
        let (tokens, ..) = tokens();
        for bad in ["root", "user:", "", "Admin"] {
            assert!(matches!(tokens.make(new(bad)), Err(TokenError::Scope(_))), "{bad}");
        }
        assert!(matches!(tokens.make(NewToken::default()), Err(TokenError::Scopes)));
    }

    #[test]
    fn the_bytes_of_a_row_are_these() {
        let info = TokenInfo {
            id: "id".into(),
            scopes: vec!["read".into()],
            note: "n".into(),
            made_ms: Millis(258),
            until_ms: None,
        };
        let caller = Arc::new(caller("id", &info.scopes).unwrap());
        let entry = Entry { hash: [7; 32], info, caller };
        let mut golden = vec![1];
        golden.extend([7; 32]);
        golden.extend([0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
        golden.extend(b"\x01\x04read\x01n");
        assert_eq!(encode(&entry), golden);
        assert_eq!(decode("id", &golden), Some(entry));
    }

    proptest! {
        #[test]
        fn a_row_reads_back_and_a_cut_one_is_refused(
            hash in any::<[u8; 32]>(), made in any::<i64>(), until in 1i64.., note in ".{0,20}",
            user in "[a-z]{1,20}", cut in any::<prop::sample::Index>(),
        ) {
            let info = TokenInfo {
                id: "id".into(), scopes: vec![format!("user:{user}"), "read".into()], note,
                made_ms: Millis(made), until_ms: Some(Millis(until)),
            };
            let caller = Arc::new(caller("id", &info.scopes).unwrap());
            let entry = Entry { hash, info, caller };
            let bytes = encode(&entry);
            prop_assert_eq!(decode("id", &bytes), Some(entry));
            prop_assert_eq!(decode("id", &bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            fuzz(&bytes);
        }
    }
}
