//! Entries for fuzzing: none may panic, whatever the bytes.

/// A row's value, and again once it is encoded.
pub fn item(bytes: &[u8]) {
    if let Some(item) = crate::item::decode(bytes) {
        assert_eq!(crate::item::decode(&crate::item::encode(&item)), Some(item));
    }
}

/// The answer of an owner's service.
pub fn answer(bytes: &[u8]) {
    let _ = crate::answer::parse(bytes);
}
