//! Cursors: where a list goes on, as an opaque text.
//!
//! Bytes: version (1), CRC-32C of what follows (4), the hash of the filters
//! that the cursor is bound to (8), how many places (1 or 2), then each place:
//! `event_ms` (8), length of the kind's name (1), the name, length of the id
//! (1), the id. Big-endian, then base64url without padding. The second place
//! is the top of the first page, for grouped lists.
//!
//! A cursor carries no secret and grants nothing: it only names places in the
//! list of the user who is asking.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const VERSION: u8 = 1;

/// A row's place in the order of rows; the kind by its name, which lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// When, in ms since the epoch.
    pub event_ms: i64,
    /// The name of its kind, at most 255 bytes.
    pub kind: Box<str>,
    /// At most 255 bytes.
    pub id: Box<str>,
}

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// What [`FilterHash`] makes of the filters.
    pub filters: u64,
    /// Rows below this one are next.
    pub after: Place,
    /// For grouped lists: rows above this one are not looked at.
    pub top: Option<Place>,
}

/// A text that is no cursor of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of this server")]
pub struct BadCursor;

impl Cursor {
    /// The cursor as text.
    pub fn encode(&self) -> String {
        let mut bytes = vec![VERSION, 0, 0, 0, 0];
        bytes.extend_from_slice(&self.filters.to_be_bytes());
        bytes.push(1 + u8::from(self.top.is_some()));
        for place in std::iter::once(&self.after).chain(&self.top) {
            bytes.extend_from_slice(&place.event_ms.to_be_bytes());
            for text in [&place.kind, &place.id] {
                bytes.push(u8::try_from(text.len()).expect("kinds and ids are at most 64 bytes"));
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        let sum = crc32c::crc32c(&bytes[5..]);
        bytes[1..5].copy_from_slice(&sum.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads what [`Cursor::encode`] wrote.
    pub fn decode(text: &str) -> Result<Self, BadCursor> {
        if text.len() > 2048 {
            return Err(BadCursor);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| BadCursor)?;
        let mut rest = &bytes[..];
        if take::<1>(&mut rest)? != [VERSION] {
            return Err(BadCursor);
        }
        let sum = u32::from_be_bytes(take(&mut rest)?);
        if sum != crc32c::crc32c(rest) {
            return Err(BadCursor);
        }
        let filters = u64::from_be_bytes(take(&mut rest)?);
        let [places] = take::<1>(&mut rest)?;
        let after = place(&mut rest)?;
        let top = if places == 2 { Some(place(&mut rest)?) } else { None };
        if rest.is_empty() && (1..=2).contains(&places) {
            Ok(Self { filters, after, top })
        } else {
            Err(BadCursor)
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], BadCursor> {
    let (head, tail) = rest.split_first_chunk().ok_or(BadCursor)?;
    *rest = tail;
    Ok(*head)
}

fn place(rest: &mut &[u8]) -> Result<Place, BadCursor> {
    let event_ms = i64::from_be_bytes(take(rest)?);
    let (kind, id) = (short_text(rest)?, short_text(rest)?);
    Ok(Place { event_ms, kind, id })
}

fn short_text(rest: &mut &[u8]) -> Result<Box<str>, BadCursor> {
    let [len] = take(rest)?;
    let (text, tail) = rest.split_at_checked(len.into()).ok_or(BadCursor)?;
    *rest = tail;
    std::str::from_utf8(text).map(Into::into).map_err(|_| BadCursor)
}

/// Folds filters into one number: FNV-1a of 64 bits over each part and its
/// length. The same in every process; part of the format of cursors.
#[derive(Clone, Copy, Debug)]
pub struct FilterHash(u64);

impl FilterHash {
    /// Of no filters.
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// With one part more.
    pub fn with(mut self, part: &[u8]) -> Self {
        let length = (part.len() as u64).to_be_bytes();
        for byte in length.iter().chain(part) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// The number.
    pub fn finish(self) -> u64 {
        self.0
    }
}

impl Default for FilterHash {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn a_place() -> impl Strategy<Value = Place> {
        (any::<i64>(), "[a-z]{1,32}", ".{1,16}").prop_map(|(event_ms, kind, id)| Place {
            event_ms,
            kind: kind.into(),
            id: id.into(),
        })
    }

    fn a_cursor() -> impl Strategy<Value = Cursor> {
        (any::<u64>(), a_place(), prop::option::of(a_place()))
            .prop_map(|(filters, after, top)| Cursor { filters, after, top })
    }

    proptest! {
        #[test]
        fn a_cursor_reads_back_from_its_text(cursor in a_cursor()) {
            prop_assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
        }

        #[test]
        fn a_changed_cursor_is_refused(
            cursor in a_cursor(), at in any::<prop::sample::Index>(), to in "[A-Za-z0-9_-]",
        ) {
            let mut text = cursor.encode();
            let at = at.index(text.len());
            let same = text[at..=at] == to;
            text.replace_range(at..=at, &to);
            prop_assert_eq!(Cursor::decode(&text).is_ok(), same);
            prop_assert_eq!(Cursor::decode(&cursor.encode()[..at]), Err(BadCursor));
        }
    }

    #[test]
    fn the_text_of_a_cursor_is_this() {
        let after = Place { event_ms: 1_796_000_000_000, kind: "video".into(), id: "7".into() };
        let filters = FilterHash::new().with(b"video").finish();
        let cursor = Cursor { filters, after, top: None };
        assert_eq!(cursor.encode(), GOLDEN);
        assert_eq!(Cursor::decode(GOLDEN), Ok(cursor));
        for bad in ["", "garbage", "AQ", "null", "====", "ä"] {
            assert_eq!(Cursor::decode(bad), Err(BadCursor), "{bad}");
        }
    }

    const GOLDEN: &str = "AUcANBkWJRlnPo0-FQEAAAGiKfEoAAV2aWRlbwE3";

    #[test]
    fn filters_that_are_cut_otherwise_have_another_hash() {
        let hash = |parts: &[&[u8]]| {
            parts.iter().fold(FilterHash::new(), |hash, part| hash.with(part)).finish()
        };
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_ne!(hash(&[b""]), hash(&[]));
    }
}
