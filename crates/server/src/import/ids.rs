//! Texts made to fit the limits of a field.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tideline_types::limits::FIELD_BYTES_MAX;

/// `text` where it fits a field (64 bytes), else its hash: the first 16 bytes
/// of its SHA-256 in the form of a UUID of version 8. The same text gives the
/// same id in every file, on every machine.
pub fn fit_id(text: &str) -> Cow<'_, str> {
    if text.len() <= FIELD_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    Cow::Owned(hash_id(text.as_bytes()))
}

/// The first 16 bytes of a SHA-256, as a UUID of version 8.
pub(super) fn hash_id(bytes: &[u8]) -> String {
    let mut bytes: [u8; 16] =
        Sha256::digest(bytes)[..16].try_into().expect("a SHA-256 has 32 bytes");
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The longest start of `text` that has at most `bytes` bytes.
pub(super) fn cut_bytes(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest start of `text` that has at most `chars` characters.
pub fn cut_text(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_64_bytes_stays_and_one_of_65_becomes_its_hash() {
        assert_eq!(fit_id(&"x".repeat(64)), "x".repeat(64));
        assert_eq!(fit_id(&"x".repeat(65)), "9537c5fd-f120-882f-bd58-d25e9ed583f5");
        assert_ne!(fit_id(&"x".repeat(66)), fit_id(&"x".repeat(65)));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut_bytes("häh", 2), "h");
        assert_eq!(cut_bytes("häh", 3), "hä");
        assert_eq!(cut_text("häh", 2), "hä");
        assert_eq!(cut_text("häh", 9), "häh");
    }
}
