//! Entries for decoders of bytes from disk and from callers: none may panic.

use tideline_history::kinds::{Kind, Kinds};

/// The lines of an export.
pub fn export(bytes: &[u8]) {
    let kind = Kind {
        name: "video".into(),
        declared: true,
        retention_days: 0,
        max_records: 0,
        max_per_day: 0,
        daily_first: false,
    };
    let _ = crate::read_export(bytes, &Kinds::new(vec![kind]));
}

/// A row of a token.
pub fn token_row(bytes: &[u8]) {
    crate::auth::fuzz_token_row(bytes);
}
