//! Who is calling, and what they may do.
//!
//! A call names its caller by a bearer token, or where headers cannot be set,
//! by a one-time ticket. A user's token touches only its own user; services
//! and administrators touch all.

mod jwks;
mod jwt;
mod tickets;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use tideline_store::{Clock, StoreError, Table};
use tideline_types::UserId;
use tideline_wire::Code;

pub use jwt::BadKey;
pub(crate) use jwt::Jwt;
pub(crate) use tickets::Tickets;
pub use tokens::{NewToken, TokenError, TokenInfo, Tokens};

use crate::op::Need;
use crate::options::{AuthMode, AuthOptions};
use crate::problem::Problem;

/// What a caller may do beyond their own user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Runs the server; may do everything.
    pub admin: bool,
    /// Acts for the app: all users, topics, items.
    pub service: bool,
    /// Moderates.
    pub moderator: bool,
    /// Reads everything.
    pub read: bool,
}

/// Someone who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// For limits of rate and logs: the id of a token, a `sub`, `anyone`.
    pub name: Box<str>,
    /// The user that `users/me` is.
    pub user: Option<UserId>,
    /// What they may do beyond that user.
    pub roles: Roles,
}

impl Caller {
    /// The caller where no one is asked for a name.
    pub(crate) fn anyone() -> Self {
        let roles = Roles { admin: true, service: true, moderator: true, read: true };
        Self { name: "anyone".into(), user: None, roles }
    }

    /// Someone who said no name, where one is asked for.
    fn nobody() -> Self {
        Self { name: "nobody".into(), user: None, roles: Roles::default() }
    }

    /// Whether they said no name, where one is asked for.
    pub(crate) fn is_nobody(&self) -> bool {
        self.user.is_none() && self.roles == Roles::default()
    }

    /// Whether they may do what needs `need`, about `user` where there is one.
    pub(crate) fn may(&self, need: Need, user: Option<&UserId>) -> Result<(), Problem> {
        let roles = self.roles;
        let own = user.is_some() && self.user.as_ref() == user;
        let may = match need {
            Need::Nothing | Need::Known => true,
            Need::ReadUser => own || roles.read || roles.service || roles.admin,
            Need::WriteUser => own || roles.service || roles.admin,
            Need::Read => roles.read || roles.service || roles.admin,
            Need::Service => roles.service || roles.admin,
            Need::Admin => roles.admin,
        };
        if may {
            return Ok(());
        }
        let detail = match need {
            Need::ReadUser | Need::WriteUser => "the token is not for this user",
            Need::Admin => "needs scope admin",
            Need::Read => "needs scope read or service",
            _ => "needs scope service",
        };
        Err(Problem::new(Code::PermissionDenied, detail))
    }
}

/// A setting of `auth` with which no server may start.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Everyone could do everything from elsewhere.
    #[error(
        "auth.mode = \"none\" only on a loopback address, and {0} is none; set auth.mode to \"token\" or \"jwt\""
    )]
    Open(SocketAddr),
    /// The key of signed tokens.
    #[error("auth.jwt: {0}")]
    Key(#[from] BadKey),
    /// The table of tokens.
    #[error("tokens: {0}")]
    Tokens(#[from] TokenError),
    /// The engine under it.
    #[error("{0}")]
    Store(#[from] StoreError),
}

enum Mode {
    None(Arc<Caller>),
    Token,
    Jwt(Box<Jwt>),
}

/// Tells callers apart.
pub(crate) struct Auth {
    mode: Mode,
    nobody: Arc<Caller>,
    tokens: Arc<Tokens>,
    tickets: Tickets,
}

impl Auth {
    /// As `options` say, for a server that listens on `addresses`. Reads the
    /// key file, if one is named.
    pub(crate) fn open(
        options: &AuthOptions,
        addresses: &[SocketAddr],
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuthError> {
        let open = addresses.iter().find(|address| !address.ip().is_loopback());
        let tokens = Arc::new(Tokens::open(table, clock.clone())?);
        let mode = match (options.mode, open) {
            (AuthMode::None, Some(address)) => return Err(AuthError::Open(*address)),
            (AuthMode::None | AuthMode::Auto, None) => Mode::None(Arc::new(Caller::anyone())),
            (AuthMode::Auto | AuthMode::Token, _) => Mode::Token,
            (AuthMode::Jwt, _) => Mode::Jwt(Box::new(Jwt::open(&options.jwt, clock.clone())?)),
        };
        let nobody = Arc::new(Caller::nobody());
        Ok(Self { mode, nobody, tokens, tickets: Tickets::new(clock) })
    }

    /// The tokens that this server made, whatever the mode.
    pub(crate) fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// Makes the admin token of a first start: the text to print once, if the
    /// mode is `token` and there is no token yet.
    pub(crate) fn first_token(&self) -> Result<Option<String>, TokenError> {
        match self.mode {
            Mode::Token => self.tokens.first_admin(),
            _ => Ok(None),
        }
    }

    /// The caller that an `Authorization` header or a ticket names.
    pub(crate) async fn caller(
        &self,
        authorization: Option<&[u8]>,
        ticket: Option<&str>,
    ) -> Result<Arc<Caller>, Problem> {
        if let Mode::None(anyone) = &self.mode {
            return Ok(anyone.clone());
        }
        if let Some(ticket) = ticket {
            return self.tickets.take(ticket);
        }
        let Some(header) = authorization else {
            return Err(unauthenticated("a bearer token is due in the header authorization"));
        };
        let token = bearer(header)
            .ok_or_else(|| unauthenticated("the header authorization must be: Bearer <token>"))?;
        match &self.mode {
            Mode::Jwt(jwt) => jwt.caller(token).await,
            _ => self.tokens.caller(token),
        }
    }

    /// The same, for what needs no name: who says none is nobody.
    pub(crate) async fn caller_or_nobody(
        &self,
        authorization: Option<&[u8]>,
        ticket: Option<&str>,
    ) -> Result<Arc<Caller>, Problem> {
        match (&self.mode, authorization, ticket) {
            (Mode::Token | Mode::Jwt(_), None, None) => Ok(self.nobody.clone()),
            _ => self.caller(authorization, ticket).await,
        }
    }

    /// A ticket in the name of `caller`, and how long it is good, in ms.
    pub(crate) fn ticket(&self, caller: Arc<Caller>) -> Result<(String, u64), Problem> {
        self.tickets.give(caller)
    }
}

/// Reads any bytes as the row of a token; for fuzzing.
pub(crate) fn fuzz_token_row(bytes: &[u8]) {
    tokens::fuzz(bytes);
}

fn bearer(header: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(header).ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthenticated(detail: &'static str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(user: Option<&str>, roles: Roles) -> Caller {
        let user = user.map(|user| UserId::new(user).unwrap());
        Caller { name: "c".into(), user, roles }
    }

    #[test]
    fn a_users_token_touches_only_its_own_user() {
        let alice = UserId::new("alice").unwrap();
        let bob = UserId::new("bob").unwrap();
        let caller = caller(Some("alice"), Roles::default());
        for need in [Need::ReadUser, Need::WriteUser] {
            assert!(caller.may(need, Some(&alice)).is_ok());
            assert!(caller.may(need, Some(&bob)).is_err());
            assert!(caller.may(need, None).is_err());
        }
        for need in [Need::Service, Need::Admin, Need::Read] {
            assert!(caller.may(need, Some(&alice)).is_err(), "{need:?}");
        }
    }

    #[test]
    fn a_reader_reads_all_and_changes_nothing() {
        let bob = UserId::new("bob").unwrap();
        let reader = caller(None, Roles { read: true, ..Roles::default() });
        assert!(reader.may(Need::ReadUser, Some(&bob)).is_ok());
        assert!(reader.may(Need::WriteUser, Some(&bob)).is_err());
        assert!(reader.may(Need::Service, None).is_err());
        let service = caller(None, Roles { service: true, ..Roles::default() });
        assert!(service.may(Need::WriteUser, Some(&bob)).is_ok());
        assert!(service.may(Need::Admin, None).is_err());
    }

    #[test]
    fn a_bearer_token_is_found_whatever_the_case_of_its_scheme() {
        assert_eq!(bearer(b"Bearer abc"), Some("abc"));
        assert_eq!(bearer(b"bearer  abc "), Some("abc"));
        for bad in [&b"abc"[..], b"Basic abc", b"Bearer\xff abc"] {
            assert_eq!(bearer(bad), None);
        }
    }
}
