//! What is wrong with what a caller sent.

use std::borrow::Cow;
use std::fmt;

/// The stable codes of errors, the same on every face. Part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A field, a parameter or a body that cannot be.
    InvalidArgument,
    /// A kind that is not declared.
    UnknownKind,
    /// Nothing stands there.
    NotFound,
    /// The method is not for this path.
    MethodNotAllowed,
    /// No or no good credentials.
    Unauthenticated,
    /// Good credentials, but not for this.
    PermissionDenied,
    /// Too many calls in a time.
    RateLimited,
    /// The server is busy or cannot write; try again later.
    Overloaded,
    /// More than the limit.
    PayloadTooLarge,
    /// The state forbids it.
    Conflict,
    /// The position is before the start of what is kept.
    Truncated,
    /// The position is of another past.
    Diverged,
    /// It is closed.
    Closed,
    /// The call took longer than its deadline.
    DeadlineExceeded,
    /// Our mistake.
    Internal,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::InvalidArgument,
        Self::UnknownKind,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::RateLimited,
        Self::Overloaded,
        Self::PayloadTooLarge,
        Self::Conflict,
        Self::Truncated,
        Self::Diverged,
        Self::Closed,
        Self::DeadlineExceeded,
        Self::Internal,
    ];

    /// The code as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::UnknownKind => "unknown_kind",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Unauthenticated => "unauthenticated",
            Self::PermissionDenied => "permission_denied",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::PayloadTooLarge => "payload_too_large",
            Self::Conflict => "conflict",
            Self::Truncated => "truncated",
            Self::Diverged => "diverged",
            Self::Closed => "closed",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Internal => "internal",
        }
    }
}

/// One thing that is wrong: its code, and for people, the field and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which sort of wrong.
    pub code: Code,
    /// Which field, which limit; never a secret.
    pub detail: Cow<'static, str>,
}

impl Fault {
    /// A field, a parameter or a body that cannot be.
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Code::InvalidArgument, detail: detail.into() }
    }

    /// A kind that is not declared. Long names are cut.
    pub fn unknown_kind(name: &str) -> Self {
        Self {
            code: Code::UnknownKind,
            detail: format!("kind: {:?} is not declared", shortened(name)).into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl std::error::Error for Fault {}

/// `text` without what would make an error longer than it is worth.
pub(crate) fn shortened(text: &str) -> &str {
    let mut end = text.len().min(64);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
