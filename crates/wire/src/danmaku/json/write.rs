//! Writes comments as JSON objects.

use std::io::Write as _;

use crate::danmaku::{Item, clean};
use crate::json::{push_i64, push_str, push_string, push_u64};

/// What stands between two comments of a list.
pub const SEPARATOR: &[u8] = b",";

/// Begins a list.
pub fn put_head(out: &mut Vec<u8>) {
    push_str(out, "{\"items\":[");
}

/// Ends a list.
pub fn put_tail(out: &mut Vec<u8>) {
    push_str(out, "]}");
}

/// Adds one comment, without a separator.
pub fn put_item(out: &mut Vec<u8>, item: &Item<'_>) {
    out.push(b'{');
    put_fields(out, item);
    out.push(b'}');
}

/// Adds the fields of a comment without the braces, for objects that say more
/// of it.
pub fn put_fields(out: &mut Vec<u8>, item: &Item<'_>) {
    push_str(out, "\"id\":\"");
    push_i64(out, item.id);
    push_str(out, "\",\"progress_ms\":");
    push_u64(out, item.progress_ms.into());
    push_str(out, ",\"mode\":\"");
    push_str(out, item.mode.name());
    push_str(out, "\",\"size\":");
    push_u64(out, item.size.into());
    write!(out, ",\"color\":\"#{:06x}\",\"sent_ms\":", item.color).expect(WRITTEN);
    push_i64(out, item.sent_ms);
    push_str(out, ",\"pool\":\"");
    push_str(out, item.pool.name());
    write!(out, "\",\"sender\":\"{}\",\"weight\":", item.sender).expect(WRITTEN);
    push_u64(out, item.weight.into());
    push_str(out, ",\"attr\":");
    push_u64(out, item.attr.0.into());
    push_str(out, ",\"likes\":");
    push_u64(out, item.likes.into());
    push_str(out, ",\"text\":");
    push_string(out, &clean(&item.text));
}

const WRITTEN: &str = "a Vec takes all bytes";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::samples::{an_item, full_item};

    #[test]
    fn a_comment_reads_like_this() {
        let mut out = Vec::new();
        put_head(&mut out);
        put_item(&mut out, &full_item());
        put_tail(&mut out);
        let want = r##"{"items":[{"id":"1886117449095932416","progress_ms":490191,"mode":"scroll","size":25,"color":"#ffffff","sent_ms":1796000000000,"pool":"normal","sender":"a6216d9","weight":11,"attr":5,"likes":7,"text":"#include<stdio.h> & \"'"}]}"##;
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    proptest! {
        #[test]
        fn it_is_json_that_says_the_same(item in an_item()) {
            let mut out = Vec::new();
            put_item(&mut out, &item);
            let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(&read["id"], &item.id.to_string());
            prop_assert_eq!(&read["color"], &format!("#{:06x}", item.color));
            prop_assert_eq!(&read["text"], &*item.text);
            prop_assert_eq!(&read["attr"], item.attr.0);
        }
    }
}
