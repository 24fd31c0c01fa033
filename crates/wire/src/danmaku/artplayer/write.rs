//! Writes comments as this player loads them.

use std::borrow::Cow;
use std::io::Write as _;

use crate::danmaku::{Item, Mode, clean, push_seconds};
use crate::json::{push_i64, push_str, push_string};

/// What stands between two comments.
pub const SEPARATOR: &[u8] = b",";

/// Begins a list.
pub fn put_head(out: &mut Vec<u8>) {
    out.push(b'[');
}

/// Ends a list.
pub fn put_tail(out: &mut Vec<u8>) {
    out.push(b']');
}

/// Adds one comment, without a separator, or nothing and `false` where this
/// player cannot show it.
pub fn put_item(out: &mut Vec<u8>, item: &Item<'_>) -> bool {
    let mode = match item.mode {
        Mode::Scroll | Mode::Reverse => b'0',
        Mode::Top => b'1',
        Mode::Bottom => b'2',
        Mode::Positioned | Mode::Script | Mode::Bas => return false,
    };
    push_str(out, "{\"id\":\"");
    push_i64(out, item.id);
    push_str(out, "\",\"text\":");
    push_string(out, &clean(&item.text));
    push_str(out, ",\"mode\":");
    out.push(mode);
    write!(out, ",\"color\":\"#{:06x}\",\"time\":", item.color).expect("a Vec takes all bytes");
    push_seconds(out, item.progress_ms.max(1));
    out.push(b'}');
    true
}

/// The comment as it has to stand in XML that this plugin reads, or `None`
/// where it cannot show it. The plugin writes a colour as hex without zeros in
/// front: red below 16 would make another colour or none, and is raised to 16.
pub fn for_xml<'a>(item: &'a Item<'_>) -> Option<Item<'a>> {
    let color = if item.color < 0x0010_0000 { item.color | 0x0010_0000 } else { item.color };
    item.mode.is_plain().then(|| Item {
        color,
        progress_ms: item.progress_ms.max(1),
        text: Cow::Borrowed(&item.text),
        ..*item
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::samples::full_item;

    #[test]
    fn a_comment_reads_like_this() {
        let shown = |item: &Item<'_>| {
            let mut out = Vec::new();
            put_item(&mut out, item).then(|| String::from_utf8(out).unwrap())
        };
        let start = Item {
            progress_ms: 0,
            color: 255,
            mode: Mode::Bottom,
            text: "<b>/n".into(),
            ..full_item()
        };
        assert_eq!(
            shown(&start).unwrap(),
            r##"{"id":"1886117449095932416","text":"<b>/n","mode":2,"color":"#0000ff","time":0.001}"##
        );
        assert_eq!(shown(&Item { mode: Mode::Bas, ..full_item() }), None);
    }

    #[test]
    fn a_colour_in_xml_has_six_digits_of_hex() {
        for (color, shown) in
            [(0, 0x10_0000), (255, 0x10_00FF), (0x0F_FFFF, 0x1F_FFFF), (0x10_0000, 0x10_0000)]
        {
            let item = Item { color, progress_ms: 0, ..full_item() };
            let item = for_xml(&item).unwrap();
            assert_eq!((item.color, item.progress_ms), (shown, 1));
            assert_eq!(format!("{:x}", item.color).len(), 6);
        }
        for mode in [Mode::Positioned, Mode::Script, Mode::Bas] {
            assert_eq!(for_xml(&Item { mode, ..full_item() }), None);
        }
    }
}
