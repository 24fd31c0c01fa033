//! Writes a list of comments, element by element.

use std::io::Write as _;

use crate::danmaku::{Item, clean, push_seconds_5};
use crate::json::{push_i64, push_str, push_u64};

/// What stands before the comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// Which video.
    pub video: &'a str,
    /// How many normal comments the video shows at most.
    pub limit: u32,
    /// No new comments are taken.
    pub closed: bool,
}

/// Begins a file.
pub fn put_head(out: &mut Vec<u8>, head: &Head<'_>) {
    push_str(out, r#"<?xml version="1.0" encoding="UTF-8"?><i><chatid>"#);
    push_escaped(out, &clean(head.video));
    push_str(out, "</chatid><mission>0</mission><maxlimit>");
    push_u64(out, head.limit.into());
    push_str(out, "</maxlimit><state>");
    push_u64(out, head.closed.into());
    push_str(out, "</state><real_name>0</real_name><source>k-v</source>");
}

/// Adds one comment. Nothing for one without text: readers with regular
/// expressions would take the next comment for its text.
pub fn put_item(out: &mut Vec<u8>, item: &Item<'_>) {
    let text = clean(&item.text);
    if text.is_empty() {
        return;
    }
    push_str(out, "<d p=\"");
    push_seconds_5(out, item.progress_ms);
    for number in [u64::from(item.mode.number()), u64::from(item.size), u64::from(item.color)] {
        out.push(b',');
        push_u64(out, number);
    }
    out.push(b',');
    push_i64(out, item.sent_ms.div_euclid(1000));
    out.push(b',');
    push_u64(out, item.pool.number().into());
    write!(out, ",{},", item.sender).expect("a Vec takes all bytes");
    push_i64(out, item.id);
    out.push(b',');
    push_u64(out, item.weight.into());
    push_str(out, "\">");
    push_escaped(out, &text);
    push_str(out, "</d>");
}

/// Ends a file.
pub fn put_tail(out: &mut Vec<u8>) {
    push_str(out, "</i>");
}

/// Adds text with the five references that XML defines.
pub(in crate::danmaku) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let reference: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\'' => b"&apos;",
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain..at]);
        out.extend_from_slice(reference);
        plain = at + 1;
    }
    out.extend_from_slice(&bytes[plain..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::samples::{an_item, full_item};

    fn shown(item: &Item<'_>) -> String {
        let mut out = Vec::new();
        put_item(&mut out, item);
        String::from_utf8(out).unwrap()
    }

    fn saying(text: &str) -> String {
        shown(&Item { text: text.into(), ..Item::default() })
    }

    #[test]
    fn a_file_begins_with_the_declaration_and_the_root_right_behind_it() {
        let mut out = Vec::new();
        let head = Head { video: "a<b\u{1}", limit: 3000, closed: true };
        put_head(&mut out, &head);
        put_item(&mut out, &full_item());
        put_tail(&mut out);
        let want = r#"<?xml version="1.0" encoding="UTF-8"?><i><chatid>a&lt;b</chatid><mission>0</mission><maxlimit>3000</maxlimit><state>1</state><real_name>0</real_name><source>k-v</source><d p="490.19100,1,25,16777215,1796000000,0,a6216d9,1886117449095932416,11">#include&lt;stdio.h&gt; &amp; &quot;&apos;</d></i>"#;
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn what_xml_cannot_carry_is_not_there_in_any_form() {
        let head = r#"<d p="0.00000,1,25,16777215,0,0,0,0,0">"#;
        for (text, carried) in [
            ("av1141873\u{16}", "av1141873"),
            ("\u{13}\u{1F415}", "\u{1F415}"),
            ("……&……", "……&amp;……"),
            ("<唯亿一张>", "&lt;唯亿一张&gt;"),
            ("#include<stdio.h>", "#include&lt;stdio.h&gt;"),
            ("a\u{fffe}b\u{ffff}\u{7f}", "ab"),
            ("]]>&#7;", "]]&gt;&amp;#7;"),
            ("a/nb\nc", "a/nb\nc"),
        ] {
            assert_eq!(saying(text), format!("{head}{carried}</d>"));
        }
    }

    #[test]
    fn no_element_is_empty() {
        assert_eq!(saying(""), "");
        assert_eq!(saying("\u{1}\u{2}"), "");
    }

    #[test]
    fn every_colour_is_written_as_it_is() {
        for color in [0, 1, 255, 38979, 16_777_214, 16_777_215] {
            let item = Item { color, text: "x".into(), ..Item::default() };
            assert!(shown(&item).contains(&format!(",25,{color},")), "{color}");
        }
    }

    proptest! {
        #[test]
        fn it_is_read_by_the_expression_that_players_use(item in an_item()) {
            let text = shown(&item);
            let rest = text.strip_prefix("<d p=\"").unwrap().strip_suffix("</d>").unwrap();
            let (p, text) = rest.split_once("\">").unwrap();
            prop_assert_eq!(p.split(',').count(), 9);
            prop_assert!(!text.is_empty() && !text.contains(['<', '>', '"', '\'']));
            let bare = ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"]
                .iter()
                .fold(text.to_owned(), |text, reference| text.replace(reference, ""));
            prop_assert!(!bare.contains('&'));
        }
    }
}
