//! One ordered key of bytes for (partition key, sort key).
//!
//! ```text
//! 0x00 -> 0x01 0x01     every other byte of the partition key as it is,
//! 0x01 -> 0x01 0x02     then 0x00, then the sort key as it is
//! ```
//!
//! Always: the order of encoded keys is the order of (partition key, sort
//! key); no encoded partition key is a prefix of another; the rows whose
//! partition key starts with `p` are those whose key starts with `escape(p)`.
//! Costs one byte a row, and one more per byte 0x00 or 0x01 of the partition
//! key. Part of the data format.

use std::ops::Range;

const END: u8 = 0x00;
const ESCAPE: u8 = 0x01;

fn push_escaped(partition_key: &[u8], out: &mut Vec<u8>) {
    for &byte in partition_key {
        match byte {
            END | ESCAPE => out.extend_from_slice(&[ESCAPE, byte + 1]),
            _ => out.push(byte),
        }
    }
}

/// The key of one row.
pub(super) fn encode(partition_key: &[u8], sort_key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(partition_key.len() + sort_key.len() + 4);
    push_escaped(partition_key, &mut out);
    out.push(END);
    out.extend_from_slice(sort_key);
    out
}

/// The keys of `partition_key` with `from <= sort key` and, if given, `< to`.
pub(super) fn range(partition_key: &[u8], from: &[u8], to: Option<&[u8]>) -> Range<Vec<u8>> {
    let low = encode(partition_key, from);
    let high = match to {
        Some(to) => encode(partition_key, to),
        None => {
            let mut high = encode(partition_key, &[]);
            high.pop();
            high.push(END + 1);
            high
        }
    };
    low..high
}

/// The keys of all partition keys that start with `prefix`: from the first
/// value on, and below the second if there is one.
pub(super) fn prefix_range(prefix: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut low = Vec::with_capacity(prefix.len() + 1);
    push_escaped(prefix, &mut low);
    let mut high = low.clone();
    while let Some(last) = high.pop() {
        if last < u8::MAX {
            high.push(last + 1);
            return (low, Some(high));
        }
    }
    (low, None)
}

/// Where the sort key begins in `key`; none where no partition key ends.
pub(super) fn sort_key_at(key: &[u8]) -> Option<usize> {
    memchr::memchr(END, key).map(|end| end + 1)
}

/// Partition key and sort key; none if `encode` cannot have made `key`.
pub(super) fn decode(key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let sort_key_at = sort_key_at(key)?;
    let mut escaped = key[..sort_key_at - 1].iter();
    let mut partition_key = Vec::with_capacity(sort_key_at);
    while let Some(&byte) = escaped.next() {
        partition_key.push(match byte {
            ESCAPE => match *escaped.next()? {
                escaped @ 1..=2 => escaped - 1,
                _ => return None,
            },
            _ => byte,
        });
    }
    Some((partition_key, &key[sort_key_at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Bytes in which the special values are common.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(0xff), any::<u8>()], 0..6)
    }

    proptest! {
        #[test]
        fn keys_read_back_and_keep_the_order(a in (bytes(), bytes()), b in (bytes(), bytes())) {
            let (x, y) = (encode(&a.0, &a.1), encode(&b.0, &b.1));
            prop_assert_eq!(decode(&x), Some((a.0.clone(), a.1.as_slice())));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }

        #[test]
        fn ranges_hold_exactly_their_rows(
            row in (bytes(), bytes()), pk in bytes(), from in bytes(), to in bytes()
        ) {
            let key = encode(&row.0, &row.1);
            let open = range(&pk, &from, None);
            prop_assert_eq!(open.contains(&key), row.0 == pk && row.1 >= from);
            let closed = range(&pk, &from, Some(&to));
            prop_assert_eq!(closed.contains(&key), row.0 == pk && row.1 >= from && row.1 < to);
            let (low, high) = prefix_range(&pk);
            let inside = key >= low && high.is_none_or(|high| key < high);
            prop_assert_eq!(inside, row.0.starts_with(&pk));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(key in vec(any::<u8>(), 0..20)) {
            if let Some((partition_key, sort_key)) = decode(&key) {
                prop_assert_eq!(encode(&partition_key, sort_key), key);
            }
        }
    }

    #[test]
    fn the_format_stays() {
        assert_eq!(encode(b"a\x00b\x01", b"\x00s"), b"a\x01\x01b\x01\x02\x00\x00s");
        assert_eq!(encode(b"7", b""), b"7\x00");
    }
}
