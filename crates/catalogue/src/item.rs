//! An object's row: its fields, their limits, its key and its bytes.
//!
//! ```text
//! key    length of the kind u8 | kind | id              (sort key empty)
//! value  version u8 = 1 | fields present u8 | the present ones, in order:
//!        title cover url group work owner   each length varint | UTF-8
//!        duration_ms                        varint
//!        order                              zigzag varint
//! ```
//!
//! A varint has seven bits a byte, the least first. Always: what `encode`
//! makes, `decode` gives back; other bytes are refused.

use serde::Deserialize;
use tideline_types::limits::{
    FIELD_BYTES_MAX, KIND_BYTES_MAX, LENGTH_MS_MAX, TITLE_CHARS_MAX, URL_BYTES_MAX, USER_BYTES_MAX,
};

/// What is known of an object. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Item {
    /// What people call it: at most 256 characters.
    pub title: Option<String>,
    /// Address of a picture: at most 2,048 bytes.
    pub cover: Option<String>,
    /// Address of a page: at most 2,048 bytes.
    pub url: Option<String>,
    /// What lists fold it into (a season, a product family): 1 to 64 bytes.
    pub group: Option<String>,
    /// What it belongs to above the group (a series): 1 to 64 bytes.
    pub work: Option<String>,
    /// The user that may moderate it: 1 to 128 bytes.
    pub owner: Option<String>,
    /// Its length, in ms, at most 2^53 - 1.
    pub duration_ms: Option<u64>,
    /// Its place in its group.
    pub order: Option<i64>,
}

/// A field over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {limit}")]
pub struct BadItem {
    /// The field's name, as in JSON.
    pub field: &'static str,
    /// What it must be.
    pub limit: &'static str,
}

const KIND_LIMIT: &str = "1 to 32 bytes";
const ID_LIMIT: &str = "1 to 64 bytes";
const USER_LIMIT: &str = "1 to 128 bytes";
const TITLE_LIMIT: &str = "at most 256 characters";
const URL_LIMIT: &str = "at most 2048 bytes";
const DURATION_LIMIT: &str = "at most 9007199254740991";

const _: () = assert!(KIND_BYTES_MAX == 32 && FIELD_BYTES_MAX == 64 && USER_BYTES_MAX == 128);
const _: () = assert!(TITLE_CHARS_MAX == 256 && URL_BYTES_MAX == 2048);
const _: () = assert!(LENGTH_MS_MAX == 9_007_199_254_740_991);

fn hold(field: &'static str, fits: bool, limit: &'static str) -> Result<(), BadItem> {
    if fits { Ok(()) } else { Err(BadItem { field, limit }) }
}

impl Item {
    /// Holds every field to its limit; the error names the first that is over.
    pub fn check(&self) -> Result<(), BadItem> {
        let text =
            |field: &Option<String>, fits: fn(&str) -> bool| field.as_deref().is_none_or(fits);
        let url = |text: &str| text.len() <= URL_BYTES_MAX;
        let id = |text: &str| (1..=FIELD_BYTES_MAX).contains(&text.len());
        let user = |text: &str| (1..=USER_BYTES_MAX).contains(&text.len());
        // Four bytes a character at most: counts no more than it must.
        let title = |text: &str| {
            text.len() <= 4 * TITLE_CHARS_MAX && text.chars().count() <= TITLE_CHARS_MAX
        };
        hold("title", text(&self.title, title), TITLE_LIMIT)?;
        hold("cover", text(&self.cover, url), URL_LIMIT)?;
        hold("url", text(&self.url, url), URL_LIMIT)?;
        hold("group", text(&self.group, id), ID_LIMIT)?;
        hold("work", text(&self.work, id), ID_LIMIT)?;
        hold("owner", text(&self.owner, user), USER_LIMIT)?;
        let duration_fits = self.duration_ms.is_none_or(|ms| ms <= LENGTH_MS_MAX);
        hold("duration_ms", duration_fits, DURATION_LIMIT)
    }
}

/// Holds the name of an object to its limits.
pub(crate) fn check_key(kind: &str, id: &str) -> Result<(), BadItem> {
    hold("kind", (1..=KIND_BYTES_MAX).contains(&kind.len()), KIND_LIMIT)?;
    hold("id", (1..=FIELD_BYTES_MAX).contains(&id.len()), ID_LIMIT)
}

/// The partition key of an object's row. `kind` is within its limit.
pub(crate) fn key(kind: &str, id: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + kind.len() + id.len());
    key.push(kind.len() as u8);
    key.extend_from_slice(kind.as_bytes());
    key.extend_from_slice(id.as_bytes());
    key
}

const VERSION: u8 = 1;

fn push_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// The shortest form alone, so that equal items have equal bytes.
fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        n |= bits << shift;
        if byte < 0x80 {
            return (byte != 0 || shift == 0).then_some(n);
        }
    }
    None
}

fn take_text(from: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(take_varint(from)?).ok()?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(std::str::from_utf8(text).ok()?.to_owned())
}

/// The value of an item's row.
pub(crate) fn encode(item: &Item) -> Vec<u8> {
    let texts = [&item.title, &item.cover, &item.url, &item.group, &item.work, &item.owner];
    let mut out = vec![VERSION, 0];
    let mut present = 0;
    for (bit, text) in texts.into_iter().enumerate() {
        if let Some(text) = text {
            present |= 1 << bit;
            push_varint(text.len() as u64, &mut out);
            out.extend_from_slice(text.as_bytes());
        }
    }
    if let Some(duration_ms) = item.duration_ms {
        present |= 1 << 6;
        push_varint(duration_ms, &mut out);
    }
    if let Some(order) = item.order {
        present |= 1 << 7;
        push_varint(((order << 1) ^ (order >> 63)) as u64, &mut out);
    }
    out[1] = present;
    out
}

/// The item of a row's value; none if `encode` cannot have made it.
pub(crate) fn decode(bytes: &[u8]) -> Option<Item> {
    let (&[version, present], mut rest) = bytes.split_first_chunk()?;
    if version != VERSION {
        return None;
    }
    let has = |bit: u8| present & 1 << bit != 0;
    let mut text = |bit| if has(bit) { take_text(&mut rest).map(Some) } else { Some(None) };
    let (title, cover, url) = (text(0)?, text(1)?, text(2)?);
    let (group, work, owner) = (text(3)?, text(4)?, text(5)?);
    let duration_ms = if has(6) { Some(take_varint(&mut rest)?) } else { None };
    let order = if has(7) {
        let zigzag = take_varint(&mut rest)?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    } else {
        None
    };
    rest.is_empty().then_some(Item { title, cover, url, group, work, owner, duration_ms, order })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items() -> impl Strategy<Value = Item> {
        let text = || proptest::option::of("\\PC{0,40}");
        let texts = (text(), text(), text(), text(), text(), text());
        (texts, any::<Option<u64>>(), any::<Option<i64>>()).prop_map(
            |((title, cover, url, group, work, owner), duration_ms, order)| Item {
                title,
                cover,
                url,
                group,
                work,
                owner,
                duration_ms,
                order,
            },
        )
    }

    proptest! {
        #[test]
        fn an_item_reads_back(item in items()) {
            prop_assert_eq!(decode(&encode(&item)), Some(item));
        }

        #[test]
        fn only_what_was_written_is_read(
            item in items(), at in any::<prop::sample::Index>(), cut in any::<bool>(), bit in 0..8u8
        ) {
            let mut bytes = encode(&item);
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1u8 << bit }
            if let Some(other) = decode(&bytes) {
                prop_assert_eq!(encode(&other), bytes);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            crate::fuzz::item(&bytes);
            crate::fuzz::answer(&bytes);
        }
    }

    #[test]
    fn the_bytes_stay() {
        let item = Item {
            title: Some("Tide".into()),
            group: Some("s1".into()),
            duration_ms: Some(300),
            order: Some(-2),
            ..Item::default()
        };
        assert_eq!(encode(&item), b"\x01\xc9\x04Tide\x02s1\xac\x02\x03");
        assert_eq!(encode(&Item::default()), b"\x01\x00");
        assert_eq!(key("video", "42"), b"\x05video42");
    }

    #[test]
    fn a_field_over_its_limit_is_named() {
        let over = |change: fn(&mut Item)| {
            let mut item = Item::default();
            change(&mut item);
            item.check().unwrap_err().to_string()
        };
        assert_eq!(
            over(|item| item.title = Some("é".repeat(257))),
            "title must be at most 256 characters"
        );
        assert_eq!(over(|item| item.group = Some(String::new())), "group must be 1 to 64 bytes");
        assert_eq!(over(|item| item.owner = Some("o".repeat(129))), "owner must be 1 to 128 bytes");
        assert_eq!(
            over(|item| item.cover = Some("c".repeat(2049))),
            "cover must be at most 2048 bytes"
        );
        assert_eq!(
            over(|item| item.duration_ms = Some(1 << 53)),
            "duration_ms must be at most 9007199254740991"
        );
        let fits = Item { title: Some("é".repeat(256)), ..Item::default() };
        assert_eq!(fits.check(), Ok(()));
        assert_eq!(check_key("", "1").unwrap_err().to_string(), "kind must be 1 to 32 bytes");
        assert_eq!(check_key("k", &"i".repeat(65)).unwrap_err().field, "id");
    }
}
