//! Writes comments as this player loads them.

use std::io::Write as _;

use crate::danmaku::{Item, Mode, clean};
use crate::json::{push_str, push_string, push_u64};

/// What stands between two comments.
pub const SEPARATOR: &[u8] = b",";

/// Begins a list of `count` comments.
pub fn put_head(out: &mut Vec<u8>, count: u64) {
    push_str(out, "{\"count\":");
    push_u64(out, count);
    push_str(out, ",\"comments\":[");
}

/// Ends a list.
pub fn put_tail(out: &mut Vec<u8>) {
    push_str(out, "]}");
}

/// Adds one comment, without a separator, or nothing and `false` where these
/// clients cannot show it.
pub fn put_item(out: &mut Vec<u8>, item: &Item<'_>) -> bool {
    let mode = match item.mode {
        Mode::Scroll | Mode::Reverse => 1,
        Mode::Bottom => 4,
        Mode::Top => 5,
        Mode::Positioned | Mode::Script | Mode::Bas => return false,
    };
    let (seconds, hundredths) = (item.progress_ms / 1000, item.progress_ms % 1000 / 10);
    let Item { id, color, sender, .. } = item;
    write!(
        out,
        "{{\"cid\":{id},\"p\":\"{seconds}.{hundredths:02},{mode},{color},{sender}\",\"m\":",
    )
    .expect("a Vec takes all bytes");
    push_string(out, &clean(&item.text));
    out.push(b'}');
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::samples::full_item;

    #[test]
    fn a_list_reads_like_this() {
        let mut out = Vec::new();
        put_head(&mut out, 1);
        assert!(!put_item(&mut out, &Item { mode: Mode::Script, ..full_item() }));
        let item =
            Item { mode: Mode::Top, progress_ms: 359_999, text: "a\"b".into(), ..full_item() };
        assert!(put_item(&mut out, &item));
        put_tail(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"count":1,"comments":[{"cid":1886117449095932416,"p":"359.99,5,16777215,a6216d9","m":"a\"b"}]}"#
        );
    }
}
