//! Unsigned numbers of 1 to 10 bytes, seven bits a byte, low bits first.

/// Appends `value`.
pub(crate) fn put(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Takes a number off the front; `None` if it is cut short or over 64 bits.
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in 0..10 {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        if shift == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * shift);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Small numbers of either sign as small unsigned ones.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_reads_back(value: u64, signed: i64) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            prop_assert_eq!(take(&mut &bytes[..]), Some(value));
            prop_assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }
    }
}
