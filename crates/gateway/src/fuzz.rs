//! Entries for decoders of bytes from disk: none may panic.

/// A row of a token.
pub fn token_row(bytes: &[u8]) {
    crate::auth::fuzz_token_row(bytes);
}
