//! What an element of a file is made of: attributes, and text with references.

use std::borrow::Cow;

use crate::danmaku::read::{Change, Changes};

/// The attributes in what stands behind a tag's name, as they are in the file.
pub(in crate::danmaku) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let equals = memchr::memchr(b'=', rest)?;
        let name = rest[..equals].trim_ascii();
        let name = name.rsplit(u8::is_ascii_whitespace).next().unwrap_or(name);
        rest = rest[equals + 1..].trim_ascii_start();
        let (value, after) = match rest.split_first() {
            Some((quote @ (b'"' | b'\''), quoted)) => {
                let end = memchr::memchr(*quote, quoted).unwrap_or(quoted.len());
                (&quoted[..end], quoted.get(end + 1..).unwrap_or_default())
            }
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        rest = after;
        Some((name, value))
    })
}

/// Text of the file, with its references resolved.
pub(in crate::danmaku) fn decode(raw: &[u8], changes: &mut Changes) -> String {
    let raw = String::from_utf8_lossy(raw);
    if matches!(raw, Cow::Owned(_)) {
        changes.add(Change::Encoding);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = &*raw;
    while let Some(at) = rest.find(['&', '<']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (decoded, after) = match rest.strip_prefix("<![CDATA[") {
            Some(verbatim) => {
                let (verbatim, after) = verbatim.split_once("]]>").unwrap_or((verbatim, ""));
                text.push_str(verbatim);
                (None, after)
            }
            None => match reference(rest) {
                Some((c, after)) => (Some(c), after),
                None => {
                    changes.add(Change::Markup);
                    (rest.chars().next(), &rest[1..])
                }
            },
        };
        text.extend(decoded);
        rest = after;
    }
    text.push_str(rest);
    text
}

/// The character of a reference at the front, and what follows it.
fn reference(text: &str) -> Option<(char, &str)> {
    let body = text.strip_prefix('&')?;
    // The longest has eight digits: &#x0010ffff;
    let end = body.bytes().take(12).position(|b| b == b';')?;
    let (name, after) = (&body[..end], &body[end + 1..]);
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let digits = name.strip_prefix('#')?;
            let (digits, radix) = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => (hex, 16),
                None => (digits, 10),
            };
            if digits.starts_with('+') {
                return None;
            }
            char::from_u32(u32::from_str_radix(digits, radix).ok()?)?
        }
    };
    Some((c, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_and_bare_markup_is_text() {
        let decoded = |raw: &[u8]| {
            let mut changes = Changes::default();
            (decode(raw, &mut changes), changes.iter().collect::<Vec<_>>())
        };
        let (text, changes) = decoded(b"&lt;&amp;amp;&gt;&quot;&apos;&#65;&#x1F415;<![CDATA[&<]]>");
        assert_eq!((&*text, changes), ("<&amp;>\"'A\u{1F415}&<", vec![]));
        for bare in ["a & b", "<唯亿一张>", "&nbsp;", "&#xD800;", "&", "&;", "&#;", "&#+5;x"] {
            assert_eq!(decoded(bare.as_bytes()), (bare.to_owned(), vec![Change::Markup]));
        }
        assert_eq!(decoded(b"a\xffb"), ("a\u{fffd}b".to_owned(), vec![Change::Encoding]));
    }

    #[test]
    fn attributes_are_what_stands_between_their_quotes() {
        let read = |tag: &str| -> Vec<String> {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            attributes(tag.as_bytes())
                .map(|(name, value)| text(name) + "=" + &text(value))
                .collect()
        };
        assert_eq!(read(" p=\"1,2\" a = 'x\"y' b=z q"), ["p=1,2", "a=x\"y", "b=z"]);
        assert_eq!(read(" junk p=\"1"), ["p=1"]);
        assert_eq!(read(" p="), ["p="]);
    }
}
