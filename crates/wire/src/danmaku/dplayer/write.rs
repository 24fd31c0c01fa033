//! Writes comments as this player loads them.

use std::io::Write as _;

use crate::danmaku::{Item, Mode, clean, push_seconds};
use crate::json::{push_str, push_string, push_u64};

/// What stands between two comments.
pub const SEPARATOR: &[u8] = b",";

/// The interfaces that differ in their shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `{"code":0,"version":2,"danmaku":[…]}`, colours as `"#rrggbb"`.
    V2,
    /// `{"code":0,"data":[…]}`, colours as numbers.
    V3,
}

/// Begins a list.
pub fn put_head(out: &mut Vec<u8>, version: Version) {
    push_str(
        out,
        match version {
            Version::V2 => r#"{"code":0,"version":2,"danmaku":["#,
            Version::V3 => r#"{"code":0,"data":["#,
        },
    );
}

/// Ends a list.
pub fn put_tail(out: &mut Vec<u8>) {
    push_str(out, "]}");
}

/// Adds one comment, without a separator, or nothing and `false` where this
/// player cannot show it.
pub fn put_item(out: &mut Vec<u8>, version: Version, item: &Item<'_>) -> bool {
    let kind = match item.mode {
        Mode::Scroll | Mode::Reverse => 0,
        Mode::Top => 1,
        Mode::Bottom => 2,
        Mode::Positioned | Mode::Script | Mode::Bas => return false,
    };
    out.push(b'[');
    push_seconds(out, item.progress_ms);
    out.push(b',');
    push_u64(out, kind);
    out.push(b',');
    match version {
        Version::V2 => write!(out, "\"#{:06x}\"", item.color).expect("a Vec takes all bytes"),
        Version::V3 => push_u64(out, item.color.max(1).into()),
    }
    out.push(b',');
    push_string(out, &escape_html(&item.sender.to_string()));
    out.push(b',');
    push_string(out, &escape_html(&clean(&item.text)));
    out.push(b']');
    true
}

/// `text` with references for the characters that HTML gives a meaning.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            '/' => escaped.push_str("&#x2F;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::samples::full_item;

    fn list(version: Version, items: &[Item<'_>]) -> String {
        let mut out = Vec::new();
        put_head(&mut out, version);
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(SEPARATOR);
            }
            assert!(put_item(&mut out, version, item));
        }
        put_tail(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_list_of_each_interface_reads_like_this() {
        let items = [
            Item {
                text: "a".into(),
                mode: Mode::Bottom,
                progress_ms: 5_000,
                color: 0,
                ..full_item()
            },
            Item { text: "b".into(), mode: Mode::Top, progress_ms: 0, color: 255, ..full_item() },
            Item { text: "c".into(), mode: Mode::Reverse, ..full_item() },
        ];
        assert_eq!(
            list(Version::V3, &items),
            r#"{"code":0,"data":[[5,2,1,"a6216d9","a"],[0,1,255,"a6216d9","b"],[490.191,0,16777215,"a6216d9","c"]]}"#
        );
        assert_eq!(
            list(Version::V2, &items),
            r##"{"code":0,"version":2,"danmaku":[[5,2,"#000000","a6216d9","a"],[0,1,"#0000ff","a6216d9","b"],[490.191,0,"#ffffff","a6216d9","c"]]}"##
        );
    }

    #[test]
    fn markup_stays_text() {
        let item = Item { text: "<img src=x onerror=alert(1)>&\"'/".into(), ..full_item() };
        let read: serde_json::Value = serde_json::from_str(&list(Version::V3, &[item])).unwrap();
        assert_eq!(read["data"][0][4], "&lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#x27;&#x2F;");
    }

    #[test]
    fn what_is_no_plain_text_is_left_out() {
        for mode in [Mode::Positioned, Mode::Script, Mode::Bas] {
            let mut out = Vec::new();
            assert!(!put_item(&mut out, Version::V3, &Item { mode, ..full_item() }));
            assert!(out.is_empty());
        }
    }
}
