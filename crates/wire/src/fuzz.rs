//! One entry for each decoder that takes bytes from callers: none may panic.

pub mod danmaku;

use crate::{cursor, json};

/// Marks in each of their JSON shapes.
pub fn json_marks(bytes: &[u8]) {
    let checked = |mark: Result<crate::MarkFields<'_>, crate::Fault>| {
        let _ = mark.and_then(|mark| mark.check());
    };
    let _ = json::read_marks(bytes, checked);
    let _ = json::read_batch(bytes, checked);
    let _ = json::read_lines(bytes, checked);
}

/// The small JSON bodies.
pub fn json_bodies(bytes: &[u8]) {
    let _ = json::read_keys(bytes);
    let _ = json::read_recording(bytes);
    let _ = json::read_item(bytes);
    let _ = json::read_items(bytes);
    let _ = json::read_post(bytes);
    let _ = json::read_patch(bytes);
    let _ = json::read_video_settings(bytes);
    let _ = json::read_report(bytes);
}

/// Frames of a live connection, in both encodings.
pub fn live_frames(bytes: &[u8]) {
    let checked = |mark: Result<crate::MarkFields<'_>, crate::Fault>| {
        let _ = mark.and_then(|mark| mark.check());
    };
    if let Ok(crate::json::UpJson { say: crate::json::SayJson::Progress(progress), .. }) =
        json::read_up(bytes)
    {
        let _ = progress.read(checked);
    }
    if let Ok(crate::live::Up::Progress(batch)) = crate::live::read_up(bytes) {
        protobuf_batch(batch);
    }
}

/// Marks in protobuf.
pub fn protobuf_batch(bytes: &[u8]) {
    let _ = crate::read_batch(bytes, |mark| {
        let _ = mark.check();
    });
}

/// Cursors.
pub fn cursor(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = cursor::Cursor::decode(text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_decoder_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            super::json_marks(&bytes);
            super::json_bodies(&bytes);
            super::protobuf_batch(&bytes);
            super::live_frames(&bytes);
            super::cursor(&bytes);
        }

        #[test]
        fn no_json_decoder_panics(
            text in r#"(\{"(marks|keys|items|kind|id|recording|type|room)":|\[|\]|\}|"[a-z\\u0-9]{0,6}"|[0-9.eE-]{1,3}|,|null){0,20}"#,
        ) {
            super::json_marks(text.as_bytes());
            super::json_bodies(text.as_bytes());
            super::live_frames(text.as_bytes());
        }
    }
}
