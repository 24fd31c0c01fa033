//! Keyed hashes: how a mark that comes again is told, and an erased user.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher128};
use tideline_types::Millis;

/// The keyed fingerprint of (`event_id`, sent `event_ms`): stable for the life
/// of a data folder, and of no use to one who lacks the key.
pub fn fingerprint(key: &[u8; 16], event_id: &str, sent_ms: Option<Millis>) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write_u64(sent_ms.map_or(0, |ms| ms.0 as u64));
    hasher.write(event_id.as_bytes());
    hasher.finish()
}

/// The keyed hash under which an erased user is remembered.
pub(crate) fn user_hash(key: &[u8; 16], user: &str) -> [u8; 16] {
    let mut hasher = SipHasher128::new_with_key(key);
    hasher.write(user.as_bytes());
    hasher.finish128().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_id_time_and_key_apart_and_never_changes() {
        let key = [7; 16];
        let base = fingerprint(&key, "a", Some(Millis(5)));
        assert_eq!(base, fingerprint(&key, "a", Some(Millis(5))));
        assert_ne!(base, fingerprint(&key, "b", Some(Millis(5))));
        assert_ne!(base, fingerprint(&key, "a", Some(Millis(6))));
        assert_ne!(base, fingerprint(&key, "a", None));
        assert_ne!(base, fingerprint(&[8; 16], "a", Some(Millis(5))));
    }
}
