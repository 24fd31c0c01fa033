//! Entries for fuzzing: bytes from the log, from tables and from users,
//! whatever they hold, are an error or a value, never a panic.

use crate::id::CommentId;
use tideline_types::Seq;

use crate::options::{Keys, Options};
use crate::outcome::Outcome;
use crate::rows;
use crate::video::Video;

/// The value of any row of a video, and its key.
pub fn danmaku_rows(bytes: &[u8]) {
    if let Ok(facts) = rows::Facts::decode(bytes) {
        assert_eq!(facts.encode(), bytes, "facts have two forms");
    }
    if let Ok(index) = rows::decode_index(bytes) {
        assert_eq!(rows::encode_index(&index), bytes, "an index has two forms");
    }
    if let Ok(sent) = crate::sent::Sent::decode(bytes) {
        assert_eq!(sent.encode(), bytes, "a count has two forms");
    }
    let id = CommentId::default();
    if let Ok(content) = rows::decode_content(id, bytes) {
        assert_eq!(rows::encode_content(id, &content), bytes, "a content has two forms");
    }
    let _ = (rows::order_of(bytes), rows::id_of(bytes));
    let (key, value) = bytes.split_at(bytes.len() / 2);
    let _ = crate::due::decode(key, value);
    let mut checker = crate::check::Checker::default();
    _ = checker.row(b"vv", key, value);
    _ = checker.row(b"u1", key, value);
    _ = checker.end();
}

/// The value of a record of topic `danmaku`. What decodes must encode to the
/// same bytes again, be applied, and be told in the derived topics.
pub fn danmaku_outcome(bytes: &[u8]) {
    let Ok(outcome) = Outcome::decode(bytes) else { return };
    assert_eq!(outcome.encode(), bytes, "an outcome has two forms");
    let _ = (crate::outcome::audit("v", &outcome), crate::outcome::stats("v", &outcome));
    let mut video = Video::new(&Options::default());
    for seq in 1..3 {
        let mut rest = crate::video::Rest::default();
        video.apply(Seq(seq), &outcome, &Keys([0; 16]), &mut rest);
    }
}

/// A line of scores. What is taken goes out as it came.
pub fn danmaku_scores(bytes: &[u8]) {
    if let Ok(scores) = crate::scores::Scores::read(bytes) {
        let came = bytes.windows(scores.flags.len()).any(|part| part == scores.flags);
        assert!(came, "flags that did not come");
    }
}

/// A list of filters, as JSON.
pub fn danmaku_filters(bytes: &[u8]) {
    let Ok(json) = std::str::from_utf8(bytes) else { return };
    let _ = crate::filters::import(json);
    if let Ok(list) = crate::filters::parse(json) {
        let again = crate::filters::parse(&crate::filters::export(&list));
        assert_eq!(again.as_ref(), Ok(&list), "a list does not read back");
        let _ = crate::filters::Filters::new(&list);
    }
}
